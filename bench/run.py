"""`make bench`: measures eager mode, torch.compile and godynamo side by side.

Writes bench/results/latest.json and prints a table. Each group runs in a separate process; progress goes to stderr.
Exits with 1 if a group fails or a result differs from eager mode's result. A missed goal is shown but is no failure.

    bench/run.py [--quick] [--only GROUP ...] [--workload NAME] [--output FILE] [--readme] [--show]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

import report
from godynamo._tools.bench import machine as machine_of

ROOT = Path(__file__).resolve().parent.parent
LATEST = ROOT / "bench" / "results" / "latest.json"
README = ROOT / "README.md"
GROUPS = ("calls", "guards", "capture", "layers", "imports", "unrelated")
ROUNDS, QUICK_ROUNDS = 150, 6
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def machine() -> dict[str, Any]:
    """Return the environment that the figures depend on."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {**machine_of.machine(), "commit": commit}


def run_group(name: str, rounds: int, workload: str | None) -> dict[str, Any]:
    """Run one group in a separate process and return its result. Raises RuntimeError if that fails."""
    command = [sys.executable, "-m", "godynamo._tools.bench.groups", name, str(rounds)]
    if workload and name == "calls":
        command.append(workload)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT / "python")}
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if run.returncode != 0 or not run.stdout.strip():
        raise RuntimeError(f"exit code {run.returncode}")
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def errors_of(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the failures inside the groups as {"group/entry" or "group/entry/side": text}."""
    found: dict[str, str] = {}
    for group in GROUPS:
        for name, entry in (result.get(group) or {}).items():
            if not isinstance(entry, Mapping):
                continue
            if "error" in entry:
                found[f"{group}/{name}"] = str(entry["error"])
            for side, taken in entry.items():
                if isinstance(taken, Mapping) and "error" in taken:
                    found[f"{group}/{name}/{side}"] = str(taken["error"])
    return found


def insert_table(text: str, table: str) -> str:
    """Return the README's text with the table between its two markers. Raises ValueError if a marker is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it runs, not how fast")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="these groups")
    parser.add_argument("--workload", help="of the group calls: this one")
    parser.add_argument("--output", type=Path, help="result file; a partial run without it only prints")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    parser.add_argument("--show", action="store_true", help="run nothing: print the table of the last result")
    options = parser.parse_args(arguments)
    if options.show:
        result = json.loads((options.output or LATEST).read_text())
    else:
        rounds = QUICK_ROUNDS if options.quick else ROUNDS
        result = {"machine": machine(), "rounds": rounds}
        errors: dict[str, str] = {}
        for group in options.only:
            print(f"bench: group {group}", file=sys.stderr, flush=True)
            try:
                result[group] = run_group(group, rounds, options.workload)
            except RuntimeError as error:
                errors[group] = str(error)
        errors.update(errors_of(result))
        result["errors"] = errors
        complete = not options.quick and not options.workload and set(options.only) == set(GROUPS)
        target = options.output or (LATEST if complete else None)
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(json.dumps(result, indent=1) + "\n")
            print(f"bench: wrote {target}", file=sys.stderr)
    table = report.markdown(result)
    print(table)
    if options.readme:
        README.write_text(insert_table(README.read_text(), table))
    return int(bool(result.get("errors")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
