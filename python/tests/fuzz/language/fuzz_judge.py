"""Runs a program under CPython and under godynamo, and returns their first difference."""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Callable
from typing import Any

import torch

from harness.fuzz_compare import FILENAME, Mismatch, Observed, Plain, compare, frames_in, text_of

#: calls of one program, each in two rounds: misses, then hits
CALLS = ((2.0, 1), (-1.0, 2), (0.5, 0))
ROUNDS = 2


def _arguments(ns: dict[str, Any], call: int) -> tuple[Any, ...]:
    factor, n = CALLS[call]
    x, y = torch.tensor([1.0, -2.0]) * factor, torch.tensor([0.5, 3.0])
    if call == 2:
        y = x
    return x, y, n, [1, 2], {"k": 2}, ns["Child" if call == 1 else "Thing"](n, torch.ones(2))


class Deaths:
    """The objects that have died by the end of a call. A run may have more than CPython's run, but none less.

    CPython leaves some objects to the garbage collector that die at once in ours (docs/plan.md, known limits).
    """

    def __init__(self, dead: set[int]) -> None:
        self.dead = frozenset(dead)

    def __eq__(self, ours: object) -> bool:
        return isinstance(ours, Deaths) and self.dead <= ours.dead

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"dead: {sorted(self.dead)}"


def observe(ns: dict[str, Any], fn: Callable[..., Any], call: int, filename: str) -> dict[str, Any]:
    """Describe one call: its result or exception, the output, the dead, the arguments and globals afterwards."""
    args = _arguments(ns, call)
    out, plain = io.StringIO(), Plain()
    result: dict[str, Any] = {"exception": None, "value": None}
    with contextlib.redirect_stdout(out):
        try:
            result["value"] = plain(fn(*args))
        except Exception as error:
            result["exception"] = (plain.error(error, {}), frames_in(error, filename))
    result["output"] = text_of(out.getvalue())
    result["effects"] = [plain(args), plain(ns["LOG"]), plain(ns["COUNT"])]
    result["deaths"] = Deaths(ns["DEAD"])
    gc.collect(1)  # later calls print who has died: cycles of this call must not depend on the collector's time
    return result


def run(codes: list[Any], wrap: Callable[[Any], Any]) -> Observed:
    """Make all calls of a program."""
    ns: dict[str, Any] = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    fn = wrap(ns["fn"])
    torch.manual_seed(0)
    return [observe(ns, fn, call, FILENAME) for _ in range(ROUNDS) for call in range(len(CALLS))]


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first difference between a program's two runs."""
    return compare(text, run, whole)
