"""``backward()`` of a number calls torch's engine directly; its exceptions and everything else are torch's."""

from __future__ import annotations

import gc
import traceback
import warnings
import weakref

import pytest
import torch

import godynamo
from godynamo._called import gradients

pytestmark = pytest.mark.usefixtures("fresh")


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second time") from None


@pytest.mark.parametrize("raiser", ["the engine", "a Function"])
def test_an_exception_in_backward_has_the_users_traceback(raiser):
    p = torch.nn.Parameter(torch.ones(3))

    def step():
        y = (p * 2 if raiser == "the engine" else Raises.apply(p)).sum()
        y.backward()
        y.backward()

    def names(f):
        with pytest.raises((RuntimeError, ValueError), match="second time") as caught:
            f()
        error = caught.value
        context = type(error), type(error.__context__), type(error.__cause__), error.__suppress_context__
        return context, [(frame.name, frame.line) for frame in traceback.extract_tb(error.__traceback__)][1:]

    assert names(godynamo.optimize(step)) == names(step)


def test_an_exception_of_backward_is_in_no_cycle():
    class Own(ValueError):
        pass

    class RaisesOwn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise Own

    p = torch.nn.Parameter(torch.ones(3))

    def dies(backward):
        gc.collect()
        gc.disable()
        try:
            try:
                backward(RaisesOwn.apply(p).sum())
            except Own as error:
                ref = weakref.ref(error)
            return ref() is None
        finally:
            gc.enable()

    # called as captured code calls it: the graph breaks at a pass that raises
    assert dies(gradients.backward) and dies(torch.Tensor.backward)


def test_an_exception_in_anomaly_mode_is_reported_once():
    p = torch.nn.Parameter(torch.ones(3))

    def step():
        y = Raises.apply(p).sum()
        y.backward()

    def reports(f):
        with torch.autograd.detect_anomaly(check_nan=False), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with pytest.raises(ValueError, match="second time"):
                f()
        return [str(w.message).splitlines()[0] for w in found]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert reports(godynamo.optimize(step)) == reports(step) != []


def test_backward_of_a_number_calls_torchs_functions_if_a_program_has_replaced_them(monkeypatch):
    p, seen = torch.nn.Parameter(torch.ones(3)), []

    @godynamo.optimize
    def step():
        p.grad = None
        (p * 2).sum().backward()

    step()
    step()
    original = torch.autograd.backward

    def replaced(*args, **kwargs):
        seen.append(len(args))
        return original(*args, **kwargs)

    monkeypatch.setattr(torch.autograd, "backward", replaced)
    step()
    assert seen == [4] and p.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("f", [
    lambda p: p.sum(0),  # not a number
    lambda p: p.detach().sum(),  # no gradients
    lambda p: (p.sum() * 1j),  # complex
    lambda p: p.sum().double(),
    lambda p: p[:1],
])  # fmt: skip
def test_backward_of_other_tensors(f):
    def step(p):
        f(p).backward()
        return p.grad

    def outcome(step):
        p = torch.arange(6.0).reshape(2, 3).requires_grad_() if f(torch.ones(2, 3)).numel() == 3 else torch.ones(3)
        p.requires_grad_()
        try:
            return step(p).tolist()
        except RuntimeError as error:
            return str(error)

    compiled = godynamo.optimize(step)
    for _ in range(2):
        assert outcome(compiled) == outcome(step)
