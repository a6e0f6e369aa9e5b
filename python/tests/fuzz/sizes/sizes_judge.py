"""Runs a program at several sizes under CPython and under godynamo, and returns their first difference.

Compared: value, exception, output and effects of each call, with every property of a tensor that torch_judge compares.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import torch

import godynamo
from harness.fuzz_compare import FILENAME, Mismatch, Observed, codes_of, compare, frames_in, text_of, whole_graph
from torch_judge import TorchPlain


def _tensor(shape: tuple[int, ...], factor: float) -> torch.Tensor:
    elements = 1
    for size in shape:
        elements *= size
    return (torch.arange(float(elements)) * factor).remainder(4.0).sub(2.0).reshape(shape)


def arguments(ns: dict[str, Any], case: dict[str, Any], o: Any, m: Any) -> tuple[Any, ...]:
    """Return the arguments of one call; the Thing and the module are the same in all calls."""
    x, y, z, v = (_tensor(case[name], factor) for name, factor in (("x", 0.37), ("y", 0.53), ("z", 0.29), ("v", 0.71)))
    if ns["OPTIONS"]["grad"]:
        x.requires_grad_()
    return x, y, z, v, case["n"], case["k"], case["f"], torch.tensor(case["lens"]), o, m


def observe(ns: dict[str, Any], fn: Callable[..., Any], case: dict[str, Any], o: Any, m: Any) -> dict[str, Any]:
    """Make one call; return its description."""
    return described(ns, fn, arguments(ns, case, o, m))


def described(ns: dict[str, Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> dict[str, Any]:
    """Describe one call: result or exception, output, arguments and log afterwards."""
    out, plain = io.StringIO(), TorchPlain()
    result: dict[str, Any] = {"exception": None}
    value = None
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = fn(*args)
        except Exception as error:
            result["exception"] = (plain.error(error, {}), frames_in(error, FILENAME))
    result["value"] = plain(value)
    result["output"] = text_of(out.getvalue())
    result["effects"] = [plain(args), plain(ns["LOG"])]
    del ns["LOG"][:], args[8].sizes[4:]
    return result


def namespace(codes: list[Any]) -> dict[str, Any]:
    """Return the namespace of a program."""
    ns: dict[str, Any] = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    return ns


def calls(ns: dict[str, Any], fn: Callable[..., Any]) -> Observed:
    """Make all calls of a program."""
    torch.manual_seed(0)
    o, m = ns["Thing"](3), ns["Net"]()
    with torch.set_grad_enabled(not ns["OPTIONS"].get("no_grad")):
        return [observe(ns, fn, case, o, m) for case in ns["CASES"]]


def run(codes: list[Any], wrap: Callable[[Any], Any]) -> Observed:
    """Run a program with a wrapper of its function."""
    ns = namespace(codes)
    return calls(ns, wrap(ns["fn"]))


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first difference between a program's two runs."""
    options = {"dynamic": True} if "'dynamic': True" in text else {}
    return compare(text, run, whole, **options)


def captures(text: str, whole: bool = False) -> Mismatch | None:
    """Return the number of translations that a program's sizes need.

    It is the ``call`` of a Mismatch, since that is what children can report.
    """
    ns = namespace(codes_of(text))
    backend: Any = whole_graph if whole else "eager"
    fn = godynamo.optimize(ns["fn"], backend=backend, dynamic=ns["OPTIONS"]["dynamic"])
    calls(ns, fn)
    distinct = len({repr(case) for case in ns["CASES"]})
    return Mismatch("captures", godynamo.cache_stats(fn)["translations"], distinct)
