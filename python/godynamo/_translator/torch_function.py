"""Finds the calls of ``__torch_function__`` (handlers) that an operation makes, by running it on stand-in arguments.

This happens only while translating. Tensors of a subclass are captured if only ``__torch_function__`` and Python
attributes distinguish them from other tensors. Code that uses classes with ``__torch_dispatch__`` runs in CPython.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from .. import config

_Call = tuple[Any, Any, Any, Any, Any]

#: the handler calls that the stand-ins have received since asked() began, in order
_calls: list[_Call] = []

_PLAIN_METACLASSES = tuple({type(torch.Tensor), type(torch.nn.Parameter)})


def traceable(cls: type) -> bool:
    """Return whether tensors of this class are captured.

    By default these are the user's classes with torch's metaclass. ``config.traceable_tensor_subclasses`` adds others.
    """
    if not issubclass(cls, torch.Tensor) or cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False
    if cls in config.traceable_tensor_subclasses:
        return True
    return type(cls) in _PLAIN_METACLASSES and cls.__module__.partition(".")[0] != "torch"


def has_handler(cls: Any) -> bool:
    """Return whether operations on objects of this class call a handler, its own or one inherited from torch.Tensor."""
    return cls.__torch_function__ is not torch._C._disabled_torch_function_impl


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a torch.Tensor that shares the tensor's memory and gradient, without calling a handler.

    Grad mode is on for this call, since the graph may switch grad mode on itself.
    """
    if torch.is_grad_enabled():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)
    with torch.enable_grad():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)


