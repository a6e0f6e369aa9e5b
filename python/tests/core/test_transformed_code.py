"""Code objects: disassembled and rebuilt, transformed code in CPython's own tools, line numbers."""

from __future__ import annotations

import dis
import functools
import importlib.util
import marshal
import os
import shutil
import subprocess
import sys
import sysconfig
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, utils
from harness.capture import check, entries, nb, outcome, unsupported

ROOT = Path(__file__).resolve().parents[3]
LIBRARY = Path(sysconfig.get_path("stdlib"))


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from nested(const)


@functools.lru_cache(maxsize=1)
def library_code() -> list[types.CodeType]:
    """Return every code object of the standard library's top-level modules and of some packages."""
    files = [
        *sorted(LIBRARY.glob("*.py")),
        *sorted((LIBRARY / "asyncio").glob("*.py")),
        *sorted((LIBRARY / "json").glob("*.py")),
    ]
    out: list[types.CodeType] = []
    for file in files:
        out.extend(nested(compile(file.read_bytes(), str(file), "exec", dont_inherit=True)))
    return out


METHODS = ("co_lines", "co_positions", "co_branches")
FIELDS = [name for name in dir(types.CodeType) if name.startswith("co_") and name not in METHODS]


@pytest.mark.row("S002-36")
def test_library_code_survives_being_taken_apart() -> None:
    codes = library_code()
    assert len(codes) > 5000
    for code in codes:
        made = _C.code_roundtrip(code)
        assert made is not code
        for name in FIELDS:
            assert getattr(made, name) == getattr(code, name), (code, name)
        for name in METHODS:
            assert list(getattr(made, name, list)()) == list(getattr(code, name, list)()), (code, name)


@pytest.mark.row("S002-36")
def test_code_made_again_behaves_equally() -> None:
    spec = importlib.util.find_spec("textwrap")
    assert spec is not None and spec.origin is not None
    module = types.ModuleType("textwrap_again")
    code = compile(Path(spec.origin).read_bytes(), spec.origin, "exec")
    exec(again(code), vars(module))
    import textwrap

    text = "the quick brown fox " * 20
    assert module.wrap(text, 30) == textwrap.wrap(text, 30)
    assert module.dedent("  a\n   b\n") == textwrap.dedent("  a\n   b\n")


