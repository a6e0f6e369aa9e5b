"""Tests of rows that are not reached yet, and why; see conftest.py."""

from __future__ import annotations

_BY_REASON: dict[str, list[str]] = {}

#: file::test, with its parameters where only some fail -> why
PENDING: dict[str, str] = {test: why for why, tests in _BY_REASON.items() for test in tests}
