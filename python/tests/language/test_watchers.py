"""Code that inspects the interpreter itself: CPython's allocations and specializations."""

from __future__ import annotations

import dis
import gc
import linecache
import logging
import subprocess
import sys
import traceback
from pathlib import Path
from sys import getsizeof

import pytest
import torch

import godynamo
from godynamo import _C
from godynamo._observe import logging as _logging
from godynamo.testing import CompileCounter

WARM = 32  #: GD_WATCHED_CALLS of core/calls/miss.h
SPECIALIZED = {"BINARY_OP_ADD_INT", "CALL_PY_EXACT_ARGS"}


def blocks(work, x, times):
    """Return the number of blocks that each call of ``work`` leaves allocated, and the last result."""
    found, out = [], None
    for _ in range(times):
        before = sys.getallocatedblocks()
        out = work(x)
        found.append(sys.getallocatedblocks() - before)
    return found, out


def fresh_work():
    """Return a function whose code no measurement has seen yet."""

    def work(x):
        return (x + 1).relu()

    work.__code__ = work.__code__.replace()
    return work


@pytest.mark.parametrize("everything", [False, True])
def test_a_measurement_of_memory_sees_what_cpython_allocates(everything):
    # Let torch and godynamo make the allocations of their first use before the comparison.
    godynamo.optimize(blocks)(fresh_work(), torch.ones(2), 2)
    work, counter = fresh_work(), CompileCounter()
    with godynamo.config.patch(translate_everything=everything):
        found, out = godynamo.optimize(blocks, backend=counter)(work, torch.ones(2), WARM)
    assert max(found) < 50 and counter.op_count == 0 and out.equal(torch.full((2,), 2.0))
    # A loop with a measurement in each iteration is still captured.
    assert godynamo.optimize(blocks, backend=counter)(work, torch.ones(2), 3)[1].equal(torch.full((2,), 2.0))
    assert counter.op_count == 2 and counter.frame_count == 1


class Equal:
    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


def count_objects(times):
    """Return the number of objects tracked by the collector that the comparisons leave behind."""
    a = Equal()
    gc.disable()  # a collection in between would free other garbage
    try:
        before = len(gc.get_objects())
        for _ in range(times):
            assert a == a
        return len(gc.get_objects()) - before
    finally:
        gc.enable()


class Cycle:
    def __init__(self):
        self.me = self


def garbage():
    """Return how many unreachable objects a collection finds."""
    gc.collect()
    del gc.garbage[:]
    before = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        Cycle()
        gc.collect()
        return sum(isinstance(o, Cycle) for o in gc.garbage)
    finally:
        gc.set_debug(before)
        del gc.garbage[:]


def caller_s_variables(k):
    a = k + 1
    return traceback.StackSummary.extract(traceback.walk_stack(None), limit=1, capture_locals=True)[0].locals, a


VIEWS = [(count_objects, (5,)), (garbage, ()), (caller_s_variables, (3,))]


def compare_views():
    """Compare each view under CPython, optimized, and below an optimized function."""
    for fn, args in VIEWS:
        expected = fn(*args)

        def outer(fn=fn, args=args):
            return fn(*args), fn(*args)

        with godynamo.config.patch(translate_everything=True):
            compiled = godynamo.optimize(fn)
            assert [compiled(*args) for _ in range(2)] == [expected] * 2, fn
            assert godynamo.optimize(outer)() == (expected, expected), fn


def test_the_interpreter_s_own_view():
    """Runs in a new process.

    Here, the first query about a code object imports modules, which would be counted, and threads left by other tests
    could create objects between two measurements.
    """
    paths = [str(Path(__file__).parent), *sys.path]
    program = f"import sys; sys.path[:0] = {paths!r}; import test_watchers as t; t.compare_views()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr


def each_opname(f, *args):
    """Yield the names of f's instructions; the frame that creates this generator becomes a watcher too."""
    for _ in range(64):
        f(*args)
    for i in dis.get_instructions(f, adaptive=True):
        yield i.opname


def fresh():
    """Return a function whose code has not run yet, which calls another one and adds two integers."""
    space: dict[str, object] = {}
    exec("def one(x):\n    return x\ndef f(a):\n    for i in range(40):\n        one(a + i)\n    return a", space)
    return space["f"]


def in_a_generator(f):
    return set(each_opname(f, 1))


def here(f):
    for _ in range(64):
        f(1)
    return {i.opname for i in dis.get_instructions(f, adaptive=True)}


@pytest.mark.parametrize("fn", [here, in_a_generator])
@pytest.mark.parametrize("direct", [True, False])
def test_what_cpython_specializes(fn, direct):
    expected = fn(fresh())
    assert expected >= SPECIALIZED
    with godynamo.config.patch(translate_everything=True):
        if direct:
            compiled = godynamo.optimize(fn)
            assert [compiled(fresh()) for _ in range(3)] == [expected] * 3
        else:
            with godynamo.optimize("eager"):
                assert [fn(fresh()) for _ in range(3)] == [expected] * 3
            assert _C.hook_installed() == 0


def test_the_hook_is_back_afterwards():
    def work(x):
        return x.relu() + 1

    def both(x):
        y = work(x)
        assert _C.current_eval_frame_is_ours()
        names = here(fresh())
        assert _C.current_eval_frame_is_ours()
        return y + work(x), names

    def raises():
        dis.get_instructions(here, adaptive=True, nothing=_C.current_eval_frame_is_ours())

    counter = CompileCounter()
    with godynamo.optimize(counter):
        y, names = both(torch.ones(2))
        try:
            raises()
        except TypeError as e:
            error = str(e)
        assert _C.current_eval_frame_is_ours()
        work(torch.ones(3))
    assert "nothing" in error and y.equal(torch.full((2,), 4.0)) and names >= SPECIALIZED
    assert counter.op_count > 0


@pytest.mark.parametrize("logged", [False, True])
def test_the_cache_of_source_lines_is_the_program_s(logged, monkeypatch):
    """The translator logs a break with its source line, without filling the program's cache."""

    def breaks(x):
        godynamo.graph_break()
        return x + 1

    monkeypatch.setattr(_logging._LOGGERS["graph_breaks"], "level", logging.DEBUG if logged else logging.NOTSET)
    linecache.clearcache()
    assert godynamo.optimize(breaks)(torch.ones(1)) == 2
    assert linecache.cache == {}


class Shrinks:
    """CPython gives its instances' dicts less room once it has made many of them."""


def size_of(value):
    return getsizeof(value)


def sizes_of_containers(x):
    grown = []
    for i in range(5):
        grown.append(x + i)
    return sys.getsizeof(grown), sys.getsizeof(list([x])), [x].__sizeof__(), grown[4]


def sizes_that_a_callee_reads(x):
    grown = {}
    for i in range(6):
        grown[i] = x + i
    return size_of(list([x])), size_of(grown), size_of({5 - i for i in range(3)}), grown[5]


def sizes_after_many_instances(x):
    for _ in range(40):
        Shrinks()
    one = Shrinks()
    one.x = x
    return sys.getsizeof(vars(one)), x + 1


@pytest.mark.parametrize("fn", [sizes_of_containers, sizes_that_a_callee_reads, sizes_after_many_instances])
def test_containers_have_the_size_of_cpython_s(fn):
    x = torch.ones(2)
    found = godynamo.optimize(fn)(x)
    assert found[:-1] == fn(x)[:-1] and found[-1].equal(fn(x)[-1])
