"""torch.equal of a tensor with itself, which attention modules call, is true unless the tensor holds NaN."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import break_reasons, nb


def whole(gm, example_inputs):
    return gm.forward


BACKENDS = {"eager": lambda: "eager", "whole": lambda: whole, "recording": nb, "aot_eager": lambda: "aot_eager"}


def attention(query, key, value):
    qkv_same = torch.equal(query, key) and torch.equal(key, value)
    kv_same = torch.equal(key, value)
    if qkv_same:
        return query + 1, kv_same
    if kv_same:
        return query - key, kv_same
    return query + key * value, kv_same


def of_one(x):
    return attention(x, x, x)


def computed(x):
    y = x * 2
    return attention(y, y, y)


def changed_before(x):
    y = x.clone()
    y.add_(1)
    return torch.equal(y, y), y


def in_a_block(x):
    try:
        return (x + 1) if torch.equal(x, x) else torch.zeros(2) @ torch.zeros(3)
    except RuntimeError as error:
        return str(error)


def after_an_effect(x):
    LOG.append(x.shape[0])
    return x * 2 if torch.equal(x, x) else x


LOG: list[int] = []
FUNCTIONS = [of_one, computed, changed_before, in_a_block, after_an_effect]
TENSORS = {
    "floats": lambda: torch.arange(3.0),
    "leaf": lambda: torch.arange(3.0, requires_grad=True),
    "ints": lambda: torch.arange(3),
    "NaN": lambda: torch.tensor([1.0, float("nan")]),
    "empty": lambda: torch.ones(0),
}


def outcome(fn, x):
    torch.manual_seed(0)
    LOG.clear()
    value = fn(x)
    values = value if isinstance(value, tuple) else (value,)
    values = [(repr(v.detach()), v.requires_grad) if isinstance(v, torch.Tensor) else v for v in values]
    return values, list(LOG), torch.rand(1).item()


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", BACKENDS)
def test_results_are_eagers(fn, backend):
    optimized = godynamo.optimize(fn, backend=BACKENDS[backend]())
    for name in ("floats", "NaN", "floats", "leaf", "ints", "empty", "NaN", "NaN", "floats"):
        assert outcome(optimized, TENSORS[name]()) == outcome(fn, TENSORS[name]()), name


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", ["eager", "whole"])
def test_one_graph(fn, backend):
    optimized = godynamo.optimize(fn, backend=BACKENDS[backend]())
    for _ in range(3):
        optimized(torch.arange(3.0))
    assert not break_reasons() and godynamo.utils.counters["frames"]["total"] == 1, break_reasons()


def test_two_tensors_are_compared():
    def f(x, y):
        return x + 1 if torch.equal(x, y) else x - 1

    optimized = godynamo.optimize(f)
    x = torch.arange(3.0)
    for y in (x, x.clone(), x + 1, x):
        assert optimized(x, y).tolist() == f(x, y).tolist()


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return False if func is torch.equal else func(*args, **(kwargs or {}))


def test_a_mode_sees_the_call():
    def f(x):
        with Mode():
            return torch.equal(x, x), x + 1

    for backend in BACKENDS.values():
        assert godynamo.optimize(f, backend=backend())(torch.ones(2))[0] is False
