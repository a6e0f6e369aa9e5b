"""Which calls of ``__torch_function__`` an operation makes: torch itself is asked, with stand-ins for its arguments.

Called while translating only. Tensors of a subclass are captured when nothing but ``__torch_function__`` and Python
attributes tells them from others: classes with ``__torch_dispatch__`` are left to CPython.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from .. import config

_Call = tuple[Any, Any, Any, Any, Any]

#: the calls that stand-ins have got since asked() began, in order
_calls: list[_Call] = []

_PLAIN_METACLASSES = tuple({type(torch.Tensor), type(torch.nn.Parameter)})


def traceable(cls: type) -> bool:
    """Whether tensors of this class are captured.

    By default the user's own, with torch's metaclass; others where ``config.traceable_tensor_subclasses`` names them.
    """
    if not issubclass(cls, torch.Tensor) or cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False
    if cls in config.traceable_tensor_subclasses:
        return True
    return type(cls) in _PLAIN_METACLASSES and cls.__module__.partition(".")[0] != "torch"


def has_handler(cls: Any) -> bool:
    """Whether operations on tensors of this class call a handler of its, or of torch.Tensor's for subclasses."""
    return cls.__torch_function__ is not torch._C._disabled_torch_function_impl


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as one of torch.Tensor, which shares its memory and its gradient; no handler is called.

    Gradients are on for that: the graph may switch them on itself.
    """
    if torch.is_grad_enabled():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)
    with torch.enable_grad():
        return torch.Tensor.as_subclass(tensor, torch.Tensor)


def plain_example(tensor: torch.Tensor) -> torch.Tensor:
    """A plain tensor with the tensor's metadata, through which no compiler comes to the tensor itself."""
    alias = plain(tensor)
    return alias.detach().requires_grad_(alias.requires_grad)


def as_subclass(result: torch.Tensor, cls: type) -> torch.Tensor:
    """An operation's result as a tensor of the subclass; an operation may give its operand."""
    return result if isinstance(result, cls) else result.as_subclass(cls)


def converted(result: Any, cls: type) -> Any:
    """What torch.Tensor's own handler makes of a result: tensors become tensors of the subclass, in tuples and lists
    too."""
    if isinstance(result, torch.Tensor):
        return as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        return type(result)(converted(r, cls) for r in result)
    return result


def wrapped(result: Any, cls: type | None, inputs: tuple[Any, ...], real: tuple[Any, ...]) -> Any:
    """What a graph of plain tensors gave, as the program sees it: one of the graph's inputs as what that stood for,
    another result as a tensor of the subclass where it is to be one.
    """
    for plain_input, given in zip(inputs, real, strict=True):
        if result is plain_input:
            return given
    if cls is None:
        return result
    if torch.is_grad_enabled():
        return converted(result, cls)
    with torch.enable_grad():  # what was switched inside of the graph
        return converted(result, cls)


def make_subclass(cls: type, data: torch.Tensor, require_grad: bool = False) -> torch.Tensor:
    """``torch.Tensor._make_subclass``, which a graph cannot name: it is in no module."""
    return torch.Tensor._make_subclass(cls, data, require_grad)


def new_tensor(cls: type, data: torch.Tensor) -> torch.Tensor:
    """``torch.Tensor.__new__`` for another tensor's data."""
    return torch.Tensor.__new__(cls, data)


#: what these give, but for its class
PLAIN: dict[Any, Callable[..., torch.Tensor]] = {
    make_subclass: lambda data, require_grad=False: data.detach().requires_grad_(require_grad),
    new_tensor: lambda data: torch.ops.aten.alias(data),
}


def enabled() -> bool:
    """Whether operations on this thread call handlers of classes now."""
    return bool(torch._C._is_torch_function_enabled())


def modes_off() -> bool:
    """Whether operations on this thread call no handlers of modes either."""
    return bool(torch._C._is_torch_function_all_disabled())


def _handler(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    if any(call[0] is cls for call in _calls):
        raise _Refused  # all have: what follows is the operation's way to its error, or another operation
    _calls.append((cls, func, types, args, kwargs))
    return NotImplemented


@functools.lru_cache(maxsize=256)
def _mirrored(shape: tuple[tuple[bool, tuple[int, ...]], ...]) -> tuple[type, ...]:
    made: dict[int, type] = {}
    for i in sorted(range(len(shape)), key=lambda i: len(shape[i][1])):  # bases come before what extends them
        tensor, above = shape[i]
        nearest = [j for j in above if not any(j in shape[k][1] for k in above)]
        bases: list[type] = [made[j] for j in nearest]
        if not bases or (tensor and not any(issubclass(b, torch.Tensor) for b in bases)):
            bases.append(torch.Tensor if tensor else object)
        metaclass: Any = type(torch.Tensor) if tensor else type
        made[i] = metaclass(f"StandIn{i}", tuple(bases), {"__torch_function__": classmethod(_handler)})
    return tuple(made[i] for i in range(len(shape)))


def mirrors(classes: tuple[type, ...]) -> tuple[type, ...]:
    """Classes of ours that extend each other as these do: torch asks subclasses first. Each refuses every function."""
    return _mirrored(
        tuple(
            (issubclass(c, torch.Tensor), tuple(j for j, d in enumerate(classes) if d is not c and d in c.__mro__))
            for c in classes
        )
    )


def stand_in(cls: type | None) -> Any:
    """An argument to ask with: one of a mirror, or a plain tensor for None."""
    if cls is None or issubclass(cls, torch.Tensor):
        made = torch.empty(0)
        return made if cls is None else made.as_subclass(cls)
    return cls()


class _Refused(BaseException):
    """Ends a question; no ``except Exception`` on the way sees it."""


class _Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _handler(None, func, types, args, kwargs)


def asked(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], mode: bool) -> tuple[_Call, ...]:
    """The calls of handlers that ``fn(*args, **kwargs)`` makes as long as each gives NotImplemented, each as
    (class, func, types, args, kwargs). Each class is asked once: that ends the operation's first dispatch.

    mode: one of ours is asked first, its class reads None. kwargs of None: the handler is called without.
    """
    _calls.clear()
    call = functools.partial(fn, *args, **kwargs)  # which gives C no empty dict of keywords
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
