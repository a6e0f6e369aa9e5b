"""If an operation's exceptions have a handler, earlier effects wait for the operation, and the graph does not break.

If the operation raises, everything is as in CPython, including random numbers.
"""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter
from harness.cases import Case, Cases, check, reasons

cases = Cases()


class Box:
    def __init__(self):
        self.value, self.log = 1, []


class Manager:
    """Records in the box the exception type and the value that it finds on exit."""

    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.box.value = 5
        return self

    def __exit__(self, *exc):
        self.box.log.append((exc[0], self.box.value))
        self.box.value = 6
        return exc[0] is RuntimeError


def right():
    return torch.ones(4), Box()


def wrong():
    return torch.ones(3), Box()


@cases(args=right)
def store_then_try(x, y, box):
    box.value = 2
    try:
        z = x + y
    finally:
        box.log.append(box.value)
    return z


@cases(args=wrong)
def store_then_try_raises(x, y, box):
    box.value = 2
    try:
        z = x + y
    finally:
        box.log.append(box.value)
        box.value = 3
    return z


@cases(args=wrong)
def caught(x, y, box):
    a = x * 2
    box.value = 2
    box.log.append("before")
    try:
        z = a + y
        box.log.append("not reached")
    except RuntimeError as e:
        box.log.append(str(e))
        z = x
    return z + 1, box.value


@cases(args=right)
def manager_of_the_users(x, y, box):
    with Manager(box):
        z = x + y
        box.log.append("inside")
        z = z * y
    return z * box.value


@cases(args=wrong)
def manager_swallows(x, y, box):
    z = x
    with Manager(box):
        box.log.append("inside")
        z = x + y
    return z * box.value


@cases(args=wrong)
def unprotected_between(x, y, box):
    """The operation that raises has no handler. It waits, together with the effect before it."""
    box.value = 2
    z = x + y
    try:
        w = z * 2
    finally:
        box.log.append("finally")
    return w


@cases(args=right)
@cases(args=wrong)  # the operation raises
def print_then_try(x, y, box):
    print("begins")
    try:
        z = x + y
    finally:
        box.value = 0
    print("ends", z)
    return z


@cases(args=right, graphs=2, breaks=(1, 2))
def print_what_changes(x, y, box):
    """The mask is printed as it was before the change."""
    mask = torch.zeros(4)
    print(mask)
    try:
        mask[0] = 1
    finally:
        box.value = 0
    return mask + y


@cases(args=right)
@cases(args=wrong)  # the operation raises
def own_mask(x, y, box):
    mask = torch.zeros(4)
    try:
        mask[0] = x[1]
        mask[1:].add_(2)
        z = mask + y
    finally:
        box.value = 0
    return z


@cases(args=right)
def callers_tensor(x, y, box):
    """A change of the caller's tensor cannot wait: it is undone if a later operation raises."""
    x.add_(1)
    try:
        z = x + y
    finally:
        box.value = 0
    return z


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_effects_wait(case: Case):
    check(case)


def dropped(x, y):
    a = F.dropout(x, 0.5, True)
    with contextlib.suppress(RuntimeError):
        a = F.dropout(a + 1, 0.5, True)
        a = a + y
    return a


def noise(x, y):
    a = x + torch.randn(4)
    try:
        a = a + torch.rand_like(y) + y
    except RuntimeError:
        a = a * torch.rand(4)
    return a


def noise_with_grad(x, y):
    with torch.no_grad():
        a = x + torch.randn(4)
        try:
            with torch.enable_grad():
                a = a + torch.rand(4)
                a = a + y
        except RuntimeError:
            a = a * torch.rand(4)
    return a, torch.is_grad_enabled()


@pytest.mark.parametrize("fn", [dropped, noise, noise_with_grad])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("size", [4, 3])
def test_random_numbers_are_drawn_once(fn, whole, size):
    """There is one graph. Values and the generator's state are as in CPython, whether or not the operation raises."""
    counter = CompileCounter()
    x, y = torch.arange(4.0), torch.ones(size)
    compiled = godynamo.optimize(fn, backend=counter if whole else "eager")
    for seed in range(3):
        torch.manual_seed(seed)
        want, after = fn(x, y), torch.rand(2)
        torch.manual_seed(seed)
        got, got_after = compiled(x, y), torch.rand(2)
        want, got = (want, got) if isinstance(want, tuple) else ((want,), (got,))
        assert torch.equal(want[0], got[0]) and want[1:] == got[1:] and torch.equal(after, got_after)
    assert reasons() == [] and _C.counters()["internal_errors"] == 0
    assert not whole or counter.frame_count == 1


@pytest.mark.parametrize("backend", ["aot_eager", lambda gm, _: gm.forward], ids=["aot_eager", "callable"])
@pytest.mark.parametrize("checks", [False, True])
def test_an_effect_in_a_mode_after_a_change_that_is_not_undone(checks, backend):
    """The graph breaks at the effect; the manager of the mode is made for the rest of the frame."""

    def f(module, x, log):
        with torch.no_grad():
            module.weight.mul_(0.5)
            log.append("changed")
            if checks and x.sum() > 9:
                raise ValueError("too large")
            x = x * 2
        return module(x).sum()

    def run(fn):
        torch.manual_seed(0)
        module, out = torch.nn.Linear(3, 3), []
        for value in (1.0, 1.0, 4.0, 1.0):
            log = []
            try:
                out.append((fn(module, torch.full((3,), value), log).item(), log))
            except ValueError as error:
                out.append((str(error), log))
        return out, module.weight.tolist()

    godynamo.utils.counters.clear()
    assert run(godynamo.optimize(f, backend=backend)) == run(f)
    assert not godynamo.utils.counters["frames"]["skipped"]
