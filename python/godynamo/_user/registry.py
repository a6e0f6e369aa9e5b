"""The registry of callables that users have disabled, allowed in graphs, replaced, ... for the translator."""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from .callable_kinds import OWN, CallableKind, Classified, classified

# id of a callable -> (reference to it, kind). A look-up by id runs no __hash__ or __eq__ of the user. An object that
# has no weak references (builtins of some C types) is held strongly, so that its id is not reused.
_kinds: dict[int, tuple[Callable[[], Any], Classified]] = {}
_substitutes: dict[int, tuple[Any, bool]] = {}


def register(obj: Any, kind: CallableKind) -> None:
    """Register a callable's kind."""
    mark(obj, classified(kind))


def mark(obj: Any, word: Classified) -> None:
    """Register a callable's kind and detail."""
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
    _kinds[key] = (ref, word)


def unregister(obj: Any) -> None:
    """Remove a registration."""
    if kind_of(obj):
        _kinds.pop(id(obj), None)
        _substitutes.pop(id(obj), None)


def kind_of(obj: Any) -> Classified:
    """Return the kind that our functions or torch.compiler's functions have registered for an object; otherwise OWN."""
    row = _kinds.get(id(obj))
    if row is not None and row[0]() is obj:
        return row[1]
    return _torch_mark(obj) if type(obj) is types.FunctionType else OWN


def _torch_mark(fn: types.FunctionType) -> Classified:
    """Return the kind set by torch.compiler's disable, allow_in_graph, disallow_in_graph or assume_constant_result."""
    if _disables(fn) and _of_optimizer(fn) is not None:
        return classified("substitute")
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None:  # torch._dynamo is not imported, so it has marked nothing
        return OWN
    if fn.__code__.co_name == "compile_wrapper" and fn.__globals__.get("__name__") == _COMPILING:
        return classified("wraps", "compile")
    if fn.__module__ == _TAGGING and _tagged(fn) is not None:
        return classified("substitute")
    if fn.__module__ == "torch._dynamo.decorators" and fn.__name__ in ("graph_break", "skip_frame"):
        return classified("graph_break" if fn.__name__ == "graph_break" else "skip_frame")
    if fn.__dict__.get("_torchdynamo_disable"):
        if _of_optimizer(fn) is not None:
            return classified("substitute")
        return classified("disabled", str(fn.__dict__.get("_torchdynamo_disable_msg") or ""))
    if fn.__dict__.get("_dynamo_marked_constant") and not fn.__module__.startswith("torch"):
        return classified("fold")
    marks: tuple[tuple[str, CallableKind], ...] = (
        ("_allowed_callable_ids", "allowed"),
        ("_disallowed_callable_ids", "opaque"),
    )
    for table, kind in marks:
        ids = getattr(getattr(rules, table, None), "function_ids", None)
        if ids and id(fn) in ids:
            return classified(kind)
    return OWN


# torch.compile replaces nn.Module.__init__ and __setstate__ for the rest of the process, by functions that record new
# modules. We treat these functions as the originals: otherwise, after any use of torch.compile, making a module would
# break the graph.
_TAGGING = "torch._dynamo.mutation_guard"
#: the module whose function makes the functions that torch.compile returns
_COMPILING = "torch._dynamo.eval_frame"


def _tagged(fn: types.FunctionType) -> Any:
    """Return the original method of nn.Module for torch.compile's replacement of it; None for other functions."""
    name = {"patched_init": "init", "patched_setstate": "setstate"}.get(fn.__name__)
    if name is None or name not in fn.__code__.co_freevars or fn.__closure__ is None:
        return None
    return fn.__closure__[fn.__code__.co_freevars.index(name)].cell_contents


def _disables(fn: types.FunctionType) -> bool:
    """Return whether a function, such as ``Optimizer.zero_grad``, disables itself for torch.compile when it is called.

    The first such call imports torch._dynamo.
    """
    return fn.__code__.co_name == "inner" and fn.__globals__.get("__name__") == "torch._compile"


def _of_optimizer(fn: types.FunctionType) -> Any:
    """Return the function of torch.optim that torch.compile has disabled, or will; None for other functions.

    It disables parts of all optimizers (``_init_group``, fused implementations) when it is imported, and ``step`` of
    some, which torch's decorators may have wrapped before.
    """
    original = fn.__dict__.get("__wrapped__" if _disables(fn) else "_torchdynamo_orig_callable")
    inner, seen = original, set[int]()  # a program may have wrapped a function in itself
    while type(inner) is types.FunctionType and id(inner) not in seen:
        seen.add(id(inner))
        module = inner.__globals__.get("__name__")
        if type(module) is str and module.startswith("torch.optim."):
            return original
        inner = inner.__dict__.get("__wrapped__")
    return None


def substitute(obj: Any, replacement: Any, fold: bool = False) -> None:
    """Register ``replacement`` for calls of ``obj``; fold: ``obj`` itself may be called if all arguments are known."""
    register(obj, "substitute")
    _substitutes[id(obj)] = (replacement, fold)


def substitute_of(obj: Any) -> tuple[Any, bool] | None:
    """Return (replacement, fold) registered for ``obj``, or None."""
    if kind_of(obj) != "substitute":
        return None
    known = _substitutes.get(id(obj))
    return known if known is not None else (_tagged(obj) or _of_optimizer(obj), False)
