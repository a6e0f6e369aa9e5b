"""numpy's scalar functions, its scalars as operands of torch's operations; torch.Size where it differs from a tuple."""

from __future__ import annotations

import operator
import types
import warnings

import numpy as np
import pytest
import torch

import godynamo
from harness.capture import break_reasons, nb

FUNCTIONS = {
    "ceil": lambda x: x + np.ceil(3.2),
    "prod": lambda x: x * int(np.prod([2, 3])),
    "prod of a shape": lambda x: x.reshape(np.prod(x.shape)),
    "sqrt": lambda x: (x / np.sqrt(x.shape[0]), np.sqrt(2) * x),
    "log2": lambda x: x + float(np.log2(8)),
    "mean": lambda x: x + np.mean((1, 2, 3)),
    "types": lambda x: (x + 1, np.sqrt(4), np.maximum(2, 3), np.prod(x.shape), np.max([1, 2.5]), np.clip(3, 0, 2)),
    "norm": lambda x: x + np.linalg.norm([3, 4]),
    "attributes": lambda x: (x + 1, np.ceil.__name__, np.prod.__name__, np.sqrt.nin),
}

SPLIT = {
    "warns": lambda x: x + float(np.log(0)),
    "an array": lambda x: x + np.add(np.array([1.0, 2]), 1).sum(),
    "an error": lambda x: x + np.linalg.norm("a"),
    "a tensor": lambda x: np.sqrt(x.detach()),
    "out": lambda x: (x + 1, np.sqrt([4.0], out=np.zeros(1))),
}

I64, I32, F32, F64, BOOL = np.int64(2), np.int32(1), np.float32(2.5), np.float64(1.5), np.bool_(True)

OPERANDS = """
x.view(I64, -1); x.reshape((I64, -1)); x.reshape([I64, 4]); x.expand(I64, 4); x.mul(F32); x.add(I64)
x.add(x, alpha=F64); torch.add(x, F32); torch.full((2,), F32); torch.full((2,), I64); torch.full((I64,), 1)
torch.zeros(I64, I32); torch.ones((I64, I32)); x[I32]; x[:I64]; x[I64 - 1:]; x.sum(I32); x.transpose(I32, 0)
torch.arange(I64); torch.arange(F32); torch.linspace(0, F32, I64); x.new_full((2,), F32); torch.where(x > 0, F32, x)
torch.clamp(x, min=F32); x.clamp(max=I64); torch.pow(F32, x); x.double() + F32; x.masked_fill(x > 0, F32)
x.long() + F32; x.long() // I64; x.long() / I64; torch.nn.functional.dropout(x, p=F32 * 0.1)
torch.nn.functional.interpolate(x[None], scale_factor=F64 * 2); torch.nn.functional.pad(x, (I64, I32))
torch.nn.functional.interpolate(x[None], size=I64); torch.nn.functional.avg_pool1d(x, I64)
torch.nn.functional.one_hot(torch.arange(3), I64 + 2); torch.topk(x, I64); x.chunk(I64, 1); torch.stack([x, x], I32)
x.repeat(I64, I32); x.fill_(F32); x.clone().add_(I64); x.unfold(I32, I64, I64); torch.randn(I64, I64)
torch.roll(x, I64, I32); torch.div(x, I64, rounding_mode="floor"); torch.randint(0, I64, (I64,))
torch.full_like(x, F32); torch.nn.functional.layer_norm(x, (I64 + 2,))
torch.nn.functional.conv1d(x[None], torch.ones(1, 2, I64), stride=I32); torch.lerp(x, x, F32)
"""

KEPT = """
torch.tensor(F32); torch.tensor([F32, F64]); torch.as_tensor(F32); x.new_tensor(F32); torch.Tensor([F32])
torch.scalar_tensor(F32); x.split(I64, 1); torch.result_type(x.long(), F32); torch.ops.aten.mul.Scalar(x, F32)
torch.ops.aten.add(x, F32); torch.add(x.long(), BOOL); x.long() * BOOL; x @ F32
"""


