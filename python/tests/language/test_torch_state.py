"""Grad mode and autocast switched inside captured code: values, metadata, the state afterwards, exceptions in
between."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.cases import Case, Cases, check
from harness.graph_counts import one_graph

cases = Cases()


def weight():
    return (torch.ones(4, 4, requires_grad=True),)


@godynamo.disable
def opaque(x):
    """Never captured."""
    return 2


def modes():
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


@cases(args=weight)
def no_grad(x, w):
    with torch.no_grad():
        y = x @ w
    return y, y.requires_grad, torch.is_grad_enabled(), x @ w


@cases(args=weight)
def nested_modes(x, w):
    with torch.set_grad_enabled(False):
        y = w * 2
        with torch.enable_grad():
            z = w * 3
            if z.requires_grad:
                z = z + 1
    return y, z, (w * 2).requires_grad


@torch.no_grad()
def decorated(w):
    return w * 2, torch.is_grad_enabled()


@cases(args=weight)
def a_decorated_function(x, w):
    return decorated(w), (w + 1).requires_grad


@cases(args=weight)
def autocast(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = w @ w
        inside = torch.is_autocast_enabled("cpu")
    return y, y.dtype, w @ w, inside, torch.is_autocast_enabled("cpu")


@cases(args=weight)
def set_and_put_back(x, w):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = w * 2
    torch.set_grad_enabled(before)
    return y, w + 1


@cases(args=weight)
def random_numbers_inside(x, w):
    with torch.no_grad():
        y = F.dropout(w, 0.5) + torch.rand_like(w)
    return y * w


@cases(args=weight, graphs=1, breaks=0)
def an_operation_raises_inside(x, w):
    with torch.no_grad():
        y = w @ torch.ones(7, 7)
    return y


@cases(args=weight, graphs=1, breaks=0)
def an_operation_raises_inside_and_is_caught(x, w):
    try:
        with torch.no_grad():
            y = w @ torch.ones(7, 7)
    except RuntimeError:
        return w * 2, torch.is_grad_enabled()
    return y


@cases(args=weight, graphs=2, breaks=1)
def a_split_inside(x, w):
    with torch.no_grad():
        y = w * 2
        n = opaque(y)
        y = y + n
    return y, w + 1


@cases(args=weight, graphs=1, breaks=1)
def a_split_before_the_first_operation(x, w):
    with torch.no_grad():
        n = opaque(w)
        return (w * n).requires_grad, torch.is_grad_enabled()


@cases(args=weight, graphs=1, breaks=2)
def a_split_before_the_first_operation_with_inference_mode(x, w):
    with torch.inference_mode():
        n = opaque(w)
        return w * n, torch.is_inference_mode_enabled()


@cases(args=weight, graphs=1, breaks=1)
def left_by_an_exception(x, w):
    with torch.no_grad():
        y = w * 2
        raise ValueError(y.requires_grad)


@pytest.mark.parametrize("case", [c for c in cases if c.name != "random_numbers_inside"], ids=lambda c: c.name)
@pytest.mark.row("S004-135")
def test_torch_state(case: Case) -> None:
    before = modes()
    check(case)
    assert modes() == before


def test_random_numbers_inside() -> None:
    w = weight()[0]

    def run(fn):
        torch.manual_seed(0)
        return fn(w, w)

    expected = run(random_numbers_inside)
    for backend in ("eager", "aot_eager"):
        assert torch.equal(run(godynamo.optimize(random_numbers_inside, backend=backend)), expected)
    assert godynamo.explain(random_numbers_inside)(w, w).graph_count == 1


def test_a_switch_without_a_manager_stays_when_an_operation_raises() -> None:
    def fn(w):
        torch.set_grad_enabled(False)
        return F.dropout(w, 0.5) @ torch.ones(7, 7)

    for backend in ("eager", godynamo.testing.CompileCounter()):
        compiled = godynamo.optimize(fn, backend=backend)
        try:
            with pytest.raises(RuntimeError):
                compiled(weight()[0])
            assert not torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)


def test_an_operation_behind_an_effect_raises_after_a_switch() -> None:
    """The user's code runs again in its initial modes, although no handler or manager surrounds the operation."""

    def fn(x, index, log):
        y = x * 2
        torch.set_grad_enabled(False)
        log.append(y)
        z = x[index]
        try:
            z = z + torch.relu(x)[index]
        except IndexError:
            pass
        return z

    compiled, x = godynamo.optimize(fn), torch.ones(3, requires_grad=True)
    try:
        for last in (1, 1, 7):
            log: list[torch.Tensor] = []
            torch.set_grad_enabled(True)
            try:
                compiled(x, torch.tensor([0, last]), log)
                assert last == 1
            except IndexError:
                assert last == 7
            assert not torch.is_grad_enabled()
            assert len(log) == 1 and log[0].requires_grad
    finally:
        torch.set_grad_enabled(True)


# ---- switches without a manager inside another manager's block, and the default dtype ----


def grad_off_under_autocast(x, bad):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.set_grad_enabled(False)
        y = x * 2
        y.reshape(bad)
    return y


def a_manager_of_grad_mode_between(x, bad):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad(), torch.autocast("cpu", enabled=False):
        torch.set_grad_enabled(True)
        y = x * 2
        y.reshape(bad)
    return y, y.requires_grad


