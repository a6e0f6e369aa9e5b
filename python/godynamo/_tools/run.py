"""``godynamo run``: runs a program, optimizes all or chosen functions, and prints a summary at the end."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import godynamo
from godynamo._user.optimize import transparent

from . import summary
from .problem import Problem, nearest
from .script import Target, Wrap, run_script


def backend_named(name: str) -> Any:
    """Return the backend with a registered name, or the callable "module:name". Raises Problem for an unknown name."""
    module, found, attribute = name.partition(":")
    if found:
        sys.path.insert(0, os.getcwd())
        try:
            backend = getattr(importlib.import_module(module), attribute, None)
        except ImportError as error:
            raise Problem(f"backend {name}: {error}") from None
        finally:
            sys.path.remove(os.getcwd())
        if not callable(backend):
            raise Problem(f"backend {name}: module {module} has no callable {attribute}")
        return backend
    if name == "eager":
        return name
    try:
        godynamo.lookup_backend(name)
    except ValueError:
        known = godynamo.list_backends(None)
        raise Problem(f"there is no backend {name}{nearest(name, known)} (there are: {', '.join(known)})") from None
    except ImportError as error:
        raise Problem(f"backend {name} cannot be imported: {error}") from None
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="godynamo run", add_help=False)
    for switch in ("module", "nopython", "quiet", "off"):
        parser.add_argument(f"--{switch}", action="store_true")
    parser.add_argument("--function", action="append", default=[])
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--json")
    parser.add_argument("target", nargs="+")
    return parser


def main(arguments: list[str]) -> int:
    """See ``godynamo run --help``. Returns the program's exit code."""
    options = _parser().parse_args(arguments)
    backend = backend_named(options.backend)
    target = Target(options.target[0], tuple(options.target[1:]), options.module)
    if options.json and options.json != "-" and not os.path.isdir(os.path.dirname(os.path.abspath(options.json))):
        raise Problem(f"there is no folder for {options.json}")
    if options.off:
        return run_script(target)
    if options.nopython and not options.function:
        raise Problem(
            "--nopython is for functions named by --function: not everything a program calls can be one graph"
        )

    met: set[str] = set()

    def optimizer(name: str) -> Wrap:
        def optimized(function: Any) -> Any:
            if not callable(function) and not isinstance(function, (staticmethod, classmethod)):
                raise Problem(f"--function: {type(function).__name__} objects cannot be optimized: name a function")
            met.add(name)
            return transparent(godynamo.optimize(backend=backend, nopython=options.nopython))(function)

        return optimized

    def everything() -> AbstractContextManager[Any]:
        return nullcontext() if options.function else transparent(godynamo.optimize(backend=backend)).everywhere()

    recorder = summary.Recorder()
    code = 1
    interrupt: KeyboardInterrupt | None = None
    try:
        with recorder:
            code = run_script(target, {name: optimizer(name) for name in options.function}, everything)
    except KeyboardInterrupt as error:
        interrupt, code = error, 128 + signal.SIGINT
    except SystemExit as stop:  # before the program started
        return int(stop.code or 0)
    report = recorder.to_dict(code)
    sys.stdout.flush()
    for name in options.function:
        if name not in met:
            what = f"module {name.partition(':')[0]} was not imported" if ":" in name else "it was not defined"
            print(f"godynamo: --function {name} had no effect: {what} while {target.name} ran", file=sys.stderr)
    if options.json:
        summary.write(report, options.json)
    if not options.quiet and options.json != "-":
        print(summary.text(report), file=sys.stderr)
    if interrupt is not None:
        raise interrupt  # Python then shuts down in order and ends by the signal, so that a shell sees the signal
    return code
