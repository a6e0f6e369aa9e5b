"""Judges units one after the other and writes each result at once: after a crash the last line names the unit.

library_child.py ops|sizes|modules|paritybench RESULTS UNITS SAMPLES      UNITS is a JSON file with their names
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from library_judge import Case, judge

TABLES = {"ops": "op_cases", "sizes": "op_sizes", "modules": "module_cases", "paritybench": "paritybench_cases"}


def tables(what: str) -> Any:
    """Return the module that has ``units()``, and ``cases(unit, most)`` or ``row(unit, most)``; tests of this harness
    pass other module names."""
    return importlib.import_module(TABLES.get(what, what))


def judged(cases: Iterator[Case]) -> dict[str, Any]:
    """Return the row of one unit."""
    started = time.monotonic()
    row: dict[str, Any] = {
        "cases": 0,
        "right": 0,
        "ran": 0,
        "counted": 0,
        "one": 0,
        "again": 0,
        "unvalued": 0,
        "wrong": [],
        "error": "",
    }
    breaks: Counter[str] = Counter()
    split: list[str] = []
    try:
        for case in cases:
            verdict = judge(case)
            row["cases"] += 1
            row["right"] += not verdict.wrong
            row["ran"] += verdict.ran
            row["unvalued"] += not verdict.valued
            row["wrong"] += [f"{case.name}: {text}" for text in verdict.wrong]
            if verdict.ran and case.counted:
                row["counted"] += 1
                row["one"] += verdict.one
                row["again"] += verdict.again
                breaks += verdict.breaks
                split += [] if verdict.one else [case.name]
    except Exception as error:  # raised by the table itself, for example for samples that need a missing package
        row["error"] = f"{type(error).__name__}: {error}"
    return {**row, "breaks": dict(breaks), "split": split, "seconds": round(time.monotonic() - started, 2)}


def main() -> None:
    what, results, names, most = sys.argv[1:5]
    torch.set_num_threads(1)
    faulthandler.enable()
    table = tables(what)
    units = table.units()
    with open(results, "w") as out:

        def write(**row: Any) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        for name in json.loads(Path(names).read_text()):
            write(start=name)
            unit = units[name]
            row = table.row(unit, int(most)) if hasattr(table, "row") else judged(table.cases(unit, int(most)))
            write(unit=name, **row)
        write(done=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # the interpreter's exit is not under test
