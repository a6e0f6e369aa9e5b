"""Defines the Python operations of a graph (``optimize(python_ops=True)``): nodes for calls that cannot be captured.

Each function here is the target of such nodes. It is one operation on real objects, under a name that FX can print and
pickle. FX treats Python operations as impure, so its dead-code elimination keeps them. ``python_text`` prints a graph
that contains them.
"""

from __future__ import annotations

import builtins
import functools
import operator
import types
from collections.abc import Callable
from typing import Any

from . import python_types


class PyObject:
    """Holds the object of a PyConstant node. Copies of a graph share the object. A pickle contains the object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<python object>"

    def __deepcopy__(self, memo: dict[int, Any]) -> PyObject:
        return self

    def __copy__(self) -> PyObject:
        return self


def PyConstant(held: PyObject) -> Any:
    """Return the held object."""
    return held.value


def PyObjectCall(fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a Python object."""
    return fn(*args, **kwargs)


def call_ex(fn: Any, args: Any, kwargs: Any = None, /) -> Any:
    """Return ``fn(*args, **kwargs)``, for arguments whose number and names are unknown while translating."""
    return fn(*args) if kwargs is None else fn(*args, **kwargs)


def load_global(namespace: dict[str, Any], name: str) -> Any:
    """Return the current value of a global, or else of a builtin. Raises NameError if neither has the name."""
    try:
        return namespace[name]
    except KeyError:
        pass
    found: Any = namespace.get("__builtins__", builtins)
    try:
        return (found if isinstance(found, dict) else vars(found))[name]
    except KeyError:
        raise NameError(f"name {name!r} is not defined", name=name) from None


def load_global_of(namespace: dict[str, Any], name: str) -> Any:
    """Do the same as ``load_global``, for the globals of a function that was inlined from another module."""
    return load_global(namespace, name)


def load_cell(cell: Any, name: str, free: bool) -> Any:
    """Return a closure cell's current value; raise CPython's NameError or UnboundLocalError if the cell is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        pass
    if free:
        text = f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        raise NameError(text)
    raise UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")


@functools.lru_cache(maxsize=64)
def _unpacker(count: int) -> Callable[[Any], Any]:
    names = ", ".join(f"v{i}" for i in range(count))
    scope: dict[str, Any] = {}
    text = f"def unpack(value):\n    [{names}] = value\n    return ({names}{',' if count else ''})"
    exec(compile(text, __file__, "exec"), scope)  # with this file's name, so that the eval-frame hook skips the code
    return scope["unpack"]  # type: ignore[no-any-return]


def unpack(value: Any, count: int) -> tuple[Any, ...]:
    """Unpack ``value`` into ``count`` items; raise CPython's errors if there are more or fewer."""
    return _unpacker(count)(value)  # type: ignore[no-any-return]


def build_list(items: tuple[Any, ...]) -> list[Any]:
    """Return ``[*items]``."""
    return [*items]


def build_set(items: tuple[Any, ...]) -> set[Any]:
    """Return ``{*items}``."""
    return {*items}


def build_dict(keys: tuple[Any, ...], values: tuple[Any, ...]) -> dict[Any, Any]:
    """Return ``dict(zip(keys, values))``."""
    return dict(builtins.zip(keys, values, strict=True))


def extend_list(items: Any, more: Any) -> list[Any]:
    """Return ``[*items, *more]``."""
    return [*items, *more]


def extend_set(items: Any, more: Any) -> set[Any]:
    """Return ``{*items, *more}``."""
    return {*items, *more}


def extend_dict(items: Any, more: Any) -> dict[Any, Any]:
    """Return ``{**items, **more}``."""
    return {**items, **more}


def merge_keywords(fn: Any, known: Any, more: Any) -> dict[Any, Any]:
    """Return the keywords of ``fn(**known, **more)``.

    If ``more`` is not a mapping or repeats a keyword, ``fn(**known, **more)`` is called: CPython raises its error
    before ``fn`` runs.
    """
    if not hasattr(more, "keys"):
        fn(**known, **more)
    added = {**more}
    if known.keys() & added.keys():
        fn(**known, **added)
    return {**known, **added}


def build_string(*parts: str) -> str:
    """Join the parts of an f-string."""
    return "".join(parts)


def import_name(name: str, namespace: dict[str, Any], local: None, fromlist: Any, level: int) -> Any:
    """Do ``import name``."""
    return __import__(name, namespace, local, fromlist, level)


def CastFromPython(value: Any, *, types: str) -> Any:
    """Return ``value`` if it has the type ``types`` (in TorchScript's notation), else raise ValueError."""
    if not python_types.fits(value, types):
        raise ValueError(f"cannot cast Python object of type {type(value).__name__} to TorchScript type {types}")
    return value


def import_name_of(name: str, namespace: dict[str, Any], local: None, fromlist: Any, level: int) -> Any:
    """Do the same as ``import_name``, for a function that was inlined from another module."""
    return __import__(name, namespace, local, fromlist, level)


def _operation(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of this module that calls ``fn``. FX would assume that ``fn`` itself has no effects."""

    def run(*args: Any) -> Any:
        return fn(*args)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"``{fn.__module__}.{fn.__name__}``."
    return run


_OPERATORS = (
    "add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor "
    "iadd iand ifloordiv ilshift imatmul imul imod ior ipow irshift isub itruediv ixor "
    "lt le eq ne gt ge pos neg invert not_ is_ is_not contains getitem setitem delitem"
).split()
_BUILTINS = "getattr setattr delattr iter len tuple str repr ascii format".split()

for _name in _OPERATORS:
    globals()[_name] = _operation(_name, vars(operator)[_name])
for _name in _BUILTINS:
    globals()[_name] = _operation(_name, vars(builtins)[_name])


def _effectful() -> None:
    """Register the operations of this module with FX as having side effects, so that FX removes none of their nodes."""
    from torch.fx import node

    for name, fn in [*globals().items()]:
        own = isinstance(fn, types.FunctionType) and fn.__module__ == __name__ and not name.startswith("_")
        if own and fn is not PyConstant:
            node.has_side_effect(fn)


_effectful()
