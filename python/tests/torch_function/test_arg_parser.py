"""Calls that torch's argument parser accepts and rejects: S001-39 to 42."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torch_function_support import compare, plain


def square() -> list[Any]:
    return [torch.arange(6.0).reshape(2, 3)]


BAD = {
    "missing": lambda x: (x.sin(), torch.sin())[1],
    "missing, one of many": lambda x: torch.add(x.sin()),
    "too many": lambda x: torch.sin(x.sin(), 1, 2, 3),
    "wrong type": lambda x: torch.add(x.sin(), "1"),
    "unknown keyword": lambda x: torch.sin(x.sin(), b=1),
    "missing, method": lambda x: x.sin().gather(),
    "wrong type, method": lambda x: x.sin().matmul(3),
    "wrong keyword value": lambda x: torch.sum(x.sin(), dim="a"),
    "no signature fits": lambda x: torch.mean(x.sin(), 0.5),
}

TEXTS = {
    "missing": "missing 1 required positional argument",
    "too many": "takes 1 positional argument but 4 were given",
    "wrong type": r"argument 'other' \(position 2\) must be Tensor, not str",
    "unknown keyword": "got an unexpected keyword argument 'b'",
}


@pytest.mark.row("S001-39")
@pytest.mark.parametrize("name", BAD)
def test_refused_calls_raise_torchs_own_error(name: str) -> None:
    got = compare(BAD[name], square)
    assert got.backend.all_ops()[:1] in ([], ["sin"])
    with pytest.raises(TypeError) as info:
        BAD[name](*square())
    if name in TEXTS:
        info.match(TEXTS[name])


@pytest.mark.row("S001-39")
def test_a_refused_call_that_is_caught() -> None:
    def f(x: Any) -> Any:
        y = x.sin()
        try:
            return torch.add(y)
        except TypeError as error:
            return str(error), y.cos()

    compare(f, square)


@pytest.mark.row("S001-40")
def test_integers_one_by_one_or_as_a_tuple() -> None:
    def f(x: Any) -> Any:
        y = x[None]
        return (
            y.permute(1, 2, 0),
            y.permute((1, 2, 0)),
            y.permute([1, 2, 0]),
            plain().expand(5, 3),
            plain().expand((5, 3)),
            x.reshape(3, 2),
            x.reshape((3, -1)),
            x.view(6),
            x.repeat(2, 1),
            x.flip(0, 1),
            x.new_zeros(2, 3),
            torch.zeros(2, 3),
            torch.zeros((2, 3)),
        )

    compare(f, square).one_graph("permute", "expand", "reshape")


@pytest.mark.row("S001-41")
def test_numpys_keyword_names() -> None:
    def f(x: Any) -> Any:
        return (
            torch.sum(x, axis=0),
            x.sum(axis=1, keepdims=True),
            torch.mean(x, axis=0, keepdims=True),
            torch.cat((x, x), axis=1),
            torch.add(x1=x, x2=x) if False else torch.add(x, x2=x),
            torch.mul(x, x2=x),
            x.max(axis=1).values,
            torch.softmax(x, axis=0) if False else x.argmax(axis=0),
            torch.sum(a=x, axis=0) if False else x.std(axis=0),
        )

    compare(f, square).one_graph("sum", "mean", "cat")


@pytest.mark.row("S001-42")
def test_the_overload_is_torchs_choice() -> None:
    def f(x: Any) -> Any:
        return (
            torch.mean(x, 0),
            torch.mean(x, dtype=torch.float64),
            torch.mean(x, (0, 1)),
            torch.sum(x, 0, True),
            torch.sum(x, dtype=torch.float64),
            torch.max(x),
            torch.max(x, 0),
            torch.max(x, x + 1),
            torch.add(x, 2),
            torch.add(x, x, alpha=2),
            torch.clamp(x, 1, 2),
            torch.clamp(x, x, x + 1),
            torch.std(x, False),
            torch.std(x, 0),
            torch.where(x > 1, x, 0),
            torch.full((2,), 3),
            torch.full((2,), 3.0),
            torch.arange(3),
            torch.arange(0, 3, 0.5),
        )

    compare(f, square).one_graph("mean", "sum", "max", "add", "clamp")
