"""From a frame to an entry: nopython, early exits, the cache limit and its warning, internal errors."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import typing_extensions

import godynamo
from godynamo import _C, exc, utils
from godynamo._backends import compiling
from godynamo._translator.trace_rules import skip_reason
from harness.capture import (
    assert_no_internal_errors,
    check,
    counted,
    entries,
    nb,
    no_translation,
    opaque,
    translations,
    unsupported,
)

PYTHON_FOLDER = Path(__file__).resolve().parents[2]


def breaks_once(x):
    y = x + 1
    y = unsupported(y)
    return y * 2


@pytest.mark.row("S002-25")
def test_the_converter_is_asked_with_the_frame_and_the_number_of_entries() -> None:
    """Through the private binding, a Python converter gets the frame's function, slots and number of entries."""
    requests: list[tuple[Any, int, tuple[Any, ...]]] = []

    def converter(request: dict[str, Any]) -> Any:
        requests.append((request["function"], request["nentries"], tuple(request["slots"])))

    def f(a, b):
        return a, b

    w = _C.Callable(f)
    _C.set_translate_callback(converter)
    try:
        assert w(1, 2) == (1, 2)
    finally:
        _C.set_translate_callback(None)
    assert requests == [(f, 0, (1, 2))]


@pytest.mark.row("S002-26")
def test_the_same_break_under_both_forms() -> None:
    backend = check(breaks_once, torch.randn(3))
    assert backend.all_ops() == ["add", "mul"]
    strict = nb()
    with pytest.raises(exc.Unsupported):
        godynamo.optimize(breaks_once, backend=strict, nopython=True)(torch.randn(3))


@pytest.mark.row("S002-26")
def test_what_cannot_be_split_runs_in_cpython() -> None:
    def generator_like(x):
        total = x
        for part in (unsupported(x + i) for i in range(2)):
            total = total + part
        return total

    check(generator_like, torch.randn(3))


@pytest.mark.row("S002-27")
@pytest.mark.parametrize("form", ["nopython", "fullgraph", "assert"])
def test_nopython_raises_with_reason_and_line(form: str, tmp_path: Path) -> None:
    target = tmp_path / "text"
    target.write_text("3")

    def opens(x):
        y = x + 1
        with_file = open(target)
        return y, with_file

    optimizer = {
        "nopython": lambda: godynamo.optimize(nb(), nopython=True),
        "fullgraph": lambda: godynamo.optimize(backend=nb(), fullgraph=True),
        "assert": lambda: godynamo.optimize_assert(nb()),
    }[form]()
    f = optimizer(opens)
    for _ in range(2):
        with pytest.raises(exc.Unsupported) as caught:
            f(torch.randn(3))
        error = caught.value
        assert error.code.startswith("GD") and error.reason
        text = str(error)
        assert "opens" in text and Path(__file__).name in text and f"line {opens.__code__.co_firstlineno + 2}" in text
    assert_no_internal_errors()


@pytest.mark.row("S002-27")
def test_nopython_without_a_break_is_silent() -> None:
    backend = nb()
    f = godynamo.optimize(lambda x: x * 2 + 1, backend=backend, nopython=True)
    x = torch.randn(3)
    assert torch.equal(f(x), x * 2 + 1) and len(backend) == 1


# ---- early exits -----------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-28")
def test_transformed_code_is_not_converted_again() -> None:
    """The hook recognizes transformed code (resume functions, functions of entries) and does not translate it."""
    backend = nb()

    def caller(x):
        return breaks_once(x) + breaks_once(x)

    with godynamo.optimize(backend):
        x = torch.randn(3)
        first = caller(x)
        before, ours = counted("translations"), counted("hook_ours")
        second = caller(x)
        assert counted("translations") == before
        assert counted("hook_ours") >= ours
    assert torch.equal(first, second) and torch.equal(first, breaks_once(x) * 2)
    for code in utils.orig_code_map:
        assert _C.code_flags(code) & _C.CODE_OURS
        assert utils.orig_code_map[code] not in list(utils.orig_code_map), "an output code was translated"


@pytest.mark.row("S002-28")
def test_a_code_in_translation_is_not_converted_again() -> None:
    seen: list[torch.Tensor] = []

    def plain(x):
        return x + 1

    def calling_backend(gm, example_inputs):
        seen.append(f(torch.zeros(2)))
        return gm.forward

    f = godynamo.optimize(plain, backend=calling_backend)
    before = counted("in_progress") + counted("reentrant")
    assert torch.equal(f(torch.zeros(3)), torch.ones(3)) and len(seen) == 1 and torch.equal(seen[0], torch.ones(2))
    assert counted("in_progress") + counted("reentrant") == before + 1


