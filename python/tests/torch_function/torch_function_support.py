"""Shared by the tests of ``__torch_function__``: classes with handlers that log their calls, and the comparison with
eager.

``compare(fn, make)`` runs ``fn`` on fresh arguments under CPython, with the inline backend and with the recording no-op
backend, several times each: value or exception, types, and the log of handler calls must be equal. It returns
the captured graphs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

import godynamo
from godynamo import _C, utils
from harness.capture import RecordingBackend, break_reasons, describe, nb

#: calls of handlers, in order
LOG: list[Any] = []


def name_of(func: Any) -> str:
    """Return a function's name for the log; methods of a descriptor include the attribute's name."""
    of = getattr(func, "__self__", None)
    inner = f"{of.__name__}." if type(of).__name__ == "getset_descriptor" else ""
    return inner + str(func.__name__)


class Logged(torch.Tensor):
    """Logs (class, function, types, number of arguments, names of keywords), then does what torch.Tensor does."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((cls.__name__, name_of(func), [t.__name__ for t in types], len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


class Derived(Logged):
    """Extends a class with a handler."""


class Other(torch.Tensor):
    """Another class with a handler, unrelated to Logged; accepts only plain tensors and its own class."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Other", func.__name__))
        return super().__torch_function__(func, types, args, kwargs or {})


class Refuses(torch.Tensor):
    """Returns NotImplemented for everything."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Refuses", func.__name__))
        return NotImplemented


class Bare(torch.Tensor):
    """Has no handler of its own."""


class Duck:
    """Not a tensor, but holds one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((cls.__name__, func.__name__, [t.__name__ for t in types]))
        return Duck(func(*[a.value if isinstance(a, Duck) else a for a in args], **(kwargs or {})))


class Answers:
    """Not a tensor; its handler returns the function's name and the types as plain data."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls.__name__, func.__name__, tuple(t.__name__ for t in types), len(args), sorted(kwargs or {})


def plain() -> torch.Tensor:
    """Return a tensor with the values that all tests here use."""
    return torch.tensor([1.5, -2.0, 3.25])


def of(cls: Any) -> Any:
    """Return this tensor as an instance of a class."""
    return plain().as_subclass(cls)


@dataclasses.dataclass
class Captured:
    """The result of the run with the recording backend."""

    backend: RecordingBackend
    breaks: list[str]  # of both backends' runs

    def one_graph(self, *ops: str) -> None:
        """Check for one graph without a break that contains these operations."""
        assert not self.breaks, self.breaks
        assert len(self.backend) == 1
        found = self.backend.ops()
        assert all(op in found for op in ops), found


def outcome(fn: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """Return (exception or value as plain data, arguments afterwards, log of the handlers)."""
    LOG.clear()
    raised = value = None
    try:
        value = fn(*args)
    except Exception as error:
        raised = (type(error).__name__, str(error))
    log = list(LOG)
    with torch._C.DisableTorchFunction():
        return raised, describe([list(args), value]), log


def compare(fn: Callable[..., Any], make: Callable[[], Sequence[Any]], calls: int = 3) -> Captured:
    """Compare eager, the inline backend and a whole graph on fresh arguments, ``calls`` times each."""
    backend = nb()
    breaks: list[str] = []
    for chosen in ("eager", backend):
        godynamo.reset()
        utils.counters.clear()
        compiled = godynamo.optimize(fn, backend=chosen)
        for call in range(calls):
            expected = outcome(fn, make())
            actual = outcome(compiled, make())
            assert actual == expected, f"{chosen}, call {call}"
        assert _C.counters()["internal_errors"] == 0
        breaks += break_reasons()
    return Captured(backend, breaks)


__all__ = [
    "LOG",
    "Answers",
    "Bare",
    "Captured",
    "Derived",
    "Duck",
    "Logged",
    "Other",
    "Refuses",
    "compare",
    "name_of",
    "of",
    "outcome",
    "plain",
]
