"""Iterating over a tensor: one unbind and an iteration over its tuple, as in Tensor.__iter__."""

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter


def doubled(x):
    return [a * 2 for a in x]


def walked_by_hand(x):
    it = iter(x)
    first = next(it)
    return first, [a + 1 for a in it], type(it).__name__


def changed_while_walked(x):
    out = []
    for a in x:
        x.add_(1)
        out.append(a * 1)
    return out


def split_while_walked(x):
    out = []
    for a in x:
        out.append(a.sum().item())
    return out


def left_half_way(x):
    it = iter(x)
    return next(it) * 2, it


@pytest.mark.parametrize("f", [doubled, walked_by_hand, changed_while_walked, split_while_walked])
@pytest.mark.parametrize("whole", [False, True])
def test_walking_a_tensor_gives_what_cpython_gives(f, whole):
    optimized = godynamo.optimize(f, backend="eager") if not whole else godynamo.optimize(f, backend=CompileCounter())
    for _ in range(2):
        x = torch.arange(6.0).reshape(3, 2)
        assert str(optimized(x.clone())) == str(f(x.clone()))


def test_a_tensor_is_unbound_once():
    counter = CompileCounter()
    godynamo.optimize(doubled, backend=counter)(torch.ones(3))
    assert (counter.frame_count, counter.op_count) == (1, 7)  # unbind, three items, three products


def test_an_iterator_that_leaves_goes_on_where_it_was():
    f = godynamo.optimize(left_half_way)
    for _ in range(2):
        first, it = f(torch.arange(3.0))
        assert first.item() == 0.0 and [a.item() for a in it] == [1.0, 2.0]
        assert type(it) is type(iter(()))
