"""make fuzz-torch: compares random programs of tensors, modules and autograd with eager; shrinks differences.

    fuzz_torch_run.py [--count N] [--seed FIRST] [--most N] [--show]

Every other program has a backend that receives whole graphs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "language"))

from harness.fuzz_children import Programs, main
from torch_judge import judge
from torch_program import program, source

TORCH = Programs("eager", program, source, judge, lambda seed: seed % 2 == 1)

if __name__ == "__main__":
    sys.exit(main(TORCH, 2000, __doc__.splitlines()[0]))