def again(code: types.CodeType) -> types.CodeType:
    """Rebuild a code object and all code objects nested in it."""
    consts = tuple(again(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return _C.code_roundtrip(code.replace(co_consts=consts))


@pytest.fixture(scope="module")
def go_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Run Go's decoder and assembler on a dump of part of the library with the output of dis; return the report."""
    if shutil.which("go") is None:
        pytest.skip("needs the Go toolchain: the decoder is not reachable from Python")
    target = tmp_path_factory.mktemp("dump") / "code.bin"
    paths = [
        str(LIBRARY / name)
        for name in ("argparse.py", "ast.py", "dataclasses.py", "typing.py", "asyncio", "json", "email")
    ]
    subprocess.run(
        [sys.executable, str(ROOT / "testdata" / "dump_code.py"), "--dis", "--out", str(target), *paths], check=True
    )
    done = subprocess.run(
        ["go", "test", "./bytecode", "-run", "^(TestIdentityDump|TestDisassembleEqualsDisDump)$", "-count=1", "-v"],
        cwd=ROOT,
        env={**os.environ, "CGO_ENABLED": "0", "GODYNAMO_CODE_DUMP": str(target)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@pytest.mark.row("S002-36")
def test_decode_and_lower_is_the_identity(go_report: str) -> None:
    assert "--- PASS: TestIdentityDump" in go_report and " 0 differ" in go_report


@pytest.mark.row("S002-37")
def test_decoded_instructions_equal_dis(go_report: str) -> None:
    assert "--- PASS: TestDisassembleEqualsDisDump" in go_report


# ---- transformed code ------------------------------------------------------------------------------------------------


def transformed(fn: Any) -> list[types.CodeType]:
    """Return the code objects made for the function, including its resume functions."""
    return [code for code in utils.orig_code_map if code.co_filename == fn.__code__.co_filename]


def handles(x, flag):
    try:
        y = unsupported(x + 1)
        if flag:
            raise ValueError("inside")
        return y * 2
    except ValueError as error:
        return x - 1, str(error)
    finally:
        x.add_(100)


@pytest.mark.row("S002-39")
@pytest.mark.parametrize("flag", [True, False])
def test_exception_tables_survive(flag: bool) -> None:
    check(handles, torch.randn(3), flag)


def many_names(count: int) -> Any:
    """Return a function with more names, constants and code than fit in one byte: EXTENDED_ARG and long jumps."""
    lines = ["def big(x, flag):", "    y = x"]
    lines += [f"    v{i} = y + {i}.5" for i in range(count)]
    lines += ["    if flag:", "        y = unsupported(y)"]
    lines += [f"        y = y + v{i} * {i + 1000}" for i in range(count)]
    lines += ["    else:", "        y = y - v0", "    return y * 2, v1"]
    scope: dict[str, Any] = {"unsupported": unsupported}
    exec(compile("\n".join(lines), __file__, "exec"), scope)
    return scope["big"]


@pytest.mark.row("S002-39")
@pytest.mark.parametrize("flag", [True, False])
def test_extended_args_and_long_jumps(flag: bool) -> None:
    big = many_names(150)
    assert len(big.__code__.co_consts) > 256
    backend = check(big, torch.randn(2), flag, calls=2)
    assert len(backend) == (2 if flag else 1)


@pytest.mark.row("S002-39")
def test_positions_are_the_users() -> None:
    def f(x):
        y = x + 1
        y = unsupported(y)
        return y * 2

    w = godynamo.optimize(f, backend=nb())
    w(torch.randn(3))
    lines = set(range(f.__code__.co_firstlineno, f.__code__.co_firstlineno + 4))
    codes = transformed(f)
    assert len(codes) == 2
    for code in codes:
        seen = {line for line, *_ in code.co_positions() if line is not None}
        assert seen and seen <= lines, code
        assert list(code.co_lines())
        assert code.co_stacksize >= 1


def clashing(x, __compiled_fn_0=1, ___stack0=2):
    __resume_0 = x + __compiled_fn_0
    ___temp0 = unsupported(__resume_0)
    return ___temp0 * ___stack0 + __compiled_fn_0


@pytest.mark.row("S002-40")
def test_the_users_names_may_look_like_ours() -> None:
    check(clashing, torch.randn(3))
    check(clashing, torch.randn(3), __compiled_fn_0=5, ___stack0=7)
    free, ___stack0 = 3.0, 4.0

    def closes(x):
        y = unsupported(x * free)
        return y + ___stack0

    check(closes, torch.randn(3))


@pytest.mark.row("S002-41")
def test_transformed_code_is_specialised_and_stays_right() -> None:
    def f(x, items, n):
        total = n
        for item in items:
            total = total + item * 2
        y = unsupported(x) + total
        return y, total, items[0]

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    expected = f(x, [1, 2, 3], 4)
    for _ in range(1000):
        y, total, first = w(x, [1, 2, 3], 4)
        assert (total, first) == expected[1:]
    assert torch.equal(y, expected[0])
    for code in transformed(f):
        entries = dis._inline_cache_entries  # type: ignore[attr-defined]  # 3.13 lists them by name
        counts = [
            entries.get(i.opname, 0) if isinstance(entries, dict) else entries[i.opcode]
            for i in dis.get_instructions(code)
        ]
        assert code.co_code[::2].count(dis.opmap["CACHE"]) == sum(counts)


@pytest.mark.row("S002-42")
def test_transformed_code_is_a_good_code_object() -> None:
    def f(x, k):
        y = (x + k).relu()
        y = unsupported(y)
        return [y * i for i in range(2)]

    for backend in ("eager", nb()):
        w = godynamo.optimize(f, backend=backend)
        w(torch.randn(3), 2)
        codes = transformed(f)
        assert len(codes) >= 2
        for code in codes:
            dis.dis(code, file=open(os.devnull, "w"))
            assert marshal.loads(marshal.dumps(code)) == code
            assert code.replace() == code
            renamed = code.replace(co_name="other")
            assert renamed.co_name == "other" and renamed.co_code == code.co_code
            assert _C.code_roundtrip(code).co_code == code.co_code
        godynamo.reset()


@pytest.mark.row("S002-43")
def test_transformed_code_leads_back_to_the_users() -> None:
    def f(x):
        return unsupported(x + 1) * 2

    w = godynamo.optimize(f, backend=nb())
    w(torch.randn(3))
    [entry] = entries(w)
    assert entry.code is not f.__code__ and utils.orig_code_map[entry.code] is f.__code__
    assert all(utils.orig_code_map[code] is f.__code__ for code in transformed(f)), "resume functions too"
    assert len(transformed(f)) == 2
    with pytest.raises(KeyError):
        utils.orig_code_map[f.__code__]


# ---- lines -----------------------------------------------------------------------------------------------------------


def raises_in_graph(x):
    y = x + 1
    z = torch.ones(3)
    return y @ z  # shapes do not fit


def raises_after_break(x, d):
    y = unsupported(x + 1)
    z = y * 2
    return z, d["missing"]


def helper_raises(x, d):
    y = x + 1
    return d["missing"] + y


def raises_in_helper(x, d):
    y = x * 2
    y = helper_raises(y, d)
    return y + 1


@pytest.mark.row("S002-44")
@pytest.mark.parametrize("backend", ["eager", "recording"])
@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (raises_in_graph, (torch.ones(2, 2),)),
        (raises_after_break, (torch.ones(2), {})),
        (raises_in_helper, (torch.ones(2), {})),
    ],
    ids=["graph", "after a break", "inlined helper"],
)
def test_exceptions_have_the_users_lines(fn: Any, args: tuple[Any, ...], backend: str) -> None:
    expected = user_frames(fn, args)
    w = godynamo.optimize(fn, backend="eager" if backend == "eager" else nb())
    for _ in range(3):
        assert user_frames(w, args) == expected


def user_frames(fn: Any, args: tuple[Any, ...]) -> list[tuple[str, str | None, int | None]]:
    """Return (function, file, line) of this file's frames below the call, without frames of graphs and torch."""
    with pytest.raises(Exception) as caught:
        fn(*args)
    frames = traceback.extract_tb(caught.value.__traceback__)[1:]
    return [(f.name, f.filename, f.lineno) for f in frames if f.filename == __file__]


@pytest.mark.row("S002-44")
def test_the_source_line_is_shown() -> None:
    w = godynamo.optimize(raises_in_graph, backend="eager")
    with pytest.raises(RuntimeError) as caught:
        w(torch.ones(2, 2))
    text = "".join(traceback.format_exception(caught.value))
    assert "return y @ z  # shapes do not fit" in text
    assert outcome(w, (torch.ones(2, 2),))["how"] == outcome(raises_in_graph, (torch.ones(2, 2),))["how"]
