"""godynamo.export: one graph module with the function's argument structure, its guards, and torch's tools on it."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.utils import _pytree

import godynamo
from godynamo import exc

X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


def same(a, b):
    """Check that two results have the same structure and equal leaves."""
    leaves, spec = _pytree.tree_flatten(a)
    others, other_spec = _pytree.tree_flatten(b)
    assert spec == other_spec
    for x, y in zip(leaves, others, strict=True):
        assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y


def nested(x, d, *rest, k=2):
    y = x.sin() * k + d["a"]
    return {"y": y, "x": x, "n": (k, None, [y + rest[0], d["b"][0]])}


def test_arguments_and_result_keep_their_structure():
    d = {"a": X * 2, "b": [torch.ones(2)]}
    gm, guards = godynamo.export(nested)(X, d, X + 5, k=3)
    assert isinstance(gm, torch.fx.GraphModule)
    same(gm(X, d, X, k=3), nested(X, d, X, k=3))
    other = {"a": X - 1, "b": [torch.zeros(2)]}
    same(gm(X * 3, other, X, k=3), nested(X * 3, other, X, k=3))
    assert gm(X, d, X, k=3)["x"] is X
    text = "\n".join(map(str, guards))
    assert "k == 3" in text
    assert "___check_tensors(" in text


def test_a_module_keeps_its_parameters_and_buffers_under_their_names():
    m = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    reference = copy.deepcopy(m)
    e = godynamo.export(m)(X)
    names = {"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert set(e.graph_module.state_dict()) == names
    assert e.graph_module.get_parameter("0.weight") is m[0].weight
    reference(X)
    same(e.graph_module(X), reference(X))
    assert torch.equal(m[1].running_mean, reference[1].running_mean)
    e.graph_module(X).sum().backward()
    assert m[0].weight.grad is not None


def test_methods_and_tensors_outside():
    outside = torch.ones(3)

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 3)

        def twice(self, x):
            return self.lin(self.lin(x)) + outside, self.lin.bias

    m = M()
    e = godynamo.export(m.twice)(X)
    same(e.graph_module(X), m.twice(X))
    assert e.graph_module(X)[1] is m.lin.bias


def test_torchs_tools_take_the_graph_module(tmp_path):
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
    gm = godynamo.export(m)(X).graph_module
    program = torch.export.export(gm, (X,))
    same(program.module()(X), m(X))
    torch.export.save(program, tmp_path / "m.pt2")
    same(torch.export.load(tmp_path / "m.pt2").module()(X), m(X))
    same(torch.fx.Interpreter(gm).run(X), m(X))
    same(torch.compile(gm, backend="aot_eager")(X), m(X))
    same(copy.deepcopy(gm)(X), m(X))
    same(torch.jit.trace(gm, X)(X), m(X))
    same(torch.fx.symbolic_trace(m)(X), gm(X))


def test_a_graph_of_aten_operations():
    m = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU())
    gm = godynamo.export(m, aten_graph=True)(X).graph_module
    targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.addmm.default in targets
    assert all(isinstance(t, torch._ops.OpOverload) for t in targets)
    same(gm(X), m(X))
    table = torch._decomp.core_aten_decompositions()
    decomposed = godynamo.export(lambda x: torch.nn.functional.silu(x), aten_graph=True, decomposition_table=table)(X)
    assert "silu" not in decomposed.graph_module.code
    torch.testing.assert_close(decomposed.graph_module(X), torch.nn.functional.silu(X))
    with pytest.raises(AssertionError):
        godynamo.export(m, decomposition_table=table)


def test_what_is_not_one_graph_names_the_break():
    def split(x):
        y = x.sin()
        return y + y.sum().item()

    with pytest.raises(exc.Unsupported, match="item") as caught:
        godynamo.export(split)(X)
    assert caught.value.stack[0][0] == "split"
    with pytest.raises(exc.Unsupported, match="object"):
        godynamo.export(lambda x: (x + 1, object()))(X)


def test_inputs_that_are_returned_or_changed():
    assert godynamo.export(lambda x: x)(X).graph_module(X) is X
    gm = godynamo.export(lambda x, y: (x.add_(y), y))(X.clone(), X).graph_module
    x = torch.zeros(2, 3)
    a, b = gm(x, X)
    assert a is x
    assert b is X
    assert torch.equal(x, X)


def test_errors_of_the_function_are_its_own():
    def wrong(x):
        return x @ x

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        godynamo.export(wrong)(X)
