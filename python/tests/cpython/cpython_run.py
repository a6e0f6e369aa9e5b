"""make cpython: runs CPython's own test files, unmodified, plainly and with every Python function translated.

    cpython_run.py [--json FILE] [--only PATTERN] [--timeout SECONDS] [--jobs N] [FILE ...]

The runs are compared test by test. Exits with 1 if a test passes plainly but not translated and is not listed in
expected_differences.toml, if a listed test passes, if godynamo had an internal error, or if no file could be loaded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cpython_children import HERE, ROOT, FileRun, run_file
from cpython_compare import Comparison, Listed, compare, expected_differences

FILES = (
    """
test_generators test_contextlib test_exceptions test_except_star test_scope test_unpack test_unpack_ex test_dict
test_list
test_set test_tuple test_descr test_class test_with test_grammar test_fstring test_coroutines test_asyncgen
test_yield_from
test_sys_settrace test_gc test_weakref test_super test_patma test_named_expressions test_extcall test_call test_raise
test_traceback test_frame test_code test_dis test_compile test_functools test_builtin test_types test_enum
test_collections
test_copy test_typing test_sys test_genexps test_listcomps test_augassign test_int test_bool test_float test_slice
test_range
test_iter test_itertools test_operator test_keywordonlyarg test_positional_only_arg test_property test_dataclasses
""".split()
    + ["test_monitoring"] * (sys.version_info >= (3, 12))
)


def plain_run(name: str, timeout: float) -> FileRun:
    """Return the plain run of a whole file. One that ran to its end is kept in build/, for this Python and this
    cpython_child.py."""
    key = hashlib.sha256((HERE / "cpython_child.py").read_bytes() + platform.python_version().encode()).hexdigest()[:12]
    kept = ROOT / "build" / "cpython" / f"{name}-{key}.json"
    if kept.exists():
        data = json.loads(kept.read_text())
        data["tests"] = {test: tuple(outcome) for test, outcome in data["tests"].items()}
        return FileRun(**data)
    run = run_file(name, godynamo=False, timeout=timeout)
    if run.died:
        return run
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(asdict(run)))
    temporary.replace(kept)
    return run


def one(name: str, listed: dict[str, Listed], timeout: float, only: str = "") -> Comparison:
    """Run a file in both modes and compare."""
    plain = run_file(name, godynamo=False, timeout=timeout, only=only) if only else plain_run(name, timeout)
    translated = run_file(name, godynamo=True, timeout=timeout, only=only)
    c = compare(name, plain, translated, listed, whole=not only)
    if c.differ:  # a test may depend on time: test_int skips some on a fast machine
        plain = run_file(name, godynamo=False, timeout=timeout, only=only)
        again = compare(name, plain, run_file(name, godynamo=True, timeout=timeout, only=only), listed, whole=not only)
        unsteady = c.differ.keys() - again.differ.keys()
        c.differ = {test: how for test, how in c.differ.items() if test not in unsteady}
        for test in sorted(unsteady):
            print(f"{test}: differs in one of two runs only", file=sys.stderr, flush=True)
    faults = f"{len(c.differ)} differ, {len(c.stale)} stale, {len(translated.internal)} internal errors"
    verdict = f"cannot be loaded here: {c.unloadable}" if c.unloadable else "ok" if c.ok else faults
    print(f"{name}: {verdict} ({translated.seconds:.0f} s)", file=sys.stderr, flush=True)
    return c


def _counts(c: Comparison) -> list[str]:
    passed = sum(o == "passed" for o, _ in c.plain.tests.values())
    kept = sum(
        c.translated.tests.get(t, ("", ""))[0] == "passed" for t, (o, _) in c.plain.tests.items() if o == "passed"
    )
    t = c.translated
    numbers = [len(c.plain.tests), passed, kept, len(c.expected), len(c.differ), len(c.stale), len(t.internal)]
    return [c.file, *map(str, numbers), str(t.translated), str(t.served), f"{t.seconds:.1f}"]


def table(comparisons: list[Comparison]) -> str:
    """Return a table with one row per file, and the sums in the last row."""
    head = "file tests pass kept expected differ stale internal translated served seconds".split()
    rows = [_counts(c) for c in comparisons]
    sums = [str(round(sum(float(r[i]) for r in rows))) for i in range(1, len(head))]
    everything = [head, *rows, [f"{len(rows)} files", *sums]]
    widths = [max(len(r[i]) for r in everything) for i in range(len(head))]
    return "\n".join(
        "  ".join([r[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(r[1:], widths[1:]))]) for r in everything
    )


def details(c: Comparison, lines: int) -> str:
    """Return the faults of one file."""
    out = []
    missing = [test for test, (outcome, _) in c.differ.items() if outcome == "not run"]
    out += [f"== {c.file}: {len(missing)} tests were not run: {', '.join(missing)[:300]}"] if missing else []
    for test, (outcome, text) in c.differ.items():
        if outcome == "not run":
            continue
        out += [f"== {test}: {outcome}", *text.rstrip().splitlines()[-lines:]]
    out += [f"== {test}: listed in expected_differences.toml, but it passes or is not there" for test in c.stale]
    out += [f"== internal error in {text}" for text in dict.fromkeys(c.translated.internal)]
    for which, run in (("plain", c.plain), ("translated", c.translated)):
        out += [f"== {c.file}, {which}: given up: {run.died}"] if run.died else []
    return "\n".join(out)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="default: the language files")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="tests whose id has this in it (a pattern)")
    parser.add_argument("--timeout", type=float, default=120, help="for one test")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--lines", type=int, default=12, help="of each failure's text to show")
    args = parser.parse_args()
    listed = expected_differences()
    with ThreadPoolExecutor(args.jobs) as pool:
        done = list(
            pool.map(lambda name: one(name, listed.get(name, {}), args.timeout, args.only), args.files or FILES)
        )
    run = [c for c in done if not c.unloadable]
    for c in run:
        if not c.ok:
            print(details(c, args.lines))
    print(table(done))
    if args.json:
        args.json.write_text(json.dumps([{**asdict(c), "ok": c.ok} for c in done], indent=1))
    for c in done:
        if c.unloadable:
            print(f"not run: {c.file}, which this Python cannot load without godynamo either: {c.unloadable}")
    good = sum(c.ok for c in run)
    print(f"{good} of {len(run)} files as in CPython")
    return int(good < len(run) or not run)


if __name__ == "__main__":
    sys.exit(main())
