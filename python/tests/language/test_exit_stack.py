"""contextlib.ExitStack and what it uses: sys.exc_info, methods bound by hand, functions of other modules that raise."""

from __future__ import annotations

import contextlib
import sys
import types

import pytest
import torch

import godynamo
import godynamo.testing
from harness.cases import Case, Cases, check, outcome, reasons

cases = Cases()


@godynamo.disable
def opaque(x):
    """Never captured."""
    return 2


class Manager:
    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append("enter " + self.name)
        return self.name

    def __exit__(self, kind, value, traceback):
        self.log.append(f"exit {self.name} {kind and kind.__name__}")
        return self.swallow


@contextlib.contextmanager
def managed(log, i):
    log.append(i)
    try:
        yield i * 2
    finally:
        log.append(-i)


@cases
def callbacks(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "first")
        stack.callback(log.extend, ("second", "third"))
        y = x + 1
        log.append("body")
    return y * 2, log


@cases
def managers(x):
    log = []
    with contextlib.ExitStack() as stack:
        names = [stack.enter_context(Manager(log, name)) for name in "ab"]
        twice = stack.enter_context(managed(log, 3))
        stack.enter_context(torch.no_grad())
        inside = torch.is_grad_enabled()
        y = x + twice
    return y, names, log, inside, torch.is_grad_enabled()


@cases
def one_that_swallows(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(Manager(log, "outer"))
        stack.enter_context(Manager(log, "inner", swallow=True))
        y = x + 1
        raise ValueError("text")
    return y * 2, log


@cases
def taken_over(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.push(Manager(log, "pushed"))
        stack.enter_context(Manager(log, "entered"))
        rest = stack.pop_all()
    log.append("after")
    y = x + 1
    rest.close()
    return y, log


@cases
def exception_info(x):
    before = sys.exc_info()
    try:
        raise KeyError("k")
    except KeyError as error:
        kind, value, _ = sys.exc_info()
        same = value is error
        name = kind.__name__
    return x + 1, before, same, name, sys.exc_info()


@cases
def a_method_made_by_hand(x):
    def doubled(self, v):
        return v * self.k

    holder = types.SimpleNamespace(k=2)
    method = types.MethodType(doubled, holder)
    return method(x), method.__self__ is holder


@pytest.mark.row("S004-133")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_exit_stack(case: Case) -> None:
    check(case)


def split_inside(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(Manager(log, "a"))
        y = x + 1
        k = opaque(y)
        y = y * k
    return y * 3, log


def split_inside_and_raises(x):
    log = []
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "callback")
            stack.enter_context(Manager(log, "a"))
            y = x + 1
            opaque(y)
            raise ValueError("text")
    except ValueError as error:
        return y * 3, log, str(error)


def leaves_the_frame(x):
    stack = contextlib.ExitStack()
    log = []
    stack.callback(log.append, 1)
    return x + 1, stack.close, log


@pytest.mark.parametrize("fn", [split_inside, split_inside_and_raises], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "fx"])
def test_split(fn, backend) -> None:
    compiled = godynamo.optimize(fn, backend="eager" if backend == "eager" else godynamo.testing.CompileCounter())
    for _ in range(2):
        assert outcome(compiled, (torch.arange(3.0),)) == outcome(fn, (torch.arange(3.0),))
    assert reasons()


def test_functions_of_another_module_leave_the_frame() -> None:
    compiled = godynamo.optimize(leaves_the_frame, backend="eager")
    for _ in range(2):
        y, close, log = compiled(torch.ones(2))
        wrapper = close.__self__._exit_callbacks[0][1]
        assert wrapper.__globals__ is vars(contextlib)
        assert wrapper.__qualname__.endswith("_create_cb_wrapper.<locals>._exit_wrapper")
        assert log == []
        close()
        assert log == [1] and torch.equal(y, torch.full((2,), 2.0))
    assert not reasons()


def test_called_from_a_handler() -> None:
    def f(x):
        return x + 1, sys.exc_info()[0]

    compiled = godynamo.optimize(f, backend="eager")
    assert compiled(torch.ones(1))[1] is None
    for _ in range(2):
        try:
            raise KeyError
        except KeyError:
            assert compiled(torch.ones(1))[1] is KeyError
        assert compiled(torch.ones(1))[1] is None
