"""Recognizes metadata that FakeTensor can only guess (vague metadata).

FakeTensor treats every sparse tensor as if it had no elements. It treats quantized, nested and mkldnn tensors as other
kinds, or rejects them. So metadata of values computed from such tensors are unknown, unless they follow from the
operands' metadata alone.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch

_SPARSE = {torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc}
_MKLDNN: Any = torch._mkldnn  # type: ignore[attr-defined]
_QUANTIZED = {torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4}

#: Operators on sparse tensors for which the metadata of the result follow from the operands' metadata alone. The result
#: of any other operator may depend on the elements, which fake sparse tensors do not have.
_CERTAIN = frozenset(
    """
    _to_dense to_dense detach alias clone _to_copy t transpose is_coalesced dense_dim sparse_dim _coalesced_ _coalesce
    coalesce neg
    mm addmm mv _sparse_addmm device
    """.split()
)

#: Parts of the names of operators with results of a layout or dtype that FakeTensor does not support.
_MADE_OTHERWISE = ("quantize", "mkldnn", "nested")

#: Parts of the names of operators whose results are dense all the same.
_MADE_DENSE = ("fake_quant", "mkldnn_rnn_layer")


class VagueMetadata(RuntimeError):
    """The metadata of FakeTensor's result are a guess, since they do not follow from the operands' metadata."""


def is_view_of_dispatched(tensor: torch.Tensor) -> bool:
    """Return whether the tensor is a view of one of a class with ``__torch_dispatch__``.

    FakeTensor would make the view again, which calls the class's code.
    """
    base = tensor._base
    return base is not None and type(base).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def without_data(mode: Any, tensor: torch.Tensor) -> Any:
    """Return a FakeTensor of a mode without a ShapeEnv. The value of a 0-dim tensor, which torch keeps, is dropped."""
    if is_view_of_dispatched(tensor):
        raise VagueMetadata("a view of a tensor whose class dispatches operators in Python")
    fake = mode.from_tensor(tensor, static_shapes=True)
    fake.item_memo = None
    return fake


class Watch:
    """Records the first operator whose result FakeTensor guesses: one on sparse, quantized, nested or mkldnn tensors.

    A Watch wraps the ``dispatch`` of a fake mode. A subclass of the mode's class would not work, since higher-order
    operators look up their rule by the exact type of the mode.
    """

    def __init__(self, mode: Any) -> None:
        self.vague: Any = None  #: the recorded operator; the user of the Watch resets it
        self._depth = 0
        self._mode = weakref.ref(mode)  # weak, since the mode holds this Watch
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
    if name.endswith("_") and result is args[0] and layout(result) is torch.strided:  # an in-place operation
        return False
    if layouts <= {torch.strided}:
        return any(w in name for w in _MADE_OTHERWISE) and not any(w in name for w in _MADE_DENSE)
    if layouts <= {torch.strided, _MKLDNN}:
        return name not in ("to_dense", "_to_dense", "device")
    if name in (
        "mm",
        "addmm",
        "mv",
        "_sparse_addmm",
    ):  # for two sparse matrices, the kernel chooses the layout of the result
        operands = [layout(x) for x in args if isinstance(x, torch.Tensor)]
        return operands.count(torch.strided) != len(operands) - 1 or layout(result) is not torch.strided
    return not layouts <= _SPARSE or (name not in _CERTAIN and not name.startswith(("to_sparse", "_to_sparse")))


def layout(t: torch.Tensor) -> Any:
    """Return a tensor's layout. It is "quantized" or "nested" for such tensors, which report torch.strided."""
    if t.is_nested:
        return "nested"
    return "quantized" if t.dtype in _QUANTIZED else t.layout


def is_dense(t: torch.Tensor) -> bool:
    """Return whether fake tensors can represent this tensor and, if it is a view, its base."""
    return layout(t) is torch.strided and (t._base is None or layout(t._base) is torch.strided)


def in_rows(rows: Iterable[Any]) -> bool:
    """Return whether a graph, given as rows (see _backends/rows.py), may make a tensor that is not dense."""
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
