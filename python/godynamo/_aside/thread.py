"""The thread that has graphs compiled by another process, one after the other, and loads the results.

The process is started at the first graph, and ends, with the thread, when there has been nothing to compile for some
time. Nothing is traced in this process: AOTAutograd saves and restores the random state of all threads while it traces.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import utils
from .._backends.compile_lock import compile_lock
from . import job as jobs
from .conditions import holding
from .graph import Aside
from .process import Process

log = logging.getLogger("godynamo")

#: seconds without a graph after which the process ends. It takes some seconds to start.
_IDLE = 60.0
#: the interpreter's switch interval, in seconds, while this thread imports and loads. With CPython's default, each
#: operation of the program that releases the GIL could wait 5 ms to get it back.
_TURN = 0.0001


@dataclass(frozen=True)
class Work:
    """A graph to compile."""

    graph: weakref.ref[Aside]
    job: jobs.Job
    settings: str  #: see job.settings()
    place: str  #: the graph's name in messages


class Compiling:
    """The graphs that wait, and the thread that has them compiled while there are any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._open = 0  # graphs without an answer
        self._thread: threading.Thread | None = None
        self._process: Process | None = None
        self._ending = False

    def put(self, work: Work) -> None:
        """Add a graph. Raises NotHandedOver if no thread can be started."""
        with self._changed:
            if self._ending:
                return
            self._open += 1
            self._waiting.put(work)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="godynamo compiles aside", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # too many threads, or the interpreter ends
                    self._open -= 1
                    self._waiting.get()
                    raise jobs.NotHandedOver(str(error)) from None
                self._thread = thread

    def wait(self, timeout: float | None) -> bool:
        """See wait_for_compilation()."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, timeout)

    def end(self) -> None:
        """Drop all graphs, and end the process and the thread, before the interpreter ends."""
        with self._changed:
            self._ending, thread = True, self._thread
            self._waiting.put(None)
            if self._process is not None:
                self._process.kill()
        if thread is not None:
            thread.join()

    def drop(self) -> None:
        """Forget the parent's thread and process in a forked child. The graphs that wait run as captured."""
        process = self._process
        self.__init__()  # type: ignore[misc]
        if process is not None:
            process.forget()

    def _work(self) -> None:
        while (work := self._next()) is not None:
            try:
                if work.graph() is not None:
                    self._compile(work)
            except Exception as error:
                if not self._ending:
                    log.warning("%s runs as captured; it could not be compiled aside: %s", work.place, error)
                    utils.counters["stats"]["graphs_failed_aside"] += 1
            finally:
                with self._changed:
                    self._open -= 1
                    self._changed.notify_all()

    def _next(self) -> Work | None:
        """Return the next graph. If there is none for some time, end the process and return None to end the thread."""
        try:
            work = self._waiting.get(timeout=_IDLE)
        except queue.Empty:
            work = None
        with self._changed:
            if work is None and not self._ending and not self._waiting.empty():
                work = self._waiting.get()
            if work is None:
                self._stop()
                self._thread = None
        return work

    def _compile(self, work: Work) -> None:
        """Have one graph compiled, and load the result if the program still has the graph."""
        with self._changed:
            if self._process is not None and self._process.settings != work.settings:
                self._stop()
            if self._ending:
                return
            if self._process is None:
                self._process = Process(work.settings)
            process = self._process
        with tempfile.TemporaryDirectory(prefix="godynamo-") as folder:
            path = os.path.join(folder, "compiled")
            try:
                process.ask(work.job, path)
                with _short_turns():  # not before: this call of the program is still being translated
                    _import_compiler()
                answer = process.answer()
            except BaseException as error:
                with self._changed:
                    status = self._stop()  # otherwise the next graph would receive the answer to this one
                if isinstance(error, (EOFError, OSError)):
                    raise RuntimeError(f"the compiling process ended with status {status}") from None
                raise
            if answer.why is not None:
                self._refused(work, answer.why)
                return
            if self._ending or work.graph() is None:
                return
            begin = time.perf_counter()
            with _short_turns():
                compiled = _loaded(path)
        if (graph := work.graph()) is not None:
            graph.here = None
            graph.run = _where(answer.conditions, work.job, compiled, graph.run)
            utils.counters["stats"]["graphs_compiled_aside"] += 1
            loaded = time.perf_counter() - begin
            log.info("%s was compiled aside in %.1f s and loaded in %.2f s", work.place, answer.seconds, loaded)

    def _refused(self, work: Work, why: str) -> None:
        utils.counters["stats"]["graphs_failed_aside"] += 1
        then = "its next call compiles it" if work.job.sizes is None else "it runs as captured"
        log.info("%s could not be compiled aside, %s: %s", work.place, then, why)
        if (graph := work.graph()) is not None:
            graph.refused(work.place)

    def _stop(self) -> int | None:
        """End the process, if there is one, and return its exit status.

        Only the thread calls this, since it may be reading the process's answers.
        """
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        return process.close()


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Shorten the switch interval for a ``with`` block. An interval that the program sets meanwhile is kept."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    ours = sys.getswitchinterval()
    try:
        yield
    finally:
        if sys.getswitchinterval() == ours:
            sys.setswitchinterval(before)


def _import_compiler() -> Any:
    """Return inductor's class of saved code. Importing it takes a second, in which the other process works."""
    import torch._inductor.compile_fx  # noqa: F401 - needed by load()
    from torch._inductor.standalone_compile import CompiledArtifact

    return CompiledArtifact


def _where(
    conditions: Sequence[Any], job: jobs.Job, compiled: Callable[..., Any], captured: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a callable that runs compiled code where its conditions on sizes hold, and else the captured graph."""
    holds = holding(conditions, job.sizes[2]) if job.sizes is not None else None
    if holds is None:
        return compiled

    def run(*inputs: Any) -> Any:
        return compiled(*inputs) if holds(inputs) else captured(*inputs)

    return run


def _loaded(path: str) -> Callable[..., Any]:
    """Return the callable that inductor has saved in a file."""
    with compile_lock():
        artifact: Any = _import_compiler().load(path=path, format="binary")
    # the artifact's own __call__ is another Python call around this function
    return getattr(artifact, "_compiled_fn", artifact)  # type: ignore[no-any-return]
