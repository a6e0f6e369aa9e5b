"""torch.Generator objects passed to captured functions: operations draw from them, in the program's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils

G = torch.Generator()


def one_draw(x: Any, g: Any) -> Any:
    return x + torch.randn(2, 3, generator=g)


def many_operations(x: Any, g: Any) -> Any:
    p = torch.softmax(x, -1)
    drawn = torch.multinomial(p, 1, generator=g), torch.randperm(4, generator=g), torch.bernoulli(p, generator=g)
    made = torch.empty(3).normal_(generator=g), torch.randint(0, 5, (3,), generator=g)
    return *drawn, *made, torch.normal(0.0, 1.0, (2,), generator=g), torch.rand(2, generator=g, out=torch.empty(2))


def two_names_of_one(x: Any, g: Any) -> Any:
    y = torch.rand(2, generator=G)
    z = torch.rand(2, generator=g, dtype=torch.float64)
    return y, z, z.shape, z.stride(), z.dtype, g is G, isinstance(g, torch.Generator), type(g) is torch.Generator


def a_loop(x: Any, g: Any) -> Any:
    for _ in range(7):
        x = x * torch.rand(2, 3, generator=g)
    return x


def seeds_it(x: Any, g: Any) -> Any:
    before = torch.rand(2, generator=g)
    y = torch.rand(2, generator=g.manual_seed(3))
    g.manual_seed(x.shape[0])
    return before, y, torch.rand(2, generator=g), torch.rand(1)


def an_exception(x: Any, g: Any) -> Any:
    try:
        y = torch.rand(2, generator=g)
        x.reshape(7)
    except RuntimeError as error:
        return y, torch.rand(2, generator=g), str(error)


def a_break(x: Any, g: Any) -> Any:
    y = torch.rand(2, generator=g)
    godynamo.graph_break()
    return y + torch.rand(2, generator=g), g is G


def asks_it(x: Any, g: Any) -> Any:
    return x + torch.rand(3, generator=g, device=g.device), g.initial_seed()


def made_here(x: Any, g: Any) -> Any:
    own = torch.Generator().manual_seed(0)
    other = torch.Generator(device=torch.device("cpu"))
    other.manual_seed(x.shape[0])
    y = torch.randn(2, 3, generator=own)
    drawn = torch.multinomial(x.softmax(0), 2, generator=other), torch.empty(2).normal_(generator=own)
    return x + y, *drawn, y.shape, y.dtype, own is g, own is other, own is None, bool(own), type(own)


def several_in_a_list(x: Any, g: Any) -> Any:
    def make(seed: int) -> torch.Generator:
        made = torch.Generator()
        made.manual_seed(seed)
        return made

    by_seed = {seed: make(seed) for seed in range(3)}
    return torch.stack([torch.rand(2, generator=made) for made in by_seed.values()]), torch.rand(1, generator=g)


def made_and_returned(x: Any, g: Any) -> Any:
    own = torch.Generator()
    own.manual_seed(7)
    y = x + torch.rand(3, generator=own)
    return y, Shown(own), [Shown(own)]


def with_gradients(x: Any, g: Any) -> Any:
    w, own = x.clone().requires_grad_(), torch.Generator().manual_seed(2)
    g.manual_seed(1)
    (w * torch.rand(3, generator=own) * torch.rand(3, generator=g)).sum().backward()
    return w.grad


def made_before_a_break(x: Any, g: Any) -> Any:
    own = torch.Generator().manual_seed(2)
    y = torch.rand(3, generator=own)
    godynamo.graph_break()
    return y, torch.rand(3, generator=own), own.initial_seed(), own is g


def made_before_an_exception(x: Any, g: Any) -> Any:
    own = torch.Generator().manual_seed(2)
    try:
        y = torch.rand(3, generator=own)
        x.reshape(7)
    except RuntimeError as error:
        return y, torch.rand(3, generator=own), str(error)


class Shown:
    """It prints a generator by what it draws next."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator

    def __repr__(self) -> str:
        return repr((type(self.generator), torch.rand(2, generator=self.generator)))


CAPTURED = [
    one_draw,
    many_operations,
    two_names_of_one,
    a_loop,
    seeds_it,
    made_here,
    several_in_a_list,
    made_and_returned,
    with_gradients,
]
OTHERS = [an_exception, a_break, asks_it, made_before_a_break, made_before_an_exception]


def outcome(fn: Callable[..., Any], x: torch.Tensor) -> str:
    G.manual_seed(0)
    torch.manual_seed(0)
    return repr(([fn(x, G) for _ in range(3)], torch.rand(1, generator=G), torch.rand(1)))


@pytest.mark.parametrize("fn", [*CAPTURED, *OTHERS], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_same_numbers_as_in_eager_mode(fn: Callable[..., Any], backend: str) -> None:
    godynamo.reset()
    utils.counters.clear()
    x = torch.arange(6.0).reshape(2, 3)
    assert outcome(godynamo.optimize(fn, backend=backend), x) == outcome(fn, x)
    if backend == "eager" and fn in CAPTURED:
        assert dict(utils.counters["graph_break"]) == {} and utils.counters["stats"]["unique_graphs"] == 1


def test_another_generator_is_no_recompile() -> None:
    optimized, x = godynamo.optimize(one_draw), torch.zeros(2, 3)
    utils.counters.clear()
    for seed in range(3):
        got = optimized(x, torch.Generator().manual_seed(seed))
        assert got.equal(one_draw(x, torch.Generator().manual_seed(seed)))
    assert utils.counters["stats"]["unique_graphs"] == 1
    assert optimized(x, None).shape == x.shape


def wrong_seed(x: Any, g: Any) -> Any:
    return x + torch.rand(2, generator=g), g.manual_seed("a")


def wrong_device(x: Any, g: Any) -> Any:
    return x + torch.rand(2, generator=torch.Generator("nowhere"))


@pytest.mark.parametrize("fn", [wrong_seed, wrong_device])
def test_errors_are_eager_modes(fn: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError) as want:
        fn(torch.ones(2), G)
    with pytest.raises(RuntimeError) as got:
        godynamo.optimize(fn)(torch.ones(2), G)
    assert str(got.value) == str(want.value)


def test_a_frame_that_only_makes_a_generator_has_no_graph() -> None:
    def make() -> torch.Generator:
        return torch.Generator().manual_seed(4)

    assert godynamo.explain(make)().graph_count == 0
    assert godynamo.optimize(make)().initial_seed() == 4
