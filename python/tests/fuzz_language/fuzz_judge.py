"""Runs a program plainly and under godynamo, and says where the two part."""

from __future__ import annotations

import contextlib
import functools
import io
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import godynamo
from godynamo import _C

#: seconds that CPython may take for a program: what runs longer (an endless loop that shrinking made) is not judged
PLAIN_LIMIT = 2.0
#: calls of one program, each in two rounds: misses, then hits
CALLS = ((2.0, 1), (-1.0, 2), (0.5, 0))
ROUNDS = 2
FILENAME = "<program>"


@dataclass
class Mismatch:
    """The first thing that differs."""

    kind: str  #: "value", "exception", "output", "effects", "internal error", "crash", "hang"
    call: int
    expected: Any = None
    got: Any = None

    def __str__(self) -> str:
        return f"{self.kind} differs in call {self.call}\n  CPython:  {self.expected}\n  godynamo: {self.got}"


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


def _frames(error: BaseException, filename: str) -> list[tuple[str, int]]:
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


def _arguments(ns: dict[str, Any], call: int) -> tuple[Any, ...]:
    factor, n = CALLS[call]
    x, y = torch.tensor([1.0, -2.0]) * factor, torch.tensor([0.5, 3.0])
    if call == 2:
        y = x
    return x, y, n, [1, 2], {"k": 2}, ns["Child" if call == 1 else "Thing"](n, torch.ones(2))


def observe(ns: dict[str, Any], fn: Callable[..., Any], call: int, filename: str) -> dict[str, Any]:
    """What one call does: its end, the output, the arguments and globals afterwards."""
    args = _arguments(ns, call)
    out, plain = io.StringIO(), Plain()
    result: dict[str, Any] = {"value": None, "exception": None}
    with contextlib.redirect_stdout(out):
        try:
            result["value"] = plain(fn(*args))
        except Exception as error:
            result["exception"] = (plain.error(error, {}), _frames(error, filename))
    result["output"] = out.getvalue()
    result["effects"] = [plain(args), plain(ns["LOG"]), ns["COUNT"]]
    return result


@functools.lru_cache(maxsize=4)
def _compiled(text: str, line: int) -> Any:
    """Code of a part of a program that starts at this line."""
    return compile("\n" * (line - 1) + text, FILENAME, "exec")


def _codes(text: str) -> list[Any]:
    """The prelude's code, which all programs share, and the function's own."""
    at = text.index("\ndef fn(") + 1
    return [_compiled(text[:at], 1), _compiled(text[at:], 1 + text.count("\n", 0, at))]


def _run(codes: list[Any], wrap: Callable[[Any], Any]) -> list[dict[str, Any]]:
    ns: dict[str, Any] = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    fn = wrap(ns["fn"])
    torch.manual_seed(0)
    return [observe(ns, fn, call, FILENAME) for _ in range(ROUNDS) for call in range(len(CALLS))]


class TooLongError(BaseException):
    """CPython itself does not come to an end; no program catches it."""


@contextlib.contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """The first difference of a program's two runs; ``whole`` takes a backend that is given whole graphs.

    Raises SyntaxError for a text that is no program.
    """
    codes = _codes(text)
    try:
        with _limit(PLAIN_LIMIT):
            expected = _run(codes, lambda fn: fn)
    except TooLongError:
        return None
    errors: list[str] = []
    before = _C.set_callback("internal_error", lambda info: errors.append(f"{info['where']}: {info['error']}"))
    backend: Any = whole_graph if whole else "eager"
    try:
        got = _run(codes, godynamo.optimize(backend=backend))
    finally:
        _C.set_callback("internal_error", before)
    for call, (a, b) in enumerate(zip(expected, got, strict=True)):
        for kind in ("exception", "value", "output", "effects"):
            if a[kind] != b[kind]:
                return Mismatch(kind, call, a[kind], b[kind])
    return Mismatch("internal error", 0, None, errors[0]) if errors else None
