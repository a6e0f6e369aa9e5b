"""Checks around ``backward()`` in a graph: whether it has done what the graph predicts.

The graph predicts that no hook runs, that some leaves (``fresh``) get their first gradient, and that others (``kept``)
keep the gradient tensor that they have, or None.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import autograd
from torch.autograd import graph
from torch.overrides import has_torch_function_unary

from godynamo import _C

#: (whether a hook may run, the gradients of ``kept``)
Before = tuple[bool, list[torch.Tensor | None]]


def before(leaves: tuple[torch.Tensor, ...], kept: tuple[torch.Tensor, ...], *hooked: bool) -> Before:
    """Return what ``after`` compares. ``leaves`` are the leaves of the graph without hooks of the program. ``hooked``
    has for each other leaf whether it had hooks before the program's."""
    return _C.gradients_run_code(leaves) or any(hooked), [t.grad for t in kept]


_TORCHS = torch.Tensor.backward, autograd.backward


def backward(loss: torch.Tensor) -> None:
    """Do what ``loss.backward()`` does. torch's Python functions spend much time on checks of arguments that are not
    passed here."""
    if (
        type(loss) is not torch.Tensor
        or has_torch_function_unary(loss)  # a mode is active
        or torch._C._len_torch_dispatch_stack() > 0  # this mode would see what _show_as_torchs does
        or torch.is_anomaly_enabled()
        or not loss.requires_grad
        or loss.layout is not torch.strided
        or loss.numel() != 1
        or not loss.dtype.is_floating_point
        or (torch.Tensor.backward, autograd.backward) != _TORCHS
    ):
        loss.backward()  # type: ignore[no-untyped-call]
        return
    gradient = torch.ones_like(loss, memory_format=torch.preserve_format)
    try:
        graph._engine_run_backward((loss,), (gradient,), False, False, (), allow_unreachable=True, accumulate_grad=True)
    except BaseException as error:
        _show_as_torchs(error)
        raise


# C removes the frame from tracebacks (calls_for_line in core/calls/traceback.c).
backward.__code__ = backward.__code__.replace(co_qualname="<a call of backward>")


def _show_as_torchs(error: BaseException) -> None:
    """Make the traceback of an exception of the engine show torch's functions in place of ``backward`` above.

    For this, torch's functions run once more, on a leaf whose hook raises the exception.
    """

    held = [error]

    def raise_again(_: torch.Tensor) -> Any:
        raise held.pop()

    context, cause, suppressed = error.__context__, error.__cause__, error.__suppress_context__
    below: Any = error.__traceback__ and error.__traceback__.tb_next
    error.__traceback__ = None
    with torch.enable_grad(), torch.inference_mode(False):
        leaf = torch.ones((), device="cpu", dtype=torch.float32, requires_grad=True)
        leaf.register_hook(raise_again)  # type: ignore[no-untyped-call]
        try:
            leaf.backward()  # type: ignore[no-untyped-call]
        except BaseException as again:
            if again is not error:
                raise
    torchs: Any = error.__traceback__ and error.__traceback__.tb_next  # without the frame of this function
    entry = torchs
    while entry is not None and entry.tb_next is not None and entry.tb_next.tb_frame.f_code is not _RUN.__code__:
        entry = entry.tb_next
    if entry is not None:
        entry.tb_next = below
    error.__context__, error.__cause__, error.__suppress_context__ = context, cause, suppressed
    error.__traceback__ = torchs if entry is not None else below
    # The traceback's frames refer to this one, which must not keep the exception alive.
    del error, leaf, below, torchs, entry, context, cause


_RUN = graph._engine_run_backward


def has_hooks(t: torch.Tensor) -> bool:
    """Return whether a hook may run when backward() reaches the leaf."""
    return _C.gradients_run_code((t,))


def after(
    before: Before, fresh: tuple[torch.Tensor, ...], kept: tuple[torch.Tensor, ...], sparse: tuple[int, ...] = ()
) -> tuple[torch.Tensor | None, ...] | None:
    """Return the gradients of ``fresh``, or None if something has happened that the graph did not predict.

    ``sparse`` has the positions in ``fresh`` of the leaves whose gradient is sparse."""
    hooked, gradients = before
    if hooked or any(t.grad is not g for t, g in zip(kept, gradients, strict=True)):
        return None
    usual = None if sparse else _C.usual_gradients(fresh)
    if usual is not None:
        return usual
    first = tuple([t.grad for t in fresh])
    for i, (gradient, leaf) in enumerate(zip(first, fresh, strict=True)):
        if not (_sparse_as_predicted if i in sparse else _as_predicted)(gradient, leaf):
            return None
    return first


def after_grad(
    before: Before,
    gradients: tuple[torch.Tensor | None, ...],
    expected: tuple[bool, ...],
    inputs: tuple[torch.Tensor, ...],
    batch: torch.Tensor | None = None,
) -> bool | None:
    """Return True, or None if ``torch.autograd.grad`` has run a hook, or returned something that the graph does not
    predict. ``expected`` has False for a gradient that is None. With ``batch``, gradients have its first dimension."""
    sizes = () if batch is None else batch.shape[:1]
    for found, some, x in zip(gradients, expected, inputs, strict=True):
        if some != (found is not None):
            return None
        if found is not None and not (
            type(found) is torch.Tensor
            and found.layout is torch.strided
            and (found.dtype, found.device, found.shape) == (x.dtype, x.device, (*sizes, *x.shape))
        ):
            return None
    return None if before[0] else True


def found_infinite(found: tuple[torch.Tensor, ...]) -> float:
    """Return the sum of the tensors in which GradScaler counts infinite gradients. A graph expects 0."""
    return sum(t.item() for t in found)


def as_expected(value: float) -> bool | None:
    """Return True if the value is 0, else None."""
    return None if value else True


def has_history(t: torch.Tensor) -> bool:
    """Return whether an operation that autograd has recorded has computed the tensor, for guards."""
    return not t.is_leaf


def is_no_view(t: torch.Tensor) -> bool:
    """Return whether the tensor is no view: the ``requires_grad`` of a view follows its base. For guards."""
    return not t._is_view()


def _as_predicted(gradient: torch.Tensor | None, leaf: torch.Tensor) -> bool:
    """Return whether a gradient is as torch makes it by default: dense, with the leaf's dtype and strides.

    Strides of dimensions of size 1 may differ: AccumulateGrad keeps such a gradient, and a graph that needs these
    strides reads them (reliableStrides in variables/tensor_methods.go).
    """
    return (
        type(gradient) is torch.Tensor
        and gradient.layout is torch.strided
        and gradient.dtype is leaf.dtype
        and (gradient.stride() == leaf.stride() or _laid_out_alike(gradient, leaf))
    )


def _sparse_as_predicted(gradient: torch.Tensor | None, leaf: torch.Tensor) -> bool:
    """Return whether a gradient is as the backward pass of an embedding makes it: rows of the leaf."""
    return (
        type(gradient) is torch.Tensor
        and gradient.layout is torch.sparse_coo
        and (gradient.dtype, gradient.device, gradient.shape) == (leaf.dtype, leaf.device, leaf.shape)
        and gradient.sparse_dim() == 1
    )


def _laid_out_alike(gradient: torch.Tensor, leaf: torch.Tensor) -> bool:
    strides = zip(leaf.shape, gradient.stride(), leaf.stride(), strict=True)
    return gradient.shape == leaf.shape and all(size == 1 or own == leafs for size, own, leafs in strides)
