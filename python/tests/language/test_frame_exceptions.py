"""Exceptions from outside the frame, as after a break inside a handler: texts, sys.exc_info(), context managers' exits.

These exceptions cause no further break, and one with another message causes no new translation.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.cases import check_calls

CALLS = [
    lambda: (torch.ones(3), "a"),
    lambda: (torch.ones(3), "a"),
    lambda: (torch.ones(3), "other"),
    lambda: (torch.ones(3), "x"),
]


class Own(ValueError):
    """Prints as its base class does."""


class Worded(ValueError):
    def __str__(self) -> str:
        return f"worded {self.args}"


class Thing:
    def __repr__(self) -> str:
        print("asked")
        return "Thing()"


@godynamo.disable
def fails(message: Any, cls: type[Exception] = ValueError) -> None:
    raise cls("bad", message)


def texts(x, m):
    try:
        fails(m)
    except ValueError as e:
        y = x + 1
        return y * 2, str(e), repr(e), f"{e} and {e!r:>40}", "{}".format(e)


def a_key(x, m):
    try:
        fails_with_one(m)
    except LookupError as e:
        return x + 1, str(e), repr(e)


@godynamo.disable
def fails_with_one(message: str) -> None:
    raise KeyError(message)


def a_class_of_the_users(x, m):
    try:
        fails(m, Own)
    except ValueError as e:
        return x + 1, str(e), repr(e), isinstance(e, Own)


def printed(x, m):
    print("before")
    try:
        fails(m)
    except ValueError as e:
        y = x + 1
        print("failed:", e)
        print(f"{e!s}")
        return y


def information(x, m):
    try:
        fails(m)
    except ValueError as e:
        kind, value, tb = sys.exc_info()
        return x + 1, kind, value is e, str(value), sys.exception() is e, kind.__name__


def in_finally(x, m):
    seen = None
    try:
        try:
            fails(m)
        finally:
            seen = sys.exc_info()[0]
    except ValueError:
        pass
    return x + 1, seen


@pytest.mark.parametrize("fn", [texts, a_key, a_class_of_the_users, information], ids=lambda f: f.__name__)
def test_one_split_and_one_translation_for_all_messages(fn):
    check_calls(lambda: fn, CALLS, graphs=1, translations=[2, 0, 0, 0])


@pytest.mark.parametrize("fn", [in_finally, printed], ids=lambda f: f.__name__)
def test_effects_inside_a_handler(fn):
    check_calls(lambda: fn, CALLS, graphs=1)


# ---- managers ----


class Manager:
    def __init__(self, swallows: bool) -> None:
        self.log: list[Any] = []
        self.swallows = swallows

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, kind: Any, value: Any, tb: Any) -> bool:
        self.log.append((kind, str(value), len(value.args), tb is None))
        return self.swallows


class KeepsTraceback(Manager):
    def __exit__(self, kind: Any, value: Any, tb: Any) -> bool:
        self.log.append([f.name for f in traceback.extract_tb(tb)][-1])
        return True


def an_exit_that_swallows(x, m):
    manager = Manager(True)
    with manager:
        y = x + 1
        fails(m)
    return y * 2, manager.log


def an_exit_that_does_not(x, m):
    manager = Manager(False)
    try:
        with manager:
            y = x + 1
            fails(m)
    except ValueError as e:
        return y * 2, manager.log, str(e)


def suppressed(x, m):
    with contextlib.suppress(LookupError, ValueError):
        x = x + 1
        fails(m)
    return x * 2


def two_exits(x, m):
    outer, inner = Manager(True), Manager(False)
    with outer, inner:
        y = x + 1
        fails(m)
    return y * 2, outer.log, inner.log


def an_exit_that_raises(x, m):
    try:
        with Exploding():
            y = x + 1
            fails(m)
    except KeyError as e:
        return y * 2, str(e), str(e.__context__)


class Exploding:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, value: Any, tb: Any) -> None:
        raise KeyError("exit")


def an_exit_that_reads_the_traceback(x, m):
    manager = KeepsTraceback(True)
    with manager:
        y = x + 1
        fails(m)
    return y * 2, manager.log


@pytest.mark.parametrize(
    "fn,translations",
    [(an_exit_that_swallows, [2, 0, 0, 0]), (an_exit_that_does_not, None), (suppressed, [2, 0, 0, 0]),
     (two_exits, [2, 0, 0, 0]), (an_exit_that_raises, None), (an_exit_that_reads_the_traceback, None)],
    ids=lambda f: getattr(f, "__name__", ""),
)  # fmt: skip
def test_exits(fn: Callable[..., Any], translations: list[int] | None) -> None:
    check_calls(lambda: fn, CALLS, graphs=2, translations=translations)


# ---- what is left to CPython ----


def text_of_its_own(x, m):
    try:
        fails(m, Worded)
    except ValueError as e:
        return x + 1, str(e), repr(e)


def an_object_with_methods(x, m):
    try:
        fails(Thing())
    except ValueError as e:
        return x + 1, str(e)


def changed_meanwhile(x, m):
    try:
        fails(m)
    except ValueError as e:
        before = str(e)
        alters(e)
        return x + 1, before, str(e), e.args


@godynamo.disable
def alters(e: Exception) -> None:
    e.args = ("altered",)


def of_another_shape(x, m):
    try:
        varies(m)
    except Exception as e:
        return x + 1, str(e), type(e).__name__


@godynamo.disable
def varies(m: str) -> None:
    raise {"a": ValueError(1), "other": KeyError("k"), "x": OSError(2, "no", "file")}[m]


@pytest.mark.parametrize(
    "fn", [text_of_its_own, an_object_with_methods, changed_meanwhile, of_another_shape], ids=lambda f: f.__name__
)
def test_texts_that_cpython_makes(fn):
    check_calls(lambda: fn, CALLS, graphs=1 if fn in (an_object_with_methods, changed_meanwhile) else 3)
