"""error_on_graph_break: functions and blocks in which a graph break is an error, and those in which it is allowed."""

import pytest
import torch

import godynamo
from godynamo import exc
from godynamo.testing import CompileCounter

error_on_graph_break = godynamo.error_on_graph_break


@pytest.fixture
def x():
    return torch.ones(3)


def breaks(x):
    y = x + 1
    godynamo.graph_break("inside")
    return y * 2


@error_on_graph_break(True)
def forbidden(x):
    return breaks(x)


@error_on_graph_break(False)
def allowed(x):
    return breaks(x)


def test_in_a_decorated_function_it_is_raised(x):
    with pytest.raises(exc.Unsupported, match="inside") as e:
        godynamo.optimize(forbidden)(x)
    assert e.value.code == "GD0001"
    assert [row[0] for row in e.value.stack] == ["breaks", "forbidden", "in_region"]
    with pytest.raises(exc.Unsupported):
        godynamo.optimize(lambda x: forbidden(x) + 1)(x)
    assert torch.equal(forbidden(x), (x + 1) * 2)
    assert forbidden.__name__ == "forbidden"


def test_without_a_break_nothing_is_different(x):
    counter = CompileCounter()
    f = godynamo.optimize(error_on_graph_break(True)(lambda x: x * 2 + 1), backend=counter)
    assert torch.equal(f(x), x * 2 + 1)
    assert (counter.frame_count, counter.op_count) == (1, 2)
    plain = godynamo.optimize(lambda x: x * 2 + 1)
    plain(x)
    f(x)
    assert godynamo.cache_stats(f)["hits"] == 1


def test_the_innermost_region_decides(x):
    @error_on_graph_break(True)
    def outer(x):
        return allowed(x) + 1

    @error_on_graph_break(False)
    def outer_allowed(x):
        return forbidden(x) + 1

    assert torch.equal(godynamo.optimize(outer)(x), (x + 1) * 2 + 1)
    with pytest.raises(exc.Unsupported):
        godynamo.optimize(outer_allowed)(x)


def test_a_block_of_captured_code(x):
    @godynamo.optimize
    def f(x, where):
        x = x + 1
        if where == "before":
            godynamo.graph_break()
        with error_on_graph_break(True):
            x = x * 2
            if where == "inside":
                godynamo.graph_break()
            with error_on_graph_break(False):
                if where == "nested":
                    godynamo.graph_break()
                x = x - 1
        if where == "behind":
            godynamo.graph_break()
        return x * 3

    for where in ("nowhere", "before", "nested", "behind"):
        for _ in range(2):
            assert torch.equal(f(x, where), ((x + 1) * 2 - 1) * 3), where
    with pytest.raises(exc.Unsupported, match="graph_break"):
        f(x, "inside")


def test_a_block_that_an_exception_leaves_ends(x):
    @godynamo.optimize
    def f(x):
        try:
            with error_on_graph_break(True):
                y = x + 1
                raise ValueError
        except ValueError:
            y = x + 2
        godynamo.graph_break()
        return y * 2

    assert torch.equal(f(x), (x + 2) * 2)

    @error_on_graph_break(True)
    def raises(x):
        raise KeyError

    @godynamo.optimize
    def g(x):
        try:
            raises(x)
        except KeyError:
            y = x + 2
        godynamo.graph_break()
        return y * 2

    assert torch.equal(g(x), (x + 2) * 2)


def test_what_the_program_raises_is_its_own(x):
    @godynamo.optimize
    @error_on_graph_break(True)
    def f(x):
        y = x + 1
        return y, {}["missing"]

    with pytest.raises(KeyError):
        f(x)


def test_nopython_takes_precedence(x):
    with pytest.raises(exc.Unsupported):
        godynamo.optimize(allowed, nopython=True)(x)


def test_explain_shows_the_breaks_and_raises_none(x):
    report = godynamo.explain(forbidden)(x)
    assert report.graph_break_count == 1
    assert torch.equal(report.result, (x + 1) * 2)


def test_names_that_are_imported_on_first_use_are_known_in_captured_code():
    import os
    import subprocess
    import sys
    from pathlib import Path

    program = """
import godynamo, torch
def f(x):
    with godynamo.error_on_graph_break(True):
        godynamo.comptime.comptime.print_guards()
        return x + godynamo.is_exporting() + godynamo.is_dynamo_compiling()
assert godynamo.optimize(f, nopython=True)(torch.zeros(1)).item() == 1
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(godynamo.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_bad_input():
    with pytest.raises(TypeError, match="True or False, not 1"):
        error_on_graph_break(1)
    with pytest.raises(TypeError, match="decorates a function"):
        error_on_graph_break(True)(3)