def outcome(fn, *args):
    """Return the outcome of a call, including types and warnings."""
    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = fn(*args)
        except Exception as error:
            value = type(error), str(error)
    return repr(value), type(value), getattr(value, "dtype", None), [str(w.message) for w in seen]


def checked(fn, *args, graphs=None):
    backend = nb()
    optimized = godynamo.optimize(fn, backend=backend)
    want = outcome(fn, *[a.clone() for a in args])
    for _ in range(2):
        assert outcome(optimized, *[a.clone() for a in args]) == want
    if graphs is not None:
        assert not break_reasons() and len(backend) == graphs, break_reasons()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numbers(name):
    checked(FUNCTIONS[name], torch.arange(3.0), graphs=1)


@pytest.mark.parametrize("name", SPLIT)
def test_what_numpy_does_itself(name):
    checked(SPLIT[name], torch.arange(2.0))


def written(text):
    return [line.strip() for line in text.replace("\n", ";").split(";") if line.strip()]


def function(text):
    ns = dict(globals())
    exec(f"def f(x): return {text}", ns)
    return ns["f"]


@pytest.mark.parametrize("text", written(OPERANDS))
def test_scalars_are_the_numbers_they_hold(text):
    checked(function(text), torch.arange(8.0).reshape(2, 4) - 3, graphs=1)


@pytest.mark.parametrize("text", written(KEPT))
def test_scalars_that_torch_tells_from_numbers(text):
    checked(function(text), torch.arange(8.0).reshape(2, 4) - 3)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_operators_beside_a_tensor(dtype, left):
    names = "add sub mul truediv floordiv mod pow matmul lshift and_ or_ xor lt le gt ge eq ne iadd imul".split()
    for name in names:
        for scalar in (F64, F32, I64, BOOL, np.uint8(3), np.float16(2)):
            op = getattr(operator, name)

            def f(x):
                return op(scalar, x) if left else op(x, scalar)

            own = types.FunctionType(f.__code__.replace(), f.__globals__, f"{name}_{scalar}", None, f.__closure__)
            checked(own, torch.tensor([1, 0, 3]).to(dtype))


@torch.compiler.allow_in_graph
def tells(x, size):
    return x + (1 if isinstance(size, torch.Size) else 2)


SIZES = {
    "new": lambda x: x.new(x.size()).zero_(),
    "new of a slice": lambda x: x.new(x.shape[1:]).zero_(),
    "new of a longer one": lambda x: x.new(x.shape + (1,)).zero_().shape,
    "new of a tuple": lambda x: x.new((x.size(0), 2)),
    "new of a list": lambda x: x.new([x.size(0), 2]),
    "new, unbound": lambda x: torch.Tensor.new(x, x.shape).zero_(),
    "new of numbers": lambda x: x.new(x.size(0), 2).zero_(),
    "data": lambda x: x.data.new(x.size()).normal_(0, 0.5) + x,
    "a legacy constructor": lambda x: torch.FloatTensor(x.shape).zero_(),
    "a function in the graph": lambda x: (tells(x, x.shape), tells(x, tuple(x.shape)), tells(x, x.shape[:1])),
    "as data": lambda x: (torch.tensor(x.shape), torch.as_tensor(x.size())),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_no_tuple(name):
    """x.new(x.shape) has that shape, but x.new((2, 3)) contains these two numbers."""
    checked(SIZES[name], torch.randn(3, 2))


def sums(x):
    s, t = x.shape, (1,)
    made = [
        s + t,
        t + s,
        s + s,
        s * 2,
        2 * s,
        s[1:],
        s[::-1],
        sum([s], ()),
        s[:],
        s.__add__(t),
        (*s,),
        tuple(s),
        s + (),
        () + s,
    ]
    s += t
    t += x.shape
    return [type(v).__name__ for v in (*made, s, t)], made, s, t, x + 1


def refused(x, other):
    return x.shape + other, x + 1


def test_sums_of_sizes():
    """The result of + and * with a torch.Size depends on torch's version."""
    x = torch.ones(2, 3)
    checked(sums, x, graphs=1)
    for other in ((1.5,), ("a",), [1], (True,), 1, (x,), (4,)):
        checked(lambda x, other=other: refused(x, other), x)
