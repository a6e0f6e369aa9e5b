"""The engines of a comparison: eager mode, torch.compile with a backend, and godynamo with a backend."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..problem import Problem, nearest

EAGER = "eager"
KINDS = (EAGER, "torch.compile", "godynamo")


def near(word: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: it lists the nearest names, or all names if there are few.

    >>> near("xyz", ["inductor", "eager"])
    '; there are eager, inductor'
    """
    names = sorted(known)
    found = nearest(word, names)
    return found or (f"; there are {', '.join(names)}" if len(names) <= 20 else "")


@dataclass(frozen=True)
class Engine:
    """A way to run workloads. If ``backend`` is None, each workload runs with its own backend."""

    label: str
    kind: str
    backend: str | None = None

    @classmethod
    def parse(cls, text: str) -> Engine:
        """Parse ``eager``, ``torch.compile[=BACKEND]`` or ``godynamo[=BACKEND]``. Raises Problem for other texts."""
        kind, equals, backend = text.partition("=")
        if kind not in KINDS:
            raise Problem(f"no engine is called {kind!r}{near(kind, KINDS)}")
        if kind == EAGER and equals:
            raise Problem(
                "the engine eager takes no backend; for backends there are torch.compile=NAME and godynamo=NAME"
            )
        if equals and not backend:
            raise Problem(f"engine {text!r} names no backend; without one, leave out the =")
        return cls(text, kind, backend or None)

    def check(self) -> None:
        """Raise Problem if no backend has this name. Imports torch._dynamo unless the name is "eager"."""
        if self.backend in (None, "eager"):
            return
        from godynamo._backends import named

        try:
            named.lookup_backend(str(self.backend))
        except ValueError as error:
            raise Problem(f"engine {self.label!r}: {error}") from None

    def backend_for(self, own: str) -> str:
        """Return the backend used for a workload whose own backend is `own`."""
        return self.backend or own

    def transform(self, own: str) -> Callable[[Any], Any]:
        """Return a function that transforms a function or module for a workload whose own backend is `own`."""
        backend = self.backend_for(own)
        if self.kind == "torch.compile":
            import torch

            return lambda target: torch.compile(target, backend=backend)
        if self.kind == "godynamo":
            import godynamo

            return lambda target: godynamo.optimize(target, backend=backend)
        return lambda target: target

    def forget(self) -> None:
        """Reset state before another workload.

        torch.compile keeps state on code objects that all modules share: after one module with nothing to capture, it
        would run all modules in CPython.
        """
        if self.kind == "torch.compile":
            import torch._dynamo

            torch._dynamo.reset()

    def account(self) -> Account:
        """Return an Account that counts what is captured from now on."""
        return Account(self.kind)


def empty_caches(directory: str) -> None:
    """Give inductor a separate cache directory from now on, and drop its cache in memory.

    Otherwise an engine would use kernels that another engine has compiled.
    """
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = directory
    utils = sys.modules.get("torch._inductor.utils")
    for name in ("clear_caches", "clear_inductor_caches"):  # by version of torch
        if hasattr(utils, name):
            getattr(utils, name)()


class Account:
    """Counts graphs, breaks, operations and seconds in backends since it was created, from the engine's counters."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._began = time.perf_counter()
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        if self._kind == EAGER:
            return {}
        counters: Any
        if self._kind == "godynamo":
            from godynamo import utils
            from godynamo._core import core

            counters, backend = utils.counters, utils.phase_seconds("backend")
            errors = core.counters().get("internal_errors", 0)
        else:
            from torch._dynamo import utils as torch_utils

            counters, errors = torch_utils.counters, 0
            taken = getattr(torch_utils, "compilation_time_metrics", {})
            backend = float(sum(taken.get("OutputGraph.call_user_compiler", ())))
        return {
            "graphs": counters["stats"]["unique_graphs"],
            "ops": counters["stats"]["calls_captured"],
            # torch counts graph breaks under one of these names, depending on the version.
            "breaks": max(sum(counters[group].values()) for group in ("graph_break", "unimplemented")),
            "backend": backend,
            "internal_errors": errors,
        }

    def close(self) -> dict[str, Any]:
        """Return {"graphs", "breaks", "ops", "internal_errors", "cold": {"seconds", "capture", "backend"}}.

        For eager mode only {"cold": {"seconds"}}.
        """
        seconds = time.perf_counter() - self._began
        if not self._before:
            return {"cold": {"seconds": seconds}}
        now = {name: value - self._before[name] for name, value in self._read().items()}
        backend = now.pop("backend")
        return {**now, "cold": {"seconds": seconds, "capture": max(seconds - backend, 0.0), "backend": backend}}
