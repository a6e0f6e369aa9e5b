"""Computes isinstance and ``Tensor.type`` for plain tensors that the graph computes, with an example tensor."""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

import torch

#: classes of torch.nn and the attribute that their metaclass reads
_MARKS: tuple[tuple[type, str], ...] = ((torch.nn.Parameter, "_is_param"), (torch.nn.Buffer, "_is_buffer"))


def tensor_type_is(t: type, cls: Any) -> bool:
    """Return isinstance(x, cls) for a computed tensor x of exact type t, if decides_itself(cls) is False."""
    return any(isinstance(c, type) and issubclass(t, c) for c in classes_in(cls))


def classes_in(cls: Any) -> list[Any]:
    """Return the classes in the second argument of isinstance."""
    if isinstance(cls, tuple):
        return [c for one in cls for c in classes_in(one)]
    if typing.get_origin(cls) in (typing.Union, types.UnionType):
        return list(cls.__args__)
    return [cls]


def decides_itself(cls: Any) -> bool:
    """Return whether a metaclass's ``__instancecheck__`` decides isinstance(tensor, cls).

    The metaclass of torch.FloatTensor checks the dtype; the metaclass of Variable accepts all tensors.
    """
    plain = (type.__instancecheck__, abc.ABCMeta.__instancecheck__)
    return any(isinstance(c, type) and type(c).__instancecheck__ not in plain for c in classes_in(cls))


def tensor_like_is(looks: torch.Tensor | tuple[torch.dtype, torch.device, torch.layout] | None, cls: Any) -> bool:
    """Return isinstance(x, cls) for a tensor that the graph computes and that looks like a sample.

    A dtype, a device and a layout are enough if the tensor is not lazily negative, and None if no class in ``cls``
    checks the dtype.
    """
    with torch._C.DisableTorchFunction():
        if looks is None:
            return isinstance(torch.empty(0), cls)
        sample = looks if isinstance(looks, torch.Tensor) else None
        dtype, device, layout = looks if sample is None else (sample.dtype, sample.device, sample.layout)
        made = torch.empty((0, 0), dtype=dtype, device=device, layout=layout)
        if sample is not None and sample.is_conj():
            made = torch._conj(made)
        if sample is not None and sample.is_neg():
            made = torch._neg_view(made)
        return isinstance(made, cls)


def tensor_marks(cls: Any) -> tuple[str, ...]:
    """Return the names of attributes that make a tensor an instance of one of the classes."""
    return tuple(name for kind, name in _MARKS if any(c is kind for c in classes_in(cls)))


def tensor_type_name(dtype: torch.dtype, device: torch.device, layout: torch.layout) -> str:
    """Return x.type() for a plain tensor that the graph computes."""
    with torch._C.DisableTorchFunction():
        return str(torch.empty((0, 0), dtype=dtype, device=device, layout=layout).type())
