"""The command: asks the server to fork a process for a command line, and ends as this process ends.

It runs python itself if the server could not run the program in the same way, and if there is no server.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys
from collections.abc import Mapping

#: prefixes of variables that Python, torch and the C library read when they start
PREFIXES = ("PYTHON", "TORCH", "PYTORCH", "OMP", "MKL", "KMP", "GOMP", "CUDA", "LD_", "MALLOC", "GLIBC", "LC_", "LANG")
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the server's process has read; a program with others cannot be forked from it."""
    return {k: v for k, v in environment.items() if k.startswith(PREFIXES) and k != "PYTHONPATH"}


def parse(arguments: list[str]) -> tuple[list[str], list[str]] | None:
    """Return (the values of -W, the rest of the command line), or None if there are other options of Python."""
    warnings: list[str] = []
    rest = list(arguments)
    while len(rest) > 1 and rest[0] == "-W":
        warnings.append(rest[1])
        del rest[:2]
    if not rest or rest[0].startswith("-") and (rest[0] not in ("-c", "-m") or len(rest) < 2):
        return None
    return warnings, rest


def main(server: str, python: str, started_with: dict[str, str]) -> None:
    parsed = parse(sys.argv[1:])
    environment = dict(os.environ)
    if parsed and read_at_start(environment) == started_with and not any(map(os.isatty, range(3))):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(server)
        except OSError:
            pass
        else:
            run(connection, marshal.dumps((*parsed, environment, os.getcwd())))
    os.execv(python, [python, *sys.argv[1:]])


def run(connection: socket.socket, request: bytes) -> None:
    """Send the request and this process's standard streams, and end with the program's status."""
    socket.send_fds(connection, [len(request).to_bytes(8, "little")], [0, 1, 2])
    connection.sendall(request)
    answers = connection.makefile("rb")
    program = int(answers.readline())
    for number in FORWARDED:
        signal.signal(number, lambda number, _: os.kill(program, number))
    status = int(answers.readline() or -signal.SIGKILL)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
