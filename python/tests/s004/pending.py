"""Tests of rows that are not reached yet, and why; see conftest.py."""

from __future__ import annotations

_BY_REASON: dict[str, list[str]] = {
    "typing.get_type_hints walks __mro__ and evaluates annotations: class attributes of type itself are not read": [
        "test_annotations::test_get_type_hints",
    ],
}

#: file::test, with its parameters where only some fail -> why
PENDING: dict[str, str] = {test: why for why, tests in _BY_REASON.items() for test in tests}
