"""Random programs give CPython's result, mutations, output and exception; see generated.py. `make fuzz` runs many more."""

from __future__ import annotations

import logging
from typing import Any

import corpus
import generated
import pytest
import torch
from test_programs import BACKENDS, outcome

import godynamo
from godynamo import _C


def arguments(seed: int) -> list[tuple[Any, ...]]:
    """Calls that take different branches, and one where both tensors are the same object."""
    torch.manual_seed(seed)

    def thing() -> corpus.Counter:
        c = corpus.Counter(1)
        c.t = torch.ones(2)  # type: ignore[attr-defined]
        return c

    calls = [(torch.randn(2) * s, torch.randn(2), n, [1, 2], {"k": 2}, thing()) for n in (1, 2) for s in (1, -1)]
    x = torch.randn(2)
    return [*calls, (x, x, 1, [5], {"z": 1}, thing())]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(40))
def test_generated_program_is_cpythons(seed: int, backend: str) -> None:
    # Under a backend that takes whole graphs, the traceback of an operation that raises behind one that changed a tensor in place
    # ends in the graph module (docs/conformance-notes.md); the inline backend has no such limit.
    fn, source = generated.program(seed, in_place=backend == "eager")
    calls = arguments(seed)
    expected = [outcome(fn, args) for args in calls]
    optimized = godynamo.optimize(fn, backend=BACKENDS[backend])
    errors = _C.counters()["internal_errors"]
    logging.getLogger("godynamo").setLevel(logging.ERROR)
    try:
        for turn in range(2):
            for args, want in zip(calls, expected, strict=True):
                assert outcome(optimized, args) == want, f"turn {turn}\n{source}"
    finally:
        logging.getLogger("godynamo").setLevel(logging.NOTSET)
    assert _C.counters()["internal_errors"] == errors, source
