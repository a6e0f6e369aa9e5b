"""Registers functions that are called when a translation starts or ends, as in torch._dynamo.callback.

>>> from godynamo.callback import on_compile_start
>>> @on_compile_start
... def started(args):
...     print("translating", args.compile_id)
>>> callback_handler.remove_start_callback(started)

Callbacks run on the translating thread, and nothing is translated while they run. An Exception that a callback raises
is reported by sys.unraisablehook and does not propagate; KeyboardInterrupt and SystemExit reach the caller. If no
callback is registered, a translation makes no call into this module.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from . import utils
from ._core import core


class CallbackTrigger(enum.Enum):
    """What caused the event. In godynamo this is always the translation of a frame."""

    DYNAMO = 1
    LAZY_BACKWARD = 2
    TRITON_AUTOTUNING = 3
    CUDAGRAPH_RECORDING = 4


@dataclass(frozen=True)
class CallbackArgs:
    """The argument of a callback."""

    callback_trigger: CallbackTrigger
    compile_id: str  #: "number of the code object/number of its existing translations"
    code: CodeType | None = None  #: the translated code object, the user's or a resume function's


Callback = Callable[[CallbackArgs], Any]

__all__ = [
    "CallbackArgs",
    "CallbackTrigger",
    "CompilationCallbackHandler",
    "callback_handler",
    "on_compile_end",
    "on_compile_start",
]


class CompilationCallbackHandler:
    """The registered callbacks; :data:`callback_handler` is the only instance."""

    def __init__(self) -> None:
        self.start_callbacks: list[Callback] = []
        self.end_callbacks: list[Callback] = []

    def register_start_callback(self, callback: Callback) -> Callback:
        """Call ``callback`` when a translation starts; return it."""
        return self._register(self.start_callbacks, callback)

    def register_end_callback(self, callback: Callback) -> Callback:
        """Call ``callback`` when a translation has ended; return it."""
        return self._register(self.end_callbacks, callback)

    def remove_start_callback(self, callback: Callback) -> None:
        """Remove a callback; raises ValueError if it is not registered."""
        self._remove(self.start_callbacks, callback)

    def remove_end_callback(self, callback: Callback) -> None:
        """Remove a callback; raises ValueError if it is not registered."""
        self._remove(self.end_callbacks, callback)

    def run_start_callbacks(self, args: CallbackArgs) -> None:
        """Call the start callbacks in the order of registration."""
        for callback in list(self.start_callbacks):
            callback(args)

    def run_end_callbacks(self, args: CallbackArgs) -> None:
        """Call the end callbacks in the order of registration."""
        for callback in list(self.end_callbacks):
            callback(args)

    def clear(self) -> None:
        """Remove all callbacks."""
        self.start_callbacks.clear()
        self.end_callbacks.clear()
        core.set_config(tells=0)

    def _register(self, callbacks: list[Callback], callback: Callback) -> Callback:
        if not callable(callback):
            raise TypeError(f"a callback is a function of one argument, not {callback!r}")
        callbacks.append(callback)
        core.set_config(tells=1)
        return callback

    def _remove(self, callbacks: list[Callback], callback: Callback) -> None:
        if callback not in callbacks:
            raise ValueError(f"{callback!r} is not registered")
        callbacks.remove(callback)
        core.set_config(tells=int(bool(self.start_callbacks or self.end_callbacks)))


callback_handler = CompilationCallbackHandler()


def on_compile_start(callback: Callback) -> Callback:
    """Decorate a function to be called when a translation starts."""
    return callback_handler.register_start_callback(callback)


def on_compile_end(callback: Callback) -> Callback:
    """Decorate a function to be called when a translation has ended."""
    return callback_handler.register_end_callback(callback)


_numbers: utils.CodeMap[int] = utils.CodeMap()
_last = [-1]


def _args(info: dict[str, Any]) -> CallbackArgs:
    code = info["code"]
    if code not in _numbers:
        _last[0] += 1
        _numbers[code] = _last[0]
    return CallbackArgs(CallbackTrigger.DYNAMO, f"{_numbers[code]}/{info['entries']}", code)


def compile_start(info: dict[str, Any]) -> None:
    """Run the start callbacks; called by the core."""
    callback_handler.run_start_callbacks(_args(info))


def compile_end(info: dict[str, Any]) -> None:
    """Run the end callbacks; called by the core."""
    callback_handler.run_end_callbacks(_args(info))
