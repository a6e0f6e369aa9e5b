"""godynamo run: a program behaves as under python, and the summary reports what was captured."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import zipfile

import pytest

import cli_support
from cli_support import tool


@pytest.fixture
def script(tmp_path):
    def write(text, name="program.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


PROGRAM = """
    import os, sys
    import torch

    def helper(x):
        return x.relu()

    def step(x):
        y = helper(x + 1)
        if y.sum() > 0:
            y = y * 2
        return y

    class Model(torch.nn.Module):
        def forward(self, x):
            return x.sin() + 1

    if __name__ == "__main__":
        model = Model()
        for n in (3, 4):
            print(step(torch.ones(n)).tolist(), model(torch.zeros(2)).tolist(), sys.argv[1:])
"""


def plain(path, *arguments, **more):
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        env=cli_support.environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )


def summary(done, path):
    assert path.exists(), done.stderr
    return json.loads(path.read_text())


def test_everything_a_program_calls_is_served(script, tmp_path):
    program = script(PROGRAM)
    out = tmp_path / "summary.json"
    done = tool("run", "--json", out, program, "--epochs", "1")
    assert (done.returncode, done.stdout) == (0, plain(program, "--epochs", "1").stdout), done.stderr
    told = summary(done, out)
    functions = {f["function"]: f for f in told["functions"]}
    assert functions["step"]["breaks"][0]["code"] == "GD0101"
    assert functions["step"]["breaks"][0]["source"] == "if y.sum() > 0:"
    assert functions["step"]["ops"] >= 4
    assert told["graphs"] == sum(f["graphs"] for f in told["functions"]) >= 3
    assert told["exit_code"] == 0
    assert told["internal_errors"] == 0
    assert f"{told['graphs']} graphs" in done.stderr
    assert "GD0101" in done.stderr
    assert f'"{program}", line 10: if y.sum() > 0:' in done.stderr


@pytest.mark.parametrize("name", ["step", "Model.forward", "Model"])
def test_chosen_functions_alone_are_optimized(script, tmp_path, name):
    out = tmp_path / "summary.json"
    program = script(PROGRAM)
    done = tool("run", "--function", name, "--json", out, program)
    assert (done.returncode, done.stdout) == (0, plain(program).stdout), done.stderr
    # torch.nn.Module.__call__ calls forward, but was not chosen itself
    assert {f["function"] for f in summary(done, out)["functions"]} == {name if name != "Model" else "Model.forward"}


def test_functions_of_imported_modules_are_chosen_by_module_and_name(script, tmp_path):
    script(
        "def double(x):\n    return x * 2\nclass A:\n    @staticmethod\n    def three(x):\n        return x * 3\n",
        "mine.py",
    )
    program = script(
        """
        import torch
        from mine import A, double as twice
        print(twice(torch.ones(2)).tolist(), A.three(torch.ones(2)).tolist())
        """
    )
    out = tmp_path / "summary.json"
    for chosen, want in (("mine:double", "double"), ("mine:A.three", "A.three"), ("twice", "double")):
        done = tool("run", "-f", chosen, "--json", out, program)
        assert (done.returncode, done.stdout) == (0, plain(program).stdout), done.stderr
        assert [f["function"] for f in summary(done, out)["functions"]] == [want]


def test_a_function_that_was_not_met_is_named_at_the_end(script):
    program = script("import torch\nprint(1)\ndef outer():\n    def inner(x):\n        return x\n")
    done = tool("run", "-q", "-f", "no_such_module:f", "-f", "outer.<locals>.inner", program)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.splitlines() == [
        f"godynamo: --function no_such_module:f had no effect: module no_such_module was not imported while {program} "
        "ran",
        f"godynamo: --function outer.<locals>.inner had no effect: it was not defined while {program} ran",
    ]


def test_nested_functions_and_their_lines_stay(script, tmp_path):
    program = script(
        """
        import inspect, torch
        def outer(k):
            @torch.no_grad()
            def inner(x):
                return x * k
            return inner
        f = outer(3)
        print(f(torch.ones(2)).tolist(), outer.__code__.co_firstlineno)
        print(inspect.getsource(outer).splitlines()[0], sorted(n for n in globals() if "godynamo" in n))
        """
    )
    out = tmp_path / "summary.json"
    done = tool("run", "-f", "outer.<locals>.inner", "--json", out, program)
    assert (done.returncode, done.stdout) == (0, plain(program).stdout), done.stderr
    assert summary(done, out)["ops"] >= 1


def test_modules_run_as_with_python_m(script, tmp_path):
    script("", "pkg/__init__.py")
    script("from . import tool\n", "pkg/__main__.py")
    script(
        """
        import sys, torch
        print(__name__, sys.argv[0].rsplit("/", 1)[1], sys.argv[1:], torch.ones(2).add(1).tolist(), sys.path[0])
        """,
        "pkg/tool.py",
    )
    for name in ("pkg", "pkg.tool"):
        done = tool("run", "-q", "-m", name, "a", cwd=tmp_path)
        want = subprocess.run(
            [sys.executable, "-m", name, "a"],
            cwd=tmp_path,
            env=cli_support.environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, want.stdout, "")


def test_a_scripts_folder_is_on_the_path_as_python_puts_it(script, tmp_path):
    script("value = 1\n", "real/beside.py")
    program = script("import sys, torch\nprint(sys.path[0])\nimport beside\nprint(beside.value)\n", "real/program.py")
    link = tmp_path / "link.py"
    link.symlink_to(program)
    for path, more in ((program, {}), (link, {}), (program, {"PYTHONSAFEPATH": "1"})):
        done, want = tool("run", "-q", path, **more), plain(path, **more)
        assert (done.returncode, done.stdout) == (want.returncode, want.stdout)


def test_pytest_runs(script, tmp_path):
    script("import torch\ndef test_a():\n    assert (torch.ones(2) + 1).sum() == 4\n", "test_mine.py")
    done = tool("run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "graphs with" in done.stderr


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("raise ValueError('own')", 1),
        ("sys.exit(7)", 7),
        ("sys.exit('a text')", 1),
        ("sys.exit()", 0),
        ("os._exit(5)", 5),
        ("raise SystemExit(300)", 300 % 256),
        ("def f(x:\n", 1),
        ("import nothing_of_this_name", 1),
        ("sys.excepthook = lambda *a: print('hooked', a[0], a[2].tb_frame.f_code.co_name); raise KeyError(1)", 1),
        ("def f():\n    1 / 0\ntry:\n    f()\nexcept ZeroDivisionError as e:\n    raise RuntimeError('b') from e", 1),
    ],
)
def test_a_program_keeps_its_traceback_and_exit_code(script, body, code):
    program = script(f"import os, sys\nimport torch\nprint('begun', flush=True)\n{body}\n")
    done, want = tool("run", "-q", program), plain(program)
    assert done.returncode == want.returncode == code
    assert (done.stdout, done.stderr) == (want.stdout, want.stderr)


def test_an_interrupted_program_ends_by_the_signal(script):
    program = script("import time, torch\nprint('begun', flush=True)\ntime.sleep(60)\n")
    child = subprocess.Popen(
        [str(cli_support.TOOL), "run", str(program)],
        env=cli_support.environment(**cli_support.NEW_PYTHON),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.2)
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert "0 graphs" in errors


def test_a_property_is_no_function(script):
    program = script("class Model:\n    @property\n    def forward(self): return 1\nprint(Model().forward)\n")
    run = tool("run", "--function", "Model.forward", program)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "godynamo: --function: property objects cannot be optimized: name a function\n"


@pytest.mark.parametrize("options", [(), ("--off",), ("--function", "step")])
def test_an_interrupted_program_ends_in_order(script, tmp_path, options):
    program = script(
        """
        import atexit, os, signal, time
        atexit.register(lambda: print("atexit"))
        kept = open("kept.txt", "w")
        kept.write("data")
        def step():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        step()
        """
    )
    run = tool("run", "--quiet", *options, program, cwd=tmp_path, **cli_support.NEW_PYTHON)
    assert run.returncode == -signal.SIGINT
    assert (run.stdout, (tmp_path / "kept.txt").read_text()) == ("atexit\n", "data")
    assert run.stderr.count("Traceback") == 1 and "in step" in run.stderr and "_run" not in run.stderr


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_children_of_a_program_find_it(script, start):
    program = script(
        f"""
        import multiprocessing, torch
        def work(n):
            return (torch.ones(n) + 1).sum().item()
        if __name__ == "__main__":
            work(2)
            with multiprocessing.get_context({start!r}).Pool(1) as pool:
                print(pool.map(work, [3, 4]))
        """
    )
    done = tool("run", "-q", program)
    assert (done.returncode, done.stdout) == (0, "[6.0, 8.0]\n"), done.stderr


def test_recompiles_and_full_caches_are_told(script):
    program = script(
        """
        import torch
        def f(x, mode):
            return x * len(mode)
        for i in range(12):
            f(torch.ones(2), "m" * i)
        """
    )
    done = tool("run", program)
    assert "7 recompiles" in done.stderr
    assert "was translated 8 times" in done.stderr
    assert "cache_size_limit was reached" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "run needs a script"),
        (["run", "progam.py"], "there is no file progam.py; did you mean program.py?"),
        (["run", "-m", "no_such_module"], "there is no module no_such_module"),
        (["run", "-m", "pkg_without_main"], "is a package without __main__"),
        (["run", "archive.pyz"], "archive.pyz is an archive"),
        (["run", "-f", "stepp", "program.py"], "has no function stepp; did you mean step?"),
        (["run", "-b", "inductr", "program.py"], "there is no backend inductr; did you mean inductor?"),
        (["run", "-b", "program:nothing", "program.py"], "module program has no callable nothing"),
        (["run", "--nopython", "program.py"], "--nopython is for functions named by --function"),
        (["run", "--json", "no/folder.json", "program.py"], "there is no folder for no/folder.json"),
        (["run", "--functon", "x", "program.py"], "unknown flag: --functon; did you mean --function?"),
        (["rnu", "program.py"], 'unknown command "rnu"'),
        (["--python", "/no/python", "run", "program.py"], "no Python at /no/python"),
    ],
)
def test_bad_use_is_one_line_and_code_2(script, tmp_path, arguments, text):
    script("import torch\ndef step(x):\n    return x + 1\n")
    script("", "pkg_without_main/__init__.py")
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", "")
    done = tool(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("godynamo: ")
    assert text in done.stderr


def test_a_python_without_godynamo_is_named(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    done = tool("--python", bare, "run", "x.py")
    assert done.returncode == 2
    assert done.stderr.startswith(f"godynamo: godynamo is not installed in {bare}")


def test_completion_is_offered_for_shells():
    for shell in ("bash", "zsh", "fish", "powershell"):
        done = tool("completion", shell)
        assert done.returncode == 0
        assert "godynamo" in done.stdout


def test_a_break_that_two_functions_meet_is_one_row(script):
    program = script(
        """
        import os, torch
        def inner(x):
            return x * os.getpid() ** 0
        def outer(x):
            return inner(x + 1)
        outer(torch.ones(2))
        inner(torch.ones(2))
        """
    )
    done = tool("run", program)
    assert done.stderr.count("line 4: return x * os.getpid() ** 0") == 1, done.stderr
    assert "    2 x GD0201" in done.stderr
