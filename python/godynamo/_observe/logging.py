"""Controls the logs: Python loggers ``godynamo`` and ``godynamo.<artefact>``, with settings like those of torch's logs.

``GODYNAMO_LOGS="guards,graph_code,+dynamo"`` is a comma-separated list of artefacts and components. An artefact is
shown if it is named. A component gets the level INFO, with ``+`` DEBUG, with ``-`` ERROR; ``dynamo``, ``godynamo`` and
``all`` name the same component. At DEBUG it shows all artefacts that are not off by default. :func:`set_logs` changes
the same settings from code. GODYNAMO_LOGS_OUT names a file that also receives the records. GODYNAMO_LOGS_FORMAT is a
format for the module ``logging``, or the word ``short``.

An artefact is wanted while its logger's own level is DEBUG or lower, so the module ``logging`` can also switch it.
Records come from the Go library's zap loggers (pyhook/logging.go) and propagate to the user's handlers.
"""

from __future__ import annotations

import difflib
import logging
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("godynamo")

#: torch's name of an artefact -> (description, whether a component at DEBUG omits the artefact). The order must be that
#: of pyhook/artifacts.go.
ARTIFACTS = {
    "graph": ("the captured graph as a table", False),
    "graph_code": ("the captured graph as Python code", False),
    "graph_sizes": ("sizes and dtypes of the graph's values, as far as they are known without running it", False),
    "guards": ("the translation's guards, as one Python expression", False),
    "verbose_guards": ("guards one by one, with the user's line that caused each", True),
    "graph_breaks": ("where the graph breaks, why, and the remedy", False),
    "recompiles": ("why a function was translated again: the first guard of each entry that failed", False),
    "recompiles_verbose": ("all guards of each entry that fail", True),
    "bytecode": ("the user's bytecode and the transformed one", True),
    "trace_source": ("each line of the user's code as it is translated", False),
    "trace_call": ("each operation of the graph as it is added, with the place in the line", False),
    "trace_bytecode": ("each instruction as it is translated, with the stack", False),
    "dynamic": ("the symbols of a translation and the conditions on them, with the user's lines", False),
}
COMPONENTS = ("all", "dynamo", "godynamo")

_LOGGERS = {name: logging.getLogger(f"godynamo.{name}") for name in ARTIFACTS}
_BITS = tuple((1 << (8 + i), logger) for i, logger in enumerate(_LOGGERS.values()))
_LEVELS = {"+": logging.DEBUG, "-": logging.ERROR}


def wanted_bits() -> int:
    """Return the wanted artefacts as bits. The bit of the first one in ARTIFACTS is 1 << 8."""
    bits = 0
    for bit, logger in _BITS:
        if 0 < logger.level <= logging.DEBUG:
            bits |= bit
    return bits


def _is_torchs(name: str) -> bool:
    import torch._logging._internal as internal

    registry: Any = internal.log_registry
    return bool(registry.is_artifact(name) or registry.is_log(name))


def _unknown(name: str) -> str:
    if _is_torchs(name):
        return f"{name!r} is a torch artefact: set TORCH_LOGS={name}; it also works with torch's backends here"
    near = difflib.get_close_matches(name, [*ARTIFACTS, *COMPONENTS], n=3)
    hint = f"near it: {', '.join(near)}" if near else f"there are {', '.join(ARTIFACTS)}"
    return f"{name!r} is no artefact; {hint}"


def configure(spec: str) -> None:
    """Apply the text of GODYNAMO_LOGS. Unknown words are ignored with a warning; the word ``help`` prints the names."""
    level: int | None = None
    wanted: dict[str, bool] = {}
    for word in filter(None, (w.strip() for w in spec.split(","))):
        name = word.lstrip("+-")
        if name in ARTIFACTS:
            wanted[name] = True
        elif name in COMPONENTS:
            level = _LEVELS.get(word[0], logging.INFO)
        elif name == "help":
            print(help_text(), file=sys.stderr)
        else:
            warnings.warn(f"GODYNAMO_LOGS: {_unknown(name)}", RuntimeWarning, stacklevel=2)
    _apply(level, wanted)


def _apply(level: int | None, wanted: Mapping[str, bool]) -> None:
    on = {name for name, given in wanted.items() if given}
    if level is not None and 0 < level <= logging.DEBUG:
        on.update(name for name, (_, off_by_default) in ARTIFACTS.items() if not off_by_default)
    for name, logger in _LOGGERS.items():
        logger.setLevel(logging.DEBUG if name in on else logging.NOTSET)
    log.setLevel(level if level is not None else logging.NOTSET)
    if on or level is not None:
        _add_handlers()


