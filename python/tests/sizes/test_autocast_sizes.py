"""Sizes and dtypes by rule in functions that switch autocast: eager's, inside the block and after it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import godynamo


def read_inside(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        inside = y.dtype, y.shape, (y + x).dtype, y.softmax(-1).dtype
    z = x @ w
    return y, z, inside, z.dtype, z.shape, y.dtype


def read_afterwards(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
    z = x @ w
    return (y, z) if y.dtype != z.dtype and z.dtype == torch.float32 else (z, y)


def read_before(x, w):
    before = (x @ w).dtype
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
    return y, before, y.dtype, (x * w[0, 0]).dtype, (y @ y.t()).dtype


def switched_off(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        with torch.autocast("cpu", enabled=False):
            z = x @ w
            between = z.dtype
        return y, z, between, (x @ w).dtype


def nested(x, w):
    with torch.autocast("cpu", dtype=torch.float16):
        a = x @ w
        with torch.autocast("cpu", dtype=torch.bfloat16):
            b = x @ w
        c = x @ w
    return a, b, c, [t.dtype for t in (a, b, c, x @ w)]


def branch_on_sizes(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
    z = torch.cat([x, x])
    return y + 1 if z.shape[0] > 4 and z.dtype == torch.float32 else y - 1


def of_another_device(x, w):
    with torch.autocast("cuda", dtype=torch.float16, enabled=False):
        y = x @ w
    return y, y.dtype


PROGRAMS = [read_inside, read_afterwards, read_before, switched_off, nested, branch_on_sizes, of_another_device]


def told(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    return [told(v) for v in value] if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("around", [False, True], ids=["", "called under autocast"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_dtypes_are_eagers(f, around):
    compiled, w = godynamo.optimize(f), torch.rand(3, 3)
    for rows in (2, 3, 4, 2):
        x = torch.rand(rows, 3)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=around):
            assert told(compiled(x, w)) == told(f(x, w))
    explained = godynamo.explain(f)(torch.rand(2, 3), w)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_sizes_after_autocast_are_symbols():
    compiled, w = godynamo.optimize(branch_on_sizes), torch.rand(3, 3)
    for rows in (3, 4, 5, 6, 7):
        x = torch.rand(rows, 3)
        assert told(compiled(x, w)) == told(branch_on_sizes(x, w))
    assert len(godynamo.cache_entries(compiled)) <= 2
