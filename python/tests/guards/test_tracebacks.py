"""Exceptions that leave transformed code show the user's frames."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Mapping

import pytest
import torch

from godynamo import _C


def helper(a):
    b = a + 1
    raise ValueError("deep") if b else None


def middle(a):
    return helper(a) + 1


def user(a):
    return middle(a) * 2


def fix(function, rows, chains, call, operations=None):
    """Run `call` with an entry for `function`, as the call path does: if it raises, the traceback is rewritten."""
    entry = _C.make_entry(
        {
            "nslots": 1, "nregs": 3, "nodes": [("VALID", 0, 0, 0, 0, 0, 0)], "parts": ("v",), "function": function,
            "tb_rows": rows, "chains": chains, "operations": operations, "orig_code": user.__code__,
        }
    )  # fmt: skip
    return _C._entry_call(entry, call)


def lasti_of(code):
    """Return the byte offset and line of the instruction that raises, or of the first call."""
    import dis

    found = list(dis.get_instructions(code))
    calls = [i for i in found if i.opname == "RAISE_VARARGS"] or [i for i in found if i.opname == "CALL"]
    return calls[0].offset, calls[0].positions.lineno


def chain_of(*codes):
    out = []
    for code in codes:
        lasti, line = lasti_of(code)
        out.append((code, globals(), lasti, line))
    return tuple(out)


def transformed(a):
    raise ValueError("deep")


WHOLE = [(0, 10_000, 0, 0)]


def frames_of(exc):
    return [(f.filename, f.lineno, f.name, f.line) for f in traceback.extract_tb(exc.__traceback__)][1:]


def failing(call):
    with pytest.raises(ValueError) as info:
        call()
    return info.value


def test_inlined_frames_appear_as_if_they_had_run():
    plain = failing(lambda: user(1))
    chains = (chain_of(user.__code__, middle.__code__, helper.__code__),)
    ours = failing(lambda: fix(transformed, WHOLE, chains, lambda: transformed(1)))
    eager = [f for f in frames_of(plain) if f[2] in ("user", "middle", "helper")]
    got = [f for f in frames_of(ours) if f[2] in ("user", "middle", "helper", "transformed")]
    assert got == eager
    # Carets are compared as well: they follow from lasti and the code's own positions.
    tail = lambda e: "".join(traceback.format_exception(e)).split("in user")[1]  # noqa: E731
    assert tail(ours) == tail(plain)


def test_frames_shown_can_be_looked_at():
    chains = (chain_of(user.__code__, middle.__code__, helper.__code__),)
    ours = failing(lambda: fix(transformed, WHOLE, chains, lambda: transformed(1)))
    tb = ours.__traceback__
    while tb.tb_next is not None:
        frame = tb.tb_frame
        assert isinstance(frame.f_locals, Mapping)  # a proxy from 3.13 on
        assert inspect.getframeinfo(tb).filename == __file__
        tb = tb.tb_next
    assert tb.tb_frame.f_code is helper.__code__
    assert tb.tb_frame.f_lineno == tb.tb_lineno
    assert traceback.TracebackException.from_exception(ours, capture_locals=True).format() is not None
    tb.tb_frame.clear()


def closing(value):
    def inner(a):
        return value + undefined(a)  # noqa: F821

    cell_user = lambda: inner  # noqa: E731
    return inner, cell_user


def test_a_code_with_free_variables_and_cells_is_shown_safely():
    inner, _ = closing(1)
    code = inner.__code__
    outer = closing.__code__
    chains = (
        (
            (outer, globals(), 4, outer.co_firstlineno + 1),
            (code, globals(), lasti_of(code)[0], code.co_firstlineno + 1),
        ),
    )
    ours = failing(lambda: fix(transformed, WHOLE, chains, lambda: transformed(1)))
    tb = ours.__traceback__
    names = []
    while tb is not None:
        names.append(tb.tb_frame.f_code.co_name)
        assert tb.tb_frame.f_locals is not None
        tb = tb.tb_next
    assert names[-2:] == ["closing", "inner"]
    for lasti in (-1, 0, 10**6):
        chains = (((code, globals(), lasti, 5),),)
        ours = failing(lambda: fix(transformed, WHOLE, chains, lambda: transformed(1)))
        tb = ours.__traceback__
        while tb is not None:
            assert tb.tb_frame.f_locals is not None
            assert tb.tb_frame.f_lineno is None or tb.tb_frame.f_lineno > 0
            tb = tb.tb_next


def resume(a):
    raise ValueError("deep")


def with_resume(a):
    return resume(a)


def test_the_call_of_a_resume_function_is_dropped():
    lasti = lasti_of(with_resume.__code__)[0]
    rows = [(0, lasti // 2, 0, 0), (lasti // 2, lasti // 2 + 8, 0, 1)]
    ours = failing(lambda: fix(with_resume, rows, (chain_of(user.__code__),), lambda: with_resume(1)))
    names = [f[2] for f in frames_of(ours)]
    assert "with_resume" not in names
    assert names[-1] == "resume"
    assert "user" not in names


def outer_transformed(a):
    return fix(transformed, WHOLE, (chain_of(middle.__code__, helper.__code__),), lambda: transformed(a))


def test_several_transformed_frames_in_one_traceback():
    ours = failing(lambda: fix(outer_transformed, WHOLE, (chain_of(user.__code__),), lambda: outer_transformed(1)))
    names = [f[2] for f in frames_of(ours) if f[2] in ("user", "middle", "helper", "transformed", "outer_transformed")]
    assert names == ["user", "middle", "helper"]


def test_an_instruction_without_a_row_keeps_its_entry():
    ours = failing(lambda: fix(transformed, [(5000, 6000, 0, 0)], (chain_of(user.__code__),), lambda: transformed(1)))
    assert frames_of(ours)[-1][2] == "transformed"


def test_bad_chains_leave_the_exception_alone():
    for chains in ((3,), ((3,),), (((1, 2, 3, 4),),), ()):
        ours = failing(lambda: fix(transformed, WHOLE, chains, lambda: transformed(1)))
        assert str(ours) == "deep"
        assert frames_of(ours)[-1][2] == "transformed"


def calls_a_graph(a):
    return transformed(a)


GRAPH = [(0, 10_000, 0, 2)]


@pytest.mark.parametrize("operations", [None, 3, (), (3,), (("mul", 3),), ((1, 2, 3),)])
def test_a_graph_whose_failed_operation_is_not_known_shows_its_own_frames(operations):
    chains = (chain_of(user.__code__, middle.__code__),)
    ours = failing(lambda: fix(calls_a_graph, GRAPH, chains, lambda: calls_a_graph(1), operations))
    assert [f[2] for f in frames_of(ours)][-3:] == ["user", "middle", "transformed"]


def test_a_failed_operations_frames_stand_for_those_of_the_graph():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(transformed, (graph.call_function(abs, (x,), name="first"),), name="second"))
    gm = torch.fx.GraphModule({}, graph)

    def calls_gm(a):
        return gm.forward(a)

    operations = (("first", chain_of(user.__code__)), ("second", chain_of(user.__code__, middle.__code__)))
    ours = failing(lambda: fix(calls_gm, GRAPH, (chain_of(helper.__code__),), lambda: calls_gm(1), operations))
    assert [f[2] for f in frames_of(ours)][-3:] == ["user", "middle", "transformed"]


def test_the_innermost_row_counts_and_gaps_are_gaps():
    lasti = lasti_of(transformed.__code__)[0] // 2
    unit = next(i for i in range(lasti, lasti + 12) if i * 2 >= lasti * 2)
    rows = [(0, 1, 0, 0), (1, unit + 12, 1, 0)]
    chains = (chain_of(helper.__code__), chain_of(user.__code__))
    ours = failing(lambda: fix(transformed, rows, chains, lambda: transformed(1)))
    assert frames_of(ours)[-1][2] == "user"


def test_reraising_and_context_survive():
    def call():
        try:
            raise KeyError("first")
        except KeyError:
            transformed(1)

    ours = failing(lambda: fix(transformed, WHOLE, (chain_of(user.__code__),), call))
    assert isinstance(ours.__context__, KeyError)
    assert [f[2] for f in frames_of(ours)][-1] == "user"


def test_rewriting_leaks_nothing():
    chains = (chain_of(user.__code__, middle.__code__, helper.__code__),)

    def once():
        try:
            fix(transformed, WHOLE, chains, lambda: transformed(1))
        except ValueError:
            pass

    for _ in range(5):
        once()
    before = sys.getallocatedblocks(), sys.getrefcount(helper.__code__)
    for _ in range(500):
        once()
    after = sys.getallocatedblocks(), sys.getrefcount(helper.__code__)
    assert after[1] == before[1]
    assert abs(after[0] - before[0]) < 100
