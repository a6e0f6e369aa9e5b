"""Every test of the core must end without an internal error, unless it sets its own callback for them.

If a test names no translator, every miss runs in CPython: the Go library is not under test here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from godynamo import _C


@pytest.fixture(autouse=True)
def no_internal_errors() -> Iterator[None]:
    seen: list[dict[str, Any]] = []
    _C.set_callback("internal_error", seen.append)
    _C.set_callback("limit_reached", lambda info: None)
    _C.set_translate_callback(lambda request: None)
    yield
    _C.set_callback("internal_error", None)
    _C.set_callback("limit_reached", None)
    _C.set_translate_callback(None)
    assert [(e["where"], e["error"]) for e in seen] == []
    assert _C.hook_installed() == 0 and not _C.current_eval_frame_is_ours()
