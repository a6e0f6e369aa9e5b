"""Goldens of the translator: each text file (txtar) has a program and its translation.

A file starts with a sentence that says what it shows. Then come sections ``-- name --``: ``src.py`` has a function
``f`` and ``args()``, which returns its arguments; `make golden` writes the others, and test_goldens.py compares them.
The sections are those of Python 3.11. Where another version has another text, ``-- name 3.12 --`` follows, which
`make golden PYTHON=3.12` writes; only the files in opcodes/ have the code of each version.

    python golden_files.py --print       prints the texts of all files as JSON
    python golden_files.py [FILE ...]    writes the sections of these files, or of all
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import torch

import godynamo
from godynamo._explain import guard_words
from godynamo._tools.dis import translations
from harness.training import facts, quiet

FOLDER = Path(__file__).parent
NAME = "golden_program"  # module name of a program
BASE = "3.11"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def parsed(text: str) -> dict[str, str]:
    """Return the sections by name, in order; "" is the comment before them."""
    parts = re.split(r"^-- (.+) --\n", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def written(sections: dict[str, str]) -> str:
    """Return the text of a file."""
    return "".join(f"-- {name} --\n{body}" if name else body for name, body in sections.items())


def generated(path: Path) -> str:
    """Return the text that a file should have; its program runs eagerly and translated, with equal results."""
    sections = parsed(path.read_text())
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        made = _made(path, sections["src.py"], printed)
    if VERSION == BASE:
        others = {n: b for n, b in sections.items() if _of_another_version(n) and b != made.get(n.split()[0])}
        return written({"": sections[""], "src.py": sections["src.py"], **made, **others})
    if path.parent.name != "opcodes":
        made.pop(f"code {VERSION}", None)
    for name in ("graph", "guards", f"code {VERSION}", "breaks"):
        body = made.get(name, "")
        key = name if VERSION in name else f"{name} {VERSION}"
        if body != ("" if key == name else sections.get(name, "")):
            sections[key] = body  # where it was, if it was there
        else:
            sections.pop(key, None)
    return written(sections)


def section(sections: dict[str, str], name: str) -> str:
    """Return a section of a file as it is for this version of Python, "" if it has none."""
    return sections.get(f"{name} {VERSION}", sections.get(name, ""))


def _of_another_version(name: str) -> bool:
    return bool(re.search(r" 3\.\d+$", name)) and not name.endswith(VERSION)


def _made(path: Path, source: str, printed: io.StringIO) -> dict[str, str]:
    """Return the sections with the translation of a program."""
    expected = _outcome(*_program(source)) + printed.getvalue()
    printed.seek(printed.truncate(0))
    f, args = _program(source)
    found_now = _outcome(godynamo.optimize(f), args) + printed.getvalue()
    assert found_now == expected, f"{path}: another result or output than CPython's"
    found = translations(*_program(source), {}, "eager")
    made: dict[str, list[str]] = {"graph": [], "guards": [], f"code {VERSION}": [], "breaks": []}
    for t in found:
        head = f"# {t['function']}, line {t['line']}"
        if t["status"] != "ok":
            made["breaks"].append(f"{head}: {t['reason']}")
        made["breaks"] += [f"{b['code']} line {b['stack'][-1][2]}: {b['reason']}" for b in t["breaks"]]
        if t["graph"]:
            made["graph"] += [head, *t["graph"].splitlines()]
        if t["guards"]:
            made["guards"] += [head, *_ordered(guard_words.parts(t["guards"]))]
        if t["transformed"]:
            made[f"code {VERSION}"] += [head, *_instructions(t["transformed"])]
    made["breaks"] += _left_frames(source, {stable(b["reason"]) for t in found for b in t["breaks"]})
    return {name: stable("\n".join(lines) + "\n") for name, lines in made.items() if lines}


def _left_frames(source: str, seen: set[str]) -> list[str]:
    """Return what explain reports besides breaks: the program's frames that CPython runs as a whole, with their
    error codes."""
    torch.manual_seed(0)
    f, args = _program(source)
    try:
        rows = godynamo.explain(f)(*args).kept_out
    except Exception:  # raised by the program, so there is no report
        return []
    lines = {
        f"{r.code} line {r.line}: {r.reason} ({r.function})"
        for r in rows
        if r.code and r.file == "src.py" and stable(r.reason) not in seen
    }
    return sorted(lines, key=lambda line: (int(line.split()[2][:-1]), line))


def _program(source: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a new function and new arguments: a program may count its calls."""
    module: Any = types.ModuleType(NAME)
    sys.modules[module.__name__] = module  # dataclasses look up the module here
    exec(compile(source, "src.py", "exec"), module.__dict__)
    return module.f, module.args()


def _outcome(f: Any, args: tuple[Any, ...]) -> str:
    torch.manual_seed(0)
    try:
        return stable(repr(facts([f(*args), args])))
    except Exception as e:
        return stable(repr((type(e), str(e), facts(args))))


def _ordered(guards: list[str]) -> list[str]:
    """Return guards in order, but move those below a class to the end: their order depends on the class's address."""
    below = [guard for guard in guards if "___object(" in guard]
    return [guard for guard in guards if guard not in below] + sorted(below, key=stable)


def _instructions(blocks: list[dict[str, Any]]) -> list[str]:
    targets = {row["target"] for block in blocks for row in block["instructions"]} - {None}
    lines = []
    for block in blocks:
        for row in block["instructions"]:
            label = ">>" if row["offset"] in targets else "  "
            lines.append(f"{label} {row['offset']:4} {row['opname']:28} {row['argument']}".rstrip())
    return lines


def stable(text: str) -> str:
    """Return the text without values that differ between processes: addresses, versions of classes and dicts."""
    text = re.sub(r"[.0]*x[0-9a-f]{6,}", "...", text)
    return re.sub(r"(?<!\.)\b\d{6,}\b", "ID", text)


def main(paths: list[str]) -> None:
    """Rewrite the files; with --print, print their texts as JSON, by path relative to the folder."""
    torch.set_num_threads(1)
    quiet()
    printed = paths == ["--print"]
    texts = {path: generated(path) for path in map(Path, [] if printed else paths)}
    texts = texts or {path: generated(path) for path in sorted(FOLDER.glob("*/*.txtar"))}
    if printed:
        print(json.dumps({str(path.relative_to(FOLDER)): text for path, text in texts.items()}))
        return
    for path, text in texts.items():
        if text != path.read_text():
            path.write_text(text)
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
