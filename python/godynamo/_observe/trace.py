"""Writes the trace: godynamo's activity as JSON lines in ``config.trace_dir`` (GODYNAMO_TRACE).

docs/trace.md defines the format. The Go library calls :func:`begin` and :func:`finished` around a translation;
``runtime`` calls :func:`event` for all other events. None of these functions raises an Exception. This module is
imported only when something is traced.
"""

from __future__ import annotations

import atexit
import dis
import functools
import itertools
import logging
import os
import platform
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from .. import config, utils
from .._core import core
from .._explain import guard_objects
from . import reasons, sources
from .trace_file import TraceFiles, start_time

log = logging.getLogger("godynamo")

FORMAT, VERSION = "godynamo-trace", 1

#: maximum number of frames kept of the user's stack, innermost first
_DEPTH = 64
#: maximum size of code that is disassembled, in bytes
_LONGEST_CODE = 400_000
_KINDS = ("call", "inner", "resume")
#: prefixes of environment variables that are recorded: they identify the process
_ENVIRONMENT = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GODYNAMO_")

T = TypeVar("T")


class _State:
    """The trace files of this process. A forked child starts new files."""

    def __init__(self) -> None:
        self.files: TraceFiles | None = None
        self.directory = ""
        self.failed = ""  #: the directory that could not be written
        self.ids = itertools.count(1)
        self.last = 0
        self.forked_from: dict[str, int] | None = None
        self.ends = False
        self.lock = threading.RLock()


_state = _State()
_begun = threading.local()
#: code that runs after a translation -> number of the translation
_made: utils.CodeMap[int] = utils.CodeMap()


def active() -> bool:
    """Return whether events are written: a directory is set, and no write to it has failed."""
    return bool(config.trace_dir) and config.trace_dir != _state.failed


def _safe(f: Callable[..., T]) -> Callable[..., T | None]:
    """Wrap ``f`` so that an Exception in it ends only the trace. pyhook/trace.go raises Ctrl-C again."""

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> T | None:
        try:
            return f(*args, **kwargs)
        except Exception as error:
            _give_up(error)
        return None

    return wrapper


def _give_up(error: Exception) -> None:
    first = _state.failed != config.trace_dir
    _state.failed = config.trace_dir
    if first:
        where = f"{config.trace_dir!r} (config.trace_dir, GODYNAMO_TRACE)"
        log.warning("no trace is written into %s from here on: %s: %s", where, type(error).__name__, error)


def _files() -> TraceFiles:
    directory = config.trace_dir
    with _state.lock:
        files = _state.files
        if files is None or _state.directory != directory:
            if files is not None:
                files.close()
            size = config.trace_file_mib << 20
            files = _state.files = TraceFiles(directory, size, config.trace_files, _header)
            _state.directory = directory
            if not _state.ends:
                _state.ends = True
                atexit.register(_end)
                os.register_at_fork(after_in_child=_forked)
    return files


def _forked() -> None:
    _state.lock = threading.RLock()
    files = _state.files
    if files is not None:
        _state.forked_from = {"pid": files.pid, "last": _state.last}
        _state.files = None
        files.forked()


@functools.lru_cache(maxsize=1)
def _started(_pid: int) -> float:
    return start_time()  # computed once per process, since the time identifies the files of one series


