"""Sizes that change: programs that read sizes, called with tensors of many shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries

#: Sizes that look alike at first, empty ones, ones, primes.
SHAPES = [(4, 6), (6, 4), (8, 8), (1, 6), (4, 1), (7, 13), (2, 6), (30, 2)]


def outcome(f: Callable[..., Any], args: Sequence[Any]) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected) and found.dtype == expected.dtype and found.shape == expected.shape
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert_same(x, y)
    else:
        assert found == expected and type(found) is type(expected)


class Graphs:
    """A backend that returns each graph itself, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        self.count += 1
        return gm.forward


def assert_serves(f: Callable[..., Any], calls: Sequence[Sequence[Any]], most: int) -> None:
    """Compare each call with eager mode, and the number of translations with a bound.

    Whole graphs may take one more entry for each piece, since the first entry is made for the first call's sizes.
    """
    for backend, bound in (("eager", most), (Graphs(), 2 * most)):
        optimized = godynamo.optimize(f, backend=backend)
        for args in calls:
            assert_same(outcome(optimized, args), outcome(f, args))
        assert_no_internal_errors()
        found = entries(optimized)
        assert len(found) <= bound, [e.parts for e in found]


def tensors(shapes: Sequence[Sequence[int]] = SHAPES) -> list[tuple[torch.Tensor]]:
    return [(torch.arange(float(torch.Size(s).numel())).reshape(tuple(s)),) for s in shapes]


def folds(x):
    b, t = x.shape
    return x.reshape(b * t), (b * t, b + t, 2 * b - 1)


def uses_size(x):
    return torch.zeros(x.size(0), x.size(-1) * 2) + x.repeat(1, 2)


def counts(x):
    return x * len(x) + x.numel(), x.shape, x.size()


def divides(x):
    n = x.numel()
    return n // 2, n % 3, n / 4, -n, abs(n), divmod(n, 5), max(n, 3), min(n, 100), n**2


def slices(x):
    half = (x.shape[1] + 1) // 2
    return x[:, :half], x[:, half:], x[-1:]


def through_containers(x):
    sizes = {"rows": x.shape[0], "all": list(x.shape)}
    return x.new_full((sizes["rows"],), 2.0), [n + 1 for n in sizes["all"]]


def splits(x):
    rows = x.shape[0]
    return x.split([rows - 1, 1], 0), torch.split(x.repeat(2, 1), [rows, rows])


def texts(x):
    return f"{x.shape[0]} rows of {x.size(1)}", str(x.shape[0])


def of_types(x):
    n = x.shape[0]
    return isinstance(n, int), type(n) is int, n is None, n == "4", n != None, bool(n)  # noqa: E711


def joined(x):
    return torch.cat([x, x]).shape, torch.stack([x, x, x]).shape, (x.shape + (1,)), x.unsqueeze(0).shape[1:]


@pytest.mark.parametrize(
    "f",
    [folds, uses_size, counts, divides, slices, splits, through_containers, texts, of_types, joined],
    ids=lambda f: f.__name__,
)
def test_one_entry_serves_all_sizes(f) -> None:
    assert_serves(f, tensors(), 1)


def branches(x):
    if x.shape[0] > 5:
        return x + 1
    if x.shape[0] == x.shape[1]:
        return x + 2
    return x + 3


def test_a_branch_on_a_size_is_a_condition() -> None:
    assert_serves(branches, tensors(), 4)


def views(x):
    return x.view(2, -1), x.view(x.shape[0], -1)


def test_a_view_of_an_open_size() -> None:
    assert_serves(views, tensors([(4, 6), (6, 4), (8, 8), (2, 6), (3, 4), (3, 3), (5, 5)]), 2)


def loops(x):
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * i)
    return out


def test_a_loop_over_a_size_makes_it_a_constant() -> None:
    assert_serves(loops, tensors([(2, 3), (2, 5), (2, 1), (3, 3)]), 2)


def broadcasts(x, y):
    return (x + y).shape, (x @ y.T).shape


def test_equal_sizes_are_a_condition() -> None:
    ones = torch.ones
    assert_serves(
        broadcasts,
        [(ones(2, 3), ones(2, 3)), (ones(5, 3), ones(5, 3)), (ones(7, 2), ones(7, 2)), (ones(1, 3), ones(4, 3))],
        2,
    )