def help_text() -> str:
    """Return the help for GODYNAMO_LOGS."""
    rows = [f"  {name:<20}{text}{' (off by default)' if off else ''}" for name, (text, off) in ARTIFACTS.items()]
    return "\n".join(
        [
            "GODYNAMO_LOGS: a comma-separated list of artefacts and components",
            f"  {', '.join(COMPONENTS):<20}level INFO; with + DEBUG and all artefacts not off by default, with - ERROR",
            *rows,
            'for instance GODYNAMO_LOGS="graph_breaks,recompiles"; GODYNAMO_LOGS_OUT=file for a copy in a file',
        ]
    )


def set_logs(
    *,
    all: int | None = None,
    dynamo: int | None = None,
    godynamo: int | None = None,
    graph: bool = False,
    graph_code: bool = False,
    graph_sizes: bool = False,
    guards: bool = False,
    verbose_guards: bool = False,
    graph_breaks: bool = False,
    recompiles: bool = False,
    recompiles_verbose: bool = False,
    bytecode: bool = False,
    trace_source: bool = False,
    trace_call: bool = False,
    trace_bytecode: bool = False,
    dynamic: bool = False,
    modules: Mapping[str, int | bool] | None = None,
    **others: object,
) -> None:
    """Choose what is logged, like ``torch._logging.set_logs``. Each call replaces all settings.

    ``all``, ``dynamo`` and ``godynamo`` are levels of the module ``logging``; artefacts are True or False. ``modules``
    maps names of either kind to such values. Raises ValueError for an unknown name, with the nearest ones, and for a
    value of the wrong kind. If GODYNAMO_LOGS is set, it takes precedence: the call warns and changes nothing.

    >>> import logging, godynamo
    >>> godynamo.set_logs(dynamo=logging.INFO, graph_breaks=True)
    >>> godynamo.set_logs()
    """
    artifacts: dict[str, Any] = {
        "graph": graph,
        "graph_code": graph_code,
        "graph_sizes": graph_sizes,
        "guards": guards,
        "verbose_guards": verbose_guards,
        "graph_breaks": graph_breaks,
        "recompiles": recompiles,
        "recompiles_verbose": recompiles_verbose,
        "bytecode": bytecode,
        "trace_source": trace_source,
        "trace_call": trace_call,
        "trace_bytecode": trace_bytecode,
        "dynamic": dynamic,
    }
    levels: dict[str, Any] = {"all": all, "dynamo": dynamo, "godynamo": godynamo}
    for name, value in {**others, **(modules or {})}.items():
        if name in artifacts:
            artifacts[name] = value
        elif name in levels:
            levels[name] = value
        else:
            raise ValueError(f"set_logs: {_unknown(name)}")
    for name, value in artifacts.items():
        if not isinstance(value, bool):
            raise ValueError(f"set_logs: {name} is True or False, not {value!r}")
    level: int | None = None
    for name, value in levels.items():
        if value is None:
            continue
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or value not in logging.getLevelNamesMapping().values()
        ):
            raise ValueError(
                f"set_logs: {name} is a level of logging's (logging.DEBUG, logging.INFO, ...), not {value!r}"
            )
        level = value
    if os.environ.get("GODYNAMO_LOGS"):
        log.warning("GODYNAMO_LOGS is set and has precedence; set_logs changes nothing")
        return
    _apply(level, artifacts)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to the current sys.stderr, since tests and notebooks replace sys.stderr."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None: ...


_handlers: list[logging.Handler] = []


def _add_handlers() -> None:
    """Add our handlers, for stderr and for the file of GODYNAMO_LOGS_OUT. Later calls do nothing."""
    if _handlers:
        return
    _handlers.append(_Stderr())
    out = os.environ.get("GODYNAMO_LOGS_OUT")
    if out:
        try:
            _handlers.append(logging.FileHandler(out))
        except OSError as error:
            warnings.warn(f"GODYNAMO_LOGS_OUT: {out} cannot be written: {error}", RuntimeWarning, stacklevel=4)
    words = os.environ.get("GODYNAMO_LOGS_FORMAT", "")
    form = logging.BASIC_FORMAT if words in ("short", "basic") else words
    try:
        formatter = logging.Formatter(form or "[%(asctime)s] %(name)s %(levelname)s %(message)s")
    except ValueError as error:
        warnings.warn(f"GODYNAMO_LOGS_FORMAT: {error}", RuntimeWarning, stacklevel=4)
        formatter = logging.Formatter()
    for handler in _handlers:
        handler.setFormatter(formatter)
        log.addHandler(handler)


if os.environ.get("GODYNAMO_LOGS"):
    configure(os.environ["GODYNAMO_LOGS"])
