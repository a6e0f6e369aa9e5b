"""numpy arrays from outside in subscripts of tensors: torch copies each to a tensor, and so does the graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils
from godynamo.testing import CompileCounter

BACKENDS = pytest.mark.parametrize("backend", ["eager", CompileCounter], ids=["inline", "whole"])


class Permutes(nn.Module):
    def __init__(self, perm):
        super().__init__()
        self.perm = perm

    def forward(self, x):
        return x[:, self.perm] * 2, x[self.perm], x[self.perm, 1:], x[..., self.perm, None]


def stores(x, a):
    y = x.clone()
    y[a] = 7
    y[:, a] += 1
    return y


def outcome(fn, *args):
    try:
        value = fn(*args)
    except Exception as error:
        return type(error), str(error)
    return [(v.tolist(), v.dtype, v.stride()) for v in (value if isinstance(value, tuple) else (value,))]


ARRAYS = {
    "int64": np.array([2, 0, 1]),
    "negative": np.array([-1, 0, -3, -3]),
    "int32": np.array([2, 0, 1], np.int32),
    "int8": np.array([2, 0], np.int8),
    "bool": np.array([True, False, True]),
    "none": np.array([], np.int64),
    "many": np.arange(40) % 3,
    "strided": np.arange(6)[::2] % 3,
}
OTHERS = {
    "two dimensions": np.array([[0, 1], [2, 0]]),
    "none": np.array(1),
    "floats": np.array([0.0, 1.0]),
    "uint8": np.array([1, 0, 1], np.uint8),
    "backwards": np.arange(3)[::-1],
    "not native": np.array([0, 1], ">i8"),
    "objects": np.array([0, 1], object),
    "beyond": np.array([0, 3]),
    "wrong mask": np.array([True, False]),
}


def checked(array, backend):
    x = torch.arange(9.0).reshape(3, 3)
    utils.counters.clear()
    module = Permutes(array)
    for plain, args in ((module, (x,)), (stores, (x, array))):
        optimized = godynamo.optimize(plain, backend=backend if isinstance(backend, str) else backend())
        want = outcome(plain, *args)
        assert [outcome(optimized, *args) for _ in range(3)] == [want] * 3


@BACKENDS
@pytest.mark.parametrize("name", ARRAYS)
def test_captured(name, backend):
    checked(ARRAYS[name], backend)
    assert not utils.counters["graph_break"]


@BACKENDS
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore")
def test_others_are_torchs(name, backend):
    checked(OTHERS[name], backend)


@BACKENDS
def test_the_numbers_are_those_of_the_call(backend):
    def f(x, a):
        return (x * 2)[a]

    optimized = godynamo.optimize(f, backend=backend if isinstance(backend, str) else backend())
    a = np.array([0, 1])
    for change in (0, 1, 0, -1):
        a += change
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        result = optimized(x, a)
        assert torch.equal(result, f(x, a))
        a += 1  # the backward pass uses the numbers of the forward pass
        result.sum().backward()
        a -= 1
        wanted = torch.zeros(3).index_add(0, torch.from_numpy(a) % 3, torch.full((2,), 2.0))
        assert torch.equal(x.grad, wanted)
    assert len(godynamo.cache_entries(optimized)) == 1
    assert torch.equal(optimized(x, np.array([2])), f(x, np.array([2])))
    assert torch.equal(optimized(x, np.array([False, False, True])), f(x, np.array([2])))


def test_a_frozen_array_is_torchs():
    a = np.array([1, 0])
    a.flags.writeable = False
    x = torch.arange(3.0)
    assert torch.equal(godynamo.optimize(lambda x, a: x[a] + 1)(x, a), x[a] + 1)
