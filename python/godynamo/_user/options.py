"""The settings of one optimize() call. Each translation reads the attributes (pyhook/settings.go), and so does the core
(Root)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import config


@dataclass(frozen=True, eq=False)
class Options:
    """Settings of one optimize() call, which never change afterwards.

    They can be pickled, for copies of optimized modules, if the backend can be pickled.
    """

    #: the function called with (gm, example_inputs) for each graph; None: graphs are written inline, as bytecode
    backend: Callable[..., Any] | None = None
    #: the backend's name in messages
    backend_name: str = "eager"
    #: whether the graph is written inline ("eager")
    inline: bool = True
    #: whether a graph break raises exc.Unsupported
    nopython: bool = False
    #: True: sizes are symbols from the start; False: sizes are never symbols; None: sizes that change become symbols
    dynamic: bool | None = None
    #: name of this call in logs and reports
    name: str | None = None
    #: torch.compile's mode, for backends given by name
    mode: str | None = None
    #: torch.compile's options, for backends given by name
    options: Mapping[str, Any] = field(default_factory=dict)
    #: maximum number of entries per code object; None: config.cache_size_limit
    cache_size_limit: int | None = None
    #: whether calls that cannot be captured become nodes of the graph; "checked": their results are also checked
    #: against annotations; None: config.python_ops
    python_ops: bool | str | None = None
    #: whether the program has not requested translation, so that is_compiling() and the like return False
    transparent: bool = False
    #: dynamic_shapes of compile(): a ShapesSpec of torch, or None
    shapes: Any = None
    #: whether the translation is for an exported program, which has no effects outside its graph
    exporting: bool = False
    #: facts learned about the backend: "takes_apart" if it decomposes operators
    found: set[str] = field(default_factory=set)

    @property
    def python_calls(self) -> bool:
        """Whether Python calls that cannot be captured become nodes of the graph."""
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
    def takes_symbols(self) -> bool:
        """Whether the backend is declared to compile for sizes that are symbols; see register_backend."""
        if self.inline:
            return False
        from .._backends import named

        return named.takes_symbols(self.backend)

    @property
    def fixes_sizes(self) -> bool:
        """Whether a compiled graph may run only at its examples' sizes. It may if the backend has changed a graph."""
        return "fixes_sizes" in self.found

    @property
    def any_size(self) -> bool:
        """Whether compiled graphs run at any sizes. They do if the backend has returned each graph unchanged."""
        return "any_size" in self.found and not self.fixes_sizes

    @property
    def check_types(self) -> bool:
        """Whether the results of Python calls are checked against annotations."""
        return self.python_ops == "checked"
