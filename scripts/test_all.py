"""`make test-all`: runs the whole suite on each supported Python that is found, and prints one table at the end.

Output goes to the terminal and to build/test-py3.12.log and the like. A Python that is not found is named in the table
as not tested. Exits with 1 if a test fails, or if a Python that is found cannot be tested.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pythons

ROOT = pythons.ROOT
HEAD = ("Python", "result", "Go", "pytest", "minutes")
#: what the table counts, in this order
OUTCOMES = ("passed", "failed", "skipped")


#: pytest's last line, with or without -q
SUMMARY = re.compile(r"(=+ )?(\d+ \w+, )*\d+ \w+ in [\d.]+s( \([\d:]+\))?( =+)?")


def count(lines: Iterable[str]) -> dict[str, Counter[str]]:
    """Return the outcomes in the summaries of the Go tests and of pytest, added up: {"go": ..., "pytest": ...}."""
    totals: dict[str, Counter[str]] = {"go": Counter(), "pytest": Counter()}
    for line in lines:
        if line.startswith("go test: "):
            runner = "go"
        elif SUMMARY.fullmatch(line.strip()):
            runner = "pytest"
        else:
            continue
        for number, word in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", line):
            totals[runner]["failed" if word.startswith("error") else word] += int(number)
    return totals


def told(counts: Counter[str]) -> str:
    """Return counts as text: "10 passed, 1 failed"."""
    return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name]) or "none"


def test(python: pythons.Python, targets: list[str]) -> tuple[list[str], bool]:
    """Run the suite on one Python. Return its row of the table, and whether nothing failed."""
    if python.path is None:
        return [python.version, "not tested: not found"], True
    log = ROOT / "build" / f"test-py{python.version}.log"
    log.parent.mkdir(exist_ok=True)
    print(f"testing on Python {python.version}: {log.relative_to(ROOT)}", flush=True)
    begun = time.monotonic()
    process = subprocess.Popen(
        ["make", *targets, f"PYTHON={python.version}"],
        cwd=ROOT,
        env=pythons.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    lines = []
    with log.open("w") as file:
        for line in process.stdout:
            lines.append(line)
            file.write(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    passed = process.wait() == 0
    totals = count(lines)
    minutes = f"{(time.monotonic() - begun) / 60:.0f}"
    return [
        python.version,
        "passed" if passed else "FAILED",
        told(totals["go"]),
        told(totals["pytest"]),
        minutes,
    ], passed


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="such as 3.12 (default: the supported ones)")
    options = parser.parse_args(arguments)
    try:
        chosen = pythons.find(options.versions)
    except ValueError as error:
        parser.error(str(error))
    rows, fine = [], True
    for python in chosen:
        if options.versions or python.supported:
            cells, passed = test(python, ["test"])
            rows.append(cells)
            fine = fine and passed
    print(pythons.table(HEAD, rows))
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
