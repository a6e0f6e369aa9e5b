"""Without torch or a C++ compiler, one line reports what is missing, with a command that installs it."""

import importlib
import subprocess
import sys

import pytest

from cli_support import NEW_PYTHON, ROOT, environment, tool

COMPILES = """\
import pickle, sys, torch, godynamo
def f(x):
    return (x + 1).relu() * 2
try:
    godynamo.compile(f)(torch.ones(3))
except godynamo.exc.BackendCompilerFailed as error:
    assert type(error.inner_exception).__name__ == "InvalidCxxCompiler", error.inner_exception
    assert error.__cause__ is error.inner_exception
    raise
"""


@pytest.fixture
def torchless(tmp_path):
    """Return the path of a script that runs this Python without its site-packages."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    return path


def plain(*arguments, **more):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=240, env=environment(**more)
    )


def no_compiler(tmp_path):
    """Return environment variables with which no program on PATH and no earlier result of inductor is found."""
    return {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "CXX": "g++"}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["doctor"], 1),
        (["doctor", "--plain"], 1),
        (["run", "x.py"], 2),
        (["bench", "--quick"], 2),
        (["dis", "x.py:f"], 2),
    ],
)
def test_the_tool_without_torch_says_so_in_one_line(torchless, command, code):
    done = tool("--python", torchless, *command)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"godynamo: torch is not installed in {torchless}: {torchless} -m pip install torch\n"


def test_the_import_without_torch_names_the_command():
    done = plain("-S", "-c", "import godynamo")
    assert done.returncode == 1
    last = (
        "ModuleNotFoundError: godynamo needs PyTorch 2.6 or newer, which this Python does not have: pip install torch"
    )
    assert done.stderr.splitlines()[-1] == last
    assert "During handling" not in done.stderr


def test_what_a_torch_that_is_there_lacks_is_not_called_torch(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import nothing_of_this_name\n")
    done = plain("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import godynamo")
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'nothing_of_this_name'"


def test_inductor_without_a_compiler_is_one_line_and_no_pages_of_frames(tmp_path):
    done = plain("-c", COMPILES, **no_compiler(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "godynamo.exc.BackendCompilerFailed: backend='inductor' found no C++ compiler, which it needs on the CPU: "
        "install one (Debian: apt-get install g++) or name one with CXX"
    )
    assert "_inductor/" not in done.stderr, "frames of inductor's"
    assert len(done.stderr.splitlines()) < 25, done.stderr


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ("g++", "note   C++ compiler   no g++, which inductor needs on the CPU: apt-get install g++ (Debian)"),
        (
            "no-c++",
            "note   C++ compiler   no no-c++, which inductor needs on the CPU: unset CXX, or name a compiler that is "
            "there",
        ),
    ],
)
def test_doctor_without_a_compiler_says_what_to_install(tmp_path, asked, line):
    from godynamo._tools import doctor

    code = (
        f"import os, sys; os.environ['PATH'] = {str(tmp_path)!r}; "
        "from godynamo._tools import doctor; doctor.CHECKS = (doctor.compiler,); sys.exit(doctor.main([]))"
    )
    more = {} if asked == "g++" else {"CXX": asked}
    env = {k: v for k, v in environment(**more).items() if k != "CXX" or more}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    head, _, advice = line.rpartition(": ")
    wanted = line if len(line) <= doctor.WIDTH else f"{head}\n{'':22}{advice}"
    assert done.stdout == f"{wanted}\nall is well\n"


@pytest.mark.parametrize(("command", "shown"), [("dis", False), ("explain", False), ("run", True)])
def test_torch_warns_of_a_missing_numpy_only_in_the_users_program(tmp_path, command, shown):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")
    script = tmp_path / "script.py"
    script.write_text("import torch\ndef f(x):\n    return x + 1\nf(torch.ones(2))\n")
    path = {"PYTHONPATH": f"{ROOT / 'python'}:{tmp_path}"}
    done = tool(command, script if command == "run" else f"{script}:f", **NEW_PYTHON, **path)
    assert done.returncode == 0, done.stderr
    assert ("NumPy" in done.stderr) is shown


def test_python_m_godynamo_is_the_tool_for_this_python(tmp_path):
    done = plain("-m", "godynamo", "--version", GODYNAMO_PYTHON="/nowhere", PATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, tool("--version").stdout, "")


def test_python_m_godynamo_without_the_tool_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SystemExit) as left:
        importlib.import_module("godynamo.__main__").main()
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
