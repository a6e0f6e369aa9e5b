"""Tables of small functions, one per family of values, compared under CPython and under godynamo.

``cases = Cases()``; ``@cases`` (or ``@cases(args=..., breaks=...)``) adds a function, ``check(case)`` runs it. A
function receives a tensor and the result of ``args``; its result, its exception (type and text), changes of the
arguments, aliasing and printed output must equal CPython's. ``graphs`` and ``breaks`` are the expected numbers of
graphs and breaks: one and none by default. ``breaks=None`` means any number of graphs, and at least one break.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import traceback
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import godynamo
from godynamo import _C, utils
from godynamo.testing import CompileCounter

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


@dataclasses.dataclass(frozen=True)
class Case:
    """A function of the table and the expected result of its translation."""

    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    graphs: int
    breaks: int | tuple[int, int] | None  # with inlined operations, and with whole graphs
    calls: int

    @property
    def name(self) -> str:
        return self.fn.__name__


def _no_arguments() -> tuple[Any, ...]:
    return ()


class Cases:
    """A table of cases; iterable."""

    def __init__(self) -> None:
        self.all: list[Case] = []

    def __call__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        args: Callable[[], tuple[Any, ...]] = _no_arguments,
        graphs: int = 1,
        breaks: int | tuple[int, int] | None = 0,
        calls: int = 2,
    ) -> Any:
        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.all.append(Case(fn, args, graphs, breaks, calls))
            return fn

        return add if fn is None else add(fn)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.all)

    def names(self) -> list[str]:
        """Return ids for pytest."""
        return [case.name for case in self.all]


def check(case: Case) -> None:
    """Run a case under CPython, with operations inlined, and with a backend that takes whole graphs."""
    for backend in ("eager", CompileCounter()):
        godynamo.reset()
        utils.counters.clear()
        compiled = godynamo.optimize(case.fn, backend=backend)
        for call in range(case.calls):
            expected = outcome(case.fn, (torch.arange(4.0), *case.args()))
            actual = outcome(compiled, (torch.arange(4.0), *case.args()))
            assert actual == expected, f"{backend}, call {call}: {reasons()}"
        assert _C.counters()["internal_errors"] == 0
        if case.breaks is None:
            assert reasons()
            continue
        breaks = case.breaks if isinstance(case.breaks, int) else case.breaks[backend != "eager"]
        assert len(reasons()) == breaks, reasons()
        assert not isinstance(backend, CompileCounter) or backend.frame_count == case.graphs, (
            f"{backend.frame_count} graphs"
        )


def check_calls(
    make: Callable[[], Callable[..., Any]],
    calls: Sequence[Callable[[], tuple[Any, ...]]],
    *,
    graphs: int,
    translations: Sequence[int] | None = None,
    state: Callable[[], Any] = lambda: None,
    prepare: Callable[[], Any] = lambda: None,
) -> None:
    """Compare successive calls, each with separate arguments, of a function that ``make`` creates for each side.

    ``graphs``: graphs that a whole-graph backend receives in all calls; ``translations``: those that each call starts;
    ``state`` returns more plain data to compare after each call; ``prepare`` runs before each side's first call.
    """
    prepare()
    fn = make()
    expected = [(outcome(fn, args()), state()) for args in calls]
    for backend in ("eager", CompileCounter()):
        godynamo.reset()
        utils.counters.clear()
        prepare()
        compiled = godynamo.optimize(make(), backend=backend)
        started = []
        for call, args in enumerate(calls):
            before = _C.counters()["translations"]
            actual = (outcome(compiled, args()), state())
            started.append(_C.counters()["translations"] - before)
            assert actual == expected[call], f"{backend}, call {call}: {reasons()}"
        assert _C.counters()["internal_errors"] == 0
        assert translations is None or started == list(translations), (started, reasons())
        assert not isinstance(backend, CompileCounter) or backend.frame_count == graphs, (
            f"{backend.frame_count} graphs: {reasons()}"
        )


def reasons() -> list[str]:
    """Return the reasons of the breaks so far."""
    return [reason for reason, count in utils.counters["graph_break"].items() for _ in range(count)]


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Return the outcome of a call as plain data: result or exception, arguments afterwards, aliasing, printed text."""
    out = io.StringIO()
    value: Any = None
    with contextlib.redirect_stdout(out):
        try:
            value = fn(*args)
            how: Any = "returned"
        except Exception as error:
            how = _told(error)
    seen = _Seen()
    return {"how": how, "arguments": seen.tell(list(args)), "value": seen.tell(value), "stdout": out.getvalue()}


def _told(error: BaseException | None, depth: int = 0) -> Any:
    """Describe an exception with its traceback (the user's frames), cause and context."""
    if error is None or depth > 8:
        return None
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    return (
        type(error).__qualname__,
        str(error),
        frames,
        error.__suppress_context__,
        _told(error.__cause__, depth + 1),
        _told(error.__context__, depth + 1),
    )


class _Seen:
    """Describes values as plain data; an object that occurred before is its number, so that aliasing shows."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.keep: list[Any] = []  # so that no address is reused

    def tell(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return (type(value).__name__, repr(value))
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)):
            return ("global", getattr(value, "__qualname__", None) or value.__name__)
        if id(value) in self.numbers:
            return ("again", self.numbers[id(value)])
        self.numbers[id(value)] = len(self.numbers)
        self.keep.append(value)
        return (type(value).__qualname__, self._inside(value), self._state(value))

    def _inside(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return (value.tolist(), str(value.dtype), tuple(value.shape), value.requires_grad)
        if isinstance(value, (list, tuple)):
            return [self.tell(v) for v in (list if isinstance(value, list) else tuple).__iter__(value)]
        if isinstance(value, deque):
            return (value.maxlen, [self.tell(v) for v in value])
        if isinstance(value, dict):
            default = getattr(value, "default_factory", None) if isinstance(value, defaultdict) else None
            return (
                self.tell(default),
                [(self.tell(k), self.tell(dict.__getitem__(value, k))) for k in dict.__iter__(value)],
            )
        if isinstance(value, (set, frozenset)):
            items = [self.tell(v) for v in value]  # in CPython's order, if it depends only on the values
            return items if all(type(v) in _PLAIN for v in value) else sorted(map(repr, items))
        if isinstance(value, _PLAIN):  # an instance of a subclass
            return next(base.__repr__(value) for base in _PLAIN if isinstance(value, base))
        if isinstance(value, types.MethodType):
            return (value.__func__.__qualname__, self.tell(value.__self__))
        if isinstance(value, BaseException):
            return [self.tell(v) for v in value.args]
        if isinstance(value, (type({}.keys()), type({}.values()), type({}.items()))):
            return [self.tell(v) for v in value]
        if isinstance(value, Iterator):
            return [self.tell(v) for v in value]
        if not hasattr(value, "__dict__") and not hasattr(type(value), "__slots__"):
            return repr(value)
        return None

    def _state(self, value: Any) -> Any:
        if isinstance(value, (torch.Tensor, types.MethodType)):
            return None
        state = [(k, self.tell(v)) for k, v in getattr(value, "__dict__", {}).items()]
        slots = [n for c in type(value).__mro__ for n in _slots(c) if n not in ("__dict__", "__weakref__")]
        return state, [(n, self.tell(getattr(value, n))) for n in slots if hasattr(value, n)]


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(f"_{cls.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names)


__all__ = ["Case", "Cases", "check", "check_calls", "outcome", "reasons"]
