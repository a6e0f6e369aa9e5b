"""What both kinds of random programs share: a run plainly and one under godynamo, compared call by call."""

from __future__ import annotations

import contextlib
import functools
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import godynamo
from godynamo import _C

#: seconds that CPython may take for a program: what runs longer (an endless loop that shrinking made) is not judged
PLAIN_LIMIT = 2.0
FILENAME = "<program>"
#: what a run of a program gives for each call: a part's name → plain data that == compares
Observed = list[dict[str, Any]]
#: called before (True) and after (False) each plain run: a process that dies in between is not godynamo's fault
on_plain_run: Callable[[bool], object] = bool


@dataclass
class Mismatch:
    """The first thing that differs."""

    kind: str  #: "value", "exception", "output", "effects", "internal error", "crash", "hang"
    call: int
    expected: Any = None
    got: Any = None

    def __str__(self) -> str:
        return f"{self.kind} differs in call {self.call}\n  CPython:  {self.expected}\n  godynamo: {self.got}"


_ADDRESS = re.compile(r"0x[0-9a-f]+")


def text_of(text: str) -> str:
    """A text without addresses."""
    return _ADDRESS.sub("0x", str.__str__(text))


def whole_graph(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend that is given graphs instead of writing them inline."""
    gm.graph.lint()
    return gm.forward


class Plain:
    """Values as data that == compares whole; an object met again is its number, so that aliases are compared."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # ids must not be used again

    def __call__(self, value: Any) -> Any:
        if isinstance(value, (int, float, str, bytes, complex, type(None), type, range)):
            return (type(value).__name__, repr(value))
        if id(value) in self._seen:
            return ("again", self._seen[id(value)])
        if not isinstance(value, (tuple, frozenset)):
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        return self._content(value)

    def _content(self, value: Any) -> Any:
        name = type(value).__name__
        if isinstance(value, torch.Tensor):
            return (name, repr(value.detach().tolist()), str(value.dtype), value.requires_grad)
        if isinstance(value, (list, tuple)):
            return (name, [self(v) for v in value])
        if isinstance(value, dict):
            return (name, [(self(k), self(v)) for k, v in value.items()])
        if isinstance(value, (set, frozenset)):
            return (name, sorted(repr(self(v)) for v in value))
        if isinstance(value, BaseException):
            return self.error(value, {})
        return (name, self(vars(value)) if hasattr(value, "__dict__") else None)

    def error(self, error: BaseException | None, seen: dict[int, int]) -> Any:
        """Type, text, arguments, and the same of its cause and context."""
        if error is None:
            return None
        if id(error) in seen:
            return ("again", seen[id(error)])
        seen[id(error)] = len(seen)
        chain = (self.error(error.__cause__, seen), self.error(error.__context__, seen), error.__suppress_context__)
        return (type(error).__name__, str(error), self(error.args), chain)


def frames_in(error: BaseException, filename: str) -> list[tuple[str, int]]:
    out, tb = [], error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            out.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    if isinstance(error, UnboundLocalError) and out:
        # CPython's own line depends on how often the code ran: a quickened STORE_FAST__LOAD_FAST that finds nothing has the line
        # of its first half (3.11).
        out[-1] = (out[-1][0], 0)
    return out


@functools.lru_cache(maxsize=4)
def _compiled(text: str, line: int) -> Any:
    """Code of a part of a program that starts at this line."""
    return compile("\n" * (line - 1) + text, FILENAME, "exec")


def codes_of(text: str) -> list[Any]:
    """The prelude's code, which all programs share, and the function's own."""
    at = text.index("\ndef fn(") + 1
    return [_compiled(text[:at], 1), _compiled(text[at:], 1 + text.count("\n", 0, at))]


class TooLongError(BaseException):
    """CPython itself does not come to an end; no program catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again: CPython drops what a finalizer raises
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def narrowed(a: Any, b: Any) -> tuple[Any, Any]:
    """Where two values part: into what is alike outside of the one place that differs."""
    while isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        different = [(x, y) for x, y in zip(a, b) if x != y]
        if len(different) != 1 or len(repr(a)) < 100:
            break
        a, b = different[0]
    return a, b


def compare(
    text: str, run: Callable[[list[Any], Callable[[Any], Any]], Observed], whole: bool = False
) -> Mismatch | None:
    """The first difference of a program's two runs; ``run`` makes one of its codes and of what wraps the function.

    ``whole`` takes a backend that is given whole graphs. Raises SyntaxError for a text that is no program.
    """
    codes = codes_of(text)
    on_plain_run(True)
    try:
        with limited(PLAIN_LIMIT):
            expected = run(codes, lambda fn: fn)
    except TooLongError:
        return None
    finally:
        on_plain_run(False)
    errors: list[str] = []
    before = _C.set_callback("internal_error", lambda info: errors.append(f"{info['where']}: {info['error']}"))
    backend: Any = whole_graph if whole else "eager"
    try:
        got = run(codes, godynamo.optimize(backend=backend))
    finally:
        _C.set_callback("internal_error", before)
    for call, (a, b) in enumerate(zip(expected, got, strict=True)):
        for kind in a:
            if a[kind] != b[kind]:
                return Mismatch(kind, call, *narrowed(a[kind], b[kind]))
    return Mismatch("internal error", 0, None, errors[0]) if errors else None