def resizes(x):
    n = x.shape[0]
    x.t_()
    return n, x.shape[0]


def test_a_size_read_before_a_change_in_place() -> None:
    optimized = godynamo.optimize(resizes)
    for shape in SHAPES:
        assert optimized(torch.ones(shape)) == resizes(torch.ones(shape))
    assert_no_internal_errors()


def breaks(x, seen):
    n = x.shape[0] * 2
    seen.append(n)
    y = x + 1
    torch._dynamo.graph_break()
    return y.new_ones(n), n


def test_a_size_after_a_graph_break() -> None:
    optimized = godynamo.optimize(breaks)
    for shape in SHAPES:
        ours: list[int] = []
        theirs: list[int] = []
        x = torch.ones(shape)
        assert_same(optimized(x, ours), breaks(x, theirs))
        assert ours == theirs
    assert_no_internal_errors()
    assert godynamo.cache_stats(optimized)["translations"] <= 3


def raises(x):
    return x.view(3, x.shape[0])


def test_an_exception_of_a_size() -> None:
    assert_serves(raises, tensors([(2, 3), (3, 3), (4, 5), (5, 3), (1, 2)]), 3)


def computed(x):
    k = int(x.sum())
    return torch.ones(k), k + 1, x * k


@pytest.mark.parametrize("backend", ["eager", Graphs()], ids=["inline", "whole"])
def test_a_number_of_the_data_is_captured(backend) -> None:
    optimized = godynamo.optimize(computed, backend=backend)
    for n in range(6):
        x = torch.full((3,), n)
        assert_same(optimized(x), computed(x))
    with pytest.raises(RuntimeError, match="negative dimension"):
        optimized(torch.full((3,), -1))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1


def masks(x):
    y = x[x > 3]
    at = torch.nonzero(x)
    return y, y.shape[0], at.size(0) + 1, y.new_zeros(y.numel()), torch.unique(x).shape[0]


@pytest.mark.parametrize("backend", ["eager", Graphs()], ids=["inline", "whole"])
def test_sizes_that_depend_on_data(backend) -> None:
    optimized = godynamo.optimize(masks, backend=backend)
    for args in tensors():
        assert_same(optimized(*args), masks(*args))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1 and not godynamo.explain(masks)(*tensors()[0]).break_reasons


def listed(x, lengths):
    return x.split(lengths.tolist())


@pytest.mark.parametrize("backend", ["eager", Graphs()], ids=["inline", "whole"])
def test_a_list_of_the_data(backend) -> None:
    optimized = godynamo.optimize(listed, backend=backend)
    for lengths in [(1, 2, 3), (2, 2, 2), (0, 5, 1), (6, 0, 0)]:
        args = torch.arange(6.0), torch.tensor(lengths)
        assert_same(optimized(*args), listed(*args))
    with pytest.raises(RuntimeError):
        optimized(torch.arange(6.0), torch.tensor([1, 2, 4]))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1


def test_dynamic_false_makes_sizes_constants() -> None:
    optimized = godynamo.optimize(folds, dynamic=False)
    for args in tensors():
        assert_same(optimized(*args), folds(*args))
    assert len(entries(optimized)) == len(SHAPES)


def needs_value(x):
    return [row * 2 for row in x]


def test_mark_dynamic_names_the_line_that_needs_the_value() -> None:
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    x = torch.ones(3, 4)
    godynamo.mark_dynamic(x, 0)
    line = needs_value.__code__.co_firstlineno + 1
    message = rf"x.size\(\)\[0\] .* its value, 3, at line {line} of .*test_symbols"
    with pytest.raises(ConstraintViolationError, match=message):
        godynamo.optimize(needs_value)(x)
    weak = torch.ones(3, 4)
    godynamo.maybe_mark_dynamic(weak, 0)
    assert_same(godynamo.optimize(needs_value)(weak), needs_value(weak))


def test_marks_decide_what_is_a_constant() -> None:
    optimized = godynamo.optimize(folds)
    for n in (2, 3, 4):
        x = torch.ones(n, 5)
        godynamo.mark_static(x, 0)
        assert_same(optimized(x), folds(x))
    assert len(entries(optimized)) == 3
    optimized = godynamo.optimize(folds)
    for n in (2, 3, 4, 9):
        x = torch.ones(n, 5)
        if n == 2:
            godynamo.mark_dynamic(x, 0, min=2, max=4)
        assert_same(optimized(x), folds(x))
    assert len(entries(optimized)) == 2  # 9 is out of the range
    with pytest.raises(ValueError, match="not between 4 and"):
        godynamo.mark_dynamic(torch.ones(3, 5), 0, min=4)


