"""What the programs of this folder share."""

from __future__ import annotations

import dataclasses
import json
import warnings

import torch
from torch.distributed.tensor import DTensor

import godynamo
from godynamo import utils


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
