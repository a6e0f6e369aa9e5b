"""Stand-in for torch.Tensor.__torch_function__: runs operations on plain tensors, converts results to the subclass."""

from __future__ import annotations

from typing import Any

import torch

from .._translator.torch_function import converted
from ._base import stands_for

__godynamo_polyfill__ = "module"

_UNCONVERTED = tuple(torch.overrides.get_default_nowrap_functions())

_default: Any = torch.Tensor.__torch_function__


@stands_for(torch._C._disabled_torch_function_impl)
def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **({} if kwargs is None else kwargs))


@stands_for(_default.__func__)
def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    for kind in types:
        if not issubclass(cls, kind):
            return NotImplemented
    with torch._C.DisableTorchFunctionSubclass():
        result = func(*args, **({} if kwargs is None else kwargs))
        if cls is torch.Tensor or func in _UNCONVERTED:
            return result
        return converted(result, cls)
