"""What stands for ctx while a torch.autograd.Function's forward is translated for what it rests on."""

from __future__ import annotations

from typing import Any

__godynamo_polyfill__ = "module"


class Context:
    """Keeps what forward gives it. What it lacks (needs_input_grad, mark_dirty) leaves the function to CPython."""

    def save_for_backward(self, *tensors: Any) -> None:
        """As FunctionCtx.save_for_backward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """As FunctionCtx.save_for_forward."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """As FunctionCtx.mark_non_differentiable."""

    def set_materialize_grads(self, value: bool) -> None:
        """As FunctionCtx.set_materialize_grads."""


def applied(function: Any) -> Any:
    """A function that torch.fx can print the name of, and that applies the autograd.Function."""

    def apply(*args: Any) -> Any:
        return function.apply(*args)

    apply.__name__ = apply.__qualname__ = f"{function.__name__}_apply"
    apply.__module__ = function.__module__
    return apply
