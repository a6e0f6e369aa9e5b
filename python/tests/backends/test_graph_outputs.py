"""Graphs that return sequences: a backend of any kind sees flat tuples of tensors, the program sees its own types."""

from __future__ import annotations

import pytest
import torch

import godynamo
from godynamo import utils
from godynamo.testing import CompileCounterWithBackend

X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))


def aliased(x):
    r = x.sin().max(0)
    return r, r[0], r.values, r.indices, r


def nested_in_containers(x):
    return [x.sin().max(0), {"a": x.split(2)}, (x.chunk(2), x.topk(2, dim=0))]


def changed_in_place(x):
    parts = x.detach().cos().split([1, 3])
    parts[0].add_(1)
    return parts


def kept_over_a_split(x):
    r = x.exp().sort(dim=1)
    print("", end="")
    return r.values + r.indices, r


def written_to_out(x):
    a, b = torch.empty(6), torch.empty(6, dtype=torch.long)
    r = torch.max(x.detach(), 0, out=(a, b))
    return r, r[0] is a, r[1] is b


class Doubles(torch.autograd.Function):
    """Returns a tensor, None and a tensor."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, None, x + 1

    @staticmethod
    def backward(ctx, a, _, b):
        return a * 2 + b


PROGRAMS = {
    "max": lambda x: x.max(0),
    "split": lambda x: x.split(1),
    "unique": lambda x: torch.unique(x.detach().round(), return_inverse=True, return_counts=True),
    "topk": lambda x: x.topk(2),
    "histogramdd": lambda x: torch.histogramdd(x.detach()[:, :2], bins=[2, 2]),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[:, 0], indexing="ij"),
    "lu": lambda x: torch.linalg.lu(x.detach()),
    "svd": lambda x: torch.linalg.svd(x.detach()),
    "foreach": lambda x: torch._foreach_add([x, x.cos()], 1),
    "var_mean": lambda x: torch.var_mean(x, 0),
    "tensor_split": lambda x: torch.tensor_split(x, [1, 3]),
    "max_pool": lambda x: torch.nn.functional.max_pool1d(x[None], 2, return_indices=True),
    "function": lambda x: Doubles.apply(x.sin()),
    "aliased": aliased,
    "in containers": nested_in_containers,
    "in place": changed_in_place,
    "over a split": kept_over_a_split,
    "out=": written_to_out,
}


def whole(gm, example_inputs):
    """A backend that accepts only a tuple of nodes as the graph's output, and checks that the results are tensors."""
    (output,) = [n for n in gm.graph.nodes if n.op == "output"]
    assert type(output.args[0]) is tuple
    assert all(isinstance(n, torch.fx.Node) for n in output.args[0])

    def run(*inputs):
        results = gm(*inputs)
        assert all(isinstance(r, torch.Tensor) for r in results)
        return results

    return run


def facts(v):
    """Return a value as plain data that also records its types and which of its items are the same object."""
    if isinstance(v, torch.Tensor):
        return tuple(v.shape), v.stride(), v.requires_grad, v.dtype, v.detach().double().nan_to_num().tolist()
    if isinstance(v, (tuple, list)):
        return type(v), [facts(i) for i in v], [[a is b for a in v] for b in v]
    return {k: facts(i) for k, i in v.items()} if isinstance(v, dict) else v


def gradient(f, x):
    """Return the result of f, and the gradient of x from all tensors in the result."""
    x = x.clone().requires_grad_()
    result = f(x)
    leaves = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    if leaves:
        torch.autograd.backward(leaves, [torch.full_like(t, 1.5) for t in leaves])
    return facts(result), None if x.grad is None else facts(x.grad)


@pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["eager", "whole", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sequences_are_eagers(name, backend):
    f = PROGRAMS[name]
    g = godynamo.optimize(f, backend=backend)
    for _ in range(2):
        assert facts(g(X.clone())) == facts(f(X.clone()))
    assert gradient(g, X) == gradient(f, X)
    assert not utils.counters["stats"]["graphs_that_raise"]


def test_inductor_gives_sequences_too():
    def f(x):
        r = x.sin().max(0)
        return r, x.split(2), [x.cos().topk(2, dim=0)], r.values

    got, want = godynamo.optimize(f, backend="inductor")(X), f(X)
    torch.testing.assert_close(got, want)
    assert [type(v) for v in got] == [type(v) for v in want]
    assert got[0].values is got[3]
    assert type(got[2][0]) is torch.return_types.topk


def test_an_element_that_the_program_reads_is_no_further_node():
    counter = CompileCounterWithBackend("eager")
    godynamo.optimize(aliased, backend=counter)(X)
    nodes = [n for n in counter.graphs[0].graph.nodes if n.op == "call_function" and n.target is not torch.sin]
    assert len([n for n in nodes if n.args and getattr(n.args[0], "name", "") == "max_1"]) <= 4
    (output,) = [n for n in counter.graphs[0].graph.nodes if n.op == "output"]
    assert len(output.args[0]) == 2
