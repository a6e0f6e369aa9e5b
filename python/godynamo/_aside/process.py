"""The other process, as the program sees it."""

from __future__ import annotations

import os
import subprocess
import sys

from . import job as jobs

#: added to the niceness of the other process and of the C++ compilers that it starts
_NICE = 10


class Process:
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
