"""Runs a program up to a call of one of its functions, runs an action instead of the call, and ends the program."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from .problem import Problem
from .script import Target, run_script

#: An action that replaces the call. It gets the function and the arguments; its exceptions reach the user's code.
Act = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class Stop(SystemExit):
    """Raised to end the program after the call. A SystemExit ends a thread without a traceback and runs ``finally``."""


def at_call(
    target: Target, function: str, act: Act, number: int = 1, arguments: str | None = None, stop: bool = True
) -> int:
    """Run a program up to the ``number``-th call of a function, run ``act`` instead, end the program and return 0.

    function: a name in the form that run_script() takes. arguments: the text between the parentheses of a call, such as
    "torch.ones(3), k=2". With arguments, the program runs to its end under another name than ``__main__``, and then the
    call is made in the program's namespace. stop=False: the program continues with the result of ``act``, and its exit
    code is returned.

    If the program ends before the call with an exception or with a code other than 0, that code is returned, and the
    exception is shown as Python shows it. Raises Problem if the program succeeds without making the call, and for
    unknown names.
    """
    watch = _Watch(act, number, stop)
    if arguments is None:
        code = run_script(target, {function: watch.wrap})
        if not watch.done and not code:
            if watch.calls:
                times = "once" if watch.calls == 1 else f"{watch.calls} times"
                raise Problem(
                    f"{function} was called only {times} while {target.name} ran: ask for --call {watch.calls}"
                )
            raise Problem(
                f"{function} was never called while {target.name} ran: name another, or give its arguments by --args"
            )
        return 0 if watch.done and stop else code
    found: list[Any] = []

    def keep(f: Any) -> Any:
        found.append(f)
        return f

    namespace: dict[str, Any] = {}
    code = run_script(target, {function: keep}, name="__godynamo_target__", namespace=namespace)
    if code:
        return code
    if not found:
        raise Problem(
            f"{target.name} did not define {function} while it ran: --args needs a function that is there at its end"
        )
    call = _callable(found[-1], function, namespace)
    try:
        expression = compile(f"__godynamo_call__({arguments})", "<--args>", "eval")
    except SyntaxError as error:
        raise Problem(f"--args {arguments!r} is not the inside of a call's parentheses: {error.msg}") from None
    with contextlib.suppress(Stop):
        eval(expression, {**namespace, "__godynamo_call__": watch.wrap(call)})
    return 0


class _Watch:
    def __init__(self, act: Act, number: int, stop: bool) -> None:
        self._act = act
        self._number = number
        self._stop = stop
        self._lock = threading.Lock()
        self.calls = 0
        self.done = False

    def wrap(self, found: Any) -> Any:
        """Return the replacement of a function, static method or class method."""
        if isinstance(found, (staticmethod, classmethod)):
            return type(found)(self.wrap(found.__func__))
        if not callable(found):
            raise Problem(f"{found!r} is no function")

        def in_place(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self.calls += 1
                mine = self.calls == self._number
            if not mine:
                return found(*args, **kwargs)
            result = self._act(found, args, kwargs)
            self.done = True
            sys.stdout.flush()
            if not self._stop:
                return result
            raise Stop(0)

        functools.update_wrapper(in_place, found)
        return in_place


def _callable(found: Any, function: str, namespace: dict[str, Any]) -> Any:
    """Return a function that can be called. A method is read from its class, and takes the instance first."""
    if not isinstance(found, (staticmethod, classmethod)):
        return found
    owner: Any = namespace
    for part in function.rpartition(":")[2].split("."):
        owner = owner[part] if owner is namespace else getattr(owner, part)
    return owner
