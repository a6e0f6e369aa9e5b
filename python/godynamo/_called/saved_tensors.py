"""Keeps the user's saved-tensor hooks (checkpointing, offloading) from seeing what only the translator runs.

torch.autograd.graph.saved_tensors_hooks sees each tensor that an operation saves for backward. Operations run on fake tensors
save some too: activation checkpointing would count them in its first forward pass and miss them when it computes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_autograd: Any = torch._C._autograd
#: the innermost pair of hooks or None; torch before 2.8 or so cannot tell
_innermost: Callable[[bool], Any] | None = getattr(_autograd, "_top_saved_tensors_default_hooks", None)


def hooks_active() -> bool:
    """Whether saved-tensor hooks may be in force on this thread: where torch cannot tell, whenever something could be saved."""
    if _innermost is None:
        return torch.is_grad_enabled()
    return _innermost(True) is not None


def unseen() -> AbstractContextManager[Any]:
    """Inside of it the innermost hooks, the only ones that torch calls, are ours, which do nothing."""
    if not hooks_active() or not _autograd._saved_tensors_hooks_is_enabled():
        return nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(_same, _same)


def _same(x: Any) -> Any:
    return x
