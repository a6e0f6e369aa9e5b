"""The one door to ``_C``: where it cannot be loaded (another Python, another platform) everything runs eagerly.

``core`` is the extension module or a stand-in that does nothing; ``available`` says which.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import warnings
from typing import Any

#: the builtins when this package was imported: programs replace them
BUILTINS = dict(vars(builtins))


class _Absent:
    """Stands in for ``_C`` where nothing is ever translated."""

    MODE_NORMAL, MODE_RUN_ONLY, MODE_DISABLED = 0, 1, 2

    class Callable:
        """Never made: optimize() gives back what it was given."""

    class Root:
        """Never made either."""

    @staticmethod
    def set_config(**_settings: int) -> None:
        """Nothing to set."""

    @staticmethod
    def set_mode(_mode: int) -> int:
        """Always in the normal mode."""
        return 0

    @staticmethod
    def is_translating() -> bool:
        """Nothing is."""
        return False

    @staticmethod
    def reset_caches() -> None:
        """There are none."""

    @staticmethod
    def reset_counters() -> None:
        """There are none."""

    @staticmethod
    def counters() -> dict[str, int]:
        """No counters."""
        return {}

    @staticmethod
    def mark_skip(_code: Any, _skip: bool = True) -> None:
        """Nothing is translated anyway."""

    @staticmethod
    def census_start(_ask: Any, _tensor: type, _properties: frozenset[str]) -> bool:
        """Nothing is counted."""
        return False

    @staticmethod
    def report_internal_error(_where: str, _function: Any = None, _error: Any = None) -> bool:
        """Nothing can fail."""
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
