"""The pytest plugin, godynamo_pytest and godynamo._tools.pytest, run on separate tests (pytester)."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PYTHON = str(Path(__file__).resolve().parents[2])


@pytest.fixture
def run(pytester, monkeypatch):
    """Return a function that runs pytest on a file in a separate process."""
    monkeypatch.setenv("PYTHONPATH", PYTHON)
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run_pytest(source, *args):
        pytester.makepyfile(test_it=source)
        return pytester.runpytest_subprocess("-p", "godynamo_pytest", "-p", "no:cacheprovider", *args)

    return run_pytest


# Once translations have taken a share of the process's time, code waits for its hot_tensor_calls. On a slow machine the
# first translation takes that share, so each function is called often.
PROGRAM = """
    import time, torch, pytest

    CALLS = range(100)

    def captured(x):
        return (x * 2).relu().sum()

    def split(x):
        y = x + 1
        time.sleep(0)
        return y * 2

    def test_captured():
        for _ in CALLS:
            assert captured(torch.ones(3)) == 6

    def test_split():
        for _ in CALLS:
            assert torch.equal(split(torch.ones(3)), torch.full((3,), 4.0))

    class TestMethods:
        @pytest.fixture
        def x(self):
            return torch.zeros(2)

        @pytest.mark.parametrize("n", [1, 2])
        def test_method(self, x, n):
            for _ in CALLS:
                assert torch.equal(captured(x + n), torch.tensor(4.0 * n))

    def test_raises():
        with pytest.raises(ZeroDivisionError):
            captured(torch.ones(1)) / (1 // 0)
"""


def test_on_translates_what_tests_call_and_tells_at_the_end(run):
    result = run(PROGRAM, "--godynamo=on")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "*= godynamo (on) =*",
            "5 tests: * frames translated, * left to CPython, * graphs with * operations",
            "*graph breaks:",
        ]
    )
    result.stdout.fnmatch_lines(["*GD0201*(test_it.py:10)", "no internal errors"])
    (line,) = [line for line in result.outlines if line.startswith("5 tests: ")]
    assert int(line.split()[2]) >= 3  # captured, split and its resume function
    assert int(line.split()[9]) >= 3


def test_off_is_the_default_and_imports_neither_torch_nor_godynamo(run):
    program = """
        import sys

        def test_nothing_is_imported():
            assert "godynamo_pytest" in sys.modules
            assert not {"torch", "godynamo"} & set(sys.modules)
    """
    for args in ([], ["--godynamo=off"]):
        result = run(program, *args)
        result.assert_outcomes(passed=1)
        result.stdout.no_fnmatch_line("*godynamo (*")


def test_strict_fails_what_its_marker_does_not_allow(run):
    result = run(
        """
        import time, torch, pytest

        def splits(x):
            x = x + 1
            time.sleep(0)
            x = x * 2
            time.sleep(0)
            return x

        @pytest.mark.godynamo(nopython=True)
        def test_one_graph():
            assert (lambda x: x * 2)(torch.ones(1)).item() == 2

        @pytest.mark.godynamo(nopython=True)
        def test_none_allowed():
            splits(torch.ones(1))

        @pytest.mark.godynamo(max_breaks=2)
        def test_enough_allowed():
            splits(torch.ones(1))

        @pytest.mark.godynamo(max_breaks=1)
        def test_too_few_allowed():
            splits(torch.ones(1))

        def test_not_marked():
            splits(torch.ones(1))

        @pytest.mark.godynamo(off=True, nopython=True)
        def test_off():
            splits(torch.ones(1))

        @pytest.mark.godynamo(nopython=True)
        def test_a_failure_of_its_own_stands():
            splits(torch.ones(1))
            assert 1 == 2
        """,
        "--godynamo=strict",
        "-rA",
    )
    failed = {line.split("::")[1].split(" ")[0] for line in result.outlines if line.startswith("FAILED")}
    assert failed == {"test_none_allowed", "test_too_few_allowed", "test_a_failure_of_its_own_stands"}
    result.stdout.fnmatch_lines(["2 graph breaks, none allowed:", "GD*", "*-> time.sleep(0)*"])
    result.stdout.fnmatch_lines(["2 graph breaks, 1 allowed:"])
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
    result.stdout.fnmatch_lines(["6 tests: *"])


def test_strict_fails_a_test_with_an_internal_error_and_goes_on_with_the_next(run):
    result = run(
        """
        import torch, pytest
        from godynamo import _C

        def broken(x):
            return x + 1

        def test_internal_error():
            for _ in range(5):
                _C.report_internal_error("here", broken, RuntimeError("a bug of ours"))
            assert broken(torch.ones(1)).item() == 2

        @pytest.mark.godynamo(nopython=True)
        def test_next():
            assert broken(torch.ones(1)).item() == 2
        """,
        "--godynamo=strict",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["godynamo had internal errors*", "*a bug of ours*at broken (*test_it.py:4)"])
    result.stdout.fnmatch_lines(["5 internal errors:", "*test_it.py::test_internal_error: *a bug of ours*"])


def test_unittest_classes_and_generators_of_fixtures_work(run):
    result = run(
        """
        import unittest, torch, pytest

        SEEN = []

        class Case(unittest.TestCase):
            def setUp(self):
                self.x = torch.ones(2)

            def test_it(self):
                self.assertTrue(torch.equal(self.double(), self.x * 2))

            def double(self):
                return self.x + self.x

        @pytest.fixture
        def resource():
            yield torch.ones(1)
            SEEN.append("closed")

        def test_with_resource(resource):
            assert (resource + 1).item() == 2

        def test_closed():
            assert SEEN == ["closed"]

        async def helper(): ...
        """,
        "--godynamo=on",
    )
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["3 tests: *"])


def test_a_backend_is_given_the_graphs(run):
    result = run(
        """
        import torch, pytest

        CALLS = []

        def mine(gm, example_inputs):
            CALLS.append(len(gm.graph.nodes))
            return gm.forward

        @pytest.mark.godynamo(backend=mine)
        def test_mine():
            assert (lambda x: x.sin() + 1)(torch.zeros(1)).item() == 1
            assert CALLS
        """,
        "--godynamo=on",
        "--godynamo-backend=aot_eager",
    )
    result.assert_outcomes(passed=1)


def test_the_setting_of_the_ini_file_is_the_default(run, pytester):
    pytester.makeini("[pytest]\ngodynamo = on\n")
    result = run("def test_it(): pass")
    result.stdout.fnmatch_lines(["*= godynamo (on) =*", "1 tests: *", "no graph breaks"])
    run("def test_it(): pass", "--godynamo=off").stdout.no_fnmatch_line("*godynamo (*")


def test_a_tracer_that_keeps_calls_from_being_translated_is_told_of(run):
    result = run(
        """
        import sys, torch

        def test_traced():
            sys.settrace(lambda *_: None)
            try:
                assert (lambda x: x + 1)(torch.ones(1)).item() == 2
            finally:
                sys.settrace(None)
        """,
        "--godynamo=on",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["some calls were not translated: a trace or profile function*"])


def test_under_xdist_the_workers_are_added_up(run):
    pytest.importorskip("xdist")
    result = run(PROGRAM, "--godynamo=on", "-n", "1")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*= godynamo (on) =*", "5 tests: *", "*GD0201*"])


def test_results_are_those_without_it(run):
    source = """
        import torch, pytest

        def test_output(capsys):
            print((torch.ones(2) + 1).tolist())
            assert capsys.readouterr().out == "[2.0, 2.0]\\n"

        @pytest.mark.xfail(strict=True)
        def test_fails():
            assert torch.ones(1).item() == 2

        def test_skips():
            pytest.skip("no")

        @pytest.mark.parametrize("x", [0, 1])
        def test_wrong(x):
            y = torch.ones(1) * x
            assert y.item() == 1
    """
    for args in (["--godynamo=off"], ["--godynamo=on"], ["--godynamo=strict"]):
        result = run(source, *args)
        result.assert_outcomes(passed=2, failed=1, skipped=1, xfailed=1)
        result.stdout.fnmatch_lines(["*assert y.item() == 1*"])


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--godynamo=strickt"], "*argument --godynamo: invalid choice: 'strickt'*"),
        (
            ["--godynamo=on", "--godynamo-backend=inductr"],
            "*--godynamo-backend: no backend is named 'inductr'; near it: 'inductor'*",
        ),
        (["--godynamo-backend=inductor"], "*--godynamo-backend goes with --godynamo=on or strict*"),
        (["-o", "godynamo=yes"], "*the setting godynamo is one of off, on, strict, not 'yes'*"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_4(run, args, text):
    result = run("def test_it(): pass", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([text])
    result.stderr.no_fnmatch_line("*Traceback*")


def test_a_marker_that_makes_no_sense_fails_its_test(run):
    result = run(
        """
        import pytest

        @pytest.mark.godynamo(max_break=1)
        def test_name(): pass

        @pytest.mark.godynamo(max_breaks="3")
        def test_type(): pass

        @pytest.mark.godynamo(3)
        def test_positional(): pass
        """,
        "--godynamo=on",
    )
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*knows no 'max_break'; it takes off, nopython, max_breaks, backend"])
    result.stdout.fnmatch_lines(["*takes no max_breaks='3'", "*takes keywords alone, not 3"])


def test_the_entry_point_of_the_package_names_it():
    import tomllib

    project = tomllib.loads((Path(PYTHON).parent / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"godynamo_pytest": "godynamo_pytest"}
    assert "godynamo_pytest" in project["tool"]["setuptools"]["py-modules"]
