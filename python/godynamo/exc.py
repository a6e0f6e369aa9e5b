"""The exceptions users meet. Everything else that goes wrong while translating ends in CPython running the call."""

from __future__ import annotations

#: how to get what inductor compiles with, in one line
_CXX_REMEDY = "install one (Debian: apt-get install g++) or name one with CXX"


class TorchDynamoException(RuntimeError):
    """Base of all of godynamo's exceptions."""


class Unsupported(TorchDynamoException):
    """With ``nopython=True``: a graph break, with its reason and where the user's code caused it.

    ``code`` is the break's number in docs/graph_breaks.md ("" where there is none), ``stack`` holds
    (function, file, line), innermost frame first.
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
    """A call would be translated under set_stance("fail_on_recompile"), or once more with config.error_on_recompile; the text
    names function and failed guards.
    """


class FailOnRecompileLimitHit(TorchDynamoException):
    """A code object has as many entries as it may, and config.fail_on_recompile_limit_hit is set."""


class ComptimeError(TorchDynamoException):
    """A function given to godynamo.comptime raised while translating; its exception is ``__cause__``."""


class TorchRuntimeError(TorchDynamoException):
    """An operation raised while its result's metadata was computed."""


class InvalidBackend(TorchDynamoException, ValueError):
    """No backend has this name."""


class BackendCompilerFailed(TorchDynamoException):
    """The backend raised; its exception is ``__cause__`` and ``inner_exception``."""

    def __init__(self, backend_name: str, inner_exception: BaseException) -> None:
        kind = type(inner_exception).__name__
        if kind == "InvalidCxxCompiler":  # inductor's, whose module is imported late
            text = f"backend={backend_name!r} found no C++ compiler, which it needs on the CPU: {_CXX_REMEDY}"
        else:
            text = f"backend={backend_name!r} raised:\n{kind}: {inner_exception}"
        super().__init__(text)
        self.backend_name = backend_name
        self.inner_exception = inner_exception

    def __reduce__(self) -> tuple[type[BackendCompilerFailed], tuple[str, BaseException]]:
        """Pickles by its two arguments."""
        return type(self), (self.backend_name, self.inner_exception)


class InternalTorchDynamoError(TorchDynamoException):
    """A bug of ours. It is raised nowhere in a user's call: the call runs in CPython and the error is logged."""


class InvalidBackendResult(TorchDynamoException, TypeError):
    """A backend returned something that cannot be called; raised while compiling, not at the call."""
