"""Recognizes backends that trace their graphs with AOTAutograd.

Such a backend sees fake tensors and takes operators apart: recurrent layers draw other random numbers there, an LSTM's graph
does not run, and tensors that FakeTensor can only guess (_vague) become dense ones without elements.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

_creation_meta: Any = torch._C._autograd._get_creation_meta
_DEFAULT: Any = torch._C._autograd.CreationMeta.DEFAULT


def count() -> str:
    """A text that differs once AOTAutograd has traced a graph in this process; the same as before while it has not."""
    module = sys.modules.get("torch._functorch.aot_autograd")
    counter = getattr(module, "AOT_COUNTER", None)
    return "count(0)" if counter is None else repr(counter)  # next() would count itself


def with_fakes(error: BaseException | None) -> bool:
    """Whether an exception, or one that led to it, was raised while fake tensors were made or run."""
    while error is not None:
        traceback = error.__traceback__
        while traceback is not None:
            if str(traceback.tb_frame.f_globals.get("__name__")).startswith("torch._subclasses."):
                return True
            traceback = traceback.tb_next
        error = error.__cause__ or error.__context__
    return False


def of_a_leaf(t: torch.Tensor) -> bool:
    """Whether a change in place raises in grad mode because ``t`` is a leaf that requires gradients, or a view of one.

    A graph that AOTAutograd has traced makes the change instead. A view that may not be changed for another reason (made in
    no_grad mode, one of several) raises while it is traced.
    """
    base = t._base
    try:
        if base is None:
            return t.requires_grad and t.is_leaf
        return t.requires_grad and base.requires_grad and base.is_leaf and _creation_meta(t) == _DEFAULT
    except RuntimeError:  # autograd refuses to look at a view whose base has changed
        return False
