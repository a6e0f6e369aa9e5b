"""Compares a plain run and a translated run of one file, and checks the list of expected differences."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from cpython_children import FileRun

EXPECTED = Path(__file__).resolve().parent / "expected_differences.toml"


@dataclass(frozen=True)
class Listed:
    """An expected difference of a test."""

    cause: str
    sometimes: bool = False  #: the test may also pass


@dataclass
class Comparison:
    """The verdict on one file."""

    file: str
    plain: FileRun
    translated: FileRun
    whole: bool = True  #: all of the file's tests ran, not a selection
    differ: dict[str, tuple[str, str]] = field(default_factory=dict)  #: id → (outcome, text), unexpected differences
    expected: dict[str, str] = field(default_factory=dict)  #: id → cause, listed differences that occurred
    stale: list[str] = field(default_factory=list)  #: listed tests that pass or do not exist

    @property
    def unloadable(self) -> str:
        """The error that ends the file before its first test, in both modes; "" if it has tests.

        Debian's tests for 3.14 may be those of a later release than the interpreter, and use what it does not have.
        """
        errors = {run.cannot_load for run in (self.plain, self.translated)}
        return errors.pop() if len(errors) == 1 else ""

    @property
    def ok(self) -> bool:
        """Whether the file is as expected. It is not if nothing was transformed, since that proves nothing."""
        bad = self.differ or self.stale or self.translated.internal or self.translated.died or self.plain.died
        return not bad and self.translated.translated > 0 and any(o == "passed" for o, _ in self.plain.tests.values())


def expected_differences(path: Path = EXPECTED) -> dict[str, dict[str, Listed]]:
    """Return file → test id → the difference, for this version of Python.

    Raises ValueError for an incomplete or duplicate entry.
    """
    out: dict[str, dict[str, Listed]] = {}
    for row in tomllib.loads(path.read_text()).get("difference", []):
        since, until = row.pop("since", "3.11"), row.pop("until", "3.99")
        sometimes = row.pop("sometimes", False)
        versions = all(re.fullmatch(r"3\.\d+", version) for version in (since, until))
        if set(row) != {"file", "tests", "cause"} or not all(row.values()) or not versions:
            raise ValueError(f"{path.name}: file, tests and cause are needed, not {row}")
        if not int(since[2:]) <= sys.version_info[1] <= int(until[2:]):
            continue
        listed = out.setdefault(row["file"], {})
        for test in (f"test.{row['file']}.{name}" for name in row["tests"]):
            if test in listed:
                raise ValueError(f"{path.name}: {test} is listed twice")
            listed[test] = Listed(row["cause"], sometimes)
    return out


def compare(
    file: str, plain: FileRun, translated: FileRun, listed: dict[str, Listed], whole: bool = True
) -> Comparison:
    """Compare two runs: a test that passes plainly must pass translated, but a listed test must fail translated,
    unless it may also pass."""
    c = Comparison(file, plain, translated, whole)
    for test, (outcome, text) in translated.tests.items():
        before = plain.tests.get(test, ("not there", ""))[0]
        if outcome in (before, "passed") or (outcome == "failed" and before not in ("passed", "skipped", "not there")):
            continue
        if test in listed:
            c.expected[test] = listed[test].cause
        else:
            c.differ[test] = (outcome, text)
    for test, (outcome, _) in plain.tests.items():
        if outcome == "passed" and test not in translated.tests:
            c.differ[test] = ("not run", "")
    ended = whole and not plain.died and not translated.died
    c.stale = [
        t for t in listed if t not in c.expected and not listed[t].sometimes and (ended or t in translated.tests)
    ]
    return c
