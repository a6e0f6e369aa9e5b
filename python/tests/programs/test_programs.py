"""Each program of the corpus has CPython's result, mutations, output and exception, on a miss and on hits."""

from __future__ import annotations

import contextlib
import copy
import io
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch

import corpus
import godynamo
from godynamo import _C


def recording(gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    gm.graph.lint()
    return gm.forward


BACKENDS: dict[str, Any] = {"eager": "eager", "fx": recording}


def plain(value: Any) -> Any:
    """Return a value as data that == compares completely."""
    if isinstance(value, torch.Tensor):
        return ("tensor", type(value).__name__, value.tolist(), str(value.dtype), value.requires_grad)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(v) for v in value])
    if isinstance(value, dict):
        return ("dict", [(plain(k), plain(v)) for k, v in value.items()])
    if isinstance(value, corpus.Counter):
        return ("Counter", plain({k: v for k, v in vars(value).items() if k != "extra"}))
    return value


def outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return result or exception with user frames, the arguments afterwards, and the printed text."""
    args = copy.deepcopy(args)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = ("returned", plain(fn(*args)))
        except Exception as error:
            frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)[1:]]
            result = ("raised", type(error).__name__, str(error), frames)
    return result, plain(args), out.getvalue()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("index", range(len(corpus.CASES)), ids=[f.__name__ for f, _ in corpus.CASES])
def test_program_is_cpythons(index: int, backend: str) -> None:
    fn, args = corpus.CASES[index]
    expected = outcome(fn, args)
    optimized = godynamo.optimize(fn, backend=BACKENDS[backend])
    before = _C.counters()["internal_errors"]
    for call in range(4):
        assert outcome(optimized, args) == expected, f"call {call}"
    assert _C.counters()["internal_errors"] == before


def test_returned_closure_is_a_real_function() -> None:
    x = torch.randn(3)
    value, fn = godynamo.optimize(lambda y: (lambda g: (g(y), g))(lambda z: z + y))(x)
    assert torch.equal(value, x + x)
    assert torch.equal(fn(x * 2), x * 3)
