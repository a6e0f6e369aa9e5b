"""Shared by the tests of modules: comparisons as in ``make modules``, and whole programs around optimized
modules.

A *program* is a function of ``optimize``: it builds modules, optimizes them with this function, uses them, and returns
everything that a user could observe. It runs without optimization, with inlined graphs and with a whole-graph backend,
from the same random state; the results must be equal bit by bit.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import godynamo
from godynamo import _C, utils

#: folder of the harness of `make modules`
LIBRARY = Path(__file__).resolve().parents[1] / "torch_library"
sys.path.insert(0, str(LIBRARY))

from library_judge import SEED, Case, Describer, Recorder, Verdict, caller_of, judge  # noqa: E402

Program = Callable[[Callable[[Any], Any]], Any]


def outcome(program: Program, optimize: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the outcome of a program as plain data."""
    torch.manual_seed(SEED)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value, how = program(optimize), "returned"
        except Exception as error:
            value, how = None, f"raised {type(error).__name__}: {error}"
    random = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()[:16]
    told = [(w.category.__name__, str(w.message)) for w in caught if not issubclass(w.category, DeprecationWarning)]
    return {"how": how, "value": Describer(True).tree(value), "random": random, "warnings": told}


class Counted(Recorder):
    """A whole-graph backend that keeps its graphs; ``breaks`` are the reasons of the last program's graph breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.fx.GraphModule] = []
        self.breaks: dict[str, int] = {}

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        self.seen.append(gm)
        return super().__call__(gm, example_inputs)

    def ops(self) -> list[str]:
        """Return the names of all graphs' operations, in order."""
        return [
            getattr(n.target, "__name__", None) or str(n.target).rsplit(".", 1)[-1]
            for gm in self.seen
            for n in gm.graph.nodes
            if n.op.startswith("call_")
        ]


def check(program: Program, graphs: int | None = None) -> Counted:
    """Run a program in all three ways and compare; ``graphs``: the exact number of graphs, without a break.

    Returns the whole-graph backend.
    """
    expected = outcome(program, lambda fn: fn)
    recorder = Counted()
    for backend in ("eager", recorder):
        godynamo.reset()
        utils.counters.clear()
        actual = outcome(program, lambda fn, backend=backend: godynamo.optimize(fn, backend=backend))
        for key, value in expected.items():
            kind = "inline" if backend == "eager" else "whole graph"
            assert actual[key] == value, f"{kind}: {key}: {str(value)[:300]} became {str(actual[key])[:300]}"
        assert _C.counters()["internal_errors"] == 0
    recorder.breaks = dict(utils.counters["graph_break"])
    if graphs is not None:
        assert (recorder.graphs, recorder.breaks) == (graphs, {})
    return recorder


def _plain_warnings() -> Any:
    """Return the interpreter's own function for showing warnings: pytest replaces it, and a program that shows
    warnings itself is not captured."""
    spec = importlib.util.find_spec("warnings")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._showwarnmsg_impl


_SHOWN = _plain_warnings()


def judged(make: Callable[[], Any], *args: Any, one: bool = True, **kwargs: Any) -> Verdict:
    """Call a module or function twice under eager and godynamo; check that the results agree and, if ``one``, that
    there is one graph."""
    with warnings.catch_warnings():
        warnings._showwarnmsg_impl = _SHOWN  # type: ignore[attr-defined]
        verdict = judge(Case("case", make, args, kwargs))
    assert not verdict.wrong
    if one:
        assert verdict.one, dict(verdict.breaks)
    return verdict


__all__ = ["LIBRARY", "Case", "Counted", "Recorder", "Verdict", "caller_of", "check", "judge", "judged", "outcome"]
