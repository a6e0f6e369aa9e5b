"""Strides and is_contiguous: expressions over sizes, which guards compare; for computed tensors torch's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_symbols import assert_same, outcome


def asks_contiguous(x: Any) -> Any:
    return x + 1 if x.is_contiguous() else x.contiguous() * 2


def asks_strides(x: Any) -> Any:
    return x + x.stride(0), x.stride(), x.stride(-1) * 2, x.stride(1) == 1


def asks_formats(x: Any) -> Any:
    y = x.relu()
    last, volumes = torch.channels_last, torch.channels_last_3d
    return (
        x.is_contiguous(memory_format=last),
        y.is_contiguous(memory_format=last),
        x.is_contiguous(memory_format=volumes),
        x.is_contiguous(memory_format=torch.contiguous_format),
        y.is_contiguous(memory_format=torch.contiguous_format),
    )


def asks_bytes(x: Any) -> Any:
    return x.nbytes + x.element_size(), x[:1].nbytes, x.double().nbytes


def asks_wrongly(x: Any) -> Any:
    return x.stride(5)


LAYOUTS = {
    "rows": lambda n: torch.randn(n, 4),
    "columns": lambda n: torch.randn(4, n),
    "transposed": lambda n: torch.randn(n, 4).t(),
    "a part of each row": lambda n: torch.randn(n, 9)[:, 2:6],
    "a part that grows": lambda n: torch.randn(9, 20)[:, :n],
    "every second row": lambda n: torch.randn(2 * n, 4)[::2],
    "repeated": lambda n: torch.randn(1, 4).expand(n, 4),
    "images": lambda n: torch.randn(2, n, 3, n + 1),
    "channels last": lambda n: torch.randn(2, 3, n, n + 1).contiguous(memory_format=torch.channels_last),
}
SIZES = (6, 7, 4, 9, 5, 12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [asks_contiguous, asks_strides, asks_bytes], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("backend", "most"), [("eager", 1), ("aot_eager", 2)])
def test_one_entry_serves_all_sizes(f, layout, backend, most) -> None:
    optimized = godynamo.optimize(f, backend=backend)
    for n in SIZES:
        x = LAYOUTS[layout](n)
        assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= most, [e.parts for e in entries(optimized)]


EVERY = [asks_contiguous, asks_strides, asks_formats, asks_bytes, asks_wrongly]


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_layouts_and_sizes_in_turn(f) -> None:
    """An entry must not serve a tensor of another layout. Sizes 0 and 1 make a layout contiguous."""
    optimized = godynamo.optimize(f)
    for n in (5, 1, 0, 4, 2):
        for make in LAYOUTS.values():
            x = make(n)
            assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_memory_formats(backend) -> None:
    for layout in ("images", "channels last", "rows"):
        optimized = godynamo.optimize(asks_formats, backend=backend)
        for n in SIZES:
            x = LAYOUTS[layout](n)
            assert_same(optimized(x), asks_formats(x))
        assert len(entries(optimized)) <= 2
        godynamo.reset()
    assert_no_internal_errors()


def test_strides_after_a_change_in_place() -> None:
    def f(x):
        y = x.stride(0)
        x.t_()
        return x.is_contiguous(), x.stride(0), y

    optimized = godynamo.optimize(f)
    for n in (5, 1, 4, 2):
        assert_same(outcome(optimized, (torch.randn(n, 3),)), outcome(f, (torch.randn(n, 3),)))


COMPUTED = {
    "elementwise": lambda x: x.relu() + 1,
    "transposed": lambda x: x.exp().t(),
    "permuted": lambda x: x[None].permute(2, 0, 1),
    "reshaped": lambda x: x.t().reshape(-1),
    "a product": lambda x: x @ x.t(),
    "a slice": lambda x: (x + 1)[1:],
    "a slice of columns": lambda x: x.cos()[:, 1:3],
    "joined": lambda x: torch.cat([x, x.t().contiguous().t()]),
    "reduced": lambda x: x.sum(0, keepdim=True) / x.shape[0],
    "expanded": lambda x: x.sum(0).expand(x.shape[0], 4),
    "sorted": lambda x: x.t().sort(0).values,
    "in place": lambda x: x.clone().t_(),
    "without gradients": lambda x: torch.no_grad()(lambda: x.t() * 2)(),
}


@pytest.mark.parametrize("make", COMPUTED)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_computed_tensors(make, backend) -> None:
    def f(x: Any) -> Any:
        y = COMPUTED[make](x)
        return (y * 2 if y.is_contiguous() else y.contiguous()), y.stride(), y.stride(0) + 1

    optimized = godynamo.optimize(f, backend=backend)
    for n in (6, 7, 4, 9, 5, 12):
        x = torch.randn(n, 4)
        assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    most = 6 if make == "in place" else 3  # sizes that an operation may have changed are constants
    assert len(entries(optimized)) <= most, [e.parts for e in entries(optimized)]


@pytest.mark.parametrize("make", COMPUTED)
def test_computed_tensors_of_other_layouts(make) -> None:
    def f(x: Any) -> Any:
        y = COMPUTED[make](x)
        return y.is_contiguous(), y.stride()

    optimized = godynamo.optimize(f)
    for n in (5, 3, 1, 0, 4, 2):
        for layout in ("rows", "a part of each row", "every second row", "repeated"):
            x = LAYOUTS[layout](n)
            assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()


@pytest.mark.parametrize("n", [1, 0, 3])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_strides_of_dimensions_of_size_1(n, backend) -> None:
    """FakeTensor has other strides than eager mode: the graph breaks where they are read."""

    def f(x: Any) -> Any:
        y = x.t()
        a, b, c = y.view(y.shape), y + 1, y.reshape(1, -1)
        return a.stride(), b.stride(), c.stride(), a.stride(1), b.is_contiguous(), c.is_contiguous()

    optimized = godynamo.optimize(f, backend=backend)
    for _ in range(2):
        x = torch.randn(4, n)
        assert_same(optimized(x), f(x))
    assert_no_internal_errors()
