"""Calls that transformed code makes instead of calls that inspect their caller: logging and warnings.

They are used only if they run no user code: all handlers are logging's own, and warnings are shown by the warnings
module.
"""

from __future__ import annotations

import _warnings
import logging
import logging.handlers
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

#: Methods of loggers and functions of the module → the level; None: the first argument is the level.
LOGGING: dict[Any, int | None] = {
    **{getattr(logging.Logger, name): level for name, level in _LEVELS.items()},
    **{getattr(logging, name): level for name, level in _LEVELS.items()},
    logging.Logger.log: None,
    logging.log: None,
}


def level_of(fn: Any) -> int | None:
    """Return the level at which one of these functions logs."""
    return LOGGING[fn]


def is_method(fn: Any) -> bool:
    """Return whether it is a logger's method; the module's functions log to the root logger."""
    return fn is getattr(logging.Logger, fn.__name__, None)


def root() -> logging.Logger:
    """Return the logger of the module's functions."""
    return logging.root


def _logging_only(obj: Any) -> bool:
    return type(obj).__module__ in ("logging", "logging.handlers")


def plain_logger(logger: Any) -> bool:
    """Return whether a record to this logger runs only logging's own code; a guard predicate."""
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
    """Return whether a warning runs only the warnings module's own code; a guard predicate."""
    shown: Any = warnings
    return (
        bool(sys.modules.get("warnings") is warnings)  # where C looks it up
        and shown.showwarning is shown._showwarning_orig
        and getattr(shown._showwarnmsg_impl, "__module__", None) == "warnings"
        and shown.warn is _warnings.warn
        and shown.formatwarning is shown._formatwarning_orig
    )


def warn(message: str, category: type[Warning], place: Place, scope: dict[str, Any]) -> None:
    """Do ``warnings.warn(message, category)``, as if called at ``place`` in a module with these globals."""
    registry = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, place[0], place[1], scope.get("__name__") or "<string>", registry)
