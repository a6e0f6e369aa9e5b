"""Only one backend compiles at a time in a process.

Backends are not thread-safe: FX's patches, AOTAutograd's contexts and inductor's caches are process-wide, and
torch.compile never calls two backends at once (its compile_lock). Without a lock, aot_eager on two threads raised
"CURRENT_PATCHER is None in finally block". So backends, including custom ones, run under torch's lock.

The translating thread takes the lock inside the call into Python: waiting for it releases the GIL. The translator
itself needs no lock.
"""

from __future__ import annotations

import os
import sys
from threading import RLock
from typing import Any

_own: Any = RLock()


def compile_lock() -> Any:
    """Return the lock to hold around a backend: torch.compile's, so that it and godynamo exclude each other.

    Before torch._dynamo is imported it is a lock of our own: the import takes a second, and a backend that needs it
    has imported it by then. Only one of the two is ever taken: torch.compile may call godynamo while holding its lock.
    """
    return getattr(sys.modules.get("torch._dynamo.convert_frame"), "compile_lock", _own)


def _in_child() -> None:
    """Reset the locks in a forked child: a lock held by another thread at the fork would stay locked forever."""
    for lock in (_own, compile_lock()):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(after_in_child=_in_child)
