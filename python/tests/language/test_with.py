"""`with`: managers written in Python, by contextlib, in C; exceptions through them; breaks anywhere in the block."""

from __future__ import annotations

import contextlib
import threading

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


@godynamo.disable
def opaque(x, fail=False):
    """Never captured."""
    if fail:
        raise OSError(5, "opaque")
    return 2


class Logged:
    """Logs its entry and exit; swallows ValueError."""

    def __init__(self, log, value=5):
        self.log = log
        self.value = value

    def __enter__(self):
        self.log.append("enter")
        return self.value

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", kind, str(value) if value else None, traceback is None))
        return kind is ValueError


class Depth:
    """Changes nothing but its own state."""

    def __init__(self):
        self.depth = 0

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, *_):
        self.depth -= 1


class NoExit:
    def __enter__(self):
        return self


@contextlib.contextmanager
def plain():
    yield 3


@contextlib.contextmanager
def logging_manager(log):
    log.append("in")
    try:
        yield 4
    except KeyError:
        log.append("KeyError")
    finally:
        log.append("out")


@cases
def a_manager_made_inside(x):
    with Depth() as d:
        x = x * d.depth
        with d:
            x = x * d.depth
    return x, d.depth


@cases
def several_in_one_statement(x):
    with Depth() as a, Depth() as b, plain() as k:
        x = x + k
    return x, a.depth, b.depth


@cases
def contextlib_managers(x):
    with plain() as k, contextlib.nullcontext(3) as q:
        x = x + k * q
    with contextlib.suppress(KeyError):
        x = x * 2
        {}["a"]
    return x


@cases(args=lambda: ([],))
def left_normally(x, log):
    with Logged(log) as k:
        x = x + k
    return x * 2


@cases(args=lambda: ([],))
def swallows(x, log):
    with Logged(log) as k:
        x = x + k
        raise ValueError("q")
    return x * 2


@cases(args=lambda: ([],), graphs=1, breaks=2)
def does_not_swallow(x, log):
    with Logged(log) as k:
        x = x + k
        raise KeyError("q")
    return x * 2


@cases(args=lambda: ([],))
def return_inside(x, log):
    with Logged(log) as k:
        return x + k


@cases(args=lambda: ([],))
def an_operation_raises_inside(x, log):
    with Logged(log):
        x = x @ torch.ones(7, 7)
    return x * 2


@cases(args=lambda: ([],), graphs=2, breaks=1)
def a_split_inside(x, log):
    with Logged(log) as k:
        x = x + k
        x = x * opaque(x)
        x = x + 1
    return x - 1


@cases(args=lambda: ([],), graphs=1, breaks=3)
def a_split_inside_that_raises(x, log):
    with Logged(log) as k:
        x = x + k
        opaque(x, fail=True)
    return x * 2


@cases(graphs=3, breaks=6)
def a_file(x):
    with open("/dev/null") as f:
        y = x + 1
        text = f.read()
        y = y * 2
    return y - 1, text, f.closed


LOCK = threading.Lock()


@cases(graphs=2, breaks=3)
def a_lock(x):
    with LOCK:
        y = x + 1
    return y * 2, LOCK.locked()


@cases(args=lambda: ([],))
def a_generator_manager_with_effects(x, log):
    with logging_manager(log) as k:
        x = x + k
        raise KeyError("a")
    return x * 2


@cases(graphs=1, breaks=1)
def no_manager_at_all(x):
    y = x + 1
    with NoExit():
        y = y * 2
    return y


@cases
def break_and_continue_leave_it(x):
    d = Depth()
    for i in range(4):
        with d:
            if i == 1:
                continue
            if i == 3:
                break
            x = x + i
    return x, d.depth


@cases
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        for i in range(3):
            stack.callback(log.append, i)
        x = x + 2
    return x, log


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
@pytest.mark.row("S002-59")
@pytest.mark.row("S004-133")
@pytest.mark.row("S004-134")
def test_with(case: Case) -> None:
    check(case)
