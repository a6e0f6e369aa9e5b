"""make fuzz-training: compares random training steps with eager, bit by bit, over eight steps; shrinks differences.

    fuzz_training_run.py [--count N] [--seed FIRST] [--most N] [--show]

Every fourth program has a backend that receives whole graphs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.fuzz_children import Programs, main
from training_judge import judge
from training_program import program, source

TRAINING = Programs(
    "eager",
    program,
    source,
    judge,
    lambda seed: seed % 4 == 3,
    shown=lambda text: "def make(" + text.split("\ndef make(", 1)[1],
)

if __name__ == "__main__":
    sys.exit(main(TRAINING, 1000, __doc__.splitlines()[0]))
