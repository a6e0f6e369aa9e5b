"""make fuzz-language: compares random programs with CPython; shrinks and prints differences.

    fuzz_run.py [--count N] [--seed FIRST] [--most N] [--show]

Every tenth program has a backend that receives whole graphs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fuzz_judge import judge
from fuzz_program import program, source
from harness.fuzz_children import Programs, main

LANGUAGE = Programs("CPython", program, lambda _seed, body: source(body), judge, lambda seed: seed % 10 == 9)

if __name__ == "__main__":
    sys.exit(main(LANGUAGE, 10000, __doc__.splitlines()[0]))
