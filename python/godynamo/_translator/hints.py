"""Computes typing.get_type_hints and inspect.signature of the user's classes and functions during translation."""

from __future__ import annotations

import ast
import dis
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from .evaluated import compiled

_HARMLESS = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.BitOr,
    ast.Load,
    ast.Index,
    ast.UnaryOp,
    ast.USub,
)


def _calls(owner: Any) -> bool:
    """Return whether computing the annotations (PEP 649, since Python 3.14) makes a call."""
    code = getattr(getattr(owner, "__annotate__", None), "__code__", None)
    return code is not None and any(step.opname.startswith("CALL") for step in dis.get_instructions(code))


def _owners(obj: Any) -> tuple[Any, ...]:
    return obj.__mro__ if isinstance(obj, type) else (obj,)


def _annotations(obj: Any) -> Iterator[Any]:
    for owner in _owners(obj):
        written = vars(owner).get("__annotations__") or getattr(owner, "__annotations__", None)
        if isinstance(written, dict):  # in ``type`` itself, __annotations__ is a descriptor
            yield from written.values()


def _harmless(annotation: Any) -> bool:
    """Return whether evaluating an annotation only looks up names."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return True
    try:
        return all(isinstance(node, _HARMLESS) for node in ast.walk(compiled(annotation, ast.PyCF_ONLY_AST)))
    except SyntaxError:
        return False


def hints(obj: Any) -> tuple[dict[str, Any], Callable[[Any], bool]] | None:
    """Return (type hints of a class or function, the guard predicate for them); None if CPython must compute them."""
    if not isinstance(obj, (type, types.FunctionType)) or (isinstance(obj, type) and type(obj) is not type):
        return None
    if any(map(_calls, _owners(obj))):
        return None
    try:
        if not all(map(_harmless, _annotations(obj))):  # since 3.14, reading annotations looks up their names
            return None
        found = typing.get_type_hints(obj)
    except Exception:
        return None
    return found, lambda other: typing.get_type_hints(other) == found


def signature(fn: types.FunctionType, bound: bool) -> inspect.Signature:
    """Return the signature of a function, or of a method bound to it. Raises the exceptions of inspect.signature."""
    return inspect.signature(types.MethodType(fn, object()) if bound else fn)


#: what inspect.signature reads of a function before its code
_OVERRIDES = ("__signature__", "__text_signature__")
_PLAIN = (type(None), bool, int, float, str, bytes, type)


def guarded_signature(obj: Any) -> tuple[inspect.Signature, Callable[[Any], bool]] | None:
    """Return (the signature of a class or a function, a guard predicate that it is the same).

    Returns None if inspect.signature may run code of the program, raises, or finds defaults that are not plain.
    """
    if not (_reads_class(obj) if isinstance(obj, type) else _reads_function(obj)):
        return None
    try:
        found = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    parts = _parts(found)
    if not all(p.default is p.empty or type(p.default) in _PLAIN for p in found.parameters.values()):
        return None

    def holds(other: Any) -> bool:
        try:
            if not (_reads_class(other) if isinstance(other, type) else _reads_function(other)):
                return False
            now = _parts(inspect.signature(other))
        except Exception:
            return False
        return len(now) == len(parts) and all(
            a is b or (type(a) is str and a == b) for a, b in zip(now, parts, strict=True)
        )

    return found, holds


def _parts(found: inspect.Signature) -> list[Any]:
    parts: list[Any] = [found.return_annotation]
    for p in found.parameters.values():
        parts += [p.name, p.kind, p.default, p.annotation]
    return parts


def _reads_class(cls: type) -> bool:
    """Report whether the signature of a class is that of a plain function."""
    if type(cls) is not type:
        return False
    spaces = [vars(base) for base in cls.__mro__]
    if any("__signature__" in space for space in spaces):
        return False
    for name in ("__new__", "__init__"):
        found = next(space[name] for space in spaces if name in space)
        found = found.__func__ if type(found) is staticmethod else found
        if type(found) is types.FunctionType and not _reads_function(found):
            return False
        if type(found) not in (types.FunctionType, types.BuiltinFunctionType, types.WrapperDescriptorType):
            return False
    return True


def _reads_function(fn: Any) -> bool:
    """Report whether a signature is that of fn's code or of the function that fn wraps, without code of the program."""
    for _ in range(10):
        if type(fn) is not types.FunctionType or any(name in fn.__dict__ for name in _OVERRIDES):
            return False
        if "__wrapped__" not in fn.__dict__:
            return True
        fn = fn.__dict__["__wrapped__"]
    return False
