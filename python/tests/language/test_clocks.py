"""Functions that read a clock: their results are values of each call, read at their places among the operations."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils

FLOATS = [time.time, time.monotonic, time.perf_counter, time.process_time, time.thread_time]
INTS = [time.time_ns, time.monotonic_ns, time.perf_counter_ns, time.process_time_ns]


@pytest.mark.parametrize("clock", FLOATS + INTS, ids=lambda fn: fn.__name__)
def test_read_where_the_program_reads_it(clock: Any) -> None:
    seen: list[Any] = []

    @godynamo.allow_in_graph
    def see(x: torch.Tensor) -> torch.Tensor:
        seen.append(clock())
        return x + 1

    def fn(x: torch.Tensor) -> Any:
        start = clock()
        y = see(x)
        middle = clock()
        return see(y), start, middle, middle - start

    optimized = godynamo.optimize(fn)
    utils.counters.clear()
    for _ in range(3):
        seen.clear()
        before = clock()
        y, start, middle, spent = optimized(torch.zeros(2))
        assert y.equal(torch.full((2,), 2.0))
        first, second = seen[-2:]  # torch may have called it while translating, too
        times = [before, start, first, middle, second, clock()]
        assert times == sorted(times) and spent == middle - start
        assert {type(t) for t in (start, middle, spent)} == {float if clock in FLOATS else int}
    assert dict(utils.counters["graph_break"]) == {} and utils.counters["stats"]["unique_graphs"] == 1


class Timed(torch.nn.Module):
    """Measures its own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.spent: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        start = time.perf_counter()
        y: torch.Tensor = self.linear(x)
        self.spent.append(time.perf_counter() - start)
        return y


def test_equal_layers_measure_themselves() -> None:
    model = torch.nn.Sequential(Timed(), Timed(), Timed())
    optimized, x = godynamo.optimize(model), torch.ones(1, 2)
    utils.counters.clear()
    for _ in range(3):
        assert optimized(x).equal(model(x))
    times = [t for layer in model for t in layer.spent]
    assert len(set(times)) > 3 and all(t >= 0 for t in times) and [len(layer.spent) for layer in model] == [6] * 3
    assert dict(utils.counters["graph_break"]) == {} and utils.counters["stats"]["unique_graphs"] == 1


def test_a_loop_reads_it_in_each_turn() -> None:
    def fn(x: torch.Tensor, n: int) -> Any:
        times = []
        for _ in range(n):
            x = x + 1
            times.append(time.perf_counter_ns())
        return x, times

    optimized = godynamo.optimize(fn)
    for n in (2, 5, 9, 300):
        x, times = optimized(torch.zeros(1), n)
        assert x.item() == n and len(set(times)) == n and times == sorted(times)


def test_a_branch_on_it_breaks_the_graph() -> None:
    def fn(x: torch.Tensor, limit: float) -> torch.Tensor:
        start = time.monotonic()
        y = x + 1
        if time.monotonic() - start < limit:
            y = y * 2
        return y

    optimized = godynamo.optimize(fn)
    assert [optimized(torch.zeros(1), limit).item() for limit in (100.0, -1.0, 100.0)] == [2, 1, 2]


def test_it_crosses_a_break() -> None:
    def fn(x: torch.Tensor) -> Any:
        start = time.monotonic()
        y = x + 1
        godynamo.graph_break()
        return y * 2, start, f"{time.monotonic() - start:.0f} s"

    optimized = godynamo.optimize(fn)
    for _ in range(2):
        before = time.monotonic()
        y, start, text = optimized(torch.zeros(1))
        assert y.item() == 2 and before <= start <= time.monotonic() and text == "0 s"


def test_a_whole_graph_is_not_measured_from_outside() -> None:
    def fn(x: torch.Tensor) -> Any:
        start = time.perf_counter()
        for _ in range(20):
            x = x @ x * 1e-4
        return x, time.perf_counter() - start

    optimized, x = godynamo.optimize(fn, backend="aot_eager"), torch.rand(300, 300)
    optimized(x)
    start = time.perf_counter()
    spent = optimized(x)[1]
    assert spent > (time.perf_counter() - start) / 4


def test_another_clock_takes_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    optimized = godynamo.optimize(lambda x: (x + 1, time.time()))
    assert optimized(torch.ones(1))[1] > 5
    monkeypatch.setattr(time, "time", lambda: 5)
    assert optimized(torch.ones(1))[1] == 5
    monkeypatch.undo()
    assert optimized(torch.ones(1))[1] > 5


def test_arguments_are_refused_as_in_cpython() -> None:
    with pytest.raises(TypeError, match="takes no arguments"):
        godynamo.optimize(lambda x: (x + 1, time.time(3)))(torch.ones(1))  # type: ignore[call-arg]
