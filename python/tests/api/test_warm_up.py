"""warm_up() translates ahead of the calls that count, and says what it has done."""

import random

import pytest
import torch

import godynamo
from godynamo import _C


def test_later_calls_translate_nothing():
    model = godynamo.optimize(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval())
    examples = [torch.ones(2, 3), (torch.ones(5, 3),), {"input": torch.ones(7, 3)}]
    report = godynamo.warm_up(model, examples)
    assert report.settled and report.calls in (6, 9) and report.translations >= 1 and report.loaded == 0
    assert (report.breaks, report.left) == ({}, 0) and report.graphs >= 1 and report.operations >= 2 * report.graphs
    before = _C.counters()["translations"]
    for example in (torch.ones(2, 3), torch.ones(5, 3), torch.ones(7, 3)):
        model(example)
    assert _C.counters()["translations"] == before


def test_ranges_of_sizes():
    @godynamo.optimize
    def f(x, y, *, z):
        return (x @ y + z).relu()

    x, y, z = torch.ones(4, 3), torch.ones(3, 2), torch.ones(2, requires_grad=True)
    report = godynamo.warm_up(f, [{"x": x, "y": y, "z": z}], sizes={"x": {0: (2, 64)}, "z": {0: (2, 2)}})
    assert report.settled and report.translations == 1
    before = _C.counters()["translations"]
    for n in (2, 17, 64):
        assert f(torch.ones(n, 3), y, z=z).shape == (n, 2)
    assert _C.counters()["translations"] == before
    assert not any("dynamo" in name for t in (x, y, z) for name in vars(t))


def test_breaks_and_frames_that_are_left_are_reported():
    @godynamo.optimize
    def f(x):
        y = x + 1
        godynamo.graph_break("why")
        return y * 2

    report = godynamo.warm_up(f, [torch.ones(2)])
    assert sum(report.breaks.values()) == 1 and report.graphs == 2
    assert "1 graph break," in str(report) and "break, 1 time: " in str(report) and "2 graphs" in str(report)


def test_what_never_settles_says_so():
    seen = []

    @godynamo.optimize
    def f(x):
        return x * len(seen)

    def call(x):
        seen.append(1)
        return f(x)

    report = godynamo.warm_up(call, [torch.ones(2)])
    assert not report.settled and report.calls == 3 and "explain() tells why" in str(report)


def test_random_numbers_are_not_missed():
    model = godynamo.optimize(torch.nn.Dropout(0.5))
    torch.manual_seed(7)
    random.seed(7)
    godynamo.warm_up(model, [torch.ones(20)])
    got, number = model(torch.ones(20)), random.random()
    torch.manual_seed(7)
    random.seed(7)
    assert got.equal(model(torch.ones(20))) and number == random.random()


def test_bad_arguments():
    f = godynamo.optimize(lambda x, n: x * n)
    with pytest.raises(ValueError, match="needs an example"):
        godynamo.warm_up(f, [])
    with pytest.raises(TypeError, match="but n is a int"):
        godynamo.warm_up(f, [(torch.ones(2), 3)], sizes={"n": {0: (1, 2)}})
    with pytest.raises(TypeError, match="but y is no argument of the example"):
        godynamo.warm_up(f, [(torch.ones(2), 3)], sizes={"y": {0: (1, 2)}})
    with pytest.raises(ValueError, match="size 2"):
        godynamo.warm_up(f, [(torch.ones(2), 3)], sizes={"x": {0: (3, 4)}})
    with pytest.raises(TypeError, match="argument"):
        godynamo.warm_up(f, [()])
