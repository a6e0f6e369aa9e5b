"""Makes handles, the results of optimize(module). A handle behaves like the module, but its calls are optimized.

A handle class is made once per module class. ``_C.ModuleHandle`` is among its bases, so that ``handle(x)`` calls the
callable in the handle's field directly, without a look-up or a tuple of arguments. ``__call__`` of a handle class is
the descriptor of this field.
"""

from __future__ import annotations

import copy
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .._core import available, core

#: slots of every handle: the callable, the original module, the function that optimizes a copy of the module, and the
#: module's optimized ``forward`` or None
_SLOTS = ("_godynamo_call", "_godynamo_module", "_godynamo_again", "_godynamo_forward")

Again = Callable[[Any], Any]


def is_module(obj: Any) -> bool:
    """Return whether ``obj`` is an nn.Module or our proxy of one. Only the type is read.

    The ``__class__`` of other proxies may be that of another object.
    """
    return issubclass(type(obj), torch.nn.Module) or issubclass(type(obj), _Proxy)


def is_module_class(cls: type) -> bool:
    """Return whether instances of ``cls`` are nn.Modules."""
    return issubclass(cls, torch.nn.Module)


def original(obj: Any) -> Any:
    """Return the module of a handle. Any other object is returned unchanged."""
    if issubclass(type(obj), (_Handle, _Proxy)):
        return object.__getattribute__(obj, "_godynamo_module")
    return obj


def made_by(obj: Any) -> Any:
    """Return the function that optimizes a copy of this handle's module; None for other objects."""
    return object.__getattribute__(obj, "_godynamo_again") if issubclass(type(obj), (_Handle, _Proxy)) else None


def bound_call(module: Any) -> Callable[..., Any]:
    """Return ``__call__`` of the module's class, bound to the original module."""
    module = original(module)
    return types.MethodType(type(module).__call__, module)


def handle(module: Any, call: Callable[..., Any], again: Again) -> Any:
    """Return a handle of ``module`` whose calls call ``call``; ``again(copy)`` optimizes a copy of the module."""
    module = original(module)
    cls = _handle_class(type(module))
    if cls is None:
        return _Proxy(module, call, again)
    out: Any = object.__new__(cls)
    object.__setattr__(out, "__dict__", module.__dict__)
    if available:
        core.set_module_handle(out, call, module, again)
        object.__setattr__(out, "_godynamo_forward", _forward(call, module, again))
    else:
        _fill(out, call, module, again)
    return out


def _fill(out: Any, call: Callable[..., Any], module: Any, again: Again) -> None:
    for name, value in zip(_SLOTS, (call, module, again, _forward(call, module, again)), strict=True):
        object.__setattr__(out, name, value)


def _forward(call: Any, module: Any, again: Again) -> Any:
    """Return the optimized ``forward`` of the module's class, bound to the module. Runs no code of the module.

    Returns None if no Python code defines ``forward``, and for a handle whose calls are not optimized (of disable()).
    """
    if not available or not isinstance(call, core.Callable):
        return None
    function = next((vars(c)["forward"] for c in type(module).__mro__ if "forward" in vars(c)), None)
    return again(types.MethodType(function, module)) if type(function) is types.FunctionType else None


def _again(module: Any, again: Again) -> Any:
    return again(module)


class _Signature:
    """``__signature__`` of a handle: the module's signature. For a handle class it is that of the module class.

    Without it, inspect would find no function, since ``__call__`` of the type is a slot.
    """

    def __get__(self, obj: Any, owner: type) -> Any:
        import inspect

        if obj is None:
            if owner is _Handle or owner is _Proxy:
                raise AttributeError("__signature__")
            return inspect.signature(owner.__bases__[-1])
        return inspect.signature(_slot(obj, "_godynamo_module"))


class _OriginalModule:
    """``_orig_mod`` of a handle, as of torch.compile's modules: the module, or its submodule ``_orig_mod`` if any."""

    def __get__(self, obj: Any, owner: type) -> Any:
        if obj is None:
            return self
        module = _slot(obj, "_godynamo_module")
        return module.__dict__.get("_modules", {}).get("_orig_mod", module)


class _Forward:
    """``handle.forward``: the optimized ``forward`` of the module. Calling it runs no hooks of the module.

    A ``forward`` in the module's ``__dict__`` takes precedence, as in the module itself.
    """

    def __get__(self, obj: Any, owner: type) -> Any:
        if obj is None:
            return super(_Handle, owner).forward  # type: ignore[misc]
        forward, made = _slot(obj, "_godynamo_module").forward, _slot(obj, "_godynamo_forward")
        if made is None or made.function is not getattr(forward, "__func__", None):
            return forward
        return made


