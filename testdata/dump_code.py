"""Writes code objects to a file that the Go tests of bytecode read (bytecode/dump_test.go has the reader).

    dump_code.py --out FILE [--gz] [--dis] [PATH ...]

Each PATH is a file or a directory of Python sources; the words `stdlib` and `torch` stand for those two libraries. The
sources are compiled, never imported, and every code object in them is written: functions, classes, modules. With --dis
each one carries what `dis` and `co_positions` say of it. The small committed sample
(testdata/code_py3XX.bin.gz, one a Python) is made by `--sample`.

The format is a magic line, the Python version (two numbers) and records of LEB128 numbers and length-prefixed bytes, in the order of `write_code`.
"""

from __future__ import annotations

import argparse
import dis
import gzip
import importlib.util
import io
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAGIC = b"godynamo code dump 2\n"
CO_FAST_LOCAL, CO_FAST_CELL, CO_FAST_FREE = 0x20, 0x40, 0x80  # internal/pycore_code.h

# What the committed sample holds besides sample_constructs.py: library files that differ in style.
SAMPLE_FILES = [
    "contextlib.py", "functools.py", "asyncio/tasks.py", "heapq.py", "enum.py", "textwrap.py",
]  # fmt: skip


def put_int(out: BinaryIO, value: int) -> None:
    """Unsigned LEB128."""
    assert value >= 0, value
    while value > 0x7F:
        out.write(bytes((value & 0x7F | 0x80,)))
        value >>= 7
    out.write(bytes((value,)))


def put_bytes(out: BinaryIO, value: bytes | str) -> None:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    put_int(out, len(data))
    out.write(data)


def put_optional(out: BinaryIO, value: int | None) -> None:
    put_int(out, 0 if value is None else value + 1)


def localsplus(code: types.CodeType) -> list[tuple[str, int]]:
    """Names and kinds of the frame's slots, in CPython's order since 3.11: locals, other cells, free variables."""
    cells = set(code.co_cellvars)
    slots = [(name, CO_FAST_LOCAL | (CO_FAST_CELL if name in cells else 0)) for name in code.co_varnames]
    slots += [(name, CO_FAST_CELL) for name in code.co_cellvars if name not in code.co_varnames]
    slots += [(name, CO_FAST_FREE) for name in code.co_freevars]
    return slots


def write_code(out: BinaryIO, code: types.CodeType, filename: str, with_dis: bool) -> None:
    for data in (
        code.co_name, code.co_qualname, filename,
        code.co_code, code.co_linetable, code.co_exceptiontable,
    ):  # fmt: skip
        put_bytes(out, data)
    for number in (
        code.co_flags, code.co_firstlineno, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_stacksize, len(code.co_consts),
    ):  # fmt: skip
        put_int(out, number)
    put_int(out, len(code.co_names))
    for name in code.co_names:
        put_bytes(out, name)
    slots = localsplus(code)
    put_int(out, len(slots))
    for name, _ in slots:
        put_bytes(out, name)
    out.write(bytes(kind for _, kind in slots))
    rows = list(dis.get_instructions(code)) if with_dis else []
    put_int(out, len(rows))
    for row in rows:
        put_int(out, row.opcode)
        put_bytes(out, row.opname)
        put_optional(out, row.arg)
        put_int(out, row.offset)
        line = row.starts_line
        put_optional(out, getattr(row, "line_number", line) if line is not False else None)  # a bool from 3.13 on
        put_int(out, int(row.is_jump_target))
        assert row.positions is not None
        for place in row.positions:
            put_optional(out, place)


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_objects(const)


def sources(path: str) -> Iterator[tuple[Path, str]]:
    """The source files of one PATH argument, each with the name it gets in the dump."""
    if path == "stdlib":
        root = Path(sysconfig.get_paths()["stdlib"])
    elif path == "torch":
        spec = importlib.util.find_spec("torch")
        assert spec is not None and spec.origin is not None
        root = Path(spec.origin).parent
    else:
        root = Path(path)
    if root.is_file():
        yield root, root.name
        return
    for file in sorted(root.rglob("*.py")):
        if "site-packages" not in file.relative_to(root).parts:
            yield file, str(file.relative_to(root))


def sample_sources() -> Iterator[tuple[Path, str]]:
    here = Path(__file__).parent
    yield here / "sample_constructs.py", "sample_constructs.py"
    for minor, part in ((12, "312"), (14, "314"), (14, "314_future")):
        if sys.version_info >= (3, minor):
            yield here / f"sample_constructs_{part}.py", f"sample_constructs_{part}.py"
    for name in SAMPLE_FILES:
        yield Path(sysconfig.get_paths()["stdlib"]) / name, name


def dump(out: BinaryIO, files: Iterator[tuple[Path, str]], with_dis: bool) -> tuple[int, int, list[str]]:
    """Writes all code of the files; returns the numbers of files and code objects, and the files that do not compile."""
    out.write(MAGIC)
    for number in sys.version_info[:2]:
        put_int(out, number)
    nfiles = ncodes = 0
    failed = []
    for path, name in files:
        try:
            top = compile(path.read_bytes(), name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, UnicodeError, RecursionError) as error:
            failed.append(f"{name}: {type(error).__name__}")
            continue
        nfiles += 1
        for code in code_objects(top):
            write_code(out, code, name, with_dis)
            ncodes += 1
    return nfiles, ncodes, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", required=True)
    parser.add_argument("--gz", action="store_true", help="compress the file")
    parser.add_argument("--dis", action="store_true", help="with what dis says of each code object")
    parser.add_argument("--sample", action="store_true", help="the committed sample")
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # SyntaxWarnings of old sources
    if args.sample:
        files = sample_sources()
    else:
        files = (item for path in args.paths for item in sources(path))
    buffer = io.BytesIO()
    nfiles, ncodes, failed = dump(buffer, files, args.dis or args.sample)
    data = buffer.getvalue()
    if args.gz or args.sample:
        data = gzip.compress(data, 9, mtime=0)
    Path(args.out).write_bytes(data)
    print(f"{nfiles} files, {ncodes} code objects, {len(data)} bytes; not compiled: {len(failed)}")
    for name in failed:
        print("  " + name, file=sys.stderr)


if __name__ == "__main__":
    main()
