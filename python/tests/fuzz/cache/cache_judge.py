"""Runs programs with a folder of translations, in the process of the caller, and describes what they do."""

from __future__ import annotations

import contextlib
import io
import marshal
import os
import shutil
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

import godynamo
from godynamo import _C, utils
from harness.fuzz_compare import Plain, text_of

#: the contents of a folder of translations, by path
Files = dict[str, bytes]


class Ran(NamedTuple):
    """What a program has done in one run: its calls, and what became of its frames."""

    calls: list[dict[str, Any]]
    translated: int
    loaded: int
    internal: list[str]


def places(error: BaseException | None, files: set[str]) -> Any:
    """Return the user's functions and lines of an exception and of those it comes from."""
    if error is None:
        return None
    out, tb = [], error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename in files:
            out.append((code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    return out, places(error.__cause__ or error.__context__, files)


def observe(call: Callable[[], Any], files: set[str]) -> dict[str, Any]:
    """Describe one call: its value, its exception, and what it prints."""
    out, plain = io.StringIO(), Plain()
    result: dict[str, Any] = {"exception": None, "lines": None, "value": None}
    with contextlib.redirect_stdout(out):
        try:
            result["value"] = plain(call())
        except RecursionError:  # its text and depth depend on the interpreter
            result["exception"] = "RecursionError"
        except Exception as error:
            result["exception"] = plain.error(error, {})
            result["lines"] = places(error, files)
    result["output"] = text_of(out.getvalue())
    return result


def compiled(sources: dict[str, str]) -> dict[str, bytes]:
    """Return the modules' code. Each load makes new code objects, which no earlier run has translated."""
    return {name: marshal.dumps(compile(text, f"/programs/{name}.py", "exec")) for name, text in sources.items()}


@contextlib.contextmanager
def imported(codes: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """Make the modules again, the last one last, and return its names."""
    names: dict[str, Any] = {}
    try:
        for name, code in codes.items():
            module = types.ModuleType(name)
            module.__file__ = f"/programs/{name}.py"
            sys.modules[name] = module
            names = vars(module)
            exec(marshal.loads(code), names)
        yield names
    finally:
        for name in codes:
            sys.modules.pop(name, None)


def run(codes: dict[str, bytes], optimize: Callable[[Any], Any], *arguments: Any) -> list[dict[str, Any]]:
    """Run all calls of a program."""
    files = {f"/programs/{name}.py" for name in codes}
    torch.manual_seed(1)
    try:
        with imported(codes) as names:
            return [observe(call, files) for call in names["calls"](optimize, *arguments)]
    except Exception as error:  # also of an edited program that cannot be imported
        return [{"made": (Plain().error(error, {}), places(error, files))}]


def run_with(folder: Path, codes: dict[str, bytes], *arguments: Any) -> Ran:
    """Run all calls of a program with godynamo and the folder's translations."""
    errors: list[str] = []
    before = _C.set_callback("internal_error", lambda info: errors.append(f"{info['where']}: {info['error']}"))
    frames, stats = utils.counters["frames"], utils.counters["stats"]
    was = frames["total"], stats["translations_loaded"]
    try:
        # Without cache_min_ms=0, a comprehension's frame of CPython 3.11 is stored by slow machines only.
        with godynamo.config.patch(cache_dir=str(folder), cache_min_ms=0):
            calls = run(codes, godynamo.optimize(backend="eager"), *arguments)
        frames, stats = utils.counters["frames"], utils.counters["stats"]
        loaded = stats["translations_loaded"] - was[1]
        return Ran(calls, frames["total"] - was[0] - loaded, loaded, errors)
    finally:
        _C.set_callback("internal_error", before)
        godynamo.reset()


def difference(expected: list[dict[str, Any]], got: list[dict[str, Any]]) -> tuple[str, int, Any, Any] | None:
    """Return the first part of a call that differs, its number, and the two values."""
    if len(expected) != len(got):
        return "calls", 0, expected, got
    for at, (a, b) in enumerate(zip(expected, got, strict=True)):
        if a.keys() != b.keys():
            return "calls", at, a, b
        for part in a:
            if a[part] != b[part]:
                return part, at, a[part], b[part]
    return None


def write(folder: Path, files: Files) -> None:
    """Replace what the folder has by these files, of which the last one is the most recently used."""
    shutil.rmtree(folder / "v1", ignore_errors=True)
    begun = time.time_ns() - len(files)
    for at, (name, data) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(begun + at, begun + at))


def read(folder: Path) -> Files:
    """Return the folder's files, the most recently used one last."""
    paths = sorted(folder.rglob("*.gdt"), key=lambda path: (path.stat().st_mtime_ns, path))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
