"""Defines what all stand-ins use: their table, END and DECLINE, the class StandIn, and some decorators."""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.util
import types
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from .._translator.identity_map import IdentityMap
from .._user import registry

__godynamo_polyfill__ = "module"  # variables/builtin_standin.go recognizes the globals of stand-ins by this name

F = TypeVar("F", bound=Callable[..., Any])

#: C callable → (stand-in, fold)
table: dict[Any, tuple[Any, bool]] = {}


class _End:
    __godynamo_polyfill__ = "end"


class _Decline:
    __godynamo_polyfill__ = "decline"


#: returned by ``_next`` of an exhausted iterator; stand-ins also pass it to ``next()`` as the default, since no user
#: value is this class
END: Any = _End
#: returned by a stand-in that leaves the call to CPython
DECLINE: Any = _Decline


class StandIn:
    """Represents an object of the C type ``__real__`` during translation.

    A class with ``_next`` represents iterators. ``_escape`` returns a callable and its arguments, which make the real
    object in the same state; or DECLINE, and then CPython makes the object. ``__public__`` lists the attributes of the
    C type that captured code may read from the stand-in. ``_group`` is a stand-in that shares state with this one: when
    the real object of ``_group`` is made, this stand-in is out of date. A class with ``__shares__`` represents a
    mode whose key in torch_state is ``number``. Captured code keeps using it after the real object is made.
    """

    __godynamo_polyfill__ = "class"
    __real__: type
    __public__: tuple[str, ...] = ()

    def _escape(self) -> Any:
        return DECLINE


def stands_for(*originals: Any, fold: bool = False) -> Callable[[F], F]:
    """Register the decorated function or class as the stand-in of these callables; see callables.stand_in for fold."""

    def register(replacement: F) -> F:
        for original in originals:
            table[original] = (replacement, fold)
        return replacement

    return register


#: type of immutable C objects → function that makes a stand-in from the arguments that __reduce__ returns
makers: dict[type, Any] = {}


def made_by(kind: type) -> Callable[[F], F]:
    """Register the decorated function as the maker of stand-ins for objects of ``kind`` that occur in a frame."""

    def register(maker: F) -> F:
        makers[kind] = maker
        return maker

    return register


#: code object of a decorator's closures → function that returns the stand-in of such a closure
remade: dict[types.CodeType, Callable[[types.FunctionType], types.FunctionType]] = {}


def closures_like(original: types.FunctionType) -> Callable[[F], F]:
    """Register the decorated decorator in place of the one that returned ``original``: each closure that it has
    returned is inlined with the code of this one's. Both have the same free variables."""

    def register(decorator: F) -> F:
        code = decorator(None).__code__
        made: IdentityMap[types.FunctionType, types.FunctionType] = IdentityMap()

        def remake(closure: types.FunctionType) -> types.FunctionType:
            known = made.get(closure)
            if known is None:
                known = types.FunctionType(
                    code, decorator.__globals__, closure.__name__, closure.__defaults__, closure.__closure__
                )
                known.__godynamo_stands_for__ = weakref.ref(closure)  # type: ignore[attr-defined]
                made[closure] = known
            return known

        if code.co_freevars == original.__code__.co_freevars:  # another torch's closures may have others
            remade[original.__code__] = remake
        return decorator

    return register


def python_version(name: str, accelerator: str) -> dict[str, Any]:
    """Return the namespace of a standard library module, run with the import of its C module disabled."""

    def without(module: str, *rest: Any) -> Any:
        if module == accelerator:
            raise ImportError(module)
        return __import__(module, *rest)

    spec = importlib.util.find_spec(name)
    if spec is None or not isinstance(spec.loader, importlib.abc.InspectLoader):
        return {}
    code = spec.loader.get_code(name)
    namespace: dict[str, Any] = {
        "__name__": name,
        "__builtins__": {**vars(builtins), "__import__": without},
        "__godynamo_polyfill__": "module",
    }
    if code is not None:
        exec(code, namespace)
    return namespace


def computed(fn: F) -> F:
    """Register a function that is not inlined but called during translation. All its arguments must be constants."""
    registry.register(fn, "fold")
    return fn


def type_of_stand_in(value: Any) -> Any:
    """Return the C type that a stand-in represents, None for other values. The translator computes this call itself."""
    return value


registry.register(type_of_stand_in, "stand_in_type")
