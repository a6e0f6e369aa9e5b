"""Computes the strides of a graph's values for all sizes of its inputs, with fake tensors whose sizes are symbols.

Go calls this for `stride()` and `is_contiguous()` of a computed tensor, once the sizes of the frame's tensors have
differed between calls. torch's ShapeEnv records the conditions under which the result holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._backends import symbolic
from . import fake, vague

Layout = tuple[tuple[Any, ...], tuple[Any, ...], list[Any]]


class Session(fake.Session):
    """Runs the nodes of one graph as fake.Session does; the arguments are those of symbolic.Sizes."""

    def __init__(self, symbols: Sequence[Any], rounded: Sequence[int], conditions: Sequence[Any]) -> None:
        super().__init__()
        self._sizes = symbolic.Sizes(symbols, rounded, (), conditions, False, False)
        self._mode = self._sizes.mode
        self._watch = vague.Watch(self._mode)

    def described(self, index: int, row: Any, example: Any) -> None:
        """Add a graph input; ``row`` describes it (symbolic.Sizes)."""
        self._values[index] = self._sizes.example(example, row)

    def layout(self, index: int) -> Layout | None:
        """Return (sizes, strides, conditions) of a tensor, as symbolic's expressions, or None if they are unknown."""
        tensor = self.value(index)
        if not isinstance(tensor, torch.Tensor) or vague.layout(tensor) is not torch.strided:
            return None
        found = self._sizes.written(tensor.size()), self._sizes.written(tensor.stride())
        conditions, constants = self._sizes.assumed()
        if constants or found[0] is None or found[1] is None:
            return None
        return found[0], found[1], conditions
