"""Loops whose number of turns is a size: captured once for all sizes if each turn starts from the same state."""

from __future__ import annotations

import itertools
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import utils
from harness.capture import assert_no_internal_errors
from test_symbols import outcome
from test_unbacked import same

SIZES = [3, 5, 0, 1, 7, 2]


@pytest.fixture(autouse=True)
def without_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def inputs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(n)
    return torch.rand(n) * 9, torch.rand(n, 4)


def compared(f: Callable[..., Any], sizes: list[int] = SIZES) -> int:
    """Compare each call with eager mode, results and changes of arguments; return the number of translations."""
    optimized = godynamo.optimize(f)
    for n in sizes:
        ours, theirs = inputs(n), inputs(n)
        expected, found = outcome(f, theirs), outcome(optimized, ours)
        assert same(found, expected), (n, found, expected)
        assert same(ours, theirs), n
    assert_no_internal_errors()
    return int(godynamo.cache_stats(optimized)["translations"])


def rows(x, y):
    out = torch.zeros((len(x), 2), dtype=x.dtype)
    s = torch.zeros(len(x))
    for i in range(len(x)):
        w = int(x[i].item()) + 1
        out[i, :] = y[i, :2] * w
        s[i] = w
    return out.permute(1, 0), s + 1


def resized(x, y):
    """A program of Keypoint R-CNN."""
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    out = torch.zeros(len(x), 2)
    for i in range(x.shape[0]):
        h = max(int(x[i].item()), 1)
        big = F.interpolate(image, size=(h, 3), mode="bicubic", align_corners=False)
        at = big.reshape(1, -1).argmax(dim=1)
        out[i, 0] = at[0] % 3
        out[i, 1] = torch.div(at[0], 3, rounding_mode="floor")
    return out


def helper(row, w):
    values = [row * k for k in range(3)]
    values.append(row + w)
    return sum(values)


def with_calls(x, y):
    out = y.clone()
    for i in range(y.shape[0]):
        out[i] = helper(y[i], x[i])
    return out


def before_and_after(x, y):
    a = y * 2
    b = a.sum(0)
    out = torch.empty_like(y)
    for i in range(len(y)):
        out[i] = a[i] - b
    c = out + b
    return c.sum(1), b, a.shape[0]


def in_place(x, y):
    for i in range(len(x)):
        x[i] = x[i] * 2
        y[i] += x[i]
    return x.sum()


def two_loops(x, y):
    for i in range(len(x)):
        x[i] = i
    z = x * 2
    for k in range(len(y)):
        y[k] = z[k]
    return z


def of_rows(x, y):
    out = torch.zeros_like(x)
    for row in y:
        out += row.sum()
    return out


def comprehension(x, y):
    parts = [row * 2 + w for row, w in zip(y, x)]
    if len(parts) > 0:
        return torch.stack(parts, dim=0)[:, None]
    return y.new_empty((0, 1, 4))


def comprehension_of_range(x, y):
    parts = [y[i] * i for i in range(len(x))]
    return torch.cat([torch.stack(parts), y]) if parts else y


def returned_list(x, y):
    return [row + 1 for row in y], len(y)


def unequal(x, y):
    parts = [a + b for a, b in zip(x[1:], y)]
    return len(parts) * x, parts, len([a * b for a, b in zip(y, torch.cat([x, x]))])


def passed_on(x, y):
    parts = [row + 1 for row in y]
    torch._dynamo.graph_break()
    return torch.stack(parts) if parts else None, len(parts)


def of_the_data(x, y):
    kept = y[x > 4]
    out = torch.zeros(kept.shape[0], 4)
    for i in range(out.shape[0]):
        out[i] = kept[i] + i
    return out


def until_a_number_of_the_data(x, y):
    out = torch.zeros(9)
    n = int(x.sum().item()) % 9
    for i in range(n):
        out[i] = i + 1
    return out, [out[k] * 2 for k in range(n - 4)]


def inner(x, y):
    return rows(x, y)[0].sum() + with_calls(x, y).sum()


ONCE = [
    rows,
    resized,
    with_calls,
    before_and_after,
    in_place,
    two_loops,
    of_rows,
    comprehension,
    comprehension_of_range,
    returned_list,
    of_the_data,
    until_a_number_of_the_data,
    inner,
]


@pytest.mark.parametrize("f", ONCE, ids=lambda f: f.__name__)
def test_captured_once(f: Callable[..., Any]) -> None:
    breaks = utils.counters["graph_break"].copy()
    # another translation may serve no rows: torch.stack of no tensors raises, a branch on the length is a condition
    assert compared(f) <= 2
    assert utils.counters["graph_break"] == breaks


@pytest.mark.parametrize("f", [unequal, passed_on], ids=lambda f: f.__name__)
def test_other_entries(f: Callable[..., Any]) -> None:
    """Conditions on sizes and the resume function have entries of their own."""
    compared(f)


