"""Code objects of nested functions survive a function that cannot be made (core/pycommon/kept_codes.c)."""

from __future__ import annotations

import sys
import types

import pytest

from godynamo._translator import vague


def test_lack_of_memory_for_a_function_frees_no_code() -> None:
    testcapi = pytest.importorskip("_testcapi", reason="this CPython has no test modules")
    (code,) = [c for c in vague.in_rows.__code__.co_consts if type(c) is types.CodeType]
    rows = [("call_method", "relu", "relu", (), {})]
    before, failed = sys.getrefcount(code), 0
    for start in range(8):
        testcapi.set_nomemory(start, start + 1)
        try:
            vague.in_rows(rows)
        except MemoryError:
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
    assert failed > 0
    assert sys.getrefcount(code) == before
    assert not vague.in_rows(rows)
