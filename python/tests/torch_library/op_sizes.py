"""The sizes of torch's operators: an entry made at one sample's sizes, called with those of other samples.

The captured function reads the sizes of the operator's results, so the rules of fxgraph/shapes decide which sizes the
entry accepts and what it returns for them. Each call that the entry serves at other sizes must have eager's result.
Besides the operator's own samples, calls are made with the sample's tensors in other sizes: a size that occurs twice
changes in both places. With dynamic=True ints among the arguments change as well.
"""

from __future__ import annotations

import itertools
import random
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree

import godynamo
from godynamo import _C
from library_judge import Case, caller_of, difference, outcome, tensors_of
from op_cases import MOST_SAMPLES, UNINITIALIZED, dtypes_of, spread, units

__all__ = ["row", "units"]

OTHERS = 16  #: further samples at which an entry is called
RESIZED = 16  #: calls with the sample's tensors in other sizes
POOL = (0, 1, 2, 3, 4, 5, 6, 7, 9, 12)
LARGEST = 100_000  #: elements of a resized tensor
#: kernels that check no sizes: they crash at sizes that do not fit, in eager mode as well
UNCHECKED = (
    *("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "torch.ops.aten."),
    *("nn.functional.embedding_bag", "_segment_reduce"),
    "nn.functional.ctc_loss",  # reads beyond the classes' dimension if a target is larger
)


def reading_sizes(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the operator and reads the sizes of its results."""

    def call(*args: Any, **kwargs: Any) -> Any:
        y = op(*args, **kwargs)
        return y, sizes(y)

    return caller_of(call)


def sizes(y: Any) -> Any:
    """Return the sizes of all tensors in a result."""
    if isinstance(y, torch.Tensor):
        return y.shape, y.numel(), y.dtype
    return [sizes(item) for item in y] if isinstance(y, (tuple, list)) else None


def resized(rng: random.Random, args: Any, ints: bool) -> Any:
    """Return the arguments with other sizes, and with other ints if ``ints`` is set."""
    leaves, spec = _pytree.tree_flatten(args)
    numbers = sorted({n for t in leaves if isinstance(t, torch.Tensor) for n in t.shape})
    if not numbers:
        return args
    changed = {n: rng.choice((*POOL, n + 1)) for n in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 3))))}
    # The same for all places of a size, except in every fourth call.
    one = rng.random() < 0.25

    def new(n: int) -> int:
        return changed.get(n, n) if not one or rng.random() < 0.5 else n

    def leaf(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return with_shape(x, tuple(map(new, x.shape)))
        return changed.get(x, x) if ints and type(x) is int else x

    return _pytree.tree_unflatten([leaf(x) for x in leaves], spec)


def with_shape(t: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor of another shape with the values of ``t``, repeated."""
    count = torch.Size(shape).numel()
    if shape == tuple(t.shape) or t.layout is not torch.strided or count > LARGEST:
        return t
    flat = t.detach().reshape(-1)
    values = flat[torch.arange(count) % flat.numel()] if flat.numel() else flat.new_zeros(count)
    return values.reshape(shape).requires_grad_(t.requires_grad)


def shapes_of(args: Any) -> list[tuple[int, ...]]:
    return [tuple(t.shape) for t in tensors_of(args)]


def constant(entry: Any) -> bool:
    """Return whether an entry compares all sizes of its tensors with constants."""
    checks = [c for c in entry.tensor_checks() if c["ndim"]]
    return bool(checks) and all(c["static_sizes"] & (1 << c["ndim"]) - 1 == (1 << c["ndim"]) - 1 for c in checks)


def calls(op: Any, samples: list[Any], start: int, ints: bool) -> Iterator[Case]:
    """Yield the calls that an entry of one sample gets: those of other samples, then of resized tensors."""
    rng = random.Random(start)
    others = spread(samples, OTHERS)
    for sample in others:
        yield Case("sample", lambda: None, (sample.input, *sample.args), sample.kwargs)
    first = samples[start]
    for _ in range(0 if op.name.startswith(UNCHECKED) else RESIZED):
        args, kwargs = resized(rng, ((first.input, *first.args), first.kwargs), ints)
        yield Case("resized", lambda: None, args, kwargs)


def row(op: Any, most: int) -> dict[str, Any]:
    """Return the row of an operator: calls, those that an entry served at other sizes, and differences."""
    started = time.monotonic()
    out: dict[str, Any] = {"cases": 0, "right": 0, "entries": 0, "general": 0, "constant": 0, "split": 0, "wrong": []}
    out["error"] = ""
    valued = not op.name.removeprefix("_refs.").startswith(UNINITIALIZED)
    try:
        for dtype in dtypes_of(op):
            torch.manual_seed(0)
            samples = list(itertools.islice(op.sample_inputs("cpu", dtype), MOST_SAMPLES))
            for start in spread(list(range(len(samples))), most):
                for dynamic in (None, True):
                    _entry(out, op, samples, start, dynamic, valued)
    except Exception as error:  # raised by the table itself
        out["error"] = f"{type(error).__name__}: {error}"
    return {**out, "seconds": round(time.monotonic() - started, 2)}


def _entry(out: dict[str, Any], op: Any, samples: list[Any], start: int, dynamic: bool | None, valued: bool) -> None:
    first = samples[start]
    case = Case("first", lambda: None, (first.input, *first.args), first.kwargs)
    if not tensors_of([case.args, case.kwargs]):
        return
    godynamo.reset()
    plain = reading_sizes(op.op)
    compiled = godynamo.optimize(reading_sizes(op.op), dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = outcome(plain, None, case, valued)
        if valued and outcome(plain, None, case, valued) != want:
            valued, want = False, outcome(plain, None, case, False)
        _compare(out, want, outcome(compiled, None, case, valued), f"sample {start}, dynamic={dynamic}")
        entries = godynamo.cache_entries(compiled)
        if len(entries) != 1 or want["how"] != "returned":
            out["split"] += 1
            return
        out["entries"] += 1
        served = 0
        with godynamo.set_stance("eager_on_recompile"):
            for case in calls(op, samples, start, bool(dynamic)):
                hits = entries[0].hits
                got = outcome(compiled, None, case, valued)
                if entries[0].hits == hits:
                    continue
                served += shapes_of((case.args, case.kwargs)) != shapes_of(((first.input, *first.args), first.kwargs))
                name = f"sample {start}, dynamic={dynamic}, at {shapes_of((case.args, case.kwargs))}"
                want = outcome(plain, None, case, valued)
                if difference(want, got) and reads_unset_memory(plain, case, valued, want):
                    want, got = (outcome(f, None, case, False) for f in (plain, compiled))
                _compare(out, want, got, name)
    out["general"] += served > 0
    out["constant"] += not served and constant(entries[0])
    if _C.counters()["internal_errors"]:
        out["wrong"].append(f"sample {start}: internal error")


def reads_unset_memory(plain: Any, case: Case, valued: bool, want: dict[str, Any]) -> bool:
    """Return whether eager's outcome depends on what freed memory holds: margin losses of an empty batch are unset."""
    for fill in (0.0, 1.5, -3.25):
        blocks = [torch.full((n,), fill, dtype=torch.float64) for n in range(1, 9)]
        del blocks
        if outcome(plain, None, case, valued) != want:
            return True
    return False


def _compare(out: dict[str, Any], want: dict[str, Any], got: dict[str, Any], name: str) -> None:
    found = difference(want, got)
    out["cases"] += 1
    out["right"] += not found
    out["wrong"] += [f"{name}: {text}" for text in found]


def summary(rows: list[dict[str, Any]]) -> str:
    """Return totals, differences, and the operators whose sizes became constants."""
    out = [f"WRONG {r['unit']}: {text}" for r in rows for text in r["wrong"][:3]]
    out += [f"NO SAMPLES {r['unit']}: {r['error']}" for r in rows if r["error"]]
    made = [r for r in rows if r.get("entries")]
    general = [r for r in made if r["general"]]
    constants = [r["unit"] for r in made if r["constant"] == r["entries"]]
    neither = [r["unit"] for r in made if not r["general"] and r["constant"] < r["entries"]]
    split = [r["unit"] for r in rows if not r.get("entries") and not r["error"] and not r["wrong"]]
    out.append(f"constant sizes, {len(constants)} operators: {' '.join(constants)}")
    out.append(f"no call at other sizes was served, {len(neither)} operators: {' '.join(neither)}")
    out.append(f"no single entry, {len(split)} operators: {' '.join(split)}")
    out.append(
        f"sizes: {sum(not r['wrong'] for r in rows)} of {len(rows)} operators right; {len(general)} of {len(made)} "
        f"have an entry that served other sizes, {len(constants)} have constant sizes in each entry"
    )
    entries, served = sum(r["entries"] for r in made), sum(r["general"] for r in made)
    calls = sum(r["cases"] for r in rows)
    out.append(
        f"entries: {served} of {entries} served other sizes; {sum(r['right'] for r in rows)} of {calls} calls right"
    )
    return "\n".join(out)
