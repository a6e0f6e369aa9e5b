"""Metadata that FakeTensor computes: from the operations on which they depend, those in place included."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_ints import bits


def told(*tensors):
    return [(t.requires_grad, t.shape, t.stride()) for t in tensors]


def a_view_gets_a_gradient(x, w):
    a = torch.zeros(3)
    v = a[:2]
    before = told(a, v)
    v.add_(w[:2])
    return before, told(a, v)


def so_does_its_base(x, w):
    a = torch.zeros(2, 3)
    v = a.t()
    a[0] = w
    return told(v, a)


def another_view_of_it(x, w):
    a = x * 2
    u, v = a[0], a[1]
    u.mul_(w)
    return told(v, a)


def an_operation_on_several(x, w):
    a, b = torch.zeros(3), torch.zeros(3)
    torch._foreach_add_([a], [w])
    return told(a, b, a + b)


def unsqueezed_in_place(x, w):
    a = x * 2
    b = a.view(-1)
    a.unsqueeze_(0)
    return told(a, b, a.transpose(0, 2))


def transposed_in_place(x, w):
    a = x + 1
    a.t_()
    return told(a, a * 2)


def a_view_made_before(x, w):
    a = x + 1
    b, c = a.t(), a[0] * w
    a.t_()
    return told(a), told(b, c, b.t())


def a_result_made_in_another_mode(x, w):
    b = w + 1
    with torch.no_grad():
        a = w * 2
        inside = told(a)
        inside += told(b)
    return inside, told(a + 1, w * a, b * a)


def asks_for_a_gradient(x, w):
    a = torch.zeros(3)
    b = a * 2
    a.requires_grad_()
    return told(b, a * 2)


def detached_in_place(x, w):
    a = w * 2
    a.detach_()
    return told(a, a + 1)


def under_no_grad(x, w):
    b = w + 1
    with torch.no_grad():
        a = w * 2
        c = told(a, b)
    return c, told(a + 1, w * a)


def unrelated_changes(x, w):
    mask = torch.zeros(3)
    mask[0] = 1
    y = x.t() * 2
    mask.add_(w)
    return told(y), told(mask)


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize(
    "f",
    [
        *(a_view_gets_a_gradient, so_does_its_base, another_view_of_it, an_operation_on_several),
        *(unsqueezed_in_place, transposed_in_place, asks_for_a_gradient, detached_in_place, under_no_grad),
        *(unrelated_changes, a_view_made_before, a_result_made_in_another_mode),
    ],
)
def test_metadata_are_those_of_eager_mode(f, backend) -> None:
    optimized = godynamo.optimize(f, backend=backend)
    for needs in (True, False):
        w = torch.ones(3, requires_grad=needs)
        for n in (2, 4, 5):
            x = torch.arange(n * 3.0).reshape(n, 3)
            assert bits(optimized(x, w)) == bits(f(x, w))
    assert_no_internal_errors()


def two(x, y):
    return (x.t() * 2).stride(), y * y.shape[0]


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
def test_other_sizes_stay_symbols(backend) -> None:
    optimized = godynamo.optimize(two, backend=backend)
    x = torch.ones(2, 3)
    for n in (2, 3, 4, 5, 6):
        y = torch.ones(n)
        assert bits(optimized(x, y)) == bits(two(x, y))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 2, [e.parts for e in entries(optimized)]
