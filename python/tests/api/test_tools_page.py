"""The code blocks of docs/tools.md work and print what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "docs" / "tools.md").read_text(), re.MULTILINE | re.DOTALL)
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
OUTPUTS = [text for kind, text in BLOCKS if kind == "text"]


def test_the_tests_of_the_page_pass_and_fail_as_it_says(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makepyfile(test_model=PROGRAMS[0])
    options = ("-p", "godynamo_pytest", "-p", "no:cacheprovider")
    result = pytester.runpytest_subprocess(*options, "--godynamo=strict")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*= godynamo (strict) =*", "2 tests: *"])
    pytester.makepyfile(test_model=PROGRAMS[0].replace("max_breaks=1", "nopython=True"))
    result = pytester.runpytest_subprocess(*options, "--godynamo=strict")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(OUTPUTS[0].replace("/home/me/project", "*").splitlines())


@pytest.mark.parametrize("i", [1, 2])
def test_a_program_prints_what_the_page_says(i, tmp_path):
    file = tmp_path / "program.py"  # code passed to exec without a file has no source lines for messages
    file.write_text(PROGRAMS[i])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(PROGRAMS[i], str(file), "exec"), {"__name__": "program"})
    assert out.getvalue() == OUTPUTS[i]
