"""The tables of result kinds (tensor, list, int, ...) and of pure functions agree with what torch does."""

import math
import operator
from typing import get_args

import pytest
import torch

import godynamo
from godynamo._translator import callables, kinds

X, Y, M = torch.rand(4, 4) + 0.5, torch.rand(4, 4), torch.rand(4, 4) > 0.5
I = torch.randint(0, 4, (4, 4))  # noqa: E741


def letter(a):
    if isinstance(a, torch.Tensor):
        return "T"
    if isinstance(a, bool):
        return "b"
    return {int: "i", float: "f", list: "L", tuple: "L", type(None): "n"}.get(type(a), "o")


def kind_of(value):
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, (tuple, list)) and value and all(isinstance(v, torch.Tensor) for v in value):
        return "tensors"
    return {bool: "bool", int: "int", float: "float", type(None): "none"}.get(type(value), "object")


def agrees(kind, value):
    actual = kind_of(value)
    if actual == "tensors":
        return kind == "list" or kind == f"tensors:{len(value)}"
    return kind == actual or (kind == "scalar" and actual in ("int", "float", "bool"))


CALLS = [
    (torch.max, (X,), {}),
    (torch.max, (X, 1), {}),
    (torch.max, (X, Y), {}),
    (torch.max, (X,), {"dim": 0, "keepdim": True}),
    (torch.min, (X,), {"axis": 0}),
    (torch.median, (X, 0), {}),
    (torch.sort, (X,), {"descending": True}),
    (torch.topk, (X, 2), {}),
    (torch.std_mean, (X,), {}),
    (torch.var_mean, (X, 1), {}),
    (torch.split, (X, 2), {}),
    (torch.chunk, (X, 2), {"dim": 1}),
    (torch.unbind, (X,), {}),
    (torch.where, (M,), {}),
    (torch.where, (M, X, Y), {}),
    (torch.where, (M, X, 0.0), {}),
    (torch.cat, ([X, Y],), {"dim": 1}),
    (torch.stack, ((X, Y), 0), {}),
    (torch.add, (X, 2), {}),
    (torch.add, (X, Y), {"alpha": 2}),
    (torch.sub, (X, Y), {}),
    (torch.pow, (2.0, X), {}),
    (torch.pow, (X, 2), {}),
    (torch.matmul, (X, Y), {}),
    (torch._C._VariableFunctions.einsum, ("ij,jk->ik", (X, Y)), {}),
    (torch.clamp, (X,), {"min": 0.0}),
    (torch.sum, (X,), {}),
    (torch.sum, (X, (0, 1)), {"keepdim": True}),
    (torch.mean, (X,), {"dim": 1}),
    (torch.any, (M,), {}),
    (torch.cumsum, (X, 0), {}),
    (torch.gather, (X, 1, I), {}),
    (torch.softmax, (X, 1), {}),
    (torch.relu, (X,), {}),
    (torch.ones, (2, 3), {}),
    (torch.ones, ((2, 3),), {"dtype": torch.int64}),
    (torch.zeros, (2,), {"device": "cpu"}),
    (torch.randn, (2, 3), {"requires_grad": True}),
    (torch.arange, (5,), {}),
    (torch.arange, (0, 5, 2), {"dtype": torch.float32}),
    (torch.linspace, (0, 1, 5), {}),
    (torch.eye, (3,), {}),
    (torch.full, ((2, 2), 1.5), {}),
    (torch.tensor, (1.0,), {}),
    (torch.tensor, ([1, 2],), {"dtype": torch.float32}),
    (torch.as_tensor, (2,), {}),
    (torch.zeros_like, (X,), {"dtype": torch.int32}),
    (torch.empty_like, (X,), {}),
    (torch.is_floating_point, (X,), {}),
    (torch.is_tensor, (X,), {}),
    (torch.numel, (X,), {}),
    (torch.equal, (X, Y), {}),
    (torch.allclose, (X, Y), {}),
    (torch.promote_types, (torch.int32, torch.float32), {}),
    (torch._C._nn.linear, (X, Y, None), {}),
    (torch._C._nn.gelu, (X,), {"approximate": "tanh"}),
    (torch.nn.functional.scaled_dot_product_attention, (X[None], X[None], X[None]), {"is_causal": True}),
    (torch.layer_norm, (X, (4,), None, None, 1e-5), {}),
    (torch.embedding, (X, I), {}),
    (torch.dropout, (X, 0.5, True), {}),
    (torch.conv1d, (X[None], X[None]), {}),
    (torch._C._linalg.linalg_norm, (X,), {}),
    (torch._C._fft.fft_fft, (X,), {}),
    (torch._C._special.special_erf, (X,), {}),
    (torch.ops.aten.add.Tensor, (X, Y), {}),
    (torch.ops.aten.max, (X, 1), {}),
]


