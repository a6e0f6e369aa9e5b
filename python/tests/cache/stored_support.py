"""Runs a program in new processes that share a folder of translations."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

#: children are forked from a server that has imported godynamo and torch, and has translated nothing
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["godynamo", "godynamo._stored.objects", "numpy"])
PYTHON = str(Path(__file__).resolve().parents[2])


def _start_server() -> None:
    """Start the server with a path that has godynamo. 3.11's server does not get its parent's sys.path."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = PYTHON if before is None else f"{PYTHON}{os.pathsep}{before}"
    try:
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


class Ran(NamedTuple):
    """What main() returned, and the number of translations that the process made and loaded."""

    result: Any
    translated: int
    loaded: int
    internal_errors: int


def _child(send: Connection, program: str, folder: str, settings: dict[str, Any], arguments: tuple[Any, ...]) -> None:
    try:
        import torch

        import godynamo
        from godynamo import _C, utils

        torch.set_num_threads(1)
        path = Path(program)
        sys.path.insert(0, str(path.parent))
        sys.dont_write_bytecode = True
        with godynamo.config.patch(cache_dir=folder, **{"cache_min_ms": 0, **settings}):
            module = __import__(path.stem)
            result = module.main(*arguments)
        loaded = utils.counters["stats"]["translations_loaded"]
        internal = _C.counters()["internal_errors"]
        send.send(Ran(result, utils.counters["frames"]["total"] - loaded, loaded, internal))
    except BaseException:
        send.send(traceback.format_exc())


class Programs:
    """A folder of source files, and a folder of translations."""

    def __init__(self, folder: Path) -> None:
        self.sources = folder / "sources"
        self.files = folder / "files"
        self.sources.mkdir()

    def write(self, name: str, text: str) -> None:
        (self.sources / f"{name}.py").write_text(text)

    def start(self, name: str, *arguments: Any, **settings: Any) -> tuple[Any, Connection]:
        """Start a process that calls main() of the program ``name``."""
        _start_server()
        receive, send = context.Pipe(duplex=False)
        program = str(self.sources / f"{name}.py")
        child = context.Process(target=_child, args=(send, program, str(self.files), settings, arguments))
        child.start()
        send.close()
        return child, receive

    def run(self, name: str, *arguments: Any, **settings: Any) -> Ran:
        """Run main() of the program ``name`` in a process of its own, and return what it did."""
        return self.ended(*self.start(name, *arguments, **settings))

    def ended(self, child: Any, receive: Connection) -> Ran:
        try:
            ran = receive.recv()
        except EOFError:
            child.join()
            raise AssertionError(f"the process ended with {child.exitcode}") from None
        child.join()
        assert isinstance(ran, Ran), ran
        assert ran.internal_errors == 0
        return ran

    def stored(self) -> list[Path]:
        return sorted(self.files.rglob("*.gdt"))
