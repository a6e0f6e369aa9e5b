"""Marks on the dimensions of tensors. The marks are torch's own attributes, so torch.compile reads them too.

The translator reads them where it reads a tensor's sizes: bytecode/translate/graph_marks.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Dims = int | list[int] | tuple[int, ...]


def _dims(t: Any, dim: Dims | None) -> list[int]:
    """Return the dimensions, counted from 0. Raises IndexError for a missing dimension, TypeError for other types."""
    import torch

    if not isinstance(t, torch.Tensor):
        raise TypeError(f"only a tensor's dimensions can be marked, not those of {t!r}")
    dims = range(t.ndim) if dim is None else dim if isinstance(dim, (list, tuple)) else (dim,)
    for d in dims:
        if type(d) is not int:
            raise TypeError(f"a dimension is an int, not {d!r}")
        if not -t.ndim <= d < t.ndim:
            raise IndexError(
                f"dimension {d} is out of range for a tensor of {t.ndim} dimension{'' if t.ndim == 1 else 's'}"
            )
    return [d % t.ndim for d in dims]


@dataclass(frozen=True, slots=True)
class _DimRange:
    """A range of a size, in the form in which torch stores it."""

    dim: int
    min: int | None
    max: int | None


def _mark(t: Any, dims: Iterable[int], attribute: str) -> None:
    """Add dimensions to one of torch's sets. Guards of torch.compile may hold the old set, so it is replaced."""
    setattr(t, attribute, {*getattr(t, attribute, ()), *dims})
    t._has_dynamo_dim_marking = True


def _set_range(t: Any, dims: Sequence[int], low: int | None, high: int | None) -> None:
    """Check a range and store it; without a range, drop an earlier one.

    Raises ValueError if it is empty or the size is outside of it.
    """
    if low is not None and high is not None and low > high:
        raise ValueError(f"min={low} is over max={high}")
    first, last = 0 if low is None else low, _MOST if high is None else high
    for d in dims:
        if not first <= t.shape[d] <= last:
            raise ValueError(f"dimension {d} has the size {t.shape[d]}, which is not between {first} and {last}")
    ranges = {r for r in getattr(t, "_dynamo_dynamic_range", ()) if r.dim not in dims}
    if low is not None or high is not None:
        ranges.update(_DimRange(d, low, high) for d in dims)
    if ranges:
        t._dynamo_dynamic_range = ranges
    elif hasattr(t, "_dynamo_dynamic_range"):
        del t._dynamo_dynamic_range


def _for_torch(t: Any, dims: Iterable[int], hint: int | None, specialize_on: Sequence[Any] | None) -> None:
    """Store the marks that only torch's compilers read."""
    for name in ("_dynamo_hint_overrides", "_specialize_on"):
        if not hasattr(t, name):
            setattr(t, name, {})
    for d in dims:
        if hint:
            t._dynamo_hint_overrides[d] = hint
        t._specialize_on[d] = list(specialize_on or ())


_MOST = 2**63 - 1

#: the attributes in which torch and godynamo keep marks
_MARKS = (
    "_dynamo_dynamic_indices",
    "_dynamo_weak_dynamic_indices",
    "_dynamo_unbacked_indices",
    "_dynamo_static_indices",
    "_dynamo_dynamic_range",
    "_dynamo_propagated_dynamic_indices",
    "_has_dynamo_dim_marking",
    "_dynamo_strict_unbacked_indices",
    "_dynamo_unbacked_bounds",
    "_dynamo_shape_ids",
    "_dynamo_hint_overrides",
    "_specialize_on",
)


@contextlib.contextmanager
def unmarked(arguments: Any) -> Iterator[None]:
    """Remove the marks of all tensors of a tree for a ``with`` block: torch.export sets its own, and may leave them."""
    import torch
    from torch.utils import _pytree as pytree

    tensors = [t for t in pytree.tree_leaves(arguments) if isinstance(t, torch.Tensor)]
    saved = [{name: vars(t).pop(name) for name in _MARKS if name in vars(t)} for t in tensors]
    try:
        yield
    finally:
        for t, marks in zip(tensors, saved, strict=True):
            for name in _MARKS:
                vars(t).pop(name, None)
            vars(t).update(marks)


