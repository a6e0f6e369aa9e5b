"""Grad mode and autocast switched inside captured code: values, metadata, the state afterwards, exceptions in
between."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


def weight():
    return (torch.ones(4, 4, requires_grad=True),)


@godynamo.disable
def opaque(x):
    """Never captured."""
    return 2


def modes():
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


@cases(args=weight)
def no_grad(x, w):
    with torch.no_grad():
        y = x @ w
    return y, y.requires_grad, torch.is_grad_enabled(), x @ w


@cases(args=weight)
def nested_modes(x, w):
    with torch.set_grad_enabled(False):
        y = w * 2
        with torch.enable_grad():
            z = w * 3
            if z.requires_grad:
                z = z + 1
    return y, z, (w * 2).requires_grad


@torch.no_grad()
def decorated(w):
    return w * 2, torch.is_grad_enabled()


@cases(args=weight)
def a_decorated_function(x, w):
    return decorated(w), (w + 1).requires_grad


@cases(args=weight)
def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = w @ w
        inside = torch.is_autocast_enabled("cpu")
    return y, y.dtype, w @ w, inside, torch.is_autocast_enabled("cpu")


@cases(args=weight)
def set_and_put_back(x, w):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = w * 2
    torch.set_grad_enabled(before)
    return y, w + 1


@cases(args=weight)
def random_numbers_inside(x, w):
    with torch.no_grad():
        y = F.dropout(w, 0.5) + torch.rand_like(w)
    return y * w


@cases(args=weight, graphs=1, breaks=0)
def an_operation_raises_inside(x, w):
    with torch.no_grad():
        y = w @ torch.ones(7, 7)
    return y


@cases(args=weight, graphs=1, breaks=0)
def an_operation_raises_inside_and_is_caught(x, w):
    try:
        with torch.no_grad():
            y = w @ torch.ones(7, 7)
    except RuntimeError:
        return w * 2, torch.is_grad_enabled()
    return y


@cases(args=weight, graphs=2, breaks=1)
def a_split_inside(x, w):
    with torch.no_grad():
        y = w * 2
        n = opaque(y)
        y = y + n
    return y, w + 1


@cases(args=weight, graphs=1, breaks=1)
def a_split_before_the_first_operation(x, w):
    with torch.no_grad():
        n = opaque(w)
        return (w * n).requires_grad, torch.is_grad_enabled()


@cases(args=weight, graphs=1, breaks=2)
def a_split_before_the_first_operation_with_inference_mode(x, w):
    with torch.inference_mode():
        n = opaque(w)
        return w * n, torch.is_inference_mode_enabled()


@cases(args=weight, graphs=1, breaks=1)
def left_by_an_exception(x, w):
    with torch.no_grad():
        y = w * 2
        raise ValueError(y.requires_grad)


@pytest.mark.parametrize("case", [c for c in cases if c.name != "random_numbers_inside"], ids=lambda c: c.name)
@pytest.mark.row("S004-135")
def test_torch_state(case: Case) -> None:
    before = modes()
    check(case)
    assert modes() == before


def test_random_numbers_inside() -> None:
    w = weight()[0]

    def run(fn):
        torch.manual_seed(0)
        return fn(w, w)

    expected = run(random_numbers_inside)
    for backend in ("eager", "aot_eager"):
        assert torch.equal(run(godynamo.optimize(random_numbers_inside, backend=backend)), expected)
    assert godynamo.explain(random_numbers_inside)(w, w).graph_count == 1


def test_a_switch_without_a_manager_stays_when_an_operation_raises() -> None:
    def fn(w):
        torch.set_grad_enabled(False)
        return F.dropout(w, 0.5) @ torch.ones(7, 7)

    for backend in ("eager", godynamo.testing.CompileCounter()):
        compiled = godynamo.optimize(fn, backend=backend)
        try:
            with pytest.raises(RuntimeError):
                compiled(weight()[0])
            assert not torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)


def test_an_operation_behind_an_effect_raises_after_a_switch() -> None:
    """The user's code runs again in its initial modes, although no handler or manager surrounds the operation."""

    def fn(x, index, log):
        y = x * 2
        torch.set_grad_enabled(False)
        log.append(y)
        z = x[index]
        try:
            z = z + torch.relu(x)[index]
        except IndexError:
            pass
        return z

    compiled, x = godynamo.optimize(fn), torch.ones(3, requires_grad=True)
    try:
        for last in (1, 1, 7):
            log: list[torch.Tensor] = []
            torch.set_grad_enabled(True)
            try:
                compiled(x, torch.tensor([0, last]), log)
                assert last == 1
            except IndexError:
                assert last == 7
            assert not torch.is_grad_enabled()
            assert len(log) == 1 and log[0].requires_grad
    finally:
        torch.set_grad_enabled(True)
