"""Frames under torch.set_default_device and ``with torch.device``, and torch's state without tensors."""

from __future__ import annotations

import contextlib

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import godynamo
from godynamo import utils

X = torch.linspace(-1.0, 1.0, 24).reshape(4, 6)


def constructors(x):
    made = torch.zeros(3), torch.arange(4), torch.tensor([1.0, 2.0]), torch.rand(2), torch.as_tensor([1])
    return *made, x.sin() + torch.ones(6, device=x.device), torch.empty_like(x).fill_(1), x.new_zeros(3)


def metadata(x):
    z = torch.zeros(2, 3)
    return z.shape[0], z.device, z.dtype, z.sum(0).shape, z.is_meta, str(z.device), len(z)


def another_inside(x):
    with torch.device("meta"):
        a = torch.zeros(3)
    return a, torch.zeros(2), x.cos()


def library(x):
    return torch.nn.functional.softmax(x, -1), torch.nn.functional.one_hot(torch.arange(3).to("cpu"), 4)


def asks(x):
    return torch.get_default_device(), x + 1


def draws(x):
    return torch.nn.functional.dropout(x, 0.5), torch.randn(2)


def sets(x):
    before = torch.zeros(1)
    torch.set_default_device("meta")
    a = torch.zeros(2)
    torch.set_default_device("cpu")
    return before, a, torch.zeros(2)


