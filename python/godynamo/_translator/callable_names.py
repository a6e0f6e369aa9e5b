"""Names callables for graphs and reasons."""

from __future__ import annotations

import builtins
import functools
import operator
import types
from typing import Any

import torch
import torch.overrides


def callable_name(fn: Any) -> str:
    """Return a callable's name for a graph, a qualified name for torch's operations.

    Custom operators and overloads have the prefix ``torch.ops.``; ``torch.ops.aten.add`` is ``torch.add``.
    """
    kind = type(fn)
    if kind is torch._ops.OpOverload or (kind is torch._ops.OpOverloadPacket and fn.__module__ != "torch._ops.aten"):
        return f"torch.ops.{fn}"
    name = ops().get(fn) or getattr(fn, "__name__", None) or type(fn).__name__
    module = getattr(fn, "__module__", None) or ""
    if module.startswith("torch.distributed."):
        return "torch.distributed." + name
    if fn in ops() or module.startswith("torch"):
        return "torch." + name
    return str(name)


#: result in place of a missing value
MISSING = object()


def _op_namespaces() -> list[Any]:
    names = ("_nn", "_fft", "_linalg", "_special", "_sparse", "_nested")
    return [torch._C._VariableFunctions] + [getattr(torch._C, n) for n in names if hasattr(torch._C, n)]


@functools.lru_cache(maxsize=1)
def ops() -> dict[Any, str]:
    """Return {function: name} of all C functions in torch's namespaces of operations.

    Of equal functions (torch.mm, torch.spmm), the shortest name is returned for all.
    """
    table: dict[Any, str] = {}
    for space in _op_namespaces():
        for name in sorted(dir(space), key=len):
            fn = getattr(space, name, None)
            if isinstance(fn, types.BuiltinFunctionType) and not name.startswith("__"):
                table.setdefault(
                    fn,
                    name
                    if space is torch._C._VariableFunctions
                    else space.__name__.removeprefix("torch.") + "." + name,
                )
    return table


_BUILTIN_NAMES: dict[Any, str] = {}

for _name in dir(operator):
    _obj = getattr(operator, _name)
    if isinstance(_obj, types.BuiltinFunctionType):
        _BUILTIN_NAMES.setdefault(_obj, "operator." + _name)


for _name in dir(builtins):
    _obj = getattr(builtins, _name)
    if isinstance(_obj, (types.BuiltinFunctionType, type)) and not (
        isinstance(_obj, type) and issubclass(_obj, BaseException)
    ):
        _BUILTIN_NAMES[_obj] = _name


del _BUILTIN_NAMES[object]

#: id of the object -> name; the objects are not keys, since a metaclass may define the hash of its classes
_NAMES_BY_ID = {id(_obj): _name for _obj, _name in _BUILTIN_NAMES.items()}

_type_name: Any = type.__dict__["__qualname__"].__get__


def builtin_name(obj: Any) -> str:
    """Return the name of a function or type of builtins or operator, "" for another class, else a dotted name."""
    known = _NAMES_BY_ID.get(id(obj))
    if known:
        return known
    if issubclass(type(obj), type):
        return ""
    if (
        type(obj) is types.BuiltinMethodType
        and (owner := obj.__self__) is not None
        and type(owner) is not types.ModuleType
    ):
        # obj.__qualname__ would read the class's __qualname__, which a metaclass may compute.
        return f"{_type_name(owner if issubclass(type(owner), type) else type(owner))}.{obj.__name__}"
    name = str(getattr(obj, "__qualname__", "") or "builtin")
    module = getattr(obj, "__module__", None) if type(obj) is types.BuiltinFunctionType else None
    return f"{module}.{name}" if type(module) is str else name  # not "pow" for math.pow


def bound_self(fn: Any) -> Any:
    """Return the object to which a C function is bound; MISSING if it is a module or class."""
    owner = getattr(fn, "__self__", None)
    if owner is None or issubclass(type(owner), (types.ModuleType, type)):  # isinstance could run code of the object
        return MISSING
    return owner
