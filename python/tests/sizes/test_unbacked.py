"""Numbers known only at run time in graphs for compilers: unbacked symbols, assumptions, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.backends.registry import lookup_backend

import godynamo
from godynamo import utils
from harness.capture import assert_no_internal_errors, entries
from test_symbols import outcome

T = torch.tensor


def same(found: Any, expected: Any) -> bool:
    """Return whether two results have the same types, metadata and bits."""
    if isinstance(expected, torch.Tensor):
        metadata = found.shape == expected.shape and found.dtype == expected.dtype
        return metadata and found.requires_grad == expected.requires_grad and torch.equal(bits(found), bits(expected))
    if isinstance(expected, (tuple, list)):
        pairs = zip(found, expected, strict=True) if type(found) is type(expected) else [(0, 1)]
        return all(same(x, y) for x, y in pairs)
    return type(found) is type(expected) and repr(found) == repr(expected)


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8)


def assert_serves(f: Callable[..., Any], calls: Sequence[Sequence[Any]], most: int = 1, backend: Any = None) -> Any:
    """Compare each call with eager mode. ``most`` bounds the translations; no call may run the graph as captured."""
    captured = utils.counters["stats"]["graphs_with_data_dependent_sizes"]
    optimized = godynamo.optimize(f, backend=backend or "aot_eager")
    for args in calls:
        expected, found = outcome(f, args), outcome(optimized, args)
        assert same(found, expected), (args, found, expected)
    assert_no_internal_errors()
    assert godynamo.cache_stats(optimized)["translations"] <= most, [e.parts for e in entries(optimized)]
    if backend is None:
        assert utils.counters["stats"]["graphs_with_data_dependent_sizes"] == captured
    return optimized


def masks(x: Any, m: Any) -> Any:
    y = x[m]
    return y * y.shape[0], x.nonzero().shape[0], y.sum(0)


def pairs(x: Any, m: Any) -> Any:
    (i,) = torch.where(m)
    return x[i] + i.numel(), torch.arange(i.shape[0]), x.repeat_interleave(m.long(), 0)


def graph_convolution(x: Any, m: Any) -> Any:
    n = x.shape[0]
    loops = torch.arange(n)
    source, target = loops[m], loops.flip(0)[m]
    source, target = torch.cat([source, loops]), torch.cat([target, loops])
    degree = torch.zeros(n).index_add_(0, target, torch.ones(target.shape[0])).pow(-0.5)
    h = x.exp()
    out = torch.zeros_like(h).index_add_(0, target, h[source] * (degree[source] * degree[target])[:, None])
    return out.relu()


def created(_: Any, n: Any) -> Any:
    k = n.item()
    return torch.ones(k) + k, torch.full((k, 2), k) + torch.arange(int(n))[:, None], torch.zeros(k, 3).mean()


def in_range(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= 0, lambda: f"{k} is negative")
    torch._check(k <= x.shape[0])
    return x.narrow(0, 0, k) * 2, k > 2


def pieces(x: Any, n: Any) -> Any:
    return x.split([int(n), 5 - int(n)]), x[: n.item()]


def listed(x: Any, lengths: Any) -> Any:
    return x.split(lengths.tolist())


def scaled(x: Any, s: Any) -> Any:
    k = s.item() * 2.0 + 1.5
    return x * k + float(s), k, x.clamp(max=k)


MASKS = [T(m) > 0 for m in ([1, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0] * 5, [1] * 5, [1, 0, 1, 0, 0])]
NUMBERS = [(torch.arange(5.0), T(n)) for n in (3, 2, 0, 1, 5, 7, -1)]


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (masks, [(torch.randn(5, 3), m) for m in MASKS]),
        (pairs, [(torch.randn(5, 3), m) for m in MASKS]),
        (graph_convolution, [(torch.randn(5, 3), m) for m in MASKS]),
        (created, NUMBERS),
        (in_range, NUMBERS),
        (pieces, NUMBERS),
        (listed, [(torch.arange(5.0), T(n)) for n in ([2, 3], [5, 0], [1, 4], [1, 1])]),
        (scaled, [(torch.randn(5), T(s)) for s in (3.5, 0.0, -1.25, math.nan, math.inf)]),
    ],
)
def test_one_graph_serves_all_values(f, calls) -> None:
    assert_serves(f, calls)


def test_sizes_that_vary_are_symbols_beside_it() -> None:
    assert_serves(masks, [(torch.randn(n, 2), torch.arange(n) % 3 > 0) for n in (4, 5, 7, 9, 20)], 2)
    assert_serves(lambda x: x.unique(), [(torch.randint(0, 4, (n,)),) for n in (4, 5, 7, 9, 20)], 2)


@pytest.mark.parametrize("n", [2**31 + 7, 2**40])
def test_large_numbers(n) -> None:
    def f(x, n):
        k = n.item()
        return torch.arange(k, k + 3), torch.empty(1).expand(k)[:2].shape, x + k, k // 3, k % 3, x[:2].shape[0]

    calls = [(torch.ones(1), T(3)), (torch.ones(1), T(n)), (torch.ones(1).expand(n), T(1))]
    optimized = godynamo.optimize(f, backend="aot_eager")
    for x, k in calls:
        x = x if x.shape[0] == 1 else x[:2]
        assert same(optimized(x, k), f(x, k))
    assert_serves(lambda x: (x[:3] * 2, x[-1] + x.shape[0]), [(torch.ones(1).expand(k),) for k in (4, 5, n)], 2)


def two_masks(x: Any, a: Any, b: Any) -> Any:
    return x[a] + x[b]


def test_an_assumption_of_the_compiler_may_be_wrong() -> None:
    """torch takes the two sizes to be equal, but eager mode broadcasts a size of 1, and raises for others."""
    x = torch.randn(5)
    assert_serves(two_masks, [(x, a, b.clone()) for a in MASKS for b in MASKS])


def test_compiled_code_whose_assumption_is_mostly_wrong_is_no_longer_run() -> None:
    runs = []

    def backend(gm, example_inputs):
        compiled = lookup_backend("aot_eager")(gm, example_inputs)

        def run(*inputs):
            runs.append(1)
            return compiled(*inputs)

        return run

    optimized = godynamo.optimize(two_masks, backend=backend, dynamic=True)
    backend.supports_dynamic_shapes = True  # type: ignore[attr-defined]
    x = torch.randn(5)
    for _ in range(30):
        assert same(optimized(x, MASKS[0], MASKS[1]), two_masks(x, MASKS[0], MASKS[1]))
    assert 0 < len(runs) < 15


def test_a_change_of_an_input_is_not_made_twice() -> None:
    def plain(x, m):
        x[m] = 0.0
        return x[x >= 0] * 2

    def with_assumption(x, m):
        x.mul_(2)
        return x[m] + x[x > 0]

    for f in (plain, with_assumption):
        optimized = godynamo.optimize(f, backend="aot_eager")
        for m in MASKS:
            ours, theirs = T([1.0, -1.0, 2.0, 3.0, -4.0]), T([1.0, -1.0, 2.0, 3.0, -4.0])
            assert same(outcome(optimized, (ours, m)), outcome(f, (theirs, m)))
            assert torch.equal(ours, theirs)


def views(y: Any) -> Any:
    return y, y.t().reshape(-1)


def changed_view(y: Any) -> Any:
    return y, y.t().contiguous().add_(1)


def overlapping(y: Any) -> Any:
    return y.unsqueeze(1).expand(-1, 2, -1).reshape(-1, 3)


@pytest.mark.parametrize("op", [views, changed_view, overlapping])
def test_whether_a_result_is_a_view_may_depend_on_the_number(op) -> None:
    def f(x, m):
        return op(x[m])

    optimized = godynamo.optimize(f, backend="aot_eager")
    for m in MASKS:
        x = torch.randn(5, 3)
        found, expected = optimized(x, m), f(x, m)
        assert same(found, expected)
        last = [r[-1] if isinstance(r, tuple) else r for r in (found, expected)]
        raised = [isinstance(outcome(t.add_, (1,)), tuple) for t in last]
        assert raised[0] == raised[1]
        assert same(found, expected)


def test_attention_keeps_its_rounding() -> None:
    def f(x, m):
        y = x[m][None]
        return F.scaled_dot_product_attention(y, y, y)

    optimized = godynamo.optimize(f, backend="aot_eager")
    for m in (MASKS[0], MASKS[3], MASKS[4]):
        x = torch.randn(5, 3)
        assert same(optimized(x, m), f(x, m))


linear = torch.nn.Linear(3, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "loss",
    [
        lambda x, m: linear(x[m]).relu().sum(),
        lambda x, m: torch.zeros(5, 4).index_add_(0, m.nonzero()[:, 0], linear(x[m]).float()).sigmoid().sum(),
        lambda x, m: F.cross_entropy(linear(x)[m], torch.zeros(5, dtype=torch.long)[m]),
        lambda x, m: sum((p**2).sum() * i for i, p in enumerate(x.split([int(m.sum()), 5 - int(m.sum())]))),
        lambda x, m: F.dropout(x[m] * x.detach().sum().item(), 0.5).pow(2).sum(),
        lambda x, m: linear(x[m]).sort(0)[0].cumsum(0).sum(),  # torch refuses the backward graph
    ],
)
def test_training(loss, dtype) -> None:
    linear.to(dtype)
    optimized = godynamo.optimize(loss, backend="aot_eager")
    for m in MASKS:
        values, results = torch.randn(5, 3, dtype=dtype), []
        for f in (loss, optimized):
            torch.manual_seed(0)
            x = values.clone().requires_grad_()
            value = f(x, m)
            results.append((value, torch.autograd.grad(value, [x, *linear.parameters()], allow_unused=True)))
        assert same(results[1], results[0])
    assert len(entries(optimized)) == 1
    assert_no_internal_errors()


def test_a_graph_that_needs_the_value_breaks_at_the_number() -> None:
    def f(x, n):
        y = x * 2
        k = n.item()
        return y.chunk(k)[0] + torch.linspace(0, 1, k).sum()

    optimized = godynamo.optimize(f, backend="aot_eager")
    for k in (2, 3, 4, 2):
        assert same(optimized(torch.arange(6.0), T(k)), f(torch.arange(6.0), T(k)))
    assert len(entries(optimized)) == 1
    assert_no_internal_errors()


# ---- floats that vary ----

FLOATS = (2.0, 3.0, 0.5, -7.3, 0.0, -0.0, 1e300, 5e-324, math.inf, math.nan)


def with_float(x: Any, f: Any) -> Any:
    return x**f, torch.full_like(x, f), F.leaky_relu(x, f), x.add(x, alpha=f), torch.where(x > f, x, f), x / f, f - x


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_float_is_a_symbol_from_its_second_value_on(dtype) -> None:
    floats = [f for f in FLOATS if dtype is torch.float64 or not 1e9 < abs(f) < math.inf]
    assert_serves(with_float, [(torch.arange(-2, 3).to(dtype), f) for f in floats], 2)


def test_a_step_of_an_optimizer() -> None:
    def step(p, g, lr, decay):
        return p - lr * (g + decay * p) + math.atan(decay)

    calls = [(torch.randn(5), torch.randn(5), lr, decay) for lr, decay in ((0.1, 0.1), (0.2, 0.3), (0.3, 0.4))]
    assert_serves(step, calls, 2)


def test_a_float_that_a_compiler_needs_is_a_constant() -> None:
    def f(x, s):
        return F.interpolate(x, scale_factor=s) + torch.arange(0.0, s, 0.5).sum()

    assert_serves(f, [(torch.randn(1, 2, 4), s) for s in (2.0, 3.0, 1.5)], 3)


def test_a_float_computed_from_a_size() -> None:
    """A compiler is not told of conditions on floats: that the root is not 0, say."""

    def f(x):
        return x.relu() * (1 / math.sqrt(x.shape[0]))

    assert_serves(f, [(torch.randn(n),) for n in (4, 9, 16, 25)], most=2)


def test_inductor() -> None:
    def f(x, m, n, s):
        y = x[m]
        return y * s + y.shape[0], torch.arange(n.item()) * 2.0, (y * x.sum().item()).sum(0)

    optimized = godynamo.optimize(f, backend="inductor")
    for m, n, s in zip(MASKS, (3, 0, 1, 7, 2), (2.0, 3.0, 0.5, 0.0, 1.0), strict=True):
        x = torch.randn(5, 3)
        torch.testing.assert_close(optimized(x, m, T(n), s), f(x, m, T(n), s))
    assert godynamo.cache_stats(optimized)["translations"] == 2
    with pytest.raises(RuntimeError, match="negative dimension|upper bound and lower bound"):
        optimized(torch.randn(5, 3), MASKS[0], T(-1), 2.0)


# ---- bools of the data ----


def conditional(x: Any, m: Any) -> Any:
    return x * bool(m.any()) + m.all().item()


def in_numbers(x: Any, m: Any) -> Any:
    some, every = m.any().item(), bool(m.all())
    return x * (some + 2 * every), 1.5 - some, some + every, 7 // (some + 1), some, int(every), -every + 0.25 * some


def as_numbers(x: Any, m: Any) -> Any:
    return x * int(m.any()) + float(m.all()), float(m.sum()), x[: int(m[0]) + 1], int(m[-1] > 0)


def in_comparisons(x: Any, m: Any) -> Any:
    some = m.any().item()
    x *= some
    return x == some, x > some, some < x, x / (some + 1), some + x.long(), f"{some} {some!r}", some == 1


def changed(x: Any, m: Any) -> Any:
    m = m.clone()
    some = bool(m[0])
    m[0] = ~m[0]
    return x + some, m, some


@pytest.mark.parametrize("f", [conditional, in_numbers, as_numbers, in_comparisons, changed], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_a_bool_is_captured(f, dtype) -> None:
    assert_serves(f, [(torch.arange(5).to(dtype), m) for m in MASKS])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, m: (x > 0) * bool(m.any()),
        lambda x, m: (x > 0) | m.any().item(),
        lambda x, m: x - bool(m.any()),
        lambda x, m: torch.mul(x, bool(m.any())),
        lambda x, m: torch.where(x > 1, x, m.any().item()),
        lambda x, m: x * 2 if bool(m.any()) else x * 3,
        lambda x, m: x * 2 if m.all().item() else x * 3,
        lambda x, m: (x * 2, not bool(m.any())),
        lambda x, m: x * [1, 2][bool(m.any())],
        lambda x, m: x * (bool(m.any()) & True),
        lambda x, m: (x * 2, bool(m.any()) is True),
        lambda x, m: x + (1.5 - bool(m.any())),
        lambda x, m: x * bool(m),
        lambda x, m: x * {True: 2, False: 3}[m.any().item()],
        lambda x, m: x.sum(bool(m.any()) - 1),
    ],
)
def test_other_uses_of_a_bool(f) -> None:
    optimized = godynamo.optimize(f, backend="aot_eager")
    for m in MASKS:
        args = torch.arange(5.0), m
        assert same(outcome(optimized, args), outcome(f, args))
    assert_no_internal_errors()


def test_a_bool_in_training() -> None:
    def f(x: Any, m: Any) -> Any:
        return (linear(x) * bool(m.any()) + float(m.all())).relu().sum()

    linear.float()
    optimized = godynamo.optimize(f, backend="aot_eager")
    for m in MASKS:
        results = []
        values = torch.randn(5, 3)
        for g in (f, optimized):
            x = values.clone().requires_grad_()
            value = g(x, m)
            results.append((value, torch.autograd.grad(value, [x, *linear.parameters()])))
        assert same(results[1], results[0])
    assert len(entries(optimized)) == 1
    assert_no_internal_errors()


def test_a_bool_under_inductor() -> None:
    optimized = godynamo.optimize(in_numbers, backend="inductor")
    for m in MASKS:
        x = torch.randn(5)
        torch.testing.assert_close(optimized(x, m), in_numbers(x, m))
    assert godynamo.cache_stats(optimized)["translations"] == 1