class Doubles(TorchFunctionMode):
    """A mode that doubles the result of torch.ones."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result * 2 if func is torch.ones else result


def own_mode(x):
    with Doubles():
        a = torch.ones(2)
    return a, torch.ones(2), x.sin()


def ones(x):
    return torch.ones(2), torch.ones(2).device, x.sin()


def whole(gm, example_inputs):
    return gm.forward


def facts(v):
    if isinstance(v, torch.Tensor):
        return str(v.device), tuple(v.shape), v.dtype, None if v.is_meta else v.tolist()
    return [facts(i) for i in v] if isinstance(v, tuple) else v


@contextlib.contextmanager
def under(where):
    """Set a default device, or enter a mode, outside the function."""
    torch.set_default_device(where if isinstance(where, str) else None)
    try:
        with where() if callable(where) else contextlib.nullcontext():
            yield
    finally:
        torch.set_default_device(None)


def outcome(f, where):
    torch.manual_seed(0)
    with under(where):
        try:
            result = facts(f(X))
        except Exception as error:
            result = type(error), str(error)
    return result, torch.rand(1).item()


PLACES = [None, "cpu", "meta", lambda: torch.device("meta"), Doubles, None, "meta"]


@pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["eager", "whole", "aot_eager"])
@pytest.mark.parametrize(
    "f", [constructors, metadata, another_inside, library, asks, draws, sets, own_mode, ones], ids=lambda f: f.__name__
)
def test_the_device_is_eagers(f, backend):
    optimized = godynamo.optimize(f, backend=backend)
    for where in PLACES:
        if f is sets and callable(where):  # torch itself leaves its modes in disorder here
            continue
        assert outcome(optimized, where) == outcome(f, where)


def reads(x):
    return x * 2, torch.get_default_device(), torch.zeros(2, device=torch.get_default_device())


def test_reading_the_default_device_is_captured_and_guarded():
    optimized = godynamo.optimize(reads)
    for where in ["cpu", None, "meta", None, "cpu"]:
        assert outcome(optimized, where) == outcome(reads, where)
        assert dict(utils.counters["graph_break"]) == {}


def reads_within(x):
    with torch.device("meta"):
        inside = torch.get_default_device()
    return inside, torch.get_default_device(), x + 1


def test_a_device_that_the_frame_has_entered_comes_first():
    optimized = godynamo.optimize(reads_within)
    for where in [None, "cpu", "meta"]:
        assert outcome(optimized, where) == outcome(reads_within, where)
        assert where is not None or dict(utils.counters["graph_break"]) == {}


def checked(x):
    d = torch.distributions.Normal(x, x.exp())  # torch's code reads whether all scales are positive
    return d.mean + 1, d.log_prob(x)


@pytest.mark.usefixtures("unpatched_torch")
def test_values_are_foreseen_under_the_default_device():
    torch.set_default_device("cpu")
    try:
        optimized = godynamo.optimize(checked, backend="aot_eager")
        for x in (X, X + 1, X):
            assert facts(optimized(x)) == facts(checked(x))
        assert dict(utils.counters["graph_break"]) == {}
        with pytest.raises(ValueError, match="Expected parameter loc"):
            optimized(X * float("nan"))
    finally:
        torch.set_default_device(None)


def test_a_model_is_one_graph_a_device():
    model = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.3), nn.TransformerEncoderLayer(6, 2, 12, batch_first=True))
    optimized = godynamo.optimize(model)
    for where in (None, "cpu", lambda: torch.device("cpu"), "cpu"):
        for _ in range(2):
            assert outcome(lambda x: optimized(x[None]), where) == outcome(lambda x: model(x[None]), where)
    assert utils.counters["stats"]["unique_graphs"] == 2
    assert not utils.counters["graph_break"]


def test_two_devices_one_in_the_other():
    f = godynamo.optimize(ones)
    for _ in range(2):
        with under("meta"), torch.device("cpu"):
            assert f(X)[1].type == "cpu"
        with under("cpu"), torch.device("meta"):
            assert f(X)[1].type == "meta"


def test_the_default_dtype_is_guarded_where_no_tensor_is():
    def f(n):
        z = torch.zeros(n)
        return z.dtype, str(z.dtype), z.sum()

    g = godynamo.optimize(f)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        try:
            assert g(2) == f(2)
            assert g(2)[2].dtype == dtype
        finally:
            torch.set_default_dtype(torch.float32)


def one_device(x):
    with torch.device("meta") as device:
        y, z = torch.ones(3), torch.tensor([1, 2])
    return y.device, z.device, torch.ones(3).device, torch.zeros_like(x), device, x + 1


def the_device_of_an_argument(x):
    with x.device:
        return torch.arange(3) + x


def a_device_in_another(x):
    with torch.device("meta"):
        with torch.device("cpu"):
            y = torch.arange(3) + x
        z = torch.rand(2)
    return y, z.device, torch.arange(2, device="cpu")


def a_device_and_an_exception(x):
    try:
        with torch.device("meta"):
            x.reshape(5)
    except RuntimeError as error:
        return torch.ones(2), str(error)


def a_break_under_a_device(x):
    with torch.device("cpu"):
        y = torch.ones(3)
        godynamo.graph_break()
        return torch.ones(3) + y + x


def a_change_under_a_device(x):  # the graph breaks before clone(), and the device is entered natively
    with torch.device("cpu"):
        x.mul_(0.5)
        return x.clone(), torch.ones(3)


@pytest.mark.parametrize(
    ("fn", "breaks"),
    [
        (one_device, 0),
        (the_device_of_an_argument, 0),
        (a_device_in_another, 0),
        (a_device_and_an_exception, 0),
        (a_break_under_a_device, None),
        (a_change_under_a_device, None),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inline"])
def test_a_device_as_a_context_manager(fn, breaks, backend):
    godynamo.reset()
    utils.counters.clear()
    optimized = godynamo.optimize(fn) if backend == "inline" else godynamo.optimize(fn, backend=backend)
    for _ in range(2):
        assert str(optimized(torch.ones(3))) == str(fn(torch.ones(3)))
        assert torch._C._len_torch_function_stack() == 0
    if breaks is not None:
        assert sum(utils.counters["graph_break"].values()) == breaks


def backward_raises(x):
    with torch.device("cpu"):
        x.float().mean().backward(retain_graph=True)


def backward_raises_in_a_mode(x):
    with Doubles():
        y = torch.ones(2)
        (x + y.sum()).mean().backward()


@pytest.mark.parametrize("fn", [backward_raises, backward_raises_in_a_mode])
def test_an_operation_that_raises_in_a_block_leaves_the_mode_once(fn):
    optimized = godynamo.optimize(fn)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="does not require grad") as expected:
            fn(X)
        with pytest.raises(RuntimeError, match="does not require grad") as found:
            optimized(X)
        assert found.value.args == expected.value.args and found.value.__context__ is None
    assert torch._C._len_torch_function_stack() == 0
    x = X.clone().requires_grad_()
    optimized(x)
    assert x.grad is not None
