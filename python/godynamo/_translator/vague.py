"""Metadata that FakeTensor can only guess.

FakeTensor gives every sparse tensor no elements; it mistakes quantized, nested and mkldnn tensors for other kinds or
rejects them. So metadata of values computed from such tensors are unknown, unless they follow from the operands' own
metadata.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

_SPARSE = {torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
_MKLDNN: Any = torch._mkldnn  # type: ignore[attr-defined]
_QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}

#: Operators on sparse tensors whose result's metadata follow from the metadata of the operands alone. FakeTensor
#: gives every sparse tensor no elements, so its result for any other operator is not trusted.
_CERTAIN = frozenset(
    """
    _to_dense to_dense detach alias clone _to_copy t transpose is_coalesced dense_dim sparse_dim _coalesced_ _coalesce
    coalesce
    mm addmm mv _sparse_addmm device
    """.split()
)

#: Parts of names of operators whose result has a layout or dtype that FakeTensor does not know.
_MADE_OTHERWISE = ("quantize", "mkldnn", "nested")


class VagueMetadata(RuntimeError):
    """FakeTensor's result for an operation has metadata that do not follow from the operands' metadata."""


class Watch:
    """Records the first operator with a guessed result: one on sparse, quantized, nested or mkldnn tensors.

    It wraps the mode's own dispatch. A subclass would not work: higher-order operators look up their rule by the mode's
    exact type.
    """

    def __init__(self, mode: Any) -> None:
        self.vague: Any = None  #: that operator; reset by the session
        self._depth = 0
        self._mode = weakref.ref(mode)  # weak, since the mode holds the watch
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
    ):  # with two sparse matrices, the kernel chooses the result's layout
        operands = [layout(x) for x in args if isinstance(x, torch.Tensor)]
        return operands.count(torch.strided) != len(operands) - 1 or layout(result) is not torch.strided
    return not layouts <= _SPARSE or (name not in _CERTAIN and not name.startswith(("to_sparse", "_to_sparse")))


def layout(t: torch.Tensor) -> Any:
    """Return a tensor's layout; "quantized" or "nested" for tensors that report strided but have no dense memory."""
    if t.is_nested:
        return "nested"
    return "quantized" if t.dtype in _QUANTIZED else t.layout


def is_dense(t: torch.Tensor) -> bool:
    """Return whether a fake tensor can represent this tensor and the tensor that it is a view of."""
    return layout(t) is torch.strided and (t._base is None or layout(t._base) is torch.strided)


def in_rows(rows: Iterable[Any]) -> bool:
    """Return whether an operation of a graph may make a tensor that is not dense; rows: see _backends/rows.py."""
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
