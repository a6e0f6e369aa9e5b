"""Seeding torch's generators in captured code: an operation that runs once, in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils


def seeds_between_draws(x: torch.Tensor) -> Any:
    before = torch.rand(2)
    torch.manual_seed(3)
    y = x + torch.rand(2, 3)
    torch.random.manual_seed(seed=4)
    return before, y, y.shape, torch.nn.functional.dropout(x, 0.5)


def seeds_with_a_size(x: torch.Tensor) -> Any:
    torch.manual_seed(x.shape[0] + 7)
    return x + torch.randn(3)


def raises_after_it(x: torch.Tensor) -> Any:
    torch.rand(1)
    try:
        torch.manual_seed(1)
        z = torch.rand(3)
        x.reshape(7)
    except RuntimeError as error:
        return z, torch.rand(2), str(error)


def refuses_the_seed(x: torch.Tensor) -> Any:
    try:
        torch.manual_seed("a")  # type: ignore[arg-type]
    except ValueError as error:
        return x + torch.rand(3), str(error)


def seeds_in_a_loop(x: torch.Tensor) -> Any:
    for i in range(3):
        torch.manual_seed(i)
        x = x * torch.rand(3)
    return x


def uses_the_generator(x: torch.Tensor) -> Any:
    generator = torch.manual_seed(5)
    return x + torch.rand(3, generator=generator), generator is torch.default_generator


def puts_a_state_back(x: torch.Tensor) -> Any:
    state = torch.get_rng_state()
    y = x + torch.rand(3)
    torch.set_rng_state(state)
    return y, torch.rand(3)


FUNCTIONS = {
    fn: breaks
    for fn, breaks in (
        (seeds_between_draws, 0),
        (seeds_with_a_size, 0),
        (raises_after_it, 0),
        (refuses_the_seed, 0),
        (seeds_in_a_loop, 0),
        (uses_the_generator, None),
        (puts_a_state_back, 1),
    )
}


def outcome(fn: Callable[..., Any], x: torch.Tensor) -> str:
    torch.manual_seed(0)
    return repr((fn(x), torch.rand(1)))  # the state that it leaves


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_same_numbers_as_in_eager_mode(fn: Callable[..., Any], backend: str) -> None:
    godynamo.reset()
    utils.counters.clear()
    optimized = godynamo.optimize(fn, backend=backend)
    for rows in (2, 2, 5):
        x = torch.ones(rows, 3)
        x = x[:2] if fn is seeds_between_draws else x
        assert outcome(optimized, x) == outcome(fn, x)
    if backend == "eager" and FUNCTIONS[fn] is not None:
        assert sum(utils.counters["graph_break"].values()) == FUNCTIONS[fn]


def test_the_function_that_dynamo_wraps() -> None:
    import torch._dynamo

    assert torch.manual_seed is not torch.random.manual_seed
    utils.counters.clear()
    x = torch.ones(2, 3)
    assert outcome(godynamo.optimize(seeds_with_a_size), x) == outcome(seeds_with_a_size, x)
    assert not utils.counters["graph_break"]
