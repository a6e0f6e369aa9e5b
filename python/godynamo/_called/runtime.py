"""Functions that the Go library and the C core call by name. They run at a translation or a failure, never on a hit."""

from __future__ import annotations

import linecache
import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from .. import config, exc, utils
from .._core import core
from .._observe import logging as _logging
from .._user import registry

if TYPE_CHECKING:
    from .._observe.reasons import Frame

__all__ = [
    "internal_error",
    "is_user_error",
    "limit_reached",
    "raise_unsupported",
    "registered_kind",
    "substitute_of",
    "translated",
]

log = logging.getLogger("godynamo")

registered_kind = registry.kind_of
substitute_of = registry.substitute_of


# ---- the end of a translation ----


class _Recorders(threading.local):
    """The lists to which this thread's translations append their records, for explain()."""

    def __init__(self) -> None:
        self.lists: list[list[dict[str, Any]]] = []


recorders = _Recorders()

#: Functions called with every record of translated(), on any thread; ``godynamo run`` and others add them.
listeners: list[Callable[[dict[str, Any]], None]] = []


def translated(info: dict[str, Any]) -> None:
    """Record a finished translation.

    ``info`` is the record, with these keys: status ("ok", "skipped", or "later" if only the next call can be
    translated), loaded (whether a file had the translation), reason, code (the code object of the frame), function (the
    transformed one, or None), owner (whose entries these are), kind (an index of _KINDS in _observe/trace.py), entries
    (the number of earlier ones), failures (why the earlier entries did not serve the call, or None), seconds, breaks,
    info (a dict about the entry, or None), fixed (values that differed between calls, but which the code object's last
    entry compares with constants). A break is (code, reason, hint, ((function, file, line), ...)), innermost frame
    first.
    """
    entry = info.get("info") or {}
    code = users_code(info)
    stats = utils.counters["stats"]
    if info["loaded"]:
        stats["translations_loaded"] += 1
    utils.counters["frames"]["later" if info["status"] == "later" else "total"] += 1
    breaks = tuple(entry.get("breaks", ())) + tuple(info["breaks"])
    if info["status"] == "ok":
        if not entry.get("nothing_to_capture"):
            utils.counters["frames"]["ok"] += 1
        stats["calls_captured"] += entry.get("ops", 0)
        stats["unique_graphs"] += entry.get("graphs", 0)
    elif info["reason"] and info["status"] != "later":
        utils.counters["frames"]["skipped"] += 1
    for row in breaks:
        utils.counters["graph_break"][row[1]] += 1
    if info["function"] is not None:
        utils.orig_code_map[info["function"].__code__] = code
    failures = info.get("failures") or ()
    if failures:
        utils.guard_failures.setdefault(code, []).extend(failures)
        utils.counters["recompiles"][str(failures[0])] += 1
    utils.record_compilation(code, info)
    for records in recorders.lists:
        records.append(info)
    for listener in listeners:
        listener(info)
    if info.get("fixed"):
        log.info(
            "%s: the last entry that config.cache_size_limit allows still compares %s",
            _where(info["code"]),
            ", ".join(info["fixed"]),
        )
    if entry.get("uncompiled"):
        log.info(
            "%s is not passed to the backend: it looks at the history of several tensors of one graph", _where(code)
        )
    if info["status"] != "ok":
        log.debug("%s runs in CPython: %s", _where(info["code"]), info["reason"])


def users_code(info: dict[str, Any]) -> Any:
    """Return the user's code object for a record of translated()."""
    return _users_code(getattr(info["owner"], "function", None), info["code"])


def _users_code(function: Any, code: Any) -> Any:
    """Return the code of a frame. For a resume function it is the code of the frame in which the graph broke."""
    origin = getattr(function, "__godynamo_origin__", None)  # (code, place, ...); written by pyhook/install.go
    return origin[0] if origin is not None and function.__code__ is code else code


def _reasons() -> ModuleType:
    """Import reasons when one is shown: it is slow to import (python -X importtime), and most processes show none."""
    from .._observe import reasons

    return reasons


def users_frame(info: dict[str, Any]) -> Frame:
    """Return the user's function for a record of translated(), limit_reached() or refused()."""
    code = users_code(info)
    if "limit" in info:
        code = _users_code(info["function"], info["code"])
    return _reasons().Frame.of(code, info.get("first_type"))  # type: ignore[no-any-return]


def _place(code: Any) -> dict[str, Any]:
    return {"name": code.co_qualname, "file": code.co_filename, "line": code.co_firstlineno}


