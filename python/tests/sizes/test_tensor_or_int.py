"""``max`` and ``min`` of a tensor and an int: either of the two objects, with one translation for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils
from harness.capture import assert_no_internal_errors
from test_symbols import outcome
from test_unbacked import same

T = torch.tensor


def assert_one(f: Callable[..., Any], calls: Sequence[Sequence[Any]], breaks: bool = False) -> None:
    """Compare each call with eager mode. One translation without a graph break must serve all calls."""
    optimized = godynamo.optimize(f)
    for args in calls:
        expected, found = outcome(f, args), outcome(optimized, args)
        assert same(found, expected), (args, found, expected)
    assert_no_internal_errors()
    assert bool(utils.counters["graph_break"]) == breaks, utils.counters["graph_break"]
    if not breaks:
        assert godynamo.cache_stats(optimized)["translations"] == 1


BOXES = [[a, b, c, d] for a, b in [(-3, 2), (1, -1), (0, 0), (-2, -2), (2, 3)] for c, d in [(4, 9), (30, 4), (20, 20)]]


def paste(image: Any, patch: Any, box: Any) -> Any:
    height, width = image.shape
    x0, x1 = max(box[0], 0), min(box[2] + 1, width)
    y0, y1 = max(box[1], 0), min(box[3] + 1, height)
    out = image.clone()
    out[y0:y1, x0:x1] = patch[(y0 - box[1]) : (y1 - box[1]), (x0 - box[0]) : (x1 - box[0])]
    return out, x0, [x1], y0 * box, 2.5 * (y1 - box)


def test_a_pasted_patch() -> None:
    assert_one(paste, [(torch.zeros(10, 12), torch.rand(40, 40), T(box)) for box in BOXES])
    utils.counters.clear()
    assert_one(paste, [(torch.zeros(h, 13), torch.rand(40, 40), T(box)) for h, box in enumerate(BOXES, 3)])


def returned(t: Any) -> Any:
    return max(t, 2), min(t, 2), max(2, t), min(2, t)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_the_object_is_that_of_cpython(dtype: torch.dtype) -> None:
    calls = [(torch.tensor(n, dtype=dtype),) for n in (1, 2, 3)]
    assert_one(returned, calls)
    optimized = godynamo.optimize(returned)
    for (t,) in calls:  # the tensor itself, not a copy
        assert [r is t for r in optimized(t)] == [r is t for r in returned(t)]


ARITHMETIC = [lambda a, b: a + b, lambda a, b: b - a, lambda a, b: a * b, lambda a, b: b / a, lambda a, b: a / b]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.bool, torch.float16])
def test_arithmetic(dtype: torch.dtype) -> None:
    for op, shape, own in itertools.product(ARITHMETIC, [(), (3,)], [torch.int64, torch.int32]):

        def f(t: Any, x: Any, op: Any = op) -> Any:
            y = op(max(t, 1), x)
            return y, y.dtype

        calls = [(torch.tensor(n, dtype=own), torch.ones(shape, dtype=dtype)) for n in (0, 1, 5)]
        optimized = godynamo.optimize(f)
        for args in calls:
            assert same(outcome(optimized, args), outcome(f, args)), args
    assert_no_internal_errors()


def test_a_loss_divided_by_a_count() -> None:
    def f(x: Any, w: Any, mask: Any) -> Any:
        loss = (x * w)[mask].sum() / max(1, mask.sum())
        loss.backward()
        return loss

    optimized = godynamo.optimize(f)
    for mask in ([True, False, True], [False] * 3, [True] * 3):
        found = []
        for fn in (f, optimized):
            w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
            found.append((fn(torch.arange(3.0), w, T(mask)), w.grad))
        assert same(found[1], found[0])
    assert_no_internal_errors()
    assert not utils.counters["graph_break"], utils.counters["graph_break"]
    assert godynamo.cache_stats(optimized)["translations"] == 1


def kinds(t: Any) -> Any:
    a = max(t, 1)
    return isinstance(a, int), type(a)


def branch(t: Any) -> Any:
    return t + 1 if max(t, 1) > 2 else t - 1


def attribute(t: Any) -> Any:
    a = max(t, 1)
    return a.dtype if hasattr(a, "dtype") else a


def in_place(t: Any) -> Any:
    a = max(t, 1)
    a += t
    return a, t


def a_list(t: Any) -> Any:
    a = max(t, 1)
    return [10, 20, 30, 40][a], {a: 1}.get(1), [a] * 2, a in [1, 5], a is t, a == 1, -a, not a


def index(t: Any) -> Any:
    x = torch.arange(9).reshape(3, 3)
    a = min(t, 2)
    y = x[a]
    x += 1
    return y


def with_an_int(t: Any) -> Any:
    return (
        max(t, 1) + 1,
        max(t, 1) * 2.5,
        max(max(t, 1), 3),
        f"{min(t, 1)}",
        int(max(t, 1)),
        torch.full((2,), max(t, 1)),
    )


def with_three(t: Any) -> Any:
    return max(t, 1, 2), max([t, 1]), max(t, 1, key=lambda v: -v)


def stored_in(t: Any) -> Any:
    x = torch.zeros(3, dtype=t.dtype)
    x[0] = max(t, 1)
    return x, torch.stack([t, t])[max(t, 1) :]


@pytest.mark.parametrize(
    "f",
    [kinds, branch, attribute, in_place, a_list, index, with_an_int, with_three, stored_in],
    ids=lambda f: f.__name__,
)
def test_what_distinguishes_them(f: Callable[..., Any]) -> None:
    optimized = godynamo.optimize(f)
    for n in (0, 1, 2, 3):
        t, u = T(n), T(n)
        assert same(outcome(optimized, (t,)), outcome(f, (u,)))
        assert torch.equal(t, u)
    assert_no_internal_errors()


def test_exceptions() -> None:
    def f(t: Any, x: Any) -> Any:
        try:
            return x[: max(t, 1)] + max(t, 1)
        except Exception as error:
            return str(error)

    calls = [(T(0), torch.ones(3)), (T(2), torch.ones(3)), (T([1, 2]), torch.ones(3)), (T(1.5), torch.ones(3))]
    optimized = godynamo.optimize(f)
    for args in calls:
        assert same(outcome(optimized, args), outcome(f, args)), args
    assert_no_internal_errors()
    empty = [(torch.tensor([], dtype=torch.int64), torch.ones(3)), (torch.tensor(1, device="meta"), torch.ones(3))]
    for args in empty:
        assert same(outcome(optimized, args), outcome(f, args)), args


class Seen(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_the_comparison() -> None:
    def f(t: Any) -> Any:
        with Seen() as seen:
            a = max(t, 1) * t
        return a, seen.names

    optimized = godynamo.optimize(f)
    for n in (0, 3):
        assert same(outcome(optimized, (T(n),)), outcome(f, (T(n),)))


class Own(torch.Tensor):
    pass


def test_a_subclass() -> None:
    def f(t: Any) -> Any:
        return max(t, 1), max(t, 1) * t, torch.ones(5)[: max(t, 1)]

    optimized = godynamo.optimize(f)
    for n in (0, 3):
        assert same(outcome(optimized, (T(n).as_subclass(Own),)), outcome(f, (T(n).as_subclass(Own),)))


def test_across_a_break() -> None:
    def f(t: Any, x: Any) -> Any:
        a = max(t, 1)
        torch._dynamo.graph_break()
        return x[:a] * a, a

    optimized = godynamo.optimize(f)
    for n in (0, 1, 2, 3):
        assert same(outcome(optimized, (T(n), torch.ones(4))), outcome(f, (T(n), torch.ones(4))))


def test_other_backends_break() -> None:
    optimized = godynamo.optimize(returned, backend=lambda gm, _: gm.forward)
    for n in (1, 2, 3):
        assert same(outcome(optimized, (T(n),)), outcome(returned, (T(n),)))
    assert utils.counters["graph_break"]
