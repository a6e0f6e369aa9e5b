"""Fixtures of the tests of stored translations."""

from __future__ import annotations

from pathlib import Path

import pytest

from stored_support import Programs


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    """Return a folder of programs, and a folder of translations."""
    return Programs(tmp_path)
