"""Stand-ins for functions of torch.compile that captured code calls."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch._dynamo import decorators, eval_frame

from ._base import DECLINE, computed, stands_for

__godynamo_polyfill__ = "module"


def in_optimized_module() -> Any:
    """Do nothing. The context sets a flag that only global hooks of torch.distributed read. The module's ``__call__``
    has looked for such hooks, and guards have noted that there are none."""
    if torch.nn.modules.module._has_any_global_hook():  # type: ignore[no-untyped-call]
        return DECLINE
    return contextlib.nullcontext()


if hasattr(eval_frame, "_set_in_optimized_module"):  # not in every version of torch
    stands_for(eval_frame._set_in_optimized_module)(in_optimized_module)


@computed
def _known(size: int) -> int:
    return size


@stands_for(decorators.mark_static)
def mark_static(t: Any, index: Any = None) -> Any:
    """Make sizes of a tensor constants. Like torch.compile, captured code does not mark the tensor itself."""
    if not torch.compiler.is_compiling() or not isinstance(t, torch.Tensor) or type(index) is not int:
        return DECLINE
    _known(t.size(index))
    return None
