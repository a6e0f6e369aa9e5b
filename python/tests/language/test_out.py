"""Operations that write to out= tensors, and those that find indices: one graph that returns the same tensors."""

from __future__ import annotations

import warnings

import pytest
import torch

import godynamo
from harness.cases import Cases, check

cases = Cases()


def memory(*shapes, dtype=torch.float32):
    return lambda: tuple(torch.zeros(shape, dtype=dtype) for shape in shapes)


@cases(args=memory((2, 2)))
def one(x, out):
    x = x.view(2, 2)
    y = torch.add(x, 1, out=out)
    return y is out, y * 2, out.sum()


@cases
def of_its_own(x):
    x = x.view(2, 2)
    out = torch.empty_like(x)
    torch.mul(x, 3, out=out)
    torch.add(out, 1, out=out[0])
    return out, out.shape


@cases(args=memory((0,)))
def resized(x, out):
    x = x.view(2, 2)
    y = torch.exp(x, out=out)
    return y.shape, out + 1, y is out


@cases(args=lambda: (torch.zeros(2), torch.zeros(2, dtype=torch.int64)))
def two(x, values, at):
    x = x.view(2, 2)
    found = torch.max(x, 1, out=(values, at))
    first, second = found
    return first is values, second is at, found.values + 1, at * 2, len(found)


@cases(args=memory((2, 2)))
def none_and_twice(x, out):
    x = x.view(2, 2)
    return (
        torch.sub(x, 1, out=None),
        torch.linalg.inv(x + torch.eye(2) * 9, out=out),
        torch.cat([x, x], out=torch.empty(0)),
    )


@cases(args=memory((2, 2)))
def behind_and_before_effects(x, out):
    x = x.view(2, 2)
    seen = [out.sum()]
    torch.matmul(x, x, out=out)
    seen.append(out.sum())
    x += 1
    torch.matmul(x, x, out=out)
    return seen, out


@cases(args=memory((3, 3)))
def a_part_of_the_callers(x, out):
    x = x.view(2, 2)
    torch.add(x, 5, out=out[1:, 1:])
    return out.diagonal()


@cases
def places(x):
    x = x.view(2, 2)
    a, b = torch.nonzero(x > 0, as_tuple=True)
    (c,) = (x.flatten() > 0).nonzero(as_tuple=True)
    rows, columns = torch.where(x > 0)
    return a, b, c, rows + columns, torch.nonzero(x, as_tuple=False), x[a, b], torch.tensor(3.0).nonzero(as_tuple=True)


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_out(case):
    check(case)


def test_translating_shows_no_warning() -> None:
    """torch warns about an out= tensor that it resizes; so does FakeTensor, in its own words."""

    def fn(x: torch.Tensor, out: torch.Tensor) -> object:
        torch.exp(x, out=out)
        return out.shape, out + 1

    def shown(call: object) -> list[str]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call(torch.ones(2, 3), torch.zeros(5))  # type: ignore[operator]
        return [str(w.message) for w in seen]

    compiled = godynamo.optimize(fn)
    assert shown(compiled) == shown(fn) == shown(compiled)
    assert len(shown(fn)) == 1
