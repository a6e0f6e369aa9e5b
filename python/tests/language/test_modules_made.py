"""nn.Modules created inside captured code: torch's own Python code is inlined, unless it creates a parameter."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


class Holder(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n, self.act = n, Twice()
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return self.act(x) * self.n + self.shift


@cases
def called_at_once(x):
    return Holder(3)(x)


@cases
def changed_and_asked(x):
    m = Holder(3)
    m.eval()
    m.n, m.extra = 4, x
    del m.extra
    return m(x), m.training, hasattr(m, "extra"), [name for name, _ in m.named_children()], m.shift.shape


@cases
def containers(x):
    m = nn.Sequential(nn.ReLU(), nn.Identity(), nn.Flatten(0))
    return m(x), len(m), [type(child).__name__ for child in m]


@cases
def losses(x):
    return nn.MSELoss()(x, x * 2), nn.CrossEntropyLoss()(x[None], torch.tensor([1])), nn.Softmax(dim=0)(x)


@cases
def missing_attribute(x):
    m = Twice()
    try:
        m.nothing  # noqa: B018
    except AttributeError as e:
        return x + 1, str(e)


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_modules_made(case: Case):
    check(case)


def leaves(x):
    m = Holder(2)
    return m(x), m


def test_one_that_leaves():
    """A returned module behaves like any other."""
    x = torch.arange(4.0)
    for _ in range(2):
        value, made = godynamo.optimize(leaves)(x)
        want, other = leaves(x)
        assert torch.equal(value, want) and torch.equal(made(x), want)
        assert repr(made) == repr(other) and list(made.state_dict()) == list(other.state_dict())
        assert list(vars(made)) == list(vars(other))
        made.train(False)
        assert not made.act.training


def test_modules_are_made_where_torch_compile_has_been_at_work():
    def f(x):
        return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(x)

    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(2))
    # torch.compile has replaced nn.Module.__init__ by its own function, permanently.
    assert torch.nn.Module.__init__.__name__ == "patched_init"
    x = torch.tensor([-1.0, 0.5])
    explanation = godynamo.explain(f)(x)
    assert (explanation.graph_count, explanation.graph_break_count) == (1, 0)
    assert torch.equal(explanation.result, f(x))
