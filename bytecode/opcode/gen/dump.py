"""Writes what this CPython itself says about its bytecode as JSON: the input of bytecode/opcode/gen.

Run with the Python to be supported:  python3.11 dump.py py311.json

Everything comes from the `opcode` and `dis` modules and, for the kinds of localsplus slots, from CPython's own header
(internal/pycore_code.h); nothing is typed in by hand. The stack effects are samples for the tests of bytecode, which
has its own table: they let a wrong row there fail.
"""

from __future__ import annotations

import dis
import importlib.util
import json
import opcode
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

# Arguments at which stack effects are sampled: small counts, every flag combination of MAKE_FUNCTION and FORMAT_VALUE,
# and values with a high byte (UNPACK_EX splits its argument at bit 8).
SAMPLE_ARGS = [*range(17), 31, 255, 256, 257, 515, 1000]


def arg_kinds() -> dict[str, list[str]]:
    """The opcodes by what their argument names, under the names the generator knows."""
    groups = {
        "const": opcode.hasconst,
        "name": opcode.hasname,
        "local": opcode.haslocal,
        "free": opcode.hasfree,
        "compare": opcode.hascompare,
        "jump_relative": opcode.hasjrel,
        "jump_absolute": opcode.hasjabs,
    }
    return {kind: sorted(opcode.opname[op] for op in ops) for kind, ops in groups.items()}


def fast_local_kinds() -> dict[str, int]:
    """CO_FAST_LOCAL, CO_FAST_CELL, CO_FAST_FREE from the installed header."""
    header = Path(sysconfig.get_paths()["include"]) / "internal" / "pycore_code.h"
    found = re.findall(r"#define\s+(CO_FAST_\w+)\s+(0x[0-9a-fA-F]+)", header.read_text())
    return {name: int(value, 16) for name, value in found}


def stack_effects(name: str, op: int) -> list[list[int | None]]:
    """Rows [arg, effect when it goes on, effect when it jumps]; arg is None for an opcode that takes none."""
    rows: list[list[int | None]] = []
    args: list[int | None] = [None] if op < opcode.HAVE_ARGUMENT else list(SAMPLE_ARGS)
    for arg in args:
        try:
            rows.append([arg, dis.stack_effect(op, arg, jump=False), dis.stack_effect(op, arg, jump=True)])
        except ValueError:  # an opcode the compiler itself never emits (CACHE)
            continue
    return rows


def dump() -> dict[str, Any]:
    """Everything the generator reads."""
    caches = opcode._inline_cache_entries  # type: ignore[attr-defined]
    return {
        "version": list(sys.version_info[:2]),
        "magic": importlib.util.MAGIC_NUMBER.hex(),
        "have_argument": opcode.HAVE_ARGUMENT,
        "opmap": dict(sorted(opcode.opmap.items(), key=lambda item: item[1])),
        "caches": {name: caches[op] for name, op in opcode.opmap.items() if caches[op]},
        "arg_kinds": arg_kinds(),
        "nb_ops": [list(pair) for pair in opcode._nb_ops],  # type: ignore[attr-defined]
        "cmp_op": list(opcode.cmp_op),
        "code_flags": {name: value for value, name in dis.COMPILER_FLAG_NAMES.items()},
        "fast_local_kinds": fast_local_kinds(),
        "stack_effects": {name: stack_effects(name, op) for name, op in opcode.opmap.items()},
    }


def main() -> None:
    """Writes the dump to the file named on the command line."""
    text = json.dumps(dump(), indent=1)
    # One row per line where a list is flat: the file is read in reviews.
    text = re.sub(r"\[[^\[\]]*\]", lambda m: re.sub(r"\s+", " ", m.group(0)), text)
    Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