def set_grad_enabled_as_a_manager_under_autocast(x, bad):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(False):
        (x * 2).reshape(bad)
    torch.set_grad_enabled(False)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(True):
        y = x * 3
    return y, y.requires_grad


def default_dtype(x, bad):
    before = torch.arange(3) / 2
    torch.set_default_dtype(torch.float64)
    after = torch.arange(3) / 2, torch.ones(2), torch.tensor(1.5), torch.get_default_dtype(), torch.finfo().dtype
    y = (x * 2).reshape(bad)
    torch.set_default_dtype(torch.float16)
    return before, before.dtype, after, [t.dtype for t in after[:3]], torch.zeros(2), y


def default_dtype_put_back(x, bad):
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(3) + x.sum()
        x.reshape(bad)
    finally:
        torch.set_default_dtype(old)
    return y, torch.ones(1), torch.nn.Linear(3, 2).weight.dtype


def default_dtype_in_blocks(x, bad):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        torch.set_default_dtype(torch.float64)
        y = torch.ones(3)
        with torch.enable_grad():
            z = (x * 2).reshape(bad)
    return y, z, torch.ones(1)


@contextlib.contextmanager
def local_dtype(dtype):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(old)


def default_dtype_by_a_generator(x, bad):
    with local_dtype(torch.float64):
        y = torch.ones(3) + x.sum()
        (x * 2).reshape(bad)
    return y, torch.ones(1)


def default_dtype_across_a_break(x, bad):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(3)
    godynamo.graph_break()
    return y, torch.ones(3), (x * 2).reshape(bad)


def a_dtype_that_torch_rejects(x, bad):
    y = x * 2
    torch.set_default_dtype(torch.int32)
    return y.reshape(bad)


SWITCHES = [
    grad_off_under_autocast,
    a_manager_of_grad_mode_between,
    set_grad_enabled_as_a_manager_under_autocast,
    default_dtype,
    default_dtype_put_back,
    default_dtype_in_blocks,
    default_dtype_by_a_generator,
    default_dtype_across_a_break,
    a_dtype_that_torch_rejects,
]


def seen(value):
    if isinstance(value, torch.Tensor):
        return value.tolist(), value.dtype, value.requires_grad
    return [seen(item) for item in value] if isinstance(value, (tuple, list)) else value


def switched(fn):
    """Return the outcomes of calls that succeed and fail, and torch's modes after each call."""
    found: list[object] = []
    for bad in ((4, 4), (7,), (4, 4), (2, 8), (7,)):
        try:
            found.append(seen(fn(weight()[0], bad)))
        except (RuntimeError, TypeError) as error:
            found.append(repr(error))
        found.append((modes(), torch.get_default_dtype()))
        if bad != (2, 8):
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("fn", SWITCHES, ids=lambda fn: fn.__name__)
def test_switches_in_blocks(fn, backend):
    torch.manual_seed(0)
    assert switched(godynamo.optimize(fn, backend=backend)) == switched(fn)


@pytest.mark.parametrize("fn", SWITCHES[:7], ids=lambda fn: fn.__name__)
def test_switches_in_blocks_are_one_graph(fn):
    try:
        explained = godynamo.explain(fn)(weight()[0], (4, 4))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_the_default_dtype_at_the_start_is_guarded():
    def fn(x):
        old = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        y = torch.ones(3)
        torch.set_default_dtype(old)
        return y, torch.ones(3) * x

    optimized = godynamo.optimize(fn)
    try:
        for dtype, entries in ((torch.float32, 1), (torch.float32, 1), (torch.float16, 2), (torch.float32, 2)):
            torch.set_default_dtype(dtype)
            assert [t.dtype for t in optimized(torch.ones(3, dtype=torch.float16))] == [torch.float64, dtype]
            assert torch.get_default_dtype() is dtype
            assert len(godynamo.cache_entries(optimized)) == entries
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_hook_that_leaves_another_mode_breaks_the_graph():
    def fn(x):
        y = x * 2
        y.register_hook(lambda g: torch.set_default_dtype(torch.float64))
        y.sum().backward()
        return torch.ones(2)

    try:
        assert godynamo.optimize(fn)(weight()[0]).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


OUTER = ["torch.inference_mode()", "torch.inference_mode(False)", "torch.no_grad()", "torch.autocast('cpu')"]
INNER = [
    *("with torch.no_grad():", "with torch.enable_grad():", "with torch.set_grad_enabled(False):", "if True:"),
    *("torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)", "with torch.inference_mode():"),
]
NESTED = """
def fn(x):
    with {outer}:
        {inner}{body} y = x + 1
        return x[torch.tensor([9])]
"""


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_nested_modes_after_an_exception(outer, inner):
    names = {"torch": torch}
    exec(NESTED.format(outer=outer, inner=inner, body="" if inner.endswith(":") else ";"), names)
    fn = names["fn"]
    optimized = godynamo.optimize(fn)
    for start in (True, False, True):
        seen = []
        for call in (fn, optimized):
            with torch.set_grad_enabled(start):
                with pytest.raises(IndexError):
                    call(torch.ones(3))
                seen.append((*modes(), torch.is_inference_mode_enabled()))
        assert seen[0] == seen[1]


def test_features_of_the_processor_are_constants_of_one_graph():
    """torchao's quantized products ask for them; the answers come from a cached mappingproxy."""

    def f(x):
        return x + torch.cpu._is_amx_tile_supported() + 2 * torch.cpu._is_vnni_supported()

    one_graph(f, torch.ones(3))
