"""Equal layers: parts of a layer that are reachable from elsewhere, and in-place changes between two calls."""

from __future__ import annotations

import types

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import godynamo
from godynamo.testing import CompileCounter

SHARED = types.SimpleNamespace(part=None)
PART: nn.Module


class Layer(nn.Module):
    part: nn.Module

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, other=None):
        return (self.fc(x).relu() * 2 - 1).tanh() + self.reached(x, other)


class Model(nn.Module):
    def __init__(self, reached, call):
        super().__init__()
        torch.manual_seed(0)
        layer = type("Own", (Layer,), {"reached": reached})
        self.layers, self.call = nn.ModuleList(layer() for _ in range(8)), call

    def forward(self, x, *more):
        return self.call(self, x * 1, *more)


def plainly(model, x, *more):
    for layer in model.layers:
        x = layer(x, *more)
    return x


def in_an_object(model, x):
    SHARED.part = model.layers[3].fc
    return plainly(model, x)


def in_a_list(model, x):
    SHARED.part = [model.layers[3].fc.weight]
    return plainly(model, x)


def in_a_global(model, x):
    global PART
    PART = model.layers[3].fc
    return plainly(model, x)


def in_a_class(model, x):
    Layer.part = model.layers[3].fc
    return plainly(model, x)


def on_a_tensor(model, x):
    y = x + 1
    y.part = model.layers[3].fc
    return plainly(model, x, y)


def an_operand(model, x):
    SHARED.part = x
    for i, layer in enumerate(model.layers):
        x = layer(SHARED.part if i < 2 else x)
    return x


def a_later_operand(model, x):
    SHARED.part = y = x + 1
    for i, layer in enumerate(model.layers):
        x = layer(y if i == 5 else x)
    return x


def transposed(model, x, y):
    for layer in model.layers:
        x = layer(x, y)
        y.t_()
    return x


def other_dtypes(model, x):
    for i, layer in enumerate(model.layers):
        x = layer(x, (x + 1).int() if i == 5 else x + 1)
    return x


CASES = {
    "in an object": (lambda self, x, _: SHARED.part(x), in_an_object),
    "in a list": (lambda self, x, _: F.linear(x, SHARED.part[0]), in_a_list),
    "in a global": (lambda self, x, _: PART(x), in_a_global),
    "in a class": (lambda self, x, _: Layer.part(x), in_a_class),
    "on a tensor": (lambda self, x, y: y.part(x), on_a_tensor),
    "an operand": (lambda self, x, _: SHARED.part * 2, an_operand),
    "a later operand": (lambda self, x, _: x * (2 if x is SHARED.part else 3), a_later_operand),
    "sizes of the frame": (lambda self, x, y: x * y.shape[0] * 0.1, transposed),
    "dtypes": (lambda self, x, y: x * (2 if y.is_floating_point() else 3), other_dtypes),
}


@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
@pytest.mark.parametrize("case", CASES)
def test_eagers_result(case, backend):
    model = Model(*CASES[case])
    optimized = godynamo.optimize(model, backend="eager" if backend == "eager" else CompileCounter())
    inputs = [torch.randn(3, 4), *([torch.randn(2, 5)] if model.call is transposed else [])]
    for _ in range(2):
        assert torch.equal(optimized(*[t.clone() for t in inputs]), model(*[t.clone() for t in inputs]))
