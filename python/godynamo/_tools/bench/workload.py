"""A call made in a loop: one Workload, prepared separately for each side, so that sides share no state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import same, timing

Transform = Callable[[Any], Any]  # a side's transformation of a callable: nothing, torch.compile, godynamo.optimize


@dataclass(frozen=True)
class Prepared:
    """One side, ready to be called.

    The statement is timed with `names` as its globals; it makes `calls` calls. `check` must return the same as under
    eager. `target`, `args` and `kwargs` are a call whose guards can be counted; target is the untransformed original.
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
        """Return a call of ``compiled``, a side's transformation of ``target``, with these arguments."""
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

    backend: for engine labels without a backend. seconds: approximate time of a round.
    """

    name: str
    about: str
    prepare: Callable[[Transform], Prepared]
    context: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    backend: str = "eager"
    suite: str = "micro"
    seconds: float = timing.ROUND_SECONDS

    def limit_for(self, backend: str) -> float:
        """Return the allowed difference to eager's result, as a share of a tensor's largest element.

        The micro set's is stricter than models': none of it computes differently under a compiler.
        """
        if self.suite == "micro":
            return 0.0 if backend == "eager" else 1e-5
        return same.limit_of(backend)
