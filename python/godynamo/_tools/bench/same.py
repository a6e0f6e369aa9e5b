"""Computes the largest difference between two results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import torch

#: Allowed difference by backend, as a share of a tensor's largest element. Other backends get OTHER_LIMIT. Backends
#: that run the graph as captured compute in the order of eager mode; 1e-6 is for models that compute differently under
#: torch.compiler.is_compiling().
LIMITS = {"eager": 1e-6, "callable": 1e-6, "aot_eager": 1e-4, "inductor": 1e-3}
OTHER_LIMIT = 1e-3


def limit_of(backend: str) -> float:
    """Return the allowed difference for a backend."""
    return LIMITS.get(backend, OTHER_LIMIT)


def tensor_difference(x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the largest difference as a share of y's largest element, or of 1 if that is larger.

    The result is 0 if x and y are bitwise equal, and inf if their shapes or dtypes differ.
    """
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        return math.inf
    x, y = x.detach(), y.detach()
    if torch.equal(x, y):
        return 0.0
    if not (x.is_floating_point() or x.is_complex()):
        return math.inf
    kind = torch.complex128 if x.is_complex() else torch.float64
    x, y = x.to(kind), y.to(kind)
    alike = (x == y) | (x.isnan() & y.isnan())  # also True for equal infinities
    off = float((x - y).abs().masked_fill(alike, 0).nan_to_num(nan=math.inf, posinf=math.inf).max())
    return off / max(1.0, float(y.abs().nan_to_num(0, 0, 0).max()))


def difference(got: Any, want: Any) -> float:
    """Return the largest tensor_difference in two results, which may be nested containers and objects.

    The result is infinite if anything else differs: a type, a length, a key, a plain value.

    >>> difference([torch.ones(2), 3], [torch.ones(2), 3])
    0.0
    """
    if isinstance(want, torch.Tensor):
        if not isinstance(got, torch.Tensor) or got.requires_grad != want.requires_grad:
            return math.inf
        return tensor_difference(got, want)
    if type(got) is not type(want):
        return math.inf
    if isinstance(want, Mapping):
        return _worst(list(got.values()), list(want.values())) if list(got) == list(want) else math.inf
    if isinstance(want, Sequence) and not isinstance(want, (str, bytes, bytearray, range)):
        return _worst(got, want)
    if isinstance(want, float) and math.isnan(want):
        return 0.0 if math.isnan(got) else math.inf
    if isinstance(want, (int, float, complex, str, bytes, Set)) or want is None:
        return 0.0 if got == want else math.inf
    if _plain_object(want):
        return difference(vars(got), vars(want))
    try:
        equal = got is want or bool(got == want)
    except (TypeError, ValueError, RuntimeError):  # for example, comparing numpy arrays returns an array
        equal = bool((got == want).all())
    return 0.0 if equal else math.inf


def _worst(got: Sequence[Any], want: Sequence[Any]) -> float:
    if len(got) != len(want):
        return math.inf
    return max((difference(g, w) for g, w in zip(got, want, strict=True)), default=0.0)


def _plain_object(value: Any) -> bool:
    """Return whether a value has attributes and no ``__eq__`` of its own, so that its attributes are compared."""
    return hasattr(value, "__dict__") and not _compares(type(value)) and not isinstance(value, type)


def _compares(cls: type) -> bool:
    return any("__eq__" in vars(base) for base in cls.__mro__[:-1])
