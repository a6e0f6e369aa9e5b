"""Models of thousands of modules; one that is too large does not affect others, whose frames run the same code."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import godynamo
from godynamo import config, utils
from godynamo.testing import CompileCounter


class Steps(nn.Module):
    """Runs many Python instructions and one operation."""

    def forward(self, x):
        total = 0
        for i in range(2000):
            total += i
        return x + total


@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
def test_one_module_that_is_too_large_does_not_switch_off_the_others(backend):
    x = torch.ones(2)
    with config.patch(max_translated_instructions=5000):
        large = godynamo.optimize(Steps(), backend=CompileCounter() if backend == "whole graphs" else "eager")
        for _ in range(3):
            assert torch.equal(large(x), x + sum(range(2000)))
    utils.counters.clear()
    other = godynamo.optimize(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    other(x)
    assert dict(utils.counters["frames"]) == {"total": 1, "ok": 1}


def test_a_long_model_is_one_graph():
    """The translation takes more instructions than config.max_translated_instructions, but operations keep coming."""
    layers = [nn.ReLU() for _ in range(200)]
    plain = nn.Sequential(nn.Linear(2, 2), *layers)
    backend = CompileCounter()
    utils.counters.clear()
    with config.patch(max_translated_instructions=2000):
        optimized = godynamo.optimize(plain, backend=backend)
        x = torch.randn(3, 2)
        assert torch.equal(optimized(x), plain(x))
    assert backend.frame_count == 1
    assert dict(utils.counters["frames"]) == {"total": 1, "ok": 1}


def test_a_loop_that_captures_for_ever_ends():
    def f(x, n):
        for _ in range(n):
            x = x + 1
        return x

    utils.counters.clear()
    with config.patch(max_translated_instructions=100):
        optimized = godynamo.optimize(f)
        assert torch.equal(optimized(torch.zeros(2), 3000), torch.full((2,), 3000.0))
    assert utils.counters["frames"]["ok"] == 0


def blocks(n: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU() if i % 2 else nn.LayerNorm(2)) for i in range(n)))


@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
def test_a_model_of_thousands_of_modules_is_captured_and_guarded(backend):
    """Its guards have more parts, and more values, than 16 bits can count."""
    torch.manual_seed(0)
    plain = blocks(2000)
    graphs = CompileCounter()
    optimized = godynamo.optimize(plain, backend=graphs if backend == "whole graphs" else "eager")
    x = torch.randn(3, 2)
    utils.counters.clear()
    for _ in range(5):  # the second call records the memo, the third uses it
        assert torch.equal(optimized(x), plain(x))
    assert dict(utils.counters["frames"]) == {"total": 1, "ok": 1}
    assert utils.counters["stats"]["calls_captured"] == 4000
    assert graphs.frame_count == (backend == "whole graphs")
    (entry,) = godynamo.cache_entries(optimized)
    assert len(entry.parts) > 1 << 16
    plain[1999][0].bias = None  # one of the last guarded attributes
    assert torch.equal(optimized(x), plain(x))
    assert dict(utils.counters["frames"]) == {"total": 2, "ok": 2}
