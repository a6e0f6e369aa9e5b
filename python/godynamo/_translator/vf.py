"""Provides names, which FX can print and pickle, for hidden C functions of torch.

FX writes a C function as ``torch.<name>``. But torch.split, torch.broadcast_tensors, ... are Python wrappers of C
functions, and torch does not export unique_dim.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import torch


def __getattr__(name: str) -> Any:
    """Return a Python function of this module for the C function ``name``. Raises AttributeError for other names."""
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
    """Return ``target``, or this module's function for it if FX would write the name of another function."""
    if isinstance(target, types.BuiltinFunctionType):
        name = target.__name__
        # torch may also lack the name, such as torch.unique_dim.
        hidden = getattr(torch, name, None) is not target
        if hidden and getattr(torch._C._VariableFunctions, name, None) is target:
            return globals().get(name) or __getattr__(name)
    module = str(target.__module__) if isinstance(target, types.FunctionType) else ""
    known = not module.startswith("torch.") or module == "torch._tensor"  # FX knows the methods of torch.Tensor
    # It writes torch's other functions by module and name, but ColwiseParallel._prepare_input_fn is in a class.
    if not known and getattr(sys.modules.get(module), target.__name__, None) is not target:
        return _renamed(target)
    return target


@functools.cache
def _renamed(target: types.FunctionType) -> Callable[..., Any]:
    """Return a function of this module, which FX passes to the code instead of writing its name."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    run.__name__ = run.__qualname__ = target.__name__
    return run
