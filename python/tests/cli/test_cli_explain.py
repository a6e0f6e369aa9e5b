"""godynamo explain: runs a program up to a function's call and explains the call, as text or in files."""

import json
import os
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree

import pytest

import cli_support
from browser import SCREENSHOTS, open_page
from cli_support import tool

PROGRAM = """
    import sys
    import torch

    def scaled(x, n):
        return x * (x.sum().tolist() + n)

    def step(x, n):
        y = x.sin() + 1
        if y.sum() > 0:
            y = y * 2
        return scaled(y, n)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x).relu()

        @staticmethod
        def fixed(x):
            return x + 1

    def outer(x):
        def inner(y):
            return y * 3
        return inner(x)

    def unused(x, k=1):
        return x.cos() * k

    def raising(x):
        y = x + 1
        raise LookupError("the program's own")

    if __name__ == "__main__":
        print("arguments", sys.argv[1:])
        for n in range(3):
            step(torch.ones(2), n)
            print("step", n)
        Model()(torch.ones(2))
        Model.fixed(torch.ones(2))
        outer(torch.ones(2))
        if "raise" in sys.argv:
            raising(torch.ones(2))
        if "exit" in sys.argv:
            sys.exit(7)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return path


def explain(*arguments, cwd, **more):
    return tool("explain", *arguments, cwd=cwd, **more)


def problem(done):
    """Return the one line of a usage error."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    [line] = done.stderr.splitlines()
    assert line.startswith("godynamo: ") and "Traceback" not in done.stderr
    return line


def test_the_report_stands_behind_what_the_program_has_printed(program, tmp_path):
    done = explain("program.py:step", "--", "a", "b", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    first, rest = done.stdout.split("\n", 1)
    assert first == "arguments ['a', 'b']"
    assert rest.startswith("Graph count: 4\nGraph break count: 2\n")
    assert re.search(r"GD0101: .*\n    hint: .*torch.where", rest)
    assert re.search(
        r'File "program.py", line 10, in step\n.*\n.*\n    -> +10 \|      if y.sum\(\) > 0:\n +\^{11}\n', rest
    )
    assert "step 0" not in rest  # the program ends after the call


def test_to_end_lets_the_program_go_on(program, tmp_path):
    done = explain("program.py:step", "--to-end", "--call", "2", "--json", "out.json", "--", "exit", cwd=tmp_path)
    assert done.returncode == 7
    assert done.stdout.splitlines() == ["arguments ['exit']", "step 0", "step 1", "step 2"]
    assert json.loads((tmp_path / "out.json").read_text())["graph_break_count"] == 2


def test_json_on_stdout_stands_there_alone(program, tmp_path):
    done = explain("--json", "-", "--to-end", "program.py:step", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert data["name"] == "program.py:step" and data["graph_count"] == 4
    assert "step 2" in done.stderr
    assert done.returncode == 0


def test_files_of_every_kind(program, tmp_path):
    kinds = ("html", "dot", "svg", "json")
    done = explain("program.py:step", *(a for k in kinds for a in (f"--{k}", f"out.{k}")), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "arguments []\n"), done.stderr
    assert (tmp_path / "out.dot").read_text().startswith("digraph")
    xml.etree.ElementTree.parse(tmp_path / "out.svg")
    assert open_page(tmp_path / "out.html", SCREENSHOTS / "cli-explain.png", size=(1280, 1600)) == []
    assert "GD0101" in (tmp_path / "out.html").read_text()


@pytest.mark.parametrize(
    ("function", "ops"),
    [("Model.forward", 2), ("Model", 2), ("Model.fixed", 1), ("outer.<locals>.inner", 1), ("outer", 1)],
)
def test_methods_classes_and_functions_inside_of_others(function, ops, program, tmp_path):
    done = explain(f"program.py:{function}", "--json", "-", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert (data["op_count"], data["graph_break_count"]) == (ops, 0)


def test_arguments_on_the_command_line_in_place_of_a_call(program, tmp_path):
    done = explain("program.py:unused", "--args", "torch.ones(2), k=3", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("Graph count: 1\n")  # main has not run
    done = explain("program.py:Model", "--args", "Model(), torch.ones(2)", cwd=tmp_path)
    assert "Op count: 2" in done.stdout


def test_a_module_by_its_name(program, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    program.rename(package / "inner.py")
    done = explain("-m", "package.inner:step", "--json", "-", "--", "x", cwd=tmp_path)
    assert json.loads(done.stdout)["graph_count"] == 4 and "arguments ['x']" in done.stderr


def test_as_with_a_backend_that_is_given_whole_graphs(program, tmp_path):
    done = explain("program.py:step", "--backend", "aot_eager", "--json", "-", cwd=tmp_path)
    assert json.loads(done.stdout)["graph_count"] == 4


def test_what_the_program_raises_is_its_own(program, tmp_path):
    done = explain("program.py:raising", "--", "raise", cwd=tmp_path)
    plain = subprocess.run(
        [sys.executable, "program.py", "raise"],
        cwd=tmp_path,
        env=cli_support.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert "Graph count: " in done.stdout  # for the part of the call that was run


def test_a_program_that_fails_before_the_call_keeps_its_code_and_traceback(tmp_path):
    (tmp_path / "p.py").write_text("def f(x):\n    return x\n\n{}['missing']\nf(1)\n")
    done = explain("p.py:f", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines()[-1] == "KeyError: 'missing'" and "_run" not in done.stderr
    (tmp_path / "p.py").write_text("def f(x):\n    return x\n\nraise SystemExit(5)\n")
    assert explain("p.py:f", cwd=tmp_path).returncode == 5


BAD = {
    "no function named": (("program.py",), "names no function: SCRIPT:FUNCTION"),
    "no target": ((), "explain needs a function"),
    "a file that is not there": (("progam.py:step",), "there is no file progam.py; did you mean program.py?"),
    "a module that is not there": (("-m", "nowhere.at:all"), "there is no module nowhere.at"),
    "a function that is not there": (("program.py:stepp",), "has no function stepp; did you mean step"),
    "a function that is never called": (("program.py:unused",), "unused was never called while program.py ran"),
    "too few calls": (
        ("program.py:step", "--call", "9"),
        "step was called only 3 times while program.py ran: ask for --call 3",
    ),
    "call 0": (("program.py:step", "--call", "0"), "--call counts from 1"),
    "arguments without --": (("program.py:step", "a"), "a: arguments of the script follow --"),
    "an unknown flag": (("program.py:step", "--htm", "x"), "did you mean --html"),
    "an unknown backend": (("program.py:step", "--backend", "inductr"), "did you mean inductor"),
    "a folder that is not there": (
        ("program.py:step", "--html", "no/where.html"),
        "is no folder that can be written to",
    ),
    "a folder for a file": (("program.py:step", "--svg", "."), "it is a folder"),
    "stdout twice": (("program.py:step", "--json", "-", "--dot", "-"), "stdout (-) takes one of"),
    "no call's inside": (("program.py:step", "--args", "1 +"), "is not the inside of a call's parentheses"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_use_is_one_line(name, program, tmp_path):
    arguments, text = BAD[name]
    done = explain(*arguments, cwd=tmp_path)
    shown = [line for line in done.stdout.splitlines() if not line.startswith(("arguments", "step"))]
    assert shown == []
    assert text in problem(done)


def test_a_file_that_cannot_be_written_is_told_before_the_program_runs(program, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (tmp_path / "locked").mkdir(mode=0o500)
    done = explain("program.py:step", "--html", "locked/x.html", cwd=tmp_path)
    assert "arguments" not in done.stdout
    problem(done)