def _header(part: int) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    settings = config.get_config()
    return {
        "event": "process",
        "format": FORMAT,
        "version": VERSION,
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "time": time.time(),
        "part": part,
        "argv": list(sys.orig_argv),
        "cwd": _cwd(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "torch": str(getattr(torch, "__version__", "")),
        "godynamo": getattr(sys.modules["godynamo"], "__version__", ""),
        "platform": platform.platform(),
        "config": {k: v for k, v in settings.items() if isinstance(v, (bool, int, str))},
        "environment": {k: v for k, v in os.environ.items() if k.startswith(_ENVIRONMENT)},
        "forked_from": _state.forked_from,
    }


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


@_safe
def event(kind: str, **fields: Any) -> None:
    """Write an event that is not a translation, with the user's stack and the time."""
    if active():
        now = getattr(_begun, "now", None)
        during = now[0] if now is not None else None
        row = {"event": kind, "time": time.time(), **_thread_name(), "translation": during, **fields}
        _files().write({**row, "stack": _stack(2)})


def _end() -> None:
    if active() and _state.files is not None and _state.files.pid == os.getpid():
        event("end", counters={k: v for k, v in core.counters().items() if v})


# ---- translations ----


@_safe
def begin(function: Any, code: types.CodeType) -> int | None:
    """Record the user's stack at the start of a translation; return the translation's number, None without a trace."""
    if not active():
        return None
    number = _state.last = next(_state.ids)
    stack, parent = _stack_and_parent(sys._getframe(2))
    made_by = getattr(function, "__godynamo_made_by__", None)
    _begun.now = (number, time.time(), stack, made_by if made_by is not None else parent)
    return number


@_safe
def finished(number: int, told: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Write a translation. ``told`` is a record of runtime.translated(); ``more``: fields from pyhook/trace.go."""
    begun, when, stack, parent = _begun.now
    _begun.now = None
    if begun != number:
        return
    info = told["info"] or {}
    function = told["function"]
    transformed = function.__code__ if function is not None else None
    frame = told["code"]
    _made[transformed if transformed is not None else frame] = number  # the code that runs from here on
    origin: Any = getattr(getattr(told["owner"], "function", None), "__godynamo_origin__", None)
    resumes = told["kind"] == 2
    code = origin[0] if resumes and origin is not None else frame
    users = reasons.Frame.of(code, told.get("first_type"))
    _files().write(
        {
            "event": "translation",
            "id": number,
            "parent": parent,
            "time": when,
            **_thread_name(),
            "kind": _KINDS[told["kind"]],
            "function": users.place(),
            "resumes_at": more["resumes_at"] if resumes else None,
            "stack": stack,
            "status": "nothing" if info.get("nothing_to_capture") and told["status"] == "ok" else told["status"],
            "reason": told["reason"] or info.get("skipped", ""),
            "backend": more["backend"],
            "entries": told["entries"],
            "failures": [_failure(text, users) for text in told["failures"] or ()],
            "breaks": [_break(row) for row in (*info.get("breaks", ()), *told["breaks"])],
            "ops": info.get("ops", 0),
            "graphs": info.get("graphs", 0),
            "graph": more["graph"],
            "sizes": dict(_sizes(more["sizes"])),
            "symbols": list(_symbols(more["sizes"], users)),
            "guards": {
                "text": info.get("guards", ""),
                "nodes": more["nodes"],
                "parts": _parts(more["parts"]),
                "words": _in_words(more["entry"], users),
            },
            "bytecode": {"original": _listing(code), "transformed": _listing(transformed)},
            "resumes": list(info.get("resumes", ())),
            "inlined": list(dict.fromkeys(info.get("inlined", ()))),
            "reused_layers": info.get("reused_layers", 0),
            "python_ops": [list(row) for row in info.get("python_ops", ())],
            "attempts": more["attempts"],
            "times": dict(more["times"]),
            "calls": [list(row) for row in more["calls"]],
        }
    )


def _thread_name() -> dict[str, Any]:
    # threading.current_thread() would create an object for a thread that Python did not start.
    thread = getattr(threading, "_active", {}).get(threading.get_ident())
    return {"thread": threading.get_native_id(), "thread_name": thread.name if thread is not None else ""}


# ---- the user's stack and source ----


def _users(code: types.CodeType) -> types.CodeType:
    try:
        return utils.orig_code_map[code]
    except KeyError:
        return code


def _stack(up: int) -> list[list[Any]]:
    """Return the user's frames, innermost first: [function, file, line, source]."""
    return _stack_and_parent(sys._getframe(up + 1))[0]


def _stack_and_parent(frame: types.FrameType | None) -> tuple[list[list[Any]], int | None]:
    """Return the user's frames from ``frame`` outwards, and the translation of the innermost transformed frame."""
    rows: list[list[Any]] = []
    parent = None
    while frame is not None and len(rows) < _DEPTH:
        code = frame.f_code
        if parent is None:
            parent = _made.get(code)
        if not _ours(code.co_filename):
            users = _users(code)
            rows.append(
                [users.co_qualname, users.co_filename, frame.f_lineno, sources.line(users.co_filename, frame.f_lineno)]
            )
        frame = frame.f_back
    return rows, parent


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _ours(file: str) -> bool:
    return file.startswith(_HERE)


def _around(file: str, at: int) -> dict[str, Any] | None:
    """Return a line of user code with a few lines before and after it."""
    found = sources.lines(file)
    if not 0 < at <= len(found):
        return None
    first = max(at - 3, 1)
    return {"first": first, "lines": [text.rstrip("\n") for text in found[first - 1 : at + 3]]}


def _break(row: tuple[str, str, str, tuple[tuple[str, str, int], ...]]) -> dict[str, Any]:
    code, reason, hint, stack = row
    return {
        "code": code,
        "reason": reason,
        "hint": hint,
        "stack": [[name, file, line, sources.line(file, line)] for name, file, line in stack],
        "around": _around(*stack[0][1:]) if stack else None,
    }


def _sizes(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name of a graph value, text of its sizes, dtype and device) for each line of ``text`` that has them."""
    for line in text.splitlines():
        name, _, said = line.partition(": ")
        if said and said != "not known" and not _SYMBOL.match(line):
            yield name, said


_SYMBOL = re.compile(r"\w+ = ")


def _symbols(text: str, frame: reasons.Frame) -> Iterator[str]:
    """Yield each line of ``text`` that says what a symbol represents, with the names of the user's code."""
    for line in filter(_SYMBOL.match, text.splitlines()):
        name, _, said = line.partition(" = ")
        place, comma, value = said.rpartition(", ")
        yield f"{name} = {frame.rename(place) if place else ''}{comma}{value}"


def _failure(text: str, frame: reasons.Frame) -> dict[str, Any]:
    """Return a failed guard's parts, as in the core's GuardFailure, and one readable line about it."""
    part, reason, found, was, place = (getattr(text, k, None) for k in ("part", "reason", "found", "was", "line"))
    file, line = place or ("", 0)
    return {
        "reason": reasons.reason(text, frame).difference(),
        "text": f"{part}: {reason}" if part is not None else str(text),
        "guard": part,
        "found": found,
        "was": was,
        "file": file,
        "line": line,
        "source": sources.line(file, line),
    }


def _parts(parts: Iterable[tuple[str, str, int]]) -> list[list[Any]]:
    return [[text, file, line, sources.line(file, line) if file else ""] for text, file, line in parts]


def _in_words(entry: Any, frame: reasons.Frame) -> list[list[Any]]:
    """Return the guards of an entry in words, each with the user's line that needed it."""
    if entry is None:
        return []
    rows = []
    guards = [g for g in guard_objects.of_entry(entry).guards if g.kind != "VALID"]
    for guard in sorted(guards, key=lambda g: g.line is None or g.line[0] != frame.file):  # the function's file first
        file, line = guard.line or ("", 0)
        rows.append([frame.rename(guard.words), file, line, sources.line(file, line) if file else ""])
    return rows


def _listing(code: types.CodeType | None) -> str:
    if code is None:
        return ""
    if len(code.co_code) > _LONGEST_CODE:
        return f"{len(code.co_code)} bytes of code, not disassembled"
    return dis.Bytecode(code).dis()
