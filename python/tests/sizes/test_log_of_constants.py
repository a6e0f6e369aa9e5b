"""The log `dynamic` names what has made a size a constant."""

from __future__ import annotations

import contextlib
import logging

import pytest
import torch

import godynamo


@pytest.fixture
def logged(caplog):
    logger = logging.getLogger("godynamo.dynamic")
    logger.setLevel(logging.DEBUG)
    with contextlib.ExitStack() as stack:
        stack.callback(logger.setLevel, logging.NOTSET)
        stack.enter_context(caplog.at_level(logging.DEBUG, "godynamo.dynamic"))
        yield lambda: [line for line in caplog.text.splitlines() if "is the constant" in line]


def test_an_operation_of_the_program(logged) -> None:
    def f(x):
        for _ in range(x.shape[1]):
            x = x + 1
        return x * x.shape[0]

    godynamo.optimize(f)(torch.ones(4, 3))
    (line,) = logged()
    at = f"{__file__}:{f.__code__.co_firstlineno + 1}"
    assert line.startswith(f"x.size()[1] is the constant 3, needed by range(x.shape[1]) ({at}), in ")
    assert "builtinRange" in line


def test_a_rule(logged) -> None:
    def f(x, w):
        return (x @ w).shape

    godynamo.optimize(f)(torch.ones(2, 4), torch.ones(4, 3))
    assert not logged()
    godynamo.optimize(lambda x: torch.nn.functional.conv2d(x, torch.ones(3, 3, 2, 2)).shape)(torch.ones(2, 3, 4, 5))
    (line,) = logged()
    assert line.startswith("x.size()[1] is the constant 3, needed by ")
    assert "by the rule for torch.conv2d, in " in line


def test_an_operation_without_a_rule(logged) -> None:
    def f(x):
        return torch.stft(x, 4, return_complex=True).shape

    godynamo.optimize(f)(torch.ones(16))
    (line,) = logged()
    assert line.startswith("x.size()[0] is the constant 16, needed by ")
    assert "torch.stft has no rule for these operands, in " in line


def test_a_break_that_a_constant_avoids(logged) -> None:
    def f(x, names):
        return x + names[f"{x.shape[0]} rows"]

    godynamo.optimize(f)(torch.ones(4), {"4 rows": 1})
    (line,) = logged()
    assert "x.size()[0] is the constant 4" in line
    assert "since the graph broke: GD" in line or "the graph breaks there: GD" in line


def test_sizes_that_stay_symbols_are_not_listed(logged) -> None:
    def f(x, y):
        return x + y if x.shape[0] == y.shape[0] else x

    godynamo.optimize(f)(torch.ones(4), torch.ones(4))
    assert not logged()
