"""A stand-in for the context in which a module that torch.compile has returned calls the original module."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch._dynamo import eval_frame

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


def in_optimized_module() -> Any:
    """Do nothing. The context sets a flag that only global hooks of torch.distributed read. The module's ``__call__``
    has looked for such hooks, and guards have noted that there are none."""
    if torch.nn.modules.module._has_any_global_hook():  # type: ignore[no-untyped-call]
        return DECLINE
    return contextlib.nullcontext()


if hasattr(eval_frame, "_set_in_optimized_module"):  # not in every version of torch
    stands_for(eval_frame._set_in_optimized_module)(in_optimized_module)
