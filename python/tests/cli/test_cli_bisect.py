"""godynamo bisect: from a program that fails under godynamo to the function whose translation causes it."""

import json

import pytest

from cli_support import TOOL, tool
from harness import forked

# The fault is in the backend: it adds one to the result of a graph with a sine. The graph of the piece that contains
# `third` has a sine.
PROGRAM = """\
import sys
import torch
import godynamo

def wrong(gm, inputs):
    def run(*args):
        out = gm.forward(*args)
        return [o + 1 for o in out] if "sin" in str(gm.graph) else out
    return run

def first(x):
    return x + 1

def second(x):
    return third(x) * 3

def third(x):
    return x.sin() * 2

def fourth(x):
    print("at fourth")
    return x.cos() - 1

@godynamo.optimize(wrong, nopython=False)
def top(x):
    return fourth(second(first(x)))

got, want = top(torch.ones(3)), ((torch.ones(3) + 1).sin() * 6).cos() - 1
print(got.tolist())
sys.exit(not torch.equal(got, want))
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_the_function_whose_translation_is_wrong_is_found(program, tmp_path):
    path, out = program, tmp_path / "found.json"
    done = tool("bisect", "--json", out, "--", forked.python(), path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"third ({path}:17)\n")
    assert f"godynamo dis {path}:third" in done.stdout
    told = json.loads(out.read_text())
    assert told["culprits"] == [{"file": str(path), "line": 17, "function": "third"}]
    assert told["certain"] is True
    assert "run 1: without godynamo: works" in done.stderr
    assert "run 2: with all 5 functions: fails" in done.stderr


def test_what_run_serves_is_bisected_too(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text(
        "import torch\n"
        "def wrong(gm, inputs):\n"
        "    return lambda *a: [o + 1 for o in gm.forward(*a)] if 'sin' in str(gm.graph) else gm.forward(*a)\n"
        "def good(x):\n    return x.cos()\n"
        "def bad(x):\n    return x.sin()\n"
        "if __name__ == '__main__':\n"
        "    x = torch.zeros(2)\n"
        "    assert good(x).sum() == 2\n"
        "    assert bad(x).sum() == 0\n"
    )
    done = tool("bisect", "--", TOOL, "run", "-b", "plain:wrong", "plain.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bad (")


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ([], 2, "bisect needs a command"),
        (["no-such-command"], 2, "there is no command no-such-command"),
        (["false"], 2, "fails without godynamo too"),
        (["true"], 2, "translates nothing"),
    ],
)
def test_what_cannot_be_bisected_is_said_in_one_line(command, code, text):
    done = tool("bisect", "--", *command)
    assert done.returncode == code
    assert text in done.stderr.splitlines()[-1]
    assert done.stdout == ""
