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
    """Return whether saved-tensor hooks are active on this thread."""
    return not without_hooks(None)


def _found_by_disabling(_true: bool) -> object:
    """Return an object if hooks are active, else None. Used if torch lacks _innermost.

    This disables hooks for a moment: torch raises if some are active.
    """
    message = _autograd._saved_tensors_hooks_get_disabled_error_message()
    try:
        _autograd._saved_tensors_hooks_disable("active")
    except RuntimeError:
        return True
    finally:
        _autograd._saved_tensors_hooks_enable()
        if message is not None:
            _autograd._saved_tensors_hooks_disable(message)
    return None


def without_hooks(_module: object, _top: Callable[[bool], object] = _innermost or _found_by_disabling) -> bool:
    """Return whether no saved-tensor hooks are active. Guards call it, with one argument."""
    return _top(True) is None


def with_hooks(_module: object, _top: Callable[[bool], object] = _innermost or _found_by_disabling) -> bool:
    """Return whether saved-tensor hooks are active; see without_hooks."""
    return _top(True) is not None


def unseen() -> AbstractContextManager[Any]:
    """Return a context manager with hooks that do nothing. torch calls only the innermost pair of hooks."""
    if not hooks_active() or not _autograd._saved_tensors_hooks_is_enabled():
        return nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(_same, _same)


def _same(x: Any) -> Any:
    return x
