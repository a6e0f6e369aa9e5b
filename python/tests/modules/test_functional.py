"""torch.nn.functional: every public function, and the rules in the seed document: rows S003-32 to 37, 45, 46."""

from __future__ import annotations

import inspect
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import godynamo
from modules_support import LIBRARY, check, judged  # noqa: F401 - makes the tables importable; first

import op_cases  # isort: skip

#: public names that are no operations: those from typing, and helpers
NO_FUNCTIONS = frozenset(
    "Optional assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary "
    "has_torch_function_variadic".split()
)
#: these need a GPU, or a matrix type that this build lacks
NOT_ON_CPU = frozenset("grouped_mm scaled_grouped_mm scaled_mm scaled_addmm scaled_addmm_".split())


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def _in_place(name, *args):
    return lambda t: getattr(F, name)(t * 1, *args), (x(3, 4),)


def _pool(name, dims, *args):
    found = [f"{name}{d}d{_SUFFIX.get(name, '')}" for d in dims]
    return {n: (getattr(F, n), (x(1, 2, *(6,) * d), *args)) for n, d in zip(found, dims)}


#: pooling functions that torch's table has under other names -> the suffix of their names in torch.nn.functional
_SUFFIX = dict.fromkeys(("adaptive_max_pool", "max_pool", "fractional_max_pool"), "_with_indices")
#: functions that torch's table of operators lacks: the callable and its arguments
OWN = {
    **_pool("adaptive_max_pool", (1, 2, 3), 3),
    **_pool("max_pool", (1, 2, 3), 2),
    **_pool("fractional_max_pool", (2, 3), 2, 3),
    **_pool("lp_pool", (1, 2, 3), 2.0, 2),
    **{name: _in_place(name) for name in "celu_ elu_ hardtanh_ leaky_relu_ relu_ rrelu_ selu_".split()},
    "threshold_": _in_place("threshold_", 0.1, 2.0),
    "affine_grid": (F.affine_grid, (x(1, 2, 3), [1, 1, 4, 4])),
    "conv_tbc": (F.conv_tbc, (x(5, 2, 3), x(2, 3, 4), x(4))),
    "dropout1d": (F.dropout1d, (x(2, 3, 4),)),
    "fold": (F.fold, (x(1, 12, 12), (4, 5), 2)),
    "gumbel_softmax": (lambda t: F.gumbel_softmax(t, tau=0.5, hard=True), (x(3, 4),)),
    "log_softmax": (lambda t: F.log_softmax(t, dim=1), (x(3, 4),)),
    "softmax": (lambda t: F.softmax(t, dim=1), (x(3, 4),)),
    "native_channel_shuffle": (F.native_channel_shuffle, (torch.randn(1, 4, 2, 2), 2)),
    "sigmoid": (F.sigmoid, (x(3, 4),)),
    "tanh": (F.tanh, (x(3, 4),)),
    "upsample": (lambda t: F.upsample(t, scale_factor=2), (x(1, 2, 3, 3),)),
}  # fmt: skip
IN_TABLE = {name.rsplit(".", 1)[-1]: op for name, op in op_cases.units().items() if name.startswith("nn.functional.")}
for _op in op_cases.units().values():
    if _op.name.startswith("nn.functional."):
        IN_TABLE.setdefault(_op.name.rsplit(".", 1)[-1], _op)


def public_functions() -> list[str]:
    """Return the names of the public functions of torch.nn.functional."""
    found = [
        n for n in dir(F) if not n.startswith("_") and callable(getattr(F, n)) and not inspect.isclass(getattr(F, n))
    ]
    return [n for n in found if n not in NO_FUNCTIONS]


#: functions that break the graph, with the reason: numbers that depend on data
SPLIT: dict[str, str] = {}


@pytest.mark.row("S003-32")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in public_functions() if n not in NOT_ON_CPU])
def test_function(name):
    if name in OWN:
        fn, args = OWN[name]
        cases = [(fn, args, {})]
    else:
        op = IN_TABLE[name]
        dtype = op_cases.dtypes_of(op)[0]
        torch.manual_seed(0)
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point and op.supports_autograd))
        cases = [(op.op, (s.input, *s.args), s.kwargs) for s in op_cases.spread(samples, 2)]
    for fn, args, kwargs in cases:
        verdict = judged(lambda fn=fn: op_cases.caller_of(fn), *args, one=name not in SPLIT, **kwargs)
        assert verdict.ran
        if name in SPLIT:
            assert set(verdict.breaks) == {SPLIT[name]}


@pytest.mark.row("S003-32")
def test_no_function_is_forgotten():
    assert len(public_functions()) >= 133
    assert [n for n in public_functions() if n not in IN_TABLE and n not in OWN and n not in NOT_ON_CPU] == []


# ---- Python code before and after the operation (S003-33, 46)


def python_around(x):
    """Call functions that do work in Python."""
    a = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    b = F.pad(x, (1, 1), mode="reflect")
    c = F.normalize(x, dim=1)
    d = F.gumbel_softmax(x, tau=1, hard=True)
    e = F.embedding(torch.tensor([1, 2]), x[0, 0])
    f = F.unfold(x, 2)
    g = F.cosine_similarity(x, x + 1)
    return a, b, c, d, e, f, g


@pytest.mark.row("S003-33")
def test_python_parts_are_inlined_to_the_real_operations():
    given = torch.randn(1, 2, 4, 4)
    recorder = check(lambda optimize: optimize(python_around)(given), graphs=1)
    for gm in recorder.seen:
        for node in gm.graph.nodes:
            if node.op == "call_function":
                assert not inspect.isfunction(node.target), node.target
    assert "upsample_bilinear2d" in recorder.ops()


