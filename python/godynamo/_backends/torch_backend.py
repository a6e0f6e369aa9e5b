"""``torch.compile(f, backend="godynamo")``: found by torch through the entry point of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._user.optimize import optimize


def godynamo(gm: Any, example_inputs: list[Any], **_: Any) -> Callable[..., Any]:
    """Translate a graph module that torch.compile has captured, with the graph written inline as bytecode."""
    return optimize(gm.forward, backend="eager")  # type: ignore[no-any-return]
