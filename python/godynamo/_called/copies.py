"""Saves the values of small tensors, and the memory of tensors to whose ``data`` a graph stores, before operations
change them. Restores both if the user's code runs again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

#: maximum number of elements of a tensor that is saved; a larger tensor breaks the graph instead
_CHEAP = 1 << 14

#: for each group of tensors, the function of torch that joins them and their numbers
Groups = tuple[tuple[str, tuple[int, ...]], ...]
_Read = tuple[tuple[torch.Tensor, ...], tuple[int, ...], list[torch.Tensor]]


def _set_versions(tensors: tuple[torch.Tensor, ...], versions: tuple[int, ...]) -> None:
    torch._C._autograd._unsafe_set_version_counter(tensors, versions)


def _set_each_version(tensors: tuple[torch.Tensor, ...], versions: tuple[int, ...]) -> None:
    one: Any = torch._C._autograd._unsafe_set_version_counter
    for tensor, version in zip(tensors, versions, strict=True):
        one(tensor, version)


def _setter() -> Callable[[tuple[torch.Tensor, ...], tuple[int, ...]], None]:
    """Return the function that sets version counters. torch 2.6 sets one at a time, later versions take tuples."""
    try:
        _set_versions((), ())
    except TypeError:
        return _set_each_version
    return _set_versions


_put_versions = _setter()


def read_data(*tensors: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return tensors with aliases of their memory, for put_data_back()."""
    return [(t, t.data) for t in tensors]


def put_data_back(read: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Restore the memory of the tensors, with its sizes and strides. A store to ``data`` changes no version."""
    for tensor, data in read:
        tensor.data = data


def cheap_to_copy(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is small, and in-place operations change only its values.

    This is so for batch norm's statistics.
    """
    return (
        type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and not tensor.is_inference()
        and tensor.is_contiguous()
        and tensor.numel() <= _CHEAP
    )


class Copies:
    """Saves and restores the values of tensors that look like the examples.

    All tensors with the same dtype, device and number of dimensions (0 or 1) are joined by one operation, which costs
    little more than copying one tensor.
    """

    def __init__(self, *examples: torch.Tensor) -> None:
        kinds: dict[object, list[int]] = {}
        for i, t in enumerate(examples):
            kinds.setdefault((t.dtype, t.device, t.dim()) if t.dim() < 2 else i, []).append(i)
        names = []
        for group in kinds.values():
            name = "clone" if len(group) == 1 else "stack" if examples[group[0]].dim() == 0 else "cat"
            names.append((name, tuple(group)))
        self._join(tuple(names))

    @classmethod
    def joining(cls, groups: Groups) -> Copies:
        """Return a Copies with these groups."""
        made = cls.__new__(cls)
        made._join(groups)
        return made

    def _join(self, groups: Groups) -> None:
        self.groups = groups  # describes the object for other processes
        self._joins: list[tuple[Any, Callable[[Sequence[Any]], Any]]] = [
            (getattr(torch, name), operator.itemgetter(*group)) for name, group in groups
        ]

    def read(self, *tensors: torch.Tensor) -> _Read:
        """Save the tensors' values and versions; return them for put_back()."""
        return tensors, tuple([t._version for t in tensors]), [join(pick(tensors)) for join, pick in self._joins]

    def put_back(self, read: _Read) -> None:
        """Restore the tensors and their version counters, so that autograd sees no change."""
        tensors, versions, joined = read
        for (join, pick), values in zip(self._joins, joined, strict=True):
            if join is torch.clone:
                pick(tensors).data.copy_(values)
                continue
            group = pick(tensors)
            parts = values.unbind() if join is torch.stack else torch.split(values, [t.numel() for t in group])
            for tensor, part in zip(group, parts, strict=True):
                tensor.data.copy_(part)
        _put_versions(tensors, versions)