@pytest.mark.parametrize(("fn", "args", "kwargs"), CALLS, ids=lambda v: getattr(v, "__name__", None))
def test_a_functions_kind_is_what_it_returns(fn, args, kwargs):
    kind = kinds.result_kind_call(fn, len(args), tuple(kwargs), "".join(map(letter, args)))
    assert agrees(kind, fn(*args, **kwargs)), kind


METHODS = [
    ("add", (Y,), {}), ("view", (2, 8), {}), ("view", ((2, 8),), {}), ("reshape", (-1,), {}), ("permute", (1, 0), {}),
    ("sum", (), {}), ("sum", (0,), {}), ("sum", (), {"dim": 1}), ("max", (), {}), ("max", (1,), {}), ("max", (Y,), {}),
    ("float", (), {}), ("to", (torch.float64,), {}), ("to", ("cpu",), {"non_blocking": True}), ("size", (0,), {}),
    ("size", (), {}), ("dim", (), {}), ("numel", (), {}), ("is_contiguous", (), {}), ("contiguous", (), {}),
    ("chunk", (2,), {}), ("split", (2,), {}), ("unbind", (), {}), ("__getitem__", (0,), {}), ("__getitem__", (M,), {}),
    ("__truediv__", (2,), {}), ("__rsub__", (1,), {}), ("__and__", (True,), {}), ("__matmul__", (Y,), {}),
    ("expand", (2, 4, 4), {}), ("masked_fill", (M, 0.0), {}), ("transpose", (0, 1), {}), ("t", (), {}),
    ("mean", (1,), {"keepdim": True}), ("repeat", (2, 1), {}), ("std", (), {}), ("flatten", (), {}), ("squeeze", (0,),
    {}),
    ("unsqueeze", (0,), {}), ("norm", (), {}), ("new_zeros", (3,), {}), ("new_ones", ((2, 2),), {}), ("softmax", (1,),
    {}),
    ("argmax", (), {"dim": 1}), ("topk", (2,), {}), ("abs", (), {}), ("tolist", (), {}), ("type", (), {}),
    ("type", (torch.int32,), {}), ("detach", (), {}), ("clone", (), {}), ("stride", (0,), {}), ("element_size", (), {}),
    ("equal", (Y,), {}), ("sort", (), {}), ("nonzero", (), {}), ("cumsum", (0,), {}), ("index_select", (0, I[0]), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), METHODS, ids=lambda v: v if isinstance(v, str) else None)
def test_a_methods_kind_is_what_it_returns(name, args, kwargs):
    subject = M if name == "__and__" else X
    kind = kinds.method_kind(name, len(args), tuple(kwargs), "".join(map(letter, args)))
    assert agrees(kind, getattr(subject, name)(*args, **kwargs)), kind


def test_what_depends_on_unknown_arguments_is_unknown():
    assert kinds.method_kind("max", 1) == "unknown"
    assert kinds.result_kind(torch.max) == "unknown"
    assert kinds.result_kind(torch.relu) == "tensor"
    assert kinds.method_kind("no_such_method", 0) == "unknown"
    assert kinds.result_kind_call(lambda x: x, 1, (), "T") == "unknown"


@pytest.mark.parametrize("name", ["T", "ndim", "requires_grad", "is_leaf", "shape", "dtype", "itemsize", "mT"])
def test_a_propertys_kind_is_what_reading_it_gives(name):
    assert agrees(kinds.property_kind(name), getattr(X, name))


@pytest.mark.parametrize(
    "fn",
    [math.sin, math.prod, len, "a".upper, str.upper, operator.add, operator.invert, operator.getitem, int, torch.finfo,
     (1, 2).index, range, tuple, int.from_bytes, float.fromhex, torch.device, torch.Size, "{}".format, isinstance],
)  # fmt: skip
def test_pure_calls(fn):
    assert kinds.is_pure_call(fn)


@pytest.mark.parametrize(
    "fn",
    [print, list, dict, set, operator.iadd, operator.ior, operator.setitem, operator.itemgetter, [].append, {}.get,
    "a".split,
     open, id, type, dict.fromkeys, object, input, torch.relu, torch.manual_seed, iter, next, vars, globals, eval,
     str.maketrans, lambda: 1, math, 3],
)  # fmt: skip
def test_calls_that_are_not_pure(fn):
    assert not kinds.is_pure_call(fn)


