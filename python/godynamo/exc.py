"""Exceptions that users can see. After any other failure of a translation, CPython runs the call."""

from __future__ import annotations

#: text on how to get a C++ compiler for inductor
_CXX_REMEDY = "install one (Debian: apt-get install g++) or name one with CXX"


class TorchDynamoException(RuntimeError):
    """Base class of godynamo's exceptions."""


class Unsupported(TorchDynamoException):
    """A graph break with ``nopython=True``. The text has the reason and the place in the user's code.

    ``code`` is the break's code in docs/graph_breaks.md, or "". ``stack`` contains (function, file, line), innermost
    frame first.
    """

    def __init__(
        self,
        text: str,
        *,
        code: str = "",
        reason: str = "",
        hint: str = "",
        stack: tuple[tuple[str, str, int], ...] = (),
    ) -> None:
        super().__init__(text)
        self.code = code
        self.reason = reason or text
        self.hint = hint
        self.stack = stack


class RecompileError(TorchDynamoException):
    """A call would be translated under set_stance("fail_on_recompile"), or recompiled with config.error_on_recompile.

    The text names the function and the failed guards.
    """


class FailOnRecompileLimitHit(TorchDynamoException):
    """A code object has reached its limit of entries, and config.fail_on_recompile_limit_hit is set."""


class ComptimeError(TorchDynamoException):
    """A function passed to godynamo.comptime raised while translating; its exception is ``__cause__``."""


class TorchRuntimeError(TorchDynamoException):
    """An operation raised while the metadata of its result was computed."""


class InvalidBackend(TorchDynamoException, ValueError):
    """No backend has this name."""


class BackendCompilerFailed(TorchDynamoException):
    """The backend raised; its exception is ``__cause__`` and ``inner_exception``."""

    def __init__(self, backend_name: str, inner_exception: BaseException) -> None:
        kind = type(inner_exception).__name__
        if kind == "InvalidCxxCompiler":  # inductor's class, compared by name to avoid importing inductor
            text = f"backend={backend_name!r} found no C++ compiler, which it needs on the CPU: {_CXX_REMEDY}"
        else:
            text = f"backend={backend_name!r} raised:\n{kind}: {inner_exception}"
        super().__init__(text)
        self.backend_name = backend_name
        self.inner_exception = inner_exception

    def __reduce__(self) -> tuple[type[BackendCompilerFailed], tuple[str, BaseException]]:
        """Pickle by the two arguments."""
        return type(self), (self.backend_name, self.inner_exception)


class InternalTorchDynamoError(TorchDynamoException):
    """A bug in godynamo. It is never raised to users: the call runs in CPython, and the error is logged."""


class InvalidBackendResult(TorchDynamoException, TypeError):
    """A backend has returned an object that is not callable, or one that returns a wrong number of values."""
