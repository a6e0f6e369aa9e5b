"""What FakeTensor can only guess.

It gives every sparse tensor no elements, and takes quantized, nested and mkldnn tensors for what they are not or
refuses them. The metadata of what is computed from such tensors are therefore unknown, except where they follow from
the operands' own.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

_SPARSE = {torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
_MKLDNN: Any = torch._mkldnn  # type: ignore[attr-defined]
_QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}

#: Operators on sparse tensors whose result's metadata follow from the metadata of the operands alone. FakeTensor gives
#: every sparse tensor no elements, so what it says of any other operator's result is not believed.
_CERTAIN = frozenset(
    """
    _to_dense to_dense detach alias clone _to_copy t transpose is_coalesced dense_dim sparse_dim _coalesced_ _coalesce
    coalesce
    mm addmm mv _sparse_addmm device
    """.split()
)

#: Operators that make tensors of which FakeTensor does not know the layout or the dtype.
_MADE_OTHERWISE = ("quantize", "mkldnn", "nested")


class VagueMetadata(RuntimeError):
    """What FakeTensor says of an operation's result does not follow from metadata."""


class Watch:
    """Notes the first operator whose result a mode can only guess: those on sparse, quantized, nested and mkldnn
    tensors.

    It wraps the mode's own dispatch. A subclass would not do: higher-order operators look their rule up by the mode's
    exact type.
    """

    def __init__(self, mode: Any) -> None:
        self.vague: Any = None  #: that operator; reset by the session
        self._depth = 0
        self._mode = weakref.ref(mode)  # which holds the watch
        self._dispatch = type(mode).dispatch
        mode.dispatch = self

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._depth += 1
        try:
            result = self._dispatch(self._mode(), func, types, args, kwargs)
        finally:
            self._depth -= 1
        if self._depth == 0 and self.vague is None and _is_vague(func, args, kwargs or {}, result):
            self.vague = func
        return result


def _is_vague(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
    layouts = set()
    for arg in (*args, *kwargs.values()):
        for x in arg if type(arg) in (list, tuple) else (arg,):
            if isinstance(x, torch.Tensor):
                layouts.add(layout(x))
            elif type(x) is torch.dtype and x in _QUANTIZED:
                return True
    name = func.__name__.split(".")[0]
    if name.endswith("_") and result is args[0] and layout(result) is torch.strided:  # changed in place
        return False
    if layouts <= {torch.strided}:
        return any(word in name for word in _MADE_OTHERWISE) and "fake_quant" not in name
    if layouts <= {torch.strided, _MKLDNN}:
        return name not in ("to_dense", "_to_dense", "device")
    if name in (
        "mm",
        "addmm",
        "mv",
        "_sparse_addmm",
    ):  # by two sparse matrices: which layout comes out is the kernel's to say
        operands = [layout(x) for x in args if isinstance(x, torch.Tensor)]
        return operands.count(torch.strided) != len(operands) - 1 or layout(result) is not torch.strided
    return not layouts <= _SPARSE or (name not in _CERTAIN and not name.startswith(("to_sparse", "_to_sparse")))


def layout(t: torch.Tensor) -> Any:
    """A tensor's layout; "quantized" or "nested" for those that are called strided but have no dense memory."""
    if t.is_nested:
        return "nested"
    return "quantized" if t.dtype in _QUANTIZED else t.layout


def is_dense(t: torch.Tensor) -> bool:
    """Whether a fake tensor can represent a tensor and what it is a view of."""
    return layout(t) is torch.strided and (t._base is None or layout(t._base) is torch.strided)


def in_rows(rows: Iterable[Any]) -> bool:
    """Whether an operation of a graph may make a tensor that is not dense; rows: see _backends/rows.py."""
    for row in rows:
        name = row[2] if isinstance(row[2], str) else getattr(row[2], "__name__", "")
        if any(word in name for word in _MAKE) and "fake_quant" not in name:
            return True
        for x in (*row[3], *row[4].values()):
            if (isinstance(x, torch.layout) and x is not torch.strided) or (
                isinstance(x, torch.dtype) and x in _QUANTIZED
            ):
                return True
    return False


#: parts of the names of functions that make tensors which are not dense
_MAKE = ("sparse", "mkldnn", "quantize", "nested", "spdiags")
