"""Shared by the fuzzers: runs a program under CPython and under godynamo, and compares it call by call."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import godynamo
from godynamo import _C
from harness.device import lost

_C._epilogues_wait(0)  # programs run a few times; kernels are to be among what is compared

#: seconds that CPython may take for a program; one that runs longer (shrunk to an endless loop) is not judged
PLAIN_LIMIT = 2.0
FILENAME = "<program>"
#: the observations of a run, per call: a part's name → plain data that == compares
Observed = list[dict[str, Any]]
#: called before (True) and after (False) each plain run: if the process dies in between, godynamo is not the cause
on_plain_run: Callable[[bool], object] = bool


@dataclass
class Mismatch:
    """The first difference."""

    kind: str  #: "value", "exception", "output", "effects", "deaths", "internal error", "crash", "hang"
    call: int
    expected: Any = None
    got: Any = None

    def __str__(self) -> str:
        return f"{self.kind} differs in call {self.call}\n  CPython:  {self.expected}\n  godynamo: {self.got}"


_ADDRESS = re.compile(r"0x[0-9a-f]+")


def text_of(text: str) -> str:
    """Return a text without addresses."""
    return _ADDRESS.sub("0x", str.__str__(text))


def whole_graph(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend that receives whole graphs, instead of having them written inline."""
    gm.graph.lint()
    return gm.forward


class Plain:
    """Values as data that == compares; an object that occurred before is its number, so that aliases are compared."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is reused

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
        """Return type, text and arguments, and the same for cause and context."""
        if error is None:
            return None
        if id(error) in seen:
            return ("again", seen[id(error)])
        seen[id(error)] = len(seen)
        chain = (self.error(error.__cause__, seen), self.error(error.__context__, seen), error.__suppress_context__)
        return (type(error).__name__, text_of(str(error)), self(error.args), chain)


def frames_in(error: BaseException, filename: str) -> list[tuple[str, int]]:
    out, tb = [], error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            out.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    if isinstance(error, UnboundLocalError) and out:
        # CPython's own line depends on how often the code has run: a quickened STORE_FAST__LOAD_FAST whose variable is
        # unbound has the line of its first half (3.11).
        out[-1] = (out[-1][0], 0)
    return out


@functools.lru_cache(maxsize=4)
def _compiled(text: str, line: int) -> Any:
    """Compile a part of a program; ``line`` is the number of its first line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of 3.14, about `return` in `finally`
        return compile("\n" * (line - 1) + text, FILENAME, "exec")


def codes_of(text: str) -> list[Any]:
    """Return the prelude's code, which all programs share, and the function's."""
    at = text.index("\ndef fn(") + 1
    return [_compiled(text[:at], 1), _compiled(text[at:], 1 + text.count("\n", 0, at))]


class TooLongError(BaseException):
    """Raised if CPython itself does not finish in time; no program catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated: CPython drops an exception raised in a finalizer
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def narrowed(a: Any, b: Any) -> tuple[Any, Any]:
    """Narrow two values down to the one place where they differ."""
    while isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        different = [(x, y) for x, y in zip(a, b) if x != y]
        if len(different) != 1 or len(repr(a)) < 100:
            break
        a, b = different[0]
    return a, b


def compare(
    text: str,
    run: Callable[[list[Any], Callable[[Any], Any]], Observed],
    whole: bool = False,
    **options: Any,
) -> Mismatch | None:
    """Return the first difference between a program's two runs.

    ``run`` takes the codes and the wrapper of the function. ``whole`` selects a backend that receives whole graphs;
    ``options`` are optimize()'s.
    Raises SyntaxError if the text is no program.
    """
    codes = codes_of(text)
    on_plain_run(True)
    try:
        with limited(PLAIN_LIMIT):
            expected = run(codes, lambda fn: fn)
    except TooLongError:
        return None
    except Exception as error:
        if lost(error):  # judged like a program that crashes without godynamo, see fuzz_children.in_child()
            os._exit(3)
        raise
    finally:
        on_plain_run(False)
    errors: list[str] = []
    before = _C.set_callback("internal_error", lambda info: errors.append(f"{info['where']}: {info['error']}"))
    backend: Any = whole_graph if whole else "eager"
    try:
        got = run(codes, godynamo.optimize(backend=backend, **options))
    finally:
        _C.set_callback("internal_error", before)
    for call, (a, b) in enumerate(zip(expected, got, strict=True)):
        for kind in a:
            if a[kind] != b[kind]:
                return Mismatch(kind, call, *narrowed(a[kind], b[kind]))
    return Mismatch("internal error", 0, None, errors[0]) if errors else None
