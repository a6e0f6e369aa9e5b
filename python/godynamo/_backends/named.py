"""Backends by name: registered ones, those of packages, torch's own.

A backend is called as ``backend(gm, example_inputs)``: a real torch.fx.GraphModule, all of whose inputs (including
lifted parameters) are placeholders, and the real input tensors. It returns a callable that takes the inputs
positionally and returns a sequence of outputs. torch._dynamo is imported only when one of torch's backends is
requested: the import takes a second.
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


@overload
def register_backend(compiler_fn: B, name: str | None = None, tags: Sequence[str] = ()) -> B: ...
@overload
def register_backend(
    compiler_fn: None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable[[B], B]: ...
def register_backend(compiler_fn: Backend | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Register a backend under a name (default: its ``__name__``); also a decorator, with or without arguments.

    tags: words by which :func:`list_backends` excludes it ("debug", "experimental"). Raises TypeError if it is not
    callable, ValueError if it has no name or the name is "eager".

    >>> @godynamo.register_backend
    ... def my_backend(gm, example_inputs):
    ...     return gm.forward
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"a backend is a callable (gm, example_inputs), not {compiler_fn!r}")
    word = name or str(getattr(compiler_fn, "__name__", ""))
    if not word:
        raise ValueError("a backend needs a name")
    if word == "eager":
        raise ValueError("the name 'eager' is the built-in pass-through backend's")
    _own[word] = compiler_fn
    _tags[word] = (tags,) if isinstance(tags, str) else tuple(tags)
    return compiler_fn


def register_debug_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """Call register_backend(tags=("debug",)): list_backends() omits the backend by default."""
    return register_backend(compiler_fn, name, ("debug",))


def register_experimental_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """Call register_backend(tags=("experimental",)): list_backends() omits the backend by default."""
    return register_backend(compiler_fn, name, ("experimental",))


def registered() -> list[Backend]:
    """Return the registered backends, to distinguish a backend from a function."""
    return list(_own.values())


@functools.lru_cache(maxsize=1)
def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=_ENTRY_POINTS)}


def _torch_backends() -> list[str]:
    from torch._dynamo.backends.registry import list_backends as torch_list

    return list(torch_list(exclude_tags=()))


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """List the names that ``backend=`` accepts: "eager", registered ones, entry points, torch's. Imports torch._dynamo.

    exclude_tags: omit those registered with one of these tags; None or (): list all.
    """
    from torch._dynamo.backends.registry import list_backends as torch_list

    out = (exclude_tags,) if isinstance(exclude_tags, str) else tuple(exclude_tags or ())
    own = [name for name in _own if not set(_tags[name]) & set(out)]
    return sorted({"eager", *own, *_entry_points(), *torch_list(exclude_tags=out)})


def lookup_backend(backend: str | Backend) -> Backend:
    """Return the backend of a name; a callable is returned unchanged.

    Raises exc.InvalidBackend, a ValueError that suggests similar names, and TypeError for any other object.
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
    """Return the backend for a name, resolved now so that optimize() raises for an unknown name."""
    backend = Named(name, mode, dict(options or {}), dynamic)
    backend.resolve()
    return backend


class Named:
    """A backend given by name, with torch.compile's mode and options; pickled as these."""

    __godynamo_backend__ = True

    def __init__(self, name: str, mode: str | None, options: dict[str, Any], dynamic: bool | None) -> None:
        self._key = (name, mode, options, dynamic)
        self.__name__ = name
        self._resolved: Backend | None = None

    def resolve(self) -> Backend:
        """Look the backend up; ValueError for an unknown name."""
        if self._resolved is None:
            name, mode, options, dynamic = self._key
            found = lookup_backend(name)
            plain = mode in (None, "default") and not options
            if name in _own or plain:
                self._resolved = functools.partial(found, **({"options": options} if options else {}))
            elif name == "inductor":
                # torch.compile's own interpretation of mode and options.
                self._resolved = torch._TorchCompileInductorWrapper(mode, options or None, dynamic)
            else:
                self._resolved = torch._TorchCompileWrapper(name, mode, options or None, dynamic)
        return self._resolved

    @property
    def of_torch(self) -> bool:
        """Whether it is a torch backend, other than those that run the graph's operators unchanged."""
        name = self._key[0]
        return name not in _RUN_OPERATORS and name not in _own and name not in _entry_points()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Any:
        return self.resolve()(gm, example_inputs)

    def __reduce__(self) -> Any:
        return Named, self._key


#: torch's backends that run the graph's operators themselves
_RUN_OPERATORS = {"eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "ts"}


def takes_apart(backend: Any) -> bool:
    """Return whether a backend is one of torch's that trace the graph with AOTAutograd.

    Recurrent layers then draw other random numbers, and an LSTM's graph does not run; torch.compile also breaks there.
    """
    if isinstance(backend, Named):
        return backend.of_torch
    return type(backend).__module__ == "torch._dynamo.backends.common"
