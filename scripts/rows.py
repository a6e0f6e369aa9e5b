"""Parses the table of docs/conformance.md, finds the tests that name its rows, and judges each row.

The functions here are pure functions of texts and dictionaries; conformance.py runs tests and prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ROW = re.compile(r"^\|\s*(S\d{3}-\d+)\s*\|\s*(.*?)\s*(?<!\\)\|")
_GO_ROWS = re.compile(r"^\s*// Rows?: (S\d{3}-\d+(?:[,\s]+S\d{3}-\d+)*)")
_GO_TEST = re.compile(r"^func ((?:Test|Fuzz)\w*)\(")
_ROW_ID = re.compile(r"S\d{3}-\d+")

PASS, FAIL, NO_TEST, NOT_RUN = "pass", "fail", "no test", "not run"


@dataclass(frozen=True)
class Row:
    """A row of the table: one behaviour."""

    id: str
    text: str

    @property
    def seed(self) -> str:
        """The seed document of the row: S002."""
        return self.id.split("-")[0]


@dataclass
class RowTest:
    """A test that names rows: a pytest node id, or `package.TestName` of Go."""

    name: str
    rows: list[str]
    outcome: str | None = None  # passed, failed, skipped, xfailed; None: not run
    kind: str = "pytest"  # or "go"
    package: str = ""  # directory of a Go test, relative to the root


@dataclass
class Verdict:
    """The result of a row."""

    row: Row
    status: str
    tests: list[RowTest] = field(default_factory=list)
    note: str = ""


def parse_table(text: str) -> list[Row]:
    """Return the table's rows in order. Raises ValueError for a duplicate ID."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        found = _ROW.match(line)
        if found is None:
            continue
        if found[1] in rows:
            raise ValueError(f"row {found[1]} comes twice")
        rows[found[1]] = Row(found[1], found[2].replace("\\|", "|"))
    return list(rows.values())


def select(rows: Iterable[Row], wanted: str) -> list[Row]:
    """Return the rows named by a list such as `S002`, `S002-07,S000` or `S002-59..62`.

    Raises ValueError for a name that matches none.
    """
    rows = list(rows)
    chosen: dict[str, Row] = {}
    for name in filter(None, re.split(r"[,\s]+", wanted)):
        span = re.fullmatch(r"(S\d{3})-(\d+)\.\.(\d+)", name)
        if span:
            numbers = range(int(span[2]), int(span[3]) + 1)
            found = [row for row in rows if row.seed == span[1] and int(row.id.split("-")[1]) in numbers]
        else:
            found = [row for row in rows if name in (row.id, row.seed)]
        if not found:
            raise ValueError(f"no row {name}")
        chosen.update((row.id, row) for row in found)
    return [row for row in rows if row.id in chosen]


def go_tests(source: str, package: str) -> list[RowTest]:
    """Return the tests of one Go file that name rows in a comment `// Row: S002-75` (several: separated by commas).

    A comment inside a test function belongs to that function. Any other comment (at the left margin, or in a table of
    cases) belongs to the next test function. Raises ValueError for a comment in a helper, or without a following test:
    its row would silently count as untested.
    """
    tests: dict[str, RowTest] = {}
    pending: list[str] = []
    current: str | None = None  # the function that contains the line; "" for a helper

    def add(test: str, rows: list[str]) -> None:
        entry = tests.setdefault(test, RowTest(f"{package}.{test}", [], kind="go", package=package))
        entry.rows.extend(row for row in rows if row not in entry.rows)

    for line in source.splitlines():
        function = _GO_TEST.match(line)
        comment = _GO_ROWS.match(line)
        if function:
            current = None if line.endswith("}") else function[1]
            if pending:
                add(function[1], pending)
                pending = []
        elif line.startswith("func "):
            current = None if line.endswith("}") else ""
        elif line.startswith("}"):
            current = None
        elif comment:
            rows = _ROW_ID.findall(comment[1])
            if current is None:
                pending.extend(rows)
            elif current == "":
                raise ValueError(f"{package}: rows {', '.join(rows)} stand in a function that is no test")
            else:
                add(current, rows)
    if pending:
        raise ValueError(f"{package}: rows {', '.join(pending)} belong to no test")
    return list(tests.values())