def test_an_unbacked_size_breaks_the_graph_at_its_branch() -> None:
    x = torch.ones(6, 5)
    godynamo.mark_unbacked(x, 0)
    with pytest.raises(godynamo.exc.Unsupported, match="branch on a tensor.s value"):
        godynamo.optimize(branches, nopython=True)(x)
    optimized = godynamo.optimize(folds, nopython=True)
    assert_same(optimized(x), folds(x))


def checked(x, n):
    k = n.item()
    torch._check(k >= 2, lambda: f"{k} is less than 2")
    torch._check(k <= x.shape[0])
    return x[:k], torch.zeros(k)


def test_a_check_of_a_run_time_value() -> None:
    optimized = godynamo.optimize(checked, nopython=True)
    x = torch.ones(5, 2)
    for n in (2, 3, 5, 1, 6, 4):
        assert_same(outcome(optimized, (x, torch.tensor(n))), outcome(checked, (x, torch.tensor(n))))
    assert_no_internal_errors()
    assert len(entries(optimized)) == 1


def asks_about_kinds(x):
    flags = x.is_nested, x.is_sparse, x.is_cpu, x.is_quantized, x.itemsize
    if torch.is_floating_point(x) and not x.is_complex() and x.element_size() == 4:
        x = x * 2
    return x.sum(0), flags


def test_a_question_about_dtype_or_layout_fixes_no_size() -> None:
    calls = [(torch.ones(*shape),) for shape in SHAPES] + [(torch.ones(3, 4, dtype=torch.int64),)]
    assert_serves(asks_about_kinds, calls, 2)


def test_a_transformer_layer_is_translated_once_for_all_lengths() -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    calls = [(torch.randn(batch, length, 16),) for batch, length in ((2, 5), (3, 9), (4, 4))]
    assert_serves(lambda x: layer(x), calls, 1)


def test_dynamic_true_gives_the_first_graph_ints() -> None:
    def f(x, y, k, scale):
        return (x[:k] * scale).reshape(-1, y.shape[0]) + y

    graphs = Graphs()
    optimized = godynamo.optimize(f, backend=graphs, dynamic=True)
    for n in (2, 3, 4, 5):
        args = torch.randn(2 * n, n), torch.randn(n), n, n / 2
        assert_same(optimized(*args), f(*args))
    assert len(entries(optimized)) == graphs.count == 1


@pytest.mark.parametrize("backend", ["eager", Graphs()])
def test_floats_computed_from_numbers_of_the_data(backend) -> None:
    """In a whole graph, such a float exists after the graph only: it is no operand, and is not computed before it."""

    def f(t):
        half = int(t.sum()) / 2
        return f"{half:.3f}", half * 3.0, t * 2

    def operand(t):
        half = int(t.sum()) / 2
        return t * half, t + 1 if half > 2 else t

    for g in (f, operand):
        optimized = godynamo.optimize(g, backend=backend)
        for n in (3, 4, 5):
            assert_same(optimized(torch.arange(n)), g(torch.arange(n)))
    assert_no_internal_errors()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", lambda gm, _: gm.forward])
def test_the_value_of_an_example_is_no_constant(backend) -> None:
    """FakeTensor knows the value of an input without dimensions."""

    def f(x, n):
        return x.new_empty(1).expand(n.item()).shape[0], x.new_empty(1).expand(n.item())[:3].shape[0]

    optimized = godynamo.optimize(f, backend=backend)
    for n in (7, 5, 0, 2):
        assert optimized(torch.ones(1), torch.tensor(n)) == f(torch.ones(1), torch.tensor(n))


def test_vectors_whose_sizes_depend_on_data_are_joined() -> None:
    optimized = godynamo.optimize(lambda x: torch.cat([x[x > 0], x, x[x > 1]]).shape)
    for n in range(4):
        x = torch.arange(-2, n)
        assert optimized(x) == torch.cat([x[x > 0], x, x[x > 1]]).shape
    assert len(entries(optimized)) == 1
