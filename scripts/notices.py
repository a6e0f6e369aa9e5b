"""Writes NOTICES: the licences of third-party code in the wheel's binaries.

    python scripts/notices.py           rewrite the file
    python scripts/notices.py --check   exit with status 1 if it is stale

The file covers the Go modules that ``go list`` reports as linked into our programs, with the licence files in each
module's root, and ECharts, the JavaScript file that internal/page embeds.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "NOTICES"
PROGRAMS = ("./cmd/godynamo", "./cmd/godynamo-ext")
LICENCE_FILES = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|PATENTS)([-._].*)?", re.IGNORECASE)
ECHARTS = ROOT / "internal" / "page" / "echarts" / "echarts.common.min.js"

# module → files of the licence that we choose, if they are not in the module's root
CHOSEN = {"github.com/golang/freetype": ("licenses/ftl.txt",)}

ECHARTS_NOTICE = """Apache ECharts
Copyright 2017-2025 The Apache Software Foundation

This product includes software developed at
The Apache Software Foundation (https://www.apache.org/).

The Apache License, Version 2.0, stands above, under the modules that have it too."""

HEAD = """The binaries of godynamo's wheel contain the following software. Written by scripts/notices.py.
"""


def go(*args: str) -> str:
    """Return the output of a go command in the repository's root."""
    return subprocess.run(["go", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked_modules() -> list[tuple[str, Path]]:
    """Return (name and version, folder) of each linked module."""
    row = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}"
    lines = {line for line in go("list", "-deps", "-f", row, *PROGRAMS).splitlines() if line}
    return [(name, Path(folder)) for name, folder in sorted(line.split("\t") for line in lines)]


def licence(folder: Path, more: tuple[str, ...] = ()) -> str:
    """Return the texts of the licence files in a folder, and of the files ``more`` below it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and LICENCE_FILES.fullmatch(path.name))
    files += [folder / name for name in more]
    if not files:
        raise SystemExit(f"notices: no licence file in {folder.name}")
    return "\n\n".join("\n".join(map(str.rstrip, plain(path).strip("\r\n").splitlines())) for path in files)


def plain(path: Path) -> str:
    """Return the contents of a text file. It is in UTF-8; some of the oldest files are in Latin-1."""
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def echarts() -> tuple[str, str]:
    """Return the name and version of ECharts, and its notices: a text of ours, and the comments in its file."""
    text = ECHARTS.read_text()
    version = re.search(r'\.version="(\d+\.\d+\.\d+)"', text)
    comments = re.findall(r"/\*!?(.*?)\*/", text, re.DOTALL)
    kept = [comment for comment in comments if re.search("copyright|licen[cs]e", comment, re.IGNORECASE)]
    if version is None or not kept or "Apache" not in kept[0]:
        raise SystemExit("notices: the comments of echarts.common.min.js have changed")
    texts = ("\n".join(line.strip(" *") for line in comment.strip("* \n").splitlines()) for comment in kept)
    return f"Apache ECharts {version[1]}", "\n\n".join([ECHARTS_NOTICE, *texts])


def notices() -> str:
    """Return the contents of NOTICES. A licence text that several modules share appears once."""
    owners: dict[str, list[str]] = {licence(Path(go("env", "GOROOT").strip())): ["the Go standard library and runtime"]}
    for name, folder in linked_modules():
        owners.setdefault(licence(folder, CHOSEN.get(name.split()[0], ())), []).append(name)
    name, text = echarts()
    owners[text] = [name]
    parts = [HEAD]
    for text, names in owners.items():
        parts.append("\n".join(["=" * 100, *names, "=" * 100, "", text, ""]))
    return "\n".join(parts)


def main() -> None:
    """Write the file, or report that it is stale."""
    text = notices()
    if "--check" not in sys.argv[1:]:
        OUTPUT.write_text(text)
    elif not OUTPUT.exists() or OUTPUT.read_text() != text:
        raise SystemExit("notices: NOTICES is stale; run `make generate`")


if __name__ == "__main__":
    main()
