"""A graph that is being compiled."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import exc

log = logging.getLogger("godynamo")

#: compiles a graph in this process, for the given inputs
Here = Callable[[Sequence[Any]], Callable[..., Any]]


class Aside:
    """A graph that runs as captured until compiled code has been loaded for it.

    run: what runs now. here: compiles the graph in this process, if the other one cannot; it holds the graph's rows.
    """

    __slots__ = ("__weakref__", "here", "run")

    def __init__(self, captured: Callable[..., Any], here: Here | None) -> None:
        self.run = captured
        self.here = here

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)

    def refused(self, place: str) -> None:
        """Have the next call compile the graph in this process. If that fails, it runs as captured from then on.

        A graph whose sizes are symbols always runs as captured: its guards must be known before the first call.
        """
        captured, here, weak = self.run, self.here, weakref.ref(self)
        if here is None:
            return

        def compile_first(*inputs: Any) -> Any:
            run = captured  # also if the call is interrupted
            try:
                run = here(inputs)
            except exc.TorchDynamoException as error:
                log.warning("%s runs as captured: %s", place, error)
            finally:
                if (graph := weak()) is not None:
                    graph.run = run
            return run(*inputs)

        self.run = compile_first
