"""torch's thread-local modes that captured code switches itself: grad mode and autocast.

While a frame is translated, its switches are made for real, so that everything asked of torch meanwhile (FakeTensor too) is
answered as the program would see it; the state at the start is put back at the end.
"""

from __future__ import annotations

from typing import Any

import torch

#: Functions that switch: they become nodes of the graph.
SETTERS = (
    "_C._set_grad_enabled",
    "set_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_cache_enabled",
    "autocast_increment_nesting",
    "autocast_decrement_nesting",
    "clear_autocast_cache",
)

#: Context managers that do nothing else, and whether they switch grad mode and keep the mode before as ``prev``.
CONTEXTS: dict[type, bool] = {
    torch.no_grad: True,
    torch.enable_grad: True,
    torch.set_grad_enabled: True,
    torch.autocast: False,
    torch.cpu.amp.autocast_mode.autocast: False,
    torch.cuda.amp.autocast_mode.autocast: False,
}

_DEVICES = ("cpu", "cuda")

State = tuple[Any, ...]


def snapshot() -> State:
    """Read the state: grad mode, autocast's cache switch and nesting, (enabled, dtype) per device type."""
    torch.autocast_increment_nesting()
    return (
        torch.is_grad_enabled(),
        torch.is_autocast_cache_enabled(),
        torch.autocast_decrement_nesting(),
        *((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _DEVICES),
    )


def with_grad(state: State, on: bool) -> State:
    """Return the state with another grad mode."""
    return (on, *state[1:])


def restore(state: State) -> None:
    """Put a snapshot back; leaving the outermost autocast drops its cache, as autocast.__exit__ does."""
    if state == snapshot():
        return
    grad, cache, nesting, *devices = state
    torch._C._set_grad_enabled(grad)
    torch.set_autocast_cache_enabled(cache)
    now = torch.autocast_increment_nesting()
    while now > nesting:
        now = torch.autocast_decrement_nesting()
        if now == 0:
            torch.clear_autocast_cache()
    while now < nesting:
        now = torch.autocast_increment_nesting()
    for device, (enabled, dtype) in zip(_DEVICES, devices, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
