"""Dropped objects are freed: memory grows at most 5 MiB after warm-up, and every weak reference is dead."""

from __future__ import annotations

import os

import pytest

from processes_support import run_program

#: kind, count, backend
CASES = [
    ("function", 10_000, "eager"),
    ("closure", 10_000, "eager"),
    ("module", 1_000, "eager"),
    ("own_forward", 1_000, "eager"),
    ("broken", 300, "eager"),
    ("hooked", 300, "eager"),
    ("extent", 300, "eager"),
    ("full_cache", 200, "eager"),
    ("function", 1_000, "custom"),
    ("module", 300, "custom"),
]

#: run by `make test-heavy`
HEAVY_CASES = [
    ("function", 50_000, "eager"),
    ("module", 10_000, "eager"),
    ("function", 10_000, "custom"),
    ("module", 1_000, "custom"),
    ("broken", 5_000, "eager"),
    ("broken", 1_000, "custom"),
    ("hooked", 5_000, "eager"),
    ("extent", 5_000, "eager"),
    ("full_cache", 2_000, "custom"),
]


@pytest.mark.parametrize(("kind", "count", "backend"), CASES)
def test_memory_is_flat_and_nothing_stays_alive(kind, count, backend):
    # Go's heap grows to 16 MB before a collection (pyhook/entry.go), and the few hundred rounds here stay below that.
    # With Go's usual GOGC of 100, growth of memory means that something stays alive. `make test-heavy` keeps the
    # library's GOGC.
    run_program("leak_program.py", kind, str(count), backend, timeout=120, env={"GOGC": "100"})


@pytest.mark.skipif(not os.environ.get("GODYNAMO_HEAVY_TESTS"), reason="make test-heavy")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("kind", "count", "backend"), HEAVY_CASES)
def test_memory_is_flat_over_many_more(kind, count, backend):
    run_program("leak_program.py", kind, str(count), backend, timeout=600)
