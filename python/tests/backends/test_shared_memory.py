"""Compiled graphs that change an input: they run only if no other input overlaps it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch.nn import functional as F

import godynamo
from godynamo import _C, utils
from godynamo._backends import memory
from harness.capture import assert_no_internal_errors


def counted() -> int:
    return utils.counters["stats"]["calls_with_overlapping_inputs"]


def plus(x, y):
    x.add_(1)
    return y * 2


def through_a_view(x, y):
    x[1:].view(-1).mul_(3)
    return y + 1


def out(x, y):
    torch.mul(y, 2, out=x)
    return y + x


def of_a_result(x, y):
    h = torch.relu(x.reshape(4))
    h.add_(1)
    return h + y


def statistics(x, y):
    rows = x.new_ones(3, 4) * y
    z = F.batch_norm(rows, x, None, training=False) if x.numel() < 4 else F.batch_norm(rows, x, y.abs(), training=True)
    return z, y * 2


def both(x, y):
    y.mul_(2)
    x.add_(y)
    return x - y


#: where the inputs of each call begin in one tensor; None: in a tensor of their own
PLACES = [[(None, None), (0, 1), (0, 2), (0, 6), (2, 0)], [(0, 2), (0, 1), (None, None), (1, 3), (0, 2)]]

PROGRAMS = [plus, through_a_view, out, of_a_result, statistics, both]


def slices(first: int | None, second: int | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a tensor, and inputs that are slices of it from these elements on, or tensors of their own."""
    whole = torch.arange(10.0)
    x, y = (torch.arange(4.0) if at is None else whole[at : at + 4] for at in (first, second))
    return whole, x, y


def same(result, expected) -> None:
    if isinstance(result, str) or isinstance(expected, str):
        assert result == expected
    else:
        torch.testing.assert_close(result, expected, rtol=0, atol=0)