def plain_example(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor with the tensor's metadata. A compiler cannot reach the tensor itself through it."""
    alias = plain(tensor)
    return alias.detach().requires_grad_(alias.requires_grad)


def as_subclass(result: torch.Tensor, cls: type) -> torch.Tensor:
    """Return an operation's result as a tensor of ``cls``.

    If the result is one of the operands, it may already be one.
    """
    return result if isinstance(result, cls) else result.as_subclass(cls)


def converted(result: Any, cls: type) -> Any:
    """Convert a result's tensors, also in tuples and lists, to the subclass, as the handler of torch.Tensor does."""
    if isinstance(result, torch.Tensor):
        return as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        return type(result)(converted(r, cls) for r in result)
    return result


def wrapped(
    results: tuple[Any, ...], classes: tuple[type | None, ...], inputs: tuple[Any, ...], real: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Convert results of a graph of plain tensors to the objects that the program sees.

    A graph input becomes the object in ``real`` that it replaces. Any other result becomes a tensor of its subclass in
    ``classes``, unless that is None. Results that are one object stay one object.
    """
    given = {id(plain_input): one for plain_input, one in zip(inputs, real, strict=True)}
    made: dict[tuple[int, type | None], Any] = {}
    seen = []
    with contextlib.nullcontext() if torch.is_grad_enabled() else torch.enable_grad():  # a result may have a history
        for result, cls in zip(results, classes, strict=True):
            key = id(result), cls
            if key not in made:
                found = given.get(id(result))
                made[key] = found if found is not None else result if cls is None else converted(result, cls)
            seen.append(made[key])
    return tuple(seen)


def make_subclass(cls: type, data: torch.Tensor, require_grad: bool = False) -> torch.Tensor:
    """Call ``torch.Tensor._make_subclass``. A graph cannot name that function itself, since it belongs to no module."""
    return torch.Tensor._make_subclass(cls, data, require_grad)


def new_tensor(cls: type, data: torch.Tensor) -> torch.Tensor:
    """Call ``torch.Tensor.__new__`` with another tensor's data."""
    return torch.Tensor.__new__(cls, data)


def make_wrapper(cls: type, size: Any, **looks: Any) -> torch.Tensor:
    """Call ``torch.Tensor._make_wrapper_subclass``, which belongs to no module either."""
    return torch.Tensor._make_wrapper_subclass(cls, size, **looks)


def _plain_wrapper(size: Any, strides: Any = None, **looks: Any) -> torch.Tensor:
    return torch.empty(size, **looks) if strides is None else torch.empty_strided(size, strides, **looks)


#: make_subclass, new_tensor or make_wrapper -> function that makes the same tensor, but of class torch.Tensor
PLAIN: dict[Any, Callable[..., torch.Tensor]] = {
    make_subclass: lambda data, require_grad=False: data.detach().requires_grad_(require_grad),
    new_tensor: lambda data: torch.ops.aten.alias(data),
    make_wrapper: _plain_wrapper,
}


def enabled() -> bool:
    """Return whether operations on this thread currently call the handlers of classes."""
    return bool(torch._C._is_torch_function_enabled())


def changes_items_only(mode: type) -> bool:
    """Return whether a class of modes is torch's own that changes subscripts of tensors and no other operation."""
    defined = sys.modules.get("torch._dynamo._trace_wrapped_higher_order_op")
    return defined is not None and mode is getattr(defined, "TransformGetItemToIndex", None)


def modes_off() -> bool:
    """Return whether operations on this thread call neither the handlers of classes nor those of modes."""
    return bool(torch._C._is_torch_function_all_disabled())


def _handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    if any(call[0] is cls for call in _calls):
        raise _Refused  # all handlers have been called: the operation would now raise, or start another operation
    _calls.append((cls, func, types, args, kwargs))
    return NotImplemented


@functools.lru_cache(maxsize=256)
def _mirrored(shape: tuple[tuple[bool, tuple[int, ...]], ...]) -> tuple[type, ...]:
    made: dict[int, type] = {}
    for i in sorted(range(len(shape)), key=lambda i: len(shape[i][1])):  # make base classes before their subclasses
        tensor, above = shape[i]
        nearest = [j for j in above if not any(j in shape[k][1] for k in above)]
        bases: list[type] = [made[j] for j in nearest]
        if not bases or (tensor and not any(issubclass(b, torch.Tensor) for b in bases)):
            bases.append(torch.Tensor if tensor else object)
        metaclass: Any = type(torch.Tensor) if tensor else type
        made[i] = metaclass(f"StandIn{i}", tuple(bases), {"__torch_function__": classmethod(_handler)})
    return tuple(made[i] for i in range(len(shape)))


def mirrors(classes: tuple[type, ...]) -> tuple[type, ...]:
    """Return stand-in classes that inherit from each other as these do, since torch calls subclasses' handlers first.

    The handlers of the stand-in classes record their calls and return NotImplemented.
    """
    return _mirrored(
        tuple(
            (issubclass(c, torch.Tensor), tuple(j for j, d in enumerate(classes) if d is not c and d in c.__mro__))
            for c in classes
        )
    )


def stand_in(cls: type | None) -> Any:
    """Return a stand-in argument: an instance of a class made by mirrors(), or a plain tensor if ``cls`` is None."""
    if cls is None or issubclass(cls, torch.Tensor):
        made = torch.empty(0)
        return made if cls is None else made.as_subclass(cls)
    return cls()


class _Refused(BaseException):
    """Raised to end asked(). Derives from BaseException, so that no ``except Exception`` catches it."""


class _Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _handler(None, func, types, args, kwargs)


def asked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], mode: bool) -> tuple[_Call, ...]:
    """Return the handler calls that ``fn(*args, **kwargs)`` makes if each of them returns NotImplemented.

    A call is (class, func, types, args, kwargs); kwargs is None if the handler is called without keywords. The call of
    ``fn`` ends when a class's handler would be called again, since the operation's first dispatch is then over. With
    ``mode``, our own function mode is active and called first; its class in the result is None.
    """
    _calls.clear()
    call = functools.partial(fn, *args, **kwargs)  # calls C functions without a dict if there are no keywords
    try:
        if mode:
            with _Mode():
                call()
        else:
            call()
    except (Exception, _Refused):
        pass
    told = tuple(_calls)
    _calls.clear()
    return told
