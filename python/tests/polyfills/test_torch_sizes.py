"""Sizes to which two sizes are broadcast, in captured code: constants, symbols, and wrong sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo.testing import CompileCounter


def weighted_loss(x: Any, target: Any, weight: Any) -> Any:
    return nn.functional.binary_cross_entropy(x, target, weight)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "callable"])
def test_a_weighted_loss_is_one_graph_for_all_sizes(backend: str) -> None:
    godynamo.reset()
    counter = CompileCounter()
    compiled = godynamo.optimize(weighted_loss, backend=counter if backend == "callable" else backend)
    for rows in (3, 5, 7):
        for weights in (torch.rand(4), torch.rand(1, 4)):
            x, target = torch.rand(rows, 4), torch.rand(rows, 4)
            torch.testing.assert_close(compiled(x, target, weights), weighted_loss(x, target, weights))
    assert godynamo.explain(weighted_loss)(torch.rand(2, 4), torch.rand(2, 4), torch.rand(4)).graph_count == 1
    assert backend != "callable" or counter.frame_count <= 4  # two ranks of weights; constants, then symbols


@pytest.mark.parametrize("a", [(), (0,), (1,), (3,), (2, 3), (2, 1), (1, 1, 3)])
@pytest.mark.parametrize("b", [(), (0,), (1,), (3,), (2, 3), (4,), (5, 1, 3)])
def test_equals_torch(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    def fn(x: Any, y: Any) -> Any:
        try:
            return x + 1, torch._C._infer_size(x.shape, y.shape)  # type: ignore[attr-defined]
        except RuntimeError as error:
            return str(error)

    godynamo.reset()
    x, y = torch.zeros(a), torch.zeros(b)
    got, expected = godynamo.optimize(fn)(x, y), fn(x, y)
    assert type(got) is type(expected)
    assert got == expected if isinstance(expected, str) else got[1] == expected[1]
    assert isinstance(expected, str) or type(got[1]) is torch.Size


@pytest.mark.parametrize("sizes", [((2, 3), (3,)), (torch.Size((2, 3)),), ([1], torch.Size((1,)))])
def test_wrong_calls_are_torchs(sizes: tuple[Any, ...]) -> None:
    def fn(x: Any) -> Any:
        return x + 1, torch._C._infer_size(*sizes)  # type: ignore[attr-defined]

    with pytest.raises((RuntimeError, TypeError)) as expected:
        fn(torch.ones(1))
    godynamo.reset()
    with pytest.raises(type(expected.value)) as got:
        godynamo.optimize(fn)(torch.ones(1))
    assert str(got.value) == str(expected.value)
