"""torch.nn.attention.sdpa_kernel in captured code, and enums of torch's C++ code."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()

MATH = SDPBackend.MATH


def flags() -> list[Any]:
    """Return which kernels may run, and their order of preference."""
    c: Any = torch._C
    enabled = [getattr(c, f"_get_{name}_sdp_enabled")() for name in ("cudnn", "flash", "math", "mem_efficient")]
    return [*enabled, c._get_sdp_priority_order()]


def attend(x: Any) -> Any:
    q = x.reshape(1, 1, 2, 2)
    return F.scaled_dot_product_attention(q, q, q)


@cases
def one_kernel(x):
    with sdpa_kernel(MATH) as entered:
        return attend(x), entered


@cases
def several_kernels(x):
    with sdpa_kernel([MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        y = attend(x)
    with sdpa_kernel(backends=[]):
        return y, x + 1


@cases
def one_in_another(x):
    manager = sdpa_kernel(MATH)
    with manager:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, MATH]):
            y = attend(x)
        return attend(y.reshape(4))


@cases
def an_exception_inside(x):
    try:
        with sdpa_kernel(MATH):
            attend(x.reshape(5))
    except RuntimeError as error:
        return attend(x), str(error)


@cases
def members(x):
    names = MATH.name, SDPBackend.ERROR.value, int(SDPBackend.FLASH_ATTENTION), repr(MATH)
    equal = MATH == SDPBackend.MATH, MATH is SDPBackend.MATH, MATH != SDPBackend.ERROR, {MATH: 1}[SDPBackend.MATH]
    return x + 1, names, equal, isinstance(MATH, SDPBackend), isinstance(3, (list, SDPBackend))


@cases(args=lambda: (MATH,))
def a_member_as_argument(x, backend):
    with sdpa_kernel(backend):
        return (attend(x) if backend == MATH else x), backend


@cases
def leaves_the_frame(x):
    return x + 1, type(sdpa_kernel(MATH)).__name__


@cases(breaks=None)
def no_kernel(x):
    with sdpa_kernel("math"):
        return x + 1


@cases(breaks=None)
def entered_twice(x):
    manager = sdpa_kernel(MATH)
    with manager:
        y = x + 1
    with manager:
        return y * 2


@cases(graphs=2, breaks=None)
def a_break_inside(x):
    with sdpa_kernel(MATH):
        y = attend(x)
        godynamo.graph_break()
        z = flags()
        return attend(y.reshape(4)), z


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_case(case: Case) -> None:
    before = flags()
    check(case)
    assert flags() == before


def test_the_kernel_is_chosen_where_the_graph_runs() -> None:
    seen: list[Any] = []

    @godynamo.allow_in_graph
    def see(x: torch.Tensor) -> torch.Tensor:
        seen.append(flags())
        return x + 1

    @godynamo.optimize
    def fn(x: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(MATH):
            y = see(x)
        return see(y)

    before = flags()
    fn(torch.ones(2))
    seen.clear()
    fn(torch.ones(2))
    with sdpa_kernel(MATH):
        inside = flags()
    assert seen == [inside, before]


def test_another_member_is_another_translation() -> None:
    fn = godynamo.optimize(lambda x, backend: x + int(backend))
    assert [fn(torch.zeros(1), b).item() for b in (MATH, SDPBackend.FLASH_ATTENTION, MATH)] == [0, 1, 0]


def test_a_returned_manager_can_be_entered() -> None:
    manager, _ = godynamo.optimize(lambda x: (sdpa_kernel(MATH), x + 1))(torch.ones(1))
    before = flags()
    with manager:
        assert flags() != before
    assert flags() == before
