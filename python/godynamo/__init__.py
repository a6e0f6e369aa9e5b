"""godynamo: a function's tensor operations as guarded, cached graphs, with the call overhead of a C function.

>>> import torch, godynamo
>>> @godynamo.optimize
... def f(x, y):
...     return (x + y).relu() * 2

``optimize`` has all forms; ``explain``, ``guards``, ``cache_stats`` say what became of a function; ``config``, ``exc``,
``utils`` and ``testing`` are submodules. Importing this imports torch and nothing of torch._dynamo, torch.fx or
sympy.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import torch as _torch  # noqa: F401 - the core looks for its symbols

from . import _logging, config
from ._modes import disable, graph_break, is_compiling, is_dynamo_disable_recursive, reset, run, skip, skip_frame
from ._optimize import optimize, optimize_assert

if TYPE_CHECKING:
    from . import callback, exc, testing, utils
    from ._backends import list_backends, lookup_backend, register_backend
    from ._explain import cache_entries, cache_stats, explain, guards
    from ._export import export
    from ._marks import (
        allow_in_graph,
        assume_constant_result,
        disallow_in_graph,
        mark_dynamic,
        mark_static,
        substitute_in_graph,
    )
    from ._stance import get_stance, set_stance

__version__ = "0.1.0"

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "cache_entries",
    "cache_stats",
    "callback",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "export",
    "get_stance",
    "graph_break",
    "guards",
    "is_compiling",
    "is_dynamo_disable_recursive",
    "list_backends",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "optimize",
    "optimize_assert",
    "register_backend",
    "reset",
    "run",
    "set_stance",
    "skip",
    "skip_frame",
    "substitute_in_graph",
    "testing",
    "utils",
]

# Where each name that is imported on first use lives; a submodule is its own name.
_LAZY = {
    "callback": "callback",
    "exc": "exc",
    "testing": "testing",
    "utils": "utils",
    "export": "_export",
    **dict.fromkeys(("get_stance", "set_stance"), "_stance"),
    **dict.fromkeys(("list_backends", "lookup_backend", "register_backend"), "_backends"),
    **dict.fromkeys(("cache_entries", "cache_stats", "explain", "guards"), "_explain"),
    **dict.fromkeys(
        (
            "allow_in_graph",
            "assume_constant_result",
            "disallow_in_graph",
            "mark_dynamic",
            "mark_static",
            "substitute_in_graph",
        ),
        "_marks",
    ),
}


def __getattr__(name: str) -> Any:
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module 'godynamo' has no attribute {name!r}")
    module = importlib.import_module(f".{where}", __name__)
    value = module if where == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


if os.environ.get("GODYNAMO_DISABLE", "0") not in ("", "0"):
    config.disable = True
if os.environ.get("GODYNAMO_TRACE"):
    config.trace_dir = os.path.abspath(os.environ["GODYNAMO_TRACE"])

_ = _logging  # configures the loggers from GODYNAMO_LOGS
