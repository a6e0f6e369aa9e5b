"""sys.monitoring (PEP 669): while a tool listens, functions run in CPython, so the tool sees their events."""

import contextlib
import sys

import pytest
import torch

import godynamo
from godynamo import _C

#: `make test PYTHON=3.12` runs these tests.
pytestmark = pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="no sys.monitoring before 3.12")

TOOL = 4


@contextlib.contextmanager
def listening(*codes):
    """Listen to the starts of all functions, or of those of the given codes. Yields the list of names."""
    monitoring, names = sys.monitoring, []
    monitoring.use_tool_id(TOOL, "test")
    monitoring.register_callback(TOOL, monitoring.events.PY_START, lambda code, _: names.append(code.co_name))
    for code in codes:
        monitoring.set_local_events(TOOL, code, monitoring.events.PY_START)
    if not codes:
        monitoring.set_events(TOOL, monitoring.events.PY_START)
    try:
        yield names
    finally:
        for code in codes:
            monitoring.set_local_events(TOOL, code, 0)
        monitoring.set_events(TOOL, 0)
        monitoring.register_callback(TOOL, monitoring.events.PY_START, None)
        monitoring.free_tool_id(TOOL)


def inner(x):
    return x * 2


def outer(x):
    return inner(x) + 1


def cut(x):
    y = x + 1
    godynamo.graph_break()
    return inner(y)


def test_a_tool_sees_every_function():
    compiled, x = godynamo.optimize("eager")(outer), torch.ones(2)
    compiled(x)
    hits = compiled.cache.stats()["hits"]
    with listening() as names:
        assert torch.equal(compiled(x), outer(x))
    assert [n for n in names if n in ("outer", "inner")] == ["outer", "inner"] * 2
    assert compiled.cache.stats()["hits"] == hits
    compiled(x)
    assert compiled.cache.stats()["hits"] == hits + 1


def test_a_tool_that_listens_to_one_function():
    compiled, x = godynamo.optimize("eager")(outer), torch.ones(2)
    compiled(x)
    with listening(outer.__code__) as names:
        compiled(x)
    compiled(x)
    assert names == ["outer"]


def test_a_tool_that_listens_to_a_frame_of_the_hook():
    def calls(x):
        godynamo.graph_break()
        return cut(x)

    compiled, x = godynamo.optimize("eager")(calls), torch.ones(2)
    compiled(x)
    with listening(cut.__code__) as names:
        assert torch.equal(compiled(x), cut(x))
    assert names == ["cut"] * 2
    before = _C.counters()["internal_errors"]
    compiled(x)
    assert _C.counters()["internal_errors"] == before == 0
