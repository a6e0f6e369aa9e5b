"""Metadata that fake tensors only guess is never constant: sparse, quantized, nested, mkldnn, data-dependent."""

from __future__ import annotations

import logging

import pytest
import torch
import torch._subclasses.fake_tensor

import godynamo
from godynamo._translator import vague
from godynamo.testing import CompileCounter
from harness.training import breaks

FEW, MANY = torch.eye(4), torch.ones(4, 4)
LAYOUTS = {
    "coo": torch.Tensor.to_sparse,
    "hybrid": lambda t: t.to_sparse(1),
    "csr": torch.Tensor.to_sparse_csr,
    "csc": torch.Tensor.to_sparse_csc,
    "bsr": lambda t: t.to_sparse_bsr((2, 2)),
    "bsc": lambda t: t.to_sparse_bsc((2, 2)),
    "mkldnn": torch.Tensor.to_mkldnn,
    "quantized": lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8),
    "nested": lambda t: torch.nested.nested_tensor([t, t[:2]]),
    "jagged": lambda t: torch.nested.nested_tensor([t, t[:2]], layout=torch.jagged),
    "strided": torch.Tensor.clone,
}
PARTS = """values() indices() _values() _indices() crow_indices() col_indices() ccol_indices() row_indices() coalesce()
    to_dense() int_repr() dequantize() clone() relu() unbind() to_sparse() to_mkldnn() t() detach() data
    double()""".split()
QUESTIONS = ["shape", "layout", "is_contiguous()"]
PROGRAMS = [f"x.{part}.{question}" for part in PARTS for question in QUESTIONS] + [
    "torch.zeros(x.values().shape[0])",
    "x.values().view(x.values().size(0), -1).sum()",
    "[t.shape for t in x.unbind()]",
    "len(x.values())",
    "x._nnz()",
    "x.is_coalesced()",
    "x.shape",
    "x.stride()",
    "(x @ torch.ones(4, 3)).shape",
    "(x * x).layout",
    "torch.sparse.sum(x, 0).values().shape",
    "torch.sparse.mm(x, x).coalesce().values().shape",
    "x.to_dense().to_sparse().values().shape",
    "x.to_dense().to_sparse_csr().col_indices().shape",
    "torch.sparse_coo_tensor(x.indices(), x.values()).shape",
    "torch.sparse_coo_tensor(x.indices(), x.values(), x.shape)._values().shape",
    "torch.quantize_per_tensor(x.to_dense(), 0.1, 0, torch.qint8).dtype",
    "torch.quantize_per_tensor(x.to_dense(), 0.1, 0, torch.qint8).is_quantized",
    "x.to_dense().to_mkldnn().relu().layout",
    "torch.nested.nested_tensor([x.to_dense(), x.to_dense()[:2]]).is_nested",
    "torch.zeros(3, 3, layout=torch.sparse_coo)._values().shape",
    "x.to_dense().add_(x).shape",
]


def outcome(fn, x):
    try:
        value = fn(x)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0][:40]
    return repr(value)


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward], ids=["inline", "whole graph"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_program_asks_is_eagers(layout, backend):
    for text in PROGRAMS:
        fn = eval(f"lambda x: {text}", {"torch": torch})
        optimized = godynamo.optimize(fn, backend=backend)
        for t in (FEW, MANY, FEW):
            x = LAYOUTS[layout](t)
            assert outcome(optimized, x) == outcome(fn, x), text
        godynamo.reset()


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("strided", "jagged")])
def test_a_backend_that_traces_gets_no_graph_of_such_tensors(layout):
    from functorch.compile import aot_module_simplified, make_boxed_func

    def by_hand(gm, inputs):
        return aot_module_simplified(gm, inputs, fw_compiler=lambda g, _: make_boxed_func(g.forward))

    reads = {
        "coo": "values",
        "hybrid": "values",
        "quantized": "int_repr",
        "mkldnn": "to_dense",
        "nested": "unbind",
    }.get(layout, "values")

    def outside(x):
        y = x.coalesce() if x.layout is torch.sparse_coo else x
        r = getattr(y, reads)()
        return (r[0] if reads == "unbind" else r.reshape(-1, 1)) * 2

    def inside(t):
        return outside(LAYOUTS[layout](t))

    for backend in ("aot_eager", by_hand):
        for fn, args in ((outside, [LAYOUTS[layout](t) for t in (FEW, MANY)]), (inside, [FEW, MANY])):
            f = godynamo.optimize(fn, backend=backend)
            for x in args:
                assert torch.equal(f(x), fn(x))


