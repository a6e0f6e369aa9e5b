"""explain's counts: torch calls and bytecodes, in graphs and outside, and the reasons for those outside."""

import contextlib
import dis
import io
import json
import re
import sys
import threading
from pathlib import Path

import pytest
import torch

import godynamo
from godynamo import _C, config
from harness.versions import as_printed

NOT_COUNTED = {"RESUME", "CACHE", "PRECALL", "EXTENDED_ARG", "NOP", "MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR"}
NOT_COUNTED |= {"END_FOR", "POP_ITER", "NOT_TAKEN"}  # the end of a loop, and what only sys.monitoring sees
PY312 = sys.version_info >= (3, 12)
PY313 = sys.version_info >= (3, 13)
BRANCH = "POP_JUMP_IF_FALSE" if PY312 else "POP_JUMP_FORWARD_IF_FALSE"


def instructions(fn, *lines):
    """Count the instructions of a function, or only those on ``lines``, relative to its first line.

    The handler at the end of a generator or coroutine, which 3.12 adds, does not run and is not counted.
    """
    first = fn.__code__.co_firstlineno
    wanted = {first + line for line in lines}
    begun, count, before = False, 0, ""
    for inst in dis.get_instructions(fn):
        if inst.argrepr == "INTRINSIC_STOPITERATION_ERROR":
            break
        begun = begun or inst.opname == "RESUME"
        popped = PY313 and (before, inst.opname) == ("END_FOR", "POP_TOP")  # FOR_ITER jumps over it as well
        skipped = inst.opname in NOT_COUNTED or popped
        if begun and not skipped and (not lines or inst.positions.lineno in wanted):
            count += 1
        before = inst.opname
    return count


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0])


def shares(explanation):
    b, t = explanation.bytecodes, explanation.torch_calls
    return (b.captured, b.outside), (t.captured, t.outside)


def straight(x):
    y = x.sin() + 1
    return torch.relu(y)


def test_a_function_captured_whole_is_captured_to_100_percent(x):
    e = godynamo.explain(straight)(x)
    assert torch.equal(e.result, straight(x))
    assert shares(e) == ((instructions(straight), 0), (3, 0))
    assert e.bytecodes.share == e.torch_calls.share == 1.0
    assert e.kept_out == [] and e.counted
    [row] = e.functions
    assert (row.function, row.file, row.line) == ("straight", __file__, straight.__code__.co_firstlineno)
    assert row.bytecodes == e.bytecodes and row.torch_calls == e.torch_calls


def test_an_inlined_callee_counts_with_its_own_instructions(x):
    def helper(a):
        return a * 2

    def f(x):
        return helper(helper(x)) - 1

    e = godynamo.explain(f)(x)
    assert shares(e) == ((instructions(f) + instructions(helper), 0), (2, 0))
    assert [r.function.split(".")[-1] for r in e.functions] == ["helper", "f"]
    assert [r.torch_calls.captured for r in e.functions] == [1, 1]


def test_a_loop_counts_its_instructions_once(x):
    def f(x):
        for _ in range(5):
            x = x + 1
        return x

    e = godynamo.explain(f)(x)
    assert e.op_count == 5
    assert shares(e) == ((instructions(f), 0), (1, 0))


def test_what_is_not_reached_is_not_counted(x):
    def f(x, deep):
        if deep:
            return x.sin().cos().tan()
        return x + 1

    e = godynamo.explain(f)(x, False)
    assert shares(e) == ((instructions(f, 1, 3), 0), (1, 0))


def test_a_print_that_splits_a_loop_keeps_out_one_instruction(x, capsys):
    def f(x):
        i = 0
        while i < 3:
            x = x + i
            print("turn", i)
            i += 1
        return x * 2

    with config.patch(queue_effects=False):
        e = godynamo.explain(f)(x)
    assert torch.equal(e.result, (x + 3) * 2)
    assert shares(e) == ((instructions(f) - 1, 1), (2, 0))
    [row] = e.kept_out
    assert (row.callee, row.code, row.count) == ("builtins.print", "GD0201", 3)
    assert (row.bytecodes, row.torch_calls) == (1, 0)
    assert (row.function, row.file, row.line) == ("f", __file__, f.__code__.co_firstlineno + 4)


