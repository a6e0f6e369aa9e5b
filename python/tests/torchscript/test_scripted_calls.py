"""Methods of scripted and traced modules are operations of the graph, with the effects of the code."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import _C, utils
from harness.capture import counted
from harness.cases import reasons

with warnings.catch_warnings():
    warnings.simplefilter("ignore")

    class Scaled(nn.Module):
        def __init__(self, k: int = 3):
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.register_buffer("shift", torch.ones(3))
            self.k = k

        def forward(self, x, scale: float = 2.0):
            return self.inner(x) * self.k * scale + self.shift

    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.norm(x)), x * 2

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0

        def forward(self, x):
            self.n += 1
            return x * self.n

    class Prints(nn.Module):
        def forward(self, x):
            print("called")
            return x * 2

    class Same(nn.Module):
        def forward(self, x):
            return x

    class InPlace(nn.Module):
        def forward(self, x):
            return x.add_(1) * 2

    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = False

        def forward(self, x):
            if self.wide:
                return torch.cat([x, x], 1)
            return x * 2

    class Asks(nn.Module):
        def forward(self, x):
            if bool(x.sum() > 0):
                return x * 2
            return x * 3

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.scripted, self.own = torch.jit.script(Scaled()), nn.Linear(3, 3)

        def forward(self, x):
            return self.own(self.scripted(x)).relu()

    torch.manual_seed(0)
    scripted = torch.jit.script(Scaled())
    traced = torch.jit.trace(Scaled(), torch.ones(2, 3))
    normed = torch.jit.script(Normed())
    counts, prints = torch.jit.script(Counts()), torch.jit.script(Prints())
    same, in_place, asks = torch.jit.script(Same()), torch.jit.script(InPlace()), torch.jit.script(Asks())
    blocks = nn.Sequential(Block(), Block(), Block())


def one(x):
    return scripted(x + 1) * 2


def keywords(x):
    return scripted(x, scale=3.0) + scripted(x, 4.0)


def of_a_trace(x):
    return traced(x + 1).relu()


def in_modules(x):
    return blocks(x)


def shapes(x):
    y = scripted(x)
    return y.reshape(-1)[: y.shape[0] + y.dim()] + (1 if y.requires_grad else 2)


def without_gradients(x):
    with torch.no_grad():
        y = scripted(x)
    return x * (1 if y.requires_grad else 2)


def several(x):
    a, b = normed(x)
    return a + b


def fails(x):
    try:
        return scripted(x[:, :2])
    except RuntimeError as error:
        return x + len(str(error).splitlines()[0])


def handled(x):
    try:
        y = scripted(x)
    finally:
        x = x + 1
    return y + x


PARAMETERS = [*scripted.parameters(), *traced.parameters(), *blocks.parameters()]


def run(fn, *more: Any):
    torch.manual_seed(0)
    for p in PARAMETERS:
        p.grad = None
    x = torch.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    y = fn(x, *more)
    y.sum().backward()
    grads = [None if p.grad is None else p.grad.tolist() for p in (x, *PARAMETERS)]
    return y.tolist(), y.requires_grad, grads, torch.rand(1).item()


def settled(fn):
    """Run a function until TorchScript has optimized its code, after which its results stay the same."""
    for _ in range(4):
        run(fn)


@pytest.mark.parametrize(
    "fn", [one, keywords, of_a_trace, in_modules, shapes, without_gradients, several, handled], ids=lambda f: f.__name__
)
def test_one_graph(fn):
    settled(fn)
    compiled = godynamo.optimize(fn)
    for training in (True, True, False, True):
        normed.train(training)
        assert run(compiled) == run(fn)
    assert reasons() == [] and _C.counters()["internal_errors"] == 0


def test_statistics_of_a_scripted_module_change_as_in_eager_mode():
    states = []
    for f in (several, godynamo.optimize(several)):
        normed.norm.running_mean.zero_()
        normed.norm.running_var.fill_(1)
        normed.norm.num_batches_tracked.zero_()
        for _ in range(3):
            run(f)
        states.append([b.tolist() for b in normed.buffers()])
    assert states[0] == states[1]


@pytest.mark.parametrize("module", [counts, prints, same, in_place, asks], ids=lambda m: m.original_name)
def test_effects_and_unknown_results_break_the_graph(module, capfd):
    def fn(x):
        y = x * 1
        z = module(y)
        return y * 3 + z, z is y

    results = []
    for f in (fn, godynamo.optimize(fn)):
        counts.n = 0
        x = torch.ones(2, 3)
        results.append([(f(x)[0].tolist(), f(x)[1]) for _ in range(3)])
        results[-1].append((counts.n, capfd.readouterr().out))
    assert results[0] == results[1]
    assert reasons()


def test_an_exception_after_a_call_does_not_repeat_it():
    def fn(x, n):
        try:
            a, _ = normed(x)
            return a.reshape(n)
        except RuntimeError:
            return x

    states = []
    for f in (fn, godynamo.optimize(fn)):
        normed.norm.num_batches_tracked.zero_()
        torch.manual_seed(0)
        for n in (12, 5, 12):
            f(torch.ones(4, 3), n)
        states.append((normed.norm.num_batches_tracked.item(), torch.rand(1).item()))
    assert states[0] == states[1]


def test_a_wrong_call_raises_torchs_error():
    compiled = godynamo.optimize(fails)
    assert run(compiled) == run(fails)
    for f in (lambda x: scripted(x, 1, 2, 3), godynamo.optimize(lambda x: scripted(x, 1, 2, 3))):
        with pytest.raises(RuntimeError, match="expected at most"):
            f(torch.ones(2, 3))


def test_a_result_that_looks_different_is_noticed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.script(Branches())

    def fn(x):
        y = module(x)
        return y.reshape(-1)[: y.shape[1]].sum(), y.shape

    compiled = godynamo.optimize(fn)
    x = torch.linspace(0, 1, 6).reshape(2, 3)
    for wide in (False, True, True, False, True, False, False):
        module.wide = wide
        got, want = compiled(x), fn(x)
        assert torch.equal(got[0], want[0]) and got[1] == want[1]
    before = counted("translations")
    for _ in range(3):
        compiled(x)
    assert counted("translations") == before
    for i in range(24):
        module.wide = bool(i % 2)
        assert compiled(x)[1] == fn(x)[1]


def test_frozen_parameters_are_noticed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.script(Scaled())

    def fn(x):
        y = module(x)
        return y * (1 if y.requires_grad else 2)

    compiled = godynamo.optimize(fn)
    x = torch.ones(2, 3)
    for on in (True, False, True):
        for p in module.parameters():
            p.requires_grad_(on)
        got, want = compiled(x), fn(x)
        assert torch.equal(got, want) and got.requires_grad == want.requires_grad


def test_another_module_in_the_same_place():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modules = [torch.jit.script(Scaled(k)) for k in (1, 2)] + [torch.jit.script(Normed())]

    def fn(x, module):
        y = module(x)
        return (y[0] if isinstance(y, tuple) else y) + 1

    compiled = godynamo.optimize(fn)
    for module in (*modules, *modules):
        module.eval()
        x = torch.ones(2, 3)
        assert torch.allclose(compiled(x, module), fn(x, module))


class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, layer):
        ctx.layer = layer
        return layer(x) / 2

    @staticmethod
    def backward(ctx, g):
        return g @ ctx.layer.weight / 2, None


class Applies(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(3, 3)

    def forward(self, x):
        return Halves.apply(x, self.own).relu()


def test_equal_layers_pass_their_own_objects():
    layers = nn.Sequential(*(Applies() for _ in range(4)))

    def fn(x):
        return layers(x)

    assert run(godynamo.optimize(fn)) == run(fn)
    assert reasons() == [] and utils.counters["frames"]["ok"] == 1


def test_training_steps():
    losses = []
    for optimized in (False, True):
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = nn.Sequential(torch.jit.script(Scaled()), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run_step = godynamo.optimize(step) if optimized else step
        losses.append([run_step(torch.ones(2, 3)).item() for _ in range(5)])
    assert losses[0] == losses[1]


def test_whole_graphs_break():
    settled(one)
    assert run(godynamo.optimize(one, backend="aot_eager"))[0] == run(one)[0]
    assert reasons()
