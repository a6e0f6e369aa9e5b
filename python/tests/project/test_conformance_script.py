"""scripts/rows.py and conformance.py: the table, the tests that name rows, the verdicts."""

import json
from typing import Any

import pytest

import conformance_fixture as fixture
import project_support
import rows as table

ROOT = project_support.ROOT


def verdict_of(outcomes, timed=None):
    row = table.Row("S002-12", "text")
    tests = [table.RowTest(f"t{i}", ["S002-12"], outcome) for i, outcome in enumerate(outcomes)]
    (verdict,) = table.judge([row], tests, timed or {})
    return verdict.status


def test_the_projects_table_has_every_row_once():
    found = table.parse_table((ROOT / "docs" / "conformance.md").read_text())
    counts = table.totals(table.judge(found, [], {}))
    assert {seed: sum(count.values()) for seed, count in counts.items()} == {
        "S000": 37, "S001": 42, "S002": 122, "S003": 48, "S004": 235, "all": 484,
    }  # fmt: skip


def test_an_escaped_bar_belongs_to_the_text():
    (row,) = table.parse_table(r"| S004-86 | & ^ \| int, bool | F | G |")
    assert row.text == "& ^ | int, bool"


def test_a_row_that_comes_twice_is_refused():
    with pytest.raises(ValueError, match="S002-01 comes twice"):
        table.parse_table("| S002-01 | a |\n| S002-01 | b |\n")


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ("S002", ["S002-01", "S002-02", "S002-03"]),
        ("S002-02", ["S002-02"]),
        ("S000-01,S002-03", ["S000-01", "S002-03"]),
        ("S002-02..3 S000", ["S000-01", "S002-02", "S002-03"]),
    ],
)
def test_rows_are_selected_by_seed_name_and_span(wanted, ids):
    assert [row.id for row in table.select(fixture.ROWS, wanted)] == ids


@pytest.mark.parametrize("wanted", ["S009", "S002-99", "nonsense", "S002-8..9"])
def test_a_selection_that_names_nothing_is_refused(wanted):
    with pytest.raises(ValueError, match="no row"):
        table.select(fixture.ROWS, wanted)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ([], table.NO_TEST),
        (["passed"], table.PASS),
        (["passed", "passed"], table.PASS),
        (["passed", "failed"], table.FAIL),
        (["passed", "xfailed"], table.FAIL),
        (["failed"], table.FAIL),
        (["skipped"], table.NOT_RUN),
        (["passed", "skipped"], table.PASS),
        ([None], table.NOT_RUN),
        (["passed", None], table.NOT_RUN),
        (["failed", None], table.FAIL),
    ],
)
def test_the_verdict_follows_from_all_tests_of_a_row(outcomes, status):
    assert verdict_of(outcomes) == status


@pytest.mark.parametrize(
    ("outcomes", "met", "status"),
    [
        (["passed"], True, table.PASS),
        (["passed"], False, table.FAIL),
        (["passed"], None, table.NOT_RUN),
        ([], True, table.NO_TEST),
        (["failed"], True, table.FAIL),
    ],
)
def test_a_row_about_time_needs_its_figure_too(outcomes, met, status):
    assert verdict_of(outcomes, {"S002-12": (met, "figure")}) == status


def test_figures_are_held_against_their_bounds():
    def result(ratio):
        return {"calls": {"pure_python": {"godynamo": {"ratio": ratio}}}}

    assert table.timed_rows(result(1.05))["S002-13"][0] is True
    assert table.timed_rows(result(1.06))["S002-13"][0] is False
    assert table.timed_rows(result(1.0))["S002-12"][0] is None
    assert table.timed_rows(None)["S002-119"][0] is None
    assert table.timed_rows({"calls": {"pure_python": {"godynamo": {"error": "x"}}}})["S002-13"][0] is None


def test_rows_about_time_name_workloads_and_rows_that_exist():
    import godynamo_workloads as workloads

    known = {workload.name for workload in workloads.WORKLOADS}
    ids = {row.id for row in table.parse_table((ROOT / "docs" / "conformance.md").read_text())}
    for row, (workload, figure, _) in table.TIMED_ROWS.items():
        assert row in ids
        assert workload in known
        assert figure in ("ratio", table.EMPTY_CALLS)


def test_a_time_over_eager_is_judged_by_the_machines_speed():
    def verdict(over: float, empty: float) -> Any:
        calls = {"skipped": {"godynamo": {"over_eager_us": over}}, "identity": {"eager": {"us": empty}}}
        return table.timed_rows({"calls": calls})["S002-119"][0]

    assert verdict(0.05, 0.02) is True
    assert verdict(0.06, 0.02) is False
    assert verdict(0.5, 0.2) is True
    assert table.timed_rows({"calls": {"skipped": {"godynamo": {"over_eager_us": 0.01}}}})["S002-119"][0] is None


