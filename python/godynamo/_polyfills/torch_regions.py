"""A stand-in for the calls of functions that ``torch.compiler.nested_compile_region`` has marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._higher_order_ops.invoke_subgraph import invoke_subgraph_placeholder

from ._base import stands_for

__godynamo_polyfill__ = "module"


@stands_for(invoke_subgraph_placeholder)
def call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function, as eager mode does. Equal layers are captured once in any case, with or without a mark."""
    return func(*args, **kwargs)
