"""Replaces ``ctx`` while a torch.autograd.Function is translated to find its dependencies."""

from __future__ import annotations

from typing import Any

import torch

__godynamo_polyfill__ = "module"


class Context:
    """Stores what forward passes to it. The graph breaks if a function uses an attribute of ctx that is not here."""

    inputs_of_forward: tuple[Any, ...] = ()  #: what apply was called with; the translator sets it
    non_differentiable: tuple[Any, ...] = ()
    dirty: tuple[Any, ...] = ()

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Return the same as FunctionCtx.needs_input_grad. Flags are read only if the function uses them."""
        return tuple([isinstance(a, torch.Tensor) and a.requires_grad for a in self.inputs_of_forward])

    def save_for_backward(self, *tensors: Any) -> None:
        """Do the same as FunctionCtx.save_for_backward."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Do the same as FunctionCtx.save_for_forward."""
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        """Do the same as FunctionCtx.mark_non_differentiable."""
        self.non_differentiable = args

    def mark_dirty(self, *args: Any) -> None:
        """Do the same as FunctionCtx.mark_dirty."""
        self.dirty = args

    def set_materialize_grads(self, value: bool) -> None:
        """Do the same as FunctionCtx.set_materialize_grads."""
        self.materializes = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return what forward has saved."""
        return self.to_save


def differentiate(function: Any, ctx: Any, result: Any) -> None:
    """Call ``function.backward`` with gradients that look like the results of its forward."""
    function.backward(ctx, *_gradients(ctx, result))


def differentiate_operator(backward: Any, setup_context: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Call the two functions of torch.library.register_autograd as torch does for a call of the operator."""
    ctx = Context()
    ctx.inputs_of_forward = inputs
    if setup_context is not None:
        setup_context(ctx=ctx, inputs=inputs, output=output)
    backward(ctx, *_gradients(ctx, output))


def _gradients(ctx: Any, result: Any) -> list[Any]:
    """Return gradients that look like the results of an operation."""
    if not getattr(ctx, "materializes", True):
        raise NotImplementedError  # gradients may be None
    results = result if isinstance(result, tuple) else (result,)
    return [r.detach() if isinstance(r, torch.Tensor) else None for r in results]


def with_gradient(hook: Any, t: Any) -> None:
    """Call a hook of a tensor with a gradient that looks like the tensor, as backward() does."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    hook(t.detach())
    torch._C._set_grad_enabled(before)


def applied(function: Any) -> Any:
    """Return a function that applies the autograd.Function, with a name that torch.fx can print."""

    def apply(*args: Any) -> Any:
        return function.apply(*args)

    apply.__name__ = apply.__qualname__ = f"{function.__name__}_apply"
    apply.__module__ = function.__module__
    return apply
