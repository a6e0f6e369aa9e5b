"""disable, run, skip, reset, graph_break, registries, marks on tensors, counters, explain, skipped code."""

import dataclasses
import gc
import threading
from pathlib import Path

import pytest
import torch

import godynamo
from godynamo import _C, utils
from godynamo._translator import trace_rules
from godynamo._user import registry
from godynamo.testing import CompileCounter, CompileCounterWithBackend, same


@pytest.fixture
def x():
    return torch.randn(3)


def test_disable_runs_the_users_code_and_what_it_calls(x):
    counter = CompileCounter()
    inner = godynamo.optimize(lambda x: x + 1, backend=counter)

    @godynamo.disable
    def outer(x):
        """Doc."""
        return inner(x) * 2

    assert (outer.__name__, outer.__doc__) == ("outer", "Doc.")
    assert torch.equal(outer(x), (x + 1) * 2)
    assert counter.frame_count == 0
    assert _C.get_mode() == _C.MODE_NORMAL
    inner(x)
    assert counter.frame_count == 1


def test_disable_in_its_other_spellings_and_after_an_exception(x):
    counter = CompileCounter()
    f = godynamo.optimize(lambda x: x + 1, backend=counter)
    with godynamo.disable():
        f(x)
    godynamo.disable()(lambda: f(x))()
    with pytest.raises(KeyError), godynamo.disable():
        raise KeyError
    assert counter.frame_count == 0
    assert _C.get_mode() == _C.MODE_NORMAL


def test_disable_is_of_one_thread(x):
    counter = CompileCounter()
    f = godynamo.optimize(lambda x: x + 1, backend=counter)
    with godynamo.disable():
        thread = threading.Thread(target=f, args=(x,))
        thread.start()
        thread.join()
    assert counter.frame_count == 1


def test_a_disabled_method_binds(x):
    class A:
        @godynamo.disable
        def f(self, x):
            return self, x

    a = A()
    assert a.f(x)[0] is a


def test_a_disabled_function_breaks_the_graph_and_runs(x):
    counter = CompileCounter()
    plain = godynamo.disable(lambda x: x * 3)
    f = godynamo.optimize(lambda x: plain(x + 1) - 1, backend=counter)
    assert torch.equal(f(x), (x + 1) * 3 - 1)
    assert counter.frame_count == 2


def test_run_uses_what_is_there_and_makes_nothing_new(x):
    counter = CompileCounter()
    f = godynamo.optimize(lambda x, n: x + n, backend=counter)
    f(x, 1)
    only = godynamo.run(f)
    assert torch.equal(only(x, 1), x + 1)
    assert torch.equal(only(x, 2), x + 2)
    with godynamo.run():
        assert torch.equal(f(x, 3), x + 3)
    assert counter.frame_count == 1
    stats = godynamo.cache_stats(f)
    assert (stats["translations"], stats["hits"]) == (1, 1)


def test_skip_leaves_the_frame_but_not_what_it_calls(x):
    counter = CompileCounter()
    inner = godynamo.optimize(lambda x: x + 1, backend=counter)

    def outer(x):
        return inner(x) * 2

    assert godynamo.skip(outer) is outer
    f = godynamo.optimize(outer, backend=counter)
    assert torch.equal(f(x), (x + 1) * 2)
    assert counter.frame_count == 1
    assert counter.op_count == 1
    assert godynamo.disable(outer, recursive=False) is outer


def test_reset_forgets_translations_and_counters(x):
    counter = CompileCounter()
    f = godynamo.optimize(lambda x: x + 1, backend=counter)
    f(x)
    assert utils.counters["frames"] == {"total": 1, "ok": 1}
    assert utils.counters["stats"] == {"calls_captured": 1, "unique_graphs": 1}
    godynamo.reset()
    assert not utils.counters
    assert not len(utils.orig_code_map)
    f(x)
    assert counter.frame_count == 2


def test_recompiles_are_counted_by_reason():
    utils.counters.clear()
    f = godynamo.optimize(lambda x, s: x + 1 if s == "a" else x * 2)
    for s in "abab":
        f(torch.ones(2), s)
    (reason,) = utils.counters["recompiles"]
    assert reason.startswith("s == 'a': found 'b'") and utils.counters["recompiles"][reason] == 1


