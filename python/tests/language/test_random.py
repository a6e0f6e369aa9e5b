"""Python's random numbers: drawn at each call from the program's generators, and passed to the graph as inputs."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter
from harness.cases import check_calls

CALLS = [lambda: (torch.arange(3.0) + 1,), lambda: (torch.arange(3.0) + 1,), lambda: (torch.full((3,), 2.0),)]


def seeded() -> None:
    random.seed(11)
    torch.manual_seed(11)


def compare(make: Callable[[], Callable[..., Any]], graphs: int, translations: list[int] | None = None) -> None:
    """Compare the values of each call, and the global generator's state after it."""
    check_calls(make, CALLS, graphs=graphs, translations=translations, state=random.getstate, prepare=seeded)


# ---- one graph, translated once ----


def of_the_module(x):
    return x * random.random() + random.randint(1, 100), random.uniform(1, 2), random.gauss(0, 1), random.gauss(1, 2)


def chosen(x):
    l = [1, 2, 3, 4, 5]
    random.shuffle(l)
    picked = random.sample(range(10), 3)
    return x * random.choice([1, 2, 3]) + l[0], l, picked, random.choices([1.5, 2.5], k=2), random.choice("ab")


def of_long_ranges(x):
    return x + random.randrange(10, 20, 2), random.sample(range(10**9), 2), random.getrandbits(7), random.randbytes(3)


def state_put_back(x):
    random.seed(5)
    state = random.getstate()
    a = random.random()
    random.setstate(state)
    b = random.random()
    return x * a, a == b, random.random()


def a_generator_of_its_own(x):
    r = random.Random(3)
    return x * r.random() + r.randint(0, 5), r.choice("abc"), random.random()


def computed_with(x):
    r, i = random.random(), random.randint(1, 5)
    return x * (r * 2 + 1) - i, (r - i) / 3, i // 2, i % 3, -r, abs(-r), float(i), r < 0.5, i + 1, r is None


def small_ones(x):
    i = random.randint(1, 1)
    return x * i, i is 1, (i < 2) is True, i is not None  # noqa: F632


def stored(x):
    box = types.SimpleNamespace(r=random.random())
    items = [random.random() for _ in range(3)]
    items.append(box.r)
    return x * box.r + sum(items), items, {"i": random.randint(1, 2)}


def printed(x):
    r = random.random()
    print("r", r, f"{r:.3f} of {r}", "{:>9.2f}|{}".format(r, random.randint(1, 9)))
    return x + r, str(r), repr(r), bool(r)


def inlined(x):
    def noisy(y):
        return y + random.random() * 2

    return noisy(x).relu() + noisy(x)


def with_modes(x):
    with torch.no_grad():
        y = x * random.random()
    return y - random.random()


def several_ways_to_reach_it(x):
    draw = random.random
    return x * draw() + (lambda: random.uniform(2, 3))()


