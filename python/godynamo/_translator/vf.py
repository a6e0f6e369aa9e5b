"""torch's builtins that a wrapper of the same name hides (torch.split, torch.broadcast_tensors, ...) or that torch does
not export (unique_dim), under names that FX can print and pickle: FX writes a torch builtin as ``torch.<name>``."""

from __future__ import annotations

import types
from typing import Any

import torch


def __getattr__(name: str) -> Any:
    """Return ``name`` of torch's C namespace as a Python function of this module; AttributeError for others."""
    builtin = getattr(torch._C._VariableFunctions, name, None)
    if builtin is None or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        return builtin(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = __name__
    globals()[name] = call
    return call


def printable(target: Any) -> Any:
    """Return ``target``, or its function in this module if FX would print another function's name for it."""
    if isinstance(target, types.BuiltinFunctionType):
        name = target.__name__
        # The name may also be missing: there is no torch.unique_dim.
        hidden = getattr(torch, name, None) is not target
        if hidden and getattr(torch._C._VariableFunctions, name, None) is target:
            return globals().get(name) or __getattr__(name)
    return target
