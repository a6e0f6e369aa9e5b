"""Operations with a rule for sizes make no constants: one entry serves tensors of all sizes."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_ints import bits


def flat(y):
    """Read all sizes of a result, as a program may."""
    if isinstance(y, (tuple, list)):
        return [flat(item) for item in y]
    n = 1
    for s in y.shape:
        n = n * s
    return y.reshape(n), y.shape


OPERATIONS = {
    "sort": lambda x: x.sort(0),
    "argsort": lambda x: x.argsort(-1),
    "median": lambda x: x.median(1).values,
    "max": lambda x: x.max(1),
    "std": lambda x: x.std(0),
    "prod": lambda x: x.prod(1),
    "lerp": lambda x: x.lerp(x + 1, 0.5),
    "scatter": lambda x: torch.zeros_like(x).scatter_add(0, torch.zeros_like(x, dtype=torch.int64), x),
    "index_add": lambda x: x.index_add(0, torch.zeros(1, dtype=torch.int64), x[:1]),
    "rot90": lambda x: x.rot90(),
    "tile": lambda x: x.tile(2, 3),
    "diagonal": lambda x: (x @ x.T).diagonal(),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "hstack": lambda x: torch.hstack([x, x]),
    "meshgrid": lambda x: torch.meshgrid(x[:, 0], x[0], indexing="ij"),
    "rfft": lambda x: torch.fft.rfft(x.T).abs(),
    "svd": lambda x: torch.linalg.svdvals(x),
    "inverse": lambda x: torch.linalg.inv(x.T @ x + torch.eye(x.shape[1])),
    "norm": lambda x: torch.linalg.norm(x, dim=0),
    "mse": lambda x: F.mse_loss(x, x + 1, reduction="none"),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.int64), reduction="none"),
    "cosine": lambda x: F.cosine_similarity(x, x + 1),
    "one_hot": lambda x: F.one_hot(torch.zeros(x.shape[0], dtype=torch.int64), 5),
    "normalize": lambda x: F.normalize(x),
    "searchsorted": lambda x: torch.searchsorted(torch.arange(4.0), x),
    "linspace": lambda x: torch.linspace(0, 1, x.shape[0]),
    "transposed": lambda x: F.conv_transpose1d(x[None, None, 0], torch.ones(1, 2, 3), stride=2),
    "pooled": lambda x: F.max_pool1d(x.repeat(1, 2)[None], 2, return_indices=True),
    "shuffled": lambda x: F.pixel_unshuffle(x.repeat(2, 2)[None, None], 2),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_entry_serves_all_sizes(name) -> None:
    def f(x):
        return flat(OPERATIONS[name](x))

    optimized = godynamo.optimize(f)
    for rows, columns in [(5, 3), (7, 4), (4, 3), (9, 4)]:
        torch.manual_seed(rows)
        x = torch.randn(rows, columns)
        assert bits(optimized(x)) == bits(f(x)), (rows, columns)
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1, [e.parts for e in entries(optimized)]


#: Operations whose results for no elements differ in more than their sizes: a call, and its operands' shapes in turn.
EMPTY = {
    "addmv": (torch.addmv, [[(1,), (5, 3), (3,)], [(1,), (4, 2), (2,)], [(1,), (5, 0), (0,)], [(1,), (0, 2), (2,)]]),
    "addmv_beta": (
        lambda t, m, v: torch.addmv(t, m, v, beta=0.0),
        [[(1,), (5, 3), (3,)], [(1,), (4, 2), (2,)], [(1,), (5, 0), (0,)]],
    ),
    "unshuffle": (lambda x: F.pixel_unshuffle(x, 3), [[(1, 1, 6, 3)], [(1, 2, 3, 9)], [(1, 1, 0, 0)], [(1, 0, 3, 3)]]),
    "bincount": (lambda w: torch.bincount(w.detach().long(), w), [[(3,)], [(7,)], [(0,)]]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_results_for_no_elements(name) -> None:
    operation, calls = EMPTY[name]

    def f(*xs):
        r = operation(*xs)
        return r, r.shape, r.dtype

    optimized = godynamo.optimize(f)
    for shapes in calls:
        xs = [torch.ones(shape) for shape in shapes]
        found, expected = optimized(*xs), f(*xs)
        assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:], shapes
    assert_no_internal_errors()


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules(kind) -> None:
    module = getattr(torch.nn, kind)(3, 4, num_layers=2, bidirectional=True, batch_first=True).requires_grad_(False)

    def f(x):
        y, state = module(x)
        return flat(y), flat(state)

    optimized = godynamo.optimize(f)
    for batch, length in [(2, 5), (3, 7), (4, 5)]:
        x = torch.randn(batch, length, 3)
        assert bits(optimized(x)) == bits(f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1, [e.parts for e in entries(optimized)]


def test_the_types_of_several_results() -> None:
    def f(x):
        r, s, m = x.sort(0), torch.std_mean(x), x.max(0)
        return type(r).__name__, type(s).__name__, type(m) is torch.return_types.max, r.values, m.indices.shape, x.shape

    optimized = godynamo.optimize(f)
    for n in (3, 4, 5):
        assert bits(optimized(torch.ones(n, 2))) == bits(f(torch.ones(n, 2)))
    assert len(entries(optimized)) == 1


def test_sizes_that_an_operation_requires_to_be_equal_are_facts() -> None:
    """x[mask] has a size known at run time only.

    A product requires it to equal a weight's size, and raises otherwise.
    """

    def f(x, w):
        y = x[x > 0] @ w
        z = torch.cat([x[x > 0].view(-1, 1), w], 1)
        return y.reshape(y.shape[0] * 1), z.shape

    optimized = godynamo.optimize(f)
    for n in (3, 4, 5):
        x, w = torch.arange(n + 1.0), torch.ones(n, 2)
        assert bits(optimized(x, w)) == bits(f(x, w))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        optimized(torch.arange(4.0), torch.ones(4, 2))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1


def test_operations_whose_operands_are_all_keywords() -> None:
    def f(n):
        k = torch.linspace(start=0, end=n - 1, steps=n)
        return k.shape[0], torch.full(size=(n, 2), fill_value=1.0).shape, torch.stack(tensors=[k, k], dim=0).shape

    optimized = godynamo.optimize(f)
    for n in (2, 3, 4, 5):
        assert optimized(n) == f(n)
    assert_no_internal_errors()
