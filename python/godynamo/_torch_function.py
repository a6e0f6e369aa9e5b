"""Which call of ``__torch_function__`` an operation on a tensor subclass makes: torch itself is asked, with a class of ours.

Called while translating only, for classes in ``config.traceable_tensor_subclasses``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import config


class _Asked(Exception):
    """How a handler was called."""

    def __init__(self, call: tuple[Any, ...]) -> None:
        super().__init__()
        self.call = call


class _Probe(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _Asked((func, args, kwargs))


def traceable(cls: type) -> bool:
    """Whether tensors of this class are captured."""
    return cls in config.traceable_tensor_subclasses and issubclass(cls, torch.Tensor)


def has_handler(cls: Any) -> bool:
    """Whether operations on tensors of this class call a handler of its, or of torch.Tensor's for subclasses."""
    return cls.__torch_function__ is not torch._C._disabled_torch_function_impl


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as one of torch.Tensor, for questions about its metadata."""
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def as_subclass(result: torch.Tensor, cls: type) -> torch.Tensor:
    """An operation's result as a tensor of the subclass; an operation may give its operand."""
    return result if isinstance(result, cls) else result.as_subclass(cls)


def enabled() -> bool:
    """Whether operations on this thread call handlers now."""
    return bool(torch._C._is_torch_function_enabled())


def stand_in(handled: bool) -> torch.Tensor:
    """A tensor to ask with; handled: of a subclass."""
    made = torch.empty(0)
    return made.as_subclass(_Probe) if handled else made


def asked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """(func, args, kwargs) that ``fn(*args, **kwargs)`` calls a handler with first; None where it calls none.

    kwargs of None: the handler is called without.
    """
    try:
        fn(*args, **kwargs)
    except _Asked as told:
        return told.call
    except Exception:
        return None
    return None
