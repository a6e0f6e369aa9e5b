"""A bound for the conditions of one entry: a size with too many conditions becomes a constant."""

from __future__ import annotations

import logging

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors, entries


def divides(x, count):
    found = 0
    for k in range(2, 2 + count):
        if x.shape[0] % (1000 * k) == 0:
            found += 1
    return x * 2 + found + x.shape[1]


@pytest.mark.parametrize("count", [20, 100])
def test_many_conditions_make_a_size_a_constant(count) -> None:
    optimized = godynamo.optimize(divides)
    for rows, columns in [(4, 3), (4, 5), (6, 3), (6, 4)]:
        x = torch.ones(rows, columns)
        assert optimized(x, count).equal(divides(x, count))
    assert_no_internal_errors()
    found = entries(optimized)
    assert len(found) == (2 if count > 32 else 1)
    assert all(len(e.parts) < 45 for e in found)


def test_the_log_names_the_line_that_asked_most(caplog) -> None:
    logger = logging.getLogger("godynamo.dynamic")
    logger.setLevel(logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG, "godynamo.dynamic"):
            godynamo.optimize(divides)(torch.ones(4, 3), 100)
    finally:
        logger.setLevel(logging.NOTSET)
    line = divides.__code__.co_firstlineno + 3
    assert "s0 = 4: x.size()[0]" in caplog.text
    assert f"so s0 == 4; most of them from {__file__}:{line}" in caplog.text


def test_a_marked_size_is_a_constant_last() -> None:
    x = torch.ones(4, 3)
    godynamo.mark_dynamic(x, 0)
    optimized = godynamo.optimize(divides)
    assert optimized(x, 60).equal(divides(x, 60))
    assert optimized(torch.ones(6, 5), 60).equal(divides(torch.ones(6, 5), 60))
    assert len(entries(optimized)) == 1
    with pytest.raises(torch.fx.experimental.symbolic_shapes.ConstraintViolationError, match="x.size"):
        godynamo.optimize(divides)(x, 200)
