"""godynamo.export of operations that take functions (torch.cond, vmap, while_loop, ...), compared with torch.export."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.experimental.control_flow import map as torch_map
from torch import nn
from torch._dynamo.exc import UserError
from torch._higher_order_ops import scan, while_loop
from torch.export import Dim
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo._user import program as exporting
from test_export_program import line_of

r = torch.randn
b, t = Dim("b", min=2, max=63), Dim("t", min=2, max=63)


class Net(nn.Module):
    """Calls a function with itself."""

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__()
        self.f, self.linear, self.scale = f, nn.Linear(4, 4), nn.Parameter(r(4))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, y):
        return self.f(self, x, y)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.linear, self.negative, (x,))

    def negative(self, x):
        return self.linear(x.relu()) - 1


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Inner(), Inner()

    def forward(self, x, y):
        return self.two(self.one(x) + 1) + y.sum()


def closures(m, x, y):
    w = x.sin()
    return torch.cond(x.sum() > 0, lambda z: m.linear(z) + m.shift + w, lambda z: z * m.scale - y.sum(0), (x,))


def nested(m, x, y):
    def yes(z):
        return torch.cond(z.sum() > 3, lambda u: m.linear(u), lambda u: u + m.scale, (z,))

    return torch.cond(x.sum() > 0, yes, lambda z: torch.cond(y.sum() < 0, torch.sin, torch.cos, (z,)), (x,))


def in_a_loop(m, x, y):
    for i in range(3):
        x = torch.cond(x.sum() > i, lambda z, i=i: z + i, lambda z: m.linear(z), (x,))
    return x, x.shape[0] * 2


def size_predicates(m, x, y):
    n = y.shape[0]
    large, even = x.shape[0] > n, x.shape[0] % 2 == 0
    z = torch.cond(large, lambda u: u + 1, lambda u: u - 1, (x,))

    def no(u):
        return torch.cond(u.shape[0] >= n, torch.sin, torch.cos, (u,))

    return torch.cond(large, lambda u: u * 2, torch.exp, (torch.cond(even, lambda u: u * 3, no, (z,)),))


def sizes_inside(m, x, y):
    n = y.shape[0]

    def yes(u):
        return (u * n + torch.arange(u.shape[0])[:, None]).view(u.shape[0] * 2, 2).sum(1), u[:1] * n

    def no(u):
        return u.reshape(-1, 2).sum(1) / u.shape[0], u.new_ones(n, 4)[:1] + u.shape[0]

    p, q = torch.cond(x.sum() > 0, yes, no, (x,))
    return p * 2, q


def structures(m, x, y):
    def make(k):
        return lambda u: {"p": u["a"] + k, "q": [(u["b"][0].sum(0) * k, 1)]}

    return torch.cond((x > 1).any(), make(1), make(2), ({"a": x, "b": [y]},))


def without_grad(m, x, y):
    def yes(u):
        with torch.no_grad():
            v = m.linear(u)
        return v * m.scale

    with torch.no_grad():
        z = torch.cond(x.sum() > 0, yes, lambda u: u * m.scale, (x,))
    return z + torch.cond(y.sum() > 0, yes, lambda u: u * m.scale, (x,))


def own_tensor_changed(m, x, y):
    def yes(u):
        v = torch.zeros_like(u)
        v[0] = 1
        return v.add_(u)

    return torch.cond(x.sum() > 0, yes, lambda u: u - 1, (x,))


def loops(m, x, y):
    n = y.shape[0]
    i, v = while_loop(lambda i, u: i < n, lambda i, u: (i + 1, u + m.scale * n), (torch.tensor(0), x))
    c, z = scan(lambda c, u: (c + u * n, c * u + m.scale), torch.zeros(4), v.clone())
    w = torch_map(lambda u: torch.cond(u.sum() > 0, torch.sin, lambda q: q * m.scale, (u,)), z.clone())
    return i, v, c, z, w, w.shape[0] + 1


def recomputed(m, x, y):
    return checkpoint(lambda u: m.linear(u).exp() * u.shape[0], x, use_reentrant=False) + 1


#: name -> (function or module, dynamic_shapes, whether torch.cond is in the graph)
CASES: dict[str, tuple[Any, Any, bool]] = {
    **{f.__name__: (f, ({0: b}, {0: t}), True) for f in (size_predicates, sizes_inside, structures, without_grad)},
    **{f.__name__: (f, ({0: b}, {0: t}), True) for f in (closures, nested, in_a_loop, own_tensor_changed)},
    "submodules": (Outer(), ({0: b}, {0: t}), True),
    "loops": (loops, ({0: b}, {0: t}), False),
    "recomputed": (recomputed, ({0: b}, {0: t}), False),
    "sizes without a Dim": (size_predicates, ({0: b}, None), True),
    "sizes without a Dim inside": (sizes_inside, ({0: b}, None), True),
    "loops over sizes without a Dim": (loops, ({0: b}, None), False),
}


def assert_close(got: Any, wanted: Any) -> None:
    (xs, x_spec), (ys, y_spec) = pytree.tree_flatten(got), pytree.tree_flatten(wanted)
    assert x_spec == y_spec
    for p, q in zip(xs, ys, strict=True):
        torch.testing.assert_close(p, q)


def calls(program: torch.export.ExportedProgram) -> list[str]:
    """Return the operations on tensors, those in functions included, in alphabetical order."""
    graphs = [m.graph for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    names = [str(n.target) for g in graphs for n in g.nodes if n.op == "call_function"]
    return sorted(n for n in names if not re.search("built-in|_assert_scalar|sym_size|wrap_with_set_grad", n))


def loaded(program: torch.export.ExportedProgram) -> nn.Module:
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    return torch.export.load(buffer).module()


@pytest.mark.parametrize("name", CASES)
def test_program_is_that_of_torch_export(name: str) -> None:
    f, shapes, has_cond = CASES[name]
    module = f if isinstance(f, nn.Module) else Net(f)
    args = (r(5, 4), r(6, 4))
    program = godynamo.export(module, args, dynamic_shapes=shapes)
    assert calls(program) == calls(torch.export.export(module, args, dynamic_shapes=shapes))
    conds = program.graph_module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond)
    assert bool(conds) == has_cond
    for node in conds:
        branches = [getattr(program.graph_module, n.target) for n in node.args[1:3]]
        assert all(isinstance(g, torch.fx.GraphModule) for g in branches)
        assert __file__ in node.meta["stack_trace"] and "_higher_order_ops" not in node.meta["stack_trace"]
    runs = [program.module(), loaded(program), program.run_decompositions().module(), torch.export.unflatten(program)]
    others = (2, 6, 9) if shapes[1] else (6,)
    for n, k in [(2, 6), *((5, k) for k in others), *((8, k) for k in others)]:
        for x, y in ((r(n, 4).abs(), r(k, 4)), (-r(n, 4).abs(), -r(k, 4).abs())):
            wanted = module(x, y)
            for run in runs:
                assert_close(run(x, y), wanted)


def rows(m, x, y):
    return torch.vmap(lambda u: m.linear(u) * x.shape[0] + u.sum())(x)


def pairs(m, x, y):
    return torch.vmap(lambda u: torch.vmap(lambda v: (u * v).sum())(y))(x)


@pytest.mark.parametrize("f", [rows, pairs])
def test_vmap(f: Callable[..., Any]) -> None:
    """unflatten runs neither these programs nor those of torch.export."""
    module, args, shapes = Net(f), (r(5, 4), r(6, 4)), ({0: b}, {0: t})
    program = godynamo.export(module, args, dynamic_shapes=shapes)
    assert calls(program) == calls(torch.export.export(module, args, dynamic_shapes=shapes))
    for run in (program.module(), loaded(program), program.run_decompositions().module()):
        for n in (2, 5, 9):
            assert_close(run(x := r(n, 4), y := r(n + 1, 4)), module(x, y))


def test_a_size_predicate_in_a_branch_of_python() -> None:
    """A comparison that is a predicate and a branch's condition: the branch is decided, so the Dim does not fit."""

    def f(m, x, y):
        large = x.shape[0] > 4
        z = torch.cond(large, lambda u: u + 1, lambda u: u - 1, (x,))
        return z * 2 if large else z

    with pytest.raises(UserError, match=r"Constraints violated \(b\)"):
        godynamo.export(Net(f), (r(5, 4), r(6, 4)), dynamic_shapes=({0: b}, None))
    program = godynamo.export(Net(f), (r(5, 4), r(6, 4)), dynamic_shapes=({0: Dim("b", min=5)}, None))
    assert_close(program.module()(x := r(7, 4), y := r(6, 4)), Net(f)(x, y))


