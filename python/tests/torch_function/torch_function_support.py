"""What the tests of ``__torch_function__`` share: classes with handlers that log their calls, and the comparison with
eager.

``compare(fn, make)`` runs ``fn`` on fresh arguments under CPython, with the inline backend and with the recording no-op
backend, several times each: value or exception, types, and the log of handlers' calls must be the same. It gives back
what was captured.
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
    """A function as a log prints it: descriptors' methods with the attribute they are of."""
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
    """Another class with a handler, unrelated to Logged; takes plain tensors and its own alone."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Other", func.__name__))
        return super().__torch_function__(func, types, args, kwargs or {})


class Refuses(torch.Tensor):
    """Gives NotImplemented for everything."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Refuses", func.__name__))
        return NotImplemented


class Bare(torch.Tensor):
    """Has no handler of its own."""


class Duck:
    """No tensor; holds one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((cls.__name__, func.__name__, [t.__name__ for t in types]))
        return Duck(func(*[a.value if isinstance(a, Duck) else a for a in args], **(kwargs or {})))


class Answers:
    """No tensor; its handler gives the function's name and the types as plain data."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls.__name__, func.__name__, tuple(t.__name__ for t in types), len(args), sorted(kwargs or {})


def plain() -> torch.Tensor:
    """The values of all tensors here."""
    return torch.tensor([1.5, -2.0, 3.25])


def of(cls: Any) -> Any:
    """These as a tensor of a class."""
    return plain().as_subclass(cls)


@dataclasses.dataclass
class Captured:
    """What the run with the recording backend came to."""

    backend: RecordingBackend
    breaks: list[str]  # of both backends' runs

    def one_graph(self, *ops: str) -> None:
        """Asserts one graph without a break that has these operations."""
        assert not self.breaks, self.breaks
        assert len(self.backend) == 1
        found = self.backend.ops()
        assert all(op in found for op in ops), found


def outcome(fn: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, ...]:
    """(exception or value as plain data, arguments afterwards, log of the handlers)."""
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
