"""Reads from bytecode whether code of the program may change objects that it has not made.

Read are the code and that of the functions which it may call, also through operators of ``torch.library.custom_op``.
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import logging
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.library
from torch._library import custom_ops

#: how many functions are read at most. Beyond that, a class counts as unknown.
_MOST = 2000

#: methods of lists, dicts, sets, files and the like that change their object
_MUTATORS = frozenset(
    "__delattr__ __delitem__ __setattr__ __setitem__ add append appendleft clear difference_update discard extend "
    "extendleft insert intersection_update pop popitem popleft register remove reverse send setdefault sort "
    "symmetric_difference_update update write writelines".split()
)

#: methods of tensors that change more than their data
_OF_METADATA = frozenset(
    "as_strided_ detach_ rename_ requires_grad_ resize_ resize_as_ retain_grad register_hook set_ squeeze_ swapaxes_ "
    "swapdims_ swap_tensors t_ transpose_ unsqueeze_ backward share_memory_".split()
)

_DENIED = frozenset("__import__ breakpoint delattr eval exec globals input locals next open setattr vars".split())

#: modules of C functions that change none of their arguments
_PURE = frozenset("_functools _operator builtins itertools math".split())

#: modules whose Python functions change none of their arguments
_TRUSTED = frozenset("abc contextlib dataclasses enum inspect logging numbers typing warnings".split())

#: instructions that leave a new list, dict or set on the stack
_MAKERS = frozenset(
    "BUILD_LIST BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SET DICT_MERGE DICT_UPDATE LIST_EXTEND SET_UPDATE".split()
)

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type(...), logging.Logger))
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, types.MappingProxyType)
_SEQUENCES = (list, tuple, set, frozenset)

_METHODS_OF_BUILTINS = frozenset(
    name for t in (bool, bytes, complex, dict, float, frozenset, int, list, set, str, tuple, slice) for name in dir(t)
)
_OF_TORCH = frozenset(
    name
    for t in (torch.Tensor, torch.dtype, torch.device, torch.Generator, torch.autograd.function.FunctionCtx)
    for name in dir(t)
)


_NAMESPACES = (torch._ops._Ops, torch._ops._OpNamespace)
_NAMESPACES_OF_TORCH = ("aten", "prim", "prims", "quantized")
_OPERATORS = (*_NAMESPACES, torch._ops.OpOverloadPacket, torch._ops.OpOverload)


class _Refused(Exception):
    """Ends the search: the code may change an object that it has not made."""


def is_torchs(module: Any) -> bool:
    """Return whether this is the name of a module of torch."""
    return isinstance(module, str) and module.partition(".")[0] == "torch"


class _Search:
    """Follows the calls from one class's handlers."""

    def __init__(self) -> None:
        self._codes: set[types.CodeType] = set()
        self._seen: dict[int, Any] = {}  # by identity; the values keep the objects alive
        self._classes: list[type] = []
        self._names: set[str] = set()  # attributes that the code reads
        self._unresolved: set[str] = set()  # the methods among them
        self._waiting: list[Any] = []
        self._fillers: set[Any] = set()  # functions that fill their first argument, a new object

    def follow(self, start: list[Any]) -> None:
        """Visit the objects and all that they may call. Raise _Refused if some code may change other objects."""
        self._waiting += start
        while True:
            while self._waiting:
                self._visit(self._waiting.pop())
            members = [vars(c)[name] for c in self._classes for name in sorted(self._names) if name in vars(c)]
            self._waiting += [m for m in members if id(m) not in self._seen]
            if not self._waiting:
                break
        known = {name for c in self._classes for name in vars(c)}
        if unknown := self._unresolved - known - _METHODS_OF_BUILTINS - _OF_TORCH:
            raise _Refused(f"calls of {sorted(unknown)}")

    def _visit(self, value: Any) -> None:
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if len(self._seen) > _MOST:
            raise _Refused("too much code")
        kind = type(value)  # isinstance would read value.__class__, which may run code of the program
        if kind is custom_ops.CustomOpDef:
            self._operators(value._opoverload)
        elif issubclass(kind, _OPERATORS):
            self._operators(value)
        elif kind in _PLAIN or issubclass(kind, types.ModuleType):
            return
        elif kind is types.FunctionType:
            if not is_torchs(value.__module__) and value.__module__ not in _TRUSTED:
                self._read(value)
        elif kind in (types.MethodType, classmethod, staticmethod):
            self._waiting.append(value.__func__)
        elif kind is property:
            self._waiting.append(value.fget)
        elif kind is functools.partial:
            self._waiting += [value.func, *value.args, *value.keywords.values()]
        elif kind is types.BuiltinFunctionType:
            self._native(value)
        elif issubclass(kind, type):
            self._class(value)
        elif kind in _DICTS:
            self._waiting += [*value.keys(), *value.values()]
        elif kind in _SEQUENCES:
            self._waiting += value
        else:
            self._instance(value)

    def _operators(self, value: Any) -> None:
        """Visit the program's kernels of an operator, or of all operators of a namespace."""
        if isinstance(value, torch._ops._Ops):
            raise _Refused("torch.ops")
        if isinstance(value, torch._ops._OpNamespace):
            space, name = value.name, ""
        elif isinstance(value, torch._ops.OpOverload):
            space, name = value._schema.name.split("::")
        else:
            space, name = value._qualified_op_name.split("::")
        if space in _NAMESPACES_OF_TORCH:
            return
        known: set[str] = set()
        for qualified, definition in custom_ops.OPDEFS.items():
            if qualified == f"{space}::{name}" or (not name and qualified.startswith(f"{space}::")):
                self._operator(definition)
                known |= getattr(definition._lib, "_op_impls", set())
        for key in set(getattr(torch.library, "_impls", ())) - known:
            registered = key.split("/")  # "space/name.overload/dispatch key"
            if registered[0] == space and name in ("", registered[1].partition(".")[0]):
                raise _Refused(f"a kernel of {space}::{registered[1]}")

    def _operator(self, definition: custom_ops.CustomOpDef) -> None:
        d = definition
        self._fillers.add(d._setup_context_fn)
        self._waiting += [d._init_fn, d._setup_context_fn, d._backward_fn, *d._backend_fns.values()]
        if d._vmap_fn or d._torch_dispatch_fns:
            raise _Refused(f"{d!r} has rules for transforms or modes")

    def _native(self, function: Any) -> None:
        owner = function.__self__
        module = function.__module__ or (owner.__name__ if isinstance(owner, types.ModuleType) else None)
        if isinstance(owner, type) or module is None:
            module = getattr(owner, "__module__", None) or type(owner).__module__
        if function.__name__ in _DENIED or function.__name__ in _MUTATORS:
            raise _Refused(function.__name__)
        if module not in _PURE and not is_torchs(module):
            raise _Refused(f"{module}.{function.__name__}")

    def _class(self, cls: type) -> None:
        if is_torchs(cls.__module__) or cls.__module__ == "builtins":
            return
        for c in cls.__mro__:
            if is_torchs(c.__module__) or c.__module__ == "builtins":
                continue
            self._classes.append(c)
            self._waiting += [vars(c)[n] for n in ("__new__", "__init__", "__post_init__") if n in vars(c)]
        self._waiting += [getattr(cls, n) for n in ("__torch_function__", "__torch_dispatch__") if hasattr(cls, n)]

    def _instance(self, value: Any) -> None:
        cls = type(value)
        if issubclass(cls, (functools.cached_property, dict, *_SEQUENCES)):
            raise _Refused(f"a {cls.__name__}")
        if callable(value) and not is_torchs(cls.__module__):
            call = next(vars(c)["__call__"] for c in cls.__mro__ if "__call__" in vars(c))
            if not isinstance(call, types.FunctionType):
                if cls.__module__ != "builtins":  # a wrapper written in C, such as that of lru_cache
                    raise _Refused(f"a {cls.__name__}")
                return
            self._waiting.append(call)
        self._class(cls)

    def _read(self, function: types.FunctionType) -> None:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        made = function.__name__ in ("__init__", "__new__", "__post_init__") or function in self._fillers
        self._read_code(function.__code__, function, cells, made)

    def _read_code(self, code: types.CodeType, function: Any, cells: dict[str, Any], makes: bool) -> None:
        if code in self._codes:
            return
        self._codes.add(code)
        self._waiting += [v for v in (function.__defaults__ or ()) if callable(v)]
        steps = list(_steps(code))
        fresh = _fresh(code, steps)
        known = 0  # the steps before this one read attributes that are known
        for i, (op, name, method) in enumerate(steps):
            if op in ("STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_ATTR", "IMPORT_STAR", "STORE_NAME"):
                raise _Refused(f"{op} {name}")
            if op == "STORE_ATTR" and not (makes and i > 0 and steps[i - 1][:2] == _self_of(code)):
                raise _Refused(f"store into .{name}")
            if op in ("STORE_DEREF", "DELETE_DEREF") and name in code.co_freevars:
                raise _Refused(f"store into {name}")
            if op in ("STORE_SUBSCR", "DELETE_SUBSCR") and not (i > 1 and _is_fresh(steps[i - 2], fresh)):
                raise _Refused("store of an item")
            if op == "LOAD_GLOBAL":
                known = i + 1 + self._global(function, name, steps[i + 1 :])
            elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF") and name in cells:
                try:
                    self._waiting.append(cells[name].cell_contents)
                except ValueError:
                    raise _Refused("an empty cell") from None
            elif op == "IMPORT_NAME" and not is_torchs(name) and name not in _TRUSTED:
                raise _Refused(f"import of {name} in a function")
            elif op in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR") and i >= known:
                self._attribute(name, method, i > 0 and _is_fresh(steps[i - 1], fresh))
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self._read_code(inner, function, cells, False)

    def _attribute(self, name: str, method: bool, fresh: bool) -> None:
        if name in _OF_METADATA or (name in _MUTATORS and not fresh):
            raise _Refused(f".{name}")
        self._names.add(name)
        if method:
            self._unresolved.add(name)

    def _global(self, function: Any, name: str, rest: list[Any]) -> int:
        """Visit a global variable, or an attribute of a module. Return how many of the next steps only read that."""
        found = function.__globals__.get(name, vars(builtins).get(name, self))
        if found is self:
            raise _Refused(f"the unknown name {name}")
        if name in _DENIED and found is vars(builtins).get(name):
            raise _Refused(name)
        read = 0
        while read < len(rest) and rest[read][0] in ("LOAD_ATTR", "LOAD_METHOD"):
            attribute = rest[read][1]
            if isinstance(found, types.ModuleType) and not is_torchs(found.__name__):
                found = vars(found).get(attribute, self)
                if found is self:
                    raise _Refused(f"the unknown name {name}.{attribute}")
            elif (found is torch and attribute == "ops") or isinstance(found, _NAMESPACES):
                found = getattr(found, attribute)
            elif not _of_torch(found):
                break
            read += 1
        if isinstance(found, _OPERATORS) or not _of_torch(found):
            self._waiting.append(found)
        return read


