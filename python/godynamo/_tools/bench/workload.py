"""What is called in a loop: one Workload, made anew for every side so that no side sees another's state."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import same, timing

Transform = Callable[[Any], Any]  # what a side does to a function or module: nothing, torch.compile, godynamo.optimize


@dataclass(frozen=True)
class Prepared:
    """One side, ready to be called.

    The statement is timed with `names` as its globals; it makes `calls` calls. `check` gives what eager must give too.
    `target`, `args` and `kwargs` are a call whose guards can be told, target as it was before it was transformed.
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
        """A call of ``compiled``, which a side has made of ``target``, with these arguments."""
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
    """A named call, with what it is about.

    backend: for engines that name none. seconds: how long a round of it takes, about.
    """

    name: str
    about: str
    prepare: Callable[[Transform], Prepared]
    context: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    backend: str = "eager"
    suite: str = "micro"
    seconds: float = timing.ROUND_SECONDS

    def limit_for(self, backend: str) -> float:
        """What a result may be off eager's, as part of the largest element of a tensor. The micro set is held to more than
        models are: none of it computes in another way under a compiler."""
        if self.suite == "micro":
            return 0.0 if backend == "eager" else 1e-5
        return same.limit_of(backend)
