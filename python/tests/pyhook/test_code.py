"""Code objects disassembled and rebuilt."""

from __future__ import annotations

import dis
import gc
import importlib
import marshal
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from godynamo import _C

MODULES = [
    "argparse",
    "ast",
    "asyncio.base_events",
    "collections",
    "contextlib",
    "dataclasses",
    "difflib",
    "email.message",
    "enum",
    "functools",
    "heapq",
    "inspect",
    "json.decoder",
    "logging",
    "os",
    "pickle",
    "random",
    "re._parser",
    "subprocess",
    "tarfile",
    "tempfile",
    "threading",
    "traceback",
    "typing",
    "unittest.mock",
]
# fmt: skip


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def same(a: types.CodeType, b: types.CodeType) -> bool:
    methods = ("co_positions", "co_lines", "co_branches")
    fields = [f for f in dir(a) if f.startswith("co_") and f not in (*methods, "co_lnotab")]
    return (
        a == b
        and all(getattr(a, f) == getattr(b, f) for f in fields)
        and list(a.co_positions()) == list(b.co_positions())
        and list(a.co_lines()) == list(b.co_lines())
        and [tuple(i) for i in dis.get_instructions(a)] == [tuple(i) for i in dis.get_instructions(b)]
    )


@pytest.mark.parametrize("name", MODULES)
def test_every_code_object_of_a_module(name: str) -> None:
    source = importlib.import_module(name).__spec__.loader.get_code(name)  # type: ignore[union-attr]
    n = 0
    for code in codes(source):
        again = _C.code_roundtrip(code)
        assert again is not code and same(code, again), code
        n += 1
    assert n > 3


def test_warm_code_is_read_without_its_specialisations() -> None:
    def f(n: int) -> int:
        total = 0
        for i in range(n):
            total += i * 2
        return total

    for _ in range(100):
        f(20)
    again = _C.code_roundtrip(f.__code__)
    assert again.co_code == f.__code__.co_code and _C.code_flags(again) == 0
    f.__code__ = again
    for _ in range(100):
        assert f(20) == 380


def test_names_utf8_cannot_hold() -> None:
    f: Any = lambda x: x  # noqa: E731
    code = f.__code__.replace(co_name="a\udc80b", co_filename="\ud800.py", co_qualname="é\udfff")
    again = _C.code_roundtrip(code)
    assert (again.co_name, again.co_filename, again.co_qualname) == (code.co_name, code.co_filename, code.co_qualname)


def test_generators_closures_and_tables_run() -> None:
    def outer(a: int, *args: int, k: int = 3, **kw: int) -> Any:
        def gen() -> Any:
            try:
                with open("/nonexistent/file") as f:
                    yield f
            except OSError as error:
                yield from (a, *args, k, *kw.values(), type(error).__name__)

        return list(gen())

    twin = types.FunctionType(
        _C.code_roundtrip(outer.__code__), outer.__globals__, "twin", outer.__defaults__, outer.__closure__
    )
    twin.__kwdefaults__ = outer.__kwdefaults__
    assert twin(1, 2, z=9) == outer(1, 2, z=9) == [1, 2, 3, 9, "FileNotFoundError"]
    assert marshal.loads(marshal.dumps(twin.__code__)) == outer.__code__


def test_no_reference_is_lost_or_kept() -> None:
    code = test_every_code_object_of_a_module.__code__
    _C.code_roundtrip(code)
    held = [code, code.co_consts, code.co_names, code.co_linetable, *(c for c in code.co_consts if type(c) is tuple)]
    gc.collect()  # empty CPython's free lists: it puts tuples of length 20 there, but never takes them out
    before = [sys.getrefcount(o) for o in held]
    blocks = sys.getallocatedblocks()
    for _ in range(1000):
        _C.code_roundtrip(code)
    assert [sys.getrefcount(o) for o in held] == before
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 50


def test_only_code_objects() -> None:
    for wrong in (3, None, test_only_code_objects):
        for function in (_C.code_roundtrip, _C.code_flags, _C.code_caches, _C.mark_ours):
            with pytest.raises(TypeError):
                function(wrong)


def test_what_is_known_of_code_objects_dies_with_them() -> None:
    """There are enough of them to make the table of code_data.c grow, and to free rows in the middle of others."""
    template = test_only_code_objects.__code__
    codes = {i: template.replace(co_firstlineno=i + 1) for i in range(4000)}
    for i, code in codes.items():
        if i % 3:
            _C.mark_skip(code)
    for i in range(0, 4000, 2):
        del codes[i]
    new = [template.replace(co_firstlineno=i + 1) for i in range(4000)]
    assert not any(_C.code_flags(code) for code in new)
    assert all(bool(_C.code_flags(code)) == (i % 3 > 0) for i, code in codes.items())


@pytest.mark.skipif(sys.version_info < (3, 14), reason="only 3.14 asks whether code is stateless")
def test_a_marked_function_can_be_handed_to_another_interpreter() -> None:
    internals = pytest.importorskip("_testinternalcapi", reason="this CPython has no test modules")
    code = (lambda a: a).__code__
    _C.mark_skip(code)
    internals.verify_stateless_code(code)
