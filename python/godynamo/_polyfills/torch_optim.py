"""Stand-ins for the decorators of torch.optim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import _use_grad_for_differentiable

from ._base import closures_like

__godynamo_polyfill__ = "module"


def _plain() -> None: ...


@closures_like(_use_grad_for_differentiable(_plain))  # type: ignore[arg-type]
def use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``step``. torch's decorator also asks torch.compile to break the graph before and after the step."""

    def _use_grad(*args: Any, **kwargs: Any) -> Any:  # tracebacks may show this name, so it is torch's
        with torch.set_grad_enabled(args[0].defaults["differentiable"]):
            ret = func(*args, **kwargs)
        return ret

    return _use_grad