def code_kinds() -> dict[str, tuple[types.CodeType, str]]:
    async def coroutine():
        pass

    async def async_generator():
        yield 1

    def generator():
        yield 1

    return {
        "async def": (coroutine.__code__, "generator or coroutine"),
        "async generator": (async_generator.__code__, "generator or coroutine"),
        "generator": (generator.__code__, "generator or coroutine"),
        "module level": (compile("x = 1", "user.py", "exec"), "module-level code"),
        "torch's own file": (torch.overrides.has_torch_function.__code__, "torch's own file")
        if hasattr(torch.overrides.has_torch_function, "__code__")
        else (torch.serialization.save.__code__, "torch's own file"),
        "our own file": (godynamo.reset.__code__, "godynamo's own file"),
        "numpy's own file": (numpy.ones.__code__, "numpy's own file"),
        "standard library": (logging.getLogger.__code__, "standard library"),
        "typing_extensions": (typing_extensions.IntVar.__code__, "standard library"),
        "user code": (opaque.__code__, ""),
        "torch.nn": (torch.nn.Linear.forward.__code__, ""),
    }


@pytest.mark.row("S002-29")
@pytest.mark.parametrize("kind", list(code_kinds()))
def test_unsupported_kinds_of_code_have_a_reason(kind: str) -> None:
    code, reason = code_kinds()[kind]
    assert skip_reason(code) == reason


@pytest.mark.row("S002-29")
def test_async_and_generator_functions_run_in_cpython() -> None:
    async def coroutine(x):
        return x + 1

    def generator(x):
        yield x + 1
        yield x + 2

    backend = nb()
    x = torch.randn(3)
    c, g = godynamo.optimize(coroutine, backend=backend), godynamo.optimize(generator, backend=backend)
    for _ in range(3):
        assert torch.equal(asyncio.run(c(x)), x + 1)
        assert [t.tolist() for t in g(x)] == [t.tolist() for t in generator(x)]
    assert len(backend) == 0
    assert c.cache.skip and g.cache.skip
    assert_no_internal_errors()


@pytest.mark.row("S002-30")
def test_no_tensor_no_graph_and_no_mark() -> None:
    backend = nb()

    def f(a, b):
        return a * b + 1

    w = godynamo.optimize(f, backend=backend)
    assert w(2, 3) == 7 and len(backend) == 0
    with no_translation():
        assert [w(i, i + 1) for i in range(5)] == [f(i, i + 1) for i in range(5)]
    assert not w.cache.skip and not _C.code_flags(f.__code__) & _C.CODE_SKIP
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(w(x, y), x * y + 1) and backend.ops() == ["mul", "add"]
    assert w(4, 5) == 21 and len(backend) == 1


@pytest.mark.row("S002-30")
def test_a_torch_operation_without_tensor_arguments_is_captured() -> None:
    backend = check(lambda n: torch.ones(n) * 2, 3)
    assert backend.ops() == ["ones", "mul"]


# ---- the limit -------------------------------------------------------------------------------------------------------


def by_number(x, n):
    return x + n


@pytest.mark.row("S002-31", "S002-33")
def test_at_the_limit_new_cases_run_in_cpython(caplog: pytest.LogCaptureFixture) -> None:
    backend = nb()
    f = godynamo.optimize(by_number, backend=backend)
    x = torch.randn(3)
    with godynamo.config.patch(cache_size_limit=3), caplog.at_level(logging.WARNING, logger="godynamo"):
        for n in range(5):
            assert torch.equal(f(x, n), x + n)
        assert len(backend) == 3 and len(entries(f)) == 3
        warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert len(warnings) == 1
        runs = backend.runs
        assert torch.equal(f(x, 1), x + 1) and backend.runs == runs + 1, "an older entry serves"
        assert torch.equal(f(x, 77), x + 77) and backend.runs == runs + 1, "a new case runs in CPython"
        assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 1, "one warning per function"


