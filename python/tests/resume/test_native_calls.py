"""Functions that CPython calls while it runs the instruction at which the graph broke are captured by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import godynamo


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def parts(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x
    godynamo.graph_break()
    yield doubled(x)


class Manager:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __enter__(self) -> torch.Tensor:
        godynamo.graph_break()
        return doubled(self.x)

    def __exit__(self, *raised: object) -> None:
        pass


def display(x: torch.Tensor) -> Any:
    return [*parts(x)]


def set_display(x: torch.Tensor) -> Any:
    return len({*parts(x)})


def loop(x: torch.Tensor) -> Any:
    out = []
    for v in parts(x):
        out.append(v)
    return out


def unpacking(x: torch.Tensor) -> Any:
    first, second = parts(x)
    return second, first


def argument(x: torch.Tensor) -> Any:
    return sum(parts(x))


def membership(x: torch.Tensor) -> Any:
    return None in parts(x)


def block(x: torch.Tensor) -> Any:
    with Manager(x) as y:
        return y


@pytest.mark.parametrize("f", [display, set_display, loop, unpacking, argument, membership, block])
def test_the_called_function_is_captured(f: Callable[[torch.Tensor], Any]) -> None:
    x = torch.arange(3.0)
    explained = godynamo.explain(f)(x)
    assert "sin" in "".join(map(str, explained.graphs))
    expected, got = f(x), godynamo.optimize(f)(x)
    assert repr(got) == repr(expected)
