"""inference_mode and record_function in captured code: they hold a torch object while they are entered."""

from __future__ import annotations

import pytest
import torch

import godynamo
from godynamo._called import torch_state
from godynamo.testing import CompileCounter
from harness.cases import Case, Cases, check

cases = Cases()


def weight():
    return (torch.ones(4, 4, requires_grad=True),)


@godynamo.disable
def opaque(x):
    """Never captured."""
    return 2


def modes():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@cases(args=weight)
def inference_mode(x, w):
    with torch.inference_mode():
        y = x @ w
        inside = modes()
    return y, y.requires_grad, inside, modes(), x @ w


@cases(args=weight)
def nested_modes(x, w):
    with torch.inference_mode():
        a = x @ w
        with torch.inference_mode(False):
            b = x @ w
            inner = modes()
        after = modes()
        with torch.enable_grad():
            c = x @ w
    return a, b, c, inner, after, modes()


@torch.inference_mode()
def decorated(w):
    return w * 2, modes()


@cases(args=weight)
def a_decorated_function(x, w):
    return decorated(w), (w + 1).requires_grad


@cases(args=weight, graphs=3, breaks=2)  # after a break, the frame exits a real mode object
def a_split_inside(x, w):
    with torch.inference_mode():
        y = x @ w
        k = opaque(x)
        z = y * k
    return y, z, modes(), (w * 2).requires_grad


@cases(args=weight, graphs=3, breaks=3)
def a_split_inside_two(x, w):
    with torch.inference_mode(), torch.inference_mode(False):
        y = x @ w
        k = opaque(x)
        z = y * k
    return y, z, modes(), (w * 2).requires_grad


@cases(args=weight, breaks=2)
def left_by_an_exception(x, w):
    with torch.inference_mode():
        y = x @ w
        raise ValueError(y.shape)


@cases(args=weight)
def an_operation_raises_inside(x, w):
    with torch.inference_mode():
        return x @ torch.ones(3, 3)


@cases
def an_operation_raises_inside_and_is_caught(x):
    try:
        with torch.inference_mode():
            return x @ torch.ones(3, 3)
    except RuntimeError as error:
        return modes(), x + 1, str(error)


@cases(args=weight, breaks=2)
def entered_by_hand(x, w):
    m = torch.inference_mode()
    m.__enter__()
    y = x @ w
    m.__exit__(None, None, None)
    return y, modes()


@cases(args=weight)
def recorded_blocks(x, w):
    with torch.profiler.record_function("block"):
        y = x @ w
    with torch.profiler.record_function("b", "args") as r, torch.autograd.profiler.record_function("c"):
        z = y * 2
    return y, z, r.name


@cases(args=weight, graphs=2, breaks=2)
def a_split_inside_a_recorded_block(x, w):
    with torch.profiler.record_function("block"):
        y = x @ w
        k = opaque(x)
        z = y * k
    return y, z


@pytest.mark.row("S004-135")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_torch_modes(case: Case) -> None:
    check(case)
    assert torch_state.entered() == ()
    assert modes() == (True, False)


def a_caught_operation(x, kept):
    manager = torch.inference_mode()
    with manager:
        kept.append(manager)
        try:
            return x.view(3)
        except RuntimeError:
            return modes()


def an_operation_in_the_block(x, kept):
    manager = torch.inference_mode()
    with manager:
        kept.append(manager)
        y = x.view(3)
    return y


def an_operation_in_a_block_inside(x, kept):
    manager = torch.inference_mode()
    with torch.no_grad(), manager, torch.enable_grad():
        kept.append(manager)
        return x.view(3)


def an_operation_in_an_inlined_block(x, kept):
    try:
        return an_operation_in_the_block(x, kept)
    except RuntimeError:
        return modes()


def a_mode_inside(x, kept):
    manager = torch.inference_mode()
    with manager:
        kept.append(manager)
        with torch.inference_mode(False):
            y = x + 1
        inside = modes()
    return y.is_inference(), inside


def an_operation_that_must_not_run_twice(x, kept):
    with torch.inference_mode():
        try:
            x.retain_grad()
        except RuntimeError:
            kept.append(modes())


def in_a_mode_to_leave(x, kept):
    y = x[:]
    with torch.inference_mode():
        try:
            with torch._C.DisableTorchFunctionSubclass():
                y.retain_grad()
        except RuntimeError:
            kept.append(modes())
        kept.append(torch._C._is_torch_function_enabled())


KEEPING = (
    a_caught_operation,
    an_operation_in_the_block,
    an_operation_in_a_block_inside,
    an_operation_in_an_inlined_block,
    a_mode_inside,
    an_operation_that_must_not_run_twice,
    in_a_mode_to_leave,
)


