"""Fills in torch's results for the examples of the shape rules: fxgraph/shapes/testdata/examples.txt.

    python scripts/shape_examples.py [FILE]

A line is a Python call, " = " and the call's result, which this script writes. ``float32[2, 3]`` is a tensor. The
result "nothing" means that torch raises, so that no rule may return a result. The Go tests of package shapes compare
the rules with the lines; python/tests/torch_library/test_shape_examples.py compares the lines with torch.
"""

from __future__ import annotations

import builtins
import operator
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

EXAMPLES = Path(__file__).resolve().parent.parent / "fxgraph/shapes/testdata/examples.txt"
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


class _Tensors:
    def __init__(self, dtype: str) -> None:
        self.dtype = getattr(torch, dtype)

    def __getitem__(self, sizes: Any) -> torch.Tensor:
        t = torch.ones(sizes if isinstance(sizes, tuple) else (sizes,), dtype=self.dtype)
        if t.ndim > 1 and t.shape[-1] == t.shape[-2] and (t.is_floating_point() or t.is_complex()):
            t = t + torch.eye(t.shape[-1], dtype=self.dtype)  # positive definite
        return t


_NAMES: dict[str, Any] = {
    "torch": torch,
    "operator": operator,
    "builtins": builtins,
    **{d: _Tensors(d) for d in DTYPES},
}


def text_of(value: Any) -> str:
    """Return a result in the examples' notation."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape)) or '()'}]"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(text_of, value))})"
    return repr(value)


def result_of(call: str) -> str:
    """Return torch's result for an example's call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_of(eval(call, dict(_NAMES)))
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
        return "nothing"


def filled(text: str) -> str:
    """Return the text of the examples with torch's results filled in."""
    lines = []
    for line in text.splitlines():
        call = line.partition(" = ")[0].strip()
        lines.append(f"{call} = {result_of(call)}" if call and not call.startswith("#") else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLES
    path.write_text(filled(path.read_text()))
