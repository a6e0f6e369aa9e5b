"""Ints rounded from floats of sizes: under compilers each is a symbol, whose value is computed as CPython does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_symbols import assert_same, outcome


def root(x: Any) -> Any:
    return x[: int(math.sqrt(x.shape[0]))] * 2


def power(x: Any) -> Any:
    side = int(x.shape[0] ** 0.5)
    return x[: side * side].reshape(side, side, -1).mean(1)


def power_of_a_float(x: Any) -> Any:
    return x[: math.ceil((x.shape[0] / 2) ** 0.5)] + int((x.shape[0] * 1.5) ** 2)


def rounded(x: Any) -> Any:
    return x[: round(x.shape[0] * 0.5)] + 1


def created(x: Any) -> Any:
    return torch.zeros(math.floor(x.shape[0] / 3.0), 2) + x.sum()


def pooled(x: Any) -> Any:
    return x[: math.ceil(x.shape[0] / 3.0)].sum(0) * 2


def viewed(x: Any) -> Any:
    k = int(x.shape[0] * 0.7)
    return x[:k].view(k, -1) * k


def best(x: Any) -> Any:
    return x.topk(max(1, int(x.shape[0] * 0.3)), 0)[0] * 2


def branch(x: Any) -> Any:
    k = int(math.sqrt(x.shape[0]))
    return x[:k] * 2 if k > 2 else x * 3


def widths(x: Any) -> Any:
    k = math.trunc(x.shape[0] / 2)
    return torch.cat([x[:k], x[k:]]), x.new_full((k + 1, 2 * k), float(k)), torch.arange(k)


def reduced(x: Any) -> Any:
    return x[: int(x.shape[0] ** -0.5 * 10)].sum(0) / int(x.shape[0] ** 1.5)


PROGRAMS = [root, power, power_of_a_float, rounded, created, pooled, viewed, best, branch, widths, reduced]
SIZES = (6, 7, 4, 9, 5, 12, 16, 8, 14, 23)


def tensors(sizes: Sequence[int]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(n, 4) for n in sizes]


def captures(f: Callable[..., Any], backend: str) -> int:
    """Return the number of torch.compile's captures."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    optimized = torch.compile(f, backend=counter)
    for x in tensors(SIZES):
        optimized(x)
    return counter.frame_count


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_no_more_captures_than_torch_compile(f) -> None:
    optimized = godynamo.optimize(f, backend="aot_eager")
    for x in tensors(SIZES):
        assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= captures(f, "aot_eager"), [e.parts for e in entries(optimized)]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_any_size(f) -> None:
    """Few and no rows as well, where an operation may raise."""
    for order in ((3, 1, 0, 2), (5, 4, 0, 1, 31), (0, 1, 2, 3)):
        godynamo.reset()
        optimized = godynamo.optimize(f, backend="aot_eager")
        for x in tensors(order):
            assert_same(outcome(optimized, (x,)), outcome(f, (x,)))
    assert_no_internal_errors()


NUMBERS = {
    "root": lambda n: int(math.sqrt(n)),
    "power": lambda n: int(n**0.5),
    "cube root": lambda n: round(n ** (1 / 3)),
    "reciprocal": lambda n: math.ceil(1000 * (n + 1) ** -0.25),
    "tenth": lambda n: int(n * 0.1),
    "third": lambda n: math.floor(n / 3.0),
    "half to even": lambda n: round(n / 2),
    "ceil": lambda n: math.ceil(n * 1.1),
    "negative": lambda n: int(-n / 7) - math.floor(-n * 0.3),
    "of a float": lambda n: int(((n + 1) / 3) ** 1.5),
    "of two": lambda n: int(int(n * 0.7) * 0.3) + math.ceil(min(n / 3, math.sqrt(n) + 2.5)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_values_are_those_of_python(name) -> None:
    number = NUMBERS[name]

    def f(x: Any) -> Any:
        k = number(x.shape[0])
        return x.sum() * k, k, x.new_zeros(abs(k) + 1)

    sizes = [4, 5, *range(140), *(p for p in range(140, 4000, 61) if all(p % d for d in range(2, 64))), 2921, 2**16]
    optimized = godynamo.optimize(f, backend="aot_eager", cache_size_limit=20)
    for n in sizes:
        x = torch.ones(n)
        assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 5, [e.parts for e in entries(optimized)]


def test_conditions_of_the_compiler_are_guards() -> None:
    def f(x: Any, y: Any) -> Any:
        return x[: round(x.shape[0] * 0.5)] + y

    optimized = godynamo.optimize(f, backend="aot_eager")
    calls = [(n, round(n * 0.5)) for n in (6, 8, 12, 7, 20, 9)] + [(6, 1), (14, 2), (2, 5), (3, 3), (9, 4)]
    for n, k in calls:
        args = torch.randn(n, 3), torch.randn(k, 3)
        assert_same(outcome(optimized, args), outcome(f, args))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 6


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_a_size_of_an_input_that_equals_a_rounded_float(backend) -> None:
    def f(x: Any) -> Any:
        k = int(x.shape[0] * 0.7)
        y = x.sum(0) * 2 if x.shape[1] == k else x.sum(1)
        return y, x.t().contiguous().stride(), x[:k].t().is_contiguous(), x.new_empty(k, 3).t().stride()

    optimized = godynamo.optimize(f, backend=backend)
    for n in (10, 20, 13, 30, 17):
        for width in (int(n * 0.7), n):
            x = torch.randn(n, width)
            assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 5, [e.parts for e in entries(optimized)]


def test_a_size_of_an_input_is_computed_from_a_rounded_float() -> None:
    def f(x: Any) -> Any:
        return x.sum(0) * 2 if x.shape[1] == 2 * int(x.shape[0] * 0.7) + 1 else x.sum(1)

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n in (10, 20, 13, 30, 17):
        x = torch.randn(n, 2 * int(n * 0.7) + 1)
        assert_same(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 2, [e.parts for e in entries(optimized)]


def test_training() -> None:
    linear = torch.nn.Linear(4, 3)

    def f(x: Any) -> Any:
        return linear(x[: int(math.sqrt(x.shape[0]))]).relu().sum() / round(x.shape[0] * 0.4)

    optimized = godynamo.optimize(f, backend="aot_eager")
    for values in tensors(SIZES):
        found = []
        for g in (f, optimized):
            x = values.clone().requires_grad_()
            value = g(x)
            found.append((value.detach(), *torch.autograd.grad(value, [x, *linear.parameters()])))
        assert_same(found[1], found[0])
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 3, [e.parts for e in entries(optimized)]


def test_an_int_passed_to_the_function() -> None:
    def f(x: Any, n: int) -> Any:
        return x[: int(n * 0.25)] * 2, torch.zeros(int(math.sqrt(n)))

    optimized = godynamo.optimize(f, backend="aot_eager", cache_size_limit=20)
    for n in (16, 20, 7, 33, 40, 8, 0, 1, 2, -1, 2**53 + 1, 25):
        args = torch.ones(9), n if abs(n) < 2**53 else 12
        assert_same(outcome(optimized, args), outcome(f, args))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 8, [e.parts for e in entries(optimized)]


def test_inductor() -> None:
    def f(x: Any) -> Any:
        k = int(x.shape[0] ** 0.5)
        return x[:k].view(k, -1) * k + torch.arange(math.ceil(x.shape[0] / 3.0)).sum()

    optimized = godynamo.optimize(f, backend="inductor")
    for x in tensors(SIZES):
        torch.testing.assert_close(optimized(x), f(x))
    assert_no_internal_errors()
    assert len(entries(optimized)) <= 2, [e.parts for e in entries(optimized)]
