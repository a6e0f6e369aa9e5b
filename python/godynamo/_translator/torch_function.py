"""Which calls of ``__torch_function__`` an operation makes, found by running torch with stand-ins for the arguments.

Used only while translating. Tensors of a subclass are captured if only ``__torch_function__`` and Python attributes
distinguish them from other tensors; classes with ``__torch_dispatch__`` are left to CPython.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .. import config

_Call = tuple[Any, Any, Any, Any, Any]

#: the calls that stand-ins have received since asked() began, in order
_calls: list[_Call] = []

_PLAIN_METACLASSES = tuple({type(torch.Tensor), type(torch.nn.Parameter)})


def traceable(cls: type) -> bool:
    """Return whether tensors of this class are captured.

    By default the user's own classes with torch's metaclass are; ``config.traceable_tensor_subclasses`` names others.
    """
    if not issubclass(cls, torch.Tensor) or cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False
    if cls in config.traceable_tensor_subclasses:
        return True
    return type(cls) in _PLAIN_METACLASSES and cls.__module__.partition(".")[0] != "torch"


def has_handler(cls: Any) -> bool:
    """Return whether operations on tensors of this class call a handler: its own or, for subclasses, torch.Tensor's."""
    return cls.__torch_function__ is not torch._C._disabled_torch_function_impl


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as a torch.Tensor that shares its memory and gradient; no handler is called.

    Grad mode is on for this step: the graph may switch it on itself.
    """
    if torch.is_grad_enabled():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)
    with torch.enable_grad():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)


def plain_example(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor with the tensor's metadata, through which no compiler can reach the tensor itself."""
    alias = plain(tensor)
    return alias.detach().requires_grad_(alias.requires_grad)


def as_subclass(result: torch.Tensor, cls: type) -> torch.Tensor:
    """Return an operation's result as a tensor of the subclass; the result may be an operand that already is one."""
    return result if isinstance(result, cls) else result.as_subclass(cls)


def converted(result: Any, cls: type) -> Any:
    """Convert tensors, also in tuples and lists, to the subclass, as torch.Tensor's own handler does with a result."""
    if isinstance(result, torch.Tensor):
        return as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        return type(result)(converted(r, cls) for r in result)
    return result


def wrapped(result: Any, cls: type | None, inputs: tuple[Any, ...], real: tuple[Any, ...]) -> Any:
    """Convert a result of a graph of plain tensors to what the program sees.

    A graph input becomes the object that it replaces; another result becomes a tensor of the subclass, if ``cls`` is
    given.
    """
    for plain_input, given in zip(inputs, real, strict=True):
        if result is plain_input:
            return given
    if cls is None:
        return result
    if torch.is_grad_enabled():
        return converted(result, cls)
    with torch.enable_grad():  # grad mode may have been switched inside the graph
        return converted(result, cls)


def make_subclass(cls: type, data: torch.Tensor, require_grad: bool = False) -> torch.Tensor:
    """Call ``torch.Tensor._make_subclass``; a graph cannot name that function itself, since it belongs to no module."""
    return torch.Tensor._make_subclass(cls, data, require_grad)


def new_tensor(cls: type, data: torch.Tensor) -> torch.Tensor:
    """Call ``torch.Tensor.__new__`` with another tensor's data."""
    return torch.Tensor.__new__(cls, data)


#: function above -> function that makes the same tensor, but of class torch.Tensor
PLAIN: dict[Any, Callable[..., torch.Tensor]] = {
    make_subclass: lambda data, require_grad=False: data.detach().requires_grad_(require_grad),
    new_tensor: lambda data: torch.ops.aten.alias(data),
}


def enabled() -> bool:
    """Return whether operations on this thread currently call the handlers of classes."""
    return bool(torch._C._is_torch_function_enabled())


def modes_off() -> bool:
    """Return whether operations on this thread call neither the handlers of classes nor those of modes."""
    return bool(torch._C._is_torch_function_all_disabled())


def _handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    if any(call[0] is cls for call in _calls):
        raise _Refused  # all handlers were called: the operation now raises its error or starts another operation
    _calls.append((cls, func, types, args, kwargs))
    return NotImplemented


@functools.lru_cache(maxsize=256)
def _mirrored(shape: tuple[tuple[bool, tuple[int, ...]], ...]) -> tuple[type, ...]:
    made: dict[int, type] = {}
    for i in sorted(range(len(shape)), key=lambda i: len(shape[i][1])):  # bases come before their subclasses
        tensor, above = shape[i]
        nearest = [j for j in above if not any(j in shape[k][1] for k in above)]
        bases: list[type] = [made[j] for j in nearest]
        if not bases or (tensor and not any(issubclass(b, torch.Tensor) for b in bases)):
            bases.append(torch.Tensor if tensor else object)
        metaclass: Any = type(torch.Tensor) if tensor else type
        made[i] = metaclass(f"StandIn{i}", tuple(bases), {"__torch_function__": classmethod(_handler)})
    return tuple(made[i] for i in range(len(shape)))


def mirrors(classes: tuple[type, ...]) -> tuple[type, ...]:
    """Return stand-in classes that inherit like these (torch calls subclasses first); each refuses every function."""
    return _mirrored(
        tuple(
            (issubclass(c, torch.Tensor), tuple(j for j, d in enumerate(classes) if d is not c and d in c.__mro__))
            for c in classes
        )
    )


def stand_in(cls: type | None) -> Any:
    """Return a stand-in argument: an instance of a mirror class, or a plain tensor for None."""
    if cls is None or issubclass(cls, torch.Tensor):
        made = torch.empty(0)
        return made if cls is None else made.as_subclass(cls)
    return cls()


class _Refused(BaseException):
    """Ends a query; no ``except Exception`` in between catches it."""


class _Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _handler(None, func, types, args, kwargs)


def asked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], mode: bool) -> tuple[_Call, ...]:
    """Return the handler calls that ``fn(*args, **kwargs)`` makes while each returns NotImplemented, each as (class,
    func, types, args, kwargs). The query ends when a class would be called again: the operation's first dispatch is
    over.

    mode: our own function mode is called first; its class is None in the result. If kwargs in a result is None, the
    handler is called without keywords.
    """
    _calls.clear()
    call = functools.partial(fn, *args, **kwargs)  # passes no empty dict of keywords to C
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
