"""Finds backends by name: registered backends, backends of installed packages, and torch's own.

A backend is called as ``backend(gm, example_inputs)``. ``gm`` is a real torch.fx.GraphModule, all of whose inputs
(including lifted parameters) are placeholders; ``example_inputs`` are the real input tensors. The backend returns a
callable that takes the inputs positionally and returns a sequence of outputs. torch._dynamo is imported only when one
of torch's backends is requested, since the import takes a second.
"""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import torch

from .. import exc

log = logging.getLogger("godynamo")

Backend = Callable[..., Any]
B = TypeVar("B", bound=Backend)

_ENTRY_POINTS = "torch_dynamo_backends"
_own: dict[str, Backend] = {}
_tags: dict[str, tuple[str, ...]] = {}
_dynamic: set[str] = set()  # names of the backends registered with supports_dynamic_shapes


@overload
def register_backend(
    compiler_fn: B, name: str | None = None, tags: Sequence[str] = (), *, supports_dynamic_shapes: bool = False
) -> B: ...
@overload
def register_backend(
    compiler_fn: None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
    *,
    supports_dynamic_shapes: bool = False,
) -> Callable[[B], B]: ...
def register_backend(
    compiler_fn: Backend | None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
    *,
    supports_dynamic_shapes: bool = False,
) -> Any:
    """Register a backend under a name, by default its ``__name__``. Can be used as a decorator, also without arguments.

    tags: words by which :func:`list_backends` excludes the backend ("debug", "experimental").

    supports_dynamic_shapes: the backend compiles for sizes that are symbols. A size, int or float that has differed
    between calls is then a SymInt or SymFloat, and all of them belong to one torch ShapeEnv. Numbers known only at run
    time are in the graph. What the backend assumes about a size must be recorded in the ShapeEnv while it compiles, as
    happens when it compares a SymInt. A callable with the attribute ``supports_dynamic_shapes = True`` is such a
    backend as well, without a registration.

    Raises TypeError if the backend is not callable, and ValueError if it has no name or the name is "eager".

    >>> @godynamo.register_backend
    ... def my_backend(gm, example_inputs):
    ...     return gm.forward
    """
    if compiler_fn is None:
        return functools.partial(
            register_backend, name=name, tags=tags, supports_dynamic_shapes=supports_dynamic_shapes
        )
    if not callable(compiler_fn):
        raise TypeError(f"a backend is a callable (gm, example_inputs), not {compiler_fn!r}")
    word = name or str(getattr(compiler_fn, "__name__", ""))
    if not word:
        raise ValueError("a backend needs a name")
    if word == "eager":
        raise ValueError("the name 'eager' is the built-in pass-through backend's")
    _own[word] = compiler_fn
    _tags[word] = (tags,) if isinstance(tags, str) else tuple(tags)
    (_dynamic.add if supports_dynamic_shapes else _dynamic.discard)(word)
    return compiler_fn


def register_debug_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """Call register_backend(tags=("debug",)): list_backends() omits the backend by default."""
    return register_backend(compiler_fn, name, ("debug",))


def register_experimental_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """Call register_backend(tags=("experimental",)): list_backends() omits the backend by default."""
    return register_backend(compiler_fn, name, ("experimental",))


def is_own(name: str) -> bool:
    """Return whether a backend is registered under this name; it then comes before torch's."""
    return name in _own


def registered() -> list[Backend]:
    """Return the registered backends; optimize() uses them to distinguish a backend from a function."""
    return list(_own.values())


@functools.lru_cache(maxsize=1)
def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=_ENTRY_POINTS)}


def _torch_backends() -> list[str]:
    from torch._dynamo.backends.registry import list_backends as torch_list

    return list(torch_list(exclude_tags=()))


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """List the names that ``backend=`` accepts: "eager", registered backends, entry points and torch's backends.

    exclude_tags: omit backends registered with one of these tags; None or () lists all. Imports torch._dynamo.
    """
    from torch._dynamo.backends.registry import list_backends as torch_list

    out = (exclude_tags,) if isinstance(exclude_tags, str) else tuple(exclude_tags or ())
    own = [name for name in _own if not set(_tags[name]) & set(out)]
    return sorted({"eager", *own, *_entry_points(), *torch_list(exclude_tags=out)})


