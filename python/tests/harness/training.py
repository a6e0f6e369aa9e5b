"""Shared by the training tests: a small transformer, whole training runs, and a comparison with eager."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import godynamo
from godynamo import utils
from godynamo.testing import CompileCounter
from harness.capture import counted

VOCABULARY, LENGTH, STEPS = 17, 8, 20


def whole(gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
    """A backend that receives whole graphs and runs them unchanged."""
    gm.graph.lint()
    return gm.forward


class Block(torch.nn.Module):
    """A layer with attention and dropout."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.norm2 = torch.nn.LayerNorm(width)
        self.mlp = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Transformer(torch.nn.Module):
    """Predicts the next token."""

    def __init__(self, width: int = 16, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, width)
        self.positions = torch.nn.Parameter(torch.randn(LENGTH, width) * 0.1)
        self.blocks = torch.nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.head = torch.nn.Linear(width, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch(i: int) -> torch.Tensor:
    """Return the i-th batch of token sequences, the same in each run: each counts up from another token."""
    start = torch.randint(0, VOCABULARY, (4, 1), generator=torch.Generator().manual_seed(i))
    return (start + torch.arange(LENGTH + 1)) % VOCABULARY


def loss_of(model: Callable[..., torch.Tensor], ids: torch.Tensor) -> torch.Tensor:
    """Return the loss of a batch."""
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


class Run:
    """The result of a training run: losses, parameters, buffers, optimizer state, the random generator's state."""

    def __init__(self, losses: list[float], model: torch.nn.Module, optimizer: Any = None) -> None:
        self.losses = losses
        self.tensors = [*model.parameters(), *model.buffers()]
        if optimizer is not None:
            self.tensors += [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        self.drawn = torch.get_rng_state()

    def same(self, other: Run) -> None:
        """Check that everything equals the other run's, bit by bit."""
        assert self.losses == other.losses
        assert torch.equal(self.drawn, other.drawn)
        assert len(self.tensors) == len(other.tensors)
        assert all(torch.equal(a, b) for a, b in zip(self.tensors, other.tensors, strict=True))

    def close(self, other: Run, tolerance: float = 1e-3) -> None:
        """Check that losses and tensors equal the other run's, up to a tolerance."""
        torch.testing.assert_close(self.losses, other.losses, rtol=tolerance, atol=tolerance)
        for a, b in zip(self.tensors, other.tensors, strict=True):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def both(make: Callable[[], Callable[..., Any]], *calls: tuple[Any, ...], backend: Any = "eager") -> CompileCounter:
    """Make ``calls`` eagerly and under godynamo, from the same seed, with the functions that ``make`` returns; compare.

    ``make`` is called for each run, so that the runs share no state. Returns the backend, which is a counter of
    graphs if ``backend`` is "counted".
    """
    counter = CompileCounter() if backend == "counted" else backend
    torch.manual_seed(0)
    fn = make()
    expected = [outcome(fn, args) for args in calls]
    drawn = torch.get_rng_state()
    torch.manual_seed(0)
    optimized = godynamo.optimize(make(), backend=counter)
    found = [outcome(optimized, args) for args in calls]
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert a == b, f"call {i}: eager {a}, godynamo {b}"
    assert torch.equal(drawn, torch.get_rng_state())
    return counter


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the outcome of a call as data."""
    args = tuple(a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args)
    try:
        value = fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    return facts(value), [facts(a.grad) for a in args if isinstance(a, torch.Tensor)]


def facts(value: Any) -> Any:
    """Return a value as data that == compares: tensors by bits, dtype, shape, requires_grad."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.requires_grad, repr(value.detach().tolist())
    if isinstance(value, (list, tuple)):
        return [facts(v) for v in value]
    if isinstance(value, dict):
        return {k: facts(v) for k, v in value.items()}
    return repr(value)


def breaks() -> dict[str, int]:
    """Return the reasons of the graph breaks so far, with their counts."""
    return dict(utils.counters["graph_break"])


def quiet() -> None:
    """Silence warnings about functions with many argument shapes."""
    logging.getLogger("godynamo").setLevel(logging.ERROR)


def _step_of(program: Callable[[list[Any]], Callable[..., Any]]) -> tuple[Callable[..., Any], Callable[[int], Any]]:
    """Return a program's step, and the function that gives the arguments of its i-th call after i."""
    torch.manual_seed(0)
    step = program([])
    return step, getattr(step, "arguments", lambda i: ())


def assert_one_graph(program: Callable[[list[Any]], Callable[..., Any]]) -> None:
    """Check that the third step of a program is one graph. Optimizers and gradients have their state by then."""
    step, more = _step_of(program)
    for i in range(2):
        step(i, *more(i))
    explained = godynamo.explain(step)(2, *more(2))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def assert_predictions_hold(program: Callable[[list[Any]], Callable[..., Any]]) -> None:
    """Check that no prediction of a program is wrong: then resume functions would run the rest of the frames."""
    plain, more = _step_of(program)
    step = godynamo.optimize(plain)
    before = counted("translations")
    for i in range(6):
        step(i, *more(i))
    assert counted("translations") - before == len(godynamo.cache_entries(step))
