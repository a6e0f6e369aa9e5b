"""Under saved-tensor hooks a piece does not run again: hooks see each operation once, and effects are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import godynamo

BACKENDS: list[Any] = ["eager", lambda gm, example_inputs: gm.forward, "aot_eager"]
IDS = ["inline", "whole", "aot_eager"]


def between(x: Any, w: Any, log: list[Any]) -> Any:
    y = (x @ w).relu()
    log.append(1)
    z = (y * x).tanh()
    log.append(2)
    return z.sin() @ w


def first(x: Any, w: Any, log: list[Any]) -> Any:
    log.append(1)
    return (x @ w).sin() @ w


def in_a_block(x: Any, w: Any, log: list[Any]) -> Any:
    log.append(1)
    try:
        y = (x @ w).relu()
        z = (y * x).tanh()
    except ValueError:
        z = x
    finally:
        log.append(2)
    return z.sin() @ w


def caught(x: Any, w: Any, log: list[Any]) -> Any:
    y = (x @ w).relu()
    log.append(1)
    try:
        return y @ y.sin()[:2]
    except RuntimeError:
        log.append(2)
    return y.tanh() * w


def switches(x: Any, w: Any, log: list[Any]) -> Any:
    y = (x @ w).relu()
    torch.set_grad_enabled(False)
    return y @ y[:2]


FUNCTIONS = [between, first, in_a_block, caught, switches]


def hooked(f: Callable[..., Any], wrong: bool, shapes: bool = True) -> Any:
    """Describe a call under hooks: result, effects, what the hooks saw, and the grad mode after it."""
    torch.manual_seed(0)
    x, w = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
    seen: list[Any] = []
    log: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append(tuple(t.shape))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        try:
            result: Any = f(x, w[:, :2] if wrong else w, log).tolist()
        except RuntimeError as error:
            result = str(error)
        grad = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    return result, log, grad, seen if shapes else None


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("backend", BACKENDS, ids=IDS)
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_hooks_see_operations_once_and_effects_are_kept(fn: Callable[..., Any], backend: Any, wrong: bool) -> None:
    # AOTAutograd saves other tensors than the operations would.
    shapes = backend != "aot_eager"
    expected = hooked(fn, wrong, shapes)
    optimized = godynamo.optimize(fn, backend=backend)
    for _ in range(3):
        assert hooked(optimized, wrong, shapes) == expected


@pytest.mark.parametrize("backend", BACKENDS, ids=IDS)
@pytest.mark.parametrize("fn", [between, first, in_a_block, caught])
def test_checkpointing_ends_its_second_forward_pass(fn: Callable[..., Any], backend: Any) -> None:
    def outcome(f: Callable[..., Any]) -> Any:
        torch.manual_seed(0)
        x, w = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
        log: list[Any] = []
        checkpoint(f, x, w, log, use_reentrant=False).sum().backward()
        return x.grad.tolist(), w.grad.tolist(), log  # type: ignore[union-attr]

    expected = outcome(fn)
    optimized = godynamo.optimize(fn, backend=backend)
    for _ in range(3):
        assert outcome(optimized) == expected


@pytest.mark.parametrize("fn", [between, in_a_block])
@pytest.mark.parametrize("hooks_first", [False, True])
def test_one_graph_without_hooks(fn: Callable[..., Any], hooks_first: bool) -> None:
    graphs: list[Any] = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    optimized = godynamo.optimize(fn, backend=backend)
    x = torch.ones(3, 3, requires_grad=True)
    if hooks_first:
        hooked(optimized, False)
        graphs.clear()
    optimized(x, x, [])
    assert len(graphs) == 1
    hooked(optimized, False)
    graphs.clear()
    optimized(x, x, [])
    hooked(optimized, False)
    assert not graphs


def sine(x: Any, w: Any, log: list[Any]) -> Any:
    return (x @ w).sin()


def comprehension(x: Any, w: Any, log: list[Any]) -> Any:
    """In 3.12 the comprehension has a handler, which only restores `row`."""
    return [(row @ w).sin() for row in (x, x)][1]


def delegating(x: Any, w: Any, log: list[Any]) -> Any:
    """In 3.12 `yield from` has a handler, whether the generator has stopped there or not."""

    def rows() -> Any:
        yield from (x, w)

    return [row.sin() @ w for row in rows()][0]


@pytest.mark.parametrize("fn", [sine, comprehension, delegating])
def test_without_effects_one_graph_serves_both(fn: Callable[..., Any]) -> None:
    graphs: list[Any] = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    optimized = godynamo.optimize(fn, backend=backend)
    assert hooked(optimized, False) == hooked(fn, False)
    x = torch.ones(3, 3, requires_grad=True)
    optimized(x, x, [])
    assert len(graphs) == 1


def test_first_call_of_a_process_is_not_seen_by_hooks() -> None:
    program = """
import torch, godynamo
seen = []
x = torch.ones(3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)) or t, lambda t: t):
    godynamo.optimize(lambda x: x.sin())(x)
print(seen)
"""
    place = {**os.environ, "PYTHONPATH": str(Path(godynamo.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=place, capture_output=True, text=True)
    assert done.stdout == "[(3,)]\n", done.stderr
