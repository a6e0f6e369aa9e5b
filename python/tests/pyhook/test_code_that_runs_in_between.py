"""Finalizers and weak reference callbacks that run while the core creates an object."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from godynamo import _C
from harness.versions import COLLECTS_AT_ALLOCATION


@pytest.fixture
def collects_at_once():
    """Return a function that calls its argument at the next allocation of a container, from a cycle's finalizer."""
    before = gc.get_threshold()

    def arm(act):
        gc.collect()
        gc.disable()

        class Ends:
            def __del__(self):
                act()

        cycle = Ends()
        cycle.me = cycle
        free = [[] for _ in range(500)]  # uses up the lists that CPython keeps for reuse
        del cycle
        gc.set_threshold(1, 1, 1)
        gc.enable()
        return free

    yield arm
    gc.set_threshold(*before)
    gc.enable()


# Runs in a new process: under pytest other allocations come first.
DROPPED_WHILE_LISTED = """
import gc, godynamo, torch
f = godynamo.optimize("eager")(lambda x: x + 1)
for x in (torch.ones(2), torch.ones(2, 2), 3):
    f(x)
cache = f.cache
gc.disable()
class Ends:
    def __del__(self):
        cache.clear()
cycle = Ends()
cycle.me = cycle
free = [[] for _ in range(500)]
del cycle
gc.set_threshold(1, 1, 1)
gc.enable()
entries = cache.entries()
gc.disable()
print(entries, cache.stats()["entries"])
"""


def test_entries_that_are_dropped_while_they_are_listed():
    place = {**os.environ, "PYTHONPATH": str(Path(_C.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", DROPPED_WHILE_LISTED], env=place, capture_output=True, text=True)
    assert done.stdout.endswith("] 0\n"), done.stderr
    assert (done.stdout == "[] 0\n") == COLLECTS_AT_ALLOCATION


def test_a_set_that_grows_while_its_layout_is_read(collects_at_once):
    numbers = set(range(100))
    kept = collects_at_once(lambda: numbers.update(range(100_000)))
    _, places, keys = _C.set_layout(numbers)
    gc.disable()
    assert kept
    assert len(numbers) == 100_000
    assert len(keys) == (100_000 if COLLECTS_AT_ALLOCATION else 100)
    assert sum(map(bool, places)) == len(keys)


def test_a_callback_does_not_meet_the_cache_that_dies():
    def f(x):
        return x

    met = []
    callable_ = _C.Callable(f)
    dies = weakref.ref(callable_.cache, lambda _: met.append(_C.code_caches(f.__code__)))
    del callable_
    gc.collect()
    assert dies() is None
    assert met == [[]]
