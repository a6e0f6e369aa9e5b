"""Stand-ins for torch's functions of sizes. The results may be symbols, so they cannot come from the C code."""

from __future__ import annotations

from typing import Any

import torch

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


@stands_for(torch._C._infer_size)
def infer_size(*sizes: Any) -> Any:
    """Return the size to which two sizes are broadcast."""
    if len(sizes) != 2 or type(sizes[0]) is not torch.Size or type(sizes[1]) is not torch.Size:
        return DECLINE
    a, b = sizes
    dims = max(len(a), len(b))
    a, b = (1,) * (dims - len(a)) + tuple(a), (1,) * (dims - len(b)) + tuple(b)
    found: tuple[int, ...] = ()
    for i in range(dims - 1, -1, -1):
        x, y = a[i], b[i]
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}"
            )
        found = (y if x == 1 else x, *found)
    return torch.Size(found)