def go_tests_below(root: Path) -> list[RowTest]:
    """Return all Go tests of the repository that name rows."""
    tests: list[RowTest] = []
    for path in sorted(root.rglob("*_test.go")):
        relative = path.relative_to(root)
        if relative.parts[0] in ("build", "testdata") or any(part.startswith(".") for part in relative.parts):
            continue
        tests.extend(go_tests(path.read_text(), str(relative.parent)))
    return tests


def judge(rows: Iterable[Row], tests: Iterable[RowTest], timed: Mapping[str, tuple[bool | None, str]]) -> list[Verdict]:
    """Return a verdict per row.

    A row passes if at least one of its tests passed and none failed; a skipped test alone proves nothing. timed: rows
    that a recorded benchmark must also prove, with (whether the bound is met, or None without a record; the figure as
    text).
    """
    by_row: dict[str, list[RowTest]] = {}
    for test in tests:
        for name in test.rows:
            by_row.setdefault(name, []).append(test)
    verdicts = []
    for row in rows:
        found = by_row.get(row.id, [])
        outcomes = {test.outcome for test in found}
        if not found:
            status = NO_TEST
        elif outcomes & {"failed", "xfailed"}:
            status = FAIL
        elif "passed" in outcomes and None not in outcomes:
            status = PASS
        else:
            status = NOT_RUN
        met, note = timed.get(row.id, (True, ""))
        if status == PASS and not met:
            status = FAIL if met is False else NOT_RUN
        verdicts.append(Verdict(row, status, found, note))
    return verdicts


def unknown_rows(rows: Iterable[Row], tests: Iterable[RowTest]) -> list[str]:
    """Return texts about tests that name an unknown row. Such a typo would hide the test."""
    known = {row.id for row in rows}
    return [f"{test.name} names {row}" for test in tests for row in test.rows if row not in known]


def totals(verdicts: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return the counts of each status per seed document (S002, ...), and under "all"."""
    counts: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        for group in (verdict.row.seed, "all"):
            group_counts = counts.setdefault(group, dict.fromkeys((PASS, FAIL, NO_TEST, NOT_RUN), 0))
            group_counts[verdict.status] += 1
    return {group: counts[group] for group in sorted(counts, key=lambda name: (name == "all", name))}


# Rows about time -> (workload in bench/results/latest.json, figure, upper bound). EMPTY_CALLS is the time over eager in
# calls of `def f(a, b): return b` in eager mode, from the same run: a slow machine is judged like a fast one.
EMPTY_CALLS = "empty calls over eager"
TIMED_ROWS: dict[str, tuple[str, str, float]] = {
    "S002-12": ("sequential", "ratio", 1.0),
    "S002-13": ("pure_python", "ratio", 1.05),
    # A call of a skipped frame costs only the callable's early exit, so the goal of the identity call applies: 0.06 µs
    # on a machine where an empty call takes 0.0226 µs.
    "S002-119": ("skipped", EMPTY_CALLS, 2.65),
}


def timed_rows(result: Mapping[str, Any] | None) -> dict[str, tuple[bool | None, str]]:
    """Judge the rows of TIMED_ROWS by a recorded benchmark; ``result`` is None if nothing is recorded."""
    verdicts: dict[str, tuple[bool | None, str]] = {}
    for row, (workload, figure, bound) in TIMED_ROWS.items():
        calls = (result or {}).get("calls") or {}
        taken = (calls.get(workload) or {}).get("godynamo") or {}
        empty = ((calls.get("identity") or {}).get("eager") or {}).get("us")
        if figure == EMPTY_CALLS:
            value = taken["over_eager_us"] / empty if empty and "over_eager_us" in taken else None
        else:
            value = taken.get(figure)
        if value is None:
            verdicts[row] = (None, f"no bench result for {workload}")
        else:
            verdicts[row] = (value <= bound, f"bench {workload}: {figure} {value:.3f}, at most {bound}")
    return verdicts
