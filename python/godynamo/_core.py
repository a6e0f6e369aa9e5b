"""Loads ``_C``; if this interpreter is not served (another Python, another platform), everything runs eagerly.

``core`` is the extension module, or a replacement that does nothing; ``available`` is False for the replacement. Then
``refusal`` says why, and ``remedy`` what to do, if there is something else than another Python.
"""

from __future__ import annotations

import builtins
import importlib
import os
import re
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


def _jit_is_on() -> bool:
    """Return whether CPython's experimental JIT runs in this process. It runs code that the eval-frame hook cannot see.

    CPython 3.13 cannot be asked, so this follows how it was configured, and PYTHON_JIT, as CPython does.
    """
    jit = getattr(sys, "_jit", None)  # since 3.14
    if jit is not None:
        return bool(jit.is_enabled())
    if sys.version_info < (3, 13):
        return False
    import sysconfig

    found = re.search(r"--enable-experimental-jit(?:=([a-z-]+))?", sysconfig.get_config_var("CONFIG_ARGS") or "")
    if found is None or found[1] == "no":
        return False
    asked = "" if sys.flags.ignore_environment else os.environ.get("PYTHON_JIT", "")
    return asked[0] != "0" if asked else not (found[1] or "").endswith("-off")


def _refuse() -> tuple[str, str]:
    """Return why this interpreter is not served, and what to do if another Python is not needed: ("", "") if it is."""
    version = "{}.{}".format(*sys.version_info)
    if sys.implementation.name != "cpython":
        return f"this is {sys.implementation.name}, and only CPython is supported", ""
    if "t" in getattr(sys, "abiflags", ""):  # Windows has none
        return f"this is a free-threaded build of CPython {version}, which is not supported", ""
    if _jit_is_on():
        return f"the experimental JIT of CPython {version} is on, which is not supported", "set PYTHON_JIT=0"
    return "", ""


def _refuse_after(error: ImportError) -> tuple[str, str]:
    """Return the same after ``_C`` could not be imported."""
    if not isinstance(error, ModuleNotFoundError) or error.name != f"{__package__}._C":
        if "subinterpreters" in str(error):  # our own text, or CPython's for a sub-interpreter with a GIL of its own
            return "sub-interpreters are not supported", "import godynamo in the main interpreter"
        return f"its C core cannot be loaded: {error}", "install godynamo again on this machine"
    built = [re.fullmatch(r"_C\.cpython-3(\d+)-.*\.so", name) for name in os.listdir(os.path.dirname(__file__))]
    versions = sorted(int(found[1]) for found in built if found)
    version = "{}.{}".format(*sys.version_info)
    if not versions:
        return "its C core has not been built", "install godynamo again"
    if sys.version_info[1] in versions:
        return f"its C core was built for another platform than this CPython {version}", "install godynamo again"
    return f"this is CPython {version}, and it was built for {', '.join(f'3.{minor}' for minor in versions)}", ""


core: Any
available: bool
refusal, remedy = _refuse()
if not refusal:
    try:
        core, available = importlib.import_module("._C", __package__), True
    except ImportError as _error:
        refusal, remedy = _refuse_after(_error)
if refusal:
    core, available = _Absent(), False
    warnings.warn(f"godynamo: {refusal}; everything runs eagerly", RuntimeWarning, stacklevel=4)
