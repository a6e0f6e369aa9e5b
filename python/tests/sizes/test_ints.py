"""Ints and floats that differ between calls: the second value makes an entry that serves all values."""

from __future__ import annotations

import enum
import logging
import math
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries, nb

INTS = [3, 4, 5, 7, -2, 0, 1, 1000, 2**40]
FLOATS = [0.5, 1.5, -2.0, 0.0, 1e300]


def bits(value: Any) -> Any:
    """Return a value in a form that == compares bit by bit, with the type."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.contiguous().numpy().tobytes()
    if type(value) is float:
        return "float", struct.pack("d", value)
    if isinstance(value, (tuple, list)):
        return type(value), [bits(v) for v in value]
    if isinstance(value, dict):
        return type(value), [(bits(k), bits(v)) for k, v in value.items()]
    return type(value), value


def outcome(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    try:
        return bits(f(*args, **kwargs))
    except Exception as error:
        return type(error), str(error)


def assert_serves(f: Callable[..., Any], calls: Sequence[Sequence[Any]], most: int, **options: Any) -> Any:
    """Compare each call with eager mode, and the number of translations with a bound. Return the callable."""
    optimized = godynamo.optimize(f, **options)
    for args in calls:
        assert outcome(optimized, args, {}) == outcome(f, args, {}), args
    assert_no_internal_errors()
    made = godynamo.cache_stats(optimized)["translations"]
    assert made <= most, [e.parts for e in entries(optimized)]
    return optimized


def x() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3)


def times(x, n):
    return x * n


@pytest.mark.parametrize("values", [INTS, FLOATS, [0.5, math.nan, math.inf, -math.inf, -0.0, 0.0]], ids=str)
def test_an_argument(values) -> None:
    optimized = assert_serves(times, [(x(), n) for n in values], 2)
    assert "n ==" not in godynamo.cache_entries(optimized)[0].parts


def test_two_values_that_take_turns() -> None:
    optimized = assert_serves(times, [(x(), n) for n in (2, 3) * 10], 2)
    stats = godynamo.cache_stats(optimized)
    assert stats["misses"] == 2 and stats["hits"] == 18


def test_an_int_and_a_float_at_one_place() -> None:
    assert_serves(times, [(x(), n) for n in (2, 3, 4, 0.5, 1.5, 5, 2.0, 3.0)], 3)


def test_bools_and_ints_beside_each_other() -> None:
    assert_serves(times, [(x(), n) for n in (True, 1, False, 0, 2, True, 3, False)], 4)


def test_an_int_beyond_64_bits() -> None:
    assert_serves(times, [(x(), n) for n in (2**70, 2**71, 2**70)], 2)
    assert_serves(times, [(x(), n) for n in (1, 2, 2**70, -(2**80), 3)], 2)


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


class Plain(int):
    pass


def test_subclasses_and_numpy_ints_are_constants() -> None:
    assert_serves(times, [(x(), n) for n in (Color.RED, Color.BLUE, Color.RED)], 2)
    assert_serves(times, [(x(), n) for n in (1, 2, Color.BLUE, 3, Color.RED)], 4)
    for values in [(Plain(1), Plain(2), 3), (np.int64(1), np.int64(2), np.int64(3)), (np.float64(1), 2.0, 3.0)]:
        optimized = godynamo.optimize(times)
        for n in values:
            assert bits(optimized(x(), n)) == bits(times(x(), n))
    assert_no_internal_errors()


def two(x, a, b):
    return x * a + b


def test_two_that_vary_together() -> None:
    assert_serves(two, [(x(), n, n + 1) for n in INTS], 2)
    assert_serves(two, [(x(), n, n / 2) for n in INTS], 2)


def test_two_that_vary_one_after_the_other() -> None:
    assert_serves(two, [(x(), n, 1) for n in range(5)] + [(x(), 1, n) for n in range(5)], 3)


def keywords(x, *, n, s=2.0):
    return x * n + s


def defaults(x, n=3, *, s=0.5):
    return x * n - s


def test_keyword_arguments_and_defaults() -> None:
    optimized = godynamo.optimize(keywords)
    for n in INTS:
        assert bits(optimized(x(), n=n, s=n / 4)) == bits(keywords(x(), n=n, s=n / 4))
    assert godynamo.cache_stats(optimized)["translations"] == 2
    optimized = godynamo.optimize(defaults)
    for n in INTS:
        defaults.__defaults__ = (n,)
        assert bits(optimized(x())) == bits(defaults(x()))
    assert godynamo.cache_stats(optimized)["translations"] <= 2


def variadic(x, *rest, **named):
    return x * rest[0] + rest[-1] - named["s"]


def test_variadic_arguments() -> None:
    optimized = godynamo.optimize(variadic)
    for n in INTS:
        assert bits(optimized(x(), n, n + 1, s=n / 8)) == bits(variadic(x(), n, n + 1, s=n / 8))
    assert godynamo.cache_stats(optimized)["translations"] == 2


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.decay = 1.0

    def forward(self, x):
        self.count += 1
        self.decay *= 0.5
        return x * self.count + self.decay


def test_a_counter_of_a_module() -> None:
    module, eager = Counter(), Counter()
    optimized = godynamo.optimize(module)
    for _ in range(10):
        assert bits(optimized(x())) == bits(eager(x()))
        assert (module.count, module.decay) == (eager.count, eager.decay)
    assert godynamo.cache_stats(optimized)["translations"] == 2


class Box:
    def __init__(self, n):
        self.n = n


def of_box(x, box):
    box.n += 1
    box.last = box.n * 2
    return x * box.n, box.last


def test_an_attribute() -> None:
    box, other = Box(0), Box(0)
    optimized = godynamo.optimize(of_box)
    for _ in range(10):
        assert bits(optimized(x(), box)) == bits(of_box(x(), other))
        assert box.__dict__ == other.__dict__
    assert godynamo.cache_stats(optimized)["translations"] <= 3


def test_an_attribute_of_other_objects() -> None:
    optimized = godynamo.optimize(of_box)
    for n in INTS:
        assert bits(optimized(x(), Box(n))) == bits(of_box(x(), Box(n)))
    assert godynamo.cache_stats(optimized)["translations"] == 2


SCALE: Any = 1


def of_global(x):
    return x * SCALE


def test_a_global() -> None:
    global SCALE
    optimized = godynamo.optimize(of_global)
    for SCALE in INTS:
        assert bits(optimized(x())) == bits(of_global(x()))
    assert godynamo.cache_stats(optimized)["translations"] == 2


def test_a_cell() -> None:
    n: Any = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    optimized = godynamo.optimize(f)
    for expected in range(1, 10):
        assert bits(optimized(x())) == bits(x() * expected) and n == expected
    assert godynamo.cache_stats(optimized)["translations"] == 2


def of_containers(x, config, items):
    items.append(config["n"] + items[0])
    config["m"] = items[0] - 1
    return x * config["n"] + items[0], items[-1]


def test_items_of_a_dict_and_a_list() -> None:
    optimized = godynamo.optimize(of_containers)
    for n in INTS:
        ours, theirs = ({"n": n}, [n + 2, 1]), ({"n": n}, [n + 2, 1])
        assert bits(optimized(x(), *ours)) == bits(of_containers(x(), *theirs))
        assert bits(ours) == bits(theirs)
    assert godynamo.cache_stats(optimized)["translations"] == 2


def sizes(x, n):
    return torch.zeros(n, 2), x[:n], x.repeat(abs(n), 1), x.new_ones(2, n + 1)


def test_a_size() -> None:
    assert_serves(sizes, [(x(), n) for n in (3, 4, 5, 7, 2)], 2)
    assert_serves(sizes, [(x(), n) for n in (3, 0, 1, -1, -2, 9, 2)], 6)


def branches(x, n):
    if n > 5:
        return x + n
    if n:
        return x - n
    return x


def test_a_branch() -> None:
    assert_serves(branches, [(x(), n) for n in range(12)], 4)


def compares_with_floats(x, n):
    return (
        x + 1,
        n > 3.5,
        n < 3.5,
        n >= 4.0,
        n <= 3.0,
        n == 4.0,
        n != 3.5,
        3.5 > n,
        4.0 <= n,
        n < math.inf,
        n == math.nan,
    )


def test_comparisons_with_floats() -> None:
    assert_serves(compares_with_floats, [(x(), n) for n in (9, -3)], 2)
    assert_serves(lambda x, n: (x + 1, n > 3.5, 4.0 <= n, n == 2.5), [(x(), n) for n in (9, 7, 5, 2**70, 3, 1)], 4)


def loops(x, n):
    for i in range(n):
        x = x + i
    return x


def keys(x, n):
    return x * {0: 2, 1: 3, 2: 4}.get(n, 1), (5, 6, 7)[n]


def exponent(x, n):
    return x**n, 2**n, n << 1, n & 3, str(n), f"{n:>4}", n.bit_length(), x.sum(n % 2)


@pytest.mark.parametrize("f", [loops, keys, exponent])
def test_an_int_whose_value_is_needed_is_a_constant(f) -> None:
    assert_serves(f, [(x(), n) for n in (0, 1, 2, 0, 1, 2)], 3)


def of_ints(n):
    return (
        n + 1,
        n * 3,
        n // 2,
        n % 3,
        -n,
        abs(n),
        divmod(n, 3),
        max(n, 2),
        n == 3,
        n is None,
        isinstance(n, int),
        n / 4,
    )


def computes(x, n):
    return x + 1, of_ints(n)


def test_arithmetic() -> None:
    assert_serves(computes, [(x(), n) for n in (3, 5, 7, 9, 11)], 3)
    assert_serves(computes, [(x(), n) for n in (*INTS, 2**62, -(2**63), 2**63 - 1)], 8)


def overflows(x, a, b):
    n = a * b
    return x + 1, n, abs(n), n > 5, -a


def test_a_product_beyond_64_bits_breaks_no_graph() -> None:
    calls = [(x(), a, b) for a, b in ((2, 3), (2**40, 2**41), (5, 7), (-(2**63), 1), (2**40, -(2**41)))]
    optimized = assert_serves(overflows, calls, 5)
    assert not any(e.info["breaks"] for e in entries(optimized))


def of_dtypes(x, n):
    return x.int() * n, x.int() / (abs(n) + 1), torch.full((2,), n), x.to(torch.int8) + n, x > n


def test_operands_of_other_dtypes() -> None:
    assert_serves(of_dtypes, [(x(), n) for n in (3, 4, 5, 100, -3)], 3)
    assert_serves(of_dtypes, [(x(), n) for n in (0.5, 1.5, 2.5, math.nan)], 2)
    assert_serves(of_dtypes, [(x(), n) for n in (3, 4, 300, 2**40)], 3)


def raising(x, n):
    return x.view(n, -1)


def test_exceptions() -> None:
    assert_serves(raising, [(x(), n) for n in (2, 3, 5, 0, -1, 6, 1)], 7)


def of_floats(x, s):
    y = x * s + (s - 1.0) / 4
    return torch.add(y, x, alpha=s), s, [s, -s], f"{s:.3f}"


def test_floats() -> None:
    assert_serves(of_floats, [(x(), s) for s in FLOATS], 2)


def branch_on_a_float(x, s, n):
    y = x * n
    if s > 1.0:
        return y * s
    return y - s


def test_a_float_that_decides_is_a_constant() -> None:
    calls = [(x(), s, n) for s in (0.5, 1.5, 2.5) for n in (1, 2, 3)]
    optimized = assert_serves(branch_on_a_float, calls, 5)
    assert not any(e.info["breaks"] for e in entries(optimized))


def fussy(x, s):
    return math.sqrt(s), round(s), s**2, s // 2, max(s, 1.0), bool(s), torch.nn.functional.dropout(x, s, False)


def test_floats_break_no_graph() -> None:
    optimized = assert_serves(fussy, [(x(), s) for s in (0.25, 0.5, 0.75)], 3)
    assert not any(e.info["breaks"] for e in entries(optimized))
    assert_serves(fussy, [(x(), s) for s in (0.25, 0.5)], 2, nopython=True)


def raises_for_one(x, s):
    if s > math.floor(s):
        return x * s
    return x + s


def test_a_value_for_which_the_program_raises_breaks_no_other_call() -> None:
    optimized = assert_serves(raises_for_one, [(x(), s) for s in (0.5, math.inf, 2.0, 2.5)], 4)
    codes = [b[0] for e in entries(optimized) for b in e.info["breaks"]]
    assert codes in ([], ["GD0401"])


def broken(x, s, n):
    m, k = s * 2, n / 3
    y = x * s
    torch._dynamo.graph_break()
    if m > 1 and k < 2:
        return y + n
    return y - m


@pytest.mark.parametrize("values", [(0.25, 0.5, 0.75, 1.0), (1, 2, 3, 4)], ids=str)
def test_no_more_breaks_than_with_constants(values) -> None:
    def breaks(**options: Any) -> int:
        optimized = godynamo.optimize(broken, **options)
        for s in values:
            assert bits(optimized(x(), s, 2)) == bits(broken(x(), s, 2))
        return sum(len(e.info["breaks"]) for e in entries(optimized))

    assert breaks() <= breaks(dynamic=False)


class Scaled(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x):
        return x * self.width


def call(module, x):
    return module(x)


def test_modules_that_differ_have_an_entry_each() -> None:
    modules = [Scaled(n) for n in range(1, 7)]
    optimized = assert_serves(call, [(m, x()) for m in modules * 2], 6)
    assert all("width ==" in " ".join(e.parts) for e in entries(optimized))
    assert godynamo.cache_stats(optimized)["translations"] == 6


def test_layers_that_differ_are_not_repeated_for_each_other() -> None:
    model = torch.nn.Sequential(*(Scaled(n) for n in range(20)))
    optimized = godynamo.optimize(model)
    for n in range(5):
        for i, layer in enumerate(model):
            layer.width = 1 + (n + i) % 3
        assert bits(optimized(x())) == bits(model(x()))
    assert_no_internal_errors()
    assert godynamo.cache_stats(optimized)["translations"] <= 3


def test_dynamic_false() -> None:
    optimized = assert_serves(times, [(x(), n) for n in (2, 3, 4)], 3, dynamic=False)
    assert len(entries(optimized)) == 3


def test_dynamic_true() -> None:
    assert_serves(times, [(x(), n) for n in INTS], 1, dynamic=True)
    assert_serves(times, [(x(), n) for n in FLOATS], 1, dynamic=True)


def test_a_backend_that_returns_the_graph() -> None:
    backend = nb()
    optimized = godynamo.optimize(times, backend=lambda gm, inputs: backend(gm, inputs) and gm.forward)
    for n in INTS:
        assert bits(optimized(x(), n)) == bits(times(x(), n))
    assert len(backend) == 2


def test_nopython() -> None:
    assert_serves(two, [(x(), n, n / 2) for n in INTS], 2, nopython=True)


def test_threads() -> None:
    optimized = godynamo.optimize(times)
    wrong: list[int] = []

    def run(first: int) -> None:
        for n in range(first, first + 50):
            if bits(optimized(x(), n)) != bits(times(x(), n)):
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(100 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert_no_internal_errors()
    assert godynamo.cache_stats(optimized)["translations"] <= 3


def with_dtype(x, n, dtype):
    return x.to(dtype) * n


def test_the_last_entry_serves_what_varies_beside_other_things() -> None:
    dtypes = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
    calls = [(x(), n, dtypes[n % 4]) for n in range(40)]
    optimized = godynamo.optimize(with_dtype, cache_size_limit=8)
    for args in calls:
        assert bits(optimized(*args).float()) == bits(with_dtype(*args).float())
    stats = godynamo.cache_stats(optimized)
    assert stats["translations"] <= 8 and stats["misses"] <= 8


def of_a_set(x, n, names):
    return x * n if "a" in names else x


def test_a_guard_that_calls_python_waits_for_the_last_entry() -> None:
    optimized = godynamo.optimize(of_a_set)
    for n in range(20):
        assert bits(optimized(x(), n, {"a"})) == bits(of_a_set(x(), n, {"a"}))
    assert godynamo.cache_stats(optimized)["misses"] <= 8


def in_a_block(x, n):
    try:
        x = x * n
        torch._dynamo.graph_break()
        return x + n
    except ValueError:
        return x


def test_a_block_that_may_run_again() -> None:
    optimized = godynamo.optimize(in_a_block)
    for n in INTS:
        assert bits(optimized(x(), n)) == bits(in_a_block(x(), n))
    assert len(optimized.cache.entries()) == 2


def test_the_log_names_what_the_last_entry_compares(caplog) -> None:
    optimized = godynamo.optimize(loops, cache_size_limit=3)
    with caplog.at_level(logging.INFO, "godynamo"):
        for n in range(3):
            optimized(x(), n)
    line = loops.__code__.co_firstlineno + 1
    assert f"still compares n ({__file__}:{line})" in caplog.text


def test_the_cache_keeps_the_places_that_have_varied() -> None:
    def f(x, n, s):
        return x * n + s

    optimized = godynamo.optimize(f)
    for n in range(3):
        optimized(x(), n, 0.5)
    optimized(torch.ones(2), 3, 1.5)
    cache = optimized.cache
    assert set(cache.varied) == {"n", "s"}
    cache.clear()
    assert cache.varied == ()
    optimized(x(), 1, 0.5)
    assert "n == 1" in godynamo.cache_entries(optimized)[0].parts


def scaled(x, s):
    y = x * s
    return y.reshape(y.shape[0] * y.shape[1]) + (s * 2 - 1)


SCALED = [(torch.ones(n, 3), s) for n, s in [(2, 0.5), (3, 1.5), (4, -0.0), (5, math.inf), (6, math.nan), (1, 1e-320)]]


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
def test_a_float_is_a_number_of_the_graph(backend) -> None:
    assert_serves(scaled, SCALED, 2, backend=backend)


def test_a_float_is_an_input_of_the_whole_graph() -> None:
    seen = []

    def backend(gm, inputs):
        seen.append((gm.code, inputs))
        return gm.forward

    assert_serves(scaled, SCALED, 2, backend=backend)
    code, inputs = seen[1]
    assert "x * number_0" in code
    assert 1.5 in [i for i in inputs if type(i) is float]


def test_a_backend_that_returns_something_else_later_gets_constants() -> None:
    codes = []

    def backend(gm, inputs):
        codes.append(gm.code)
        return gm.forward if len(codes) < 2 else lambda *args: gm(*args)

    optimized = assert_serves(scaled, SCALED, 6, backend=backend)
    assert "number" in codes[1]
    assert not any("number" in code for code in codes[2:])
    assert len(entries(optimized)) == 6


def test_random_numbers_are_inputs_of_a_graph_that_is_returned_unchanged() -> None:
    import random

    codes = []

    def backend(gm, inputs):
        codes.append(gm.code)
        return gm.forward

    def f(x):
        return x * random.random(), x.shape[0]

    optimized = godynamo.optimize(f, backend=backend)
    for n in (2, 3, 4):
        random.seed(n)
        got = optimized(torch.ones(n, dtype=torch.float64))
        random.seed(n)
        assert bits(got) == bits(f(torch.ones(n, dtype=torch.float64)))
    assert_no_internal_errors()


def row(x, i):
    return x[i] * 2


def stored(x, i):
    y = x + 1
    y[i] = 5
    return y


def row_of_a_result(x, i):
    try:
        return (x + 1).sum(0)[i - 1], x.t()[i].shape
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "callable"])
@pytest.mark.parametrize("f", [row, stored, row_of_a_result])
def test_an_int_that_selects_from_a_tensor(f, backend):
    most = 4 if f is row_of_a_result else 2  # the shape of x[i] is that of x[j] if both are in range
    assert_serves(f, [(x(), i) for i in [1, 0, -1, -2, 3, -3, *INTS]], most, backend=backend)


def test_a_size_that_selects_from_a_tensor():
    def last(x, y):
        return x[x.shape[0] - 1], y[x.size(0) // 2].reshape(-1, 1)

    sizes = [(4, 5), (6, 4), (2, 2), (9, 5), (1, 1), (7, 3), (3, 1), (8, 8)]
    inputs = [(torch.arange(2.0 * n).reshape(n, 2), torch.arange(3.0 * m).reshape(m, 3)) for n, m in sizes]
    for backend in "eager", lambda gm, _: gm.forward, "aot_eager":
        assert_serves(last, inputs, 5, backend=backend)
