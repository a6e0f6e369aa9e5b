"""Runs graphs as captured until another process has compiled them (``config.compile_aside``).

One thread hands graphs to one process, one after the other, and loads what that process has compiled. The process is
started at the first graph and ends when there has been nothing to compile for some time. What is loaded replaces the
captured graph at the next call; the guards stay the same. Nothing is traced in this process: AOTAutograd saves and
restores the random state of all threads while it traces.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import logging
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import exc, utils
from .._backends.compile_lock import compile_lock
from . import job as jobs
from .conditions import holding

log = logging.getLogger("godynamo")

#: seconds without a graph after which the process ends. It takes some seconds to start.
_IDLE = 60.0
#: how much less the other process, with the C++ compiler that it starts, counts for the scheduler than the program
_NICE = 10
#: seconds after which a thread hands over the GIL while this thread imports and loads. CPython's default is 5 ms, and
#: each operation of the program that releases the GIL would wait so long.
_TURN = 0.0001


#: compiles a graph in this process, for the given inputs
Here = Callable[[Sequence[Any]], Callable[..., Any]]


class Aside:
    """A graph that runs as captured until compiled code has been loaded for it.

    run: what runs now. here: compiles the graph in this process, if the other one cannot; it holds the graph's rows.
    """

    __slots__ = ("__weakref__", "here", "run")

    def __init__(self, captured: Callable[..., Any], here: Here | None) -> None:
        self.run = captured
        self.here = here

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)

    def refused(self, place: str) -> None:
        """Have the next call compile the graph in this process. If that fails, it runs as captured from then on.

        A graph whose sizes are symbols always runs as captured: its guards must be known before the first call.
        """
        captured, here, weak = self.run, self.here, weakref.ref(self)
        if here is None:
            return

        def compile_first(*inputs: Any) -> Any:
            run = captured  # also if the call is interrupted
            try:
                run = here(inputs)
            except exc.TorchDynamoException as error:
                log.warning("%s runs as captured: %s", place, error)
            finally:
                if (graph := weak()) is not None:
                    graph.run = run
            return run(*inputs)

        self.run = compile_first


def start(
    rows: Sequence[Any],
    inputs: Sequence[Any],
    changed: Sequence[int],
    backend: Any,
    captured: Callable[..., Any],
    here: Here | None,
    sizes: jobs.Sizes | None = None,
) -> Aside | None:
    """Have a graph compiled by another process; return a callable that runs it meanwhile.

    Return None, and log the reason, if only this process can compile the graph. ``here`` is called later if the other
    process turns out not to be able to. ``sizes``: the arguments of symbolic.Sizes, if sizes are symbols. Calls whose
    sizes do not fulfil what the compiler has assumed about them run as captured.
    """
    try:
        if not _can_load():
            raise jobs.NotHandedOver("this torch cannot load what another process has compiled")
        graph = Aside(captured, here)
        job = jobs.described(rows, inputs, changed, backend, sizes)
        _compiling.put(_Work(weakref.ref(graph), job, jobs.settings(), _place(rows)))
    except jobs.NotHandedOver as reason:
        log.info("%s is compiled by this process: %s", _place(rows), reason)
        utils.counters["stats"]["graphs_not_compiled_aside"] += 1
        return None
    return graph


def _place(rows: Sequence[Any]) -> str:
    """Return words for a graph: the line of its first operation that has one."""
    for row in rows:
        if found := re.findall(r'File "(.*)", line (\d+), in (.*)', row[5] or ""):
            file, line, function = found[0]  # the outermost frame: that of the optimized function
            return f"the graph from {function} ({file}:{line})"
    return "a graph"


@dataclass(frozen=True)
class _Work:
    """A graph to compile."""

    graph: weakref.ref[Aside]
    job: jobs.Job
    settings: str  #: see job.settings()
    place: str  #: words for it


@functools.lru_cache(maxsize=1)
def _can_load() -> bool:
    return bool(sys.executable) and importlib.util.find_spec("torch._inductor.standalone_compile") is not None


def wait_for_compilation(timeout: float | None = None) -> bool:
    """Wait until no graph is being compiled aside, ``timeout`` seconds at most. Return whether none is.

    Call it before measuring, and where results must be the same in each run.
    """
    return _compiling.wait(timeout)


class _Compiling:
    """The graphs that wait, and the thread that has them compiled while there are any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._open = 0  # graphs without an answer
        self._thread: threading.Thread | None = None
        self._process: _Process | None = None
        self._ending = False

    def put(self, work: _Work) -> None:
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

    def _next(self) -> _Work | None:
        """Return the next graph, or None if the thread shall end. It ends together with the process."""
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

    def _compile(self, work: _Work) -> None:
        """Have one graph compiled, and load the result if the program still has the graph."""
        with self._changed:
            if self._process is not None and self._process.settings != work.settings:
                self._stop()
            if self._ending:
                return
            if self._process is None:
                self._process = _Process(work.settings)
            process = self._process
        with tempfile.TemporaryDirectory(prefix="godynamo-") as folder:
            path = os.path.join(folder, "compiled")
            try:
                process.ask(work.job, path)
                with _short_turns():  # not before: this call of the program is still being translated
                    _import_compiler()
                answer = process.answer()
            except (EOFError, OSError):
                with self._changed:
                    self._stop()
                raise RuntimeError(f"the compiling process ended with status {process.close()}") from None
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

    def _refused(self, work: _Work, why: str) -> None:
        utils.counters["stats"]["graphs_failed_aside"] += 1
        then = "its next call compiles it" if work.job.sizes is None else "it runs as captured"
        log.info("%s could not be compiled aside, %s: %s", work.place, then, why)
        if (graph := work.graph()) is not None:
            graph.refused(work.place)

    def _stop(self) -> None:
        """End the process. Only the thread does this, since it may be reading the process's answers."""
        if self._process is not None:
            self._process.kill()
            self._process.close()
            self._process = None


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    """Make threads take turns more often, for a ``with`` block. If the program changes the interval, it stays."""
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


