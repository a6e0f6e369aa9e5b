"""The stance of the process decides what happens to calls that would be translated."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import Any, TypeVar

from .._core import core
from . import registry

F = TypeVar("F", bound=Callable[..., Any])

#: name -> the core's number (pyhook/core/runtime.h)
STANCES = {
    "default": 0,
    "force_eager": 1,
    "eager_on_recompile": 2,
    "fail_on_recompile": 3,
    "eager_then_compile": 4,
    "aot_eager_then_compile": 4,
}

_now = "default"


def get_stance() -> str:
    """Return the current stance."""
    return _now


def _take(stance: str) -> None:
    global _now
    core.set_config(stance=STANCES[stance])
    _now = stance


def _code(fn: Any) -> Any:
    return fn.__code__


class set_stance:
    """Set the stance of the process. Can be used as a function, in ``with``, and as a decorator of a function.

    >>> godynamo.set_stance("force_eager")  # from here on
    set_stance('force_eager')
    >>> with godynamo.set_stance("fail_on_recompile"):  # in here
    ...     pass
    >>> @godynamo.set_stance("default")  # while it runs
    ... def f(x): ...
    >>> _ = godynamo.set_stance("default")

    A stance applies to all threads, like a stance of torch.compiler. It drops no translation and does not slow calls.

    Args:
        stance: one of these names.
            "default": a call that no translation serves is translated.
            "force_eager": everything runs in CPython, as without optimize().
            "eager_on_recompile": existing translations are used, and all other calls run in CPython.
            "fail_on_recompile": a call that would be translated raises exc.RecompileError, with the failed guards.
            "eager_then_compile" and "aot_eager_then_compile": the first call of each code object that has no
            translation runs in CPython.
        skip_guard_eval_unsafe: ignored, guards are always evaluated.
        force_backend: not supported, see Raises.

    Raises:
        ValueError: there is no such stance (the text suggests similar names).
        RuntimeError: force_backend is given with a stance other than "default".
        NotImplementedError: force_backend is given. Pass the backend to optimize() instead.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if not isinstance(stance, str):
            raise TypeError(f"a stance is a name, not {stance!r}")
        if stance not in STANCES:
            near = difflib.get_close_matches(stance, STANCES, n=3) or list(STANCES)
            raise ValueError(f"no stance is named {stance!r}; near it: {', '.join(map(repr, near))}")
        if force_backend is not None:
            if stance != "default":
                raise RuntimeError(f"force_backend goes with the stance 'default', not with {stance!r}")
            raise NotImplementedError("set_stance(force_backend=...) is not built; give optimize() the backend")
        self.stance = stance
        self.skip_guard_eval_unsafe = skip_guard_eval_unsafe
        self._before = _now
        _take(stance)

    def __enter__(self) -> None:
        _take(self.stance)

    def __exit__(self, *_: object) -> None:
        _take(self._before)

    def __call__(self, fn: F) -> F:
        """Wrap a function. The stance applies only while the function runs."""
        if not callable(fn):
            raise TypeError(f"set_stance() decorates a function, not {fn!r}")
        _take(self._before)
        stance = self.stance

        @functools.wraps(fn)
        def in_stance(*args: Any, **kwargs: Any) -> Any:
            before = _now
            _take(stance)
            try:
                return fn(*args, **kwargs)
            finally:
                _take(before)

        registry.register(in_stance, "opaque")
        core.mark_skip(_code(in_stance))
        return in_stance  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"set_stance({self.stance!r})"