def violated(place: str, value: int, file: str, line: int) -> None:
    """Raise torch's ConstraintViolationError for a dimension of mark_dynamic that the program makes a constant.

    place: the size, such as "x.size()[0]"; file, line: the user's line that needs its value, or "" and 0.
    """
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    where = f" at line {line} of {file}" if line else " somewhere"
    raise ConstraintViolationError(
        f"{place} is marked with mark_dynamic, but the program needs its value, {value},{where}. "
        "Change that line, or mark the dimension with maybe_mark_dynamic."
    )


def too_small(place: str, value: int) -> None:
    """Raise torch's ConstraintViolationError: a dimension of mark_dynamic has size 0 or 1, with a compiler."""
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    raise ConstraintViolationError(
        f"{place} is marked with mark_dynamic and is {value}: to a compiler, 0 and 1 are constants. "
        "Call with a greater size first, or mark the dimension with maybe_mark_dynamic."
    )


def unequal(name: str, first: int, second: int) -> None:
    """Raise torch's ConstraintViolationError for sizes that the user says are equal and that differ."""
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    raise ConstraintViolationError(f"sizes of {name.partition('#')[0]!r} must be equal, but are {first} and {second}")


def mark_dynamic(
    t: Any,
    index: Dims,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: Sequence[Any] | None = None,
) -> None:
    """Make a dimension of this tensor a symbol from its first translation on; torch.compile reads the same mark.

    min, max: the translation serves sizes in this range only; they replace an earlier range. hint_override and
    specialize_on are for torch's compilers. A program that needs the size's value raises torch's
    ConstraintViolationError when it is called, unless config.allow_ignore_mark_dynamic is set. Raises TypeError if
    ``t`` is not a tensor, IndexError for a missing dimension, and ValueError if min is greater than max, or if the size
    is outside the range.
    """
    dims = _dims(t, index)
    _set_range(t, dims, min, max)
    weak = getattr(t, "_dynamo_weak_dynamic_indices", None)
    if weak:
        t._dynamo_weak_dynamic_indices = set(weak) - set(dims)
    _mark(t, dims, "_dynamo_dynamic_indices")
    _for_torch(t, dims, hint_override, specialize_on)


def maybe_mark_dynamic(t: Any, index: Dims, *, min: int | None = None, max: int | None = None) -> None:
    """Do the same as mark_dynamic, but allow the program to make the size a constant.

    A dimension that mark_dynamic has marked stays as it is.
    """
    dims = [d for d in _dims(t, index) if d not in getattr(t, "_dynamo_dynamic_indices", ())]
    _set_range(t, dims, min, max)
    _mark(t, dims, "_dynamo_weak_dynamic_indices")


def mark_unbacked(
    t: Any,
    index: Dims,
    hint_override: int | None = None,
    strict: bool = False,
    specialize_on: Sequence[Any] | None = None,
    shape_id: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Make a dimension a symbol whose value is unknown while translating: a branch on it breaks the graph.

    min, max: the translation serves sizes in this range only. shape_id: all sizes of a call with the same shape_id are
    equal; a call in which they differ raises torch's ConstraintViolationError. strict: a program that needs the size's
    value raises. hint_override and specialize_on are for torch's compilers. Raises what mark_dynamic raises.
    """
    dims = _dims(t, index)
    _set_range(t, dims, min, max)
    if min is not None or max is not None:
        t._dynamo_unbacked_bounds = {**getattr(t, "_dynamo_unbacked_bounds", {}), **dict.fromkeys(dims, (min, max))}
    if shape_id is not None:
        t._dynamo_shape_ids = {**getattr(t, "_dynamo_shape_ids", {}), **dict.fromkeys(dims, shape_id)}
    _mark(t, dims, "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices")
    _for_torch(t, dims, hint_override, specialize_on)


def mark_static(t: Any, index: Dims | None = None) -> Any:
    """Never make this dimension a symbol, unless another mark requires it. None means all dimensions.

    A subclass of torch.nn.Module is marked for torch.compile only, and returned.
    """
    import torch

    if isinstance(t, type) and issubclass(t, torch.nn.Module):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return t
    _mark(t, _dims(t, index), "_dynamo_static_indices")
    return None


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Declare that this tensor's memory does not move, for backends with CUDA graphs, which also use ``guard``."""
    _dims(t, ())
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"
