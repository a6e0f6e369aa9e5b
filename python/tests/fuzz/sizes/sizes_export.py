"""Exports a program of `make fuzz-sizes` for its first call, and compares the other calls with eager mode.

The ExportedProgram may refuse a call, since it is valid for a range of sizes. Its results must be eager mode's, bit by
bit.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

import godynamo
import sizes_judge as judging
from harness.fuzz_compare import codes_of


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        same = x.dtype == y.dtype and x.shape == y.shape
        return same and torch.allclose(x, y, rtol=0.0, atol=0.0, equal_nan=True)
    return x == y or (isinstance(x, float) and isinstance(y, float) and math.isnan(x) and math.isnan(y))


def _spec(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return dict.fromkeys(range(x.dim()), Dim.AUTO)
    return Dim.AUTO if type(x) is int else None


def exported(text: str) -> tuple[Counter[str], list[int]]:
    """Return counts of what happened, and the numbers of the calls whose results are wrong.

    The counts are of "programs" (1 if the program could be exported), "equal" results and "refused" calls.
    """
    ns = judging.namespace(codes_of(text))
    state = ns["Net"]().state_dict()

    def fresh() -> Callable[..., Any]:
        """Return the program's function with a new Thing and module."""
        thing, module = ns["Thing"](3), ns["Net"]()
        module.load_state_dict(state)
        return lambda x, y, z, v, n, k, f, lens: ns["fn"](x, y, z, v, n, k, f, lens, thing, module)

    count: Counter[str] = Counter()
    wrong: list[int] = []
    calls = [lambda case=case: judging.arguments(ns, case, None, None)[:8] for case in ns["CASES"]]
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args = calls[0]()
        try:
            fresh()(*calls[0]())
            program = godynamo.export(fresh(), args, dynamic_shapes=tuple(map(_spec, args)))
        except Exception:
            return count, wrong
        count["programs"] += 1
        for number, make in enumerate(calls):
            try:
                got = pytree.tree_leaves(program.module()(*make()))
            except Exception:
                count["refused"] += 1
                continue
            expected = pytree.tree_leaves(fresh()(*make()))
            if len(got) == len(expected) and all(map(_equal, got, expected)):
                count["equal"] += 1
            else:
                wrong.append(number)
    return count, wrong
