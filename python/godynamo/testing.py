"""Backends that count, and a comparison, for tests stated as counts.

>>> import torch, godynamo
>>> from godynamo.testing import CompileCounter
>>> counter = CompileCounter()
>>> f = godynamo.optimize(backend=counter)(lambda x: x.relu() + 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any


class CompileCounter:
    """A backend that runs graphs as they are and counts them."""

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.frame_count = 0  #: graphs handed over
        self.op_count = 0  #: calls in them

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Count one graph."""
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Count from zero."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """Counts, keeps the graphs and hands them on to a backend given by name."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Count one graph and compile it."""
        from ._backends import lookup_backend

        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Count from zero, forget the graphs."""
        super().clear()
        self.graphs.clear()


def same(a: Any, b: Any, *, tol: float = 1e-4, equal_nan: bool = True) -> bool:
    """Whether two results are the same: equal types and structure, tensors close by ``tol`` with equal dtype, shape
    and device.

    ``tol=0`` compares tensors bit by bit (NaN equal to NaN).
    """
    import torch

    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or (a.dtype, a.shape, a.device) != (b.dtype, b.shape, b.device):
            return False
        if tol == 0 or not (a.dtype.is_floating_point or a.dtype.is_complex):
            return bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) and torch.equal(a.isnan(), b.isnan()))
        return torch.allclose(a, b, atol=tol, rtol=tol, equal_nan=equal_nan)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, tol=tol, equal_nan=equal_nan) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k], tol=tol, equal_nan=equal_nan) for k in a)
    if isinstance(a, float) and math.isnan(a):
        return equal_nan and math.isnan(b)
    return bool(a == b)
