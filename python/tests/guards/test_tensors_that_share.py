"""Tensors that are one object, or views of one another, in one call but not the next, and their in-place changes."""

from __future__ import annotations

import itertools

import pytest
import torch

import godynamo
from godynamo import utils

WEIGHT = torch.ones(2, 3, requires_grad=True)


def sizes(x, y):
    x.unsqueeze_(0)
    return y.shape[0], y.dim(), len(y), y[:, :2]


def strides(x, y):
    x.t_()
    return y.stride(), y.is_contiguous(), [r.sum() for r in y]


def dimensions(x, y):
    x.unsqueeze_(0)
    return y.sum(dim=tuple(range(y.dim())))


def resized(x, y):
    x.resize_(4)
    return y.numel(), y.new_zeros(y.shape[0])


def set_to_another(x, y):
    x.set_(torch.ones(5))
    return y.shape


def flag(x, y):
    x.requires_grad_()
    return (y * 2).requires_grad, y.requires_grad


def gradient_in_place(x, y):
    x.add_(WEIGHT)
    return y.requires_grad, y.requires_grad and 1 or 2


def gradient_through_a_view(x, y):
    x[0].add_(WEIGHT[0])
    return x.requires_grad, y.requires_grad


def gradient_stored(x, y):
    x[:, 0] = WEIGHT[:, 0]
    return (y + 1).requires_grad


def no_gradient(x, y):
    with torch.no_grad():
        x.add_(WEIGHT)
    x.mul_(2)
    return y.requires_grad, x.requires_grad


def given(call):
    """Return a pair of tensors that share memory in the given way."""
    a, b = torch.arange(6.0).reshape(2, 3).clone(), torch.ones(2, 3)
    return {
        "apart": lambda: (a, b),
        "one": lambda: (a, a),
        "view": lambda: (a, a.view(2, 3)),
        "base": lambda: (a.view(2, 3), a),
        "views": lambda: (a[:], a[:]),
        "detached": lambda: (a, a.detach()),
    }[call]()


def told(value):
    if isinstance(value, torch.Tensor):
        return str(value), value.stride(), value.requires_grad
    return [told(v) for v in value] if isinstance(value, (list, tuple)) else value


CALLS = ("apart", "one", "view", "base", "views", "detached")
PROGRAMS = [
    *(sizes, strides, dimensions, resized, set_to_another),
    *(flag, gradient_in_place, gradient_through_a_view, gradient_stored, no_gradient),
]


def outcome(f, call):
    try:
        x, y = given(call)
        return told(f(x, y)), told([x, y])
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("first", CALLS)
@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "whole"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_every_call_is_eagers_whatever_the_first_was(program, backend, first):
    optimized = godynamo.optimize(program, backend=backend)
    for call in (first, *CALLS):
        assert outcome(optimized, call) == outcome(program, call), call


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "whole"])
def test_where_no_gradients_come_in_the_flag_is_known(backend):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).train()

    def asks(x, cache, y):
        cache[0] = y[0]
        z = net(x)
        return z * 2 if y.requires_grad or net[0].weight.requires_grad else z

    godynamo.reset()
    utils.counters.clear()
    optimized = godynamo.optimize(asks, backend=backend)
    for _ in range(2):
        optimized(torch.ones(2, 3), torch.zeros(2, 3), torch.ones(2, 3))
    assert not utils.counters["graph_break"]


def test_objects_are_told_apart_where_sizes_may_change():
    optimized = godynamo.optimize(sizes)
    for call in itertools.islice(CALLS, 2):
        optimized(*given(call))
    texts = [str(text) for text in godynamo.guards(optimized)]
    assert "___check_distinct(x, y)" in " ".join(texts)
    assert len(godynamo.cache_entries(optimized)) == 2


def test_the_flag_of_a_view_is_asked_again():
    """The flag is read before an in-place operation changes it through another view of the same memory."""

    def of_a_view(x):
        whole = torch.ones(3, 4)
        part = whole[0]
        before = part.requires_grad
        whole.add_(x)
        return x * (2 if part.requires_grad else 3), before

    def of_the_whole(x):
        whole = torch.ones(3, 4)
        before = whole.stride()
        whole[0].add_(x[0])
        return x * (2 if whole.requires_grad else 3), before

    x = torch.ones(3, 4, requires_grad=True)
    for asks in (of_a_view, of_the_whole):
        got, want = godynamo.optimize(asks)(x), asks(x)
        assert torch.equal(got[0], want[0]) and got[1] == want[1]
