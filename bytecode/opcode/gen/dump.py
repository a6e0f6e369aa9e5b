"""Writes CPython's own data about its bytecode as JSON: the input of bytecode/opcode/gen.

Run with the Python to be supported:  python3.11 dump.py py311.json

The data comes from the `opcode` and `dis` modules. Only the kinds of localsplus slots come from CPython's own header
(internal/pycore_code.h). Nothing is typed in by hand. The stack effects are samples for the tests of package bytecode:
it has its own table, and a wrong row of the table differs from a sample.
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
    """Return the opcodes by what their argument refers to, under the words that the generator uses for it."""
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
    """Return CO_FAST_LOCAL, CO_FAST_CELL and CO_FAST_FREE from the installed header."""
    header = Path(sysconfig.get_paths()["include"]) / "internal" / "pycore_code.h"
    found = re.findall(r"#define\s+(CO_FAST_\w+)\s+(0x[0-9a-fA-F]+)", header.read_text())
    return {name: int(value, 16) for name, value in found}


def stack_effects(name: str, op: int) -> list[list[int | None]]:
    """Return rows [arg, effect without a jump, effect with a jump]; arg is None if the opcode takes no argument."""
    rows: list[list[int | None]] = []
    args: list[int | None] = [None] if op < opcode.HAVE_ARGUMENT else list(SAMPLE_ARGS)
    for arg in args:
        try:
            rows.append([arg, dis.stack_effect(op, arg, jump=False), dis.stack_effect(op, arg, jump=True)])
        except ValueError:  # CPython's compiler never emits this opcode (CACHE)
            continue
    return rows


def dump() -> dict[str, Any]:
    """Return everything that the generator reads."""
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
    """Write the dump to the file named on the command line."""
    text = json.dumps(dump(), indent=1)
    # A flat list is one line, since the file is read in reviews.
    text = re.sub(r"\[[^\[\]]*\]", lambda m: re.sub(r"\s+", " ", m.group(0)), text)
    Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
