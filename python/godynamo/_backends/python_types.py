"""Converts annotations to TorchScript types and checks values against them (``optimize(python_ops="checked")``)."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
import typing
from collections.abc import Callable
from typing import Any

import torch

_PLAIN: dict[Any, str] = {
    torch.Tensor: "Tensor",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    bytes: "bytes",
    None: "NoneType",
    types.NoneType: "NoneType",
}
_GENERIC: dict[Any, str] = {list: "List", dict: "Dict", tuple: "Tuple"}

#: The type that an annotation requires: its text and, for a tuple of fixed length, the Specs of the items.
Spec = tuple[str, tuple[Any, ...]]


def spec_of(annotation: Any) -> Spec | None:
    """Return the Spec of an annotation; None if values are not checked (Any, object, a type unknown to TorchScript)."""
    if _hashable(annotation) and annotation in _PLAIN:
        return _PLAIN[annotation], ()
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [a for a in args if a is not types.NoneType]
        of = spec_of(inner[0]) if len(inner) == 1 else None
        return None if of is None else (f"Optional[{of[0]}]", ())
    word = _GENERIC.get(origin if origin is not None else annotation) if _hashable(annotation) else None
    if word is None:
        return None
    if not args:
        return (word, ()) if annotation is not tuple or origin is None else ("Tuple[]", ())
    parts = [spec_of(a) if a is not Ellipsis else ("...", ()) for a in args]
    shown = ", ".join("Any" if p is None else p[0] for p in parts)
    fixed = word == "Tuple" and args[-1] is not Ellipsis
    return f"{word}[{shown}]", tuple(parts) if fixed else ()


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def _plain_tensor(cls: type) -> bool:
    """Return whether a tensor class overrides nothing of torch.Tensor: its tensors can be captured as plain tensors."""
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return True
    added = {name for base in cls.__mro__[: cls.__mro__.index(torch.Tensor)] for name in vars(base)}
    return not {n for n in added if n in vars(torch.Tensor) or hasattr(torch.Tensor, n)} - _DESCRIBING


_DESCRIBING = {"__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__", "__qualname__"}

_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Any": lambda v: True,
    "Tensor": lambda v: isinstance(v, torch.Tensor) and _plain_tensor(type(v)),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, (float, int)) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
    "str": lambda v: isinstance(v, str),
    "bytes": lambda v: isinstance(v, bytes),
    "complex": lambda v: isinstance(v, (complex, float, int)),
    "NoneType": lambda v: v is None,
    "List": lambda v: isinstance(v, list),
    "Dict": lambda v: isinstance(v, dict),
    "Tuple": lambda v: isinstance(v, tuple),
}


def fits(value: Any, types: str) -> bool:
    """Return whether a value has the type with this text (see Spec)."""
    return _check(ast.parse(types, mode="eval").body, value)


def _check(spec: ast.expr, value: Any) -> bool:
    if isinstance(spec, ast.Name):
        return _CHECKS[spec.id](value)
    assert isinstance(spec, ast.Subscript)
    assert isinstance(spec.value, ast.Name)
    word = spec.value.id
    args = spec.slice.elts if isinstance(spec.slice, ast.Tuple) else [spec.slice]
    if word == "Optional":
        return value is None or _check(args[0], value)
    if not _CHECKS[word](value):
        return False
    if word == "List":
        return all(_check(args[0], v) for v in value)
    if word == "Dict":
        return all(_check(args[0], k) and _check(args[1], v) for k, v in value.items())
    if isinstance(args[-1], ast.Constant):  # Tuple[T, ...]
        return all(_check(args[0], v) for v in value)
    return len(args) == len(value) and all(map(_check, args, value))


def asked_of(code: types.CodeType, namespace: dict[str, Any]) -> dict[Any, Spec]:
    """Return the Specs of a function's annotations, under "return" and, for annotated assignments, (line, column).

    The annotations are read from the source, since CPython does not keep annotations of local variables. The result is
    empty if there is no source. Annotations that cannot be evaluated in the globals are ignored.
    """
    try:
        lines, first = inspect.getsourcelines(code)
        text = "".join(lines)
        indent = len(lines[0]) - len(lines[0].lstrip())
        tree = ast.parse(textwrap.dedent(text))
    except (OSError, TypeError, SyntaxError, IndexError):
        return {}
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return {}
    out: dict[Any, Spec] = {}

    def put(key: Any, annotation: ast.expr) -> None:
        try:
            value = eval(compile(ast.Expression(annotation), "<annotation>", "eval"), namespace)
            if isinstance(value, str):
                value = eval(value, namespace)
        except Exception:  # CPython does not evaluate annotations of local variables, so they may be invalid
            return
        spec = spec_of(value)
        if spec is not None:
            out[key] = spec

    if node.returns is not None:
        put("return", node.returns)
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner.value is not None:
            put((inner.target.lineno + first - 1, inner.target.col_offset + indent), inner.annotation)
        pending += ast.iter_child_nodes(inner)
    return out
