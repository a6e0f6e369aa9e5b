"""Stand-ins for functions that flex_attention and create_block_mask call."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo._trace_wrapped_higher_order_op import ModIndex
from torch.fx.experimental import symbolic_shapes

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


@stands_for(symbolic_shapes.has_free_unbacked_symbols)
def has_free_unbacked_symbols(x: Any) -> Any:
    """Return False for a tensor: while translating, its sizes are numbers of this call."""
    return False if isinstance(x, torch.Tensor) else DECLINE
