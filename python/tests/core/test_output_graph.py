"""The captured graph: its inputs, parameters, metadata, validity."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import check, entries, nb, nodes_of, unsupported


def adds(x, y):
    return x + y * 2


@pytest.mark.row("S002-67")
def test_one_placeholder_for_one_tensor() -> None:
    backend = nb()
    w = godynamo.optimize(adds, backend=backend)
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(w(x, x), x * 3) or torch.equal(w(x, x), adds(x, x))
    assert len(nodes_of(backend.graphs[0], "placeholder")) == 1 and len(backend.inputs[0]) == 1
    assert torch.equal(w(x, y), adds(x, y))
    assert len(backend) == 2 and len(nodes_of(backend.graphs[1], "placeholder")) == 2
    assert len(entries(w)) == 2
    assert torch.equal(w(y, y), adds(y, y)) and len(backend) == 2


@pytest.mark.row("S002-67")
def test_two_tensors_first_then_the_same_twice() -> None:
    w = godynamo.optimize(mutating, backend=nb())
    x, y = torch.ones(3), torch.ones(3)
    assert w(x, y).tolist() == [3.0] * 3
    z = torch.ones(3)
    assert w(z, z).tolist() == [4.0] * 3, "an aliased input is not served by the entry of two tensors"


def mutating(x, y):
    x.add_(1)
    return x + y


@pytest.mark.row("S002-67")
def test_a_tensor_in_a_container_and_as_argument_is_one_input() -> None:
    backend = check(lambda x, items: x + items[0], t := torch.randn(3), [t])
    assert len(nodes_of(backend.graphs[0], "placeholder")) == 1


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        self.register_buffer("shift", torch.tensor([10.0, 20.0]))

    def forward(self, x):
        return x * self.weight + self.shift


@pytest.mark.row("S002-68")
@pytest.mark.parametrize("backend", ["eager", "recording"])
def test_parameters_are_shared_not_copied(backend: str) -> None:
    module = Scale()
    recorder = nb()
    f = godynamo.optimize(module, backend="eager" if backend == "eager" else recorder)
    x = torch.ones(2)
    assert f(x).tolist() == [12.0, 23.0]
    with torch.no_grad():
        module.weight.mul_(10)
        module.shift.zero_()
    assert f(x).tolist() == [20.0, 30.0]
    with torch.no_grad():
        assert f(x).tolist() == [20.0, 30.0]
    module.weight = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    assert f(x).tolist() == [1.0, 1.0], "a parameter that was replaced"


@pytest.mark.row("S002-68")
def test_gradients_reach_the_parameters() -> None:
    module = Scale()
    f = godynamo.optimize(module, backend=nb())
    f(torch.ones(2)).sum().backward()
    assert module.weight.grad is not None and module.weight.grad.tolist() == [1.0, 1.0]


@pytest.mark.row("S002-68")
def test_parameters_are_reachable_from_the_graph() -> None:
    module = Scale()
    backend = nb()
    godynamo.optimize(module, backend=backend)(torch.ones(2))
    gm = backend.graphs[0]
    held = [t for t in (*backend.inputs[0], *gm.parameters(), *gm.buffers()) if t is module.weight or t is module.shift]
    assert len(held) == 2


@pytest.mark.row("S002-69")
def test_nodes_know_the_users_line() -> None:
    def f(x):
        y = x + 1
        return helper(y)

    def helper(y):
        return y.relu()

    backend = check(f, torch.randn(3))
    add, relu = (n for n in backend.graphs[0].graph.nodes if n.op.startswith("call"))
    first = f.__code__.co_firstlineno
    assert add.stack_trace and f'{__file__}", line {first + 1}' in add.stack_trace
    assert f"line {helper.__code__.co_firstlineno + 1}" in relu.stack_trace and "helper" in relu.stack_trace
    assert f"line {first + 2}" in relu.stack_trace, "and the line it was called from"


@pytest.mark.row("S002-69")
def test_inputs_have_an_example_value() -> None:
    backend = check(lambda x, y: x @ y, torch.randn(2, 3), torch.randn(3, 4))
    shapes = []
    for node in nodes_of(backend.graphs[0], "placeholder"):
        example = node.meta.get("example_value", node.meta.get("val"))
        assert example is not None
        shapes.append(tuple(example.shape))
    assert shapes == [(2, 3), (3, 4)]


PROGRAMS = {
    "chain": (lambda x: (x + 1).relu().sum(), (torch.randn(3),)),
    "kwargs": (lambda x: torch.sum(x, dim=0, keepdim=True), (torch.randn(3, 2),)),
    "containers": (lambda x: torch.cat([x, x * 2], dim=-1), (torch.randn(2, 3),)),
    "index": (lambda x: x[0, 1:, None] + x[..., 0].sum(), (torch.randn(3, 4),)),
    "constants": (lambda x: torch.full((2,), 3.5, dtype=torch.float64) + x.sum(), (torch.randn(2),)),
    "split": (lambda x: unsupported(x.sin()).cos(), (torch.randn(2),)),
    "functional": (lambda x: torch.nn.functional.softmax(x, dim=-1), (torch.randn(2, 3),)),
    "outputs": (lambda x: {"a": x + 1, "b": [x * 2, x]}, (torch.randn(2),)),
    "operators": (lambda x: operator.neg(x) ** 2 // 1 % 3, (torch.randn(2),)),
    "keyword names": (lambda x: {"class": x.exp(), "def": torch.abs(x)}, (torch.randn(2),)),
}


@pytest.mark.row("S002-70")
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_graphs_lint_recompile_and_pickle(name: str) -> None:
    fn, args = PROGRAMS[name]
    backend = check(fn, *args)
    assert len(backend) >= 1
    for gm, inputs in zip(backend.graphs, backend.inputs, strict=True):
        expected = gm(*inputs)
        assert isinstance(expected, tuple)
        gm.graph.lint()
        gm.recompile()
        assert same(gm(*inputs), expected)
        copied = pickle.loads(pickle.dumps(gm))
        assert same(copied(*inputs), expected)


def same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.row("S002-70")
def test_a_graph_can_be_edited_by_the_backend() -> None:
    def swaps(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.target is operator.add:
                node.target = operator.sub
        gm.graph.lint()
        gm.recompile()
        return gm.forward

    f = godynamo.optimize(lambda x: x + 1, backend=swaps)
    x = torch.randn(3)
    assert torch.equal(f(x), x - 1)
