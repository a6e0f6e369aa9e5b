"""Constants from outside are guarded by value, but remain the call's own objects."""

from __future__ import annotations

import math

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter

BIG, TEXT, NAN, PAIR = 10**20, "a text with blanks", math.nan, (1, 2.5)
TWINS = {
    "int": (BIG, int("1" + "0" * 20)),
    "str": (TEXT, "".join(["a text", " with blanks"])),
    "name": ("name", "".join(["na", "me"])),
    "float": (NAN, float("nan")),
    "bytes": (b"ab", bytes([97, 98])),
    "complex": (2j, complex("2j")),
    "tuple": (PAIR, tuple([1, 2.5])),
    "range": (range(3), range(3)),
}


class Holder:
    value = None


HOLDER = Holder()


def returned(x, v):
    return x * 2, v


def compared(x, v):
    y = x * 2
    if v == 3:
        y = y + 1
    return y, v is BIG, v is TEXT, v is NAN, v is PAIR


def stored(x, v):
    HOLDER.value = v
    return x * 2, HOLDER.value


def read(x, v):
    y, z = x * 2, HOLDER.value
    print(end="")
    HOLDER.value = None
    return y + 1, z, z is BIG


def kept(x, v):
    made = [v, {"v": v}]
    return x * 2, made[0], made[1]["v"]


@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
@pytest.mark.parametrize("kind", TWINS)
@pytest.mark.parametrize("fn", [returned, compared, stored, read, kept], ids=lambda f: f.__name__)
def test_the_calls_own_object(fn, kind, backend):
    one, two = TWINS[kind]
    assert one is not two
    optimized = godynamo.optimize(fn, backend="eager" if backend == "eager" else CompileCounter())
    x = torch.ones(2)
    for v in (one, two, one, two):
        results = []
        for f in (fn, optimized):
            HOLDER.value = v
            results.append(f(x, v))
        (y, *want), (z, *got) = results
        assert torch.equal(y, z)
        assert len(want) == len(got) and all(a is b for a, b in zip(want, got, strict=True))