def _of_torch(value: Any) -> bool:
    """Return whether a value is a module or a namespace of torch, or an operator."""
    if isinstance(value, types.ModuleType):
        return is_torchs(value.__name__)
    return type(value).__module__ == "torch._ops"


def _self_of(code: types.CodeType) -> tuple[str, str]:
    return "LOAD_FAST", code.co_varnames[0] if code.co_argcount else ""


def _steps(code: types.CodeType) -> Iterator[tuple[str, Any, bool]]:
    """Yield the instructions as (operation, name, whether it reads a method), pairs of instructions as two."""
    for inst in dis.get_instructions(code):
        op = inst.opname.replace("_BORROW", "").replace("_CHECK", "").replace("_AND_CLEAR", "")
        if op in ("CACHE", "PRECALL", "RESUME", "PUSH_NULL", "COPY_FREE_VARS", "NOP", "EXTENDED_ARG", "KW_NAMES"):
            continue
        if op in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"):
            first, second = inst.argval
            yield op[: op.index("_FAST") + 5], first, False
            yield op[op.index("_FAST") + 6 :], second, False
            continue
        method = op == "LOAD_METHOD" or (op in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and "NULL|self" in inst.argrepr)
        yield op, inst.argval, method


def _fresh(code: types.CodeType, steps: list[tuple[str, Any, bool]]) -> set[str]:
    """Return the local variables that are only ever assigned new lists, dicts and sets."""
    parameters = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    others = set(code.co_varnames[:parameters])
    found: set[str] = set()
    for i, (op, name, _) in enumerate(steps):
        if op == "STORE_FAST":
            (found if i > 0 and _makes(steps[:i]) else others).add(name)
    return found - others


def _makes(before: list[tuple[str, Any, bool]]) -> bool:
    op, count, _ = before[-1]
    if op in _MAKERS:
        return True
    if op != "CALL" or len(before) < 3:
        return False
    callee = before[-3] if count == 1 else before[-2]
    return count in (0, 1) and callee[0] == "LOAD_GLOBAL" and callee[1] in ("dict", "list", "set", "sorted")


def _is_fresh(step: tuple[str, Any, bool], fresh: set[str]) -> bool:
    return (step[0] == "LOAD_FAST" and step[1] in fresh) or step[0] in _MAKERS


def may_change(start: list[Any], fillers: Iterable[Any] = ()) -> str:
    """Return why the code of these objects may change objects that it has not made, or "" if it changes none.

    Data of tensors does not count. ``fillers`` are functions that run before, and fill a new object, their first
    argument.
    """
    search = _Search()
    search._fillers.update(fillers)
    try:
        search.follow([*start, *fillers])
    except Exception as e:  # _Refused, or code that is not as expected
        return str(e) or type(e).__name__
    return ""
