"""Counts the instructions of a program that CPython runs while explain() runs the program.

The core does the counting (pyhook/core/calls/census.c). This module classifies code and callables for the core.

An instruction is a **torch call** if it calls a torch function or method that computes something, applies an operator
to a tensor, reads a property such as ``x.T``, or calls a builtin such as ``sum`` with a tensor. A torch call counts at
its place in the user's code: everything that ``self.layers(x)`` does inside torch's files is one call. A test of a
tensor's value (``if x:``) does not count. Calls that C code makes for the user (``map(torch.sin, l)``) do not count if
CPython runs the C code.
"""

from __future__ import annotations

import builtins
import inspect
import operator
import os
import types
from functools import partial
from types import CodeType
from typing import Any

import torch

from .._core import core
from .._translator import kinds as _kinds
from .._translator import trace_rules
from .._user import registry

# Results of Census.kind(), with the numbers of census.c. LIBRARY: only torch calls count. HIDDEN: nothing counts.
LIBRARY, USER, HIDDEN = 0, 1, 2


def _is(obj: object, kinds: Any) -> bool:
    """Return whether an object's type is one of these. Unlike isinstance, this does not read ``__class__``."""
    return issubclass(type(obj), kinds)


_NOT_TORCH, _TORCH, _TORCH_WITH_TENSOR = 0, 1, 2

# ---- torch's own functions ----

_LOOKS = frozenset(
    "dim ndimension numel nelement element_size get_device data_ptr storage_offset is_contiguous is_floating_point "
    "is_complex "
    "is_signed is_inference is_pinned is_shared is_set_to is_same_size is_conj is_neg is_coalesced has_names size "
    "stride storage "
    "untyped_storage is_tensor can_cast promote_types result_type sym_size".split()
)  # these functions read a tensor's metadata, not its values
_SPECIAL = frozenset(
    "__getitem__ __setitem__ __contains__ __rsub__ __rpow__ __rdiv__ __rtruediv__ __pow__ __div__".split()
)
_WITH_TENSOR = [getattr(builtins, n) for n in "abs complex divmod float int max min pow round sum".split()]
_WITH_TENSOR += [f for f in vars(operator).values() if _is(f, types.BuiltinFunctionType)]

_C_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.ClassMethodDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
)

#: Tensor attributes for which a read is an operation.
PROPERTIES = frozenset(
    name for name in ("T", "mT", "H", "mH", "real", "imag", "data") if _kinds.property_kind(name) == "tensor"
)


def _torch_call(fn: Any) -> int:
    """Return when calls of this C function are torch calls: never, always, or only with a tensor argument."""
    if _is(fn, torch._ops.OpOverload):
        return _NOT_TORCH if fn.namespace == "profiler" else _TORCH
    if _is(fn, torch._ops.OpOverloadPacket):
        return _NOT_TORCH if fn._qualified_op_name.startswith("profiler::") else _TORCH
    if any(fn is f for f in _WITH_TENSOR):
        return _TORCH_WITH_TENSOR
    if not _is(fn, _C_FUNCTIONS):
        return _NOT_TORCH
    name = fn.__name__
    owner: Any = getattr(fn, "__objclass__", None) or getattr(fn, "__self__", None)
    of_tensor = owner is torch._C.TensorBase or issubclass(type(owner), torch.Tensor)
    module = getattr(fn, "__module__", None) or getattr(
        owner if issubclass(type(owner), type) else type(owner), "__module__", ""
    )
    if name in _LOOKS or not (of_tensor or str(module).split(".")[0] == "torch"):
        return _NOT_TORCH
    if name in _SPECIAL:
        return _TORCH
    kind = _kinds.method_kind(name) if of_tensor else _kinds._any_kind(name)
    return _TORCH if kind != "unknown" or _kinds._schemas(name.strip("_")) or _kinds._schemas(name) else _NOT_TORCH


def _callee(fn: Any) -> tuple[str, str, int]:
    """Return a callable's qualified name, and its file and line ("" and 0 for C code). Runs no user code."""
    for _ in range(20):
        if _is(fn, partial):
            fn = fn.func
        elif _is(fn, core.Callable):
            fn = fn.function
        elif _is(fn, types.FunctionType) and trace_rules.skip_reason(fn.__code__) == "godynamo's own file":
            inner = fn.__dict__.get("__wrapped__")  # a wrapper made by disable() or a similar function
            if inner is None:
                break
            fn = inner
        else:
            break
    function = fn.__func__ if _is(fn, types.MethodType) else fn
    if _is(fn, type) or not _is(
        function, (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType, types.MethodWrapperType)
    ):
        cls = fn if _is(fn, type) else type(fn)
        wanted = "__init__" if cls is fn else "forward" if issubclass(cls, torch.nn.Module) else "__call__"
        code = getattr(_static(cls, wanted), "__code__", None)
        return (f"{cls.__module__}.{cls.__qualname__}", *_lines(code))
    module = getattr(function, "__module__", None)
    name = str(getattr(function, "__qualname__", "?"))
    return (f"{module}.{name}" if _is(module, str) else name, *_lines(getattr(function, "__code__", None)))


def _static(cls: type, name: str) -> Any:
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


def _lines(code: Any) -> tuple[str, int]:
    return (code.co_filename, code.co_firstlineno) if _is(code, CodeType) else ("", 0)


class Census:
    """A context manager that counts what CPython runs on this thread in its block.

    If a trace or profile function is already set, nothing is counted and nothing is translated.
    """

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[CodeType, int]] = {}
        self._in_graph = {
            id(fn.__code__)
            for ref, kind in list(registry._kinds.values())
            if kind.startswith("op:") and _is(fn := ref(), types.FunctionType)
        }
        self.rows: list[Any] = []  #: the result of census_stop()
        self.complete = False  #: whether everything was counted

    def __enter__(self) -> Census:
        self._running = core.census_start(self._ask, torch.Tensor, PROPERTIES)
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            self.rows, self.complete = core.census_stop()

    def _ask(self, what: int, about: Any) -> Any:
        """Answer a query of the core."""
        return (self.kind, _torch_call, _callee)[what](about)

    def kind(self, code: CodeType) -> int:
        """Return how a code object counts: LIBRARY, USER or HIDDEN."""
        known = self._kinds.get(id(code))
        if known is None:
            known = self._kinds[id(code)] = code, self._kind(code)
        return known[1]

    def _kind(self, code: CodeType) -> int:
        if id(code) in self._in_graph:
            return LIBRARY  # a node of the graph (allow_in_graph): it counts where the user's code calls it
        if code.co_name == "<module>" or code.co_filename.startswith("<frozen importlib"):
            return HIDDEN  # an import is not part of the call
        path = os.path.realpath(code.co_filename)
        if path == os.path.join(trace_rules._torch_folder(), "_tensor_str.py"):
            return HIDDEN  # torch calls that only print a tensor
        return USER if _is_users(code, path) else LIBRARY


def _is_users(code: CodeType, path: str) -> bool:
    """Return whether code, possibly of a generator or class body, is not torch's, the standard library's or ours."""
    as_function = code.replace(co_flags=code.co_flags & ~trace_rules._NOT_FUNCTIONS | inspect.CO_NEWLOCALS)
    return not trace_rules.skip_reason(as_function) and not path.startswith(trace_rules._torch_folder())
