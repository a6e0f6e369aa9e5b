"""torch.Tensor's own ``__torch_function__``: the operation on plain tensors, its results made tensors of the subclass."""

from __future__ import annotations

from typing import Any

import torch

from .._torch_function import as_subclass
from ._base import stands_for

__godynamo_polyfill__ = "module"

_default: Any = torch.Tensor.__torch_function__


def _convert(result: Any, cls: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        return type(result)([_convert(item, cls) for item in result])
    return result


@stands_for(_default.__func__)
def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    for kind in types:
        if not issubclass(cls, kind):
            return NotImplemented
    # Functions whose results stay as they are read attributes: those calls are left to CPython.
    with torch._C.DisableTorchFunctionSubclass():
        result = func(*args, **({} if kwargs is None else kwargs))
        return result if cls is torch.Tensor else _convert(result, cls)
