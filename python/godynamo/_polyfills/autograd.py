"""Replaces ``ctx`` while the forward of a torch.autograd.Function is translated to find its dependencies."""

from __future__ import annotations

from typing import Any

__godynamo_polyfill__ = "module"


class Context:
    """Stores forward's arguments. If forward uses another attribute of ctx (mark_dirty, ...), it runs in CPython."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Do the same as FunctionCtx.save_for_backward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Do the same as FunctionCtx.save_for_forward."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """Do the same as FunctionCtx.mark_non_differentiable."""

    def set_materialize_grads(self, value: bool) -> None:
        """Do the same as FunctionCtx.set_materialize_grads."""


def applied(function: Any) -> Any:
    """Return a function that applies the autograd.Function, with a name that torch.fx can print."""

    def apply(*args: Any) -> Any:
        return function.apply(*args)

    apply.__name__ = apply.__qualname__ = f"{function.__name__}_apply"
    apply.__module__ = function.__module__
    return apply
