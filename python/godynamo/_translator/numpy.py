"""Computes with numpy's scalars while translating, where they are constants. Converts numpy's arrays to tensors.

An operation that would warn (overflow, division by zero, an invalid value) is not computed here but at run time, by the
program. Complex scalars are not constants, since their conversions warn.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from . import warned

try:
    import numpy as np
except ImportError:  # torch works without numpy
    np = None  # type: ignore[assignment]


def _scalars() -> tuple[type, ...]:
    found: list[type] = []
    todo: list[type] = [np.bool_, np.integer, np.floating] if np is not None else []
    while todo:
        cls = todo.pop()
        subclasses: list[type] = type.__subclasses__(cls)
        todo += [c for c in subclasses if c.__module__ == "numpy"]
        if not [c for c in subclasses if c.__module__ == "numpy"] and not issubclass(cls, np.timedelta64):
            found.append(cls)
    return tuple(found)


#: types of scalars that are constants
SCALARS = _scalars()

_REDUCTIONS = (
    "all allclose any argmax argmin around array_equal average clip count_nonzero cross dot inner linalg.det "
    "linalg.norm "
    "max mean median min nanmax nanmean nanmin nansum ndim percentile prod ptp quantile round searchsorted shape size "
    "std "
    "sum trace var vdot"
).split()


def _functions() -> dict[Any, None]:
    if np is None:
        return {}
    found = [f for f in vars(np).values() if isinstance(f, np.ufunc)]
    named = [operator.attrgetter(name)(np) for name in _REDUCTIONS if hasattr(np, name.partition(".")[0])]
    return dict.fromkeys([*found, *(f for f in named if type(f).__module__ == "numpy")])


#: Functions that only read their arguments, and return a number for numbers and lists of numbers. Functions that return
#: an array are not among them, since each call must return a new array.
FUNCTIONS = _functions()

#: the class of arrays, NoneType without numpy
ARRAY: type = np.ndarray if np is not None else type(None)


def shared(array: Any) -> tuple[torch.Tensor, Callable[[Any], bool]] | None:
    """Return (torch.from_numpy(array), a guard predicate on the layout of array); None if this would raise or warn."""
    if not array.flags.writeable:
        return None
    try:
        tensor = torch.from_numpy(array)
    except (TypeError, ValueError):
        return None
    told = array.dtype, array.shape, array.strides
    return tensor, lambda other: (other.dtype, other.shape, other.strides) == told and other.flags.writeable


def index_method(array: Any) -> str | None:
    """Return the name of the Tensor method that converts an array, shared as a tensor, to the index that torch uses.

    torch makes this conversion in a subscript. The method copies the tensor. Returns None for arrays that torch treats
    as a sequence or reads in another way.
    """
    if array.ndim != 1 or not array.dtype.isnative or array.dtype.kind not in "ib":
        return None
    return "clone" if array.dtype.kind == "b" or array.dtype.itemsize == 8 else "long"


_NAMES = "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor".split()
_BINARY: list[Callable[[Any, Any], Any]] = [getattr(operator, name) for name in _NAMES]
_BINARY += [getattr(operator, "i" + name.rstrip("_")) for name in _NAMES]
_UNARY = (operator.pos, operator.neg, operator.invert)
_COMPARE = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
_OPERATORS: dict[str, Any] = {"binary": _BINARY, "unary": _UNARY, "compare": _COMPARE}


def computed(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """Return (result,) of a call with scalars among the arguments; None if the call warns. Its exceptions propagate."""
    if np is None:
        return warned.computed(fn, args, kwargs)
    with np.errstate(all="raise"):
        try:
            return warned.computed(fn, args, kwargs)
        except FloatingPointError:
            return None


def operation(kind: str, op: int, args: tuple[Any, ...]) -> tuple[Any] | None:
    """Do the same as computed() for an operator, given by its kind and its number in _OPERATORS."""
    return computed(_OPERATORS[kind][op], args, {})


def told(value: Any) -> tuple[type, bytes]:
    """Return a key by which scalars are compared: 0.0 and -0.0 differ, and nan equals itself."""
    return type(value), value.tobytes()
