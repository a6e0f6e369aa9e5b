"""The benchmark's statistics, report and workloads: all sides run the same computation."""

import timeit

import pytest

import project_support
import report
from godynamo._tools.bench import same, timing


def test_a_figure_is_the_best_round_and_says_how_far_the_others_lie():
    taken = timing.figure([4.0, 1.0, 2.0, 3.0])
    assert (taken.best, taken.median, taken.rounds) == (1.0, 2.5, 4)
    assert taken.spread == 2.0


def test_a_figure_needs_a_round():
    with pytest.raises(ValueError, match="no rounds"):
        timing.figure([])


def test_a_round_is_filled_with_calls():
    asked = []

    def run(n):
        asked.append(n)
        return n * 1e-6

    assert timing.calls_per_round(run, 0.004) == 4000
    assert asked[0] == 1


def test_a_call_longer_than_a_round_is_made_once():
    assert timing.calls_per_round(lambda n: n * 0.5, 0.004) == 1


def test_sides_take_turns_and_the_first_one_changes():
    order = []

    def side(name, seconds):
        def run(n):
            order.append(name)
            return seconds * n

        return run

    figures = timing.in_turn({"eager": side("a", 1.0), "other": side("b", 2.0)}, rounds=3)
    assert order[2:] == ["a", "b", "b", "a", "a", "b"]
    assert figures["other"].best == 2 * figures["eager"].best


def test_a_ratio_is_the_rounds_median_and_leaves_out_what_rarely_misses_it():
    base = [1.0] * 12
    taken = timing.ratio([0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 0.9, 1.1, 1.2, 1.3, 9.0], base)
    assert (taken.median, taken.low, taken.high) == (0.9, 0.7, 1.2)  # leaves out 2 of 12 on each side: 96 % confidence
    assert timing.ratio([0.5] + [2.0] * 5, [1.0] * 6).low == 0.5  # a 95 % interval needs at least 6
    with pytest.raises(ValueError, match="no rounds"):
        timing.ratio([], [])


def test_a_slow_minute_hits_both_sides_of_a_ratio():
    taken = timing.ratio([1.0, 10.0, 1.0, 20.0, 1.0, 30.0], [2.0, 20.0, 2.0, 40.0, 2.0, 60.0])
    assert (taken.low, taken.median, taken.high) == (0.5, 0.5, 0.5)


def test_comparison_gives_difference_and_ratio_to_eager():
    made = {"eager": timing.figure([2e-6]), "godynamo": timing.figure([1e-6, 3e-6])}
    compared = timing.compare(made)
    assert compared["godynamo"]["ratio"] == pytest.approx(0.5)
    assert compared["godynamo"]["over_eager_us"] == pytest.approx(-1.0)
    assert compared["eager"]["ratio"] == 1.0


def result_with(path, value):
    result = value
    for key in reversed(path):
        result = {key: result}
    return result


@pytest.mark.parametrize("goal", report.GOALS, ids=lambda goal: goal.text)
def test_each_goal_is_met_at_its_bound_and_missed_beyond(goal):
    beyond = goal.bound * (0.99 if goal.at_least else 1.01)

    def verdict(value):
        return next(met for g, _, met in report.judged(result_with(goal.path, value)) if g is goal)

    assert verdict(goal.bound) is True
    assert verdict(beyond) is False
    assert next(met for g, _, met in report.judged({}) if g is goal) is None


def test_the_goals_name_workloads_that_exist():
    import godynamo_workloads as workloads

    known = {workload.name for workload in workloads.WORKLOADS}
    assert {goal.path[1] for goal in report.GOALS if goal.path[0] == "calls"} <= known


def test_the_table_shows_errors_and_missing_sides():
    text = report.markdown({
        "rounds": 3,
        "calls": {"x": {"about": "a call", "eager": {"us": 1.0}, "godynamo": {"error": "broken"}}},
        "errors": {"calls/x/godynamo": "broken"},
    })  # fmt: skip
    assert "| a call | 1.000 | - | error |" in text
    assert "- calls/x/godynamo: broken" in text


def test_the_table_shows_what_is_no_time_per_call():
    text = report.markdown({
        "capture": {"torch.compile": {"ms": 200.0}, "godynamo": {"ms": 20.0}},
        "guards": {"two tensors, full": {"ns": 41.0}},
        "unrelated": {"fib": {"ratio": 1.0}},
    })  # fmt: skip
    assert "| first call of a function of 600 operations, ms | 200 | 20 |" in text
    assert "| guards alone, two tensors, full, ns | - | 41 |" in text
    assert "fib: with godynamo over without | - | 1.000x |" in text


def test_the_table_goes_between_the_markers_of_the_readme():
    import run

    text = f"before {run.BEGIN} old {run.END} after"
    assert run.insert_table(text, "new") == f"before {run.BEGIN}\nnew\n{run.END} after"
    run.insert_table((project_support.ROOT / "README.md").read_text(), "new")
    with pytest.raises(ValueError, match="bench:begin"):
        run.insert_table("nothing here", "new")


def test_errors_inside_of_groups_are_found():
    import run

    result = {
        "calls": {"x": {"about": "a", "godynamo": {"error": "broken"}}},
        "capture": {"godynamo": {"error": "worse"}},
    }
    assert run.errors_of(result) == {"calls/x/godynamo": "broken", "capture/godynamo": "worse"}


def test_every_workload_is_timed_on_what_is_checked():
    import godynamo_workloads as workloads

    for workload in workloads.WORKLOADS:
        with workload.context():
            first, second = (workload.prepare(lambda target: target) for _ in range(2))
            assert same.difference(first.check(), second.check()) == 0, workload.name
            assert timeit.Timer(first.statement, globals=first.names).timeit(1) > 0
            assert first.calls == first.statement.count(";") + 1


@pytest.mark.parametrize("count", [1, 5, 600])
def test_the_function_of_many_operations_has_that_many(count):
    import ast

    import godynamo_workloads as workloads

    (function,) = ast.parse(workloads.many_ops_source(count, 7)).body
    assert function.name == "many_7"
    assert len(function.body) == count + 1
