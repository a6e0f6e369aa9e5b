"""Python logger ``godynamo`` and GODYNAMO_LOGS: a comma-separated list of torch's artefact names and levels.

``GODYNAMO_LOGS="guards,graph_code,recompiles"`` shows these; ``+`` before a component ("+dynamo") means DEBUG, ``-``
ERROR; ``all`` shows every artefact. Each artefact has a logger ``godynamo.<name>``.
"""

from __future__ import annotations

import difflib
import logging
import os
import sys
import warnings

log = logging.getLogger("godynamo")

#: torch's names of what is shown
ARTIFACTS = (
    "bytecode",
    "graph",
    "graph_breaks",
    "graph_code",
    "guards",
    "output_code",
    "perf_hints",
    "recompiles",
    "recompiles_verbose",
    "trace_bytecode",
    "trace_source",
)
_COMPONENTS = ("all", "dynamo", "godynamo")

_wanted: set[str] = set()


def wanted(artifact: str) -> bool:
    """Whether an artefact is to be shown."""
    return artifact in _wanted


def show(artifact: str, text: str, *args: object) -> None:
    """Log an artefact, where it is wanted."""
    if artifact in _wanted:
        logging.getLogger(f"godynamo.{artifact}").debug(text, *args)


def configure(spec: str) -> None:
    """Apply a GODYNAMO_LOGS text; unknown words are warned about and left out."""
    _wanted.clear()
    level = logging.WARNING
    for word in filter(None, (w.strip() for w in spec.split(","))):
        name = word.lstrip("+-")
        if name in ARTIFACTS:
            _wanted.add(name)
        elif name == "all":
            _wanted.update(ARTIFACTS)
        elif name not in _COMPONENTS:
            near = difflib.get_close_matches(name, ARTIFACTS + _COMPONENTS, n=3)
            hint = f"; near it: {', '.join(near)}" if near else ""
            warnings.warn(f"GODYNAMO_LOGS: {name!r} is no artefact{hint}", RuntimeWarning, stacklevel=2)
            continue
        if name in _COMPONENTS:
            level = {"+": logging.DEBUG, "-": logging.ERROR}.get(word[0], logging.INFO)
    for artifact in ARTIFACTS:
        logging.getLogger(f"godynamo.{artifact}").setLevel(logging.DEBUG if artifact in _wanted else logging.NOTSET)
    if not spec.strip():
        log.setLevel(logging.NOTSET)
        return
    log.setLevel(level)
    if not any(getattr(h, "_godynamo", False) for h in log.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("[%(asctime)s] %(name)s %(levelname)s %(message)s"))
        handler._godynamo = True  # type: ignore[attr-defined]
        log.addHandler(handler)


if os.environ.get("GODYNAMO_LOGS"):
    configure(os.environ["GODYNAMO_LOGS"])
