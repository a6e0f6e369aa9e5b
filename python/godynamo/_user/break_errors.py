"""Defines error_on_graph_break, for blocks of code in which a graph break is an error.

The translator inlines the functions of this module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


# The translator recognizes these three functions (callables._special); in CPython they do nothing.


def region_here(error: bool) -> None:
    """Begin a region that ends when the calling function ends."""


def region_of_caller(error: bool) -> None:
    """Begin a region in the caller of the function that calls this one."""


def region_end() -> None:
    """End the last region of the caller of the function that calls this one."""


REGIONS = (region_here, region_of_caller, region_end)


class error_on_graph_break:
    """Make graph breaks errors, or allow them, in a ``with`` block of captured code or in a function.

    >>> @godynamo.error_on_graph_break(True)
    ... def one_graph(x): ...
    >>> with godynamo.error_on_graph_break(False):  # in such a function: here the graph may break
    ...     pass

    The innermost block around a break decides, also for breaks in functions that the block calls. A break that is an
    error raises exc.Unsupported, as with ``nopython=True``; ``nopython=True`` takes precedence over blocks. The code
    after an allowed break is translated separately, and only blocks that begin in that code count. Raises TypeError if
    the argument is not a bool.
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        if not isinstance(error_on_graph_break, bool):
            raise TypeError(f"error_on_graph_break() takes True or False, not {error_on_graph_break!r}")
        self.error_on_graph_break = error_on_graph_break

    def __enter__(self) -> None:
        region_of_caller(self.error_on_graph_break)

    def __exit__(self, *_: object) -> None:
        region_end()

    def __call__(self, fn: F) -> F:
        """Decorate a function."""
        if not callable(fn):
            raise TypeError(f"error_on_graph_break() decorates a function, not {fn!r}")
        error = self.error_on_graph_break

        @functools.wraps(fn)
        def in_region(*args: Any, **kwargs: Any) -> Any:
            region_here(error)
            return fn(*args, **kwargs)

        return in_region  # type: ignore[return-value]
