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


def refused(x, y):
    x.data = y.to(torch.float32)
    x.data = torch.ones(3, dtype=torch.int64)  # raises if x requires gradients
    return x.dtype


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


def whole(gm, example_inputs):
    return gm.forward


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize(
    "f", [*ONE_GRAPH, handled, refused, no_bool, no_tensor, then_backward], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
def test_stores_are_eagers(f, kind, backend):
    compiled = godynamo.optimize(f, backend=backend)
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


def test_whole_graphs():
    """A whole graph takes the store, unless AOTAutograd traces it: traced tensors keep their memory."""
    for backend, broken in ((godynamo.testing.CompileCounter(), 0), ("aot_eager", 1)):
        godynamo.utils.counters.clear()
        compiled = godynamo.optimize(plain, backend=backend)
        x, y = torch.rand(2, 3), torch.rand(4, 3)
        assert outcome(compiled, x.clone(), y) == outcome(plain, x.clone(), y)
        reasons = godynamo.utils.counters["graph_break"]
        assert len(reasons) == broken and all("data of a tensor" in reason for reason in reasons)


def never_differentiated(x, y):
    y.requires_grad = False
    return (x - y).square().mean()


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("backend", ["counter", "aot_eager"])
def test_whole_graphs_take_stores_to_requires_grad(kind, backend):
    """A graph for AOTAutograd takes a store only if it changes nothing."""
    for f, broken in ((never_differentiated, 0), (switched_on, backend == "aot_eager")):
        godynamo.reset()
        godynamo.utils.counters.clear()
        compiled = godynamo.optimize(f, backend=godynamo.testing.CompileCounter() if backend == "counter" else backend)
        torch.manual_seed(1)
        x, y = TENSORS[kind](), torch.rand(2, 3)
        for _ in range(2):
            assert outcome(compiled, x, y) == outcome(f, x, y)
        assert len(godynamo.utils.counters["graph_break"]) == int(broken)


def stores_twice(x, y, log):
    x.mul_(2)
    log.append("first")
    x.data = y[:2] * x
    log.append("second")
    x.data = x.data[:1]
    return x @ y


def changes_afterwards(x, y, log):
    log.append("first")
    x.data = y
    x.add_(1)
    return x @ y


def in_a_block(x, y, log):
    x.data = y[:2] + 1
    try:
        return x @ y
    except RuntimeError:
        log.append(x.tolist())
        return x + x.numel()


@pytest.mark.parametrize("f", [stores_twice, changes_afterwards, in_a_block], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
def test_the_memory_is_put_back(f, backend):
    """If the graph raises, the user's code runs again, with the memory that the tensor had before."""
    compiled = godynamo.optimize(f, backend=backend)
    for fits in (True, False, True, False):
        runs = []
        for call in (f, compiled):
            torch.manual_seed(1)
            log, x, y = [], torch.rand(2, 3), torch.rand(3, 3) if fits else torch.rand(5, 3)
            old = x.data
            runs.append((outcome(lambda x, y, call=call, log=log: call(x, y, log), x, y), log, seen(old)))
        assert runs[0] == runs[1]


def test_passes_of_fx_keep_the_store():
    def backend(gm, example_inputs):
        gm.graph.eliminate_dead_code()
        gm.recompile()
        return gm

    x = torch.ones(2, 3)
    godynamo.optimize(stores, backend=backend)(x)
    assert x.tolist() == [[2.0] * 3] * 2


def stores(x):
    x.data = x + 1


def test_effects_around_stores_break_no_whole_graph():
    counter = godynamo.testing.CompileCounter()
    godynamo.optimize(stores_twice, backend=counter)(torch.rand(2, 3), torch.rand(3, 3), [])
    assert counter.frame_count == 1 and not godynamo.utils.counters["graph_break"]


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