@torch.library.custom_op("godynamo_kinds::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("godynamo_kinds::bump", mutates_args=("x",))
def _bump(x: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return x * 2


def test_custom_operators_by_their_schemas():
    """A pure operator stays in one graph; one that changes an operand and also returns a new tensor runs in CPython."""
    from godynamo.testing import CompileCounter

    def f(x):
        return torch.ops.godynamo_kinds.twice(x) + 1

    def g(x):
        y = x * 1
        return torch.ops.godynamo_kinds.bump(y) + y

    for fn, graphs in ((f, 1), (g, 2)):
        counter = CompileCounter()
        assert torch.equal(godynamo.optimize(fn, backend=counter)(torch.ones(2)), fn(torch.ones(2)))
        assert counter.frame_count == graphs


ANEW = {
    "relu": (X,), "sin": (X,), "cumsum": (X, 0), "addmm": (X, X, Y), "masked_fill": (X, M, 0.0), "tril": (X,),
    "where": (M, X, Y),
    "layer_norm": (X, (4,)), "softmax": (X, 0), "clamp": (X, -9.0, 9.0), "roll": (X, 0),
    "repeat_interleave": (X, 1), "cat": ([X],),
    "nan_to_num": (X,), "clone": (X,), "matmul": (X, Y), "abs": (X,), "rsub": (X, 0.0), "flip": (X, (0,)), "sort": (X,),
}  # fmt: skip
NOT_ANEW = (
    "contiguous reshape to expand view squeeze type_as dropout einsum pixel_shuffle unsafe_chunk flatten float detach"
).split()


@pytest.mark.parametrize("name", sorted(ANEW))
def test_results_said_to_be_new_share_nothing(name):
    if kinds.makes_new(f"torch.{name}"):
        r = getattr(torch, name)(*ANEW[name])
        r = r[0] if isinstance(r, tuple) else r
        assert r.untyped_storage().data_ptr() not in {t.untyped_storage().data_ptr() for t in (X, Y, M)}


@pytest.mark.parametrize("name", NOT_ANEW)
def test_what_may_be_an_operand_or_a_view_is_not_said_to_be_new(name):
    assert not kinds.makes_new(name) and not kinds.makes_new(f"torch.{name}")


@pytest.mark.parametrize("name", ["transpose", "permute", "unsqueeze", "view", "select", "expand", "detach"])
def test_views_are_other_objects(name):
    args = {"transpose": (0, 1), "permute": ((0, 1),), "unsqueeze": (0,), "select": (0, 0), "detach": ()}
    if kinds.makes_new(name, True):
        assert getattr(X, name)(*args.get(name, (4, 4))) is not X
    assert not kinds.makes_new(name) and not kinds.makes_new("contiguous", True) and not kinds.makes_new("to", True)


def test_most_operations_make_a_tensor():
    assert sum(kinds.makes_new(name) for name in ANEW) >= len(ANEW) - 2


def test_every_kind_is_a_word_of_the_table():
    words = set(get_args(kinds.ResultKind))
    told = {*kinds._FUNCTIONS.values(), *kinds._METHODS.values(), *kinds._PROPERTIES.values(), *kinds._SCALARS.values()}
    told |= {kinds._return_kind(schema) for schema in torch._C._jit_get_all_schemas()}
    told |= {callables.method_kind(name, 0, ()) for name in dir(torch.Tensor)}
    assert {"tensor", "list", "self", "inline"} <= told
    assert {word.partition(":")[0] for word in told} <= words


def test_a_dtype_tells_overloads_apart():
    """In TorchScript's schemas, a dtype is an int."""
    assert kinds.result_kind_call(torch.quantize_per_tensor, 4, (), "Tfio") == "tensor"
    assert kinds.result_kind_call(torch.quantize_per_tensor, 4, (), "LTTo") == "list"
    assert kinds.result_kind_call(torch.quantize_per_tensor, 4, (), "TTTo") == "tensor"


@pytest.mark.parametrize("name", ["mm", "spmm", "dsmm", "hsmm"])
def test_other_names_of_one_function(name):
    """They are equal to each other, so what is cached for one must hold for all."""
    assert kinds.result_kind(getattr(torch, name)) == kinds.result_kind(torch.mm) == "tensor"
    assert callables.callable_name(torch.mm) == "torch.mm"
