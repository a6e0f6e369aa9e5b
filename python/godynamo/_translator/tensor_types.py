"""What a plain tensor that the graph computes is to isinstance and to its own method ``type``: asked of torch by an
example."""

from __future__ import annotations

import abc
import types
import typing
from typing import Any

import torch


def tensor_type_is(t: type, cls: Any) -> bool:
    """isinstance(x, cls) for a tensor x of exact type t that the graph computes, where no class of cls decides for
    itself."""
    return any(isinstance(c, type) and issubclass(t, c) for c in classes_in(cls))


def classes_in(cls: Any) -> list[Any]:
    """The classes in what isinstance is asked about."""
    if isinstance(cls, tuple):
        return [c for one in cls for c in classes_in(one)]
    if typing.get_origin(cls) in (typing.Union, types.UnionType):
        return list(cls.__args__)
    return [cls]


def decides_itself(cls: Any) -> bool:
    """Whether isinstance of a tensor and cls asks a metaclass: torch.FloatTensor's looks at the dtype, Variable's takes
    all."""
    plain = (type.__instancecheck__, abc.ABCMeta.__instancecheck__)
    return any(isinstance(c, type) and type(c).__instancecheck__ not in plain for c in classes_in(cls))


def tensor_like_is(dtype: torch.dtype, device: torch.device, cls: Any) -> bool:
    """isinstance(x, cls) for a plain tensor that the graph computes."""
    with torch._C.DisableTorchFunction():
        return isinstance(torch.empty(0, dtype=dtype, device=device), cls)


def tensor_type_name(dtype: torch.dtype, device: torch.device, layout: torch.layout) -> str:
    """x.type() of a plain tensor that the graph computes."""
    with torch._C.DisableTorchFunction():
        return str(torch.empty((0, 0), dtype=dtype, device=device, layout=layout).type())
