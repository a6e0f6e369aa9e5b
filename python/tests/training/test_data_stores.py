"""Stores to tensor.data and tensor.requires_grad: operations of the graph, with eager's results and exceptions."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
import torch

import godynamo

pytestmark = pytest.mark.usefixtures("fresh")


def plain(x, y):
    x.data = y
    return x + 1, x.shape, x.requires_grad, x.stride(), x.dtype


def shares_memory_afterwards(x, y):
    before = x[0].detach()
    x.data = y
    y.add_(1)
    return x + 1, before


def twice(x, y):
    x.data = y
    x.data = x.data * 2
    return x + y


def another_dtype(x, y):
    x.data = y.to(torch.float64)
    return x.dtype, x * 2


def of_a_result(x, y):
    z = x * 3
    z.data = y
    return z, z.requires_grad


def transposed(x, y):
    x.data = x.data.t()
    return x, x.is_contiguous(), x.stride()


def the_old_memory(x, y):
    old = x.data
    x.data = y
    old.add_(5)
    return x, old


def of_a_number(x, y):
    n = torch.tensor(3)
    n.data = torch.tensor(5)
    return x * n.item()


def normalized(x, y):
    with torch.no_grad():
        x.data = x.data / x.data.norm()
    return x @ y.t()


def switched_on(x, y):
    x.requires_grad = True
    return (x * 2).sum()


def switched_off(x, y):
    z = x * 2
    z.requires_grad = False  # raises if x requires gradients
    return z


def handled(x, y):
    try:
        x.requires_grad = True
        x.data = torch.ones(3, dtype=torch.int64)
    except RuntimeError as e:
        return str(e), x.dtype, x.requires_grad
    return x * 2, x.dtype


def no_bool(x, y):
    x.requires_grad = 1
    return x


def no_tensor(x, y):
    x.data = 1
    return x


def then_backward(x, y):
    z = x.detach()
    z.requires_grad = True
    (z * z).sum().backward()
    return z.grad


ONE_GRAPH = [
    *(plain, shares_memory_afterwards, twice, another_dtype, of_a_result, transposed, the_old_memory, of_a_number),
    *(normalized, switched_on, switched_off),
]
TENSORS = {
    "tensor": lambda: torch.rand(2, 3),
    "leaf": lambda: torch.rand(2, 3, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.rand(2, 3)),
}


def seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (
            value.tolist(),
            value.shape,
            value.stride(),
            value.dtype,
            value.requires_grad,
            value.is_leaf,
            value._version,
        )
    return tuple(map(seen, value)) if type(value) is tuple else value


def outcome(f, x, y):
    try:
        result = seen(f(x, y))
    except Exception as e:
        result = type(e), str(e), [(frame.name, frame.line) for frame in traceback.extract_tb(e.__traceback__)][1:]
    return result, seen(x), seen(y)


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("f", [*ONE_GRAPH, handled, no_bool, no_tensor, then_backward], ids=lambda f: f.__name__)
def test_stores_are_eagers(f, kind):
    compiled = godynamo.optimize(f)
    for inputs in ("two", "two", "one", "views", "two"):
        runs = []
        for call in (f, compiled):
            torch.manual_seed(1)
            x = TENSORS[kind]()
            y = {"two": torch.arange(12.0).view(4, 3), "one": x, "views": x.detach()[:1]}[inputs]
            runs.append(outcome(call, x, y))
        assert runs[0] == runs[1], inputs


@pytest.mark.parametrize("f", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(f):
    explained = godynamo.explain(f)(torch.rand(2, 3), torch.rand(4, 3))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_frozen_parameters_in_a_training_step():
    def made():
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            for p in model[0].parameters():
                p.requires_grad = False
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (model, step), (own, own_step) = made(), made()
    compiled = godynamo.optimize(own_step)
    for _ in range(5):
        x = torch.rand(2, 3)
        assert seen(compiled(x)) == seen(step(x))
        assert [seen(p) for p in own.parameters()] == [seen(p) for p in model.parameters()]
    explained = godynamo.explain(step)(torch.rand(2, 3))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_whole_graphs_break():
    """A compiler's graph cannot give a tensor other memory."""
    compiled = godynamo.optimize(plain, backend=godynamo.testing.CompileCounter())
    x, y = torch.rand(2, 3), torch.rand(4, 3)
    assert outcome(compiled, x.clone(), y) == outcome(plain, x.clone(), y)
    (reason,) = godynamo.utils.counters["graph_break"]
    assert "data of a tensor" in reason


def test_the_weight_of_a_module():
    """As in spectral norms that change the weight before each forward pass."""

    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(3, 3))
            self.u = torch.nn.Parameter(torch.rand(3), requires_grad=False)

        def forward(self, x):
            v = torch.nn.functional.normalize(self.weight.data.t() @ self.u.data, dim=0)
            self.u.data = torch.nn.functional.normalize(self.weight.data @ v, dim=0)
            return x @ (self.weight / self.u.dot(self.weight.mv(v)))

    def trained(wrap):
        torch.manual_seed(0)
        module = Normed()
        call, losses = wrap(module), []
        for _ in range(4):
            loss = call(torch.ones(2, 3)).sum()
            loss.backward()
            losses.append(loss.item())
        return losses, module.u.tolist(), module.weight.grad.tolist()

    assert trained(godynamo.optimize) == trained(lambda module: module)
    explained = godynamo.explain(Normed())(torch.ones(2, 3))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
