"""Functions that transformed code calls for values computed at run time (variables/computed.go, random.go)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .. import _C

_DTYPES = {float: torch.float64, int: torch.int64}


def as_tensor(number: float) -> torch.Tensor:
    """Return a tensor without dimensions that holds a Python number exactly, as an input of a graph."""
    with torch._C.DisableTorchFunction():
        return torch.tensor(number, dtype=_DTYPES[type(number)], device="cpu")


def shuffled(
    items: Iterable[Any], generator: Any = None, shuffle: Callable[[Any, list[Any]], None] | None = None
) -> list[Any]:
    """Return a list of the items, shuffled by the generator."""
    out = list(items)
    if shuffle is not None:
        shuffle(generator, out)
    return out


def _words_can_be_put_back() -> bool:
    """Return whether random.Random objects of this Python have the memory layout that the core expects."""
    generator, other = random.Random(1), random.Random(2)
    words = _C.random_words(generator)
    expected = [generator.random() for _ in range(700)]
    _C.random_put(generator, words)
    _C.random_put(other, words)
    return all([r.random() for _ in expected] == expected for r in (generator, other))


_PLAIN: Any = (random.Random,) if _words_can_be_put_back() else ()


def saved(generator: Any) -> Any:
    """Return the state of a generator, for ``restore``; None if the generator has no state."""
    if isinstance(generator, random.SystemRandom):
        return None
    if isinstance(generator, _PLAIN):
        return _C.random_words(generator), generator.gauss_next
    return generator.getstate()


def restore(generator: Any, state: Any) -> None:
    """Restore a generator's state, which undoes its draws, before the user's code runs again from its start."""
    if state is None:
        return
    if isinstance(generator, _PLAIN):
        _C.random_put(generator, state[0])
        generator.gauss_next = state[1]
    else:
        generator.setstate(state)
