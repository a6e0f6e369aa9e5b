"""Inputs for modules, and how a way to make one is written down."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def floats(*shape: int) -> torch.Tensor:
    """Random numbers whose gradient is asked for."""
    return torch.randn(*shape, requires_grad=True)


def whole(most: int, *shape: int) -> torch.Tensor:
    """Random whole numbers below ``most``."""
    return torch.randint(0, most, shape)


def pooled(dims: int) -> tuple[Any, ...]:
    """What an unpooling module takes."""
    pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
    value, index = pool(torch.randn(1, 2, *(4,) * dims))
    return value.detach().requires_grad_(), index


def quietly(make: Callable[[], nn.Module]) -> nn.Module:
    """A deprecated module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


class Row:
    """A way to make a module, and inputs for it."""

    def __init__(self, make: Callable[[], nn.Module], inputs: Callable[[], tuple[Any, ...]]) -> None:
        self.make, self.inputs = make, inputs


def packed(sort: bool = True) -> Any:
    """Sequences of three lengths; with ``sort`` False not in the order of their lengths."""
    lengths = torch.tensor([5, 3, 2] if sort else [2, 5, 3])
    return nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 3), lengths, enforce_sorted=sort)
