"""Shared by the tests of training."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import godynamo
from godynamo import _C


@pytest.fixture
def fresh() -> Iterator[None]:
    """Start and end without translations, and hide warnings, which schedulers and optimizers raise."""
    godynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    godynamo.reset()


@pytest.fixture
def kernels_served() -> Iterator[None]:
    """Skip the test where the processor does not serve the C core's kernels, and leave them switched on."""
    if not _C._kernels_use(True):
        pytest.skip("this processor does not serve the kernels")
    yield
    _C._kernels_use(True)
