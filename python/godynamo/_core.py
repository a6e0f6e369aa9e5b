"""Loads ``_C``; if that fails (another Python, another platform), everything runs eagerly.

``core`` is the extension module, or a replacement that does nothing; ``available`` is False for the replacement.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import warnings
from typing import Any

#: The builtins when this package is imported. Programs may replace builtins later.
BUILTINS = dict(vars(builtins))


class _Absent:
    """Replaces ``_C`` if nothing can be translated."""

    MODE_NORMAL, MODE_RUN_ONLY, MODE_DISABLED = 0, 1, 2

    class Callable:
        """Never created: optimize() returns its argument."""

    class Root:
        """Never created."""

    @staticmethod
    def set_config(**_settings: int) -> None:
        """Do nothing: there are no settings."""

    @staticmethod
    def set_mode(_mode: int) -> int:
        """Return the normal mode, which never changes."""
        return 0

    @staticmethod
    def is_translating() -> bool:
        """Return False: nothing is translated."""
        return False

    @staticmethod
    def reset_caches() -> None:
        """Do nothing: there are no caches."""

    @staticmethod
    def reset_counters() -> None:
        """Do nothing: there are no counters."""

    @staticmethod
    def counters() -> dict[str, int]:
        """Return no counters."""
        return {}

    @staticmethod
    def mark_skip(_code: Any, _skip: bool = True) -> None:
        """Do nothing: nothing is translated."""

    @staticmethod
    def census_start(_ask: Any, _tensor: type, _properties: frozenset[str]) -> bool:
        """Return False: nothing is counted."""
        return False

    @staticmethod
    def report_internal_error(_where: str, _function: Any = None, _error: Any = None) -> bool:
        """Return False: nothing can fail."""
        return False


core: Any
available: bool
try:
    core, available = importlib.import_module("._C", __package__), True
except ImportError as error:
    core, available = _Absent(), False
    version = ".".join(map(str, sys.version_info[:3]))
    warnings.warn(
        f"godynamo: no core for Python {version} ({error}); everything runs eagerly", RuntimeWarning, stacklevel=3
    )