@pytest.mark.parametrize("fn", KEEPING)
def test_an_object_of_a_mode_leaves_the_graph(fn) -> None:
    """From then on only the object leaves the mode, also if an operation raises."""

    def run(call):
        kept: list = []
        try:
            result = call(torch.ones(4), kept)
        except RuntimeError as error:
            result = str(error)
        state = modes(), torch._C._is_torch_function_enabled()
        for item in kept:
            if isinstance(item, torch.inference_mode) and torch.is_inference_mode_enabled():
                item.__exit__(None, None, None)
        return result, state, [item if type(item) in (bool, tuple) else type(item) for item in kept]

    g = godynamo.optimize(fn)
    want = run(fn)
    for _ in range(3):
        assert run(g) == want
        assert torch_state.entered() == ()


def test_results_are_inference_tensors() -> None:
    def f(x):
        y = x + 1
        with torch.inference_mode():
            z = y * 2
            with torch.inference_mode(False):
                w = y * 3
        return y, z, w

    for backend in ("eager", CompileCounter()):
        got = godynamo.optimize(f, backend=backend)(torch.ones(2))
        assert [t.is_inference() for t in got] == [t.is_inference() for t in f(torch.ones(2))] == [False, True, False]


def test_an_optimized_call_under_a_mode_of_the_callers() -> None:
    def f(x):
        with torch.inference_mode(False):
            return x * 2, modes()

    g = godynamo.optimize(f, backend="eager")
    assert g(torch.ones(2))[1] == (True, False)
    with torch.inference_mode():
        assert g(torch.ones(2))[1] == f(torch.ones(2))[1]
        assert modes() == (False, True)
    assert g(torch.ones(2))[1] == (True, False)


@pytest.mark.parametrize("split", [False, True])
def test_the_profiler_sees_recorded_blocks(split: bool) -> None:
    def f(x):
        with torch.profiler.record_function("outer block"):
            y = x + 1
            if split:
                opaque(y)
            with torch.profiler.record_function("inner block"):
                y = y * 2
        return y

    def seen(fn):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            fn(torch.ones(2))
        return sorted((e.key, e.count) for e in profile.key_averages() if "block" in e.key)

    g = godynamo.optimize(f, backend="eager")
    g(torch.ones(2))
    assert seen(g) == seen(f) == [("inner block", 1), ("outer block", 1)]
    godynamo.reset()
    assert seen(godynamo.optimize(f, backend="eager")) == [("inner block", 1), ("outer block", 1)]


def raises_in_the_block(x):
    with torch.inference_mode():
        try:
            return x.view(3)
        except RuntimeError:
            pass
    return x + 1


def test_an_operation_that_raises_in_a_trace() -> None:
    """torch's object of inference mode restores the dispatch keys of the trace, which has ended by then."""

    def keys():
        return torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()

    g, x, before = godynamo.optimize(raises_in_the_block, backend="aot_eager"), torch.ones(4), keys()
    for _ in range(2):
        assert torch.equal(g(x), x + 1)
        assert keys() == before
        assert modes() == (True, False)


def left_in_the_rest(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x
        godynamo.graph_break()
        b = x.relu() @ x
    return a, b, x @ x


def entered_in_the_first_piece(x):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x
        godynamo.graph_break()
    return a, x @ x


def switched_for_good(x):
    a = x @ x
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    return a, x @ x


@pytest.mark.parametrize("backend", ["aot_eager", CompileCounter()], ids=["aot_eager", "graph"])
@pytest.mark.parametrize("fn", [left_in_the_rest, entered_in_the_first_piece, switched_for_good])
def test_a_graph_that_ends_in_another_state_than_it_began_in(fn, backend):
    """AOTAutograd runs a graph's mode switches while it traces, twice; its compiled code has none."""

    def outcome(f):
        out = f(torch.ones(3, 3, requires_grad=True))
        modes = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_grad_enabled()
        torch.set_autocast_enabled("cpu", False)
        torch.clear_autocast_cache()
        return [(t.dtype, t.requires_grad, t.tolist()) for t in out], modes

    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(3):
        assert outcome(compiled) == outcome(fn)


def checked_in_a_block(x, n):
    with torch.profiler.record_function("block"):
        x.add_(1)
        if x.sum().item() > 1e6:
            raise OverflowError
        x.sub_(x.sum().item() / n)


def test_a_block_that_a_check_has_seen_and_an_exception_leaves() -> None:
    """Where a failed check goes on, the program has an object for the block; an exception leaves it before that."""

    def f(x, n):
        x.sum().backward()
        try:
            checked_in_a_block(x.detach(), n)
        except ZeroDivisionError as error:
            return x, str(error)
        return x

    def run(fn):
        return [str(fn(torch.ones(3, requires_grad=True), n)) for n in (1, 0, 0, 1)]

    assert run(godynamo.optimize(f, backend="eager")) == run(f)
    assert torch_state.entered() == ()
