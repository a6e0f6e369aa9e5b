"""Recognizes backends that trace their graphs with AOTAutograd.

Such a backend runs the graph on fake tensors and decomposes operators. Recurrent layers then draw other random numbers,
an LSTM's graph does not run, and tensors whose metadata FakeTensor can only guess (_translator/vague.py) become dense
tensors without elements.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_creation_meta: Any = torch._C._autograd._get_creation_meta
_DEFAULT: Any = torch._C._autograd.CreationMeta.DEFAULT


def count() -> str:
    """Return a text that changes when AOTAutograd traces a graph in this process."""
    module = sys.modules.get("torch._functorch.aot_autograd")
    counter = getattr(module, "AOT_COUNTER", None)
    return "count(0)" if counter is None else repr(counter)  # calling next() would change the count


class _Traces(BaseException):
    """Raised when AOTAutograd starts to trace in a first run. A BaseException, so that no backend catches it."""


class _Counter:
    """Replaces AOTAutograd's counter of traces for good. AOTAutograd calls next() before each trace.

    next() raises _Traces on the threads in ``refusing``.
    """

    def __init__(self, counter: Any) -> None:
        self.counter = counter
        self.refusing: set[int] = set()

    def __next__(self) -> int:
        if threading.get_ident() in self.refusing:
            raise _Traces
        return next(self.counter)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return repr(self.counter)


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """Prevent this thread from tracing with AOTAutograd: _Traces is raised before the trace starts."""
    import torch._functorch.aot_autograd as module

    if not isinstance(module.AOT_COUNTER, _Counter):
        module.AOT_COUNTER = _Counter(module.AOT_COUNTER)  # type: ignore[assignment]
    refusing: set[int] = module.AOT_COUNTER.refusing  # type: ignore[attr-defined]
    thread = threading.get_ident()
    refusing.add(thread)
    try:
        yield
    finally:
        refusing.discard(thread)


class FirstRun:
    """A compiled graph whose operators must not be decomposed.

    Its backend may start to trace when the graph first runs. If it does, nothing of the graph has run yet. From then on
    the captured graph runs in place of the compiled one. ``found``, the set of facts about the backend, receives
    "takes_apart" for the next translations with this backend.
    """

    def __init__(
        self,
        compiled: Callable[..., Any],
        as_captured: Callable[[Sequence[Any]], Callable[..., Any]],
        found: set[str],
    ) -> None:
        self._run = self._first
        self._compiled, self._as_captured, self._found = compiled, as_captured, found

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)

    def _first(self, *args: Any) -> Any:
        try:
            with _refused():
                result = self._compiled(*args)
        except _Traces:
            self._found.add("takes_apart")
            self._compiled = self._as_captured(args)
            result = self._compiled(*args)
        self._run = self._compiled
        del self._as_captured  # the function holds the graph's rows
        return result


def with_fakes(error: BaseException | None) -> bool:
    """Return whether an exception, or one of its causes, was raised while fake tensors were being created or run."""
    while error is not None:
        traceback = error.__traceback__
        while traceback is not None:
            if str(traceback.tb_frame.f_globals.get("__name__")).startswith("torch._subclasses."):
                return True
            traceback = traceback.tb_next
        error = error.__cause__ or error.__context__
    return False


def of_a_leaf(t: torch.Tensor) -> bool:
    """Return whether ``t`` is a leaf that requires gradients, or a view of one.

    In grad mode, changing it in place raises, but a graph traced by AOTAutograd changes it without raising. Other views
    that must not be changed (created in no_grad mode, or one of several outputs) already raise during the trace.
    """
    base = t._base
    try:
        if base is None:
            return t.requires_grad and t.is_leaf
        # torch asks whether the base is a leaf, not whether it requires gradients (check_inplace)
        return t.requires_grad and base.is_leaf and _creation_meta(t) == _DEFAULT
    except RuntimeError:  # autograd rejects a view whose base has changed
        return False
