"""make opinfo, modules, paritybench: compares tables of operators and modules under eager and under godynamo.

    library_run.py ops|modules|paritybench [--only PATTERN] [--samples N] [--json FILE] [--jobs N] [--timeout SECONDS]
        [--sizes]

With --sizes the entries of operators are called at other sizes than those they were made for (op_sizes.py).

Units run in watched child processes: a crash or a hang costs one unit. Exits with 1 if any unit is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(ROOT / "python")]

Row = dict[str, Any]
#: seconds until the first unit starts, for importing torch and its tables on a busy machine
START_UP = 180
#: how many times its limit a unit may take on a loaded machine, if it uses the processor less than that
PATIENCE = 8
#: samples per operator and dtype
SAMPLES = 4


def run_units(
    what: str, names: list[str], *, samples: int = SAMPLES, timeout: float = 120, told: Any = None
) -> list[Row]:
    """Return the rows of all units, from as many children as needed; ``told(row)`` is called as each unit ends."""
    rows: list[Row] = []
    left = list(names)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            found = _one_child(what, left, Path(folder), samples, timeout, told or (lambda row: None))
        rows += found
        seen = {row["unit"] for row in found}
        if not seen:
            raise RuntimeError(f"a child died before its first unit, {left[0]}")
        left = [name for name in left if name not in seen]
    return rows


def whole_lines(path: Path) -> list[str]:
    """Return the complete lines of a file to which another process is writing."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _one_child(what: str, names: list[str], folder: Path, samples: int, timeout: float, told: Any) -> list[Row]:
    results, units, log = folder / "results.jsonl", folder / "units.json", folder / "log.txt"
    units.write_text(json.dumps(names))
    command = [sys.executable, str(HERE / "library_child.py"), what, str(results), str(units), str(samples)]
    extra = [p for p in [os.environ.get("PYTHONPATH")] if p]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), str(ROOT / "python"), *extra])}
    with log.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=folder, start_new_session=True)
        rows: list[Row] = []
        current, hung, since, used = "", False, time.monotonic(), 0.0
        read = 0
        while True:
            over = child.poll() is not None
            lines = whole_lines(results)
            for line in lines[read:]:
                row = json.loads(line)
                current = row.get("start", "")
                if "unit" in row:
                    rows.append(row)
                    told(row)
            if len(lines) > read:
                read, since, used = len(lines), time.monotonic(), cpu_seconds(child.pid)
            if over:
                break
            # A loaded machine gives a child little time; one that waits for nothing at all uses none.
            limit = timeout if read else max(timeout, START_UP)
            if time.monotonic() - since > limit and (
                cpu_seconds(child.pid) - used > limit or time.monotonic() - since > PATIENCE * limit
            ):
                hung = True
                os.kill(child.pid, signal.SIGABRT)  # faulthandler shows where it hung
                time.sleep(1)
                os.killpg(child.pid, signal.SIGKILL)
            time.sleep(0.2)
    if current:
        how = "hung" if hung else f"crashed with {child.returncode}"
        row = {
            "unit": current,
            "cases": 0,
            "right": 0,
            "ran": 0,
            "unvalued": 0,
            "counted": 0,
            "one": 0,
            "again": 0,
            "breaks": {},
            "split": [],
        }
        row |= {"wrong": [f"{how}\n{log.read_text(errors='replace')[-4000:]}"], "error": "", "seconds": 0.0}
        rows.append(row)
        told(row)
    elif child.returncode or not rows:
        raise RuntimeError(f"a child died outside of its units:\n{log.read_text(errors='replace')[-4000:]}")
    return rows


def summary(rows: list[Row], what: str) -> str:
    """Return the table: totals, differences, and graph breaks with their reasons."""
    ran = [r for r in rows if not r["error"]]
    right = [r for r in ran if not r["wrong"]]
    counted = [r for r in ran if r["counted"]]
    one = [r for r in counted if r["one"] == r["counted"]]
    out = []
    for r in rows:
        out += [f"WRONG {r['unit']}: {text}" for text in r["wrong"][:3]]
        out += [f"NO SAMPLES {r['unit']}: {r['error']}"] if r["error"] else []
    by_reason: dict[str, list[str]] = {}
    for r in counted:
        if r["one"] < r["counted"]:
            reason = max(r["breaks"], key=r["breaks"].get) if r["breaks"] else "the eager call alone ran"
            by_reason.setdefault(reason, []).append(f"{r['unit']} ({r['one']}/{r['counted']})")
    for reason, units in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        out.append(f"SPLIT {len(units)}: {reason}: {', '.join(units)}")
    cases = sum(r["cases"] for r in rows)
    out.append(f"{what}: {len(right)} of {len(ran)} right, {len(one)} of {len(counted)} in one graph")
    out.append(
        f"calls: {sum(r['right'] for r in rows)} of {cases} right, {sum(r['one'] for r in rows)} of "
        f"{sum(r['counted'] for r in rows)} in one graph, {sum(r['again'] for r in rows)} of them translated again "
        f"since the first call changed what guards check; {len(rows) - len(ran)} {what} without samples"
    )
    loose = [f"{r['unit']} ({r['unvalued']})" for r in rows if r["unvalued"]]
    count = sum(r["unvalued"] for r in rows)
    out.append(f"compared without their values, which eager does not repeat or set: {count} calls: {', '.join(loose)}")
    return "\n".join(out)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["ops", "modules", "paritybench"])
    parser.add_argument("--only", default="", help="units whose name matches one of these patterns")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="for one unit")
    parser.add_argument("--sizes", action="store_true", help="ops: call an entry at the sizes of other samples")
    args = parser.parse_args()
    from library_child import tables

    what = "sizes" if args.sizes else args.what
    patterns = args.only.split()
    names = [n for n in tables(what).units() if not patterns or any(fnmatch.fnmatch(n, p) for p in patterns)]
    done: Counter[str] = Counter()

    def told(row: Row) -> None:
        done["units"] += 1
        if row["wrong"] or done["units"] % 50 == 0:
            text = row["wrong"][0][:300] if row["wrong"] else ""
            print(f"[{done['units']}/{len(names)}] {row['unit']} {text}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        parts = [names[i :: args.jobs] for i in range(args.jobs)]
        runs = pool.map(
            lambda part: run_units(what, part, samples=args.samples, timeout=args.timeout, told=told), parts
        )
        found = {row["unit"]: row for rows in runs for row in rows}
    rows = [found[name] for name in names]
    print(tables(what).summary(rows) if args.sizes else summary(rows, what))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(rows, indent=1))
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
