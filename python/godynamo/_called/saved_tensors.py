"""Hides the translator's own operations from the user's saved-tensor hooks (checkpointing, offloading).

torch.autograd.graph.saved_tensors_hooks receives each tensor that an operation saves for backward. The translator's
operations on fake tensors also save some. Activation checkpointing would count these in its first forward pass and miss
them in the second one, when nothing is translated.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_autograd: Any = torch._C._autograd
#: torch's function that returns the innermost pair of hooks or None; torch before about 2.8 lacks it
_innermost: Callable[[bool], Any] | None = getattr(_autograd, "_top_saved_tensors_default_hooks", None)


def hooks_active() -> bool:
    """Return whether saved-tensor hooks may be active on this thread.

    If torch cannot report the hooks, the result is whether grad mode is on.
    """
    if _innermost is None:
        return torch.is_grad_enabled()
    return _innermost(True) is not None


def unseen() -> AbstractContextManager[Any]:
    """Return a context manager with hooks that do nothing. torch calls only the innermost pair of hooks."""
    if not hooks_active() or not _autograd._saved_tensors_hooks_is_enabled():
        return nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(_same, _same)


def _same(x: Any) -> Any:
    return x
