"""Provides the lock under which backends compile: only one at a time in a process.

Backends are not thread-safe: FX's patches, AOTAutograd's contexts and inductor's caches are process-wide. torch.compile
never calls two backends at once, because of its compile_lock. Without a lock, aot_eager on two threads raised
"CURRENT_PATCHER is None in finally block". So all backends, including custom ones, run under torch's lock.

The translating thread takes the lock in Python code, so it releases the GIL while it waits. The translator itself needs
no lock.
"""

from __future__ import annotations

import os
import sys
from threading import RLock
from typing import Any

_own: Any = RLock()


def compile_lock() -> Any:
    """Return the lock to hold around a backend: torch.compile's lock, so that torch.compile and godynamo take turns.

    Before torch._dynamo is imported, this is a lock of our own, since the import takes a second. A backend that needs
    torch._dynamo has imported it by then. Only one of the two locks is ever taken, because torch.compile may call
    godynamo while it holds its lock.
    """
    return getattr(sys.modules.get("torch._dynamo.convert_frame"), "compile_lock", _own)


def _in_child() -> None:
    """Reset the locks in a forked child: a lock held by another thread at the fork would stay locked forever."""
    for lock in (_own, compile_lock()):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(after_in_child=_in_child)
