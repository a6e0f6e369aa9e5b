"""`make captured`: lists what still splits in real code by reason, with torch.compile's graphs beside ours.

    bench/captured.py [--only PATTERN] [--modules PATTERN] [--no-torch-compile] [--out FILE]

Runs the models of `make models` in evaluation and in whole training steps, the modules of `make modules`, those of
`make paritybench` if GODYNAMO_PARITYBENCH_DIR names a checkout, and the examples. Writes a page in Markdown: totals,
and a table of the reasons for graph breaks, the one with most programs first. "3/1" beside a program are our graphs
and torch.compile's. Exits with 1 if a program is wrong or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(HERE / "models"))

from training_of_models import in_one  # noqa: E402

MODELS = HERE / "models" / "models_run.py"
LIBRARY = ROOT / "python" / "tests" / "torch_library" / "library_run.py"
PAGE = HERE / "results" / "captured.md"
MOST_NAMED = 12  #: programs named in a row of the table


@dataclass
class Found:
    """What the runs have found."""

    totals: list[str] = field(default_factory=list)
    #: reason -> the programs that split for it
    splits: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    bad: list[str] = field(default_factory=list)

    def split(self, reasons: list[str], program: str) -> None:
        """Note the reasons for which a program splits."""
        for reason in dict.fromkeys(map(plain, reasons)):
            self.splits[reason].append(program)


def plain(reason: str) -> str:
    """Return a reason without its count, and without numbers and addresses, which differ between programs."""
    reason = re.sub(r"^\d+ x ", "", reason)
    code, colon, text = reason.partition(": ")
    return code + colon + re.sub(r"0x[0-9a-f]+|\d+", "N", text)


def of_models(rows: list[dict[str, Any]], found: Found) -> None:
    """Add the models in evaluation."""
    done = [r for r in rows if "error" not in r]
    for r in rows:
        if "error" in r or r["wrong"] not in ("", "close"):
            found.bad.append(f"{r['name']}: {r.get('error', r.get('wrong'))}")
        elif r["graphs"] > 1:
            found.split(r["breaks"], f"{r['name']} ({r['graphs']}/{r.get('torch_graphs', '-')})")
    one = sum(r["graphs"] == 1 for r in done)
    found.totals.append(f"models: {one} of {len(rows)} in one graph{in_one(done, 'torch_graphs')}")


def of_training(rows: list[dict[str, Any]], found: Found) -> None:
    """Add the models in training."""
    done = [r for r in rows if "error" not in r]
    for r in rows:
        if "error" in r or r["verdict"].startswith("WRONG"):
            found.bad.append(f"{r['name']}, training: {r.get('error', r.get('verdict'))}")
        elif r["step"] > 1:
            found.split(r["step_breaks"], f"{r['name']}, step ({r['step']}/{r.get('torch_step', '-')})")
    one = sum(r["step"] == 1 for r in done)
    found.totals.append(f"training steps: {one} of {len(rows)} in one graph{in_one(done, 'torch_step')}")


def of_library(what: str, rows: list[dict[str, Any]], found: Found) -> None:
    """Add the modules of torch.nn or of paritybench."""
    counted = [r for r in rows if not r["error"] and r["counted"]]
    for r in rows:
        found.bad += [f"{r['unit']}: {text[:200]}" for text in r["wrong"][:1]]
    for r in counted:
        if r["one"] < r["counted"]:
            reasons = sorted(r["breaks"], key=r["breaks"].get, reverse=True)[:3]
            found.split(reasons or ["only the eager call ran"], f"{r['unit']} ({r['one']} of {r['counted']} calls)")
    one = sum(r["one"] == r["counted"] for r in counted)
    found.totals.append(f"{what}: {one} of {len(counted)} in one graph")


_EXAMPLE = """
import json, runpy, sys
import godynamo
sys.argv = [sys.argv[1]]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("\\n" + json.dumps(godynamo.utils.counters["graph_break"]))
"""


def of_examples(found: Found) -> None:
    """Run the examples that need no arguments, and add the breaks that they count."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        if path.stem == "ranks":  # for torchrun; make ranks
            continue
        run = subprocess.run([sys.executable, "-c", _EXAMPLE, str(path)], capture_output=True, text=True, check=False)
        if run.returncode:
            found.bad.append(f"{path.name}: {run.stderr[-200:]}")
            continue
        found.split(list(json.loads(run.stdout.strip().splitlines()[-1])), f"examples/{path.name}")


def page(found: Found) -> str:
    """Return the page."""
    rows = sorted(found.splits.items(), key=lambda item: (-len(item[1]), item[0]))
    table = ["| reason | programs | which (our graphs/torch.compile's) |", "|---|---|---|"]
    for reason, programs in rows:
        named = ", ".join(programs[:MOST_NAMED]) + (", ..." if len(programs) > MOST_NAMED else "")
        table.append(f"| {reason.replace('|', chr(92) + '|')} | {len(programs)} | {named} |")
    bad = ["", "Wrong or failed:", *(f"- {text}" for text in found.bad)] if found.bad else []
    head = ["# What splits", "", "Made by `make captured`.", ""]
    return "\n".join([*head, *(f"- {text}" for text in found.totals), *bad, "", *table]) + "\n"


def rows_of(command: list[str]) -> list[dict[str, Any]]:
    """Run a command that writes its rows to the file after --json, and return them. Its output is shown."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        subprocess.run([sys.executable, *command, "--json", str(out)], check=False)
        rows: list[dict[str, Any]] = json.loads(out.read_text()) if out.exists() else []
    return rows


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of models, with wildcards")
    parser.add_argument("--modules", default="*", help="names of modules of torch.nn, with wildcards")
    parser.add_argument("--no-torch-compile", action="store_true")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "python"), os.environ.get("PYTHONPATH")]))
    alone = ["--no-torch-compile"] if options.no_torch_compile else []
    found = Found()
    of_models(rows_of([str(MODELS), "--only", options.only, "--rounds", "1", *alone]), found)
    of_training(rows_of([str(MODELS), "--only", options.only, "--train", *alone]), found)
    of_library("modules of torch.nn", rows_of([str(LIBRARY), "modules", "--only", options.modules]), found)
    if os.environ.get("GODYNAMO_PARITYBENCH_DIR"):
        of_library("paritybench", rows_of([str(LIBRARY), "paritybench", "--timeout", "600"]), found)
    of_examples(found)
    text = page(found)
    options.out.write_text(text)
    print(text)
    return int(bool(found.bad))


if __name__ == "__main__":
    sys.exit(main())
