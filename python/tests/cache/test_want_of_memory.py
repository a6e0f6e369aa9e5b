"""Allocations fail while a translation is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, utils

PROGRAM = """
def f(x, d):
    try:
        y = torch.relu(x) * d["k"]
    finally:
        d["n"] = 5
    return y.softmax(0), {"k": y.shape}
"""


def make() -> Any:
    """Return a function of a new code object, so that its first call loads the translation of equal code."""
    space = {"torch": torch, "__name__": "made"}
    exec(compile(PROGRAM, "made.py", "exec"), space)
    return space["f"]


def called(fn: Any, start: int, stop: int) -> Any:
    """Return fn's result, or None after a MemoryError. The allocations from ``start`` to ``stop`` fail; 0 is no end."""
    testcapi = pytest.importorskip("_testcapi", reason="this CPython has no test modules")
    arguments = torch.ones(3), {"k": 2}
    testcapi.set_nomemory(start, stop)
    try:
        return fn(*arguments)
    except (MemoryError, torch.OutOfMemoryError):
        return None
    finally:
        testcapi.remove_mem_hooks()


@pytest.mark.parametrize("all_after", [False, True])
def test_failed_allocations(tmp_path: Path, all_after: bool) -> None:
    """Each failure leads to MemoryError, to a new translation or to CPython's frame; the next call is right."""
    want = make()(torch.ones(3), {"k": 2})
    with godynamo.config.patch(cache_dir=str(tmp_path / "files")):
        for _ in range(2):  # the second one loads, and imports what loading needs
            godynamo.optimize(make())(torch.ones(3), {"k": 2})
        loaded = utils.counters["stats"]["translations_loaded"]
        assert loaded > 0
        failed = 0
        for start in range(1, 900, 7):
            fn = godynamo.optimize(make())
            got = called(fn, start, 0 if all_after else start + 1)
            failed += got is None
            for result in (got, fn(torch.ones(3), {"k": 2})):
                assert result is None or (torch.equal(result[0], want[0]) and result[1] == want[1])
        assert utils.counters["stats"]["translations_loaded"] > loaded
        assert failed > 0 or not all_after
    assert _C.counters()["internal_errors"] == 0
