"""Operations on constants that warn: each call warns once, at its own line, though constants are computed early."""

from __future__ import annotations

import operator
import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo


def inverts_a_bool(x: Any) -> Any:
    return ~(x.ndim == 1), x + 1


def calls_invert(x: Any) -> Any:
    return operator.inv(x.ndim == 1), (x.ndim == 1).__invert__(), x + 1


def asks_not_implemented(x: Any) -> Any:
    try:
        return bool(NotImplemented), not NotImplemented, x + 1
    except TypeError as error:
        return str(error), x + 1


def makes_a_complex(x: Any) -> Any:
    return complex(1j, 2), complex(x.ndim * 1j, 1j), x + 1


def decodes(x: Any) -> Any:
    return b"a\\d".decode("unicode_escape"), x + 1


def compiles_a_pattern(x: Any) -> Any:
    return re.findall("[[a]", "[a"), x + 1


def throws_two(x: Any) -> Any:
    def generator() -> Any:
        try:
            yield 1
        except ValueError:
            yield 2

    it = generator()
    next(it)
    return it.throw(ValueError, ValueError(1)), x + 1  # type: ignore[call-overload]


def draws(x: Any) -> Any:
    try:
        return random.randrange(1.0), x + 1  # type: ignore[arg-type]
    except TypeError as error:
        return str(error), x + 1


def outcome(fn: Callable[[Any], Any]) -> tuple[str, list[tuple[str, str, str, int]]]:
    """Return the text of a call's result, and its warnings: class, text, file, line."""
    re.purge()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = str(fn(torch.ones(2)))
    return value, [(w.category.__name__, str(w.message), w.filename, w.lineno) for w in caught]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "fn",
    [
        inverts_a_bool,
        calls_invert,
        asks_not_implemented,
        makes_a_complex,
        decodes,
        compiles_a_pattern,
        throws_two,
        draws,
    ],
)
def test_each_call_warns(fn: Callable[[Any], Any], backend: str) -> None:
    godynamo.reset()
    compiled = godynamo.optimize(fn, backend=backend)
    expected = outcome(fn)
    assert [outcome(compiled) for _ in range(3)] == [expected] * 3


def test_filters_stay_as_they_are() -> None:
    godynamo.reset()
    before = list(warnings.filters)
    godynamo.optimize(inverts_a_bool)(torch.ones(2))
    assert warnings.filters == before


def test_warnings_can_be_errors() -> None:
    godynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning):
            outcome_as_error = godynamo.optimize(decodes)(torch.ones(2))
            raise AssertionError(outcome_as_error)
