"""Computes typing.get_type_hints and inspect.signature of the user's classes and functions during translation."""

from __future__ import annotations

import ast
import dis
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

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
        return all(isinstance(node, _HARMLESS) for node in ast.walk(ast.parse(annotation, mode="eval")))
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
