"""Runs graphs as captured until another process has compiled them (``config.compile_aside``).

The compiled code replaces the captured graph at the next call, under the same guards.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import logging
import os
import re
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import utils
from . import job as jobs
from .graph import Aside, Here
from .thread import Compiling, Work

log = logging.getLogger("godynamo")


def start(
    rows: Sequence[Any],
    inputs: Sequence[Any],
    changed: Sequence[int],
    backend: Any,
    captured: Callable[..., Any],
    here: Here | None,
    sizes: jobs.Sizes | None = None,
) -> Aside | None:
    """Have a graph compiled by another process; return a callable that runs it meanwhile.

    Return None, and log the reason, if only this process can compile the graph. ``here`` is called later if the other
    process turns out not to be able to. ``sizes``: the arguments of symbolic.Sizes, if sizes are symbols. Calls whose
    sizes do not fulfil what the compiler has assumed about them run as captured.
    """
    try:
        if not _can_load():
            raise jobs.NotHandedOver("this torch cannot load what another process has compiled")
        graph = Aside(captured, here)
        job = jobs.described(rows, inputs, changed, backend, sizes)
        _compiling.put(Work(weakref.ref(graph), job, jobs.settings(), _place(rows)))
    except jobs.NotHandedOver as reason:
        log.info("%s is compiled by this process: %s", _place(rows), reason)
        utils.counters["stats"]["graphs_not_compiled_aside"] += 1
        return None
    return graph


def _place(rows: Sequence[Any]) -> str:
    """Return the name of a graph in messages, with the line of its first operation that has one."""
    for row in rows:
        if found := re.findall(r'File "(.*)", line (\d+), in (.*)', row[5] or ""):
            file, line, function = found[0]  # the outermost frame: that of the optimized function
            return f"the graph from {function} ({file}:{line})"
    return "a graph"


@functools.lru_cache(maxsize=1)
def _can_load() -> bool:
    return bool(sys.executable) and importlib.util.find_spec("torch._inductor.standalone_compile") is not None


def wait_for_compilation(timeout: float | None = None) -> bool:
    """Wait until no graph is being compiled aside, ``timeout`` seconds at most. Return whether none is.

    Call it before measuring, and where results must be the same in each run.
    """
    return _compiling.wait(timeout)


_compiling = Compiling()
atexit.register(lambda: _compiling.end())
os.register_at_fork(after_in_child=lambda: _compiling.drop())
