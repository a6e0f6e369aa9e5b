"""``godynamo dis``: shows a function's instructions beside those of its translations, with guards and graphs."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
from collections.abc import Callable
from typing import Any

import godynamo
from godynamo._called import runtime
from godynamo._explain import guard_words
from godynamo._explain.census import HIDDEN, USER, Census
from godynamo._explain.explain import asked

from . import listing
from .calls import at_call
from .problem import Problem, need_core
from .run import backend_named
from .script import Target


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="godynamo dis", add_help=False)
    parser.add_argument("--module", action="store_true")
    parser.add_argument("--call", type=int, default=1)
    parser.add_argument("--args")
    parser.add_argument("--backend")
    parser.add_argument("--json")
    parser.add_argument("target")
    parser.add_argument("arguments", nargs="*")
    return parser


def split_target(text: str) -> tuple[str, str]:
    """Split SCRIPT:FUNCTION in two. FUNCTION may include a module (SCRIPT:package.module:function)."""
    name, colon, function = text.partition(":")
    if not colon or not name or not function:
        raise Problem(f"{text} names no function: SCRIPT:FUNCTION, such as train.py:step or train.py:Model.forward")
    return name, function


def main(arguments: list[str]) -> int:
    """See ``godynamo dis --help``."""
    options = _parser().parse_args(arguments)
    need_core()
    godynamo.config.cache_dir = ""  # the output shows what the translator does, whatever is stored
    backend = backend_named(options.backend) if options.backend else None
    name, function = split_target(options.target)
    found: list[dict[str, Any]] = []

    def act(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found.extend(translations(call, args, kwargs, backend))

    target = Target(name, tuple(options.arguments), options.module)
    with contextlib.ExitStack() as stack:
        if options.json == "-":  # the program's output must not mix with the JSON
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        code = at_call(target, function, act, options.call, options.args)
    if code:
        return code
    if options.json:
        text = json.dumps({"version": 1, "function": function, "translations": found}, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(text)
        return 0
    print("\n".join(text_of(found, function, shutil.get_terminal_size((100, 24)).columns)))
    return 0


def translations(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any
) -> list[dict[str, Any]]:
    """Call a function with new translations; describe each translation of it and its resume functions, in order.

    backend: None for the backend with which the function was optimized, or "eager" if it was not optimized. Exceptions
    of the function propagate.
    """
    records: list[dict[str, Any]] = []
    lists = runtime.recorders.lists
    lists.append(records)
    try:
        options = asked(function) if backend is None else {**asked(function), "backend": backend}
        godynamo.optimize(**options)(function)(*args, **kwargs)
    finally:
        del lists[next(i for i, r in enumerate(lists) if r is records)]
    return [_translation(record) for record in records]


def _translation(record: dict[str, Any]) -> dict[str, Any]:
    info = record["info"] or {}
    census = Census()  # only classifies code: code of a library is named, but not listed
    code = runtime.users_code(record)
    account = info.get("account")
    units: set[int] | None = None
    inlined = []
    if account is not None:
        units = set()
        for of, places in account["translated"]:
            if of is code:
                units.update(places)
            else:
                inlined.append((of, set(places)))
        if account["native"] and account["native"][0] is code:
            units.add(account["native"][1])
    made = record["function"]
    return {
        "function": code.co_qualname,
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "status": record["status"],
        "reason": record["reason"],
        "graph": info.get("graph") or "",
        "guards": info.get("guards") or "",
        "breaks": [
            {"code": row[0], "reason": row[1], "hint": row[2], "stack": [list(level) for level in row[3]]}
            for row in (*info.get("breaks", ()), *record["breaks"])
        ],
        "original": _plain(listing.blocks(code, units=units)),
        "transformed": _plain(listing.blocks(made.__code__, made)) if made is not None else [],
        "inlined": [
            {
                "function": of.co_qualname,
                "file": of.co_filename,
                "line": of.co_firstlineno,
                "original": _plain(listing.blocks(of, units=places)) if census.kind(of) == USER else [],
            }
            for of, places in inlined
            if census.kind(of) != HIDDEN
        ],
    }


def _plain(blocks: list[listing.Block]) -> list[dict[str, Any]]:
    return [
        {
            "line": line,
            "instructions": [
                {"offset": r.offset, "opname": r.opname, "argument": r.argument, "target": r.target} for r in rows
            ],
        }
        for line, rows in blocks
    ]


def _rows(blocks: list[dict[str, Any]]) -> list[listing.Block]:
    return [(block["line"], [listing.Row(**row) for row in block["instructions"]]) for block in blocks]


def text_of(found: list[dict[str, Any]], function: str, width: int = 100) -> list[str]:
    """Return the translations as text; width: columns of the terminal."""
    if not found:
        return [
            f"{function}: nothing was translated: GODYNAMO_DISABLE, a debugger or a limit keeps it in CPython "
            "(godynamo doctor)"
        ]
    lines: list[str] = []
    column = max(30, min(60, (width - 3) // 2))
    for i, t in enumerate(found, 1):
        lines += [f"{'' if i == 1 else chr(10)}-- {i} of {len(found)}: {t['function']} ({t['file']}:{t['line']})"]
        if t["status"] != "ok":
            lines.append(f"   runs in CPython: {t['reason']}")
        if t["transformed"]:
            lines.append(f"{'CPython':{column}} | translated")
            lines += listing.side_by_side(_rows(t["original"]), _rows(t["transformed"]), t["file"], column)
        for inner in t["inlined"]:
            lines.append(f"   inlined: {inner['function']} ({inner['file']}:{inner['line']})")
            for line, rows in _rows(inner["original"]):
                lines.append(f"{line or '':>5}  {runtime.source_line(inner['file'], line)}".rstrip())
                lines += [str(row) for row in rows]
        for b in t["breaks"]:
            stack = tuple(tuple(level) for level in b["stack"])
            lines.append("break:")
            lines += ["  " + s for s in runtime.break_text((b["code"], b["reason"], b["hint"], stack)).splitlines()]
        if t["guards"]:
            lines += ["guards:", *("  " + part for part in guard_words.parts(t["guards"]))]
        if t["graph"]:
            lines += ["graph:", *("  " + s for s in t["graph"].splitlines())]
    return lines
