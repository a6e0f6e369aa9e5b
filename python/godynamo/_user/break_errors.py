"""error_on_graph_break: where a graph break is an error, block by block. The translator runs these functions
through."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


# The translator knows these three by themselves (callables._special); where nothing is translated they do nothing.


def region_here(error: bool) -> None:
    """A region begins, to the end of the calling function."""


def region_of_caller(error: bool) -> None:
    """A region begins in the function that called the calling one."""


def region_end() -> None:
    """The last region of the function that called the calling one ends."""


REGIONS = (region_here, region_of_caller, region_end)


class error_on_graph_break:
    """Make graph breaks errors while translating, or no errors, in a ``with`` block of captured code or in a function.

    >>> @godynamo.error_on_graph_break(True)
    ... def one_graph(x): ...
    >>> with godynamo.error_on_graph_break(False):  # in a function decorated so: here it may break
    ...     pass

    The innermost block around a break decides. A break in a function that is called in it counts, and exc.Unsupported
    is raised as under ``nopython=True``, which takes precedence. What follows a break that was allowed is a new piece
    of the frame, which knows of blocks that begin in it alone. TypeError for what is no bool.
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
