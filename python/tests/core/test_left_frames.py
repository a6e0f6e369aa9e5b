"""Functions called by a frame that CPython runs are still captured, as below a frame that torch.compile skips."""

from __future__ import annotations

import dis
import os
import threading
from types import CodeType, FunctionType

import pytest
import torch
from torch import nn

import godynamo
from godynamo import _C, config, utils
from harness.capture import assert_no_internal_errors


def inner(x):
    return (x + 1).relu()


def inner_names_globals(x):
    for _ in globals():
        break
    return inner(x) * 2


def cannot_be_translated():
    """Return a function whose globals have a key that is not a string: a lookup may run the key's code."""
    return FunctionType(inner_names_globals.__code__, {**globals(), 1: 2})


@pytest.fixture(autouse=True)
def clean():
    godynamo.reset()
    yield
    assert _C.hook_installed() == 0 and not _C.current_eval_frame_is_ours()


def captured(calls):
    """Return how many operations and frames are captured while ``calls`` run."""
    utils.counters.clear()
    calls()
    return utils.counters["stats"]["calls_captured"], utils.counters["frames"]["ok"]


@pytest.mark.parametrize("kind", ["skip", "not translated"])
def test_its_callees_are_captured(kind):
    plain = godynamo.skip(FunctionType(inner_names_globals.__code__.replace(), globals()))
    if kind == "not translated":
        plain = cannot_be_translated()
    optimized = godynamo.optimize(plain)
    x = torch.randn(3)

    def calls():
        for _ in range(20):
            assert torch.equal(optimized(x), plain(x))

    assert captured(calls) == (2, 1)
    assert captured(calls) == (0, 0)  # hits


def calls_what_cannot_run(x, function):
    try:
        return function(x * 2)
    except SystemError as error:
        return x + 1, error.args


def makes_what_cannot_run(x):
    return inner(x), lambda: x


def test_an_opcode_that_the_interpreter_does_not_have(capfd):
    opcode = dis.opname.index("<229>")
    bad = FunctionType(inner.__code__.replace(co_code=bytes([opcode]) + inner.__code__.co_code[1:]), globals())
    consts = makes_what_cannot_run.__code__.co_consts
    maker = FunctionType(
        makes_what_cannot_run.__code__.replace(
            co_consts=tuple(
                c.replace(co_code=bytes([opcode]) + c.co_code[1:]) if isinstance(c, CodeType) else c for c in consts
            )
        ),
        globals(),
    )
    x = torch.randn(3)
    for _ in range(2):
        with pytest.raises(SystemError, match="unknown opcode"):
            godynamo.optimize(bad)(x)
        value, words = godynamo.optimize(calls_what_cannot_run)(x, bad)
        assert torch.equal(value, x + 1)
        assert str(words) == str(calls_what_cannot_run(x, bad)[1])
        value, function = godynamo.optimize(maker)(x)
        assert torch.equal(value, inner(x))
        with pytest.raises(SystemError, match="unknown opcode"):
            function()
    assert any("no such opcode" in reason for reason in utils.counters["graph_break"])
    assert_no_internal_errors()
    capfd.readouterr()  # CPython writes the opcode to standard error as well


def test_below_a_model_that_is_too_large():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x).relu()

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, x):
            total = 0
            for i in range(2000):
                total += i
            return self.block(x) + total

    plain = Steps()
    optimized = godynamo.optimize(plain)
    x = torch.randn(3, 2)
    with config.patch(max_translated_instructions=5000):

        def calls():
            for _ in range(3):
                assert torch.equal(optimized(x), plain(x))

        assert captured(calls)[0] == 2
        left = utils.counters["frames"]["total"] - utils.counters["frames"]["ok"]
        assert captured(calls) == (0, 0)
        assert utils.counters["frames"]["total"] == 0 < left  # no attempt is made to translate the frames again


def test_recursion():
    @godynamo.skip
    def f(x, n):
        return inner(x) if n == 0 else f(x, n - 1) + inner(x)

    plain, optimized = f, godynamo.optimize(f)
    x = torch.randn(3)
    assert captured(lambda: torch.equal(optimized(x, 50), plain(x, 50))) == (2, 1)
    f = optimized
    assert torch.equal(optimized(x, 50), plain(x, 50))
    with pytest.raises(RecursionError):
        optimized(x, 1 << 20)


def test_exceptions():
    def fails(x):
        return inner(x) @ torch.ones(7)

    @godynamo.skip
    def f(x):
        try:
            return fails(x)
        except RuntimeError:
            return fails(x + 1)

    optimized = godynamo.optimize(f)
    for _ in range(3):
        with pytest.raises(RuntimeError) as caught:
            optimized(torch.ones(3))
        names = [row.name for row in caught.traceback][1:]
        assert names == ["f", "fails"] and isinstance(caught.value.__context__, RuntimeError)
        assert _C.hook_installed() == 0


def test_generators():
    """CPython runs a generator's frame; its callees are served. Creating a generator runs no frame."""

    def items(x):
        for i in range(3):
            yield inner(x + i)

    @godynamo.skip
    def f(x):
        return sum(items(x))

    optimized, x = godynamo.optimize(f), torch.randn(3)
    assert captured(lambda: torch.equal(optimized(x), f(x))) == (2, 1)
    made = godynamo.optimize(items)
    before = _C.counters()["hook_installs"]
    for _ in range(3):
        assert all(map(torch.equal, made(x), items(x)))
    assert _C.counters()["hook_installs"] == before


def test_disabled():
    @godynamo.skip
    def f(x):
        return godynamo.disable(inner)(x) + inner(x)

    optimized, x = godynamo.optimize(f), torch.randn(3)
    with godynamo.disable():
        assert captured(lambda: torch.equal(optimized(x), f(x))) == (0, 0)
    assert captured(lambda: torch.equal(optimized(x), f(x))) == (2, 1)
    whole = godynamo.optimize(godynamo.disable(f))
    godynamo.reset()
    assert captured(lambda: torch.equal(whole(x), f(x))) == (0, 0)


def test_the_hook_stays_out_where_there_is_nothing_to_serve():
    def one(i):
        return i + 1

    @godynamo.skip
    def f(n, x=None):
        return one(n) if x is None else inner(x)

    optimized = godynamo.optimize(f)
    for i in range(200):
        assert optimized(i) == i + 1
    before = _C.counters()["hook_installs"]
    for i in range(630):
        optimized(i)
    assert _C.counters()["hook_installs"] - before <= 10
    x = torch.ones(2)
    for _ in range(64):
        assert torch.equal(optimized(0, x), inner(x))
    before = _C.counters()["hook_served"]
    for _ in range(5):
        assert torch.equal(optimized(0, x), inner(x))
    assert _C.counters()["hook_served"] - before == 5


def test_threads_and_forks():
    optimized, x = godynamo.optimize(cannot_be_translated()), torch.ones(3)
    results = []

    def calls():
        for _ in range(200):
            results.append(torch.equal(optimized(x), torch.full((3,), 4.0)))

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 800 and _C.hook_installed() == 0

    @godynamo.skip
    def forks(x):
        child = os.fork()
        if child == 0:
            os._exit(0 if torch.equal(inner(x), torch.full((3,), 2.0)) else 1)
        return os.waitpid(child, 0)[1], inner(x)

    status, result = godynamo.optimize(forks)(x)
    assert status == 0 and torch.equal(result, torch.full((3,), 2.0))
