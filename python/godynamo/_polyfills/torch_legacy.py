"""Stand-ins for torch's old constructors: torch.autograd.Variable, torch.FloatTensor and the like, torch.Tensor.

The stand-ins call current functions. They decline arguments that current functions do not accept (storages, other
tensors' memory, numbers of other types, devices).
"""

from __future__ import annotations

from typing import Any

import torch

try:
    from numpy import ndarray as _ARRAY
except ImportError:  # torch works without numpy
    _ARRAY = None  # type: ignore[assignment, misc]

from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"

_PLAIN = (torch.Tensor, torch.nn.Parameter)


@stands_for(torch.autograd.Variable)
def variable(data: Any = None, requires_grad: Any = False, *rest: Any, **other: Any) -> Any:
    if type(data) not in _PLAIN or rest or other or torch._C._len_torch_function_stack():
        return DECLINE
    detached = data.detach()
    if requires_grad:
        if not data.is_floating_point():
            return DECLINE
        detached.requires_grad_()
    return detached


def _made(dtype: Any, args: tuple[Any, ...], other: dict[str, Any]) -> Any:
    if other or torch._C._len_torch_function_stack():
        return DECLINE
    if len(args) == 1:
        of = type(args[0])
        if of is list or of is tuple:
            return torch.tensor(args[0], dtype=dtype, device="cpu")
        if of is range:
            return torch.tensor(list(args[0]), dtype=dtype, device="cpu")
        if of is _ARRAY and args[0].ndim > 0:  # an array without dimensions may be the size of a new tensor
            return torch.as_tensor(args[0], dtype=dtype, device="cpu")
        if of is torch.Size:
            return torch.empty(args[0], dtype=dtype, device="cpu")
    for size in args:
        if type(size) is not int:
            return DECLINE
    return torch.empty(args or (0,), dtype=dtype, device="cpu")


@stands_for(torch.Tensor)
def tensor(*args: Any, **other: Any) -> Any:
    if torch._C._get_default_device() != "cpu":
        return DECLINE
    if len(args) == 1 and type(args[0]) in _PLAIN and not other and not torch._C._len_torch_function_stack():
        return torch.ops.aten.alias(args[0]) if args[0].layout is torch.strided else DECLINE
    return _made(torch.get_default_dtype(), args, other)


def _of(dtype: Any) -> Any:
    def typed(*args: Any, **other: Any) -> Any:
        return _made(dtype, args, other)

    return typed


for _class, _dtype in {
    torch.FloatTensor: torch.float32,
    torch.DoubleTensor: torch.float64,
    torch.HalfTensor: torch.float16,
    torch.BFloat16Tensor: torch.bfloat16,
    torch.ByteTensor: torch.uint8,
    torch.CharTensor: torch.int8,
    torch.ShortTensor: torch.int16,
    torch.IntTensor: torch.int32,
    torch.LongTensor: torch.int64,
    torch.BoolTensor: torch.bool,
}.items():
    stands_for(_class)(_of(_dtype))
