"""make fuzz-torch: compares random programs of tensors, modules and autograd with eager; shrinks differences.

    fuzz_torch_run.py [--count N] [--seed FIRST] [--most N] [--show] [--sizes]

Every other program has a backend that receives whole graphs. With --sizes, the calls of a program differ only in the
sizes of their inputs.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "language"))

from harness.fuzz_children import Programs, main
from torch_judge import judge
from torch_program import program, sized_source, source

TORCH = Programs("eager", program, source, judge, lambda seed: seed % 2 == 1)

SIZED = dataclasses.replace(TORCH, source=sized_source)

if __name__ == "__main__":
    text = __doc__.splitlines()[0]
    options = argparse.ArgumentParser(description=text)
    options.add_argument("--sizes", action="store_true", help="calls of a program differ only in sizes")
    sys.exit(main(SIZED if options.parse_known_args()[0].sizes else TORCH, 2000, text, options))
