"""A tensor with a weak reference lives as long as in CPython: until its variable is rebound or the function ends."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

import godynamo

LOG: list[Any] = []


def referred_to(x):
    t = x * 2
    r = weakref.ref(t)
    godynamo.graph_break()
    return r() is None, x + 1


def finalized(x):
    t = x * 2
    weakref.finalize(t, LOG.append, "dead")
    y = x + 1
    godynamo.graph_break()
    LOG.append("end")
    return y


def in_a_weak_set(x):
    tensors = weakref.WeakSet()
    t = x * 2
    tensors.add(t)
    godynamo.graph_break()
    n = len(tensors)
    t = None
    godynamo.graph_break()
    return n, len(tensors)


class Newest:
    def __init__(self):
        self.ref = None

    def put(self, t):
        self.ref = weakref.ref(t)
        godynamo.graph_break()

    def __setattr__(self, name, value):
        super().__setattr__(name, weakref.ref(value) if name == "watched" else value)


def of_an_object(x):
    newest, t = Newest(), x * 2
    newest.put(t)
    y = x - 1
    return newest.ref() is None, y


def stored(x):
    newest, t = Newest(), x * 2
    newest.watched = t
    godynamo.graph_break()
    return newest.watched() is None


def several(x):
    refs = []

    def note(*tensors):
        refs.extend(weakref.ref(t) for t in tensors)
        godynamo.graph_break()

    t = x * 2
    note(*(t, x))
    z = x + 1
    godynamo.graph_break()
    return [r() is None for r in refs], z


def in_a_loop(x):
    for i in range(3):
        t = x * i
        r = weakref.ref(t)
        godynamo.graph_break()
        LOG.append(r() is None)
    del t
    LOG.append(r() is None)
    return x + 1


def replaced(x):
    t = x * 2
    r = weakref.ref(t)
    godynamo.graph_break()
    y = t * 2
    t = y + 1
    godynamo.graph_break()
    return r() is None, t


FUNCTIONS = [
    referred_to,
    finalized,
    in_a_weak_set,
    of_an_object,
    stored,
    several,
    in_a_loop,
    replaced,
]


@pytest.mark.parametrize("backend", ["inline", "eager"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_tensors_die_with_their_variables(f, backend):
    def run(g):
        LOG.clear()
        return repr(g(torch.ones(3))), LOG[:]

    expected = run(f)
    optimized = godynamo.optimize(f) if backend == "inline" else godynamo.optimize(backend=backend)(f)
    assert [run(optimized) for _ in range(3)] == [expected] * 3