def _where(code: Any) -> str:
    return f"{code.co_name!r} ({code.co_filename}:{code.co_firstlineno})"


def break_text(
    row: tuple[str, str, str, tuple[tuple[str, str, int], ...]],
    positions: Sequence[tuple[int, int, int] | None] = (),
) -> str:
    """Return the text of a graph break for exc.Unsupported and the logs, with the innermost user line marked.

    positions: for each frame the relevant part of its line, as (end line, column, end column) in bytes. Carets mark it.
    """
    code, reason, hint, stack = row
    lines = [f"{code}: {reason}" if code else reason]
    if hint:
        lines.append(f"  hint: {hint}")
    for i, (name, file, line) in reversed(list(enumerate(stack))):
        lines.append(f'  File "{file}", line {line}, in {name}')
        source = source_line(file, line)
        if source:
            lines.append(f"{'  -> ' if i == 0 else '     '}{source}")
        if source and i < len(positions) and positions[i] is not None:
            from .._explain import source_lines

            marks = source_lines.excerpt(file, line, positions[i], around=0).marks
            lines += [f"     {marks}"] if marks else []
    return "\n".join(lines)


def source_line(file: str, line: int) -> str:
    """Return a line of user code, "" if its file cannot be read. The contents of linecache do not change."""
    known = file in linecache.cache
    text = linecache.getline(file, line).strip()
    if not known:
        linecache.cache.pop(file, None)
    return text


def raise_unsupported(info: dict[str, Any]) -> NoReturn:
    """Raise exc.Unsupported for a frame that may not break (nopython=True)."""
    rows = tuple(info["breaks"])
    positions = info.get("positions") or ((),) * len(rows)
    told = [break_text(row, marks) for row, marks in zip(rows, positions, strict=True)]
    text = "\n".join([f"{_named(info['code'], info)} cannot be captured as one graph", *told])
    if not rows:
        raise exc.Unsupported(f"{text}\n{info['reason']}", reason=info["reason"])
    code, reason, hint, stack = rows[0]
    raise exc.Unsupported(text, code=code, reason=reason, hint=hint, stack=stack)


def is_user_error(error: BaseException) -> bool:
    """Return whether the user sees an exception that ended a translation, such as a backend's failure or Ctrl-C."""
    shapes = sys.modules.get("torch.fx.experimental.symbolic_shapes")  # if it is not imported, it has raised nothing
    violated = shapes is not None and isinstance(error, shapes.ConstraintViolationError)
    return violated or isinstance(error, exc.TorchDynamoException) or not isinstance(error, Exception)


def refused(info: dict[str, Any]) -> NoReturn:
    """Raise exc.RecompileError, since no entry serves this call and the stance or a setting forbids a translation.

    If ``info["limit"]`` is set, the limit of entries is reached, and exc.FailOnRecompileLimitHit is raised instead.
    """
    code = _users_code(info["function"], info["code"])
    failures = list(info["failures"] or ())
    if failures:
        utils.guard_failures.setdefault(code, []).extend(failures)
    reasons = "\n".join(_reasons().lines(failures, code, info.get("first_type"), "  ")) or "  it has no translation yet"
    where = _named(code, info)
    if info["limit"]:
        limit = (
            f"it has reached config.cache_size_limit = {info['limit']}, and config.fail_on_recompile_limit_hit is set"
        )
        raise exc.FailOnRecompileLimitHit(f"{where}: {limit}:\n{reasons}")
    why = "with config.error_on_recompile" if config.error_on_recompile else "under set_stance('fail_on_recompile')"
    raise exc.RecompileError(f"{where} would be translated {why}:\n{reasons}")


def _named(code: Any, info: dict[str, Any]) -> str:
    """Return a function's name with file and line; for the call of a module, those of its forward."""
    frame = _reasons().Frame.of(code, info.get("first_type"))
    return str(frame) if frame.parameters is not None else _where(code)


# ---- warnings ----


def _captured(entry: dict[str, Any]) -> bool:
    """Return whether an entry has operations or a graph break. The code after a break may have operations."""
    return not entry.get("nothing_to_capture") and bool(entry.get("ops") or entry.get("breaks"))


