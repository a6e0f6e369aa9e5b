"""Writes the files of a trace: one JSON object per line, one series of files per process, rotated by size.

docs/trace.md defines the format. A failure here (a directory that cannot be written, a full disk) is reported once, as
a warning of the logger ``godynamo``. It ends the trace, and the program continues.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

log = logging.getLogger("godynamo")

#: maximum length of a line; in a longer line, long texts are cut
LINE_LIMIT = 8 << 20


def start_time() -> float:
    """Return the time at which this process started, in seconds since the epoch; the current time if it is unknown."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            ticks = int(stat.read().rsplit(b")", 1)[1].split()[19])
        with open("/proc/stat", "rb") as stat:
            boot = next(int(line.split()[1]) for line in stat if line.startswith(b"btime"))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return time.time()


class TraceFiles:
    """The series of files that one process writes into a directory.

    ``header(number)`` makes the first object of a file. A file that has reached ``size`` bytes is closed, and the next
    file is started. If there are more than ``keep`` files, the oldest is removed. Every file can be read without the
    others.
    """

    def __init__(self, directory: str, size: int, keep: int, header: Callable[[int], Mapping[str, Any]]) -> None:
        self._directory = os.path.abspath(directory)
        self._size, self._keep, self._header = size, keep, header
        self.pid = os.getpid()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(start_time()))
        self._stem = os.path.join(self._directory, f"godynamo-{stamp}-{self.pid}")
        self._number, self._file, self._written = -1, -1, 0
        self._names: list[str] = []
        self._lock = threading.RLock()  # a signal handler may run while its own thread writes

    def write(self, event: Mapping[str, Any]) -> None:
        """Append one object. Raises OSError."""
        line = _line(event)
        with self._lock:
            if self._file < 0 or (self._written and self._written + len(line) > self._size):
                self._next()
            self._append(line)

    def close(self) -> None:
        """Close the file; the next object starts a new one."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def forked(self) -> None:
        """Release the parent's file in a forked child; the child starts its own series of files."""
        self._lock = threading.RLock()
        self.close()

    def _next(self) -> None:
        self.close()
        os.makedirs(self._directory, exist_ok=True)
        while self._file < 0:
            self._number += 1
            name = f"{self._stem}.{self._number}.jsonl"
            try:
                self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            except FileExistsError:  # from an earlier process with the same number that started in the same second
                continue
        self._written = 0
        self._names.append(name)
        self._append(_line(self._header(self._number)))
        while len(self._names) > self._keep:
            oldest = self._names.pop(0)
            with contextlib.suppress(FileNotFoundError):  # another program has removed it
                os.unlink(oldest)

    def _append(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            n = os.write(self._file, rest)
            self._written += n
            rest = rest[n:]


def _line(event: Mapping[str, Any]) -> bytes:
    # json.dumps escapes all non-ASCII characters: lone surrogates in file names have no UTF-8, and readers could take
    # some characters for line breaks.
    text = json.dumps(event, default=_text_of, separators=(",", ":"))
    if len(text) > LINE_LIMIT:
        text = json.dumps(_cut(event), default=_text_of, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _text_of(value: object) -> str:
    return f"<{type(value).__name__}>"  # JSON cannot represent the object, and its repr() may run user code


def _cut(value: Any) -> Any:
    """Return the event with long texts cut and marked as cut, and long lists cut."""
    if isinstance(value, str) and len(value) > LINE_LIMIT // 16:
        return (
            f"{value[: LINE_LIMIT // 16]}\n... {len(value) - LINE_LIMIT // 16} characters more, left out of the trace"
        )
    if isinstance(value, Mapping):
        return {k: _cut(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(v) for v in value[:20_000]]
    return value
