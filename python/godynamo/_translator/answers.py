"""What functions say of the process while a frame is translated, each with the predicate that guards it."""

from __future__ import annotations

import abc
import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import DeviceContext


def asked(fn: Callable[[], Any]) -> tuple[Any, Callable[[Any], bool]]:
    """(what a function without arguments says of the process, the guard predicate that it says so still)."""
    answer = fn()
    return answer, lambda fn: bool(fn() == answer)


def recursive_repr(fn: types.FunctionType) -> tuple[Any, str, Callable[[Any], bool]]:
    """(the wrapped function, the text for an object within itself, the guard predicate that none is being printed)."""
    cells = {name: cell.cell_contents for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)}
    running: set[Any] = cells["repr_running"]
    return cells["user_function"], cells.get("fillvalue", "..."), lambda _: not running


def dispatched(fn: Any, cls: type) -> tuple[Any, Callable[[Any], bool]]:
    """What a singledispatch function calls for a first argument of this class, and the guard that it still does."""
    chosen = fn.dispatch(cls)
    return chosen, lambda other: other.dispatch(cls) is chosen


def stays_outside(_: type, cls: Any) -> Callable[[type], bool]:
    """The guard predicate that a class is no subclass of ``cls`` still: abstract classes are asked again once any of them has
    been given a new subclass by ``register``."""
    token = abc.get_cache_token()
    asked = _weakly(cls)

    def holds(other: type) -> bool:
        nonlocal token
        now = abc.get_cache_token()
        if now != token:
            if issubclass(other, _strongly(asked)):
                return False
            token = now
        return True

    return holds


def _weakly(cls: Any) -> Any:
    if type(cls) is tuple:  # isinstance would read the __class__ of a class by its metaclass
        return tuple(map(_weakly, cls))
    return weakref.ref(cls) if issubclass(type(cls), type) else cls


def _strongly(asked: Any) -> Any:
    """What ``_weakly`` was given; an empty tuple, which has no subclasses, in the place of a class that is gone."""
    if isinstance(asked, tuple):
        return tuple(map(_strongly, asked))
    if isinstance(asked, weakref.ref):
        cls = asked()
        return () if cls is None else cls
    return asked


def fact_is(name: str, value: Any) -> Callable[[type], bool]:
    """The guard predicate that ``__module__``, ``__qualname__`` or ``__doc__`` of a class is this; its metaclass is not asked."""
    read = type.__dict__[name].__get__
    return lambda cls: bool(read(cls) == value)


def flag_is(answer: bool, flag: int) -> Callable[[type], bool]:
    """The guard predicate that a class has, or has not, this bit of its flags: ``register`` of an abstract class sets some."""
    read = type.__dict__["__flags__"].__get__
    return lambda cls: bool(read(cls) & flag) is answer


def computed_attribute(module: types.ModuleType, name: str) -> tuple[Any, Callable[[types.ModuleType], bool] | None]:
    """(an attribute that a module computes, the guard predicate that it is that still). None for other than plain values: those
    of torch are the same object every time."""
    value = getattr(module, name)
    kind: Any = type(value)
    if kind not in (bool, int, float, str, type(None)):
        return value, None
    return value, _still(name, kind, value)


@functools.lru_cache(maxsize=256)
def _still(name: str, kind: Any, value: Any) -> Callable[[types.ModuleType], bool]:
    """One predicate for all translations that found this value."""

    def holds(other: types.ModuleType) -> bool:
        now = getattr(other, name)
        return type(now) is kind and bool(now == value)

    return holds


def mode_active() -> bool:
    """Whether a torch function mode is entered that may do anything with an operation."""
    return bool(torch._C._len_torch_function_stack() > 0) and default_device() is None


def default_device() -> torch.device | None:
    """The device that constructors get by torch.set_default_device and ``with torch.device``, where no other mode is entered.

    All that these modes do is to give constructors their device. What is captured under them runs under them, too.
    """
    device = None
    for i in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(i)
        if type(mode) is not DeviceContext:
            return None
        device = mode.device
    return device


def is_default_device(device: torch.device) -> bool:
    """The guard of what was captured under a default device."""
    return default_device() == device


def handles_nothing(_: Any) -> bool:
    """A guard predicate: no exception is being handled where the call comes from."""
    return sys.exc_info()[1] is None