def test_graph_break_is_nothing_outside(x):
    assert godynamo.graph_break() is None
    assert godynamo.is_compiling() is False
    assert godynamo.optimize(lambda x: x + godynamo.is_compiling())(x).equal(x + 1)


def test_disallow_in_graph_breaks_there(x):
    def mine(x):
        return x * 2

    assert godynamo.disallow_in_graph([mine]) == [mine]
    report = godynamo.explain(lambda x: mine(x + 1) + 1)(x)
    assert torch.equal(report.result, (x + 1) * 2 + 1)
    assert report.graph_break_count == 1


def allowed(x, y):
    if x.sum() > 0:  # would break the graph
        return x + y
    return x - y


def test_allow_in_graph_is_one_node(x):
    assert godynamo.allow_in_graph(allowed) is allowed
    try:
        backend = CompileCounterWithBackend("eager")
        f = godynamo.optimize(lambda x: allowed(x, x * 2) + 1, backend=backend)
        assert torch.equal(f(x), allowed(x, x * 2) + 1)
        assert (backend.frame_count, backend.op_count) == (1, 3)
        assert allowed in [n.target for n in backend.graphs[0].graph.nodes]
    finally:
        registry.unregister(allowed)


def test_the_registry_goes_by_identity_and_forgets_the_dead():
    class Odd:
        def __eq__(self, other):
            raise AssertionError("looked at")

        __hash__ = None

        def __call__(self):
            return 1

    odd = Odd()
    registry.register(odd, "opaque")
    assert registry.kind_of(odd) == "opaque"
    assert registry.kind_of(Odd()) == ""
    address = id(odd)
    del odd
    gc.collect()
    assert address not in registry._kinds


def test_substitutes_are_found():
    def original():
        return 1

    @godynamo.substitute_in_graph(original)
    def replacement():
        return 1

    assert registry.substitute_of(original) == (replacement, False)
    assert registry.substitute_of(replacement) is None
    assert registry.kind_of(original) == "substitute"


def test_marks_are_those_torch_reads():
    t = torch.randn(2, 3)
    godynamo.mark_dynamic(t, 0)
    godynamo.mark_dynamic(t, [-1])
    godynamo.mark_static(t)
    assert t._dynamo_dynamic_indices == {0, 1}
    assert t._dynamo_static_indices == {0, 1}
    with pytest.raises(IndexError):
        godynamo.mark_dynamic(t, 2)


def test_explain_reports_graphs_breaks_and_guards(x):
    def f(x):
        y = x.sin()
        godynamo.graph_break()
        return y + 1

    report = godynamo.explain(f)(x)
    assert torch.equal(report.result, x.sin() + 1)
    assert (report.graph_count, report.graph_break_count, report.op_count) == (2, 1, 2)
    [reason] = report.break_reasons
    assert reason.code == "GD0001"
    assert reason.line == f.__code__.co_firstlineno + 2
    assert all(text.startswith("___guarded_code.valid") for text in report.guards)
    text = str(report)
    assert "Graph count: 2" in text
    assert "call_method[target=sin]" in text
    assert Path(__file__).name in text
    assert report.captured_share == 1.0


def test_explain_leaves_an_optimized_functions_own_entries_alone(x):
    f = godynamo.optimize(lambda x: x + 1)
    f(x)
    assert godynamo.explain(f)(x).graph_count == 1
    assert godynamo.cache_stats(f) == {"hits": 0, "misses": 1, "translations": 1}
    with pytest.raises(TypeError):
        godynamo.guards(lambda x: x)


def test_guards_are_texts_with_lines(x):
    f = godynamo.optimize(lambda x, n: x + n)
    f(x, 2)
    [entry] = godynamo.guards(f)
    assert entry.valid
    assert "n == 2" in entry.text
    assert any(where and where[0] == __file__ for _, where in entry.parts)
    assert entry.text in str(entry)


def test_recompiles_leave_their_reason(x):
    f = godynamo.optimize(lambda x, n: x + n)
    f(x, 2)
    f(x, 3)
    assert "n == 2" in utils.guard_failures[f.__code__][-1]


