"""What programs commonly compute from sizes: pieces, grids, scales, caches. Few entries serve all sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_symbols import assert_same, outcome


def chunks(x: Any) -> Any:
    a, b = x.chunk(2)
    return a.sum(0) - b.sum(0), a.shape[0] * 10 + b.shape[0]


def three_chunks(x: Any) -> Any:
    return [part.shape[0] for part in x.chunk(3)], x.chunk(3)[-1] * 2


def pieces(x: Any) -> Any:
    return [part.sum() * part.shape[0] for part in x.split(4)]


def pieces_by_size(x: Any) -> Any:
    return [part.sum() for part in x.split(x.shape[0] // 2)]


def nearly_equal(x: Any) -> Any:
    return [part.shape[0] for part in x.tensor_split(3)], x.tensor_split(3)[1] + 1


def gated(x: Any) -> Any:
    a, b = x.chunk(2)
    return a * b.sigmoid()


def scaled(x: Any) -> Any:
    return x * x.shape[0] ** -0.5, x.shape[0] ** 0.5, x.shape[1] ** 2.0


def product(x: Any) -> Any:
    return x.reshape(math.prod(x.shape)), math.prod(x.shape[:1], start=2), math.prod([x.shape[0], 0.5])


def numbers_as_tensors(x: Any) -> Any:
    return x / torch.tensor(x.shape[0]), torch.tensor([x.shape[0], x.shape[1]]).sum(), torch.tensor(float(x.shape[1]))


def resized(x: Any) -> Any:
    image = x[None, None]
    return F.interpolate(image, scale_factor=0.5) + 1, F.interpolate(image, scale_factor=(1.75, 2.0)).shape[2]


def grid(x: Any) -> Any:
    side = int(x.shape[0] ** 0.5)
    return x[: side * side].reshape(side, side, -1).mean(1)


#: function → (the most entries inline, and under AOTAutograd) for SIZES
PROGRAMS = {
    chunks: (1, 2),
    three_chunks: (2, 4),  # 4 rows are two chunks
    pieces: (4, 7),
    pieces_by_size: (2, 4),
    nearly_equal: (1, 7),
    gated: (2, 8),  # raises eager mode's exception for an odd size
    scaled: (1, 2),
    product: (1, 2),
    numbers_as_tensors: (1, 2),
    resized: (1, 2),
    grid: (3, 2),
}
SIZES = (6, 7, 4, 9, 5, 12, 16, 8, 14)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_few_entries_serve_all_sizes(f, backend) -> None:
    most = PROGRAMS[f][backend == "aot_eager"]
    optimized = godynamo.optimize(f, backend=backend)
    for n in SIZES:
        x = torch.randn(n, 4)
        assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= most, [e.parts for e in entries(optimized)]


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not gated], ids=lambda f: f.__name__)
def test_no_rows_and_one_row(f) -> None:
    for order in ((3, 1, 0), (0, 1, 2), (1, 0, 5)):
        godynamo.reset()
        optimized = godynamo.optimize(f)
        for n in order:
            x = torch.randn(n, 4)
            assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()


class Cached(torch.nn.Module):
    """Appends to a tensor that it keeps as an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.k: torch.Tensor | None = None
        self.project = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        k = self.project(x)
        self.k = k if self.k is None else torch.cat([self.k, k], 1)
        seen = torch.arange(self.k.shape[1]) >= self.k.shape[1] - 3
        return (x @ self.k.transpose(1, 2)).masked_fill(~seen, -math.inf).softmax(-1) @ self.k


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Cached() for _ in range(3)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize(("backend", "most"), [("eager", 3), ("aot_eager", 4)])
@pytest.mark.parametrize("kind", [Cached, Layers])
def test_a_cache_on_a_module_grows(kind, backend, most) -> None:
    steps: Sequence[torch.Tensor] = [torch.randn(1, 1, 4) for _ in range(9)]
    torch.manual_seed(0)
    plain = kind().eval()
    torch.manual_seed(0)
    optimized = godynamo.optimize(kind().eval(), backend=backend)
    with torch.no_grad():
        for x in steps:
            assert_same(optimized(x), plain(x))
    assert_no_internal_errors()
    assert godynamo.cache_stats(optimized)["translations"] <= most


def test_modules_whose_tensors_differ() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("scale", torch.randn(n))

        def forward(self, x: Any) -> Any:
            return x * self.scale

    modules = [Scaled(n) for n in (3, 4, 5)]

    def f(module: Any, x: Any) -> Any:
        return module(x) + 1

    optimized = godynamo.optimize(f)
    for module in modules * 2:
        x = torch.randn(2, module.scale.shape[0])
        assert_same(optimized(module, x), f(module, x))
    assert len(entries(optimized)) <= 3
