"""Sizes that change, with backends that trace with AOTAutograd: FakeTensors of one ShapeEnv, and guards read back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

import godynamo
from godynamo import config
from harness.capture import assert_no_internal_errors, entries

LENGTHS = range(3, 9)


def assert_alike(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert found.shape == expected.shape and found.stride() == expected.stride() and found.dtype == expected.dtype
        torch.testing.assert_close(found, expected)
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert_alike(x, y)
    else:
        assert found == expected and type(found) is type(expected)


def assert_serves(f: Callable[..., Any], calls: Sequence[Sequence[Any]], most: int, backend: Any = "aot_eager") -> None:
    """Compare each call with eager mode, and the number of translations with a bound."""
    optimized = godynamo.optimize(f, backend=backend)
    for args in calls:
        copies = [x.clone() if isinstance(x, torch.Tensor) and x.is_contiguous() else x for x in args]
        assert_alike(optimized(*args), f(*copies))
    assert_no_internal_errors()
    found = entries(optimized)
    assert len(found) <= most, [e.parts for e in found]


mlp = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
conv = torch.nn.Conv2d(3, 4, 3, padding=1)
blocks = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True)).eval()


def qkv(x: Any) -> Any:
    q, k, v = x.chunk(3, -1)
    return F.scaled_dot_product_attention(q, k, v)


def in_place(x: Any) -> Any:
    y = x * 2
    x.add_(1)
    return y + x.shape[0]


def rows_filled(x: Any) -> Any:
    y = torch.zeros(x.shape[0], 4)
    y[:, :2] = x
    y.view(-1).mul_(2)
    return y


def half(x: Any) -> Any:
    return x[: x.shape[0] // 2] * (x.shape[0] // 2)


def causal(x: Any) -> Any:
    n = x.shape[0]
    return torch.ones(n, n, dtype=torch.bool).tril().masked_fill(x[:, :1] > 0, False)


ONE_ENTRY = [
    pytest.param(f, calls, id=name)
    for name, f, calls in (
        ("modules", lambda x: mlp(x), [(torch.randn(n, 16),) for n in LENGTHS]),
        ("encoder", lambda x: encoder(x), [(torch.randn(2, n, 16),) for n in LENGTHS]),
        ("convolution", lambda x: F.adaptive_avg_pool2d(conv(x), 2), [(torch.randn(2, 3, n, n + 1),) for n in LENGTHS]),
        ("view", lambda x: x.reshape(x.shape[0] * 3, -1) * x.shape[0], [(torch.randn(n, 3, n),) for n in LENGTHS]),
        ("an int", lambda x, n: x * n + x[:n].sum(), [(torch.randn(10, 3), n) for n in LENGTHS]),
        ("arange", lambda x: x + torch.arange(x.shape[0])[:, None], [(torch.randn(n, 3),) for n in LENGTHS]),
        ("two inputs", lambda x, y: x @ y, [(torch.randn(n, n + 1), torch.randn(n + 1, 3)) for n in LENGTHS]),
        ("transposed", lambda x: x.t() @ x, [(torch.randn(4, n).t(),) for n in LENGTHS]),
        ("strided", lambda x: x.sum(0) + x.shape[1], [(torch.randn(n, 20)[:, :10:2],) for n in LENGTHS]),
        ("attention", qkv, [(torch.randn(2, n, 24),) for n in LENGTHS]),
        ("in place", in_place, [(torch.randn(n, 3),) for n in LENGTHS]),
        ("in place on results", rows_filled, [(torch.randn(n, 2),) for n in LENGTHS]),
        ("in-place modules", lambda x: blocks(x), [(torch.randn(n, 3, 6, 6),) for n in LENGTHS]),
        ("views", lambda x: (x.t(), x[1:], x.unsqueeze(0)), [(torch.randn(n, 3),) for n in LENGTHS]),
        ("several results", lambda x: x.topk(2), [(torch.randn(n, 3),) for n in LENGTHS]),
        ("padding", lambda x: F.pad(x, (0, 8 - x.shape[1])), [(torch.randn(2, n),) for n in LENGTHS]),
        ("floor division", half, [(torch.randn(n, 3),) for n in LENGTHS]),
        ("mask", causal, [(torch.randn(n, 3),) for n in LENGTHS]),
    )
]


@pytest.mark.parametrize(("f", "calls"), ONE_ENTRY)
def test_two_entries_serve_all_sizes(f, calls) -> None:
    assert_serves(f, calls, 2)


def test_zero_and_one_have_entries_of_their_own() -> None:
    assert_serves(lambda x: mlp(x), [(torch.randn(n, 16),) for n in (4, 5, 6, 1, 0, 2, 300)], 4)


def test_conditions_of_the_program_and_of_the_compiler_are_guards() -> None:
    def f(x):
        y = x.reshape(-1, 4) * 2
        return y + 1 if x.shape[0] > 20 else y - 1

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n in (4, 8, 12, 16, 24, 28):
        x = torch.randn(n, 3)
        assert_alike(optimized(x), f(x))
    texts = [part for e in entries(optimized) for part in e.parts]
    assert len(entries(optimized)) == 3
    assert any("% 4" in t for t in texts) and any("<= 20" in t for t in texts)
    with pytest.raises(RuntimeError, match="shape '\\[-1, 4\\]' is invalid"):
        optimized(torch.randn(5, 3))


def test_a_compiler_that_reads_a_size_makes_it_a_constant() -> None:
    seen = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        seen.append(int(example_inputs[0].shape[0]))
        return aot_module_simplified(gm, example_inputs, lambda g, _: g.forward)

    optimized = godynamo.optimize(lambda x: x + 1, backend=backend)
    for n in LENGTHS:
        assert_alike(optimized(torch.ones(n, 3)), torch.full((n, 3), 2.0))
    assert len(entries(optimized)) == len(LENGTHS)


def test_a_compiler_that_needs_values_compiles_for_constant_sizes() -> None:
    def backend(gm: Any, example_inputs: Any) -> Any:
        assert all(x.tolist() for x in example_inputs)
        return aot_module_simplified(gm, example_inputs, lambda g, _: g.forward)

    assert_serves(lambda x: x + 1, [(torch.ones(n, 3),) for n in LENGTHS], len(LENGTHS), backend)


def test_inputs_that_share_memory() -> None:
    def f(x, y):
        x.add_(1)
        return y * 2

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n in LENGTHS:
        x, other = torch.randn(n, 3), torch.randn(n, 3)
        other.copy_(x)
        assert_alike(optimized(x, x.view(-1)), f(other, other.view(-1)))


def test_a_layout_that_changes() -> None:
    calls = [torch.randn(n, 5) for n in LENGTHS] + [torch.randn(5, n).t() for n in LENGTHS]
    calls += [torch.randn(n, 20)[:, ::4] for n in LENGTHS]
    assert_serves(lambda x: (x * 2).contiguous(), [(x,) for x in calls], 6)


def test_gradients() -> None:
    optimized = godynamo.optimize(lambda x: mlp(x).relu().sum(), backend="aot_eager")
    for n in LENGTHS:
        x = torch.randn(n, 16, requires_grad=True)
        found = torch.autograd.grad(optimized(x), [x, *mlp.parameters()])
        assert_alike(found, torch.autograd.grad(mlp(x).relu().sum(), [x, *mlp.parameters()]))
    assert len(entries(optimized)) == 2


def test_the_first_backward_pass_may_come_at_another_size() -> None:
    optimized = godynamo.optimize(lambda x: (mlp(x) / x.shape[0]).sum(), backend="aot_eager")
    for n in (4, 5, 6):
        with torch.no_grad():
            optimized(torch.randn(n, 16))
    for n in (7, 8, 30):
        optimized(torch.randn(n, 16, requires_grad=True))
    x = torch.randn(300, 16, requires_grad=True)
    assert_alike(torch.autograd.grad(optimized(x), [x]), torch.autograd.grad((mlp(x) / 300).sum(), [x]))


def test_after_a_graph_break() -> None:
    def f(x):
        a, b = (x * 2).chunk(2, -1)
        godynamo.graph_break()
        return a * b + a.shape[1]

    assert_serves(f, [(torch.randn(2, n, 4),) for n in LENGTHS], 4)


def test_marks() -> None:
    def f(x):
        return x * 2 + x.shape[0]

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n in (4, 5, 8):
        x = torch.ones(n, 3)
        if n == 4:
            godynamo.mark_dynamic(x, 0, max=8)
        assert_alike(optimized(x), f(x))
    assert len(entries(optimized)) == 1
    optimized(torch.ones(9, 3))
    assert len(entries(optimized)) == 2

    one = torch.ones(1, 3)
    godynamo.mark_dynamic(one, 0)
    with pytest.raises(ConstraintViolationError, match=r"x\.size\(\)\[0\] is marked with mark_dynamic and is 1"):
        godynamo.optimize(f, backend="aot_eager")(one)
    weak = torch.ones(1, 3)
    godynamo.maybe_mark_dynamic(weak, 0)
    assert_alike(godynamo.optimize(f, backend="aot_eager")(weak), f(weak))


@pytest.mark.parametrize(("dynamic", "most"), [(True, 1), (None, 2), (False, 5)])
def test_the_argument_dynamic(dynamic, most) -> None:
    optimized = godynamo.optimize(lambda x: x @ x.t(), backend="aot_eager", dynamic=dynamic)
    for n in range(3, 8):
        x = torch.randn(n, n + 1)
        assert_alike(optimized(x), x @ x.t())
    assert len(entries(optimized)) == most


def closure(gm: Any, example_inputs: Any) -> Any:
    return lambda *inputs: gm.forward(*inputs)


def test_a_compiler_of_another_kind_gets_symbols_on_request() -> None:
    def f(x):
        return x * 2 + x.shape[0]

    assert_serves(f, [(torch.ones(n, 3),) for n in LENGTHS], len(LENGTHS), closure)
    optimized = godynamo.optimize(f, backend=closure, dynamic=True)
    for n in LENGTHS:
        assert_alike(optimized(torch.ones(n, 3)), f(torch.ones(n, 3)))
    assert len(entries(optimized)) == 1
    optimized = godynamo.optimize(f, backend=closure)
    for n in LENGTHS:
        x = torch.ones(n, 3)
        if n == LENGTHS[0]:
            godynamo.mark_dynamic(x, 0)
        assert_alike(optimized(x), f(x))
    assert len(entries(optimized)) == 1


def test_verify_correctness(monkeypatch) -> None:
    monkeypatch.setattr(config, "verify_correctness", True)
    assert_serves(lambda x: mlp(x) + x.shape[0], [(torch.randn(n, 16),) for n in LENGTHS], 2)


def test_inductor_serves_many_sizes_by_one_kernel() -> None:
    optimized = godynamo.optimize(lambda x: (x * 2 + x.shape[0]).sum(-1).relu(), backend="inductor")
    for n in [4, *range(5, 400, 7)]:
        x = torch.randn(n, 3)
        torch.testing.assert_close(optimized(x), (x * 2 + n).sum(-1).relu(), rtol=1e-5, atol=1e-5)
    assert len(entries(optimized)) == 2


def test_inductor_records_what_its_cached_code_assumes() -> None:
    """A convolution is compiled for its sizes; the entry in torch's cache on disk must not serve another size."""
    optimized = godynamo.optimize(lambda x: conv(x).relu(), backend="inductor")
    for n in (6, 8, 10):
        x = torch.randn(2, 3, n, n + 2)
        torch.testing.assert_close(optimized(x), conv(x).relu(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [[4], [4, 6]])
def test_torch_keeps_compiled_code_on_disk(sizes) -> None:
    counters = torch._dynamo.utils.counters
    counters.clear()
    optimized = godynamo.optimize(lambda x, y: (x * 2 + y.view(-1)[0]).relu(), backend="inductor")
    for n in sizes:
        optimized(torch.randn(n, 3), torch.randn(1, 1).t())
    found = counters["inductor"]
    assert found["fxgraph_cache_bypass"] == 0 and found["fxgraph_cache_hit"] + found["fxgraph_cache_miss"] == len(sizes)


@pytest.mark.parametrize(
    "keeps", [torch.zeros_like, torch.Tensor.detach, lambda h: h.shape[0] * 1.0], ids=["zeros_like", "detach", "size"]
)
def test_an_input_with_a_freed_history_gets_no_gradient(keeps) -> None:
    """AOTAutograd detaches such an input, if its example is no leaf: else its freed history would be run again."""
    weight = torch.ones(4, requires_grad=True)

    def f(state: Any, x: Any) -> Any:
        return keeps(state) + x * weight

    optimized = godynamo.optimize(f, backend="aot_eager")
    for n in (3, 3, 4, 5):
        state = (weight * torch.ones(n, 4)).exp()
        state.sum().backward()
        weight.grad = None
        x = torch.randn(n, 4)
        y = optimized(state, x)
        assert_alike(y, f(state, x))
        y.sum().backward()
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, x.sum(0))
    assert len(entries(optimized)) == 2


def test_the_gradient_of_a_computed_input_goes_on() -> None:
    weight = torch.ones(4, requires_grad=True)
    optimized = godynamo.optimize(lambda h, x: h * x, backend="aot_eager")
    for n in (3, 4, 5):
        weight.grad = None
        x = torch.randn(n, 4)
        optimized(weight.exp().expand(n, 4), x).sum().backward()
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, x.sum(0) * weight.detach().exp())
