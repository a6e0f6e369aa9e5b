"""A stand-in for the calls of functions that ``torch.compiler.nested_compile_region`` has marked."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ._base import stands_for

__godynamo_polyfill__ = "module"


def call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function, as eager mode does. Equal layers are captured once in any case, with or without a mark."""
    return func(*args, **kwargs)


_regions = importlib.import_module(
    "torch._higher_order_ops.invoke_subgraph"
)  # the package has an operator of this name
if hasattr(_regions, "invoke_subgraph_placeholder"):  # not in every version of torch
    stands_for(_regions.invoke_subgraph_placeholder)(call)
