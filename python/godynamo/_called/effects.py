"""Replacements for logging and warning calls in transformed code. The originals inspect the frame of their caller.

A replacement is used only if it runs no user code: all handlers must be logging's own, and the warnings module itself
must show the warnings.
"""

from __future__ import annotations

import _warnings
import logging
import sys
import warnings
from typing import Any

Place = tuple[str, int, str]  # file, line, function

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}

#: Methods of Logger and functions of the logging module → their level; None: the first argument is the level.
LOGGING: dict[Any, int | None] = {
    **{getattr(logging.Logger, name): level for name, level in _LEVELS.items()},
    **{getattr(logging, name): level for name, level in _LEVELS.items()},
    logging.Logger.log: None,
    logging.log: None,
}


def level_of(fn: Any) -> int | None:
    """Return the level at which a function of LOGGING logs."""
    return LOGGING[fn]


def is_method(fn: Any) -> bool:
    """Return whether a function of LOGGING is a method of Logger, not a function of the module."""
    return fn is getattr(logging.Logger, fn.__name__, None)


def root() -> logging.Logger:
    """Return the root logger, to which the functions of the logging module log."""
    return logging.root


def _logging_only(obj: Any) -> bool:
    return type(obj).__module__ in ("logging", "logging.handlers")


def plain_logger(logger: Any) -> bool:
    """Return whether logging to this logger runs only the logging module's code. Used as a guard predicate."""
    if not _logging_only(logger) or logger.filters or logging.getLogRecordFactory() is not logging.LogRecord:
        return False
    at = logger
    while at is not None:
        for handler in at.handlers:
            formatter = handler.formatter
            if not _logging_only(handler) or handler.filters or not (formatter is None or _logging_only(formatter)):
                return False
        at = at.parent if at.propagate else None
    return True


def log(logger: logging.Logger, level: int, place: Place, message: Any, *args: Any) -> None:
    """Do ``logger.log(level, message, *args)``, as if called at ``place``."""
    if logger.isEnabledFor(level):
        file, line, function = place
        logger.handle(logger.makeRecord(logger.name, level, file, line, message, args, None, function, None, None))


def log_root(logger: logging.Logger, level: int, place: Place, message: Any, *args: Any) -> None:
    """Do ``logging.log(level, message, *args)``, as if called at ``place``."""
    if not logger.handlers:
        logging.basicConfig()
    log(logger, level, place, message, *args)


def plain_warnings(_: Any) -> bool:
    """Return whether showing a warning runs only the warnings module's code. Used as a guard predicate."""
    shown: Any = warnings
    return (
        bool(sys.modules.get("warnings") is warnings)  # C code looks the module up in sys.modules
        and shown.showwarning is shown._showwarning_orig
        and getattr(shown._showwarnmsg_impl, "__module__", None) in ("warnings", "_py_warnings")
        and shown.warn is _warnings.warn
        and shown.formatwarning is shown._formatwarning_orig
    )


def warn(message: str, category: type[Warning], place: Place, scope: dict[str, Any]) -> None:
    """Do ``warnings.warn(message, category)``, as if called at ``place`` in a module with these globals."""
    registry = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, place[0], place[1], scope.get("__name__") or "<string>", registry)