@pytest.mark.row("S000-37")
def test_a_disabled_callee_keeps_out_itself_and_what_it_calls(x):
    def helper(a):
        return a.exp()

    @godynamo.disable
    def plain(a):
        b = helper(a.sin())
        return b + 1

    def f(x):
        y = plain(x + 1)
        return y * 2

    e = godynamo.explain(f)(x)
    inside = instructions(plain.__wrapped__) + instructions(helper)
    assert shares(e) == ((instructions(f) - 1, 1 + inside), (2, 3))
    [row] = e.kept_out
    assert row.callee.endswith("plain") and row.callee_line == plain.__wrapped__.__code__.co_firstlineno
    assert (row.code, row.count, row.torch_calls, row.bytecodes) == ("GD0002", 1, 3, 1 + inside)


def test_an_unsupported_torch_call_is_one_that_was_kept_out(x):
    def f(x):
        y = x + 1
        n = y.sum().tolist()
        return y * n

    e = godynamo.explain(f)(x)
    assert shares(e) == ((instructions(f) - 1, 1), (3, 1))
    [row] = e.kept_out
    assert (row.code, row.callee, row.torch_calls) == ("GD0102", "Tensor.tolist", 1)


def test_both_arms_of_a_resume_function_count(x):
    def f(x):
        if x.sum() > 0:
            y = x + 1
        else:
            y = x.sin().cos()
        return y * 2

    e = godynamo.explain(f)(x)
    assert e.graph_count == 2 and [r.code for r in e.break_reasons] == ["GD0101"]
    last = instructions(f, 5) // 2 if PY312 else instructions(f, 5)  # 3.12 has the last line once in each arm
    assert shares(e) == ((instructions(f, 1, 2) + last - 1, 1), (4, 0))
    [row] = e.kept_out
    assert (row.callee, row.code, row.line) == (BRANCH, "GD0101", f.__code__.co_firstlineno + 1)


def test_a_generator_inside_is_captured_and_one_from_outside_is_not(x):
    def numbers(x):
        yield x + 1
        yield x.sin()

    def inside(x):
        return sum([v * 2 for v in numbers(x)])

    e = godynamo.explain(inside)(x)
    assert e.bytecodes.share == e.torch_calls.share == 1.0 and e.graph_count == 1

    def outside(g):
        return [v * 2 for v in g]

    e = godynamo.explain(outside)(numbers(x))
    assert torch.equal(e.result[1], x.sin() * 2)
    assert e.torch_calls.outside >= 2
    of_generator = [r for r in e.functions if r.function.endswith("numbers")]
    assert [(r.bytecodes.captured, r.bytecodes.outside) for r in of_generator] == [(0, instructions(numbers))]
    assert "GD0302" in {r.code for r in e.kept_out if r.torch_calls or r.bytecodes > 1}


def test_a_frame_left_to_cpython_counts_as_a_whole(x):
    async def f(x):
        return x.sin() + 1

    def run(x):
        try:
            f(x).send(None)
        except StopIteration as stop:
            return stop.value

    e = godynamo.explain(run)(x)
    assert torch.equal(e.result, x.sin() + 1)
    rows = {r.function: r for r in e.kept_out}
    row = next(r for name, r in rows.items() if name.endswith(".f"))
    assert (row.code, row.callee_line, row.torch_calls) == ("GD0302", f.__code__.co_firstlineno, 2)
    assert row.bytecodes == instructions(f)


def test_a_skipped_function_keeps_out_its_own_frame_alone(x):
    def helper(a):
        return a * 2 + 1

    @godynamo.skip
    def left(a):
        return helper(a.sin())

    def f(x):
        return left(x) - 1

    e = godynamo.explain(f)(x)
    assert torch.equal(e.result, x.sin() * 2 + 1 - 1)
    rows = {r.function.split(".")[-1]: r for r in e.functions}
    assert (rows["helper"].torch_calls.captured, rows["helper"].torch_calls.outside) == (2, 0)
    assert (rows["left"].torch_calls.captured, rows["left"].torch_calls.outside) == (0, 1)
    assert "GD0704" in {r.code for r in e.kept_out}