def test_code_maps_go_by_identity_and_forget_the_dead():
    source = "lambda: 1"
    a, b = (compile(source, "f", "eval") for _ in range(2))
    table = utils.CodeMap()
    table[a] = 1
    assert a == b
    assert b not in table
    assert (dict(table), len(table)) == ({a: 1}, 1)
    del a
    assert len(table) == 0


@dataclasses.dataclass
class Point:
    x: int = 0


def generator():
    yield 1


async def coroutine():
    pass


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (compile("1", "m.py", "exec"), "module-level"),
        (generator.__code__, "generator"),
        (coroutine.__code__, "coroutine"),
        (torch.optim.SGD.step.__code__, "torch"),
        (godynamo.optimize.__code__, "godynamo"),
        (gc.get_referrers.__class__ and dataclasses.fields.__code__, "standard library"),
        (Point.__init__.__code__, "dataclasses"),
        (torch.fx.symbolic_trace(torch.nn.Identity()).forward.__func__.__code__, "FX"),
    ],
)
def test_kinds_of_code_the_hook_leaves_alone(code, word):
    assert word in trace_rules.skip_reason(code)
    assert trace_rules.skip_code(code)


@pytest.mark.parametrize("fn", [allowed, torch.nn.Linear.forward, test_skip_leaves_the_frame_but_not_what_it_calls])
def test_other_code_is_not_left_alone(fn):
    assert trace_rules.skip_reason(fn.__code__) == ""


def test_same_compares_types_bits_and_structure():
    t = torch.tensor([1.0, float("nan")])
    assert same([t, {"a": 1}], [t.clone(), {"a": 1}], tol=0)
    assert not same(t, t.double())
    assert not same(1, 1.0)
    assert not same((t,), [t])
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]), tol=0)
    assert same(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
    assert same(float("nan"), float("nan"))


def test_the_reason_of_disable_and_the_message_of_graph_break_are_shown(x):
    plain = godynamo.disable(lambda x: x * 2, reason="it is slow")
    report = godynamo.explain(lambda x: plain(x + 1) + (x - 1, godynamo.graph_break("take a rest"))[0])(x)
    assert torch.equal(report.result, (x + 1) * 2 + (x - 1))
    reasons = [r.reason for r in report.break_reasons]
    assert len(reasons) == 2
    assert reasons[0].endswith("(it is slow)")
    assert reasons[1].endswith(": take a rest")


def test_skip_frame_leaves_the_whole_call_to_cpython(x):
    counter = CompileCounter()

    def inner(x):
        return x + 1

    @godynamo.optimize(backend=counter)
    def f(x, skip):
        y = inner(x)
        if skip:
            godynamo.skip_frame("not this one")
        return y * 2

    assert torch.equal(f(x, True), (x + 1) * 2)
    assert (counter.frame_count, counter.op_count) == (1, 1)  # only inner
    assert torch.equal(f(x, False), (x + 1) * 2)
    assert (counter.frame_count, counter.op_count) == (2, 3)
    assert godynamo.skip_frame() is None


def test_what_torch_was_told_counts_here_too(x):
    import torch._dynamo

    plain = torch.compiler.disable(lambda x: x * 2, reason="torch says so")
    report = godynamo.explain(lambda x: plain(x + 1))(x)
    assert [r.code for r in report.break_reasons] == ["GD0002"]
    assert "torch says so" in report.break_reasons[0].reason
    report = godynamo.explain(lambda x: (x + 1, torch._dynamo.graph_break("torch's own"))[0])(x)
    assert [r.code for r in report.break_reasons] == ["GD0001"]
    assert "torch's own" in report.break_reasons[0].reason


def test_is_dynamo_disable_recursive():
    def f():
        pass

    assert godynamo.is_dynamo_disable_recursive(f) is None
    assert godynamo.is_dynamo_disable_recursive(godynamo.disable(f)) is True
    assert godynamo.is_dynamo_disable_recursive(godynamo.disable(f, recursive=False)) is False
    assert godynamo.is_dynamo_disable_recursive(len) is None