class _Process:
    """The process that compiles."""

    def __init__(self, settings: str) -> None:
        self.settings = settings
        self._started = False
        code = (
            f"import os, sys\nos.nice({_NICE})\nsys.path[:] = {sys.path!r}\n"
            f"{settings}from godynamo._aside.worker import main\nmain()"
        )
        env = {key: value for key, value in os.environ.items() if not key.startswith("GODYNAMO_")}
        self._popen = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if "TORCH_LOGS" in env else subprocess.DEVNULL,
            env=env,
            bufsize=0,  # a buffer's lock may be held when another thread forks
            start_new_session=True,  # Ctrl-C in a terminal is for the program
        )

    def ask(self, job: jobs.Job, path: str) -> None:
        """Hand over a job, once the process has started. Raises EOFError or OSError if it has ended."""
        if not self._started:
            jobs.receive(self._popen.stdout)
            self._started = True
        jobs.send((job, path), self._popen.stdin)

    def answer(self) -> jobs.Answer:
        """Wait for the answer. Raises EOFError or OSError if the process ends."""
        return jobs.receive(self._popen.stdout)  # type: ignore[no-any-return]

    def kill(self) -> None:
        """End the process."""
        self._popen.kill()

    def close(self) -> int:
        """Wait for the end of the process and close the pipes; return its exit status."""
        status = self._popen.wait()
        self._close_pipes()
        return status

    def forget(self) -> None:
        """Close a forked child's ends of the pipes: the process ends when no process has them open."""
        self._popen.returncode = 0  # it is not this process's child, so nothing waits for it
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()


_compiling = _Compiling()
atexit.register(lambda: _compiling.end())
os.register_at_fork(after_in_child=lambda: _compiling.drop())
