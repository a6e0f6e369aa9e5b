"""make fuzz-mutation: compares random classes and containers, changed between calls of a function, with CPython.

    mutation_run.py [--count N] [--seed FIRST] [--most N] [--show]

Every tenth program has a backend that receives whole graphs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.fuzz_children import Programs, main
from mutation_judge import judge
from mutation_program import PRELUDE, program, source

MUTATION = Programs(
    "CPython",
    program,
    lambda _seed, body: source(body),
    judge,
    lambda seed: seed % 10 == 9,
    shown=lambda text: text[len(PRELUDE) :],
)

if __name__ == "__main__":
    sys.exit(main(MUTATION, 50000, __doc__.splitlines()[0]))
