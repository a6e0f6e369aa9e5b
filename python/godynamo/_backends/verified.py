"""Implements config.verify_correctness: compares the first call of a compiled graph with the captured graph."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from ..testing import same

log = logging.getLogger("godynamo")


class Verified:
    """Runs a compiled graph. The first call also runs the captured graph; it raises RuntimeError if results differ."""

    def __init__(self, compiled: Callable[..., Any], reference: Any, name: str) -> None:
        self._compiled = compiled
        self._reference = reference
        self._name = name

    def __call__(self, *inputs: Any) -> Any:
        if self._reference is None:
            return self._compiled(*inputs)
        reference, self._reference = self._reference, None
        copies = [copied(x) for x in inputs]
        state = torch.get_rng_state()
        expected = reference.forward(*copies)
        torch.set_rng_state(state)
        result = self._compiled(*inputs)
        for what, got, want in (("output", result, expected), ("input", inputs, copies)):
            for i, (a, b) in enumerate(zip(got, want, strict=True)):
                if not same(a, b):
                    text = f"backend {self._name!r}: {what} {i} differs from eager's"
                    log.warning("config.verify_correctness: %s", text)
                    raise RuntimeError(text)
        return result


def copied(x: Any) -> Any:
    """Return a copy of a graph's input, for a run that does not change the input."""
    if not isinstance(x, torch.Tensor):
        return x
    copy = x.detach().clone().requires_grad_(x.requires_grad)
    return copy if x.is_leaf else copy.clone()  # a graph may change a computed tensor in place, but not a leaf
