"""The backend of ``torch.compile(f, backend="godynamo")``. torch finds it through the package's entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._user.optimize import optimize


def godynamo(gm: Any, example_inputs: list[Any], **_: Any) -> Callable[..., Any]:
    """Return the optimized forward of a graph module that torch.compile has captured. The graph is run as bytecode."""
    return optimize(gm.forward, backend="eager")  # type: ignore[no-any-return]
