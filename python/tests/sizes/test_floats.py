"""Functions and operators of floats and sizes that are computed in each call: math.sqrt, **, division."""

from __future__ import annotations

import math
import traceback
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries
from test_ints import assert_serves, bits

FLOATS = [0.5, 1.5, 2.0, 0.25, -1.0, 0.0, -0.0, 1e300, math.inf, math.nan]

FUNCTIONS = {
    "sqrt": lambda x, s, n: x * math.sqrt(s),
    "power": lambda x, s, n: x * s**2,
    "negative power": lambda x, s, n: x * s**-1,
    "power of a constant": lambda x, s, n: x * 0.9**n,
    "float power of a constant": lambda x, s, n: x * 2**s,
    "pow": lambda x, s, n: x * math.pow(s, 1.5),
    "inverse": lambda x, s, n: x * (1.0 / s),
    "remainder": lambda x, s, n: x * (s % n),
    "floor division": lambda x, s, n: x * (1.0 // s),
    "division": lambda x, s, n: x * (n / s),
    "log": lambda x, s, n: x * math.log(s),
    "tanh": lambda x, s, n: x * math.tanh(s) + math.atan2(s, n),
    "floor": lambda x, s, n: (x * s, math.floor(s)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_entry_serves_all_values(name) -> None:
    calls = [(torch.ones(3), s, n) for n, s in enumerate(FLOATS, 1)] + [(torch.ones(3), 0.75, n) for n in (0, -2, 2000)]
    assert_serves(FUNCTIONS[name], calls, 2)


def test_the_result_of_a_power_may_be_complex() -> None:
    calls = [(torch.ones(3), s) for s in (4.0, 2.0, -1.0, 0.0)]
    assert_serves(lambda x, s: (x, s**0.5), calls, 5)


def test_the_exception_is_raised_at_its_place() -> None:
    seen: list[Any] = []

    def f(x, s):
        seen.append("before")
        y = x * 2
        y = y / (1.0 / s)
        seen.append("after")
        return y

    optimized = godynamo.optimize(f)
    optimized(torch.ones(3), 1.0)
    optimized(torch.ones(3), 2.0)
    made = len(entries(optimized))
    seen.clear()
    with pytest.raises(ZeroDivisionError) as info:
        optimized(torch.ones(3), 0.0)
    last = traceback.extract_tb(info.value.__traceback__)[-1]
    assert (last.name, last.lineno) == ("f", f.__code__.co_firstlineno + 3)
    assert seen == ["before"]
    assert len(entries(optimized)) == made
    assert_no_internal_errors()


def test_in_a_block_it_is_a_constant() -> None:
    def f(x, s):
        try:
            return x * math.sqrt(s)
        except ValueError:
            return x - 1

    assert_serves(f, [(torch.ones(3), s) for s in (1.0, 2.0, -1.0, 3.0)], 5)


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
def test_the_root_of_a_size(backend) -> None:
    def f(q, k):
        return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-2])

    calls = [(torch.ones(2, n, 4), torch.ones(2, n, 4)) for n in (3, 4, 5, 1, 0)]
    assert_serves(f, calls, 2, backend=backend)


def test_functions_of_math_are_not_builtins_of_the_same_name() -> None:
    def f(x, s):
        return x * s, math.pow(2, 3), math.pow(s, 2)

    for s in (3, 2.5):
        assert bits(godynamo.optimize(f)(torch.ones(2), s)) == bits(f(torch.ones(2), s))


BRANCHES = {
    "above": lambda x, s: x * s if s > 0.1 else x - s,
    "a constant on the left": lambda x, s: x * s if 0.1 < s else x - s,
    "between": lambda x, s: x * s if 0.0 <= s <= 1 else x - s,
    "an int": lambda x, s: x * s if s >= 1 else x - s,
    "equal": lambda x, s: x * s if s == 0.25 else x - s,
    "unequal": lambda x, s: x * s if s != 0 else x,
    "truth": lambda x, s: x * s if s else x,
    "not": lambda x, s: x if not s else x / s,
    "minimum": lambda x, s: x * min(s, 0.5),
    "maximum": lambda x, s: x * max(0.5, s),
}


@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_on_a_float_is_a_condition(name, backend) -> None:
    calls = [(torch.ones(3), s) for s in [0.5, 0.3, 0.2, 0.25, 2.0, 3.0, -1.0, 0.0, -0.0, math.nan, math.inf]]
    optimized = assert_serves(BRANCHES[name], calls, 5, backend=backend)
    texts = [text for e in entries(optimized) for text in e.parts]
    assert any(text.startswith(("s ", "not s ")) for text in texts)


def test_the_reason_of_a_branch_on_a_float() -> None:
    def f(x, s):
        return x * s if s > 0.1 else x - s

    optimized = godynamo.optimize(f)
    for s in (0.5, 0.3, 0.4):
        optimized(torch.ones(3), s)
    parts = {p for e in entries(optimized) for p in e.parts}
    assert "s > 0.1" in parts
    (info,) = [e for e in godynamo.cache_entries(optimized) if "s > 0.1" in e.parts]
    assert info.valid


def test_a_dropout_rate_that_varies() -> None:
    def f(x, p):
        return torch.nn.functional.dropout(x, p, training=False) * (1 - p)

    assert_serves(f, [(torch.ones(3), p) for p in (0.1, 0.2, 0.3, 0.4, 0.5)], 2)


def test_too_many_conditions_on_a_float_make_it_a_constant() -> None:
    def f(x, s):
        found = 0
        for k in range(50):
            if s > k:
                found += 1
        return x * found

    calls = [(torch.ones(3), s) for s in (0.5, 0.25, 1.5, 2.5)]
    optimized = assert_serves(f, calls, 4)
    assert any("s == " in text for e in entries(optimized) for text in e.parts)
