"""Sizes that a program computes with torch: torch.div of two ints is a tensor, which view takes for an int."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_ints import bits


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("tensor_sizes", "FRAGMENT") as lib:
        lib.define("grown(Tensor(a!) n) -> ()")
        lib.impl("grown", lambda n: n.add_(1) and None, "CPU")
        yield


def half(x, mode="trunc"):
    return torch.div(x.shape[0], 2, rounding_mode=mode)


def shown(y):
    return y * y.shape[0], y.shape


ONE_ENTRY = {
    "view": lambda x: shown(x.view(half(x), 2, -1)),
    "reshape, rounded down": lambda x: shown(x.t().reshape(x.shape[1], half(x, "floor"), 2)),
    "torch.reshape": lambda x: shown(torch.reshape(x, (half(x), 2, 3))),
    "arithmetic": lambda x: shown(x.new_zeros((half(x) - 1 + 2 * half(x), 3))),
    "a list": lambda x: shown(x.new_ones([2, half(x) + 1])),
    "a size in a tensor": lambda x: shown(x.new_ones(torch.tensor(x.shape[0]) * 2)),
    "expand": lambda x: shown(x[:1].expand(half(x), 3)),
    "a factory": lambda x: (torch.zeros(half(x), 2).shape, x + 1),
    "an index of another tensor changes": lambda x: shown(flagged(x)),
}


def flagged(x):
    n = half(x)
    mask = torch.zeros(4, dtype=torch.bool)
    mask[0] = True
    return x.new_zeros((n, 4)).masked_fill(mask, 1.0)


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize("name", ONE_ENTRY)
def test_one_entry_serves_all_sizes(name, backend) -> None:
    f = ONE_ENTRY[name]
    optimized = godynamo.optimize(f, backend=backend)
    for n in (4, 6, 8, 10, 12, 2):
        x = torch.arange(n * 3.0).reshape(n, 3)
        assert bits(optimized(x)) == bits(f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 2, [e.parts for e in entries(optimized)]


def operator_in_place(x):
    n = half(x)
    before = x.new_zeros((n, 2)).shape
    n += 1
    return before, shown(x.new_zeros((n, 2)))


def method(x):
    n = half(x)
    n.add_(1)
    return shown(x.new_zeros((n, 2)))


def view_of_it(x):
    n = half(x)
    n.view(1).add_(1)
    return shown(x.new_zeros((n, 2)))


def alias(x):
    n = half(x)
    m = n.detach()
    m.mul_(2)
    return shown(x.new_zeros((n, 2))), shown(x.new_zeros((m, 2)))


def out(x):
    n = half(x)
    torch.add(n, 1, out=n)
    return shown(x.new_zeros((n, 2)))


def row_of_an_expanded_one(x):
    n = half(x)
    n.expand(3)[1].fill_(7)
    return shown(x.new_zeros((n, 2)))


def subscript(x):
    n = half(x)
    n[...] = 5
    return shown(x.new_zeros((n, 2)))


def list_of_tensors(x):
    n = half(x)
    torch._foreach_add_([n], 1)
    return shown(x.new_zeros((n, 2)))


def copied_over(x):
    n = half(x)
    n.copy_(torch.tensor(x.shape[0] + 3))
    return shown(x.new_zeros((n, 2)))


def custom_operator(x):
    n = half(x)
    torch.ops.tensor_sizes.grown(n)
    return shown(x.new_zeros((n, 2)))


def negative(x):
    n = torch.div(1 - x.shape[0], 2, rounding_mode="trunc")
    m = torch.div(1 - x.shape[0], 2, rounding_mode="floor")
    return shown(x.new_zeros((n + 9, 2))), shown(x.new_zeros((m + 9, 2)))


def not_rounded(x):
    try:
        return x.view(torch.div(x.shape[0], 2), 2, -1)
    except TypeError as error:
        return type(error), x + 1


def wrong_size(x):
    try:
        return x.view(half(x), 5), x.shape
    except RuntimeError as error:
        return str(error), x + 1


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize(
    "f",
    [
        *(operator_in_place, method, view_of_it, alias, out, row_of_an_expanded_one, subscript, list_of_tensors),
        *(copied_over, custom_operator, negative, not_rounded, wrong_size),
    ],
)
def test_the_result_is_that_of_eager_mode(f, backend) -> None:
    optimized = godynamo.optimize(f, backend=backend)
    for n in (4, 6, 7, 8, 3):
        x = torch.arange(n * 3.0).reshape(n, 3)
        assert bits(optimized(x)) == bits(f(x))
    assert_no_internal_errors()


def changed_in_each_turn(x):
    n = half(x)
    for i in range(x.shape[0]):
        y = x.new_zeros((n, 2))
        x[i] = x[i] + y.shape[0]
        n += 1
    return x, n


def changed_in_a_comprehension(x):
    n = half(x)
    return [x.new_zeros((n.add_(1), 2)).shape[0] + x[i] for i in range(x.shape[0])], n


def a_constant_changed_in_each_turn(x):
    n = torch.tensor(2)
    for i in range(x.shape[0]):
        y = x.new_zeros((n, 2))
        x[i] = x[i] + y.shape[0]
        n.add_(1)
    return x, n


def made_in_each_turn(x):
    return [x.new_zeros((half(x), 2)).shape[0] + x[i] for i in range(x.shape[0])]


@pytest.mark.parametrize(
    "f", [changed_in_each_turn, changed_in_a_comprehension, a_constant_changed_in_each_turn, made_in_each_turn]
)
def test_loops_that_could_be_captured_once(f) -> None:
    optimized = godynamo.optimize(f)
    with torch.no_grad():
        for n in (4, 6, 7, 5):
            x = torch.arange(n * 3.0).reshape(n, 3)
            assert bits(optimized(x.clone())) == bits(f(x.clone()))
    assert_no_internal_errors()
    if f is made_in_each_turn:
        assert len(entries(optimized)) == 1
