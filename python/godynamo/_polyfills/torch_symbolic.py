"""Stand-ins for torch's questions about symbolic sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental import symbolic_shapes

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


@stands_for(symbolic_shapes.has_free_unbacked_symbols)
def has_free_unbacked_symbols(x: Any) -> Any:
    """Return False for a tensor: while translating, its sizes are numbers of this call."""
    return False if isinstance(x, torch.Tensor) else DECLINE
