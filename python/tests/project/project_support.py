"""Puts the folders of scripts, build backend and benchmark on the path for their tests."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

for _name in ("scripts", "build_backend", "bench", "bench/models", "bench/sizes", "bench/ranks"):
    if str(ROOT / _name) not in sys.path:
        sys.path.append(str(ROOT / _name))