@pytest.mark.row("S002-32")
def test_the_warning_names_function_place_and_reason(caplog: pytest.LogCaptureFixture) -> None:
    def watched(x, n):
        return x + n

    f = godynamo.optimize(watched, backend=nb())
    with godynamo.config.patch(cache_size_limit=2), caplog.at_level(logging.WARNING, logger="godynamo"):
        for n in range(4):
            f(torch.randn(3), n)
    [record] = [r for r in caplog.records if r.levelno == logging.WARNING]
    text = record.getMessage()
    place = f"'watched' ({__file__}:{watched.__code__.co_firstlineno})"
    assert "hit config.cache_size_limit (2)" in text
    assert f"function: {place}" in text
    assert "n: expected 1, seen 2" in text and "reasons:" in text
    assert "GODYNAMO_LOGS" in text or "docs" in text


@pytest.mark.row("S002-32")
def test_entries_without_operations_reach_the_limit_silently(caplog: pytest.LogCaptureFixture) -> None:
    def stores(box, n):
        box.n = n

    f, box = godynamo.optimize(stores), torch.nn.Identity()
    with godynamo.config.patch(cache_size_limit=2), caplog.at_level(logging.WARNING, logger="godynamo"):
        for n in ("a", 2.5, (1,), b"z"):
            f(box, n)
            assert box.n is n
    assert len(entries(f)) == 2, "the limit is reached"
    assert not caplog.records


@pytest.mark.row("S002-32")
def test_a_recurrent_layer_that_the_function_makes_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    def makes(x):
        return torch.nn.LSTM(2, 3, dropout=0.5, num_layers=2)(x)[0]

    with caplog.at_level(logging.WARNING, logger="godynamo"):
        assert godynamo.optimize(makes)(torch.ones(1, 1, 2)).shape == (1, 1, 3)
    assert not caplog.records


@pytest.mark.row("S002-34")
@pytest.mark.parametrize("limit", [1, 2, 64])
def test_the_limit_can_be_set_at_run_time(limit: int, caplog: pytest.LogCaptureFixture) -> None:
    f = godynamo.optimize(by_number, backend=nb())
    x = torch.randn(3)
    with godynamo.config.patch(cache_size_limit=limit):
        for n in range(limit + 2):
            assert torch.equal(f(x, n), x + n)
        assert len(entries(f)) == limit
    assert "cache_size_limit" in caplog.text


@pytest.mark.row("S002-34")
def test_the_limit_can_be_set_per_function() -> None:
    narrow = godynamo.optimize(by_number, backend=nb(), cache_size_limit=1)
    wide = godynamo.optimize(by_number, backend=nb())
    x = torch.randn(3)
    for n in range(4):
        assert torch.equal(narrow(x, n), wide(x, n))
    assert len(entries(narrow)) == 1 and len(entries(wide)) == 4


@pytest.mark.row("S002-34")
def test_the_default_is_documented() -> None:
    assert godynamo.config.cache_size_limit == 8
    root = PYTHON_FOLDER.parent
    written = "\n".join(path.read_text() for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))])
    assert "cache_size_limit" in written
    import re

    assert re.search(r"cache_size_limit`?[^.\n]{0,40}\b8\b", written), "the default is not written anywhere"


# ---- bugs of ours ----------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-35")
def test_a_bug_in_the_translator_runs_the_call_in_cpython(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("fault injected")

    f = godynamo.optimize(by_number, backend=nb())
    x = torch.randn(3)
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, logger="godynamo"):
        patched.setattr(compiling, "compile_fx", broken)
        assert torch.equal(f(x, 1), x + 1)
    [record] = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "fault injected" in record.getMessage() and "the call runs in CPython" in record.getMessage()
    assert counted("internal_errors") == 1 and entries(f) == []
    with translations(0):
        assert torch.equal(f(x, 1), x + 1), "its code gets no further attempts"
    g = godynamo.optimize(by_number, backend=nb())
    with translations(1):
        assert torch.equal(g(x, 1), x + 1), "other callables are translated"


@pytest.mark.row("S002-35")
def test_after_a_bug_its_code_gets_no_further_attempts() -> None:
    code = """
import warnings, torch, godynamo
from godynamo import _C
from godynamo._backends import compiling
f = godynamo.optimize(lambda x, n: x + n, backend=lambda gm, example_inputs: gm.forward)
asked = []
def broken(*args):
    asked.append(1)
    raise ZeroDivisionError
compiling.compile_fx = broken
x = torch.ones(2)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for n in range(6):
        assert torch.equal(f(x, n), x + n)
assert len(asked) == 1, asked
assert seen == [], seen
assert _C.counters()["internal_errors"] == 1
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
