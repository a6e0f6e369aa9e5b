"""Finds workloads by name: the micro set, and the models of installed libraries."""

from __future__ import annotations

import fnmatch
import importlib.util
from collections.abc import Sequence
from typing import Any

import torch

import godynamo_workloads as workloads

from ..problem import Problem
from .engines import near
from .workload import Prepared, Transform, Workload

MICRO = "micro"
#: the zoo's libraries, under the names of the packages that must be installed
LIBRARIES = ("transformers", "timm", "torchvision")
SUITES = (MICRO, *LIBRARIES)

# A call of a model takes milliseconds; a round contains several calls.
_MODEL_ROUND_SECONDS = 0.02


def load(suites: Sequence[str]) -> list[Workload]:
    """Return the workloads of some suites. Raises Problem for an unknown suite, or if its library is not installed."""
    found: list[Workload] = []
    for suite in suites:
        if suite not in SUITES:
            raise Problem(f"no suite is called {suite!r}{near(suite, SUITES)}")
        if suite == MICRO:
            found += workloads.WORKLOADS
            continue
        if importlib.util.find_spec(suite) is None:
            raise Problem(
                f"suite {suite} needs the package {suite}, which this Python does not have: pip install {suite}"
            )
        found += _models(suite)
    return found


def choose(known: Sequence[Workload], patterns: Sequence[str]) -> list[Workload]:
    """Return the workloads, in order, whose names match a pattern (with wildcards). Without patterns, return all.

    Raises Problem for a pattern without a match.
    """
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(w.name, pattern) for w in known):
            raise Problem(f"no workload is called {pattern!r}{near(pattern, [w.name for w in known])}")
    if not patterns:
        return list(known)
    return [w for w in known if any(fnmatch.fnmatchcase(w.name, pattern) for pattern in patterns)]


def _models(library: str) -> list[Workload]:
    from . import zoo

    return [_model(name, make) for name, make in zoo.MODELS.items() if name.startswith(library + ".")]


def _model(name: str, make: Any) -> Workload:
    """Return the workload of a zoo model in evaluation mode, without gradients. All engines get the same weights."""

    def prepare(transform: Transform) -> Prepared:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            module, args, kwargs = make()
        module.eval()
        return Prepared.of_call(transform(module), module, args, kwargs)

    library, _, model = name.partition(".")
    about = f"{library}'s {model}, tiny, random weights, no_grad"
    return Workload(name, about, prepare, torch.no_grad, suite=library, seconds=_MODEL_ROUND_SECONDS)
