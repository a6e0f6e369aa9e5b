"""A class with a non-string key in its __dict__: looking up an attribute may run the key's __eq__."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import godynamo

LOG: list[str] = []


class Key:
    """Equals nothing, and logs each comparison."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        LOG.append(f"{self.name} == {other}")
        return False


def odd(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # since 3.13, for a non-string key
        return type("Odd", (), {Key(name): 5, "kept": 7})


def reads(cls: Any, x: Any) -> Any:
    return x + cls.kept, getattr(cls, "lost", 1)


def reads_from_an_instance(cls: Any, x: Any) -> Any:
    value = cls()
    value.lost = 3
    return x + value.kept, value.lost


@pytest.mark.parametrize("name", ["kept", "lost"])
@pytest.mark.parametrize("fn", [reads, reads_from_an_instance])
def test_a_key_is_asked_as_in_cpython(fn: Any, name: str) -> None:
    godynamo.reset()
    cls, compiled = odd(name), godynamo.optimize(fn)
    seen = []
    for call in (fn, compiled, compiled):
        cls.other = 0  # clears CPython's type cache for this class
        LOG.clear()
        result = call(cls, torch.ones(1))
        # The type cache may lose an entry between two reads, so only `reads` compares the number of comparisons.
        log = LOG.copy() if fn is reads else set(LOG)
        seen.append((log, result[1], result[0].item()))
    assert seen[1:] == seen[:1] * 2
