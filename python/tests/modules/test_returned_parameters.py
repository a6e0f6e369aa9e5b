"""Operations that return their operand: the result of ``p.contiguous()`` is the nn.Parameter ``p`` itself."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import Parameter

import godynamo
from godynamo.testing import CompileCounter


def atleast(y):
    y = torch.atleast_2d(y)
    return isinstance(y, Parameter), type(y) is Parameter, y.__class__ is torch.Tensor, y + 1


def broadcast(y):
    first, second = torch.broadcast_tensors(y, torch.ones(2, 2))
    return isinstance(first, Parameter), isinstance(second, Parameter), type(first) is torch.Tensor, first + second


def contiguous(y):
    y = y.contiguous()
    return isinstance(y, Parameter), isinstance(y, torch.Tensor), y * 2


def converted(y):
    y = y.to(torch.float32).to("cpu")
    return isinstance(y, (int, Parameter)), type(y) is Parameter, y * 2


def one_of_a_list(y):
    y = torch.atleast_2d(torch.ones(1), y)[1]
    return isinstance(y, Parameter), y + 1


def computed(y):
    y = y.contiguous() * 1
    return isinstance(y, Parameter), type(y) is torch.Tensor, y


def raised(y):
    y = torch.atleast_2d(y)
    if isinstance(y, Parameter):
        raise IndexError("a parameter")
    return y + 1


FUNCTIONS = [atleast, broadcast, contiguous, converted, one_of_a_list, computed, raised]
ARGUMENTS = {
    "parameter": lambda: Parameter(torch.ones(2, 2)),
    "tensor": lambda: torch.ones(2, 2),
    "vector parameter": lambda: Parameter(torch.ones(2)),
    "transposed parameter": lambda: Parameter(torch.arange(4.0).reshape(2, 2).t()),
    "double parameter": lambda: Parameter(torch.ones(2, 2, dtype=torch.float64)),
}


def outcome(fn: Any, y: torch.Tensor) -> list[Any]:
    try:
        values = fn(y)
    except IndexError as error:
        return [str(error)]
    return [v.tolist() if isinstance(v, torch.Tensor) else v for v in (values if type(values) is tuple else (values,))]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
def test_type_of_a_returned_operand(fn: Any, backend: str) -> None:
    compiled = godynamo.optimize(fn, backend=backend if backend == "eager" else CompileCounter())
    for _ in range(2):
        for name, make in ARGUMENTS.items():
            assert outcome(compiled, make()) == outcome(fn, make()), name


def test_the_type_of_a_returned_operand_breaks_no_graph() -> None:
    counter = CompileCounter()
    assert outcome(godynamo.optimize(contiguous, backend=counter, nopython=True), ARGUMENTS["parameter"]())
    assert (counter.frame_count, counter.op_count) == (1, 2)
