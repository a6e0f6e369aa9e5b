"""The settings of one optimize() call, read by attribute at each translation (pyhook/settings.go) and by the core
(Root)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import config


@dataclass(frozen=True, eq=False)
class Options:
    """Settings of one optimize() call; never changed afterwards.

    Pickles when the backend does, for copies of optimized modules.
    """

    #: called with (gm, example_inputs) for each graph; None: graphs are written inline as bytecode
    backend: Callable[..., Any] | None = None
    #: the backend's name in messages
    backend_name: str = "eager"
    #: whether the graph is written inline ("eager")
    inline: bool = True
    #: a graph break raises exc.Unsupported
    nopython: bool = False
    #: True: sizes are symbols from the start; False: never; None: only sizes that change
    dynamic: bool | None = None
    #: name of this call in logs and reports
    name: str | None = None
    #: torch.compile's mode, for backends given by name
    mode: str | None = None
    #: torch.compile's options, for backends given by name
    options: Mapping[str, Any] = field(default_factory=dict)
    #: entries per code object; None: config.cache_size_limit
    cache_size_limit: int | None = None
    #: calls that cannot be captured go into the graph; "checked": annotations are checked as well; None:
    #: config.python_ops
    python_ops: bool | str | None = None
    #: the program did not request translation: is_compiling() and the like answer as without godynamo
    transparent: bool = False
    #: facts learned about the backend: "takes_apart"
    found: set[str] = field(default_factory=set)

    @property
    def python_calls(self) -> bool:
        """Whether Python calls go into the graph."""
        return bool(config.python_ops if self.python_ops is None else self.python_ops)

    @property
    def takes_apart(self) -> bool:
        """Whether the backend decomposes operators; see named.takes_apart and aot."""
        if self.inline:
            return False
        if "takes_apart" in self.found:
            return True
        from .._backends import named

        return named.takes_apart(self.backend)

    @property
    def check_types(self) -> bool:
        """Whether annotations are checked against the results of Python calls."""
        return self.python_ops == "checked"
