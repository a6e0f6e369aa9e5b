"""Checks the results of operations whose operands dispatch operators in Python.

A graph predicts that such a result is a plain tensor which looks like the operation's result on plain tensors. If it is
not, the frames go on in CPython with it, and the next translation breaks the graph there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._translator.recipes import noted
from . import predictions

_Check = Callable[[Any, tuple[Any, ...], tuple[int, ...]], bool | None]


def _contiguous(sizes: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@noted
def as_dispatched(question: str, key: str, dtype: torch.dtype, device: torch.device, requires_grad: bool) -> _Check:
    """Return a function of a result, of the operation's tensors, and of the result's sizes.

    It returns True if the result is as predicted: plain, contiguous, none of the tensors and none of their attributes.
    ``question`` and ``key`` are of _called/predictions.declare.
    """

    def check(value: Any, given: tuple[Any, ...], sizes: tuple[int, ...]) -> bool | None:
        if (
            type(value) is torch.Tensor
            and value.dtype is dtype
            and value.requires_grad is requires_grad
            and value.layout is torch.strided
            and value.shape == sizes
            and value.stride() == _contiguous(sizes)
            and value.device == device
            and all(value is not v for g in given for v in (g, *getattr(g, "__dict__", {}).values()))
        ):
            return True
        predictions.refute(question, key)
        return None

    return check
