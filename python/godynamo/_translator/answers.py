"""Results of calls that query the process, computed while translating, each with the guard predicate for it."""

from __future__ import annotations

import abc
import functools
import os
import sys
import time
import types
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import DeviceContext


def asked(fn: Callable[[], Any]) -> tuple[Any, Callable[[Any], bool]]:
    """Return (the result of a function without arguments, a guard predicate that the result is the same)."""
    answer = fn()
    return answer, lambda fn: bool(fn() == answer)


def fact_of(fn: Callable[[Any], Any], group: Any) -> tuple[Any, Callable[[Any], bool]] | None:
    """Return (what torch.distributed reports about a process group, a guard predicate that it reports the same).

    ``group`` is None for the default group. Returns None if the call raises: the program raises then too.
    """
    try:
        answer = fn(group)
    except Exception:
        return None

    def holds(other: Any) -> bool:
        try:
            return bool(fn(other) == answer)
        except Exception:
            return False  # the group has been destroyed

    return answer, holds


def recursive_repr(fn: types.FunctionType) -> tuple[Any, str, Callable[[Any], bool]]:
    """Return (the wrapped __repr__, the text for a recursive call, a guard predicate that no such call is running)."""
    cells = {name: cell.cell_contents for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)}
    running: set[Any] = cells["repr_running"]
    return cells["user_function"], cells.get("fillvalue", "..."), lambda _: not running


def dispatched(fn: Any, cls: type) -> tuple[Any, Callable[[Any], bool]]:
    """Return (the function that singledispatch chooses for a class, a guard predicate that it is still chosen)."""
    chosen = fn.dispatch(cls)
    return chosen, lambda other: other.dispatch(cls) is chosen


#: in a predicate that another process has stored, the token is of another process
_PROCESS = f"{os.getpid()} {time.time_ns()}"


def stays_outside(_: type, cls: Any) -> Callable[[type], bool]:
    """Return a guard predicate: the class passed to it is still not a subclass of ``cls``.

    The predicate calls issubclass() only after ``register`` has been called on an abstract class.
    """
    token: Any = (_PROCESS, abc.get_cache_token())
    asked = _weakly(cls)

    def holds(other: type) -> bool:
        nonlocal token
        now = (_PROCESS, abc.get_cache_token())
        if now != token:
            if issubclass(other, _strongly(asked)):
                return False
            token = now
        return True

    return holds


def _weakly(cls: Any) -> Any:
    if type(cls) is tuple:  # isinstance would read cls.__class__, which may run code of a metaclass
        return tuple(map(_weakly, cls))
    return weakref.ref(cls) if issubclass(type(cls), type) else cls


def _strongly(asked: Any) -> Any:
    """Undo ``_weakly``. A class that has died becomes an empty tuple, which has no subclass."""
    if isinstance(asked, tuple):
        return tuple(map(_strongly, asked))
    if isinstance(asked, weakref.ref):
        cls = asked()
        return () if cls is None else cls
    return asked


def fact_is(name: str, value: Any) -> Callable[[type], bool]:
    """Return a guard predicate that a class's ``__module__``, ``__qualname__`` or ``__doc__`` equals ``value``.

    It runs no code of a metaclass.
    """
    read = type.__dict__[name].__get__
    return lambda cls: bool(read(cls) == value)


def flag_is(answer: bool, flag: int) -> Callable[[type], bool]:
    """Return a guard predicate on a bit of a class's ``__flags__``. ``ABCMeta.register`` may set some bits later."""
    read = type.__dict__["__flags__"].__get__
    return lambda cls: bool(read(cls) & flag) is answer


def listed(cls: type) -> tuple[list[str], Callable[[type], bool]] | None:
    """Return (``dir(cls)``, a guard predicate that it is the same). Returns None if a name is no plain str."""
    names: list[str] = list(type.__dir__(cls))
    if any(type(name) is not str for name in names):
        return None
    text = sorted(names)
    return text, lambda cls: set(type.__dir__(cls)) == set(text)


def subclasses(cls: type) -> tuple[list[type], Callable[[type], bool]]:
    """Return (``type.__subclasses__(cls)``, a guard predicate that it is the same list), which keeps no class alive."""
    found: list[type] = type.__subclasses__(cls)
    refs = tuple(map(weakref.ref, found))

    def holds(other: type) -> bool:
        now: list[type] = type.__subclasses__(other)
        return len(now) == len(refs) and all(c is ref() for c, ref in zip(now, refs, strict=True))

    return found, holds


def computed_attribute(module: types.ModuleType, name: str) -> tuple[Any, Callable[[types.ModuleType], bool] | None]:
    """Return (an attribute that a module's ``__getattr__`` computes, a guard predicate that it is unchanged).

    The predicate is None if the value is not a plain constant: torch's modules always return the same object then.
    """
    value = getattr(module, name)
    kind: Any = type(value)
    if kind not in (bool, int, float, str, type(None)):
        return value, None
    return value, _still(name, kind, value)


@functools.lru_cache(maxsize=256)
def _still(name: str, kind: Any, value: Any) -> Callable[[types.ModuleType], bool]:
    """Return the predicate for a value. All translations that found this value share the predicate."""

    def holds(other: types.ModuleType) -> bool:
        now = getattr(other, name)
        return type(now) is kind and bool(now == value)

    return holds


def mode_active() -> bool:
    """Return whether a torch function mode is active that is not a default device, so that it may change operations."""
    return bool(torch._C._len_torch_function_stack() > 0) and default_device() is None


def default_device() -> torch.device | None:
    """Return the device set by torch.set_default_device or ``with torch.device``; None under any other function mode.

    Such a device is a mode that only sets the device of tensor constructors. Operations that are captured under such a
    mode also run under it.
    """
    device = None
    for i in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(i)
        if type(mode) is not DeviceContext:
            return None
        device = mode.device
    return device


def is_default_device(device: torch.device) -> bool:
    """Return whether this is the default device. Used as the guard of code captured under a default device."""
    return default_device() == device


def handles_nothing(_: Any) -> bool:
    """Return whether no exception is being handled. Used as a guard predicate."""
    return sys.exc_info()[1] is None
