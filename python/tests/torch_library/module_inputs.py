"""Inputs for modules, and rows that say how to make a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


def floats(*shape: int) -> torch.Tensor:
    """Return random numbers that require a gradient."""
    return torch.randn(*shape, requires_grad=True)


def whole(most: int, *shape: int) -> torch.Tensor:
    """Return random integers below ``most``."""
    return torch.randint(0, most, shape)


def pooled(dims: int) -> tuple[Any, ...]:
    """Return the inputs of an unpooling module."""
    pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
    value, index = pool(torch.randn(1, 2, *(4,) * dims))
    return value.detach().requires_grad_(), index


def quietly(make: Callable[[], nn.Module]) -> nn.Module:
    """Create a deprecated module without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


class Row:
    """A function that makes a module, and one that makes its inputs."""

    def __init__(self, make: Callable[[], nn.Module], inputs: Callable[[], tuple[Any, ...]]) -> None:
        self.make, self.inputs = make, inputs


def packed(sort: bool = True) -> Any:
    """Return packed sequences of three lengths: the longest first if ``sort``, otherwise in another order."""
    lengths = torch.tensor([5, 3, 2] if sort else [2, 5, 3])
    return nn.utils.rnn.pack_padded_sequence(torch.randn(5, 3, 3), lengths, enforce_sorted=sort)
