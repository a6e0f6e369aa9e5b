"""The process that is forked for each program: it has imported torch, and nothing else has happened in it."""

from __future__ import annotations

import atexit
import io
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading
import types
import warnings
from typing import NamedTuple

import numpy  # noqa: F401 (torch imports it when it is first needed)
import torch  # noqa: F401


class Program(NamedTuple):
    """A command line as the client has parsed it."""

    warnings: list[str]  # values of -W
    command: list[str]  # "-c" and code, "-m" and a module's name, or a file; then the arguments
    environment: dict[str, str]
    folder: str


def wait_for_program(path: str) -> Program:
    """Serve connections to the socket ``path``. Return only in processes that are to run a program."""
    del sys.path[0]  # this file's folder
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(16)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    while True:
        if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
            os._exit(0)  # the tests have ended
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            return forked(connection)
        connection.close()


def forked(connection: socket.socket) -> Program:
    """Read a request and fork a process for it, which returns. This process reports how the other one ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as requests:
        program = Program(*marshal.loads(requests.read(int.from_bytes(size, "little"))))
    pid = os.fork()
    if pid == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return program
    for stream in streams:
        os.close(stream)
    connection.sendall(b"%d\n" % pid)
    threading.Thread(target=end_with_client, args=(connection,), daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.sendall(b"%d\n" % status)
    os._exit(0)


def end_with_client(connection: socket.socket) -> None:
    """Kill this process and the program's when the client is killed. (Not every Python has ``os.pidfd_open``.)"""
    connection.recv(1)  # the client sends no more
    os.killpg(0, signal.SIGKILL)


def prepare(program: Program) -> types.ModuleType:
    """Give this process what Python would have made of the command line. Return the program's empty main module."""
    os.environ.clear()
    os.environ.update(program.environment)
    os.chdir(program.folder)
    sys.warnoptions.extend(program.warnings)
    for option in program.warnings:
        warnings._processoptions([option])  # type: ignore[attr-defined]
    kind, *rest = program.command
    if kind == "-m":
        sys.argv[:], first = ["-m", *rest[1:]], program.folder
    elif kind == "-c":
        sys.argv[:], first = ["-c", *rest[1:]], ""
    else:
        sys.argv[:], first = program.command, os.path.dirname(os.path.realpath(kind))
    sys.path[:0] = [first, *(p for p in program.environment.get("PYTHONPATH", "").split(os.pathsep) if p)]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    return main


def source(program: Program, main: types.ModuleType) -> types.CodeType:
    """Return the code of a program that is given by its text or its file."""
    kind, *rest = program.command
    if kind == "-c":
        return compile(rest[0], "<string>", "exec", dont_inherit=True)
    main.__file__ = kind
    with io.open_code(os.path.abspath(kind)) as file:
        return compile(file.read(), kind, "exec", dont_inherit=True)


def end(status: object) -> None:
    """End the process as sys.exit(status) would, but without finalizing the interpreter.

    That would write to most of the memory that the process shares with the server, and so copy it.
    """
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    os._exit((status or 0) & 0xFF)


program = wait_for_program(sys.argv[1])
main = prepare(program)
try:
    if program.command[0] == "-m":
        runpy._run_module_as_main(program.command[1])  # type: ignore[attr-defined]
    else:
        exec(source(program, main), main.__dict__)
except SystemExit as error:
    end(error.code)
except BaseException as error:
    # Without this file's frame the traceback is Python's own.
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
    sys.excepthook(type(error), error, error.__traceback__)
    end(1)
end(0)
