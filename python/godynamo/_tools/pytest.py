"""Runs tests under godynamo and reports the results. This is the part of the pytest plugin that imports godynamo.

With ``strict`` each test has its own translations, so its report does not depend on earlier tests. A break counts
against a test if a frame of the tested code is involved. A break in a line of the test itself (an assert on a tensor's
value) is shown but does not count.
"""

from __future__ import annotations

import functools
import inspect
import os
import site
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .. import exc
from .._called import runtime
from .._core import available, core, refusal
from .._user.optimize import Optimizer, optimize, transparent

#: a break as in runtime's records: (code, reason, hint, ((function, file, line), ...))
Row = tuple[str, str, str, tuple[tuple[str, str, int], ...]]

_PROPERTY = "godynamo"

#: Once translations have taken an eighth of the CPU time, a function with tensors is translated only at its call
#: with this number.
_TENSOR_CALLS = 16


class _Asked:
    """The requirements in a test's marker."""

    def __init__(self, item: pytest.Item, backend: str | None) -> None:
        self.off = False
        self.backend: Any = backend
        self.limit: int | None = None  #: maximum number of breaks
        mark = item.get_closest_marker("godynamo")
        if mark is None:
            return
        known: dict[str, type] = {"off": bool, "nopython": bool, "max_breaks": int, "backend": object}
        if mark.args:
            self._refuse(item, f"takes keywords alone, not {mark.args[0]!r}")
        for name, value in mark.kwargs.items():
            if name not in known:
                self._refuse(item, f"knows no {name!r}; it takes {', '.join(known)}")
            negative = name == "max_breaks" and isinstance(value, int) and value < 0
            if value is not None and (not isinstance(value, known[name]) or negative):
                self._refuse(item, f"takes no {name}={value!r}")
        self.off = bool(mark.kwargs.get("off"))
        self.backend = mark.kwargs.get("backend") or backend
        self.limit = 0 if mark.kwargs.get("nopython") else mark.kwargs.get("max_breaks")

    @staticmethod
    def _refuse(item: pytest.Item, what: str) -> None:
        pytest.fail(f"{item.nodeid}: the marker godynamo {what}", pytrace=False)


class _Record:
    """What godynamo did during one test."""

    def __init__(self, test: str, file: str) -> None:
        self._test, self._file = test, os.path.realpath(file)
        self.translated = self.graphs = self.ops = self.skipped = 0
        self.breaks: dict[tuple[str, tuple[str, int]], Row] = {}  #: (code, place) -> first break there
        self.internal_errors: list[str] = []

    def hear(self, info: dict[str, Any]) -> None:
        """Record one translation. This is one of runtime.listeners."""
        entry = info.get("info") or {}
        ok = info["status"] == "ok"
        self.translated += ok and not entry.get("nothing_to_capture")
        self.skipped += info["status"] == "skipped"
        self.graphs += entry.get("graphs", 0)
        self.ops += entry.get("ops", 0)
        for row in (*entry.get("breaks", ()), *info["breaks"]):
            self.breaks.setdefault((row[0], row[3][0][1:] if row[3] else ("", 0)), row)

    def failed(self, info: dict[str, Any]) -> None:
        """Record one internal error, and log it as usual. The core calls this."""
        code = getattr(info.get("function"), "__code__", None)
        where = f" at {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        self.internal_errors.append(f"{info.get('error')}{where}")
        runtime.internal_error(info)

    def held_against(self) -> list[Row]:
        """Return the breaks that involve a frame of the tested code."""
        return [row for row in self.breaks.values() if any(self._of_program(f) for f in row[3])]

    def _of_program(self, frame: tuple[str, str, int]) -> bool:
        name, file, _ = frame
        path = os.path.realpath(file)
        return not path.startswith(_libraries()) and (name != self._test or path != self._file)

    def to_dict(self) -> dict[str, Any]:
        """Return the data for a test's report, as plain values that pytest-xdist can transfer."""
        counts = {name: getattr(self, name) for name in ("translated", "skipped", "graphs", "ops")}
        breaks = Counter((row[0], row[1].split(":", 1)[0], *_users_place(row)) for row in self.breaks.values())
        return {
            **counts,
            "breaks": [[*key, n] for key, n in breaks.items()],  # code, reason, file, line, number of times
            "internal_errors": self.internal_errors,
        }


@functools.lru_cache(maxsize=1)
def _libraries() -> tuple[str, ...]:
    folders = [*sysconfig.get_paths().values(), *site.getsitepackages(), os.path.dirname(os.path.dirname(__file__))]
    return tuple(os.path.join(os.path.realpath(f), "") for f in folders if f)


