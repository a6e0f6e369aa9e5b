"""Files of rejected programs: the expected error is written on its line as ``# ERR: Type: text``.

A file consists of chunks of Python, separated by lines ``---``. If a chunk defines ``f``, the test calls
``godynamo.optimize(f, nopython=True)(*args())``, by default with a tensor of two ones. The text is the first line of
the message; for a graph break, it is the message's line with the error code. The line of a graph break is the one that
its message names, other errors have the traceback's line. A chunk without ERR raises nothing.
"""

import re
import sys
import traceback
import types
import warnings

import pytest
import torch

import godynamo
from godynamo._explain.break_codes_gen import BREAK_CODES
from golden_files import FOLDER, NAME, stable

ERR = re.compile(r"  # ERR: (.+)$", re.MULTILINE)
WHOLE = "nopython=True allows CPython to run a whole frame"
# Codes that no chunk raises, with the reason.
NO_ERROR = {
    "GD0003": "GODYNAMO_BISECT is read when the process starts",
    "GD0601": "the error has no code: the whole frame runs in CPython",
    "GD0602": "an object with a finalizer is made in CPython, which is an error before its end",
    "GD0701": "the error has the code of the value that is not modelled",
    "GD0702": WHOLE,
    "GD0703": WHOLE,
    "GD0704": WHOLE,
    "GD0706": WHOLE,
    "GD0707": "the code that is optimized is a function",
    "GD0708": WHOLE,
    "GD0709": WHOLE,
    "GD0710": "the first error is raised",
    "GD0711": WHOLE,
    "GD0712": WHOLE,
    "GD0713": WHOLE,
    "GD0714": WHOLE,
}


def chunks():
    """Yield (file, line of the chunk's start, text) for each chunk."""
    for path in sorted((FOLDER / "errors").glob("*.txt")):
        line = 1
        for text in re.split(r"^---\n", path.read_text(), flags=re.MULTILINE):
            yield pytest.param(path.name, line, text, id=f"{path.stem}-{line}")
            line += text.count("\n") + 1


def raised(name, first, text):
    """Return [(line, text)] of the exception that a chunk raises, or []."""
    module = types.ModuleType(NAME)
    sys.modules[NAME] = module
    module.__dict__.update(torch=torch, godynamo=godynamo)
    try:
        exec(compile("\n" * (first - 1) + text, name, "exec"), module.__dict__)
        if hasattr(module, "f"):
            args = module.args() if hasattr(module, "args") else (torch.ones(2),)
            godynamo.optimize(module.f, nopython=True)(*args)
    except Exception as e:
        lines = str(e).splitlines() or [""]
        if isinstance(e, godynamo.exc.Unsupported):
            line = int((re.findall(r", line (\d+), in ", str(e)) or re.findall(r":(\d+)\)", lines[0]))[-1])
            lines = lines[1:] or lines
        else:
            line = [row.lineno for row in traceback.extract_tb(e.__traceback__) if row.filename == name][-1]
        message = re.sub(rf"\b{name}:\d+", f"{name}:...", stable(lines[0]))
        message = message.partition(". Did you mean")[0]  # 3.13 suggests a name
        return [(line, f"{type(e).__name__}: {message}")]
    return []


@pytest.mark.parametrize(("name", "first", "text"), list(chunks()))
def test_the_error_is_the_one_beside_the_line(name, first, text):
    expected = [(first + text.count("\n", 0, m.start()), m[1]) for m in ERR.finditer(text)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert raised(name, first, text) == expected


def test_each_break_code_is_an_error_or_says_why_not():
    seen = {m for param in chunks() for m in re.findall(r"ERR: Unsupported: (GD\d{4})", param.values[2])}
    assert seen == set(BREAK_CODES) - set(NO_ERROR)
