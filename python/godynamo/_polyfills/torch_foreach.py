"""A stand-in for the function that groups tensors for torch's foreach operations."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _foreach_utils

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


@stands_for(_foreach_utils._group_tensors_by_device_and_dtype.__wrapped__)  # type: ignore[attr-defined]
def group_tensors(tensorlistlist: Any, with_indices: bool = False) -> Any:
    """Make one group of all tensors. The order of several groups follows from a hash map, so they are left to torch."""
    if type(tensorlistlist) is not list or not tensorlistlist or not tensorlistlist[0]:
        return DECLINE
    first = tensorlistlist[0]
    if not all([isinstance(t, torch.Tensor) for t in first]):
        return DECLINE
    count, device, dtype = len(first), first[0].device, first[0].dtype
    for tensors in tensorlistlist:
        if type(tensors) is not list or len(tensors) not in (0, count):
            return DECLINE
        for t in tensors:
            if t is not None and not (isinstance(t, torch.Tensor) and t.device == device and t.dtype == dtype):
                return DECLINE
    lists = [list(tensors) for tensors in tensorlistlist]
    return {(device, dtype): (lists, list(range(count)) if with_indices else [])}
