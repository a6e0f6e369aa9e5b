"""In anomaly mode, torch prints the stack of the operation whose gradient is NaN, so CPython runs the program."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import counted


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()
    yield
    torch.autograd.set_detect_anomaly(False)


def root(p: torch.Tensor) -> torch.Tensor:
    return (p.sqrt() * 0).sum()


def plain(p: torch.Tensor) -> torch.Tensor:
    p.grad = None
    y = root(p) + p.sum()
    y.backward()
    return y


def within(p: torch.Tensor) -> torch.Tensor:
    p.grad = None
    with torch.autograd.detect_anomaly():
        y = root(p) + p.sum()
        y.backward()
    return y


def without_check(p: torch.Tensor) -> torch.Tensor:
    p.grad = None
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = root(p) + p.sum()
        y.backward()
    return y


def only_forward(p: torch.Tensor) -> torch.Tensor:
    p.grad = None
    with torch.autograd.set_detect_anomaly(True):
        y = root(p)
    (y + p.sum()).backward()
    return y


def outcome(fn: Any, value: float) -> Any:
    """Return what a call returns or raises, the warnings without the line of this function, and the gradient."""
    p = torch.nn.Parameter(torch.full((3,), value))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = fn(p).item()
        except RuntimeError as error:
            result = str(error)
    return result, [str(w.message) for w in caught], str(p.grad), torch.is_anomaly_enabled()


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("fn", [plain, within, without_check, only_forward], ids=lambda fn: fn.__name__)
def test_results_and_warnings_are_eagers(fn, enabled):
    torch.autograd.set_detect_anomaly(enabled)
    optimized = godynamo.optimize(fn)
    for value in (1.0, 0.0, 4.0, 0.0):
        found, want = [outcome(each, value) for each in (optimized, fn)]  # one line, which is in the stack
        assert found == want


def test_a_translation_made_before_is_not_used():
    optimized = godynamo.optimize(plain)
    for value in (1.0, 0.0, 2.0):
        assert outcome(optimized, value) == outcome(plain, value)
    (entry,) = godynamo.cache_entries(optimized)
    hits, before = entry.hits, counted("translations")
    torch.autograd.set_detect_anomaly(True)
    found, want = [outcome(fn, 0.0) for fn in (optimized, plain)]  # one line, which is in the stack
    assert found == want
    assert "in root" in found[1][0] and "nan values" in found[0]
    assert (entry.hits, counted("translations")) == (hits, before)
    torch.autograd.set_detect_anomaly(False)
    assert outcome(optimized, 0.0) == outcome(plain, 0.0)
    assert (entry.hits, counted("translations")) == (hits + 1, before)
