"""Reads the output of `go test -json` from stdin. Prints failures and a line per package; records each test's outcome.

build/go-tests-py3.11.json (with the Python's version) maps `directory.TestName` to passed, failed or skipped. A run
updates only the tests that it ran. Exits with 1 if anything fails, including a package that does not compile.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

MODULE = "github.com/godynamo/godynamo"
ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "build" / "go-tests-py{}.{}.json".format(*sys.version_info)
OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class Report:
    """The outcomes in a stream of test2json events."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.failed = False
        self._output: dict[tuple[str, str], list[str]] = {}

    def feed(self, lines: Iterable[str]) -> Iterable[str]:
        """Process the events in these lines; yield text to print."""
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                yield line  # a line of the go command itself
                continue
            yield from self._event(event)

    def _event(self, event: dict[str, str]) -> Iterable[str]:
        package = event.get("Package") or event.get("ImportPath", "")
        key = (package, event.get("Test", ""))
        action = event.get("Action", "")
        if action == "output":
            self._output.setdefault(key, []).append(event["Output"])
        elif action == "build-output":
            yield event["Output"]
        elif action == "build-fail":
            self.failed = True
        elif action in OUTCOMES:
            output = self._output.pop(key, [])
            if key[1]:
                directory = package.removeprefix(MODULE).lstrip("/") or "."
                self.outcomes[f"{directory}.{key[1]}"] = OUTCOMES[action]
            if action == "fail":
                self.failed = True
                yield from output
            elif not key[1]:
                yield from (text for text in output if text.startswith(("ok", "?", "FAIL", "panic")))


def record(outcomes: dict[str, str]) -> None:
    """Merge outcomes into the record. The file is replaced by a rename."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known.update(outcomes)
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    temporary = RECORD.with_name(f".{RECORD.name}.{os.getpid()}")
    temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
    os.replace(temporary, RECORD)


def main() -> int:
    """Run the command; see the module's docstring."""
    report = Report()
    for text in report.feed(sys.stdin):
        sys.stdout.write(text)
        sys.stdout.flush()
    record(report.outcomes)
    passed = sum(outcome == "passed" for outcome in report.outcomes.values())
    print(f"go test: {passed} passed, {sum(o == 'failed' for o in report.outcomes.values())} failed, "
          f"{sum(o == 'skipped' for o in report.outcomes.values())} skipped")  # fmt: skip
    return int(report.failed)


if __name__ == "__main__":
    sys.exit(main())