@pytest.mark.parametrize(
    "fn",
    [of_the_module, chosen, of_long_ranges, state_put_back, a_generator_of_its_own, computed_with, stored, printed,
    inlined,
     with_modes, several_ways_to_reach_it],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_one_graph_that_is_translated_once(fn):
    compare(lambda: fn, 1, [1, 0, 0])


def test_generators_of_the_frames():
    def make():
        mine, system = random.Random(7), random.SystemRandom()

        def f(x):
            return x * mine.random() + mine.randint(1, 5), mine.getstate(), x * 0 * system.random(), mine.gauss(0, 1)

        return f

    compare(make, 1, [1, 0, 0])


# ---- where the graph breaks ----


def held_over_a_split(x):
    r = random.random()
    x = x + 1
    split(x)
    return x * r + random.random(), r


@godynamo.disable
def split(x):
    """Break the graph."""


def test_a_number_that_is_held_over_a_split_stays_one_that_each_call_computes():
    compare(lambda: held_over_a_split, 2, [2, 0, 0])


def branch(x):
    if random.random() > 0.5:
        return x.relu() + 1
    return x.sin() - random.random()


def loop(x):
    for _ in range(random.randint(1, 2)):
        x = x + random.random()
    return x


def looks_at_what_gauss_kept(x):
    r = random.Random(1)
    a = random._inst.gauss_next
    y = x * random.gauss(0, 1) * r.random()
    return y, a, random._inst.gauss_next


def shuffles_a_list_that_others_see(x):
    random.shuffle(SEEN)
    return x + 1, list(SEEN)


SEEN = [1, 2, 3]


def raises_by_itself(x):
    try:
        random.choice([])
    except IndexError:
        x = x + 1
    return x * random.random()


@pytest.mark.parametrize(
    "fn", [branch, loop, looks_at_what_gauss_kept, raises_by_itself, small_ones], ids=lambda f: f.__name__
)
def test_control_flow_on_a_number_splits(fn):
    def graphs() -> int:
        return {"branch": 2, "loop": 2, "looks_at_what_gauss_kept": 1, "raises_by_itself": 1, "small_ones": 1}[
            fn.__name__
        ]

    compare(lambda: fn, graphs())


def test_a_list_that_others_see_is_shuffled_where_it_is():
    def prepare():
        SEEN[:] = [1, 2, 3]
        seeded()

    check_calls(
        lambda: shuffles_a_list_that_others_see,
        CALLS,
        graphs=1,
        state=lambda: (list(SEEN), random.getstate()),
        prepare=prepare,
    )


# ---- whole graphs: drawn numbers are zero-dimensional tensors there, where that makes no difference ----


def other_kinds_of_tensors(x):
    i, h = x.to(torch.int64), x.to(torch.float16)
    return (
        i * random.randint(1, 5),
        h * random.random(),
        x.to(torch.bool) * random.randint(1, 5),
        random.randint(1, 9) / i,
    )


def without_dimensions(x):
    return x.sum() * random.random(), x.to(torch.int64) * random.random()


def as_arguments(x):
    r = random.random()
    return torch.full((2,), r), x.clamp(r), x.add(x, alpha=r), torch.where(x > 1, r, 0.0), x[random.randint(0, 2)], x**r


@pytest.mark.parametrize("fn", [other_kinds_of_tensors, without_dimensions, as_arguments], ids=lambda f: f.__name__)
def test_types_are_those_of_python_numbers(fn):
    # The counting backend returns graphs unchanged. Once it has done so, graphs take numbers, here for x**r.
    compare(lambda: fn, {"other_kinds_of_tensors": 1, "without_dimensions": 2, "as_arguments": 2}[fn.__name__])
    counted = _C.counters()["translations"]
    ours = godynamo.optimize(fn)
    ours(*CALLS[0]())
    ours(*CALLS[1]())
    assert _C.counters()["translations"] == counted + 1, "inline, numbers are operands of any operation"


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_no_number_is_compiled_into_a_graph(backend):
    def f(x):
        return x * random.random() + random.randint(1, 9)

    seeded()
    expected = [f(*args()) for args in CALLS], random.getstate()
    seeded()
    ours = godynamo.optimize(f, backend=backend)
    found = [ours(*args()) for args in CALLS], random.getstate()
    assert found[1] == expected[1]
    for a, b in zip(found[0], expected[0], strict=True):
        torch.testing.assert_close(a, b)


# ---- exceptions: numbers drawn too early are put back ----


def fails_between(x):
    a = random.random()
    y = x.relu() * a
    z = y @ torch.ones(7)
    return z * random.random()


def fails_in_a_try(x):
    a = random.random()
    try:
        y = x @ torch.ones(7)
        b = random.random()
    except RuntimeError:
        y, b = x * random.random(), 0
    return y, a, b


def fails_after_a_change(x):
    x.add_(random.random())
    print(random.random())
    y = x @ torch.ones(7)
    return y + random.random()


def draws_torch_numbers_too(x):
    y = F.dropout(x, 0.5) * random.random()
    print("p", random.random())
    return F.dropout(y) + random.random()


@pytest.mark.parametrize(
    "fn", [fails_between, fails_in_a_try, fails_after_a_change, draws_torch_numbers_too], ids=lambda f: f.__name__
)
def test_the_state_is_right_after_an_exception(fn):
    check_calls(
        lambda: fn,
        CALLS,
        graphs=1,
        state=lambda: (random.getstate(), torch.get_rng_state().tolist()),
        prepare=seeded,
    )


# ---- what the program changes ----


def test_functions_that_are_replaced_are_called():
    def f(x):
        return x * random.random() + random.randint(1, 9)

    ours = godynamo.optimize(f, backend=CompileCounter())
    x = torch.ones(3)
    ours(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", lambda: 0.5)
        seeded()
        expected = f(x)
        seeded()
        assert ours(x).equal(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random.Random, "randint", lambda self, a, b: 4)
        seeded()
        expected = f(x)
        seeded()
        assert ours(x).equal(expected)


def test_a_method_of_the_generators_class_that_is_replaced_is_called():
    mine = random.Random(4)

    def f(x):
        return x * mine.random()

    ours = godynamo.optimize(f)
    x = torch.ones(3)
    ours(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random.Random, "random", lambda self: 0.5)
        assert ours(x).equal(x * 0.5)
    state = mine.getstate()
    expected = f(x)
    mine.setstate(state)
    assert ours(x).equal(expected)


class Fixed(random.Random):
    def random(self):
        return 0.25


def test_a_generator_of_the_users_is_inlined():
    mine = Fixed(1)
    compare(lambda: lambda x: (x * mine.random(), mine.uniform(1, 2)), 1, [1, 0, 0])
