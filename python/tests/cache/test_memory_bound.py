"""config.memory_mib bounds the memory of the process's translations."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import torch

import godynamo
from godynamo import config
from harness.capture import counted, entries

X = torch.ones(3)
MIB = 1 << 20


def made(n: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function of n operations, whose translation takes the more memory the greater n is."""
    body = "".join(f"    x = x + {i}\n" for i in range(n))
    space: dict[str, Any] = {}
    exec(f"def f(x):\n{body}    return x\n", space)
    return godynamo.optimize(space["f"])  # type: ignore[no-any-return]


def total(functions: list[Any]) -> int:
    return sum(e.bytes for f in functions for e in entries(f))


def test_without_a_bound_all_stay() -> None:
    functions = [made(100) for _ in range(5)]
    for f in functions:
        f(X)
    assert all(len(entries(f)) == 1 for f in functions)
    assert counted("evicted") == 0


def test_the_size_grows_with_the_code() -> None:
    small, large = made(10), made(1000)
    small(X), large(X)
    assert 0 < total([small]) * 20 < total([large])


def test_the_least_used_go_first() -> None:
    functions = [made(1000) for _ in range(4)]
    often, rarely, never, latest = functions
    for f in functions[:3]:
        f(X)
    one = total([often])
    assert one * 4 > MIB  # otherwise the functions are too small for this test
    bound = one * 3 // MIB
    others = [made(1000) for _ in range(bound * MIB // one)]
    for f in others:
        f(X)
    for _ in range(5):
        often(X)
    rarely(X)
    before = counted("evicted")
    with config.patch(memory_mib=bound):
        want = latest(X)
        assert counted("evicted") > before
        assert total([*functions, *others]) <= bound * MIB
        assert [len(entries(f)) for f in (often, never, latest)] == [1, 0, 1]
        assert torch.equal(never(X), want)  # translated again


def test_of_equally_many_calls_the_oldest_goes_first() -> None:
    functions = [made(1000) for _ in range(6)]
    with config.patch(memory_mib=1):
        for f in functions:
            f(X)
        kept = [len(entries(f)) for f in functions]
    assert kept == sorted(kept)
    assert 0 < sum(kept) < len(kept)


def test_one_that_is_greater_than_the_bound_stays_until_the_next() -> None:
    first, second = made(3000), made(3000)
    with config.patch(memory_mib=1):
        want = first(X)
        assert total([first]) > MIB
        assert [len(entries(f)) for f in (first, second)] == [1, 0]
        assert torch.equal(second(X), want)
        assert [len(entries(f)) for f in (first, second)] == [0, 1]


def test_one_that_runs_may_be_dropped() -> None:
    inner = made(3000)

    def outer(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        godynamo.graph_break()
        return inner(y) + 1

    f = godynamo.optimize(outer)
    with config.patch(memory_mib=1):
        for _ in range(3):
            assert torch.equal(f(X), inner(X * 2) + 1)


def test_what_is_dropped_is_freed() -> None:
    first, second = made(3000), made(3000)
    with config.patch(memory_mib=1):
        first(X)
        dropped = weakref.ref(entries(first)[0])
        second(X)
    gc.collect()
    assert dropped() is None
