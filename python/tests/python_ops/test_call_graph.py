"""The seed document's function: its graph and the graph's text, copies of the graph, and the default mode."""

from __future__ import annotations

import copy
import gc
import json
import math
import operator
import pickle
import re
import sys

import pytest
import torch

import godynamo
from godynamo._backends import python_ops as _python_ops
from godynamo._backends import python_text
from harness.capture import nb
from python_ops_support import both_ways, kinds, make, note, same

torch.set_num_threads(1)


def read_file(x: str) -> str:
    return open(x).read()


LINE = read_file.__code__.co_firstlineno + 1
BOX = [1, 2]


def graph_of(fn, *args, python_ops=True):
    backend = nb()
    result = godynamo.optimize(fn=fn, backend=backend, python_ops=python_ops)(*args)
    assert len(backend.graphs) == 1
    return backend.graphs[0], result


@pytest.mark.row("S000-01")
def test_the_seeds_function_reads_the_file():
    with open(__file__) as f:
        text = f.read()
    for options in ({}, {"python_ops": True}, {"python_ops": "checked"}, {"backend": nb(), "python_ops": True}):
        compiled = godynamo.optimize(fn=read_file, **options)
        assert compiled(__file__) == text
        assert compiled(__file__) == text


@pytest.mark.row("S000-02")
def test_without_the_option_an_unknown_builtin_breaks_with_its_name_and_line():
    def f(x):
        y = x + 1
        open(__file__).close()
        return y * 2

    backend = nb()
    compiled = godynamo.optimize(fn=f, backend=backend)
    x = torch.ones(2)
    assert torch.equal(compiled(x), f(x))
    assert len(backend.graphs) == 2
    explained = godynamo.explain(f)(x)
    reason = explained.break_reasons[0]
    assert "<built-in function open>" in reason.reason
    assert reason.line == f.__code__.co_firstlineno + 2
    assert explained.python_ops == {}


GOLDEN = """\
graph(%x):
  %py_constant : PyObject = prim::PyConstant[value=<python object>]() # {place}
  %py_object_call : PyObject = ^<PyObjectCall>()(%py_constant, %x) # {place}
  %c.1 : str = prim::Constant[value="read"]() # {place}
  %getattr_1 : PyObject = ^getattr()(%py_object_call, %c.1) # {place}
  %py_object_call_1 : PyObject = ^<PyObjectCall>()(%getattr_1) # {place}
  %cast_from_python : str = prim::CastFromPython[types=str](%py_object_call_1) # {end}
  return (%cast_from_python)"""


@pytest.mark.row("S000-03", "S000-05", "S000-06", "S000-19")
def test_the_graph_prints_as_in_the_seed():
    gm, _ = graph_of(read_file, __file__, python_ops="checked")
    place, end = f"{__file__}:{LINE}:11", f"{__file__}:{LINE}:4"
    assert python_text.text(gm) == GOLDEN.format(place=place, end=end)


@pytest.mark.row("S000-03", "S000-06")
def test_the_inline_graph_has_the_same_nodes():
    explained = godynamo.explain(godynamo.optimize(fn=read_file, python_ops=True))(__file__)
    targets = re.findall(r"target=([^\]]*)\]\(args", explained.graphs[0])
    assert targets == ["prim::PyConstant", "^<PyObjectCall>()", "^getattr()", "^<PyObjectCall>()"]
    assert "args = (<python object>,)" in explained.graphs[0]
    assert explained.graph_break_count == 0


@pytest.mark.row("S000-05")
def test_every_python_operation_has_its_source_range():
    gm, _ = graph_of(read_file, __file__)
    nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
    assert nodes and all(n.meta["source_range"] == f"{__file__}:{LINE}:11" for n in nodes)


@pytest.mark.row("S000-04")
def test_a_constant_binds_the_object_and_not_a_copy():
    def f(x):
        return x + len(same(BOX)) * 1

    def g(x):
        return x, same(BOX)

    compiled = godynamo.optimize(fn=g, backend=nb(), python_ops=True)
    try:
        assert compiled(torch.ones(1))[1] is BOX
        BOX.append(3)
        assert compiled(torch.ones(1))[1] == [1, 2, 3]
        both_ways(f, torch.ones(1))
    finally:
        del BOX[2:]


@pytest.mark.row("S000-04")
def test_a_global_bound_to_another_object_is_seen():
    def f(x):
        return x, same(BOX)

    global BOX
    before, compiled = BOX, godynamo.optimize(fn=f, python_ops=True)
    assert compiled(torch.ones(1))[1] is before
    BOX = [7]
    try:
        assert compiled(torch.ones(1))[1] is BOX
    finally:
        BOX = before


@pytest.mark.row("S000-07", "S000-36")
def test_copies_of_a_graph_run_and_bind_the_same_objects():
    def f(x):
        return x + math.fsum(same(BOX))

    gm, result = graph_of(f, torch.ones(2))
    gc.collect()
    before = sys.getrefcount(BOX)
    clone = copy.deepcopy(gm)
    assert torch.equal(clone(torch.ones(2))[0], result)
    assert torch.equal(gm(torch.ones(2))[0], result)
    held = [v for v in vars(clone).values() if isinstance(v, _python_ops.PyObject)]
    assert any(h.value is BOX for h in held) or "^load_global()" in kinds(clone)
    del clone, held
    gc.collect()
    assert sys.getrefcount(BOX) == before
    assert kinds(gm) == kinds(copy.deepcopy(gm))


@pytest.mark.row("S000-07")
def test_a_graph_of_picklable_objects_pickles():
    def f(x):
        return x + operator.indexOf(json.JSONDecoder().decode("[5, 6]"), 6)

    gm, result = graph_of(f, torch.ones(2))
    again = pickle.loads(pickle.dumps(gm))
    assert torch.equal(again(torch.ones(2))[0], result)
    assert kinds(again) == kinds(gm)


@pytest.mark.row("S000-36")
def test_the_graph_runs_by_itself():
    gm, result = graph_of(read_file, __file__)
    assert gm(__file__)[0] == result
    assert gm.graph.lint() is None


@pytest.mark.row("S000-37")
def test_explain_counts_python_calls_by_callee():
    def f(x):
        for i in range(3):
            note(i)
        return x, json.dumps([1]), make().value

    explained = godynamo.explain(godynamo.optimize(fn=f, python_ops=True))(torch.ones(1))
    counts = explained.python_ops
    assert {k.rpartition(".")[2]: v for k, v in counts.items()}["note"] == 3
    assert "Python call" in str(explained) and "note: 3" in str(explained)


@pytest.mark.row("S000-03")
def test_the_option_is_checked_and_config_is_its_default():
    with pytest.raises(ValueError, match="python_ops"):
        godynamo.optimize(fn=read_file, python_ops="all")
    with godynamo.config.patch(python_ops=True):
        backend = nb()
        assert godynamo.optimize(fn=read_file, backend=backend)(__file__) == read_file(__file__)
        assert len(backend.graphs) == 1