class Plugin:
    """The plugin that is registered with --godynamo=on or strict."""

    def __init__(self, config: pytest.Config, mode: str, backend: str | None) -> None:
        self._strict = mode == "strict"
        self._mode = mode
        self._backend = backend
        self._tests = 0
        self._totals: Counter[str] = Counter()
        self._breaks: Counter[tuple[str, str, str, int]] = Counter()
        self._errors: list[str] = []
        self._unseen = 0
        self._optimizers: list[tuple[Any, Optimizer]] = []
        if backend is not None:
            try:
                optimize(backend=backend)
            except exc.InvalidBackend as error:
                raise pytest.UsageError(f"--godynamo-backend: {error}") from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Run one test's function under godynamo."""
        asked = _Asked(item, self._backend)
        if asked.off or not isinstance(item, pytest.Function) or _only_makes(item.obj):
            return (yield)
        optimizer = self._optimizer(asked.backend)
        original = item.obj
        record = _Record(item.originalname, str(item.path))
        callback = core.set_callback("internal_error", record.failed) if available else None
        runtime.listeners.append(record.hear)
        item.obj = _inside(optimizer, original)
        try:
            result = yield
        finally:
            item.obj = original
            runtime.listeners.remove(record.hear)
            if available:
                core.set_callback("internal_error", callback)
                if record.internal_errors:
                    core.reset_counters()  # otherwise internal errors of this test could disable translation for others
            item.user_properties.append((_PROPERTY, record.to_dict()))
        if self._strict:
            self._judge(asked, record)
        return result

    def _optimizer(self, backend: Any) -> Optimizer:
        """Return the optimizer for a test.

        With ``on`` all tests with the same backend share their translations, since a suite of short tests would
        otherwise translate each function once per test. Functions without tensors are translated only if they are
        called often. With ``strict`` each test has its own translations.
        """
        named = backend if backend is not None else "eager"
        if self._strict:
            return transparent(optimize(backend=named))
        for known, optimizer in self._optimizers:
            if known is named or (isinstance(named, str) and known == named):
                return optimizer
        optimizer = transparent(optimize(backend=named)).everywhere(tensor_calls=_TENSOR_CALLS)
        self._optimizers.append((named, optimizer))
        return optimizer

    def _judge(self, asked: _Asked, record: _Record) -> None:
        """Fail a test that was not captured as its marker requires."""
        lines: list[str] = []
        if record.internal_errors:
            lines = ["godynamo had internal errors; the calls ran in CPython:", *record.internal_errors]
        breaks = record.held_against() if asked.limit is not None else []
        if asked.limit is not None and len(breaks) > asked.limit:
            allowed = f"{asked.limit} allowed" if asked.limit else "none allowed"
            lines += [
                f"{len(breaks)} graph break{'s' * (len(breaks) > 1)}, {allowed}:",
                *map(runtime.break_text, breaks),
            ]
        if lines:
            pytest.fail("\n".join(lines), pytrace=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one test's data to the sums. Under pytest-xdist, the reports come from the workers."""
        if report.when != "call":
            return
        for name, told in report.user_properties:
            if name == _PROPERTY and isinstance(told, dict):
                self._tests += 1
                self._totals.update({n: told[n] for n in ("translated", "skipped", "graphs", "ops")})
                self._breaks.update({(code, reason, file, line): n for code, reason, file, line, n in told["breaks"]})
                self._errors += [f"{report.nodeid}: {text}" for text in told["internal_errors"]]

    def pytest_sessionfinish(self) -> None:
        """Count the calls that were not translated because of a tracer."""
        counters = core.counters()
        self._unseen = counters.get("traced", 0) + counters.get("hook_traced", 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was translated, breaks by code, internal errors."""
        n = self._totals
        write = terminalreporter.write_line
        terminalreporter.section(f"godynamo ({self._mode})")
        if not available:
            write(f"everything ran eagerly: {refusal}")
            return
        write(
            f"{self._tests} tests: {n['translated']} frames translated, {n['skipped']} left to CPython, "
            f"{n['graphs']} graphs with {n['ops']} operations"
        )
        if self._breaks:
            write(f"{sum(self._breaks.values())} graph breaks:")
            rows = sorted(self._breaks.items(), key=lambda row: (-row[1], row[0]))
            for (code, reason, file, line), count in rows[:_MOST_BREAKS]:
                write(f"  {count:5}  {code}  {reason}" + (f"  ({_shown(file)}:{line})" if file else ""))
            if len(rows) > _MOST_BREAKS:
                write(f"  and {sum(n for _, n in rows[_MOST_BREAKS:])} at {len(rows) - _MOST_BREAKS} other places")
        else:
            write("no graph breaks")
        if self._errors:
            write(f"{len(self._errors)} internal errors:", red=True)
            for text in self._errors:
                write(f"  {text}")
        else:
            write("no internal errors")
        if self._unseen:
            write("some calls were not translated: a trace or profile function (coverage, a debugger) was at work")


#: maximum number of break places in the summary
_MOST_BREAKS = 40


def _users_place(row: Row) -> tuple[str, int]:
    """Return the file and line of a break's innermost user frame, or of its innermost frame if it has no user frame."""
    frames = row[3]
    users = next((f for f in frames if not os.path.realpath(f[1]).startswith(_libraries())), None)
    _, file, line = users or (frames[0] if frames else ("", "", 0))
    return file, line


def _shown(file: str) -> str:
    """Return a file's path as pytest shows it: a relative path if the file is below the current folder."""
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else relative


def _only_makes(fn: Any) -> bool:
    """Return whether a call of a test only creates a coroutine or generator, which another plugin runs later."""
    return inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)


def _inside(optimizer: Optimizer, fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def test(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        with optimizer:
            return fn(*args, **kwargs)

    return test
