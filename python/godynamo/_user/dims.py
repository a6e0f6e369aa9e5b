"""Marks on the dimensions of tensors. The marks are torch's own attributes, so torch.compile reads them too.

The translator reads them where it reads a tensor's sizes: bytecode/translate/graph_marks.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
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


def _mark(t: Any, dim: Dims | None, attribute: str) -> None:
    dims = _dims(t, dim)
    marks = getattr(t, attribute, None)
    if marks is None:
        marks = set()
        setattr(t, attribute, marks)
    marks.update(dims)


def _in_range(t: Any, dim: Dims, low: int | None, high: int | None) -> None:
    """Check a range and store it on the tensor. Raises ValueError if it is empty or the size is outside of it."""
    if low is not None and high is not None and low > high:
        raise ValueError(f"min={low} is over max={high}")
    if low is None and high is None:
        return
    first, last = 0 if low is None else low, _MOST if high is None else high
    dims = _dims(t, dim)
    ranges = t.__dict__.setdefault("_godynamo_dim_ranges", {})
    for d in dims:
        if not first <= t.shape[d] <= last:
            raise ValueError(f"dimension {d} has the size {t.shape[d]}, which is not between {first} and {last}")
        ranges[d] = (first, last)


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
    "_godynamo_dim_ranges",
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
    """Raise torch's ConstraintViolationError for a dimension of mark_dynamic that is 0 or 1, with a compiler."""
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    raise ConstraintViolationError(
        f"{place} is marked with mark_dynamic and is {value}: to a compiler, 0 and 1 are constants. "
        "Call with a greater size first, or mark the dimension with maybe_mark_dynamic."
    )


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

    min, max: the translation serves sizes in this range only. hint_override and specialize_on have no effect. A program
    that needs the size's value raises torch's ConstraintViolationError when it is called. Raises TypeError if ``t`` is
    not a tensor, IndexError for a missing dimension, and ValueError if min is greater than max, or if the size is
    outside the range.
    """
    _in_range(t, index, min, max)
    _mark(t, index, "_dynamo_dynamic_indices")


def maybe_mark_dynamic(t: Any, index: Dims, *, min: int | None = None, max: int | None = None) -> None:
    """Do the same as mark_dynamic, but allow the program to make the size a constant."""
    _in_range(t, index, min, max)
    _mark(t, index, "_dynamo_weak_dynamic_indices")


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
    """Make a dimension a symbol whose value is unknown while translating: a branch on it breaks the graph."""
    _in_range(t, index, min, max)
    _mark(t, index, "_dynamo_unbacked_indices")


def mark_static(t: Any, index: Dims | None = None) -> None:
    """Never make this dimension a symbol. None means all dimensions."""
    _mark(t, index, "_dynamo_static_indices")


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Declare that this tensor's memory does not move, for backends with CUDA graphs, which also use ``guard``."""
    _dims(t, ())
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"
