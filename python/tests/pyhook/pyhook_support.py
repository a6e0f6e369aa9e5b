"""Shared by the tests of the core: a translator in Python, so that neither Go nor torch is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from godynamo import _C

#: Imports only the core, without the package's __init__, which imports torch.
BARE = f"""
import sys, types
package = types.ModuleType("godynamo")
package.__path__ = [{str(Path(_C.__file__).parent)!r}]
sys.modules["godynamo"] = package
"""

#: flags of an entry, as in golib.h
RUN_ORIGINAL, NEEDS_HOOK = 1, 2
#: how an entry keeps a constant
KEEP_STRONG, KEEP_WEAK, KEEP_NONE = 0, 1, 2


#: the first node of every program
VALID = ("VALID", 0, 0, 0, 0, 0, 0)


def make_entry(function: Callable[..., Any] | None, nslots: int, **fields: Any) -> Any:
    """Return an entry that holds while it is valid, unless ``fields`` say otherwise; without a function, the
    original runs."""
    spec: dict[str, Any] = {
        "function": function,
        "nodes": [VALID],
        "nregs": nslots + 2,
        "nslots": nslots,
        "ncaches": 0,
        "consts": [],
        "tensors": [],
        "extra": [],
        "flags": 0,
        "parts": ("___guarded_code.valid",),
        "info": {},
    }
    spec.update(fields)
    if function is None:
        spec["flags"] |= RUN_ORIGINAL
    return _C.make_entry(spec)


def marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark the code of ``function`` as made by a translation, as code_new does; return ``function``."""
    assert isinstance(function, FunctionType)
    _C.mark_ours(function.__code__)
    return function


class Translator:
    """A translator that answers each request with the result of ``answer`` and records the requests."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> Any:
        if "/_pytest/" in request["function"].__code__.co_filename:
            return None  # the trace rules decide once per code, and an earlier test has allowed the code of pytest
        # Keep no object of the request: the lifetime tests expect these to die.
        row = {k: request[k] for k in ("kind", "nargs", "nentries", "failures")}
        row.update(name=request["function"].__name__, nslots=len(request["slots"]))
        self.requests.append(row)
        return self.answer(request)

    @property
    def names(self) -> list[str]:
        return [r["name"] for r in self.requests]


@contextlib.contextmanager
def translator(answer: Callable[[dict[str, Any]], Any]) -> Iterator[Translator]:
    t = Translator(answer)
    before = _C.set_translate_callback(t)
    try:
        yield t
    finally:
        _C.set_translate_callback(before)


@contextlib.contextmanager
def config(**settings: int) -> Iterator[None]:
    before = _C.get_config()
    _C.set_config(**settings)
    try:
        yield
    finally:
        _C.set_config(**before)


@contextlib.contextmanager
def callback(name: str, function: Callable[..., Any]) -> Iterator[None]:
    before = _C.set_callback(name, function)
    try:
        yield
    finally:
        _C.set_callback(name, before)


@contextlib.contextmanager
def extent(of: Any, traced: Callable[..., Any] | tuple[Callable[..., Any], ...] = ()) -> Iterator[None]:
    """Install the hook for a block (an extent) in which only the code of ``traced`` may be translated."""
    functions = traced if isinstance(traced, tuple) else (traced,)
    codes = {f.__code__ for f in functions}
    with callback("skip_code", lambda code: code not in codes):
        token = _C.enter_extent(of)
        try:
            yield
        finally:
            _C.exit_extent(token)


def counted(name: str) -> int:
    return _C.counters()[name]


def slots_of(*slots: Any) -> tuple[Any, ...]:
    """Return the slots, in place of transformed code."""
    return slots


def give_slots(request: dict[str, Any]) -> Any:
    """Answer a request with an entry that returns the frame's slots."""
    return make_entry(slots_of, len(request["slots"]))


def outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any]:
    """Return the outcome of a call: ("returned", value) or (name of the exception, its text)."""
    try:
        return "returned", function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


def type_guard(slot: int, kind: type) -> dict[str, Any]:
    """Return the fields of an entry that holds if the slot's value is exactly of this type."""
    return {
        "nodes": [VALID, ("TYPE_MATCH", 0, 0, slot, 1, 0, 0)],
        "consts": [(kind, KEEP_WEAK)],
        "parts": ("___guarded_code.valid", f"___check_type_id(slot_{slot}, {id(kind)})"),
    }