# ---- loops that are captured turn by turn ----------------------------------------------------------------------------


class Holder:
    def __init__(self) -> None:
        self.total: Any = 0
        self.seen: list[Any] = []


def carried(x, y):
    total = torch.zeros(4)
    for i in range(len(x)):
        total = total + y[i]
    return total


def appended(x, y):
    out = []
    for i in range(len(x)):
        out.append(y[i] + 1)
    return out


def counted(x, y):
    count = 0
    for row in y:
        row += 1
        count += 1
    return count


def in_a_dict(x, y):
    found: dict[str, Any] = {"n": 0}
    for i in range(len(x)):
        y[i] = x[i]
        found["n"] += 1
    return found


def in_an_object(x, y):
    holder = Holder()
    for i in range(len(x)):
        y[i] = i
        holder.total = holder.total + 1
        holder.seen.append(i)
    return holder.total, holder.seen


def in_a_cell(x, y):
    n = 0

    def step():
        nonlocal n
        n += 1
        return n

    for i in range(len(x)):
        y[i] = step()
    return n


def last_item(x, y):
    i, row = -1, None
    for i in range(len(x)):
        y[i] = i
    for row in y:
        x[0] = 1
    return i, row


def breaks_out(x, y):
    for i in range(len(x)):
        if i == 2:
            break
        y[i] = i
    else:
        y = y + 1
    return y


def returns(x, y):
    for i in range(len(x)):
        y[i] = 1
        if i == 1:
            return i
    return None


def on_the_index(x, y):
    names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    for i in range(len(x)):
        y[i] = len(names[i]) + (i % 2 == 0)
    return y


def on_the_data(x, y):
    for i in range(len(x)):
        if x[i] > 4:
            y[i] = 0
    return y


def steps_an_iterator(x, y):
    numbers = iter(range(100))
    for i in range(len(x)):
        y[i] = next(numbers)
    return next(numbers)


def steps_a_generator(x, y):
    numbers = (k * 2 for k in range(100))
    for i in range(len(x)):
        y[i] = list(itertools.islice(numbers, 1))[0]
    return next(numbers)


def steps_two(x, y):
    numbers = iter([1.0] * 50)
    for i in range(len(x)):
        a, b = zip([0, 1], numbers)
        y[i] = a[1] + b[0]
    return len(list(numbers))


def replaced(x, y):
    for i in range(len(x)):
        y.unsqueeze_(0)
    return y.shape


def in_a_try(x, y):
    done = []
    try:
        for i in range(9):
            y[i] = x[i]
            done.append(i)
        for k in range(len(x)):
            y[k] = 3
    except IndexError as error:
        return str(error), y.sum()
    return None


def after_a_try(x, y):
    for i in range(len(x)):
        y[i] = 2
    try:
        return y.reshape(5, -1)
    except RuntimeError as error:
        return str(error), y.sum()


def indexed_list(x, y):
    parts = [row + 1 for row in y]
    return parts[:2], parts[-1] if len(parts) else None


def grown_list(x, y):
    parts = [row + 1 for row in y]
    parts.append(x)
    return parts, [y] + [r for r in y], list(reversed(parts))


def iterated_list(x, y):
    parts = [row + 1 for row in y]
    return sum(p.sum() for p in parts), parts == [], [*parts], y in [parts], tuple(parts)


def list_of_ints(x, y):
    return [i * 2 for i in range(len(x))], [(i, row) for i, row in enumerate(y)], {i: 1 for i in range(len(x))}


def nested(x, y):
    for i in range(y.shape[0]):
        for k in range(x.shape[0]):
            y[i, k % 4] = i + k
    return [[r + q for q in y] for r in y]


def ranges_elsewhere(x, y):
    for i in list(map(range, [len(x)])):
        y = y + len(i)
    for row in reversed(range(len(x))):
        y = y + row
    made = range(len(x))
    generator = (row * 2 for row in zip(x, y))
    y += 1
    return y, made, list(made), [a for (a,) in [(1,)]], list(generator)


def negative(x, y):
    parts = [x + i for i in range(x.shape[0] - 3)]
    return len(parts), parts, bool(parts)


def drops(x, y):
    first = y * 2
    for i in range(len(x)):
        first = None
        y[i] = 1
    return y, first


def frees(x, y):
    died = []
    for i in range(len(x)):
        one = Holder()
        weakref.finalize(one, died.append, i)
        y[i] = 1
    return died


TURN_BY_TURN = [
    carried,
    appended,
    counted,
    in_a_dict,
    in_an_object,
    in_a_cell,
    last_item,
    breaks_out,
    returns,
    on_the_index,
    on_the_data,
    steps_an_iterator,
    steps_a_generator,
    steps_two,
    replaced,
    in_a_try,
    after_a_try,
    indexed_list,
    grown_list,
    iterated_list,
    list_of_ints,
    nested,
    ranges_elsewhere,
    negative,
    drops,
    frees,
]


