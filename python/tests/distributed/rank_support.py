"""What the programs of this folder share."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import traceback
import warnings

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor

import godynamo
from godynamo import utils

godynamo.config.cache_min_ms = 0  # a fast machine stores small frames of the hook, too


def leave():
    """End this rank when both have run all cases. Rank 0 has the store that the other one may still need."""
    dist.barrier()
    dist.destroy_process_group()


def shown(value):
    """Return a value as data that json compares exactly."""
    if isinstance(value, DTensor):
        return ["DTensor", repr(value.placements), shown(value.to_local())]
    if isinstance(value, torch.Tensor):
        bits = value.detach().contiguous().clone().flatten()
        return [type(value).__name__, str(value.dtype), list(value.shape), value.requires_grad, repr(bits.tolist())]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, dict):
        return [type(value).__name__, *((k, shown(v)) for k, v in value.items())]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, *(shown(getattr(value, f.name)) for f in dataclasses.fields(value))]
    return repr(value)


def report(record, explain):
    """Print the record of a case as one line of json, with the graphs and breaks of what ``explain`` returns.

    A case that raises has none. What was counted and translated for the case is dropped.
    """
    godynamo.reset()
    utils.counters.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            told = explain()
        except Exception:
            told = None
    if told is not None:
        record.update(graphs=told.graph_count, breaks=[str(b).partition(":")[0] for b in told.break_reasons])
    print(json.dumps(record), flush=True)


def translations():
    """Return how many translations were loaded and made since the counters were cleared."""
    loaded = utils.counters["stats"]["translations_loaded"]
    return {"loaded": loaded, "made": utils.counters["frames"]["total"] - loaded}


def copies(value):
    """Return the arguments of a call, with tensors of their own."""

    def own(t):
        return t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, torch.Tensor) else t

    return torch.utils._pytree.tree_map(own, value)


def outcome(call, arguments, file):
    """Return what a call returns or raises, prints, warns, and leaves in its arguments and their gradients.

    Of tracebacks and warnings it has the lines in ``file``.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = call(*arguments)
            if isinstance(result, torch.Tensor) and result.ndim == 0 and result.requires_grad:
                result.backward()
            shows = shown(result)
        except Exception as error:
            shows = raised(error, file)
    gradients = [shown(t.grad) for t in torch.utils._pytree.tree_leaves(arguments) if isinstance(t, torch.Tensor)]
    said = [(str(w.message)[:60], w.lineno if w.filename == file else 0) for w in warned]
    return [shows, out.getvalue(), shown(arguments), gradients, said]


def raised(error, file):
    """Return what an exception says, the lines of its traceback in ``file``, and the same for its context."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [(f.name, f.lineno) for f in frames if f.filename == file]
    context = raised(error.__context__, file) if error.__context__ is not None else None
    return [type(error).__name__, str(error).partition("Exception raised")[0], lines, context, error.__cause__ is None]


def compare(name, make, backend, file):
    """Print a record of a case: what differs from eager mode, and how much was captured."""
    target, calls = make()
    expected = [outcome(target, copies(arguments), file) for arguments in calls for _ in range(2)]
    utils.counters.clear()
    options = {} if backend == "inline" else {"backend": backend}
    optimized = godynamo.optimize(target, **options)
    got = [outcome(optimized, copies(arguments), file) for arguments in calls for _ in range(2)]
    entries = [e for e in godynamo.cache_entries(optimized) if e.info["graph"]]
    differs = [(e, g) for e, g in zip(expected, got, strict=True) if e != g]
    record = {"case": name, "differs": differs[:1], "first": shown(expected[0][0]), "entries": len(entries)}
    record.update(translations())
    report(record, lambda: godynamo.explain(target)(*copies(calls[0])))