def lookup_backend(backend: str | Backend) -> Backend:
    """Return the backend with a name; a callable is returned unchanged.

    Raises exc.InvalidBackend, a ValueError that suggests similar names, for an unknown name, and TypeError for an
    object that is neither a name nor a callable.
    """
    if not isinstance(backend, str):
        if not callable(backend):
            raise TypeError(f"a backend is a name or a callable (gm, example_inputs), not {backend!r}")
        return backend
    if backend == "eager":
        return _eager
    if backend in _own:
        return _own[backend]
    if backend in _entry_points():
        return _entry_points()[backend].load()  # type: ignore[no-any-return]
    names = _torch_backends()
    if backend not in names:
        near = difflib.get_close_matches(backend, {"eager", *_own, *_entry_points(), *names}, n=3)
        hint = f"; near it: {', '.join(map(repr, near))}" if near else "; godynamo.list_backends() has all names"
        raise exc.InvalidBackend(f"no backend is named {backend!r}{hint}")
    from torch._dynamo.backends.registry import lookup_backend as torch_lookup

    return torch_lookup(backend)


def _eager(gm: Any, _example_inputs: Sequence[Any]) -> Any:
    return gm.forward


def by_name(name: str, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> Backend:
    """Return the backend for a name. The name is looked up at once, so that optimize() raises if it is unknown."""
    backend = Named(name, mode, dict(options or {}), dynamic)
    backend.resolve()
    return backend


class Named:
    """A backend given by name, with torch.compile's mode and options. A pickle contains only these arguments."""

    __godynamo_backend__ = True

    def __init__(self, name: str, mode: str | None, options: dict[str, Any], dynamic: bool | None) -> None:
        #: the name, torch.compile's mode and options, and whether sizes are symbols
        self.arguments = (name, mode, options, dynamic)
        self.__name__ = name
        self._resolved: Backend | None = None

    def resolve(self) -> Backend:
        """Look the backend up and return it. Raises ValueError for an unknown name."""
        if self._resolved is None:
            name, mode, options, dynamic = self.arguments
            found = lookup_backend(name)
            plain = mode in (None, "default") and not options
            if name in _own or plain:
                self._resolved = functools.partial(found, **({"options": options} if options else {}))
            elif name == "inductor":
                # torch.compile interprets mode and options in these two classes.
                self._resolved = torch._TorchCompileInductorWrapper(mode, options or None, dynamic)
            else:
                self._resolved = torch._TorchCompileWrapper(name, mode, options or None, dynamic)
        return self._resolved

    @property
    def name(self) -> str:
        """The name by which the backend was given."""
        return self.arguments[0]

    @property
    def of_torch(self) -> bool:
        """Whether this is one of torch's backends that may replace the graph's operators."""
        name = self.name
        return name not in _RUN_OPERATORS and name not in _own and name not in _entry_points()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Any:
        return self.resolve()(gm, example_inputs)

    def __reduce__(self) -> Any:
        return Named, self.arguments


#: torch's backends that run the graph's operators unchanged
_RUN_OPERATORS = {"eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "ts"}


def takes_symbols(backend: Any) -> bool:
    """Return whether a backend is declared to compile for sizes that are symbols; see register_backend."""
    if isinstance(backend, Named):
        if backend.name in _dynamic:
            return True
        backend = _own.get(backend.name)
    elif any(_own[name] is backend for name in _dynamic):
        return True
    return getattr(backend, "supports_dynamic_shapes", None) is True


def takes_apart(backend: Any) -> bool:
    """Return whether a backend is one of torch's backends that trace the graph with AOTAutograd.

    With such a backend recurrent layers draw other random numbers, and an LSTM's graph does not run. torch.compile
    breaks the graph at such layers, and so does godynamo.
    """
    if isinstance(backend, Named):
        return backend.of_torch
    return type(backend).__module__ == "torch._dynamo.backends.common"