def test_all_that_a_module_does_inside_of_torch_is_one_call(x):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))

        def forward(self, x):
            return self.layers(x) + 1

    net = Net()
    captured = godynamo.explain(net)(x)
    assert captured.op_count == 4
    assert shares(captured) == ((instructions(Net.forward), 0), (2, 0))
    outside = godynamo.explain(godynamo.disable(net.forward))(x)
    assert shares(outside) == ((0, instructions(Net.forward)), (0, 2))


def test_what_only_looks_at_a_tensor_is_no_torch_call(x):
    def f(x):
        n = x.size(0) + x.dim() + len(x) + x.numel()
        return n if x.is_floating_point() and torch.is_tensor(x) and x.shape[0] == 3 else x

    for e in godynamo.explain(f)(x), godynamo.explain(godynamo.disable(f))(x):
        assert e.torch_calls.total == 0 and e.bytecodes.total > 0


def in_contexts(x):
    with torch.no_grad(), torch.autocast("cpu"), torch.profiler.record_function("block"):
        y = x @ x
    with torch.inference_mode(), torch.set_grad_enabled(False):
        return y + x.mean()


OPERATIONS = {
    "contexts": in_contexts,
    "operators": lambda x: (-x + 1) ** 2 / 3 - x @ x,
    "reflected": lambda x: 1 - (2 / (x + 3)),
    "comparison": lambda x: (x > 1) & ~(x == 2),
    "subscript": lambda x: x[0] + x[1:].sum() + x[x > 1].sum(),
    "store": lambda x: x.clone().__setitem__(0, 1.0),
    "functional": lambda x: torch.nn.functional.gelu(torch.nn.functional.softmax(x, 0)),
    "builtins": lambda x: sum([x, x]) + abs(x) + max(x[0], x[1]) + pow(x, 2),
    "properties": lambda x: x.view(1, 3).T + x.real,
    "constructors": lambda x: torch.zeros(3) + torch.ones_like(x) + torch.arange(3) + x.new_zeros(3),
    "many results": lambda x: x.sort()[0] + torch.topk(x, 1)[0] + torch.stack([x, x]).sum(0),
    "in place": lambda x: x.clone().add_(1).mul_(2),
    "walked": lambda x: [a + 1 for a in x],
    "unpacked": lambda x: [a * b for a, b in [x[:2]] for _ in range(2)],
    "classes": lambda x: torch.Tensor.sin(x) + torch.Tensor.add(x, 1),
    "ops": lambda x: torch.ops.aten.sin(x) + torch.ops.aten.cos.default(x),
    "special": lambda x: torch.special.expit(x) + torch.linalg.norm(x) + torch.fft.fft(x).real,
    "keywords": lambda x: torch.sum(input=x, dim=0) + torch.add(x, x, **{"alpha": 2}),
    "no grad": lambda x: torch.no_grad()(lambda y: y + 1)(x),
    "to": lambda x: x.to(torch.float64).float().double().contiguous(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_captured_or_not_a_program_has_the_same_torch_calls(name, x):
    """A captured program has as many torch calls and instructions as the same program run by CPython."""
    f = OPERATIONS[name]
    captured = godynamo.explain(f)(x)
    outside = godynamo.explain(godynamo.disable(f))(x)
    assert outside.torch_calls.captured == 0 and outside.torch_calls.outside > 0
    assert captured.torch_calls.total == outside.torch_calls.total
    assert captured.bytecodes.total == outside.bytecodes.total


@pytest.mark.row("S000-37")
def test_python_operations_of_the_graph_are_named(x):
    import zlib

    def f(x):
        n = zlib.crc32(b"abc")
        return x + n

    e = godynamo.explain(godynamo.optimize(fn=f, python_ops=True))(x)
    assert e.graph_break_count == 0
    [row] = [r for r in e.kept_out if "Python operation" in r.reason and r.line == f.__code__.co_firstlineno + 1]
    assert row.callee.endswith("crc32") and row.count == 1 and row.bytecodes >= 1


@pytest.mark.row("S000-37")
def test_what_a_python_operation_calls_is_kept_out_by_it(x):
    @godynamo.disable
    def other(t):
        return t.sin().cos()

    def f(x):
        y = other(x)
        return x + y

    e = godynamo.explain(godynamo.optimize(fn=f, python_ops=True))(x)
    assert torch.equal(e.result, x + x.sin().cos()) and e.graph_break_count == 0
    row = e.kept_out[0]
    assert row.callee.endswith("other") and row.callee_line == other.__wrapped__.__code__.co_firstlineno
    assert (row.torch_calls, row.count, row.line) == (2, 1, f.__code__.co_firstlineno + 1)
    assert row.bytecodes >= 1 + instructions(other.__wrapped__)


def test_the_cache_limit_is_named_and_recompiles_tell_both_values(x):
    def step(x, n):
        return x * len(range(n))

    g = godynamo.optimize(step)
    for n in range(3):
        g(x, n)
    e = godynamo.explain(g)(x, 5)
    [recompile] = e.recompiles
    assert recompile.function == step.__qualname__ and recompile.line == step.__code__.co_firstlineno
    assert any("n == 0" in reason for reason in recompile.reasons)
    assert "Recompile 1:" in str(e)

    def repeated(x, rows):
        return x * len(rows)

    @godynamo.skip
    def middle(x):
        first = repeated(x, []), repeated(x, [None])
        return first, repeated(x, [None] * 2), repeated(x, [None] * 3), repeated(x, [None] * 4), repeated(x, [None] * 5)

    with config.patch(cache_size_limit=2):
        e = godynamo.explain(lambda x: middle(x))(x)
    row = next(r for r in e.kept_out if r.code == "GD0703")
    assert row.callee.endswith("repeated") and row.torch_calls == 1 and row.count == 4
    assert len(e.recompiles) == 1 and "len(rows) == 0" in e.recompiles[0].reasons[0]


def test_the_most_expensive_reason_comes_first(x):
    @godynamo.disable
    def small(a):
        return a

    @godynamo.disable
    def large(a):
        return a.sin().cos() + 1

    e = godynamo.explain(lambda x: large(small(x) + 1))(x)
    assert [r.callee.split(".")[-1] for r in e.kept_out] == ["large", "small"]
    assert [r.torch_calls for r in e.kept_out] == [3, 0]


def test_the_report_as_text_and_as_json(x):
    def f(x):
        y = x.sum().tolist()
        return x + y

    e = godynamo.explain(f)(x)
    text = str(e)
    assert "Captured torch calls: 2 of 3 (67%)" in text
    assert f"Captured bytecodes: {e.bytecodes.captured} of {e.bytecodes.total} (" in text
    assert (
        "GD0102" in text
        and "hint:" in text
        and re.search(r"-> +\d+ \|      y = x\.sum\(\)\.tolist\(\)\n +\^{16}\n", text)
    )
    data = json.loads(e.to_json())
    assert data == json.loads(json.dumps(e.to_dict()))
    assert data["graph_count"] == 2 and data["graph_break_count"] == 1 and data["result_type"] == "Tensor"
    assert data["torch_calls"] == {"captured": 2, "outside": 1, "share": pytest.approx(2 / 3)}
    assert data["kept_out"][0]["callee"] == "Tensor.tolist" and data["kept_out"][0]["code"] == "GD0102"
    assert data["break_reasons"][0]["user_stack"] == [["f", __file__, f.__code__.co_firstlineno + 1]]


def test_the_report_as_a_notebook_shows_it(x):
    html = godynamo.explain(lambda x: x[0].tolist() < 3 and x + 1)(x)._repr_html_()
    assert "<code>Tensor.tolist</code>" in html and "GD0102" in html
    assert "x[0].tolist() &lt; 3" in html and "tolist() < 3" not in html


def test_the_graphs_of_a_backend_that_is_given_whole_graphs_are_counted_without_it(x):
    called = []

    def backend(gm, example_inputs):
        called.append(gm)
        return gm.forward

    def f(x, l):
        y = x + 1
        l.append(1)
        y.add_(2)
        return y * x.reshape(1, -1).tolist()[0][1]

    e = godynamo.explain(godynamo.optimize(f, backend=backend, nopython=True))(x, [])
    assert not called and e.graph_count >= 2 and e.kept_out[0].code == "GD0102"
    assert torch.equal(e.result, (x + 3) * x[1])
    plain = godynamo.explain(godynamo.disable(f))(x, [])
    assert (e.torch_calls.total, e.bytecodes.total) == (plain.torch_calls.total, plain.bytecodes.total)


def test_an_optimized_functions_limit_holds(x):
    def f(x):
        for n in range(4):
            x = x + from_outside(times, x, n)
        return x

    def times(x, n):
        return x * n

    @godynamo.skip
    def from_outside(fn, *args):
        return fn(*args)

    e = godynamo.explain(godynamo.optimize(f, cache_size_limit=1))(x)
    assert "GD0703" in {r.code for r in e.kept_out}


def test_nopython_raises_what_explain_prints(x):
    def f(x):
        return x * x.sum().tolist()

    with pytest.raises(godynamo.exc.Unsupported) as caught:
        godynamo.optimize(f, nopython=True)(x)
    [reason] = godynamo.explain(f)(x).break_reasons
    assert str(reason) in str(caught.value)
    assert "  -> return x * x.sum().tolist()\n                ^^^^^^^^^^^^^^^^" in str(reason)


def test_what_the_function_raises_is_raised_and_counting_ends(x):
    def f(x):
        raise KeyError(x.sum())

    with pytest.raises(KeyError):
        godynamo.explain(f)(x)
    with pytest.raises(RuntimeError):
        _C.census_stop()
    assert sys.gettrace() is None
    assert godynamo.explain(straight)(x).counted


def test_the_program_sees_no_trace_function(x):
    def f(x):
        return x + 1, sys.gettrace(), sys.getprofile()

    assert godynamo.explain(f)(x).result[1:] == (None, None)


def test_under_a_trace_function_nothing_is_counted_and_its_events_are_cpythons(x):
    events = []

    def tracer(frame, event, arg):
        if frame.f_code is straight.__code__:
            events.append((event, frame.f_lineno))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        e = godynamo.explain(straight)(x)
    finally:
        sys.settrace(before)
    first = straight.__code__.co_firstlineno
    assert events == [("call", first), ("line", first + 1), ("line", first + 2), ("return", first + 2)]
    assert torch.equal(e.result, straight(x)) and not e.counted and e.bytecodes.total == 0
    assert "trace or profile function" in str(e)


def test_a_trace_function_set_inside_gets_its_events_and_the_report_says_so(x):
    events = []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename == __file__:  # a garbage collection here may run other files' code
            events.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    def traced(x):
        return x + 1

    def f(x):
        before = sys.gettrace()
        sys.settrace(tracer)
        sys._getframe().f_trace = tracer
        y = traced(x)
        sys.settrace(before)
        return y * 2

    f(x)
    expected, events[:] = events[:], []
    e = godynamo.explain(f)(x)
    assert torch.equal(e.result, (x + 1) * 2)
    assert events == expected and len(events) > 4
    assert not e.counted and sys.gettrace() is None


def test_another_thread_is_not_counted(x):
    def work(x):
        return x.sin().cos()

    def f(x):
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        thread.join()
        return x + 1

    e = godynamo.explain(f)(x)
    assert "work" not in {r.function.split(".")[-1] for r in e.functions}


def test_an_explanation_inside_another_counts_for_the_outer_one(x):
    inner = []

    def f(x):
        inner.append(godynamo.explain(straight)(x))
        return x + 1

    e = godynamo.explain(f)(x)
    assert e.counted and not inner[0].counted
    assert torch.equal(inner[0].result, straight(x))


def test_explain_leaves_nothing_behind_that_slows_the_next_call(x):
    f = godynamo.optimize(straight)
    f(x)
    godynamo.explain(f)(x)
    f(x)
    assert godynamo.cache_stats(f) == {"hits": 1, "misses": 1, "translations": 1}


def test_the_readme_shows_what_it_prints():
    section = (Path(__file__).resolve().parents[3] / "README.md").read_text().split("## What was captured")[1]
    code, shown = section.split("```python\n")[1].split("```\n```\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<readme>", "exec"), {"__name__": "__main__"})
    assert out.getvalue() == as_printed(shown.split("```")[0])


def test_a_coroutine_or_a_generator_says_why_nothing_is_captured():
    async def coroutine(x):
        return x + 1

    def generator(x):
        yield x + 1

    for fn, word in ((coroutine, "async def"), (generator, "generator")):
        explanation = godynamo.explain(fn)(torch.ones(2))
        (row,) = explanation.kept_out
        assert (row.code, row.callee, row.bytecodes) == ("GD0302", fn.__qualname__, 0)
        assert word in row.reason
        if word == "async def":
            explanation.result.close()
