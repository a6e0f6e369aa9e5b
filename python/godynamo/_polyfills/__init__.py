"""Python replacements for functions that CPython's library writes in C: the translator inlines them instead.

``find`` is called once per callable and translation (``callables.stand_in``); a module here is imported when a
callable of its C module occurs. Each registers its functions and classes with ``_base.stands_for``. The user's code
never runs this code, the translator only inlines it; it raises what the C code raises, with the same text, or
declines, and CPython runs the C code.
"""

from __future__ import annotations

import importlib
import types
from functools import partial
from typing import Any

import torch

from . import _base

#: the C callable's module → the module here
_MODULES = {
    "itertools": "itertools",
    "functools": "functools",
    "_functools": "functools",
    "operator": "operator",
    "_operator": "operator",
    "_heapq": "heapq",
    "_bisect": "bisect",
    "_collections": "collections",
    "math": "math",
    "builtins": "builtins",
    "re": "re",
    "types": "namespace",
    "torch._C": "torch_modes",
    "torch.distributions.utils": "distributions",
}
#: modules whose Python functions have replacements
PYTHON_MODULES = {
    "copy": "copy",
    "torch.autograd.profiler": "torch_modes",
    "torch._tensor": "torch_function",
    "torch.masked._ops": "masked",
}
_TORCH_METACLASSES = (type(torch.Tensor), type(torch.FloatTensor), type(torch.autograd.Variable))
_C_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
)


def _module_of(obj: Any) -> str:
    owner = getattr(obj, "__objclass__", None) or getattr(obj, "__self__", None)
    if owner is not None and type(owner) is not types.ModuleType:
        if type(owner) is not type:  # bound to an object, whose code must not run
            return ""
        obj = owner
    name = getattr(obj, "__module__", None)
    return name if isinstance(name, str) else ""


def find_object(obj: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """Return (maker, args, kwargs) of the stand-in for an immutable object of a C type, or None."""
    kind = type(obj)
    if kind.__module__ != "operator":
        return None
    importlib.import_module(f"{__name__}.operator")
    maker = _base.makers.get(kind)
    if maker is None:
        return None
    how, args = obj.__reduce__()[:2]
    if how is kind:
        return maker, args, {}
    if isinstance(how, partial) and how.func is kind:
        return maker, (*how.args, *args), how.keywords
    return None


def named(name: str) -> Any:
    """Return a function of this package, by "module.function"."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), function)


def find_python(obj: types.FunctionType) -> tuple[Any, bool] | None:
    """Like find, for a Python function; if its stand-in declines, the function itself is inlined."""
    name = PYTHON_MODULES.get(obj.__globals__.get("__name__") or "")
    if name is None:
        return None
    importlib.import_module(f"{__name__}.{name}")
    return _base.table.get(obj)


def find(obj: Any) -> tuple[Any, bool] | None:
    """Return (stand-in, fold) for a C function or type, or None; see callables.stand_in."""
    if type(obj).__module__ == "pybind11_builtins":
        name: str | None = "torch_modes"
    elif any(type(obj) is kind for kind in _TORCH_METACLASSES):
        name = "torch_legacy"
    elif type(obj) is type or isinstance(obj, _C_FUNCTIONS):
        name = _MODULES.get(_module_of(obj))
    else:
        return None
    if name is None:
        return None
    importlib.import_module(f"{__name__}.{name}")
    return _base.table.get(obj)
