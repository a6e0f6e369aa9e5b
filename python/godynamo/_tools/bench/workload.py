"""A Workload is a call made in a loop. It is prepared separately for each side, so that sides share no state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import same, timing

Transform = Callable[[Any], Any]  # what a side does to a callable: nothing, torch.compile or godynamo.optimize


@dataclass(frozen=True)
class Prepared:
    """A workload prepared for one side.

    `statement` makes `calls` calls and is timed with `names` as its globals. `check` must return the same as in eager
    mode. `target`, `args` and `kwargs` are a call whose guards can be counted; `target` is not transformed.
    """

    statement: str
    names: dict[str, Any]
    check: Callable[[], Any]
    calls: int = 1
    compiled: Any = None
    target: Any = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of_call(compiled: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Return a Prepared that calls ``compiled``, which a side has made from ``target``, with these arguments."""
        return Prepared(
            "f(*args, **kwargs)",
            {"f": compiled, "args": args, "kwargs": kwargs},
            lambda: compiled(*args, **kwargs),
            compiled=compiled,
            target=target,
            args=args,
            kwargs=kwargs,
        )


@dataclass(frozen=True)
class Workload:
    """A named call, with a description.

    backend: the backend for engines that name none. seconds: approximate time of a round.
    """

    name: str
    about: str
    prepare: Callable[[Transform], Prepared]
    context: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    backend: str = "eager"
    suite: str = "micro"
    seconds: float = timing.ROUND_SECONDS

    def limit_for(self, backend: str) -> float:
        """Return the allowed difference to eager mode's result, as a share of a tensor's largest element.

        The limit is stricter for the micro set, since nothing in it computes differently under a compiler.
        """
        if self.suite == "micro":
            return 0.0 if backend == "eager" else 1e-5
        return same.limit_of(backend)
