"""The children of ``godynamo bench``: ``python -m godynamo._tools bench REQUEST``.

REQUEST is a JSON object. The child writes its messages to file descriptor 3, one JSON object per line; standard output
is left to the user's code.

    {"do": "plan", "suites": [...], "only": [...], "modules": ["FILE:NAME"], "engines": [...]}
        → {"machine": {...}, "workloads": [{"name", "suite", "about", "backend"}]}, or {"problem": text}
    {"do": "measure", ..., "workloads": [names], "rounds": N, "details": bool, "caches": directory or ""}
        caches: directory in which each engine gets its own inductor cache, so that its first call compiles
        → {"workload": name, "at": current activity}     many times, to show progress
          {"workload": name, "engines": {label: ...}}    once for each workload (measure.measure)
          {"workload": name, "error": text}              instead, if eager mode fails
          {"done": true}
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# The parent passes the other end of a pipe at this file descriptor.
_TALK = 3


def main(arguments: Sequence[str]) -> int:
    """See the module's docstring."""
    request = json.loads(arguments[0])
    os.set_inheritable(_TALK, False)  # otherwise inductor's worker processes would keep the pipe open
    with os.fdopen(_TALK, "w", buffering=1, encoding="utf-8") as talk:

        def say(**what: Any) -> None:
            talk.write(json.dumps(what) + "\n")

        from ..problem import Problem, need_core

        try:
            need_core()
            _DO[request["do"]](request, say)
        except Problem as problem:
            say(problem=str(problem))
    return 0


def _workloads(request: Mapping[str, Any]) -> list[Any]:
    from . import suites, user

    own = [user.load(spec) for spec in request["modules"]]
    names = [w.name for w in own]
    for w in own:
        if names.count(w.name) > 1:
            from ..problem import Problem

            raise Problem(f"two workloads are called {w.name!r}: one of them needs another name")
    return suites.choose([*suites.load(request["suites"]), *own], request["only"])


def _engines(request: Mapping[str, Any]) -> list[Any]:
    from .engines import Engine

    return [Engine.parse(text) for text in request["engines"]]


def _plan(request: Mapping[str, Any], say: Callable[..., None]) -> None:
    from .machine import machine

    engines = _engines(request)
    workloads = _workloads(request)
    for engine in engines:
        engine.check()
    say(
        machine=machine(),
        workloads=[{"name": w.name, "suite": w.suite, "about": w.about, "backend": w.backend} for w in workloads],
    )


def _measure(request: Mapping[str, Any], say: Callable[..., None]) -> None:
    import torch

    from . import measure
    from .engines import empty_caches

    _quiet()
    if not request["details"]:  # first calls are not measured, so inductor's worker processes are not needed
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    torch.set_num_threads(1)
    by_name = {w.name: w for w in _workloads(request)}
    engines = _engines(request)
    warm: set[tuple[str, str]] = set()

    def before(engine: Any) -> None:
        if request["caches"]:
            empty_caches(os.path.join(request["caches"], str(engines.index(engine))))

    for name in request["workloads"]:
        workload = by_name[name]

        def tell(at: str, name: str = name) -> None:
            say(workload=name, at=at)

        _warm_up(workload, engines, warm, before, tell)
        try:
            found = measure.measure(
                workload, engines, request["rounds"], details=request["details"], tell=tell, before=before
            )
        except Exception as error:
            say(workload=name, error=measure.text_of(error))
            continue
        say(workload=name, engines=found)
    say(done=True)


def _warm_up(
    workload: Any,
    engines: Sequence[Any],
    warm: set[tuple[str, str]],
    before: Callable[[Any], None],
    tell: Callable[[str], None],
) -> None:
    """Run a tiny function with each new engine: its first use loads modules, which must not count for a workload."""
    import torch

    for engine in engines:
        key = (engine.kind, engine.backend_for(workload.backend))
        if key in warm:
            continue
        warm.add(key)
        tell(f"loading {engine.label}")
        before(engine)
        try:
            namespace: dict[str, Any] = {}
            exec(compile(f"def tiny(x):\n    return x + {len(warm)}", f"<tiny {len(warm)}>", "exec"), namespace)
            engine.transform(workload.backend)(namespace["tiny"])(torch.ones(2))
        except Exception:  # the workload's own run will report the error
            continue


def _quiet() -> None:
    """Turn off warnings and logs of libraries, since they do not belong in a benchmark's output."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


_DO: dict[str, Callable[[Mapping[str, Any], Callable[..., None]], None]] = {"plan": _plan, "measure": _measure}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
