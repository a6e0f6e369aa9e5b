"""Models (harness.models) forward and backward under every kind of backend."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import godynamo
from godynamo import _C, utils
from harness.models import (
    BACKENDS,
    CASES,
    LIGHT,
    Counting,
    SelfAttention,
    attention_case,
    close,
    make_backend,
    mask_for,
    mlp_case,
)

#: flag of an entry that runs the user's own code (golib.h)
RUN_ORIGINAL = 1


def run(model, args, kwargs):
    """Return outputs and gradients (inputs, parameters) of one forward and backward pass, with a fixed seed."""
    args = [a.clone().requires_grad_() for a in args]
    model.zero_grad(set_to_none=True)
    torch.manual_seed(7)
    outputs = model(*args, **kwargs)
    tensors = outputs if isinstance(outputs, tuple) else (outputs,)
    sum((t * torch.arange(t.shape[-1])).sum() for t in tensors).backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return outputs, [a.grad for a in args], grads


def assert_translated_once(optimized):
    """Check that one entry runs transformed code: correct results alone would not reveal a fallback to CPython."""
    assert [entry.flags & RUN_ORIGINAL for entry in godynamo.cache_entries(optimized)] == [0]
    counters = _C.counters()
    assert {name: counters[name] for name in ("translations", "translated", "internal_errors")} == {
        "translations": 1,
        "translated": 1,
        "internal_errors": 0,
    }


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_forward_and_backward_equal_eagers(case, backend, training):
    torch.manual_seed(0)
    model, args, kwargs = CASES[case]()
    if backend == "inductor":
        # Inductor draws other random numbers than eager by design (config.fallback_random), so dropout is off.
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            if isinstance(module, SelfAttention):
                module.dropout = 0.0
    model.train(training)
    expected = run(model, args, kwargs)
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(3):
        outputs, inputs, grads = run(optimized, args, kwargs)
        assert type(outputs) is type(expected[0])
        close(outputs, expected[0], backend)
        close(inputs, expected[1], backend, grads=True)
        close(grads, expected[2], backend, grads=True)
    assert not utils.counters["graph_break"]
    assert_translated_once(optimized)


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_train_and_eval_are_told_apart(case, backend):
    """Switching the mode back and forth takes at most one translation per mode, and dropout acts only in train()."""
    torch.manual_seed(0)
    model, args, kwargs = CASES[case]()
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for round_ in range(3):
        for training in (True, False):
            optimized.train(training)
            assert model.training is training
            expected = run(model, args, kwargs)
            actual = run(optimized, args, kwargs)
            close(actual[0], expected[0], backend)
            close(actual[2], expected[2], backend, grads=True)
        if round_ == 0:
            after_first = _C.counters()["translations"]
    assert _C.counters()["translations"] == after_first <= 2
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
def test_no_grad_inference_and_another_batch(backend):
    torch.manual_seed(0)
    model, args, kwargs = attention_case()
    model.eval()
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(2):
        for batch in (2, 3, 1, 4):
            x, mask = torch.randn(batch, 5, 32), mask_for(batch, 5)
            for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
                with mode():
                    actual, expected = optimized(x, attention_mask=mask)[0], model(x, attention_mask=mask)[0]
                    assert actual.requires_grad == expected.requires_grad
                    close(actual, expected, backend)
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
def test_other_arguments_take_another_path(backend):
    """A default, a keyword and an optional tensor: each changes the structure of the outputs."""
    torch.manual_seed(0)
    model, args, kwargs = attention_case(dropout=0.0)
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(2):
        for call in ({}, kwargs, {**kwargs, "output_attentions": True}, {"output_attentions": True}):
            actual, expected = optimized(*args, **call), model(*args, **call)
            assert len(actual) == len(expected)
            close(actual, expected, backend)
    with pytest.raises(ValueError, match=r"^Attention mask should be of size \(2, 1, 5, 5\)$"):
        optimized(*args, attention_mask=mask_for(3, 5))
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_a_training_loop_ends_with_eagers_weights(case, backend):
    """Ten steps of SGD: the parameters change in place, and the translated code must read the new values."""
    results = []
    for optimized in (False, True):
        torch.manual_seed(0)
        model, args, kwargs = CASES[case]()
        callable_ = godynamo.optimize(model, backend=make_backend(backend)) if optimized else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(10):
            torch.manual_seed(step)
            optimizer.zero_grad()
            outputs = callable_(*args, **kwargs)
            tensor = outputs[0] if isinstance(outputs, tuple) else outputs
            tensor.square().mean().backward()
            optimizer.step()
        results.append({name: p.detach().clone() for name, p in model.named_parameters()})
        if optimized:
            assert_translated_once(callable_)
    close(results[1], results[0], backend, grads=True)


def test_a_custom_backend_gets_one_graph_a_model():
    for case in CASES.values():
        model, args, kwargs = case()
        backend = Counting()
        godynamo.optimize(model, backend=backend, nopython=True)(*args, **kwargs)
        assert len(backend.graphs) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_over_a_model(backend):
    """The loss function is optimized; the model is one of its globals."""
    torch.manual_seed(0)
    model, (x,), kwargs = mlp_case()

    def loss(x, target):
        return F.mse_loss(model(x), target) + 0.1 * x.abs().mean()

    target = torch.randn(3, 16)
    expected = loss(x, target)
    expected.backward()
    expected_grads = {name: p.grad for name, p in model.named_parameters()}
    optimized = godynamo.optimize(loss, backend=make_backend(backend))
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        actual = optimized(x, target)
        actual.backward()
        close(actual, expected, backend)
        close({name: p.grad for name, p in model.named_parameters()}, expected_grads, backend, grads=True)
    assert_translated_once(optimized)
