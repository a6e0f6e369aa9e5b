"""Compiled graphs that change their inputs, and inputs that overlap in memory.

AOTAutograd computes the new value of a changed input, and writes it to the input at the end of the graph. If another
input overlaps the changed one, operations that read the other input must see the new value before. AOTAutograd treats
overlaps of the examples only. So graphs are compiled for inputs that do not overlap, and in a call whose inputs do, the
captured graph runs. An example is `x.add_(1); return y * 2`, called with two slices of one tensor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import utils
from .._core import core
from .._translator import vague
from .verified import copied

log = logging.getLogger("godynamo")


def overlap(inputs: Sequence[Any], changed: tuple[int, ...]) -> bool:
    """Return whether the memory of an input in ``changed`` overlaps that of another input.

    An input's memory reaches from its first element to its last one: interleaved columns of a matrix overlap.
    """
    if core.shares_memory(inputs, changed) is False:
        return False
    spans = [(*span, i in changed) for i, x in enumerate(inputs) if (span := _span(x)) is not None]
    spans.sort()
    end_of_all = end_of_changed = -1
    for begin, end, changes in spans:
        if begin < (end_of_all if changes else end_of_changed):
            return True
        end_of_all = max(end_of_all, end)
        if changes:
            end_of_changed = max(end_of_changed, end)
    return False


def _span(x: Any) -> tuple[int, int] | None:
    """Return the addresses at which a tensor begins and ends, or None if it has no memory."""
    if not isinstance(x, torch.Tensor):
        return None
    try:
        storage = x.untyped_storage()
        begin = storage.data_ptr() or storage._cdata  # tensors on the device "meta" are compared by storage
        if x.numel() == 0:
            return None
    except (NotImplementedError, RuntimeError):  # sparse tensors and wrappers
        return None
    begin += int(x.storage_offset()) * x.element_size()
    last = sum((size - 1) * stride for size, stride in zip(x.size(), x.stride(), strict=True))
    return begin, begin + (last + 1) * x.element_size()


def separate(inputs: Sequence[Any], changed: tuple[int, ...]) -> list[Any] | None:
    """Return example inputs that do not overlap, with the properties of the given ones; None if that is impossible."""
    separated = list(inputs)
    if overlap(inputs, changed):
        for i in changed:
            separated[i] = copied(inputs[i])
            if not _alike(inputs[i], separated[i]):
                return None
    return separated


def _alike(x: Any, copy: Any) -> bool:
    """Return whether a compiler sees the same in a copy as in the input: a copy of a slice may have other strides."""
    return not isinstance(x, torch.Tensor) or (
        type(x) is type(copy)
        and vague.is_dense(x)
        and (x.stride(), x.is_conj(), x.is_neg(), x.is_inference())
        == (copy.stride(), copy.is_conj(), copy.is_neg(), copy.is_inference())
    )


def checked(
    compiled: Callable[..., Any], captured: Callable[[], Callable[..., Any]], changed: tuple[int, ...], name: str
) -> Callable[..., Any]:
    """Return a callable that runs a compiled graph if no input in ``changed`` overlaps another one.

    captured: returns the captured graph, which runs for other inputs. Each such call is counted in
    ``utils.counters["stats"]["calls_with_overlapping_inputs"]``; the first one is logged with the backend's name.
    """
    instead: list[Callable[..., Any]] = []

    def run(*inputs: Any) -> Any:
        if not overlap(inputs, changed):
            return compiled(*inputs)
        if not instead:
            log.info("inputs overlap, and the graph changes one in place: it runs as captured, not with %r", name)
            instead.append(captured())
        utils.counters["stats"]["calls_with_overlapping_inputs"] += 1
        return instead[0](*inputs)

    return run
