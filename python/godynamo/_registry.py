"""What users have said about callables: disabled, allowed in graphs, replaced, ... The translator asks kind_of()."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

# Keyed by address: looking up must not run a user's __hash__ or __eq__. What takes no weak reference (a builtin of
# some C types) is held, so that its address stays its own.
_kinds: dict[int, tuple[Callable[[], Any], str]] = {}
_substitutes: dict[int, tuple[Any, bool]] = {}


def register(obj: Any, kind: str) -> None:
    """Say what a callable is; kind is a word of _callables.classify."""
    key = id(obj)

    def drop(ref: weakref.ref[Any]) -> None:
        row = _kinds.get(key)
        if row is not None and row[0] is ref:
            del _kinds[key]
            _substitutes.pop(key, None)

    try:
        ref: Callable[[], Any] = weakref.ref(obj, drop)
    except TypeError:
        ref = lambda: obj  # noqa: E731
    _kinds[key] = (ref, kind)


def unregister(obj: Any) -> None:
    """Take back what was said."""
    if kind_of(obj):
        del _kinds[id(obj)]
        _substitutes.pop(id(obj), None)


def kind_of(obj: Any) -> str:
    """The word registered for this very object, here or by torch.compiler's functions of the same names, or ""."""
    row = _kinds.get(id(obj))
    if row is not None and row[0]() is obj:
        return row[1]
    return _torch_mark(obj) if type(obj) is types.FunctionType else ""


def _torch_mark(fn: types.FunctionType) -> str:
    """What torch.compiler.disable, allow_in_graph, disallow_in_graph and assume_constant_result have said about a function."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None:  # nothing has been said to torch
        return ""
    if fn.__module__ == "torch._dynamo.decorators" and fn.__name__ in ("graph_break", "skip_frame"):
        return fn.__name__
    if fn.__dict__.get("_torchdynamo_disable"):
        reason = fn.__dict__.get("_torchdynamo_disable_msg")
        return f"disabled:{reason}" if reason else "disabled"
    if fn.__dict__.get("_dynamo_marked_constant") and not fn.__module__.startswith("torch"):
        return "fold"
    for table, word in (("_allowed_callable_ids", "op:any"), ("_disallowed_callable_ids", "opaque")):
        ids = getattr(getattr(rules, table, None), "function_ids", None)
        if ids and id(fn) in ids:
            return word
    return ""


def substitute(obj: Any, replacement: Any, fold: bool = False) -> None:
    """Have calls of ``obj`` captured as calls of ``replacement``; fold: ``obj`` itself where all arguments are known."""
    register(obj, "substitute")
    _substitutes[id(obj)] = (replacement, fold)


def substitute_of(obj: Any) -> tuple[Any, bool] | None:
    """(replacement, fold) registered for ``obj``, or None."""
    return _substitutes.get(id(obj)) if kind_of(obj) == "substitute" else None