@pytest.mark.parametrize("f", TURN_BY_TURN, ids=lambda f: f.__name__)
def test_turn_by_turn(f: Callable[..., Any]) -> None:
    compared(f)
    with torch.enable_grad():
        compared(f)


@pytest.mark.parametrize("f", ONCE, ids=lambda f: f.__name__)
def test_with_gradients(f: Callable[..., Any]) -> None:
    with torch.enable_grad():
        optimized = godynamo.optimize(f)
        for n in SIZES:
            ours, theirs = inputs(n), inputs(n)
            for t in (*ours, *theirs):
                t.requires_grad_()
            assert same(outcome(optimized, tuple(t * 1 for t in ours)), outcome(f, tuple(t * 1 for t in theirs))), n
    assert_no_internal_errors()


def test_many_loops_that_are_captured_turn_by_turn() -> None:
    text = "def many(x, y):\n    n = [0]\n"
    text += "    for i in range(len(x)):\n        y[i] = i\n        n[0] += 1\n" * 120
    text += "    for i in range(len(x)):\n        y[i] += x[i]\n    return n, y\n"
    names: dict[str, Any] = {}
    exec(text, names)
    compared(names["many"], [2, 1, 0])
    assert not utils.counters["graph_break"]


# ---- exceptions and effects ------------------------------------------------------------------------------------------


def too_short(x, y):
    for i in range(len(x)):
        y[i, 0] = x[i] * 2
        y[:3][i] = x[i]
    return y


def lines(error: BaseException) -> list[tuple[str, int | None]]:
    return [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__][1:]


def test_an_exception_in_a_later_turn() -> None:
    optimized = godynamo.optimize(too_short)
    for n in (2, 3, 5, 7):
        raised = []
        for f in (too_short, optimized):
            args = inputs(n)
            try:
                raised.append((f(*args), None))
            except IndexError as error:
                raised.append((args, (str(error), lines(error))))
        assert same(raised[0][0], raised[1][0]) and raised[0][1] == raised[1][1]
    assert godynamo.cache_stats(optimized)["translations"] == 1


def prints(x, y):
    for i in range(len(x)):
        y[i] = 1
        print("turn", i)
    return y


def test_effects(capsys: Any) -> None:
    optimized = godynamo.optimize(prints)
    for n in SIZES:
        prints(*inputs(n))
        expected = capsys.readouterr().out
        optimized(*inputs(n))
        assert capsys.readouterr().out == expected


def draws(x, y):
    for i in range(len(x)):
        y[i] = torch.rand(4)
    return y, torch.rand(1)


def test_random_numbers() -> None:
    optimized = godynamo.optimize(draws)
    for n in SIZES:
        results = []
        for f in (draws, optimized):
            args = inputs(n)
            torch.manual_seed(n)
            results.append((f(*args), torch.rand(1)))
        assert same(*results)
    assert godynamo.cache_stats(optimized)["translations"] == 1


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(4))

    def forward(self, y):
        out = torch.zeros_like(y)
        for i in range(len(y)):
            out[i] = y[i] * self.weight
        return out.relu()


def test_equal_layers() -> None:
    net = torch.nn.Sequential(*(Layer() for _ in range(5)))
    optimized = godynamo.optimize(net)
    for n in SIZES:
        assert same(optimized(inputs(n)[1]), net(inputs(n)[1]))
    assert godynamo.cache_stats(optimized)["translations"] == 1


def fact_in_the_body(x, y):
    n = int(x.sum().item())
    for i in range(len(x)):
        y[i] = torch.ones(n - 1).sum()
    return 1 if n >= 1 else 0


def test_a_fact_of_the_body_does_not_hold_without_turns() -> None:
    for first in ([3, 0], [0, 3]):
        optimized = godynamo.optimize(fact_in_the_body)
        for n in first:
            assert same(optimized(*inputs(n)), fact_in_the_body(*inputs(n)))


def test_an_int_argument() -> None:
    def f(x, n):
        out = torch.zeros(n + 1)
        for i in range(n):
            out[i] = x * i
        return out

    optimized = godynamo.optimize(f)
    for n in (2, 3, 4, 0, 5, 9):
        assert same(optimized(torch.ones(()), n), f(torch.ones(()), n))
    assert godynamo.cache_stats(optimized)["translations"] <= 2


def test_grad_mode_is_guarded() -> None:
    optimized = godynamo.optimize(rows)
    assert same(optimized(*inputs(3)), rows(*inputs(3)))
    with torch.enable_grad():
        a, b = inputs(4), inputs(4)
        for t in (*a, *b):
            t.requires_grad_()
        ours, theirs = optimized(*a), rows(*b)
        assert same(ours, theirs)
        ours[0].sum().backward()
        theirs[0].sum().backward()
        assert same(a[1].grad, b[1].grad)
    assert same(optimized(*inputs(5)), rows(*inputs(5)))
