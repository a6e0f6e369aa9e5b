"""The public API under static type checkers: typed_user.py under mypy strict, and stubtest over the package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*command):
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "python"},
    )


@pytest.mark.timeout(600)
def test_a_users_program_is_typed_under_mypy_strict():
    pytest.importorskip("mypy")
    done = run("mypy", "python/tests/api/typed_user.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout


@pytest.mark.timeout(600)
def test_mypy_sees_what_is_wrong(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "wrong.py"
    program.write_text(
        "import godynamo\n"
        "@godynamo.optimize\n"
        "def f(x: int) -> str:\n"
        "    return str(x)\n"
        "n: int = f('1')\n"
        "godynamo.optimise\n"
    )
    done = run("mypy", str(program))
    for text in (
        'expression has type "str", variable has type "int"',
        'has incompatible type "str"; expected "int"',
        "optimise",
    ):
        assert text in done.stdout


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "python" / "godynamo" / "py.typed").exists()
