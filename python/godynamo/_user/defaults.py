"""The backend of optimize() and compile() if none is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: None: "eager" for optimize(), "inductor" for compile()
backend: str | Callable[..., Any] | None = None


def set_default_backend(new: str | Callable[..., Any] | None) -> None:
    """Make this the backend of optimize() and compile() if none is given; None: "eager" and "inductor" again.

    Raises ValueError for an unknown name, TypeError for an object that is not a name or a callable.
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
    """Return the backend of optimize() if none is given."""
    return "eager" if backend is None else backend