def outcome(f, x, y):
    try:
        return f(x, y)
    except RuntimeError as error:  # torch refuses some operations on tensors that overlap
        return str(error)


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("places", PLACES, ids=["apart_first", "shared_first"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_overlaps_that_the_compiler_did_not_see(program, places, dynamic) -> None:
    optimized = godynamo.optimize(program, backend="aot_eager", dynamic=dynamic)
    for first, second in places:
        whole, x, y = slices(first, second)
        expected_whole, expected_x, expected_y = slices(first, second)
        result, expected = outcome(optimized, x, y), outcome(program, expected_x, expected_y)
        same(result, expected)
        torch.testing.assert_close((whole, x, y), (expected_whole, expected_x, expected_y), rtol=0, atol=0)
    assert_no_internal_errors()


def test_the_inputs_of_the_first_call_are_freed() -> None:
    optimized = godynamo.optimize(plus, backend="aot_eager")
    x, y = torch.ones(4), torch.ones(4)
    refs = weakref.ref(x), weakref.ref(y)
    optimized(x, y)
    del x, y
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_the_compiled_code_runs_for_separate_inputs() -> None:
    optimized = godynamo.optimize(plus, backend="aot_eager")
    before = counted()
    for _ in range(3):
        optimized(torch.ones(4), torch.ones(4))
    assert counted() == before
    optimized(*slices(0, 2)[1:])
    assert counted() == before + 1


def test_graphs_that_change_no_input_may_share() -> None:
    def f(x, y):
        z = torch.zeros_like(x)
        z.add_(x)
        return z * y

    optimized, before = godynamo.optimize(f, backend="aot_eager"), counted()
    optimized(torch.ones(4), torch.ones(4))
    assert torch.equal(optimized(*slices(0, 2)[1:]), f(*slices(0, 2)[1:]))
    assert counted() == before


def test_inductor() -> None:
    optimized = godynamo.optimize(plus, backend="inductor")
    for first, second in [(None, None), (0, 2), (0, 1), (None, None)]:
        (whole, x, y), (expected_whole, *xs) = slices(first, second), slices(first, second)
        assert torch.equal(optimized(x, y), plus(*xs)) and torch.equal(whole, expected_whole)


def test_slices_that_do_not_overlap_run_compiled() -> None:
    optimized, before = godynamo.optimize(plus, backend="aot_eager"), counted()
    for first, second in [(0, 4), (5, 0), (None, None), (0, 5)]:
        assert torch.equal(optimized(*slices(first, second)[1:]), plus(*slices(first, second)[1:]))
    assert counted() == before


def test_the_first_call_decides_nothing() -> None:
    optimized, before = godynamo.optimize(plus, backend="aot_eager"), counted()
    optimized(*slices(0, 2)[1:])
    assert counted() == before + 1
    optimized(torch.ones(4), torch.ones(4))
    assert counted() == before + 1


@pytest.mark.parametrize("kind", ["leaf", "computed", "parameter", "inference", "columns", "conjugate", "expanded"])
def test_kinds_of_inputs(kind) -> None:
    def f(x, y):
        x.add_(1)
        return y * 2

    def inputs():
        whole = torch.arange(12.0).reshape(3, 4)
        if kind == "leaf":
            return whole[0], whole[0].detach().requires_grad_()
        if kind == "computed":
            return whole[0], whole[0].detach().requires_grad_().view(2, 2)
        if kind == "parameter":
            return whole[0], torch.nn.Parameter(whole[0])
        if kind == "inference":
            with torch.inference_mode():
                whole = whole.clone()
            return whole[0], whole[0]
        if kind == "columns":
            return whole[:, 0], whole[:, 0:2]
        if kind == "conjugate":
            z = torch.ones(3, dtype=torch.complex64)
            return z, z.conj()
        return whole[0], whole[0, :1].expand(4)

    optimized = godynamo.optimize(f, backend="aot_eager")
    for _ in range(2):
        (x, y), (expected_x, expected_y) = inputs(), inputs()
        with torch.inference_mode(kind == "inference"):
            result, expected = outcome(optimized, x, y), outcome(f, expected_x, expected_y)
        same(result, expected)
        torch.testing.assert_close((x, y), (expected_x, expected_y), rtol=0, atol=0)
        assert not isinstance(result, torch.Tensor) or result.requires_grad == expected.requires_grad
    separate = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs()]
    expected = f(*[t.detach().clone().requires_grad_(t.requires_grad) for t in inputs()])
    assert torch.equal(optimized(*separate), expected)
    assert_no_internal_errors()


def test_memory_of_numpy() -> None:
    numpy = pytest.importorskip("numpy", reason="tensors made of numpy's memory")
    optimized, before = godynamo.optimize(plus, backend="aot_eager"), counted()
    optimized(torch.ones(4), torch.ones(4))
    array, expected = numpy.arange(10, dtype=numpy.float32), numpy.arange(10, dtype=numpy.float32)

    def parts(of):
        return torch.from_numpy(of[:4]), torch.from_numpy(of[2:6])

    assert torch.equal(optimized(*parts(array)), plus(*parts(expected)))
    assert numpy.array_equal(array, expected) and counted() == before + 1
    optimized(torch.from_numpy(array[:4]), torch.from_numpy(array[4:8]))
    assert counted() == before + 1


def test_a_backend_that_is_not_known_to_trace() -> None:
    def backend(gm, inputs):
        from functorch.compile import aot_module_simplified, make_boxed_func

        return aot_module_simplified(gm, inputs, fw_compiler=lambda g, _: make_boxed_func(g.forward))

    for places in PLACES:
        optimized = godynamo.optimize(plus, backend=backend)
        for first, second in places:
            (whole, x, y), (expected_whole, *xs) = slices(first, second), slices(first, second)
            assert torch.equal(optimized(x, y), plus(*xs)) and torch.equal(whole, expected_whole)


def test_overlap() -> None:
    a, b, whole = torch.ones(3), torch.ones(3), torch.ones(8)
    cases = [
        ([a, b, whole[:2]], (0, 1, 2), False),
        ([a, 7, whole[:4], whole[3:]], (2,), True),
        ([a, 7, whole[:4], whole[4:]], (2,), False),
        ([a, None, whole[:4], whole[3:]], (2, 3), True),
        ([a, b, whole[:4], whole[3:]], (0, 1), False),
        ([whole, whole[2:2]], (0,), False),
        ([whole[2:3], whole], (0,), True),
        ([whole[::2], whole[1::2]], (0,), True),
        ([a.to_sparse(), b.to_sparse()], (0, 1), False),
        ([torch.ones(2, device="meta"), torch.ones(2, device="meta")], (0, 1), False),
    ]
    many = [torch.ones(1) for _ in range(300)]
    cases += [(many, tuple(range(200)), False), ([*many, many[70][:]], tuple(range(200)), True)]
    for known in (True, False):  # in C first, and in Python only
        _C._tensor_layout_use(known)
        try:
            assert (_C.shares_memory((a, b), (0,)) is None) is not known
            for inputs, changed, expected in cases:
                assert memory.overlap(inputs, changed) is expected, (known, changed)
        finally:
            _C._tensor_layout_use(True)


@pytest.mark.parametrize("wrong", [((), (0,)), ((torch.ones(1),), (-1,)), ((torch.ones(1),), (2**70,))])
def test_numbers_of_no_input(wrong) -> None:
    with pytest.raises((IndexError, OverflowError)):
        _C.shares_memory(*wrong)
    with pytest.raises(TypeError):
        _C.shares_memory(torch.ones(1), (0,))
    with pytest.raises(TypeError):
        _C.shares_memory((torch.ones(1),), ("x",))
