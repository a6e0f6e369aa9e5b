"""`make conformance`: prints `pass`, `fail` or `no test` for each row of docs/conformance.md, and totals per seed.

Without --rows it reads the results that `make test` has left in build/ for this Python. With --rows it first runs the
tests of those rows. Exits with 1 if a requested row does not pass (without --rows: if any row fails), and with 2 if it
cannot run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rows as table

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "conformance.md"
PYTEST_RESULTS = ROOT / "build" / "rows-py{}.{}.json".format(*sys.version_info)
GO_RESULTS = ROOT / "build" / "go-tests-py{}.{}.json".format(*sys.version_info)
BENCH_RESULTS = ROOT / "bench" / "results" / "latest.json"


def _load(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def collect_pytest() -> tuple[list[table.RowTest], list[str]]:
    """Return the pytest tests that name rows, and pytest's lines about files that it could not collect.

    This runs pytest's collection, so that markers of single parameters count. Raises RuntimeError with pytest's output
    if pytest collects nothing.
    """
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "rows.json"
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "--continue-on-collection-errors", "-q", "python/tests"],
            cwd=ROOT,
            env={**os.environ, "GODYNAMO_ROWS_COLLECT": str(target)},
            capture_output=True,
            text=True,
            check=False,
        )
        if not target.exists():
            raise RuntimeError(f"pytest could not collect python/tests:\n{run.stdout[-4000:]}{run.stderr[-2000:]}")
        collected = json.loads(target.read_text())
    errors = [line for line in run.stdout.splitlines() if line.startswith("ERROR ")]
    return [table.RowTest(name, test["rows"]) for name, test in collected.items()], errors


def fill_outcomes(tests: Iterable[table.RowTest]) -> None:
    """Fill in the tests' outcomes from the last run of `make test` or of run_tests()."""
    python, go = _load(PYTEST_RESULTS) or {}, _load(GO_RESULTS) or {}
    for test in tests:
        test.outcome = go.get(test.name) if test.kind == "go" else (python.get(test.name) or {}).get("outcome")


def run_tests(tests: list[table.RowTest]) -> None:
    """Run these tests, which write their results to build/. Output goes to stderr."""
    names = [test.name for test in tests if test.kind == "pytest"]
    if names:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as arguments:
            arguments.write("\n".join(names))
            arguments.flush()
            command = [sys.executable, "-m", "pytest", "-q", f"@{arguments.name}"]
            subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
    packages = sorted({test.package for test in tests if test.kind == "go"})
    if packages:
        functions = sorted({test.name.rsplit(".", 1)[1] for test in tests if test.kind == "go"})
        pattern = f"^({'|'.join(functions)})$"
        command = ["scripts/go_test.sh", "-run", pattern, *(f"./{package}" for package in packages)]
        subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)


def describe_record() -> str:
    """Return a line about when the shown results were recorded."""
    times = [path.stat().st_mtime for path in (PYTEST_RESULTS, GO_RESULTS) if path.exists()]
    if not times:
        return "no results yet: run `make test`"
    return f"results of {datetime.fromtimestamp(min(times)):%Y-%m-%d %H:%M}"


def print_report(verdicts: list[table.Verdict], quiet: bool) -> None:
    """Print a line per row, then the totals. With ``quiet``, print only rows that do not pass."""
    for verdict in verdicts:
        if quiet and verdict.status == table.PASS:
            continue
        note = f"  [{verdict.note}]" if verdict.note else ""
        print(f"{verdict.status:8} {verdict.row.id:9} {verdict.row.text[:96]}{note}")
        for test in verdict.tests:
            if test.outcome != "passed":
                print(f"{'':18} {test.outcome or 'not run'}: {test.name}")
    print()
    print(f"{'seed':6} {'rows':>5} {'pass':>5} {'fail':>5} {'no test':>8} {'not run':>8}")
    for group, counts in table.totals(verdicts).items():
        print(
            f"{group:6} {sum(counts.values()):5} {counts[table.PASS]:5} {counts[table.FAIL]:5} "
            f"{counts[table.NO_TEST]:8} {counts[table.NOT_RUN]:8}"
        )


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", help="seeds, rows or spans: S002 or S002-07,S000 or S002-59..62; runs their tests")
    parser.add_argument("--no-run", action="store_true", help="with --rows: read the last results instead of running")
    parser.add_argument("--quiet", action="store_true", help="leave out rows that pass")
    parser.add_argument("--allow", default="", help="rows that may miss without an exit code")
    options = parser.parse_args(arguments)
    try:
        rows = table.parse_table(TABLE.read_text())
        asked = table.select(rows, options.rows) if options.rows else rows
        allowed = {row.id for row in table.select(rows, options.allow)} if options.allow else set()
        tests, errors = collect_pytest()
        tests += table.go_tests_below(ROOT)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2
    for text in table.unknown_rows(rows, tests):
        print(f"conformance: {text}, which is not in the table", file=sys.stderr)

    for text in errors:
        print(f"conformance: not collected: {text}", file=sys.stderr)

    wanted = {row.id for row in asked}
    if options.rows and not options.no_run:
        run_tests([test for test in tests if wanted.intersection(test.rows)])
    fill_outcomes(tests)
    verdicts = table.judge(asked, tests, table.timed_rows(_load(BENCH_RESULTS)))
    print_report(verdicts, options.quiet)
    print(describe_record())
    bad = {table.FAIL, table.NO_TEST, table.NOT_RUN} if options.rows else {table.FAIL}
    missed = any(verdict.status in bad and verdict.row.id not in allowed for verdict in verdicts)
    return int(missed or bool(errors))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
