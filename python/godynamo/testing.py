"""Helpers for tests: backends that count graphs, and comparisons.

>>> import torch, godynamo
>>> from godynamo.testing import CompileCounter
>>> counter = CompileCounter()
>>> f = godynamo.optimize(backend=counter)(lambda x: x.relu() + 1)
"""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any


class CompileCounter:
    """A backend that runs graphs unchanged and counts them."""

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.frame_count = 0  #: graphs received
        self.op_count = 0  #: calls in the graphs

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Count one graph."""
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        return gm.forward  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Reset the counts."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A backend that counts and keeps graphs, and passes them to a backend given by name."""

    def __init__(self, backend: str) -> None:
        super().__init__()
        self.backend = backend
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Count and keep one graph, and compile it."""
        from ._backends.named import lookup_backend

        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        return lookup_backend(self.backend)(gm, example_inputs)  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Reset the counts and drop the graphs."""
        super().clear()
        self.graphs.clear()


class EagerAndRecordGraphs:
    """A backend that runs graphs unchanged and keeps them in ``graphs``."""

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Keep one graph."""
        self.graphs.append(gm)
        return gm.forward  # type: ignore[no-any-return]


class AotEagerAndRecordGraphs(EagerAndRecordGraphs):
    """A backend that traces graphs with AOTAutograd.

    It keeps the graphs in ``graphs``, and their forward and backward graphs in ``fw_graphs`` and ``bw_graphs``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fw_graphs: list[Any] = []
        self.bw_graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Keep one graph and trace it."""
        from torch._dynamo.backends.common import aot_autograd

        self.graphs.append(gm)
        traced = aot_autograd(fw_compiler=self._keeper(self.fw_graphs), bw_compiler=self._keeper(self.bw_graphs))
        return traced(gm, example_inputs)

    @staticmethod
    def _keeper(graphs: list[Any]) -> Callable[..., Any]:
        def keep(gm: Any, example_inputs: Sequence[Any]) -> Any:
            from functorch.compile import make_boxed_func  # type: ignore[import-untyped]

            graphs.append(gm)
            return make_boxed_func(gm.forward)

        return keep


def normalize_gm(gm_str: str) -> str:
    """Remove comments and blank lines from a GraphModule's code (``gm.print_readable(False)``), for a comparison.

    A comment is a line that begins with "#", or the rest of a line that begins with two spaces and "#".
    """
    lines = (re.sub(r"  #.*", "", line).rstrip() for line in gm_str.splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#")) + "\n"


def reset_rng_state() -> None:
    """Seed the generators of torch and random, and that of numpy if numpy is imported, with 1337."""
    import torch

    torch.manual_seed(1337)
    random.seed(1337)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(1337)


def same(a: Any, b: Any, *, tol: float = 1e-4, equal_nan: bool = True) -> bool:
    """Return whether two results are the same.

    They must have equal types and structure, and tensors of equal dtype, shape and device. The tensors' values must be
    close, within ``tol``; ``tol=0`` compares them bit by bit, with NaN equal to NaN.
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