def several_elements(m, x, y):
    return torch.cond(x > 0, lambda u: u + 1, lambda u: u - 1, (x,))


def other_dtypes(m, x, y):
    return torch.cond(x.sum() > 0, lambda u: u.double(), lambda u: u - 1, (x,))


def other_numbers(m, x, y):
    return torch.cond(x.sum() > 0, lambda u: (u + 1, 1), lambda u: (u - 1, 2), (x,))


def not_ints(m, x, y):
    return torch.cond(x.sum() > 0, lambda u: (u + 1, None), lambda u: (u - 1, None), (x,))


def an_operand(m, x, y):
    return torch.cond(x.sum() > 0, lambda u: u, lambda u: u - 1, (x,))


def changes(m, x, y):
    return torch.cond(x.sum() > 0, lambda u: m.shift.add_(1) + u, lambda u: u - 1, (x,))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (several_elements, "Expected pred to be bool or single-element tensor"),
        (other_dtypes, "expected same dtype but got torch.float64 and torch.float32"),
        (other_numbers, "of functions that return different structures or numbers"),
        (not_ints, "of functions that return different structures or numbers"),
        (an_operand, "a function whose results share memory"),
        (changes, "a function that changes a tensor from outside"),
    ],
)
def test_errors_name_the_users_line(f: Callable[..., Any], text: str) -> None:
    with pytest.raises(RuntimeError, match=text) as found:
        godynamo.export(Net(f), (r(5, 4), r(6, 4)), dynamic_shapes=({0: b}, {0: t}))
    assert f'"{__file__}", line {line_of(f, "torch.cond")}' in str(found.value)


def test_a_predicate_of_one_element() -> None:
    gm = torch.fx.symbolic_trace(lambda x: (x + 1,))
    run = exporting._checked(torch.ops.higher_order.cond)
    assert run.__name__ == "cond" and run(True, gm, gm, (r(3),))[0].shape == (3,)
    with pytest.raises(RuntimeError, match="single-element"):
        run(torch.tensor([True, False]), gm, gm, (r(3),))
