"""Runs one of CPython's own test files, with or without godynamo, and writes each result as soon as it is known.

    cpython_child.py NAME RESULTS [--godynamo] [--skip FILE] [--only PATTERN]

RESULTS gets one JSON line when a test starts and one when it ends, so that after a crash the last line names the test.
A complete run ends with a line of counters. With ``--godynamo`` the eval-frame hook serves and transforms every Python
function that the file's tests call, including the standard library's, with or without tensors.
"""

from __future__ import annotations

import argparse
import faulthandler
import fnmatch
import json
import signal
import sys
import time
import unittest
from collections import Counter
from types import CodeType
from typing import Any

import torch  # also imported in the plain run, so that effects of its mere presence do not count as differences


class Recorder(unittest.TestResult):
    """Writes a line at the start and end of each test."""

    def __init__(self, out: Any) -> None:
        super().__init__()
        self._out = out
        self._seen: Counter[str] = Counter()
        self._names: dict[int, str] = {}
        self._outcome, self._text, self._started = "", "", 0.0

    def write(self, **row: Any) -> None:
        self._out.write(json.dumps(row) + "\n")
        self._out.flush()

    def name(self, test: Any) -> str:
        """Return the test's id; tests with the same id get a number, in order."""
        key = id(test)
        if key not in self._names:
            name = test.id()
            self._seen[name] += 1
            self._names[key] = name if self._seen[name] == 1 else f"{name}#{self._seen[name]}"
        return self._names[key]

    def startTest(self, test: Any) -> None:  # noqa: N802
        super().startTest(test)
        self._outcome, self._text, self._started = "passed", "", time.monotonic()
        self.write(start=self.name(test))

    def stopTest(self, test: Any) -> None:  # noqa: N802
        super().stopTest(test)
        if self._outcome == "failed":
            stop_monitoring()
        self.write(
            test=self.name(test),
            outcome=self._outcome,
            text=self._text[-6000:],
            seconds=round(time.monotonic() - self._started, 4),
        )

    def _worse(self, test: Any, outcome: str, text: str) -> None:
        if not hasattr(test, "_testMethodName") and not hasattr(test, "_dt_test"):
            self.write(test=self.name(test), outcome=outcome, text=text[-6000:], seconds=0)  # setUpClass, setUpModule
            return
        self._outcome = outcome
        self._text += text

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._worse(test, "failed", self._exc_info_to_string(err, test))

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._worse(test, "failed", f"{subtest}\n{self._exc_info_to_string(err, test)}")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        if self._outcome == "failed":
            return
        self._worse(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._worse(test, "passed", "")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self._worse(test, "failed", "unexpected success")


def stop_monitoring() -> None:
    """Stop the tools of sys.monitoring that a failed test has left listening. The next tests would fail too."""
    if sys.version_info >= (3, 12):
        for tool in range(sys.monitoring.OPTIMIZER_ID + 1):
            if sys.monitoring.get_tool(tool):
                sys.monitoring.set_events(tool, 0)
                sys.monitoring.free_tool_id(tool)


def tests_of(suite: Any, keep: Any) -> unittest.TestSuite:
    """Return the suite without the tests that ``keep`` rejects; it stays nested, so that class fixtures run as
    usual."""
    kept = unittest.TestSuite()
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            kept.addTest(tests_of(test, keep))
        elif keep(test):
            kept.addTest(test)
    return kept


def run(name: str, result: Recorder, skip: set[str], only: str) -> None:
    """Load the file's tests and run them."""
    suite = unittest.defaultTestLoader.loadTestsFromName(name if "." in name else f"test.{name}")

    def keep(test: Any) -> bool:
        full = result.name(test)
        return full not in skip and (not only or fnmatch.fnmatch(full, f"*{only}*"))

    tests_of(suite, keep).run(result)


def run_translated(name: str, result: Recorder, skip: set[str], only: str) -> dict[str, Any]:
    """Do the same under godynamo; return its counters and internal errors."""
    import godynamo
    from godynamo import _C
    from godynamo._translator import trace_rules

    errors: list[str] = []
    alone = (__file__, trace_rules._own_folder(), trace_rules._torch_folder())

    def skip_code(code: CodeType) -> int:
        # no int(): test_builtin replaces it and counts the calls
        return 1 if code.co_filename.startswith(alone) or code.co_name == "<module>" else 0

    def internal_error(info: dict[str, Any]) -> None:
        code = getattr(info["function"], "__code__", None)
        errors.append(f"{info['where']}: {getattr(code, 'co_qualname', '')}: {info['error']}")
        result.write(internal=errors[-1][:4000])

    for callback in (skip_code, internal_error):
        _C.set_callback(callback.__name__, callback)
        _C.mark_skip(callback.__code__)
    _C.set_callback("limit_reached", lambda info: None)
    godynamo.config.translate_everything = True
    godynamo.config.max_internal_errors = godynamo.config.inner_limit = 2**20
    with godynamo.optimize("eager"):
        run(name, result, skip, only)
    return {"counters": {k: v for k, v in _C.counters().items() if v}, "internal_errors": len(errors)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("results")
    parser.add_argument("--godynamo", action="store_true")
    parser.add_argument("--skip")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    torch.set_num_threads(1)
    faulthandler.enable()
    # A shell without job control starts its background processes with SIGINT ignored, and then tests of SIGINT fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from test import support
    from test.support import os_helper

    support.verbose = 0
    support.use_resources = []
    skip = set()
    if args.skip:
        with open(args.skip) as file:
            skip = set(json.load(file))
    with open(args.results, "w") as out, os_helper.temp_cwd("godynamo_cpython", quiet=True):
        result = Recorder(out)
        info: dict[str, Any] = {}
        if args.godynamo:
            info = run_translated(args.name, result, skip, args.only)
        else:
            run(args.name, result, skip, args.only)
        result.write(done=info)


if __name__ == "__main__":
    # The interpreter's exit is not under test, and threads left behind by a test would delay it.
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    import os

    os._exit(0)
