"""``godynamo explain``: reports the translations of one call of a user function as text, JSON, a page or a picture."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import godynamo
from godynamo._explain import explain

from .calls import at_call
from .dis import split_target
from .problem import Problem, need_core
from .run import backend_named
from .script import Target

#: option → function that makes the contents of the option's file
_FILES: dict[str, Callable[[explain.Explanation], str]] = {
    "json": lambda e: e.to_json() + "\n",
    "html": lambda e: e.to_html(),
    "dot": lambda e: e.to_dot(),
    "svg": lambda e: e.to_svg(),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="godynamo explain", add_help=False)
    parser.add_argument("--module", action="store_true")
    parser.add_argument("--to-end", action="store_true")
    parser.add_argument("--call", type=int, default=1)
    parser.add_argument("--args")
    parser.add_argument("--backend")
    for option in _FILES:
        parser.add_argument(f"--{option}")
    parser.add_argument("target")
    parser.add_argument("arguments", nargs="*")
    return parser


def main(arguments: list[str]) -> int:
    """See ``godynamo explain --help``. Returns the program's exit code if that is not 0."""
    options = _parser().parse_args(arguments)
    need_core()
    godynamo.config.cache_dir = ""  # the output shows what the translator does, whatever is stored
    name, function = split_target(options.target)
    files = {option: path for option in _FILES if (path := getattr(options, option))}
    _check(files)
    backend = backend_named(options.backend) if options.backend else None
    found: list[explain.Explanation] = []

    def act(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if backend is not None:
            call = godynamo.optimize(**{**explain.asked(call), "backend": backend})(call)
        explanation, error = explain.explain_call(call, args, kwargs)
        explanation.name = f"{name}:{function}"
        found.append(explanation)
        if error is not None:
            raise error
        return explanation.result

    target = Target(name, tuple(options.arguments), options.module)
    with _own_stdout("-" in files.values()) as out:
        code = at_call(target, function, act, options.call, options.args, stop=not options.to_end)
        sys.stdout.flush()
        if not found:
            return code
        for option, path in files.items():
            _write(path, _FILES[option](found[0]), out)
        if not files:
            out.write(str(found[0]) + "\n")
        out.flush()
    return code


def _check(files: dict[str, str]) -> None:
    """Check, before the program runs, that each file can be written and that at most one is written to stdout."""
    if list(files.values()).count("-") > 1:
        raise Problem("stdout (-) takes one of --json, --html, --dot and --svg: give the others a file")
    for option, path in files.items():
        if path == "-":
            continue
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            why = "it is a folder" if os.path.isdir(path) else f"{folder} is no folder that can be written to"
            raise Problem(f"--{option} {path}: {why}")


def _write(path: str, text: str, out: Any) -> None:
    if path == "-":
        out.write(text)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from None


@contextlib.contextmanager
def _own_stdout(apart: bool) -> Iterator[Any]:
    """Yield the stream for the report. With ``apart``, all other output, also of children, goes to stderr."""
    if not apart:
        yield sys.stdout
        return
    sys.stdout.flush()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)
        yield out
