"""How many elements of a mask are true: one size for all operations on the mask, until it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors

MASKS = [[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 0, 0]]


def calls() -> list[Any]:
    return [(torch.arange(5.0), torch.arange(10.0).reshape(2, 5), torch.tensor(m).bool()) for m in MASKS]


def selected(a: Any, b: Any, m: Any) -> Any:
    x, y, z = a[m], b[:, m], torch.cat([a[m], a])
    return x * y[0], x.shape[0] == y.shape[1], (z * torch.cat([y[1], a])).is_floating_point(), z.shape


def places(a: Any, b: Any, m: Any) -> Any:
    (i,), n = torch.where(m), m.nonzero()
    return a[i] + n[:, 0], i.shape[0] == a[m].shape[0] == n.shape[0]


def changed(a: Any, b: Any, m: Any) -> Any:
    x = a[m]
    m[0] = ~m[0]
    y = a[m]
    return x.sum(), y.sum(), x.shape[0] == y.shape[0], x.shape, y.shape


def changed_through_a_view(a: Any, b: Any, m: Any) -> Any:
    x, rest = a[m], m[1:]
    rest.logical_not_()
    y = b[:, m]
    return x.shape[0] == y.shape[1], x.shape, y.shape


def written(a: Any, b: Any, m: Any) -> Any:
    x = a[m]
    torch.gt(a, 3, out=m)
    y = a[m]
    return x.shape[0] == y.shape[0], x.shape, y.shape


def changed_as_an_array(a: Any, b: Any, m: Any) -> Any:
    array = m.numpy()
    x = a[m]
    array[0] = not array[0]
    y = a[m]
    array.fill(True)
    z = a[m]
    return x.shape[0] == y.shape[0], y.shape[0] == z.shape[0], x.shape, y.shape, z.shape


def of_equal_masks(a: Any, b: Any, m: Any) -> Any:
    x, y = a[a > 1], a[b[0] > 1]
    return x.shape[0] == y.shape[0], x.shape


@pytest.mark.parametrize(
    "f", [selected, places, changed, changed_through_a_view, changed_as_an_array, written, of_equal_masks]
)
def test_results(f: Callable[..., Any]) -> None:
    for backend in ("eager", "aot_eager"):
        godynamo.reset()
        optimized = godynamo.optimize(f, backend=backend)
        for args, expected in zip(calls(), [f(*args) for args in calls()], strict=True):
            assert repr(optimized(*args)) == repr(expected), backend
        assert_no_internal_errors()


@pytest.mark.parametrize("f", [selected, places])
def test_the_sizes_of_one_mask_are_equal(f: Callable[..., Any]) -> None:
    args = calls()[0]
    explained = godynamo.explain(f)(*args)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def pieces(x: Any, at: Any) -> Any:
    a, b, c = x.tensor_split(at)
    return a.shape[0] * 2, b + 1, c.numel(), torch.cat([c, a]), [p.sum() for p in torch.tensor_split(x, at, dim=-1)]


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "whole graph"])
def test_pieces_between_the_elements_of_a_tensor(backend: Any) -> None:
    godynamo.reset()
    optimized = godynamo.optimize(pieces, backend=backend)
    x = torch.arange(12.0).reshape(4, 3)
    for at in ([1, 3], [0, 4], [3, 1], [-1, 2], [9, 9], [2, -2]):
        found, expected = optimized(x, torch.tensor(at)), pieces(x, torch.tensor(at))
        assert str(found) == str(expected)
    assert len(godynamo.cache_entries(optimized)) == 1
    assert_no_internal_errors()
