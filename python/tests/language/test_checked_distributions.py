"""Distributions check their parameters and values. The graph predicts that these are valid, and each call checks it."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import distributions as D

import godynamo
from godynamo import _C, utils
from harness.capture import counted
from harness.cases import reasons

pytestmark = pytest.mark.usefixtures("unpatched_torch")

torch.manual_seed(0)
policy = torch.nn.Linear(3, 3)
log: list[Any] = []


class Squashed(D.TransformedDistribution):
    """A distribution of the program, as programs for reinforcement learning have."""

    def __init__(self, loc, scale):
        self.loc = loc
        super().__init__(D.Normal(loc, scale), [D.TanhTransform(cache_size=1)])

    @property
    def mode(self):
        return self.loc.tanh()


def categorical(x):
    d = D.Categorical(logits=policy(x))
    action = d.sample()
    return action, d.log_prob(action), d.entropy()


def gaussian(x):
    d = D.Normal(policy(x), F.softplus(policy(x)))
    action = d.rsample()
    return action, d.log_prob(action).sum(-1), d.entropy().mean()


def independent(x):
    d = D.Independent(D.Normal(loc=policy(x), scale=F.softplus(policy(x))), 1)
    action = d.sample()
    return action, d.log_prob(action), D.kl_divergence(d, D.Independent(D.Normal(torch.zeros(3), torch.ones(3)), 1))


def squashed(x):
    d = Squashed(policy(x), 1.0)
    action = d.rsample()
    return action, d.log_prob(action), d.mode


def beta(x):
    d = D.Beta(F.softplus(policy(x)), F.softplus(policy(x)) + 1)
    value = d.rsample()
    return value, d.log_prob(value), d.mean


def multivariate(x):
    d = D.MultivariateNormal(policy(x), torch.eye(3) * 2)
    value = d.rsample()
    return value, d.log_prob(value), d.entropy()


def one_hot(x):
    d = D.OneHotCategorical(logits=policy(x))
    return d.sample(), d.log_prob(d.sample())


def mixture(x):
    d = D.MixtureSameFamily(D.Categorical(logits=policy(x)), D.Normal(policy(x), torch.ones(2, 3)))
    value = d.sample()
    return value, d.log_prob(value)


def relaxed(x):
    return (D.RelaxedOneHotCategorical(torch.tensor(0.5), logits=policy(x)).rsample(),)


def whole(gm, example_inputs):
    return gm.forward


BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
PROGRAMS = [categorical, gaussian, independent, squashed, beta, multivariate, one_hot, mixture, relaxed]


def run(fn, *args):
    torch.manual_seed(1)
    log.clear()
    policy.zero_grad()
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    try:
        results = fn(x, *args)
    except ValueError as error:
        lines = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
        return str(error), lines[1:], list(log)
    total = sum(r.sum() for r in results if r.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    grad = policy.weight.grad
    return [(str(r.dtype), r.tolist()) for r in results], grad is not None and grad.tolist(), list(log), torch.rand(1)


@BACKENDS
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_one_graph(fn, backend):
    run(fn)  # kl_divergence keeps which function computes it
    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(3):
        assert run(compiled) == run(fn)
    assert reasons() == [] and _C.counters()["internal_errors"] == 0
    assert utils.counters["frames"]["ok"] == 1 == len(godynamo.cache_entries(compiled))


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_graphs_that_are_traced(fn):
    compiled = godynamo.optimize(fn, backend="aot_eager")
    for _ in range(2):
        assert run(compiled)[2:] == run(fn)[2:]
    assert _C.counters()["internal_errors"] == 0


def scaled(x, scale):
    log.append("before")
    d = D.Normal(policy(x), policy(x) * 0 + scale)
    log.append("made")
    value = d.rsample()
    return value, d.log_prob(value)


def scored(x, value):
    d = D.Bernoulli(logits=policy(x))
    log.append("made")
    return d.log_prob(policy(x) * 0 + value), d.probs


def handled(x, scale):
    try:
        d = D.Normal(policy(x), policy(x) * 0 + scale)
    except ValueError as error:
        log.append(str(error))
        return (x * 2,)
    finally:
        log.append("finally")
    return (d.mean,)


def grown(x, scale):
    x.mul_(2)
    log.append(x.tolist())
    d = D.Normal(policy(x), F.dropout(policy(x), 0.5) * 0 + scale)
    log.append("made")
    return d.rsample(), d.mean


@BACKENDS
@pytest.mark.parametrize(
    "fn, values",
    [(scaled, (1.0, -1.0)), (grown, (1.0, -1.0)), (scored, (1.0, 0.5)), (handled, (1.0, -1.0))],
    ids=["scaled", "grown", "scored", "handled"],
)
def test_values_that_are_not_valid(fn, values, backend):
    good, bad = values
    compiled = godynamo.optimize(fn, backend=backend)
    for value in (good, good, bad, good, bad, bad, good, good):
        assert run(compiled, torch.tensor(value)) == run(fn, torch.tensor(value)), value
    assert _C.counters()["internal_errors"] == 0


@BACKENDS
def test_after_many_failures_the_check_breaks_the_graph(backend):
    compiled = godynamo.optimize(scaled, backend=backend)
    for i in range(24):
        value = torch.tensor(-1.0 if i % 2 else 1.0)
        assert run(compiled, value) == run(scaled, value)
    before = counted("translations")
    for i in range(4):
        run(compiled, torch.tensor(-1.0 if i % 2 else 1.0))
    assert counted("translations") == before


@BACKENDS
def test_a_failure_elsewhere_leaves_a_translation_alone(backend):
    compiled, other = godynamo.optimize(gaussian, backend=backend), godynamo.optimize(scaled, backend=backend)
    run(compiled)
    run(other, torch.tensor(-1.0))
    before = counted("translations")
    assert run(compiled) == run(gaussian)
    assert counted("translations") == before


def test_init_that_returns_a_value():
    class Odd(D.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)
            return 1

    def fn(x):
        return Odd(x).mean

    for f in (fn, godynamo.optimize(fn)):
        with pytest.raises(TypeError, match=r"__init__\(\) should return None, not 'int'"):
            f(torch.ones(3))


def bools(x):
    return bool(x.sum() > 0), bool(torch._is_all_true(x > -5)), x * 2


def test_bool_of_a_tensor_is_a_value_of_run_time():
    compiled = godynamo.optimize(bools)
    for sign in (1, -1, 1):
        x = torch.ones(3) * sign
        got, want = compiled(x), bools(x)
        assert got[:2] == want[:2] and type(got[0]) is bool and torch.equal(got[2], want[2])
    assert reasons() == []


class Positive:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        return bool(self.x.sum() > 0)


def test_a_special_method_may_return_such_a_bool():
    def fn(x):
        try:
            y = x * 2 if Positive(x) else x * 3
        except TypeError:
            y = x * 5
        return y, [bool(t > 0) for t in x], not Positive(x)

    compiled = godynamo.optimize(fn)
    for sign in (1, -1, 1):
        x = torch.ones(3) * sign
        got, want = compiled(x), fn(x)
        assert torch.equal(got[0], want[0]) and got[1:] == want[1:]


def test_bool_of_several_elements_raises():
    def fn(x):
        return bool(x), x * 2

    for f in (fn, godynamo.optimize(fn)):
        with pytest.raises(RuntimeError, match="ambiguous"):
            f(torch.ones(3))


def test_sizes_that_differ_are_joined_to_empty_ones():
    def fn(x):
        return x * 2, torch.Size() + x.shape, (1,) + x.shape[1:], torch.Size([2]) + torch.Size(x.shape)

    compiled = godynamo.optimize(fn)
    for n in (3, 4, 5):
        x = torch.ones(n, 2)
        assert compiled(x)[1:] == fn(x)[1:]
        assert [type(s) for s in compiled(x)[1:]] == [type(s) for s in fn(x)[1:]]
    assert reasons() == [] and counted("translations") <= 2
