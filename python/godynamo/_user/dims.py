"""Marks on the dimensions of tensors. The marks are torch's own attributes, so torch.compile reads them too.

The marks are stored for symbolic sizes and have no effect yet, since sizes are still constants of a translation.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _in_range(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        raise ValueError(f"min={low} is over max={high}")


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

    hint_override, min, max and specialize_on are checked but not stored. Raises TypeError if ``t`` is not a tensor,
    IndexError for a missing dimension, and ValueError if min is greater than max.
    """
    _in_range(min, max)
    _mark(t, index, "_dynamo_dynamic_indices")


def maybe_mark_dynamic(t: Any, index: Dims, *, min: int | None = None, max: int | None = None) -> None:
    """Do the same as mark_dynamic, but allow the program to make the size a constant."""
    _in_range(min, max)
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
    """Make a dimension a symbol whose value is unknown while translating."""
    _in_range(min, max)
    _mark(t, index, "_dynamo_unbacked_indices")


def mark_static(t: Any, index: Dims | None = None) -> None:
    """Never make this dimension a symbol. None means all dimensions."""
    _mark(t, index, "_dynamo_static_indices")


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Declare that this tensor's memory does not move, for backends with CUDA graphs, which also use ``guard``."""
    _dims(t, ())
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"
