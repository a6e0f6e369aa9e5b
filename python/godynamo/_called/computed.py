"""What transformed code calls for values that each call computes anew: see variables/computed.go and random.go."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import _C

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


def _words_can_be_put_back() -> bool:
    """Whether this Python's generators are laid out as the core takes them to be."""
    generator, other = random.Random(1), random.Random(2)
    words = _C.random_words(generator)
    expected = [generator.random() for _ in range(700)]
    _C.random_put(generator, words)
    _C.random_put(other, words)
    return all([r.random() for _ in expected] == expected for r in (generator, other))


_PLAIN: Any = (random.Random,) if _words_can_be_put_back() else ()


def saved(generator: Any) -> Any:
    """The state of a generator, for ``restore``; None of one that has none."""
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, _PLAIN):
        return _C.random_words(generator), generator.gauss_next
    return generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Put a generator back: what it drew did not happen, and the program runs again from its start."""
    if state is None:
        return
    if isinstance(generator, _PLAIN):
        _C.random_put(generator, state[0])
        generator.gauss_next = state[1]
    else:
        generator.setstate(state)
