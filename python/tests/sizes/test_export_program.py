"""godynamo.export with dynamic_shapes: the ExportedProgram and the errors are those of torch.export."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.exc import UserError
from torch.export import Dim
from torch.utils import _pytree as pytree

import godynamo

r = torch.randn


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.net(x)


class Conv(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8, 10)

    def forward(self, x):
        y = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(y.mean(dim=(2, 3)).view(x.size(0), -1))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("mask", torch.ones(64, 64).tril().bool(), persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (z.view(batch, length, 4, 4).transpose(1, 2) for z in self.qkv(x).split(16, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:length, :length])
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return self.out(y) + torch.arange(length)[None, :, None], length * 2, length / 2


class OfDict(nn.Module):
    def forward(self, batch, *, scale=1.0):
        return {"out": batch["a"] + batch["b"][0] * scale, "sums": [batch["b"][0].sum(0)]}


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


class Repeated(nn.Module):
    def forward(self, x, y):
        return x.repeat(2) + y


class Tail(nn.Module):
    def forward(self, x, y):
        return x[1:] + y


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.v = self.w

    def forward(self, x):
        with torch.no_grad():
            y = x * self.w
        return y + self.v * x


class Scaled(nn.Module):
    def forward(self, x, n):
        return x * n, n + 1


class Found(nn.Module):
    def forward(self, x):
        return x.nonzero(), x[x > 0]


class Cast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            with torch.autocast("cpu", enabled=False):
                z = self.linear(x)
        return y, z, self.linear(x)


class Head(nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0], lambda: "too many")
        return x[:k]


b, t = Dim("b", min=2, max=63), Dim("t", min=2, max=63)

#: name -> (module, args, kwargs, dynamic_shapes, other args)
CASES: dict[str, tuple[nn.Module, tuple[Any, ...], dict[str, Any], Any, list[tuple[Any, ...]]]] = {
    "mlp": (MLP(), (r(5, 8),), {}, {"x": {0: Dim("b")}}, [(r(9, 8),), (r(2, 8),)]),
    "tuple": (MLP(), (r(5, 8),), {}, ({0: Dim("b")},), [(r(9, 8),)]),
    "list": (MLP(), (r(5, 8),), {}, [[Dim("b"), Dim.STATIC]], [(r(9, 8),)]),
    "convolution": (Conv().eval(), (r(4, 3, 8, 8),), {}, {"x": {0: b}}, [(r(7, 3, 8, 8),)]),
    "transformer layer": (
        nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(),
        (r(2, 6, 16), torch.zeros(6, 6)),
        {},
        {"src": {0: b, 1: t}, "src_mask": {0: t, 1: t}},
        [(r(5, 9, 16), torch.zeros(9, 9))],
    ),
    "attention": (Attention(), (r(2, 6, 16),), {}, {"x": {0: b, 1: t}}, [(r(4, 9, 16),)]),
    "dict": (
        OfDict(),
        ({"a": r(3, 4), "b": [r(3, 4)]},),
        {"scale": 2.0},
        {"batch": {"a": {0: b}, "b": [{0: b}]}, "scale": None},
        [({"a": r(8, 4), "b": [r(8, 4)]},)],
    ),
    "equal": (Sum(), (r(4), r(4)), {}, {"x": {0: b}, "y": {0: b}}, [(r(7), r(7))]),
    "derived": (Repeated(), (r(4), r(8)), {}, {"x": {0: b}, "y": {0: 2 * b}}, [(r(7), r(14))]),
    "derived by a sum": (Tail(), (r(5), r(4)), {}, {"x": {0: b + 1}, "y": {0: b}}, [(r(8), r(7))]),
    "auto": (Sum(), (r(4), r(4)), {}, {"x": {0: Dim.AUTO}, "y": {0: Dim.AUTO}}, [(r(7), r(7))]),
    "auto in a range": (MLP(), (r(5, 8),), {}, {"x": {0: Dim.AUTO(min=2, max=9)}}, [(r(7, 8),)]),
    "dynamic": (Sum(), (r(4), r(4)), {}, {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}}, [(r(7), r(7))]),
    "static": (Sum(), (r(4), r(4)), {}, {"x": {0: Dim.STATIC}, "y": None}, []),
    "no dims": (Sum(), (r(4), r(4)), {}, None, []),
    "tied parameters, no_grad": (Tied(), (r(4, 3),), {}, {"x": {0: b}}, [(r(6, 3),)]),
    "int": (Scaled(), (r(4), 3), {}, {"x": {0: b}, "n": None}, []),
    "int that varies": (Scaled(), (r(4), 3), {}, {"x": {0: b}, "n": Dim.DYNAMIC}, [(r(6), 5)]),
    "autocast": (Cast(), (r(4, 4),), {}, {"x": {0: b}}, [(r(6, 4),)]),
    "a checked number of the data": (
        Head(),
        (r(9), torch.tensor(3)),
        {},
        {"x": {0: b}, "n": None},
        [(r(12), torch.tensor(5))],
    ),
    "sizes of the data": (Found(), (r(4, 3),), {}, {"x": {0: b}}, [(r(6, 3),)]),
}


def same(x: Any, y: Any) -> bool:
    """Compare results bit by bit."""
    (xs, x_spec), (ys, y_spec) = pytree.tree_flatten(x), pytree.tree_flatten(y)
    equal = (torch.equal(p, q) if isinstance(p, torch.Tensor) else p == q for p, q in zip(xs, ys, strict=True))
    return x_spec == y_spec and all(equal)


def picture(program: torch.export.ExportedProgram) -> Any:
    """Return what users see of a program, without the order and the names of operations."""
    nodes = list(program.graph.nodes)
    inputs = [
        (n.name, str(getattr(n.meta.get("val"), "shape", n.meta.get("val")))) for n in nodes if n.op == "placeholder"
    ]
    operations = sorted(str(n.target) for n in nodes if n.op == "call_function")
    ranges = sorted(map(str, program.range_constraints.values()))
    return inputs, operations, ranges, list(program.state_dict), program.graph_signature.user_inputs


@pytest.mark.parametrize("name", CASES)
def test_program_is_that_of_torch_export(name: str) -> None:
    module, args, kwargs, shapes, others = CASES[name]
    program = godynamo.export(module, args, kwargs, dynamic_shapes=shapes)
    assert picture(program) == picture(torch.export.export(module, args, kwargs, dynamic_shapes=shapes))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    for run in (program.module(), torch.export.load(buffer).module()):
        for inputs in (args, *others):
            assert same(run(*inputs, **kwargs), module(*inputs, **kwargs))


def test_decompositions_and_an_optimized_module() -> None:
    module, args, _, shapes, others = CASES["convolution"]
    program = godynamo.export(godynamo.optimize(module), dynamic_shapes=shapes)(*args)
    for inputs in (args, *others):
        assert torch.allclose(program.run_decompositions().module()(*inputs), module(*inputs), atol=1e-6)
    table = torch.export.default_decompositions()
    assert "aten.addmm.default" in str(godynamo.export(MLP(), (r(5, 8),), decomposition_table=table).graph)


def test_exporting_runs_nothing_and_changes_nothing() -> None:
    module, x = Conv(), r(4, 3, 8, 8)
    before, state = {k: v.clone() for k, v in module.state_dict().items()}, torch.get_rng_state()
    program = godynamo.export(nn.Sequential(module, nn.Dropout()), (x,), dynamic_shapes=({0: b},))
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())
    changed = sorted(program.run_decompositions().graph_signature.buffers_to_mutate.values())
    assert changed == ["0.norm.num_batches_tracked", "0.norm.running_mean", "0.norm.running_var"]
    assert not any("_dynamo" in name for name in vars(x))


def test_stack_traces_name_the_users_lines() -> None:
    program = godynamo.export(MLP(), (r(5, 8),), dynamic_shapes=({0: b},))
    traces = [n.stack_trace for n in program.graph.nodes if n.op == "call_function"]
    assert all("in forward\n    return self.net(x)" in trace for trace in traces)


def test_functions_and_methods() -> None:
    module = MLP()
    for f in (lambda x: module(x) + 1, module.forward):
        program = godynamo.export(f, dynamic_shapes=({0: b},))(r(5, 8))
        x = r(9, 8)
        assert same(program.module()(x), f(x))


def test_shapes_collection() -> None:
    args = {"a": r(3, 4), "b": [r(3, 4)]}
    shapes = torch.export.ShapesCollection()
    shapes[args["a"]] = {0: b}
    shapes[args["b"][0]] = (b, Dim.STATIC)
    program = godynamo.export(OfDict(), (args,), dynamic_shapes=shapes)
    other = {"a": r(8, 4), "b": [r(8, 4)]}
    assert same(program.module()(other), OfDict()(other))


def test_additional_inputs() -> None:
    args = (r(4), r(4))
    more = torch.export.AdditionalInputs()
    more.add((r(6), r(6)))
    program = godynamo.export(Sum(), args, dynamic_shapes=more)
    x = r(9)
    assert same(program.module()(x, x), x + x)


def test_a_branch_on_a_number_of_the_data_is_an_error() -> None:
    def f(x, n):
        return x + 1 if n.item() > 3 else x

    with pytest.raises(godynamo.exc.Unsupported, match="known at run time only"):
        godynamo.export(f, (r(3), torch.tensor(3)))


def test_a_value_of_a_tensor_that_torch_reads_is_no_constant() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    args = r(2, 6, 16), nn.Transformer.generate_square_subsequent_mask(6)
    assert godynamo.explain(encoder)(*args).graph_break_count == 0  # a guard reads whether the mask is causal
    with pytest.raises(godynamo.exc.Unsupported):
        godynamo.export(encoder, args)


# ---- Dims that do not fit -------------------------------------------------------------------------------------------


def loop(x):
    for _ in range(x.shape[0]):
        x = x + 1
    return x


def branch(x):
    if x.shape[0] > 10:
        return x - 1
    return x + 1


def divides(x):
    return x.reshape(-1, 2)


def pair(x, y):
    z = x * 2
    return z + y


def line_of(f: Callable[..., Any], code: str) -> int:
    import inspect

    lines, first = inspect.getsourcelines(f)
    return first + next(i for i, text in enumerate(lines) if code in text)


#: function, args, dynamic_shapes, the line that restricts the Dim, torch's suggestion
VIOLATIONS: list[tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any], str, str]] = [
    (loop, (r(4),), {"x": {0: Dim("n")}}, "range(x.shape[0])", "n = 4"),
    (branch, (r(4),), {"x": {0: Dim("n", min=2)}}, "x.shape[0] > 10", "n = Dim('n', max=10)"),
    (branch, (r(20),), {"x": {0: Dim("n")}}, "x.shape[0] > 10", "n = Dim('n', min=11)"),
    (divides, (r(4),), {"x": {0: Dim("n")}}, "reshape(-1, 2)", "n = 2*_n"),
    (pair, (r(4), r(4)), {"x": {0: Dim("n")}, "y": {0: Dim("m")}}, "z + y", "m = n"),
]


@pytest.mark.parametrize(("f", "args", "shapes", "code", "fix"), VIOLATIONS)
def test_violation_names_line_and_dim(
    f: Callable[..., Any], args: tuple[Any, ...], shapes: Any, code: str, fix: str
) -> None:
    class Module(nn.Module):
        forward = staticmethod(f)

    with pytest.raises(UserError) as theirs:
        torch.export.export(Module(), args, dynamic_shapes=shapes)
    with pytest.raises(UserError) as found:
        godynamo.export(f, args, dynamic_shapes=shapes)
    text = str(found.value)
    lines = r"\nThese lines need it:\n(?:  - .*\n    File .*\n      .*\n?)+"
    assert re.sub(lines, "\n", text).replace("\n\n", "\n") == str(theirs.value).replace("\n\n", "\n")
    assert f'File "{__file__}", line {line_of(f, code)}\n' in text and "n = L['x'].size()[0]: " in text
    assert fix in text
    torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes(text.partition("\n\n")[0], shapes)


def test_hints() -> None:
    with pytest.raises(UserError, match=rf"(?s)specialized it to be a constant.*line {line_of(loop, 'range')}"):
        godynamo.export(loop, (r(4),), dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    assert godynamo.export(loop, (r(4),), dynamic_shapes={"x": {0: Dim.AUTO}}).range_constraints == {}
    ranges = godynamo.export(branch, (r(4),), dynamic_shapes={"x": {0: Dim.AUTO}}).range_constraints
    assert list(map(str, ranges.values())) == ["VR[0, 10]"] or list(map(str, ranges.values())) == ["VR[2, 10]"]


def test_equal_dims_need_equal_sizes() -> None:
    with pytest.raises(UserError, match=r"L\['y'\].size\(\)\[0\] = 1 is not equal to"):
        godynamo.export(Sum(), (r(4), r(1)), dynamic_shapes={"x": {0: b}, "y": {0: b}})
    run = godynamo.export(Sum(), (r(4), r(4)), dynamic_shapes={"x": {0: b}, "y": {0: b}}).module()
    with pytest.raises(AssertionError):
        run(r(5), r(6))


def test_an_int_that_selects_code_is_no_free_int() -> None:
    def f(x, n):
        return x.sum(n)

    assert same(godynamo.export(f, (r(2, 3), 1)).module()(x := r(2, 3), 1), x.sum(1))
    run = godynamo.export(f, (r(2, 3), 1), dynamic_shapes={"x": None, "n": Dim.DYNAMIC}).module()
    with pytest.raises(AssertionError, match="n == 1"):
        run(r(2, 3), 0)


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.log, self.last = 0, [], None

    def forward(self, x):
        self.calls += 1
        self.log.append(x.shape[0])
        self.last = x.shape
        print("called")
        return x + len(self.log), tuple(x.shape)


def test_effects_are_left_out(capsys: Any) -> None:
    module = Counts()
    program = godynamo.export(module, (r(3),), dynamic_shapes=({0: b},))
    x = r(5)
    assert same(program.module()(x), (x + 1, (5,)))
    assert (module.calls, module.log, module.last, capsys.readouterr().out) == (0, [], None, "")


def keeps(x, log):
    y = x + 1
    log.append(y)
    return y


def returns_changed(x, log):
    log.append(1)
    return x + 1, [log]


@pytest.mark.parametrize("f", [keeps, returns_changed])
def test_effects_that_a_program_cannot_have(f: Callable[..., Any]) -> None:
    log: list[Any] = [r(3)]
    with pytest.raises(godynamo.exc.Unsupported, match="an exported program cannot have") as found:
        godynamo.export(f, (r(3), log))
    assert len(log) == 1 and f"line {line_of(f, 'append')}" in str(found.value)


@pytest.mark.parametrize("dim", [Dim("n"), Dim.AUTO, Dim.DYNAMIC])
def test_a_condition_that_only_0_or_1_fails_is_checked(dim: Any) -> None:
    def f(x):
        if x.shape[0] > 1:
            return x + 1
        return x + 2

    program = godynamo.export(f, (r(4),), dynamic_shapes=({0: dim},))
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    for run in (program.module(), torch.export.load(buffer).module(), program.run_decompositions().module()):
        assert same(run(x := r(2)), f(x))
        for n in (0, 1):  # torch.export's program returns x + 1
            with pytest.raises(RuntimeError, match=rf"L\['x'\].* does not hold, needed by .*line {line_of(f, '> 1')}"):
                run(r(n))


def test_a_text_of_a_size_is_no_result() -> None:
    text, key = lambda x: (x + 1, f"{x.shape[0]}"), lambda x: {f"{x.shape[0]}": x + 1}  # noqa: E731
    for f in (text, key):
        assert same(godynamo.export(f, (r(4),)).module()(x := r(4)), f(x))
    for f in (text, lambda x: (x + 1, f"{x.shape[0]:03d}")):
        with pytest.raises(godynamo.exc.Unsupported, match="made from a size"):
            godynamo.export(f, (r(4),), dynamic_shapes=({0: b},))
    with pytest.raises(UserError, match="specialized it to be a constant"):
        godynamo.export(key, (r(4),), dynamic_shapes=({0: b},))


def test_is_exporting() -> None:
    def f(x):
        return x + (2 if torch.compiler.is_exporting() and godynamo.is_exporting() else 3)

    x = torch.zeros(3)
    assert godynamo.export(f, (x,)).module()(x).equal(x + 2)
    assert godynamo.optimize(f)(x).equal(x + 3) and not godynamo.is_exporting()
