"""Custom backends and torch's own that trace with AOTAutograd: recurrent layers, and leaves changed in place."""

from __future__ import annotations

import warnings

import pytest
import torch

import godynamo


def by_hand(gm, inputs):
    from functorch.compile import aot_module_simplified, make_boxed_func

    return aot_module_simplified(gm, inputs, fw_compiler=lambda g, _: make_boxed_func(g.forward))


def by_module(gm, inputs):
    from functorch.compile import aot_module, nop

    return aot_module(gm, nop)


def when_it_runs(gm, inputs):
    compiled = []

    def run(*args):
        compiled[:] = compiled or [by_hand(gm, list(args))]
        return compiled[0](*args)

    return run


class Net(torch.nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.first, self.layer = torch.nn.Linear(4, 4), kind(4, 5, **options)

    def forward(self, x):
        y, _ = self.layer(self.first(x).relu())
        return y.relu()


def step(call, model, x, seed):
    torch.manual_seed(seed)
    model.zero_grad()
    y = call(x)
    y.sum().backward()
    return y, model.first.weight.grad


DROPOUT = {"num_layers": 2, "dropout": 0.5}


@pytest.mark.parametrize("options", [{}, DROPOUT], ids=["plain", "dropout"])
@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
@pytest.mark.parametrize("backend", [by_hand, by_module, when_it_runs])
def test_recurrent_layers_are_not_taken_apart(backend, kind, options):
    model, x = Net(kind, **options), torch.randn(3, 2, 4)
    optimized = godynamo.optimize(model, backend=backend)
    for seed in range(3):
        wanted = step(model, model, x, seed)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            got = step(optimized, model, x, seed)
        assert all(torch.equal(a, b) for a, b in zip(got, wanted))
        assert not [w for w in told if "godynamo" in str(w.message)]


def changed_then_changed(w):
    with torch.no_grad():
        w.mul_(0.5)
    w.add_(1)
    return w * 2


def changed(make):
    def fn(w):
        make(w).add_(1)
        return w * 2

    return fn


def view_of_changed(w):
    with torch.no_grad():
        w.mul_(0.5)
    w.t()[0].add_(1)
    return w * 2


RAISES = {
    "changed under no_grad before": changed_then_changed,
    "a view, changed under no_grad before": view_of_changed,
    "itself": changed(lambda w: w),
    "view": changed(lambda w: w.view(-1)),
    "view of view": changed(lambda w: w.t()[0]),
    "contiguous": changed(torch.Tensor.contiguous),
    "to": changed(lambda w: w.to(torch.float32)),
    "a view made under no_grad": changed(torch.no_grad()(lambda w: w[0])),
    "one of several views": changed(lambda w: w.unbind()[0]),
}
FINE = {
    "clone": changed(torch.Tensor.clone),
    "product": changed(lambda w: (w * 2)[0]),
}


def outcome(fn, w):
    try:
        return fn(w).tolist(), w.tolist()
    except RuntimeError as error:
        return str(error)[:40], w.tolist()


@pytest.mark.parametrize("backend", ["aot_eager", by_hand])
@pytest.mark.parametrize("name", RAISES | FINE)
def test_a_leaf_that_may_not_be_changed(name, backend):
    fn = (RAISES | FINE)[name]
    optimized = godynamo.optimize(fn, backend=backend)
    views = (
        [lambda w: w[:2]] if backend == "aot_eager" else []
    )  # only AOTAutograd refuses to change these views under no_grad
    for of in (lambda w: w, *views):
        for _ in range(2):
            a, b = (torch.ones(3, 2).requires_grad_() for _ in range(2))
            wanted = outcome(lambda w: fn(of(w)), a)
            assert outcome(lambda w: optimized(of(w)), b) == wanted
            assert isinstance(wanted[0], str) == (name in RAISES)
