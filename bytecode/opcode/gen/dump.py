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

# An opcode of a code object is one byte. From 3.12 on the module also lists the compiler's own, from 256 on.
NUMBERS = 256


def real_opcodes() -> dict[str, int]:
    """Return the opcodes of co_code: none of the compiler's own, none that sys.monitoring or the JIT puts there."""
    unseen = ("INSTRUMENTED_", "ENTER_EXECUTOR")
    return {name: op for name, op in opcode.opmap.items() if op < NUMBERS and not name.startswith(unseen)}


def arg_kinds() -> dict[str, list[str]]:
    """Return the opcodes by what their argument refers to, under the words that the generator uses for it."""
    real = real_opcodes()
    cells = [*opcode.hasfree, opcode.opmap["LOAD_DEREF"]]  # 3.14 counts LOAD_DEREF among the locals
    groups = {
        "const": opcode.hasconst,
        "name": opcode.hasname,
        "local": [op for op in opcode.haslocal if op not in cells],
        "free": cells,
        "compare": opcode.hascompare,
        "jump_relative": opcode.hasjrel,
        "jump_absolute": opcode.hasjabs,
    }
    return {kind: sorted(name for name in real if real[name] in ops) for kind, ops in groups.items()}


def compare_args() -> list[int]:
    """Return the arguments of COMPARE_OP that the compiler writes, in the order of opcode.cmp_op."""
    found = []
    for symbol in opcode.cmp_op:
        code = compile(f"a {symbol} b", "", "eval")
        found += [row.arg for row in dis.get_instructions(code) if row.opname == "COMPARE_OP" and row.arg is not None]
    return found


def instructions(source: str) -> list[dis.Instruction]:
    """Return the instructions of a program."""
    return list(dis.get_instructions(compile(source, "", "exec")))


def compare_bool() -> int:
    """Return the bit of COMPARE_OP's argument that makes the result a bool, 0 if there is none."""
    args = [row.arg or 0 for row in instructions("if a < b: pass") if row.opname == "COMPARE_OP"]
    return args[0] ^ compare_args()[0]


def null_above() -> bool:
    """Return whether the NULL of a call without self is above the callable, and not below it."""
    rows = instructions("f()")
    return [row.opname for row in rows].index("PUSH_NULL") > [row.argval for row in rows].index("f")


def loop_end() -> list[str]:
    """Return the opcodes that a FOR_ITER points at and that end the loop: none in 3.11."""
    rows = instructions("for x in y: pass\nz()")
    end = next(row.argval for row in rows if row.opname == "FOR_ITER")
    names = [row.opname for row in rows if row.offset >= end]
    return names[: next(i for i, name in enumerate(names) if name in ("PUSH_NULL", "LOAD_NAME"))]


def fast_local_kinds() -> dict[str, int]:
    """Return CO_FAST_LOCAL, CO_FAST_CELL and CO_FAST_FREE from the installed header."""
    header = Path(sysconfig.get_paths()["include"]) / "internal" / "pycore_code.h"
    found = re.findall(r"#define\s+(CO_FAST_[A-Z]+)\s+\(?(0x[0-9a-fA-F]+)", header.read_text())
    return {name: int(value, 16) for name, value in found}


def have_argument() -> int:
    """Return the lowest opcode that takes an argument. 3.13's opcode.HAVE_ARGUMENT takes none."""
    taking = set(getattr(opcode, "hasarg", [])) & set(real_opcodes().values())
    return min(taking, default=opcode.HAVE_ARGUMENT)


def caches_of(opmap: dict[str, int]) -> dict[str, int]:
    """Return the number of inline cache entries of each opcode that has some. 3.13 lists them by name."""
    entries = opcode._inline_cache_entries  # type: ignore[attr-defined]
    found = {name: entries.get(name, 0) if isinstance(entries, dict) else entries[op] for name, op in opmap.items()}
    return {name: count for name, count in found.items() if count}


