"""What operations change or draw is undone, or breaks the graph, before the user's code runs again.

Covers operations whose names do not show it: custom operators, overloads, functions allowed in graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo


@torch.library.custom_op("godynamo_traces::draws", mutates_args=())
def draws(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rand(3, 3)


draws.register_fake(torch.empty_like)


@godynamo.allow_in_graph
def allowed(x: Any) -> Any:
    return x * torch.rand(3, 3)


def observed(x: Any, m: Any) -> Any:
    one, low = torch.ones(1), torch.zeros(1)
    args = one, one, m.running_mean[:1], m.running_var[:1], one, low.int()
    return torch.fused_moving_avg_obs_fake_quant(x, *args, 0.1, 0, 255, -1)


STATISTICS = (True, 0.1, 1e-5)
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "custom": lambda x, m: torch.ops.godynamo_traces.draws(x),
    "custom overload": lambda x, m: torch.ops.godynamo_traces.draws.default(x),
    "custom definition": lambda x, m: draws(x),
    "allowed": lambda x, m: allowed(x),
    "random overload": lambda x, m: torch.ops.aten.bernoulli.default(x.detach() * 0.1),
    "dropout overload": lambda x, m: torch.ops.aten.native_dropout.default(x, 0.5, True)[0],
    "in-place overload": lambda x, m: torch.ops.aten.mul_.Tensor(m.running_mean, x.detach()[0]) * x,
    "native_batch_norm": lambda x, m: torch.native_batch_norm(
        x, None, None, m.running_mean, m.running_var, *STATISTICS
    )[0],
    "native_batch_norm overload": lambda x, m: torch.ops.aten.native_batch_norm.default(
        x, None, None, m.running_mean, m.running_var, *STATISTICS
    )[0],
    "batch norm, legitimate": lambda x, m: torch._native_batch_norm_legit(
        x, None, None, m.running_mean, m.running_var, *STATISTICS
    )[0],
    "observer": observed,
}


def after_effect(op: Any, x: Any, m: Any, log: list[Any], bad: Any) -> Any:
    y = op(x, m)
    log.append(1)
    return y @ bad


def caught(op: Any, x: Any, m: Any, log: list[Any], bad: Any) -> Any:
    try:
        y = op(x, m)
        return y @ bad
    except RuntimeError:
        log.append(1)
    return x


def between(op: Any, x: Any, m: Any, log: list[Any], bad: Any) -> Any:
    log.append(1)
    y = op(x, m)
    log.append(2)
    return (y + 1) @ bad


def outcome(fn: Callable[..., Any], op: Any, wrong: bool) -> Any:
    torch.manual_seed(0)
    x, log, m = torch.full((3, 3), 2.0, requires_grad=True), [], torch.nn.BatchNorm1d(3)
    try:
        result: Any = fn(op, x, m, log, torch.ones(7 if wrong else 3, 3)).tolist()
    except RuntimeError as error:
        result = str(error)
    buffers = [(b.tolist(), b._version) for b in m.buffers()]
    return result, log, buffers, torch.get_rng_state().tolist()


@pytest.mark.parametrize("backend", ["eager", lambda gm, example_inputs: gm.forward], ids=["inline", "whole"])
@pytest.mark.parametrize("fn", [after_effect, caught, between])
@pytest.mark.parametrize("name", OPERATIONS)
def test_hidden_traces(fn: Callable[..., Any], name: str, backend: Any) -> None:
    optimized = godynamo.optimize(fn, backend=backend)
    for wrong in (True, False, True):
        assert outcome(optimized, OPERATIONS[name], wrong) == outcome(fn, OPERATIONS[name], wrong)


def test_in_place_overload_returns_its_operand() -> None:
    def fn(x: Any) -> Any:
        y = torch.ops.aten.add_.Tensor(x, x)
        return y is x, y * 2

    optimized = godynamo.optimize(fn)
    for _ in range(2):
        same, y = optimized(torch.ones(2))
        assert same
        assert y.tolist() == [4.0, 4.0]
