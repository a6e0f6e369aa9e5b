"""A stand-in for the method of GradScaler that branches on whether gradients are infinite."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler

from .._called.gradients import found_infinite
from ._base import stands_for

__godynamo_polyfill__ = "module"


@stands_for(GradScaler._maybe_opt_step)
def _maybe_opt_step(  # tracebacks may show this name, so it is torch's
    self: GradScaler, optimizer: torch.optim.Optimizer, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
) -> Any:
    """Step unless a gradient is infinite. The graph expects that none is."""
    retval = None
    if not found_infinite(tuple(optimizer_state["found_inf_per_device"].values())):
        retval = optimizer.step(*args, **kwargs)
    return retval