GO_SOURCE = """package guards

// Row: S002-75, S002-76
// Row: S002-77
func TestOne(t *testing.T) {
	// Row: S002-01
	helper()
}

func helper() {}

var cases = []string{
	// Row: S002-02
	"a case",
}

// Rows: S000-01
func FuzzTwo(f *testing.F) {}

func TestWithoutRows(t *testing.T) {}
"""


def test_go_comments_name_the_rows_of_their_test():
    found = {test.name: test.rows for test in table.go_tests(GO_SOURCE, "guards")}
    assert found == {
        "guards.TestOne": ["S002-75", "S002-76", "S002-77", "S002-01"],
        "guards.FuzzTwo": ["S002-02", "S000-01"],
    }


@pytest.mark.parametrize("source", ["// Row: S002-75\n", "func helper() {\n\t// Row: S002-75\n}\n"])
def test_a_go_comment_that_belongs_to_no_test_is_refused(source):
    with pytest.raises(ValueError, match="S002-75"):
        table.go_tests(source, "guards")


def test_a_test_that_names_an_unknown_row_is_told():
    tests = [table.RowTest("t", ["S002-01", "S002-999"])]
    assert table.unknown_rows(fixture.ROWS, tests) == ["t names S002-999"]


def test_the_recorder_writes_the_outcome_of_every_test_with_rows(pytester_project):
    recorded = pytester_project(
        """
        import pytest

        @pytest.mark.row("S002-01", "S002-02")
        def test_good(): pass

        @pytest.mark.row("S002-03")
        def test_bad(): assert False

        @pytest.mark.row("S002-03")
        @pytest.mark.xfail
        def test_expected(): assert False

        @pytest.mark.row("S000-01")
        @pytest.mark.skip
        def test_skipped(): pass

        @pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.row("S002-01")), 2])
        def test_parameters(n): pass

        @pytest.mark.row("S002-01")
        class TestClass:
            @pytest.fixture
            def broken(self): raise RuntimeError
            def test_fixture(self, broken): pass

        def test_without_rows(): pass
        """
    )
    assert {name.split("::", 1)[1]: (test["rows"], test["outcome"]) for name, test in recorded.items()} == {
        "test_good": (["S002-01", "S002-02"], "passed"),
        "test_bad": (["S002-03"], "failed"),
        "test_expected": (["S002-03"], "xfailed"),
        "test_skipped": (["S000-01"], "skipped"),
        "test_parameters[1]": (["S002-01"], "passed"),
        "TestClass::test_fixture": (["S002-01"], "failed"),
    }


def test_the_recorder_keeps_what_other_runs_wrote(pytester_project):
    source = """
        import pytest
        @pytest.mark.row("S002-01")
        def test_{0}(): pass
        """
    pytester_project(source.format("a"), "test_first.py")
    recorded = pytester_project(source.format("b"), "test_second.py")
    assert sorted(name.split("::")[1] for name in recorded) == ["test_a", "test_b"]


def test_rows_travel_from_the_workers_of_xdist(pytester_project):
    recorded = pytester_project(
        """
        import pytest
        @pytest.mark.row("S002-01")
        def test_a(): pass
        @pytest.mark.row("S002-02")
        def test_b(): assert False
        """,
        extra=["-n", "2"],
    )
    assert sorted(test["outcome"] for test in recorded.values()) == ["failed", "passed"]


def event(**fields):
    return json.dumps({"Package": "github.com/godynamo/godynamo/guards", **fields}) + "\n"


def test_go_events_become_outcomes_and_the_output_of_failures():
    import go_report

    report = go_report.Report()
    shown = list(report.feed([
        event(Action="run", Test="TestGood"),
        event(Action="output", Test="TestGood", Output="quiet\n"),
        event(Action="pass", Test="TestGood"),
        event(Action="output", Test="TestBad", Output="why it failed\n"),
        event(Action="fail", Test="TestBad"),
        event(Action="skip", Test="TestSkipped"),
        event(Action="output", Output="FAIL\tguards\n"),
        event(Action="fail"),
    ]))  # fmt: skip
    assert report.failed
    assert report.outcomes == {
        "guards.TestGood": "passed", "guards.TestBad": "failed", "guards.TestSkipped": "skipped",
    }  # fmt: skip
    assert shown == ["why it failed\n", "FAIL\tguards\n"]


def test_a_go_package_that_does_not_compile_is_a_failure():
    import go_report

    report = go_report.Report()
    shown = list(report.feed([
        event(ImportPath="guards", Action="build-output", Output="undefined: x\n"),
        event(ImportPath="guards", Action="build-fail"),
    ]))  # fmt: skip
    assert report.failed
    assert shown == ["undefined: x\n"]
