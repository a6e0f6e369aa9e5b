"""Each golden file is its program's current translation: `make golden` writes them; review the diff."""

import dis
import json
import os
import re
import subprocess
import sys
import types

import pytest

from godynamo._explain.break_codes_gen import BREAK_CODES
from golden_files import FOLDER, parsed, section, written

FILES = sorted(FOLDER.glob("*/*.txtar"))
NO_CODE = {
    "GD0003": "GODYNAMO_BISECT is read when the process starts",
}
NO_OPCODE = {
    "CACHE": "dis hides the caches of an instruction",
    "IMPORT_STAR": "only a module has it",
    "PRINT_EXPR": "only an interactive session has it",
    "INTERPRETER_EXIT": "only the interpreter's own code has it",
    "EXIT_INIT_CHECK": "only the interpreter's own code has it",
    "ENTER_EXECUTOR": "only CPython's JIT writes it",
    "LOAD_FROM_DICT_OR_GLOBALS": "only a type parameter of a class has it, which 3.11 cannot compile",
    "RESERVED": "no code has it",
}
if sys.version_info >= (3, 14):
    del NO_OPCODE["LOAD_FROM_DICT_OR_GLOBALS"]  # the annotations of a class have it
    NO_OPCODE |= {
        "BUILD_INTERPOLATION": "only a template string has it, which 3.13 cannot compile",
        "BUILD_TEMPLATE": "only a template string has it, which 3.13 cannot compile",
        "SETUP_ANNOTATIONS": "only a module has it",
    }
#: an opcode of co_code is one byte; the compiler's own have larger numbers
NUMBERS = 256


@pytest.fixture(scope="session")
def generated():
    """Return the texts of all files, made in a new process: guards about finalizers depend on what else exists."""
    made = subprocess.run(
        [sys.executable, FOLDER / "golden_files.py", "--print"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert made.returncode == 0, made.stderr[-4000:]
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_the_translation_is_the_golden(path, generated):
    assert generated[str(path.relative_to(FOLDER))] == path.read_text(), "make golden writes the present translation"


def test_files_are_read_as_they_are_written():
    text = FILES[0].read_text()
    assert written(parsed(text)) == text
    assert list(parsed(text))[:3] == ["", "src.py", "graph"]


def test_each_golden_says_what_it_shows():
    assert len(FILES) >= 60
    for path in FILES:
        comment = parsed(path.read_text())[""].strip()
        assert comment.endswith(".") and len(comment) < 120, path


def test_each_break_code_has_a_golden():
    seen = {
        code for path in FILES for code in re.findall(r"^GD\d{4}", section(parsed(path.read_text()), "breaks"), re.M)
    }
    assert seen == set(BREAK_CODES) - set(NO_CODE)


def test_each_opcode_has_a_golden():
    seen = {name for path in FILES for name in _opcodes(compile(parsed(path.read_text())["src.py"], "src.py", "exec"))}
    own = {name for name, op in dis.opmap.items() if op < NUMBERS and not name.startswith("INSTRUMENTED_")}
    assert seen == own - set(NO_OPCODE)


def _opcodes(code):
    """Yield the names of the instructions of functions and classes in a code object, at any depth."""
    for inner in (c for c in code.co_consts if isinstance(c, types.CodeType)):
        yield from (instruction.opname for instruction in dis.get_instructions(inner))
        yield from _opcodes(inner)
