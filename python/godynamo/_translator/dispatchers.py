"""Decides which classes of tensors may dispatch operators in Python inside a graph, and what their tensors look like.

An operation on a tensor of such a class runs in the graph as in eager mode: torch calls the class's
``__torch_dispatch__``, whose code is not translated. What the translator knows about other objects must hold after the
call, so that code must not change objects that it has not made (``changes``). If in doubt, the class is refused and the
graph breaks.
"""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import changes, foreign
from .torch_function import _PLAIN_METACLASSES

#: class -> (its handlers, whether it is captured)
_verdicts: weakref.WeakKeyDictionary[type, tuple[Any, str]] = weakref.WeakKeyDictionary()


def refusal(cls: Any) -> str:
    """Return why no operation on tensors of this class can be in a graph, or "" if they can.

    The class dispatches operators in Python (``is_dispatched``).
    """
    handlers = (cls.__torch_dispatch__.__func__, cls.__torch_function__)
    known = _verdicts.get(cls)
    if known is None or known[0] != handlers:
        known = _verdicts[cls] = handlers, changes.may_change([cls])
    return known[1]


def is_dispatched(cls: type) -> bool:
    """Return whether this is a user's class of tensors that dispatches operators in Python, and is else as others."""
    return (
        issubclass(cls, torch.Tensor)
        and cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        and isinstance(cls.__torch_dispatch__, types.MethodType)
        and type(cls) in _PLAIN_METACLASSES
        and not changes.is_torchs(cls.__module__)
        and not foreign.is_foreign(cls)
        and cls.__getattribute__ is torch.Tensor.__getattribute__
        and not hasattr(cls, "__getattr__")
        and not _computes_sizes(cls)
    )


def _computes_sizes(cls: type) -> bool:
    """Return whether the class's code may have torch call it for sizes, strides, devices or layouts."""
    for function in (f for c in cls.__mro__ if not changes.is_torchs(c.__module__) for f in vars(c).values()):
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None:
            continue
        words = {*code.co_names, *(w for c in code.co_consts for w in (c if isinstance(c, tuple) else (c,)))}
        if words & {"dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout"}:
            return True
    return False


@functools.cache
def _mode() -> FakeTensorMode:
    return FakeTensorMode()


def plain_example(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a fake tensor that is plain and looks like the tensor from outside. No code of its class runs.

    Returns None if the tensor requires gradients or has symbolic sizes.
    """
    with torch._C.DisableTorchFunctionSubclass():
        if tensor.requires_grad or tensor.layout is not torch.strided or tensor._has_symbolic_sizes_strides:
            return None
        with _mode():
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