@pytest.mark.row("S003-33")
def test_multi_head_attention_forward_is_inlined():
    m = nn.MultiheadAttention(8, 2)

    def attend(x):
        return F.multi_head_attention_forward(
            x, x, x, 8, 2, m.in_proj_weight, m.in_proj_bias, None, None, False, 0.0, m.out_proj.weight, m.out_proj.bias
        )

    given = torch.randn(3, 2, 8)
    assert "softmax" in check(lambda optimize: optimize(attend)(given), graphs=1).ops()


@pytest.mark.row("S003-46")
def test_the_seeds_embedding_functional():
    weights = torch.randn(6, 4)

    def embedding_functional(input):
        ids = input * 2
        embeddings = weights + 1
        return F.embedding(ids, embeddings)

    recorder = check(lambda optimize: optimize(embedding_functional)(torch.tensor([0, 2, 1])), graphs=1)
    assert recorder.ops() == ["mul", "add", "embedding"]


# ---- exceptions, warnings, defaults, bindings (S003-34 to 37)


@pytest.mark.row("S003-34")
@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.dropout(x, 2.0),
        lambda x: F.dropout(x, p=-0.1),
        lambda x: F.glu(torch.ones(())),
        lambda x: F.interpolate(x),
        lambda x: F.pad(x, (1, 1), mode="nothing"),
        lambda x: F.cross_entropy(x, torch.tensor([9, 9])),
        lambda x: F.mse_loss(x, torch.ones(7)),
        lambda x: F.embedding(x, x),
        lambda x: F.max_pool2d(x, 99),
        lambda x: F.layer_norm(x, (9,)),
        lambda x: F.one_hot(torch.tensor([5]), 2),
        lambda x: nn.Linear(3, 3)(x),
        lambda x: nn.Softmax(dim=7)(x),
    ],
    ids=lambda f: inspect.getsource(f).strip().removeprefix("lambda x: ").rstrip(",").replace("/", "") if f else "",
)
def test_exceptions_are_eagers(call):
    given = torch.randn(2, 4)

    def program(optimize):
        fn = optimize(call)
        out = []
        for _ in range(2):
            try:
                out.append(fn(given))
            except Exception as error:
                out.append((type(error).__name__, str(error)))
        return out

    check(program)


@pytest.mark.row("S003-34")
def test_a_size_mismatch_warns_as_eager_does():
    def loss(x, y):
        return F.mse_loss(x, y) + F.l1_loss(x, y)

    def told(fn):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out = fn(torch.ones(3, 1), torch.zeros(3))
        return out, [(w.category, str(w.message), w.filename, w.lineno) for w in caught]

    expected, warned = told(loss)
    assert len(warned) == 2
    for backend in ("eager", lambda gm, ex: gm.forward):
        fn = godynamo.optimize(loss, backend=backend)
        for _ in range(2):
            out, ours = told(fn)
            assert torch.equal(out, expected)
            assert ours == warned


@pytest.mark.row("S003-36")
def test_defaults_by_position_and_by_keyword():
    def calls(x):
        return (
            F.dropout(x, 0.0),
            F.dropout(x, p=0.5, training=False),
            F.softmax(x, -1, 3, torch.float64),
            F.layer_norm(x, (4,)),
            F.layer_norm(x, normalized_shape=(4,), eps=1e-3),
            F.leaky_relu(x, 0.1, False),
            F.leaky_relu(input=x, negative_slope=0.2),
            F.normalize(x, 1.0, dim=0),
            F.gelu(x, approximate="tanh"),
        )

    judged(lambda: calls, x(2, 4))


@pytest.mark.row("S003-37")
def test_functions_bound_in_the_private_namespace_alone():
    def private(x):
        return torch._C._nn.gelu(x), torch._C._nn.hardtanh(x, -0.5, 0.5), torch._C._nn.softplus(x), F.gelu(x)

    given = torch.randn(4)
    recorder = check(lambda optimize: optimize(private)(given), graphs=1)
    assert recorder.ops() == ["gelu", "hardtanh", "softplus", "gelu"]


# ---- the open registration (S003-45)


def leaf_for_tests(x, w):
    """Branch on the data: if this function were inlined, there could not be one graph."""
    return x @ w if float(x.detach().sum()) > 1e9 else x @ w + 1


def library_norm(x):
    raise RuntimeError("replaced before it is called")


def replacement_norm(x):
    return x / (x * x).sum().sqrt()


@pytest.mark.row("S003-45")
def test_a_function_is_registered_as_a_leaf():
    godynamo.allow_in_graph(leaf_for_tests)
    try:
        m = nn.Linear(4, 4)

        def f(x):
            return leaf_for_tests(m(x), m.weight).relu()

        given = torch.randn(2, 4)
        recorder = check(lambda optimize: optimize(f)(given), graphs=1)
        assert recorder.ops() == ["linear", "leaf_for_tests", "relu"]
    finally:
        godynamo.disallow_in_graph(leaf_for_tests)


@pytest.mark.row("S003-45")
def test_a_function_is_given_a_replacement():
    godynamo.substitute_in_graph(library_norm)(replacement_norm)
    recorder_fn = godynamo.optimize(lambda x: library_norm(x) * 2, backend=(ops := []).append and _recording(ops))
    given = torch.randn(4)
    assert torch.equal(recorder_fn(given), replacement_norm(given) * 2)
    assert ops == ["mul", "sum", "sqrt", "truediv", "mul"]


def _recording(ops):
    def backend(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.op.startswith("call_"):
                ops.append(getattr(node.target, "__name__", None) or str(node.target))
        return gm.forward

    return backend
