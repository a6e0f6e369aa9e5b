"""A command like python that starts programs in a fork of a process with torch, which saves its import.

:func:`python` returns the command. Tests pass it where they would pass ``sys.executable``. What the program and its
caller see is the same, with these exceptions: modules that ``import torch`` imports are in ``sys.modules`` from the
start, one more frame is below the program's first one, the program is not a child of the process that started it, and
the interpreter is not finalized at its end. Where they matter, a test uses ``sys.executable``.

server.py is the process that is forked, one for each process of pytest, and client.py the command.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from .client import read_at_start

HERE = Path(__file__).resolve().parent


@functools.cache
def python() -> str:
    """Return the path of the command; the first call starts the server, which ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="godynamo-forked-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, HERE / "server.py", folder / "socket"],
        env=environment,
        stdin=subprocess.PIPE,  # never written to: its end is the end of this process
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n", "the server of forked programs did not start"
    # As in a virtual environment, so that a program that embeds this Python finds its packages.
    for name in ("pyvenv.cfg", "lib"):
        (folder / name).symlink_to(Path(sys.prefix) / name)
    command = folder / "bin" / "python"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable} -IS\n"
        "import sys\n"
        f"sys.path.append({str(HERE)!r})\n"
        "import client\n"
        f"client.main({str(folder / 'socket')!r}, {sys.executable!r}, {read_at_start(environment)!r})\n"
    )
    command.chmod(0o755)
    return str(command)
