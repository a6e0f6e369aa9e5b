"""id() of tensors and objects that the frame did not make."""

from __future__ import annotations

import gc

import pytest
import torch

import godynamo

W = torch.nn.Parameter(torch.ones(3))
MADE_BEFORE = {id(W): 5}


class Thing:
    pass


THING = Thing()


def looked_up(x, q):
    d = {id(W): 2, id(THING): 3}
    return x * d[id(W)] + MADE_BEFORE[id(W)], id(W) == id(q), id(x) == id(q), id(W), d.get(id(q))


def of_argument(x, q):
    return x + 1, id(q) in MADE_BEFORE


def of_a_list(x, q):
    return x + 1, id([q]) != 3


@pytest.mark.parametrize("f", [looked_up, of_argument, of_a_list])
def test_ids_are_cpythons(f):
    compiled = godynamo.optimize(f)
    for q in (W, THING, torch.ones(3), W, Thing(), torch.nn.Linear(1, 1), 7, None, THING):
        x = torch.ones(3)
        assert repr(compiled(x, q)) == repr(f(x, q))


def test_an_object_at_the_address_of_one_that_died():
    def f(x, q):
        return x + 1, id(q)

    compiled = godynamo.optimize(f)
    for i in range(6):
        q = Thing()
        assert compiled(torch.ones(1), q)[1] == id(q), i
        q = torch.full((1,), float(i))
        assert compiled(torch.ones(1), q)[1] == id(q), i
        del q
        gc.collect()


@pytest.mark.parametrize(("f", "q"), [(looked_up, THING), (of_argument, W)])
def test_one_graph(f, q):
    explained = godynamo.explain(f)(torch.ones(3), q)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons
