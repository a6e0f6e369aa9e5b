"""godynamo captures a function's tensor operations as guarded, cached graphs, with a C function's call overhead.

>>> import torch, godynamo
>>> @godynamo.optimize
... def f(x, y):
...     return (x + y).relu() * 2

``optimize`` is a function, a decorator and a context manager; ``explain``, ``guards`` and ``cache_stats`` report what
was captured; ``config``, ``exc``, ``utils`` and ``testing`` are submodules. docs/api.md lists all names with torch's.
Importing godynamo imports torch, but not torch._dynamo, torch.fx or sympy.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401 - the core looks up torch's C++ symbols
except ModuleNotFoundError as _error:
    if _error.name != "torch":  # torch is installed, and its own import failed
        raise
    raise ModuleNotFoundError(
        "godynamo needs PyTorch 2.6 or newer, which this Python does not have: pip install torch", name="torch"
    ) from None

from . import config
from ._observe.logging import set_logs
from ._user.modes import disable, graph_break, is_compiling, reset, run, skip, skip_frame
from ._user.optimize import optimize, optimize_assert

if TYPE_CHECKING:
    from . import callback, comptime, exc, overrides, testing, utils
    from ._aside.aside import wait_for_compilation
    from ._backends.named import (
        list_backends,
        lookup_backend,
        register_backend,
        register_debug_backend,
        register_experimental_backend,
    )
    from ._explain.decompile import decompile
    from ._explain.explain import cache_entries, cache_stats, explain, guards
    from ._stored.artifacts import load_cache_artifacts, save_cache_artifacts
    from ._user.break_errors import error_on_graph_break
    from ._user.compile import compile, compile_module
    from ._user.defaults import get_default_backend, set_default_backend
    from ._user.dims import mark_dynamic, mark_static, mark_static_address, mark_unbacked, maybe_mark_dynamic
    from ._user.export import export
    from ._user.marks import (
        allow_in_graph,
        assume_constant_result,
        disable_nested_graph_breaks,
        disallow_in_graph,
        forbid_in_graph,
        nested_compile_region,
        nonstrict_trace,
        substitute_in_graph,
    )
    from ._user.modes import is_dynamo_compiling, is_dynamo_disable_recursive, is_exporting, reset_code_caches
    from ._user.names import (
        OptimizedModule,
        cache_size,
        cudagraph_mark_step_begin,
        innermost_fn,
        is_dynamo_supported,
        patch_dynamo_config,
        remove_from_cache,
        wrap_numpy,
    )
    from ._user.precompile import precompile
    from ._user.stance import get_stance, set_stance
    from ._user.warm_up import warm_up

__version__ = "0.1.0"

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "cache_entries",
    "cache_size",
    "cache_stats",
    "callback",
    "compile",
    "compile_module",
    "comptime",
    "config",
    "cudagraph_mark_step_begin",
    "decompile",
    "disable",
    "disable_nested_graph_breaks",
    "disallow_in_graph",
    "error_on_graph_break",
    "exc",
    "explain",
    "export",
    "forbid_in_graph",
    "get_default_backend",
    "get_stance",
    "graph_break",
    "guards",
    "innermost_fn",
    "is_compiling",
    "is_dynamo_compiling",
    "is_dynamo_disable_recursive",
    "is_dynamo_supported",
    "is_exporting",
    "list_backends",
    "load_cache_artifacts",
    "lookup_backend",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "nested_compile_region",
    "nonstrict_trace",
    "optimize",
    "optimize_assert",
    "overrides",
    "patch_dynamo_config",
    "precompile",
    "register_backend",
    "register_debug_backend",
    "register_experimental_backend",
    "remove_from_cache",
    "reset",
    "reset_code_caches",
    "run",
    "save_cache_artifacts",
    "set_default_backend",
    "set_logs",
    "set_stance",
    "skip",
    "skip_frame",
    "substitute_in_graph",
    "testing",
    "utils",
    "wait_for_compilation",
    "warm_up",
    "wrap_numpy",
]


def _from(module: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), module)


# Maps each name that is imported on first use to its module; a submodule maps to itself.
_LAZY = {
    **{name: name for name in ("callback", "comptime", "exc", "overrides", "testing", "utils")},
    **_from(
        "_backends.named",
        "list_backends lookup_backend register_backend register_debug_backend register_experimental_backend",
    ),
    **_from("_user.break_errors", "error_on_graph_break"),
    **_from("_user.compile", "compile compile_module"),
    **_from("_explain.decompile", "decompile"),
    **_from("_user.defaults", "get_default_backend set_default_backend"),
    **_from("_user.dims", "mark_dynamic mark_static mark_static_address mark_unbacked maybe_mark_dynamic"),
    **_from("_explain.explain", "cache_entries cache_stats explain guards"),
    **_from("_user.precompile", "precompile"),
    **_from("_user.warm_up", "warm_up"),
    **_from("_aside.aside", "wait_for_compilation"),
    **_from("_stored.artifacts", "load_cache_artifacts save_cache_artifacts"),
    **_from("_user.export", "export"),
    **_from(
        "_user.marks",
        "allow_in_graph assume_constant_result disable_nested_graph_breaks disallow_in_graph "
        "forbid_in_graph nested_compile_region nonstrict_trace substitute_in_graph",
    ),
    **_from("_user.modes", "is_dynamo_compiling is_dynamo_disable_recursive is_exporting reset_code_caches"),
    **_from(
        "_user.names",
        "OptimizedModule cache_size cudagraph_mark_step_begin innermost_fn is_dynamo_supported "
        "patch_dynamo_config remove_from_cache wrap_numpy",
    ),
    **_from("_tools.magics", "load_ipython_extension unload_ipython_extension"),
    **_from("_user.stance", "get_stance set_stance"),
}


if not TYPE_CHECKING:  # with __getattr__, a type checker would accept names that do not exist

    def __getattr__(name: str) -> Any:
        where = _LAZY.get(name)
        if where is None:
            raise _unknown(name)
        module = importlib.import_module(f".{where}", __name__)
        value = module if where == name else getattr(module, name)
        globals()[name] = value
        return value


def _unknown(name: str) -> AttributeError:
    import difflib

    from ._user.not_built import NOT_BUILT

    text = f"module 'godynamo' has no attribute {name!r}"
    if name in NOT_BUILT:
        return AttributeError(f"{text}: {NOT_BUILT[name]}")
    near = difflib.get_close_matches(name, __all__, n=3) if not name.startswith("_") else []
    return AttributeError(f"{text}; near it: {', '.join(near)}" if near else text)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


if os.environ.get("GODYNAMO_DISABLE", "0") not in ("", "0"):
    config.disable = True
if os.environ.get("GODYNAMO_TRACE"):
    config.trace_dir = os.path.abspath(os.environ["GODYNAMO_TRACE"])