def limit_reached(info: dict[str, Any]) -> None:
    """Warn that a code object has reached its limit of entries. The core calls this once per callable and code object.

    There is no warning if none of the entries captured anything, since nothing is lost if CPython runs further calls.
    """
    entries = info["cache"].entries()
    if entries and not any(_captured(entry.info or {}) for entry in entries):
        return
    failures = list(info["failures"] or ())
    code = _users_code(info["function"], info["code"])
    if failures:
        utils.guard_failures.setdefault(code, []).extend(failures)
    first_type = info.get("first_type")
    told = _reasons().lines(failures, code, first_type, "    ")
    log.warning(
        "godynamo hit config.cache_size_limit (%d): new cases run in CPython\n  function: %s\n  reasons:\n%s\n"
        "  or raise the limit: godynamo.config.cache_size_limit = %d, or optimize(cache_size_limit=%d)\n"
        "  godynamo.guards(fn) shows the entries, GODYNAMO_LOGS=recompiles each recompile",
        info["limit"],
        _named(code, info),
        "\n".join(told) or "    unknown",
        *(2 * (max(4 * info["limit"], 8),)),
    )
    _traced("limit", function=users_frame(info).place(), limit=info["limit"], failures=[t.strip() for t in told])


def internal_error(info: dict[str, Any]) -> None:
    """Log an internal error. The call in which it happened runs in CPython.

    The core calls this with where, error, function, count and disabled. The Go library calls it with a text as error
    and no count; the error is then passed to the core, which counts it and calls this function again.
    """
    if "count" not in info:
        core.report_internal_error("translator", info.get("function"), exc.InternalTorchDynamoError(info["error"]))
        return
    function, error = info["function"], info["error"]
    code = getattr(function, "__code__", None)
    log.error(
        "internal error (%s) at %s; the call runs in CPython: %s",
        info["where"],
        _where(code) if code is not None else function,
        error if isinstance(error, exc.InternalTorchDynamoError) else repr(error),
        exc_info=error if isinstance(error, BaseException) and log.isEnabledFor(logging.DEBUG) else None,
    )
    _traced(
        "internal_error",
        function=_place(code) if code is not None else None,
        where=info["where"],
        error=str(error) if isinstance(error, exc.InternalTorchDynamoError) else repr(error),
        count=info["count"],
        disabled=bool(info["disabled"]),
    )
    if info["disabled"]:
        warnings.warn(
            f"godynamo: {info['count']} internal errors; nothing more is translated in this process",
            RuntimeWarning,
            stacklevel=2,
        )


def watched() -> int:
    """Return which reports are wanted, as the bits of pyhook/settings.go. Go calls this once per translation."""
    bits = 1 if log.isEnabledFor(logging.DEBUG) else 0
    if recorders.lists:
        bits |= 2
    if config.trace_dir:
        bits |= 4
    if _bisecting:
        bits |= 8
    return bits | _logging.wanted_bits()


_bisecting = bool(os.environ.get("GODYNAMO_BISECT"))


def _traced(kind: str, **fields: Any) -> None:
    """Write an event to the trace, if there is one."""
    if config.trace_dir:
        from .._observe import trace as _trace

        _trace.event(kind, **fields)


def log_record(level: int, artifact: str, message: str, fields: dict[str, Any]) -> None:
    """Log a record of Go's zap logger, with the fields after the message, to godynamo.``artifact`` or to godynamo."""
    logger = logging.getLogger(f"godynamo.{artifact}") if artifact else log
    logger.log(level, "%s", " ".join([message, *(f"{k}={v}" for k, v in fields.items())]))


def graph_failed(info: dict[str, Any]) -> None:
    """Log that a compiled graph raised, and that the user's code then ran without an exception in CPython.

    The backend is at fault. The call returns the result of the user's code.
    """
    error = info["error"]
    utils.counters["backend_errors"][type(error).__name__] += 1
    log.warning(
        "the graph of %s raised %r where the program does not; the call ran in CPython",
        _where(info["function"].__code__),
        error,
    )
    _traced("graph_failed", function=_place(info["function"].__code__), error=repr(error))


def may_run_again(error: BaseException | None) -> bool | None:
    """Return whether a call whose graph raised may run again in CPython.

    It may not if saved-tensor hooks may have seen the graph's operations. Checkpointing, for example, ends its second
    forward pass with an exception from such a hook. A graph that would lose an effect if its call did not run again has
    a guard that no hooks are active (translate/undo_hooks.go). The result is None if the backend is at fault and
    ``config.suppress_errors`` is not set; the backend's error is then raised.
    """
    from . import saved_tensors

    if isinstance(error, exc.InvalidBackendResult):
        return True if config.suppress_errors else None

    return not saved_tensors.hooks_active()


_ = config  # imported with this module, because pyhook/settings.go reads the settings
