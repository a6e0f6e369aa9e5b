"""nn.Buffer: a plain tensor with an attribute, which isinstance and modules read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils


class Sub(torch.Tensor):
    pass


def marked(name: str) -> torch.Tensor:
    x = torch.ones(2, 3)
    setattr(x, name, True)
    return x


OPERANDS: dict[str, Callable[[], torch.Tensor]] = {
    "plain": lambda: torch.ones(2, 3),
    "buffer": lambda: nn.Buffer(torch.ones(2, 3)),
    "parameter": lambda: nn.Parameter(torch.ones(2, 3)),
    "marked as a parameter": lambda: marked("_is_param"),
    "subclass": lambda: torch.ones(2, 3).as_subclass(Sub),
    "sparse": lambda: torch.ones(2, 3).to_sparse(),
    "negative": lambda: torch.ones(2, 3, dtype=torch.complex64).conj().imag,
}


def of_an_operand(x):
    kinds = nn.Parameter, nn.Buffer, (nn.Parameter, nn.Buffer), (int, nn.Buffer), torch.FloatTensor
    return [isinstance(x, kind) for kind in kinds], torch.ones(2) + 1


def of_a_computed_tensor(x):
    y = x.detach()
    kinds = nn.Parameter, nn.Buffer, torch.FloatTensor, torch.DoubleTensor, (torch.FloatTensor, int)
    return [isinstance(y, kind) for kind in kinds], torch.ones(2) + 1


def made(x):
    y = nn.Buffer(x * 2)
    return isinstance(y, nn.Buffer), isinstance(y, (int, nn.Buffer)), isinstance(y, nn.Parameter), torch.ones(2) + 1


def marked_and_not(x):
    before = isinstance(x, nn.Buffer)
    x._is_buffer = True
    between = isinstance(x, nn.Buffer)
    del x._is_buffer
    return before, between, isinstance(x, nn.Buffer), torch.ones(2) + 1


def in_a_module_that_is_made(x):
    module = nn.Module()
    module.a = nn.Buffer(x * 2)
    module.b = x * 3
    return list(module._buffers), "b" in module.__dict__, torch.ones(2) + 1


MODULE = nn.Module()


def in_a_module(x):
    MODULE.a = x
    return list(MODULE._buffers), list(MODULE._parameters), "a" in MODULE.__dict__


@pytest.mark.parametrize(
    "fn", [of_an_operand, of_a_computed_tensor, made, marked_and_not, in_a_module_that_is_made, in_a_module]
)
@pytest.mark.parametrize("first", OPERANDS)
def test_operands_of_all_kinds(fn: Callable[[Any], Any], first: str) -> None:
    def outcome(call: Callable[[Any], Any], x: torch.Tensor) -> Any:
        MODULE.__init__()  # type: ignore[misc]
        try:
            return [v for v in call(x) if not isinstance(v, torch.Tensor)]
        except Exception as error:
            return repr(error)

    godynamo.reset()
    compiled = godynamo.optimize(fn)
    for name in (first, *OPERANDS, *reversed(OPERANDS)):
        assert outcome(compiled, OPERANDS[name]()) == outcome(fn, OPERANDS[name]()), name


@pytest.mark.parametrize("fn", [of_an_operand, of_a_computed_tensor, made])
def test_one_graph(fn: Callable[[Any], Any]) -> None:
    godynamo.reset()
    compiled = godynamo.optimize(fn)
    for name in ("plain", "buffer", "parameter") if fn is not of_a_computed_tensor else ("plain",):
        compiled(OPERANDS[name]())
    assert not utils.counters["graph_break"]
