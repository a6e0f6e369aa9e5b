"""Reports how a function was captured: explain(), guards(), cache_stats(), cache_entries()."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

from .._called import runtime
from .._core import available, core
from .._user import modules as _modules
from . import guard_objects
from .captured import Summary
from .census import Census
from .explanation import BreakReason, Explanation, Failure, Node, Piece, Recompile, recompile
from .guard_objects import Guard, GuardText, GuardTree

P = ParamSpec("P")

__all__ = [
    "BreakReason",
    "Explanation",
    "Failure",
    "Guard",
    "GuardText",
    "GuardTree",
    "Node",
    "Piece",
    "Recompile",
    "cache_entries",
    "cache_stats",
    "explain",
    "guards",
]


def explain(fn: Callable[P, Any], /) -> Callable[P, Explanation]:
    """Return a callable that runs ``fn`` with new translations and returns an :class:`Explanation` of the call.

    >>> print(godynamo.explain(f)(torch.randn(3)))  # doctest: +SKIP
    Graph count: 1
    ...

    ``fn`` may be optimized already; its own translations do not change. If its backend takes whole graphs, such graphs
    are made, but the backend is not called. A graph break raises no error. The call is slower than a normal one, since
    every instruction that CPython runs is counted. Exceptions of ``fn`` propagate.
    """

    if not callable(fn):
        raise TypeError(f"explain() needs a function, method, module or callable object, not {fn!r}")

    def run(*args: P.args, **kwargs: P.kwargs) -> Explanation:
        explanation, error = explain_call(fn, args, kwargs)
        if error is not None:
            raise error
        return explanation

    return run


def explain_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Explanation, BaseException | None]:
    """Explain one call. If it raises, return the exception too, and an explanation up to it, without a result."""
    from .._user.optimize import optimize
    from . import records as _explain_records

    fresh = optimize(fn=fn, **asked(fn))
    records: list[dict[str, Any]] = []
    lists = runtime.recorders.lists
    lists.append(records)
    census = Census()
    result, error = None, None
    try:
        with census:
            result = fresh(*args, **kwargs)
    except BaseException as raised:
        error = raised
        frame = error.__traceback__
        error.__traceback__ = frame.tb_next if frame is not None else None  # without the frame of this function
    finally:
        # lists.remove() would compare by value, and the list of another explain() may be equal.
        del lists[next(i for i, r in enumerate(lists) if r is records)]
    summary = Summary(census, records)
    counts = summary.counts()
    entries = cache_entries(fresh) if records else []
    out = _explain_records.explanation(result, records, summary, counts, entries, _name(fn))
    if available and _optimized(fn):
        out.recompiles += [recompile(c.code, c.failures, before=True) for c in _caches(fn) if c.failures]
    return out, error


def _as_it_is(gm: Any, _example_inputs: list[Any]) -> Any:
    """Run the graph as captured. Used for any backend that takes whole graphs: all lead to the same graph breaks."""
    return gm.forward


def asked(fn: Any) -> dict[str, Any]:
    """Return the optimize() arguments of an optimized callable that affect what is captured."""
    options = getattr(getattr(fn, "root", None), "options", None)
    if options is None:
        return {"backend": "eager"}
    found = {"python_ops": options.python_ops, "cache_size_limit": options.cache_size_limit, "dynamic": options.dynamic}
    return {**found, "backend": "eager" if options.inline else _as_it_is}


def _name(fn: Any) -> str:
    """Return the name of the explained callable, for a heading."""
    function = getattr(fn, "__func__", fn)
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(fn).__qualname__


def _optimized(fn: Any) -> bool:
    return isinstance(fn, core.Callable) or (_modules.is_module(fn) and _modules.original(fn) is not fn)


def _caches(fn: Any) -> list[Any]:
    """Return the FrameCaches of an optimized callable, of its resume functions, and of frames that its hook served."""
    if not available:
        return []
    if _modules.is_module(fn) and _modules.original(fn) is not fn:
        fn = object.__getattribute__(fn, "_godynamo_call")
    if not isinstance(fn, core.Callable):
        raise TypeError(f"an optimized callable is needed, not {fn!r}")
    resumes = fn.root.resumes  # (globals, place) → resume callable, of all callables that share the Root
    return [fn.cache, *(w.cache for w in resumes.values()), *fn.root.inner]


def guards(fn: Any) -> list[GuardText]:
    """Return the guards of an optimized callable and its resume functions, by entry, most recently used first.

    A GuardText prints as executable Python, with the user's line after each condition. Its ``.guards`` are objects
    (:class:`Guard`: name, kind, source, words, line), and ``.tree()`` groups them by place:

    >>> print(godynamo.guards(f)[0].tree())  # doctest: +SKIP
    x
    └─ TENSOR_MATCH: type(x) is Tensor  # program.py:4

    Raises TypeError if ``fn`` is not optimized.
    """
    return [guard_objects.of_entry(e) for e in cache_entries(fn)]


def cache_entries(fn: Any) -> list[Any]:
    """Return the entries of an optimized callable and its resume functions, most recently used first.

    An entry is a ``_C.GuardedCode``. Its attributes are ``orig_code`` (the user's code object), ``code`` and
    ``function`` (the transformed ones), ``text``, ``parts`` and ``part_lines`` (its guards), ``hits``, ``valid``,
    ``check(*slots)``, ``failure(slots)`` and ``info``. ``info`` is a dict with ``ops``, ``graphs``, ``graph`` (text),
    ``guards``, ``breaks`` ((code, reason, hint, user stack), ...), ``inlined``, ``resumes``, ``python_ops``,
    ``reused_layers``, ``nothing_to_capture``, ``skipped`` and ``uncompiled`` (the inline backend runs the graph).

    Raises TypeError if ``fn`` is not optimized.
    """
    return [entry for cache in _caches(fn) for entry in cache.entries()]


def cache_stats(fn: Any) -> dict[str, int]:
    """Return the numbers of hits, misses and valid entries of an optimized callable and its resume functions."""
    total = {"hits": 0, "misses": 0, "translations": 0}
    for cache in _caches(fn):
        stats = cache.stats()
        total["hits"] += stats["hits"]
        total["misses"] += stats["misses"]
        total["translations"] += stats["entries"]
    return total
