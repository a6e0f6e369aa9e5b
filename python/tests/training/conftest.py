"""Shared by the tests of training."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import godynamo


@pytest.fixture
def fresh() -> Iterator[None]:
    """Start and end without translations, and hide warnings, which schedulers and optimizers raise."""
    godynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    godynamo.reset()
