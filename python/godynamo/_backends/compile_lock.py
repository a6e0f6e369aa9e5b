"""One backend compiles at a time in a process.

What backends are made of is not made for threads: FX's patches, AOTAutograd's contexts and inductor's caches are state of
the process, and torch.compile has never called two backends at once (its compile_lock). Seen without a lock: aot_eager on two
threads raises "CURRENT_PATCHER is None in finally block". So backends, a user's own too, run under torch's lock.

The lock is taken by the thread that translates, within the call into Python: waiting for it gives up the GIL. The translator
itself needs none.
"""

from __future__ import annotations

import os
import sys
from threading import RLock
from typing import Any

_own: Any = RLock()


def compile_lock() -> Any:
    """The lock to hold around a backend: torch.compile's, so that it and we exclude each other too.

    While torch._dynamo is not imported it is one of our own: importing it takes a second, and a backend that needs it has
    imported it by then. Never both are taken: torch.compile may come in here with its own lock in hand.
    """
    return getattr(sys.modules.get("torch._dynamo.convert_frame"), "compile_lock", _own)


def _in_child() -> None:
    """A lock that another thread held at the fork would stay locked for good: that thread is not in the child."""
    for lock in (_own, compile_lock()):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(after_in_child=_in_child)