def stack_effects(name: str, op: int) -> list[list[int | None]]:
    """Return rows [arg, effect without a jump, effect with a jump]; arg is None if the opcode takes no argument."""
    rows: list[list[int | None]] = []
    args: list[int | None] = [None] if op < have_argument() else list(SAMPLE_ARGS)
    for arg in args:
        try:
            rows.append([arg, dis.stack_effect(op, arg, jump=False), dis.stack_effect(op, arg, jump=True)])
        except ValueError:  # CPython's compiler never emits this opcode (CACHE)
            continue
    return rows


def least_stack() -> int:
    """Return the stack size of a function that pushes nothing: 1 since 3.13, before that 0."""

    def raises() -> None:
        raise

    return raises.__code__.co_stacksize


def clears_backward() -> bool:
    """Return whether a frame that ends releases its last variable first."""
    ended = []

    class Ends:
        def __init__(self, name: str) -> None:
            self.name = name

        def __del__(self) -> None:
            ended.append(self.name)

    def frame() -> None:
        first, last = Ends("first"), Ends("last")  # noqa: F841

    frame()
    return ended == ["last", "first"]


def merges_lines() -> bool:
    """Return whether neighbours with the same position share entries of the line table, as those of a call do."""
    code = compile("f()", "", "eval")
    units = [(byte & 7) + 1 for byte in code.co_linetable if byte & 0x80]
    opmap = real_opcodes()
    caches = caches_of(opmap)
    names = {op: name for name, op in opmap.items()}
    widths = [1 + caches.get(names[op], 0) for op in code.co_code[::2]]
    return max(units) > max(widths)


def line_gaps() -> bool:
    """Return whether dis begins a line again after instructions without a line."""
    code = compile("with a:\n  b", "", "exec")
    return any(line is None for _, line in dis.findlinestarts(code))


def handler_before() -> bool:
    """Return whether the handler of a call's exception is the one for the code unit before the call."""

    def caught(callee: Any) -> bool:
        try:
            callee()
        except ValueError:
            return True
        return False

    def callee() -> None:
        raise ValueError

    call = next(row.offset // 2 for row in dis.get_instructions(caught) if row.opname == "CALL")
    start, length, *rest = caught.__code__.co_exceptiontable
    length -= call - (start & 63)
    caught.__code__ = caught.__code__.replace(co_exceptiontable=bytes([128 | call, length, *rest]))
    try:
        return not caught(callee)
    except ValueError:
        return True


def dump() -> dict[str, Any]:
    """Return everything that the generator reads."""
    opmap = real_opcodes()
    return {
        "version": list(sys.version_info[:2]),
        "magic": importlib.util.MAGIC_NUMBER.hex(),
        "have_argument": have_argument(),
        "opmap": dict(sorted(opmap.items(), key=lambda item: item[1])),
        "caches": caches_of(opmap),
        "arg_kinds": arg_kinds(),
        "nb_ops": [list(pair) for pair in opcode._nb_ops],  # type: ignore[attr-defined]
        "cmp_op": list(opcode.cmp_op),
        "compare_args": compare_args(),
        "compare_bool": compare_bool(),
        "null_above": null_above(),
        "loop_end": loop_end(),
        "least_stack": least_stack(),
        "clears_backward": clears_backward(),
        "merges_lines": merges_lines(),
        "line_gaps": line_gaps(),
        "handler_before": handler_before(),
        "intrinsics_1": list(getattr(opcode, "_intrinsic_1_descs", [])),
        "intrinsics_2": list(getattr(opcode, "_intrinsic_2_descs", [])),
        "common_constants": [value.__name__ for value in getattr(opcode, "_common_constants", [])],
        "special_methods": list(getattr(opcode, "_special_method_names", [])),
        "code_flags": {name: value for value, name in dis.COMPILER_FLAG_NAMES.items()},
        "fast_local_kinds": fast_local_kinds(),
        "stack_effects": {name: stack_effects(name, op) for name, op in opmap.items()},
    }


def main() -> None:
    """Write the dump to the file named on the command line."""
    text = json.dumps(dump(), indent=1)
    # A flat list is one line, since the file is read in reviews.
    text = re.sub(r"\[[^\[\]]*\]", lambda m: re.sub(r"\s+", " ", m.group(0)), text)
    Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