def test_example_values_of_such_inputs_are_not_given():
    seen = []

    def backend(gm, inputs):
        seen.extend("example_value" in n.meta for n in gm.graph.nodes)
        return gm.forward

    godynamo.optimize(lambda x: x.values() * 2, backend=backend)(FEW.to_sparse_csr())
    assert seen and not any(seen)


@godynamo.allow_in_graph
def places(x):
    return x.nonzero()


@godynamo.allow_in_graph
def halves(x):
    return torch.empty(int(x.sum())), x


def test_sizes_of_what_a_function_computes_from_data_are_unknown():
    for fn in (lambda x: places(x).shape[0], lambda x: halves(x)[0].shape[0], lambda x: torch.ones(len(places(x)))):
        f = godynamo.optimize(fn)
        for t in (FEW, MANY, FEW):
            assert repr(f(t)) == repr(fn(t))


def test_what_follows_from_the_operands_alone_does_not_break_the_graph():
    counter = CompileCounter()
    f = godynamo.optimize(lambda a, x: (a @ x).view((a @ x).shape[0], -1) + a.to_dense().shape[0], backend=counter)
    for t in (FEW, MANY):
        torch.testing.assert_close(f(t.to_sparse(), MANY), t @ MANY + 4)
    assert counter.frame_count == 1
    assert not breaks()


X = torch.ones(4, 4)
OPERATORS = """S.to_dense() S@X X@S torch.addmm(X,S,X) torch.sparse.mm(S,X) torch.sparse.mm(S,S) S@S S@X[0] X[0]@S
S.to_sparse()
    S.to_sparse_csr() S.to_sparse_csc() S.to_sparse(1) S.coalesce() S.t() S.T S.transpose(0,1) S*2 S.clone()
    S.detach() S.data
    S.to_mkldnn() X+S X*S torch.zeros_like(S) torch.empty_like(S) S.to(torch.float64) S.relu() S.sum() S.sum(0) -S
    S.values()
    S._values() S.indices() S.crow_indices() S.unsqueeze(0) S[0] torch.cat([S,S]) S/2 X.sparse_mask(S) S.cpu()
    X.clone().add_(S)
    torch.nn.functional.linear(X,S) torch.empty(3,dtype=torch.qint8)
    torch.quantize_per_tensor(S,.1,0,torch.qint8)""".split()


def described(t):
    return tuple(t.shape), t.dtype, t.layout, t.requires_grad, t.device


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("quantized", "nested", "jagged")])
def test_what_is_not_called_vague_is_as_for_real(layout):
    """If fake tensors give metadata that is not marked as vague, the real operator gives the same metadata."""
    real = LAYOUTS[layout](FEW)
    noisy = logging.getLogger("torch._subclasses.fake_tensor")
    noisy.disabled = True
    try:
        for text in OPERATORS:
            mode = torch._subclasses.fake_tensor.FakeTensorMode()
            fakes = {name: mode.from_tensor(t, static_shapes=True) for name, t in (("S", real), ("X", X))}
            watch = vague.Watch(mode)
            try:
                with mode:
                    said = described(eval(text, {"torch": torch}, fakes))
                wanted = described(eval(text, {"torch": torch}, {"S": real, "X": X}))
            except Exception:
                continue
            assert watch.vague is not None or said == wanted, text
    finally:
        noisy.disabled = False