class _Handle:
    """A base of every handle class. Its methods take precedence over those of the user's class."""

    __slots__ = ()
    __signature__ = _Signature()
    _orig_mod = _OriginalModule()
    forward = _Forward()

    def __init_subclass__(cls, **_kwargs: Any) -> None:
        """Do nothing, since the user's __init_subclass__ must not run for a class that the user did not write."""

    def __eq__(self, other: object) -> bool:
        """Compare the modules, so that a dict with a module as key, such as FSDP2's of states, has its handle."""
        return bool(_slot(self, "_godynamo_module") == original(other))

    def __hash__(self) -> int:
        return hash(_slot(self, "_godynamo_module"))

    def __reduce_ex__(self, _protocol: Any) -> Any:
        """Pickle the module, and the function that optimizes it."""
        return _again, (_slot(self, "_godynamo_module"), _slot(self, "_godynamo_again"))

    def __copy__(self) -> Any:
        """Return a handle of a copy of the module."""
        return _slot(self, "_godynamo_again")(copy.copy(_slot(self, "_godynamo_module")))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a handle of a deep copy of the module."""
        return _slot(self, "_godynamo_again")(copy.deepcopy(_slot(self, "_godynamo_module"), memo))


def _slot(obj: Any, name: str) -> Any:
    return object.__getattribute__(obj, name)


# Module class -> weak reference to its handle class. A handle class has the module class, its key, as a base; a strong
# reference to the handle class would keep both alive.
_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()
_refused: weakref.WeakSet[type] = weakref.WeakSet()


def _handle_class(cls: type) -> type | None:
    """Return the handle class for a module class, None if only a proxy can represent its instances."""
    ref = _classes.get(cls)
    made = ref() if ref is not None else None
    if made is not None:
        return made
    if cls in _refused or not _can_subclass(cls):
        return None
    # Without _C nothing is optimized. Handles then have slots in place of the fields of ModuleHandle.
    bases = (core.ModuleHandle, _Handle, cls) if available else (_Handle, cls)

    def new(_handle_class: type, *args: Any, **kwargs: Any) -> Any:
        """Return an instance of the module's class. Sequential calls type(self) to make a slice of itself."""
        return cls(*args, **kwargs)

    namespace = {
        "__new__": new,
        "__slots__": () if available else _SLOTS,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    try:
        # Calls type.__new__ itself, since __new__ and __init__ of a metaclass may be user code.
        made = type.__new__(type(cls), cls.__name__, bases, namespace)
    except TypeError:  # the C fields of the class conflict with those of the handle
        _refused.add(cls)
        return None
    if available:
        core.set_handle_class(made)
    else:
        type.__setattr__(made, "__call__", made.__dict__["_godynamo_call"])
    _classes[cls] = weakref.ref(made)
    return made


def _can_subclass(cls: type) -> bool:
    script = sys.modules.get("torch.jit._script")
    if script is not None and issubclass(cls, script.ScriptModule):
        return False
    # A handle shares the module's __dict__. Values in slots are not in __dict__, so they could not be shared.
    return cls.__dictoffset__ != 0 and not any(
        slot not in ("__dict__", "__weakref__")
        for base in cls.__mro__
        if base is not object
        for slot in _slots_of(base)
    )


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


class _Proxy:
    """Represents a module whose class allows no handle class. Forwards everything except calls to the module."""

    __slots__ = (*_SLOTS, "__weakref__")
    __signature__ = _Signature()
    _orig_mod = _OriginalModule()
    forward = _Forward()

    def __init__(self, module: Any, call: Callable[..., Any], again: Again) -> None:
        _fill(self, call, module, again)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Return the module's class, so that isinstance() treats the proxy like the module."""
        return type(_slot(self, "_godynamo_module"))

    def __getattr__(self, name: str) -> Any:
        return getattr(_slot(self, "_godynamo_module"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_slot(self, "_godynamo_module"), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_slot(self, "_godynamo_module"), name)

    def __dir__(self) -> list[str]:
        return dir(_slot(self, "_godynamo_module"))

    def __repr__(self) -> str:
        return repr(_slot(self, "_godynamo_module"))

    def __getitem__(self, key: Any) -> Any:
        return _slot(self, "_godynamo_module")[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        _slot(self, "_godynamo_module")[key] = value

    def __delitem__(self, key: Any) -> None:
        del _slot(self, "_godynamo_module")[key]

    def __len__(self) -> int:
        return len(_slot(self, "_godynamo_module"))

    def __bool__(self) -> bool:
        return bool(_slot(self, "_godynamo_module"))

    def __iter__(self) -> Iterator[Any]:
        return iter(_slot(self, "_godynamo_module"))

    def __contains__(self, item: Any) -> bool:
        return item in _slot(self, "_godynamo_module")

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return _again, (_slot(self, "_godynamo_module"), _slot(self, "_godynamo_again"))

    __eq__ = _Handle.__eq__
    __hash__ = _Handle.__hash__
    __copy__ = _Handle.__copy__
    __deepcopy__ = _Handle.__deepcopy__


setattr(_Proxy, "__call__", _Proxy.__dict__["_godynamo_call"])  # noqa: B010 - mypy knows no descriptors in slots
