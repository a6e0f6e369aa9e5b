"""Errors while translating keep no frame of the program alive: its arguments die when CPython would drop them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import godynamo

DEAD: list[str] = []


class Mortal:
    """Records its death."""

    def __del__(self) -> None:
        DEAD.append("died")


def sizes_from_data(x: Any, it: Any) -> Any:
    y = x.nonzero()
    return y.dim(), y + 1


def sizes_of_several(x: Any, it: Any) -> Any:
    y = torch.nonzero(x, as_tuple=True)
    return y[0].shape, x[y]


def flags_from_data(x: Any, it: Any) -> Any:
    z = torch.masked_select(x, x > 0)
    return z.view(-1, 1).shape[1], z.requires_grad, z.stride()


def turns_from_data(x: Any, it: Any) -> Any:
    for row in x.unique() + 1:
        x = x + row
    return x


def wrong_sizes(x: Any, it: Any) -> Any:
    y = x @ torch.ones(7, 7)
    return y.shape


def handled(x: Any, it: Any) -> Any:
    try:
        return x.view(5).shape
    except RuntimeError:
        return 0


def in_a_function(x: Any, it: Any) -> Any:
    return torch.vmap(lambda a: a.nonzero())(x)


def data_in_a_function(x: Any, it: Any) -> Any:
    return checkpoint(lambda a: a.item(), x.sum(), use_reentrant=False)


PROGRAMS = [
    *(sizes_from_data, sizes_of_several, flags_from_data, turns_from_data),
    *(wrong_sizes, handled, in_a_function, data_in_a_function),
]


def call(fn: Callable[..., Any]) -> str:
    it = Mortal()
    try:
        fn(torch.ones(3), it)
    except Exception as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "whole"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_arguments_die_with_the_call(program: Callable[..., Any], backend: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        for fn in (program, godynamo.optimize(program, backend=backend)):
            DEAD.clear()
            assert call(fn) == call(program)
            assert DEAD == ["died", "died"]
    finally:
        gc.enable()
