"""Effects of Python calls: their order, their changes, threads, and which calls may be removed."""

from __future__ import annotations

import functools
import json
import threading
import time

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, nb
from python_ops_support import Opaque, both_ways, kinds, make, note, same

torch.set_num_threads(1)


@pytest.mark.row("S000-27")
def test_python_calls_and_in_place_operations_keep_the_programs_order():
    def f(x, items):
        note("first")
        x.add_(1)
        note(x)
        items.append(1)
        note(list(items))
        x.mul_(2)
        note(x)
        print("printed", len(items))
        note("first")
        note("first")
        items.append(2)
        return x, items

    seen = []

    def reset():
        seen.append(Opaque.log[:])
        Opaque.log.clear()

    both_ways(f, torch.ones(2), [], reset=reset)
    runs = [[repr(v) for v in run] for run in [*seen[1:], Opaque.log]]
    assert len(runs) == 8 and all(run == runs[0] for run in runs) and len(runs[0]) == 6


@pytest.mark.row("S000-27")
def test_passes_keep_what_nobody_uses():
    def f(x):
        same(x)
        same(x)
        make().value
        return x + 1

    gm = both_ways(f, torch.ones(2)).graphs[0]
    before = kinds(gm)
    assert before.count("^<PyObjectCall>()") == 3
    gm.graph.eliminate_dead_code()
    assert [k for k in kinds(gm) if k.startswith("^")] == [k for k in before if k.startswith("^")]


@godynamo.disable
def add_ten(t):
    return t.add_(10)


@godynamo.disable
def resize(t):
    return t.resize_(4).fill_(1)


@pytest.mark.row("S000-28")
def test_a_python_call_may_change_its_tensors():
    def values(x):
        y = x * 2
        z = add_ten(x)
        return y, x * 2, z is x, z + x

    def metadata(x):
        x = x.clone()
        before = x.shape
        resize(x)
        return before, x.shape, x.dim(), len(x), x.size(0), x + 1

    both_ways(values, torch.ones(2))
    both_ways(metadata, torch.ones(2))


@godynamo.disable
def grow(items):
    items.append(len(items))
    return items


@godynamo.disable
def put(table, key, value):
    table[key] = value


class Settings:
    def __init__(self):
        self.scale = 2
        self.items = [1]


SETTINGS = Settings()


@godynamo.disable
def rescale(value):
    SETTINGS.scale = value


@pytest.mark.row("S000-28")
def test_a_python_call_may_change_what_it_can_reach():
    def argument(x, items):
        before = items[0]
        grow(items)
        return x * items[-1], before, len(items), items

    def own(x):
        items = [1, 2]
        alias = items
        grow(items)
        return x * len(items), alias is items, alias[-1], items

    def nested(x):
        inner = [1]
        outer = {"inner": inner}
        grow(same(outer)["inner"])
        return x * len(inner), outer

    def seen_from_views(x):
        table, items = {"a": 1}, [1, 2, 3]
        keys, iterator, pairs = table.keys(), iter(items), zip(items, [4, 5, 6, 7])
        next(iterator)
        put(table, "b", 2)
        grow(items)
        return x, list(keys), list(iterator), list(pairs), table, items

    def through_a_global(x, settings):
        before = x * SETTINGS.scale
        rescale(9)
        return before, x * SETTINGS.scale

    both_ways(argument, torch.ones(2), [1])
    both_ways(own, torch.ones(2))
    both_ways(nested, torch.ones(2))
    both_ways(seen_from_views, torch.ones(2), breaks=None, graphs=None)
    both_ways(through_a_global, torch.ones(2), 0, reset=lambda: rescale(2))


@pytest.mark.row("S000-28")
def test_a_python_call_may_change_cells_iterators_and_functions():
    def cell(x):
        n = 1

        def inner():
            nonlocal n
            n += 1

        map_over = same(inner)
        map_over()
        return x * n

    def loop(x, items):
        for i in items:
            if len(items) < 4:
                grow(items)
        return x, items

    def attribute(x):
        attribute_of.count = 1
        bump()
        return x * attribute_of.count

    def of_an_instance(x, settings):
        same(settings).items.append(5)
        return x * settings.items[-1], settings.items

    both_ways(cell, torch.ones(1), breaks=None, graphs=None)
    both_ways(loop, torch.ones(1), [0], breaks=None, graphs=None)
    both_ways(attribute, torch.ones(1), breaks=None, graphs=None)
    both_ways(of_an_instance, torch.ones(1), Settings())


def attribute_of():
    pass


@godynamo.disable
def bump():
    attribute_of.count += 1


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.calls = 0

    def forward(self, x):
        y = self.linear(x)
        note("forward")
        self.calls += 1
        return self.linear(y) * self.calls


@pytest.mark.row("S000-28")
def test_a_module_that_calls_python():
    def f(module, x):
        return module(x)

    both_ways(f, Layer(), torch.ones(1, 2), breaks=None, graphs=None)


@pytest.mark.row("S000-28")
def test_the_callable_of_a_patched_name_is_the_patched_one():
    from unittest import mock

    def f(x):
        patch = same(mock).patch("torch.relu", lambda t: "patched")
        before = torch.relu(x)
        patch.start()
        try_it = torch.relu(x)
        patch.stop()
        return before, try_it, torch.relu(x)

    both_ways(f, torch.ones(2), breaks=None, graphs=None)


@pytest.mark.row("S000-29")
def test_python_calls_run_in_every_thread_and_let_others_run():
    def f(x, n):
        time.sleep(0.02)
        note(n)
        return x + json.loads("%d" % n)

    compiled = godynamo.optimize(fn=f, python_ops=True)
    compiled(torch.ones(1), 0)
    Opaque.log.clear()
    results = {}

    def work(n):
        results[n] = compiled(torch.ones(1), n)

    begin = time.perf_counter()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert time.perf_counter() - begin < 8 * 0.02 + 5
    assert sorted(Opaque.log) == list(range(8))
    assert all(torch.equal(results[n], torch.ones(1) + n) for n in range(8))
    assert_no_internal_errors()


@pytest.mark.row("S000-27")
def test_control_flow_on_an_unknown_value_breaks_as_usual():
    def f(x):
        y = x + 1
        if same(1) > 0:
            return y * 2
        return y

    def loop(x):
        for i in same([1, 2]):
            x = x + i
        return x

    both_ways(f, torch.ones(2), breaks=1, graphs=2)
    both_ways(loop, torch.ones(2), breaks=None, graphs=None)
    with pytest.raises(godynamo.exc.Unsupported, match="branch"):
        godynamo.optimize(fn=f, python_ops=True, nopython=True)(torch.ones(2))


@pytest.mark.row("S000-27")
def test_nopython_keeps_one_graph_and_the_order():
    def f(x, items):
        items.append(1)
        note(list(items))
        x.add_(1)
        items.append(2)
        return x, make(items).value

    for options in ({}, {"backend": nb()}):
        Opaque.log.clear()
        items = []
        x, value = godynamo.optimize(fn=f, python_ops=True, nopython=True, **options)(torch.ones(1), items)
        assert Opaque.log == [[1]] and items == [1, 2] and value is items
        assert torch.equal(x, torch.full((1,), 2.0))


@pytest.mark.row("S000-27")
def test_the_default_mode_is_as_before():
    def f(x):
        y = x + 1
        note(1)
        return y * functools.reduce(lambda a, b: a + b, [1, 2])

    backend = nb()
    godynamo.optimize(fn=f, backend=backend)(torch.ones(1))
    assert len(backend.graphs) == 2
    assert not any(k.startswith("^") for gm in backend.graphs for k in kinds(gm))
