"""Stores the backend that optimize() and compile() use if none is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: the default backend; None means "eager" for optimize() and "inductor" for compile()
backend: str | Callable[..., Any] | None = None


def set_default_backend(new: str | Callable[..., Any] | None) -> None:
    """Set the backend that optimize() and compile() use if none is given. None restores "eager" and "inductor".

    Raises ValueError for an unknown name, and TypeError for an object that is neither a name nor a callable.
    """
    global backend
    if isinstance(new, str):
        if new != "eager":
            from .._backends import named

            named.lookup_backend(new)
    elif new is not None and not callable(new):
        raise TypeError(f"a backend is a name or a callable (gm, example_inputs), not {new!r}")
    backend = new


def get_default_backend() -> str | Callable[..., Any]:
    """Return the backend that optimize() uses if none is given."""
    return "eager" if backend is None else backend
