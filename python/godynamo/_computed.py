"""What transformed code calls for values that each call computes anew: see variables/computed.go and random.go."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

_DTYPES = {float: torch.float64, int: torch.int64}


def as_tensor(number: float) -> torch.Tensor:
    """A Python number as a graph input: a tensor without dimensions that holds it exactly."""
    with torch._C.DisableTorchFunction():
        return torch.tensor(number, dtype=_DTYPES[type(number)], device="cpu")


def shuffled(
    items: Iterable[Any], generator: Any = None, shuffle: Callable[[Any, list[Any]], None] | None = None
) -> list[Any]:
    """A list of the items that the generator has shuffled."""
    out = list(items)
    if shuffle is not None:
        shuffle(generator, out)
    return out


def saved(generator: Any) -> Any:
    """The state of a generator, for ``restore``; None of one that has none."""
    return None if isinstance(generator, random.SystemRandom) else generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Put a generator back: what it drew did not happen, and the program runs again from its start."""
    if state is not None:
        generator.setstate(state)
