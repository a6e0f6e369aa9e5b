"""A stand-in for the subscripts of tensors in the functions given to flex_attention."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import ModIndex

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


def read_items(cls: Any, x: Any, indices: Any) -> Any:
    """Read ``x[q_idx]`` without the autograd.Function, which only replaces the gradient."""
    if not indices or x.requires_grad:
        return DECLINE
    return torch.ops.aten.index(x, indices)


_apply = vars(ModIndex).get("apply")
if isinstance(_apply, classmethod):  # not in every version of torch
    stands_for(_apply.__func__)(read_items)
