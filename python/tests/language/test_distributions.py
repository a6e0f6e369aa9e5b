"""torch.distributions inside captured functions: created, queried and drawn from, with eager's error texts."""

from __future__ import annotations

import pytest
import torch
from torch import distributions as D

import godynamo
from godynamo import utils

CASES = {
    "Normal": lambda x: D.Normal(x, 1.5),
    "Normal of a tensor's scale": lambda x: D.Normal(x, x.exp()),
    "LogNormal": lambda x: D.LogNormal(x, 1.0),
    "Laplace": lambda x: D.Laplace(x, 1.0),
    "Uniform": lambda x: D.Uniform(x, x + 1),
    "Exponential": lambda x: D.Exponential(x.exp()),
    "Gamma": lambda x: D.Gamma(x.exp(), 1.0),
    "Beta": lambda x: D.Beta(x.exp(), 2.0),
    "Bernoulli by logits": lambda x: D.Bernoulli(logits=x),
    "Bernoulli by probabilities": lambda x: D.Bernoulli(probs=x.sigmoid()),
    "Categorical by logits": lambda x: D.Categorical(logits=x),
    "Categorical by probabilities": lambda x: D.Categorical(probs=x.softmax(-1)),
    "Independent": lambda x: D.Independent(D.Normal(x, 1.0), 1),
    "Geometric": lambda x: D.Geometric(logits=x),
    "Poisson": lambda x: D.Poisson(x.exp()),
}


def outcome(fn, x):
    torch.manual_seed(0)
    try:
        return [(type(v), getattr(v, "dtype", None), str(v)) for v in fn(x)]
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", CASES)
def test_made_asked_and_drawn_from(name):
    made = CASES[name]

    def asked(x):
        d = made(x)
        return d.sample(), d.variance if not name.startswith("Categorical") else d.probs, d.batch_shape, d.event_shape

    def drawn(x):
        d = made(x)
        value = d.sample()
        return value, d.log_prob(value)  # whether a drawn value is in the distribution's support is unknown

    x = torch.randn(2, 3)
    for fn, graphs in ((asked, 1), (drawn, None)):
        for backend in ("eager", "aot_eager"):
            godynamo.reset()
            utils.counters.clear()
            optimized = godynamo.optimize(fn, backend=backend)
            assert [outcome(optimized, x) for _ in range(2)] == [outcome(fn, x)] * 2
            if graphs and backend == "eager":
                assert dict(utils.counters["graph_break"]) == {}


@pytest.mark.parametrize(
    "made", [lambda x: D.Normal(x, -1.0), lambda x: D.Bernoulli(probs=x + 9), lambda x: D.Exponential(-x.exp())]
)
def test_what_is_refused(made):
    def f(x):
        return (made(x).mean,)

    x = torch.randn(2)
    optimized = godynamo.optimize(f)
    assert [outcome(optimized, x) for _ in range(2)] == [outcome(f, x)] * 2


def test_a_parameter_read_from_the_class():
    def f(x):
        read = D.Bernoulli.probs
        return x + 1, read

    got, want = (fn(torch.ones(2))[1] for fn in (godynamo.optimize(f), f))
    assert (
        type(got) is type(want) and isinstance(got, property) and got.wrapped is want.wrapped
        if hasattr(want, "wrapped")
        else True
    )


def test_values_in_the_support_are_scored_in_one_graph():
    """A support that depends on parameters is read through a subclass of property."""
    scored = {
        "Categorical": lambda x: D.Categorical(logits=x).log_prob(torch.tensor([0, 2])),
        "Uniform": lambda x: D.Uniform(x, x + 1).log_prob(x + 0.5),
        "OneHotCategorical": lambda x: D.OneHotCategorical(logits=x).log_prob(torch.eye(3)[:2]),
        "Independent": lambda x: D.Independent(D.Normal(x, torch.ones_like(x)), 1).log_prob(x),
        "LogNormal": lambda x: D.LogNormal(x, 1.0).log_prob(x.exp()),
        "MixtureSameFamily": lambda x: D.MixtureSameFamily(
            D.Categorical(torch.ones(3)), D.Normal(x[0], torch.ones(3))
        ).log_prob(torch.tensor(0.5)),
    }
    x = torch.randn(2, 3)
    for name, fn in scored.items():
        godynamo.reset()
        utils.counters.clear()
        assert torch.equal(godynamo.optimize(fn)(x), fn(x)), name
        assert dict(utils.counters["graph_break"]) == {}, name


def test_a_value_outside_the_support():
    def fn(x, value):
        return D.Categorical(logits=x).log_prob(value)

    optimized, x = godynamo.optimize(fn), torch.randn(2, 3)
    for values in ([0, 1], [0, 7], [1, 2], [-1, 0]):
        assert outcome(lambda x, v=values: [optimized(x, torch.tensor(v))], x) == outcome(
            lambda x, v=values: [fn(x, torch.tensor(v))], x
        )
