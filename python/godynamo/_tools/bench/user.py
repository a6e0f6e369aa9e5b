"""Makes workloads from the user's own code: ``--module FILE:NAME``.

FILE is a path, or the name of a module that can be imported. NAME in FILE is one of

- a function, method or nn.Module with an attribute ``example_inputs``: a tuple of arguments, a dict of keyword
  arguments, or a function without parameters that makes one of these. Without the attribute, the global
  ``example_inputs`` of the file is used;
- a function without parameters, or a class of modules, that makes the workload: it returns ``(callable, args)``,
  ``(callable, args, kwargs)``, or a callable with example inputs as above;
- a function without parameters that returns anything else; the function itself is the workload.

    def attention():                       # --module model.py:attention
        return Attention(64).eval(), (torch.randn(8, 128, 64),)

A function that makes a callable or inputs is called once for each engine, with the same random seed, so that no engine
sees the state of another engine. A module that exists in the file is copied.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ..problem import Problem
from .engines import near
from .workload import Prepared, Transform, Workload

SUITE = "user"

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]

# This length suits calls of microseconds and calls of some milliseconds.
_ROUND_SECONDS = 0.01


def load(spec: str) -> Workload:
    """Return the workload FILE:NAME. Raises Problem if the file, the name or the example inputs are missing."""
    file, colon, name = spec.rpartition(":")
    if not colon or not file or not name:
        raise Problem(f"--module {spec}: FILE:NAME is wanted, for instance model.py:attention")
    module = _module(file)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("__")]
            raise Problem(f"{file} has no {name!r}{near(name, known)}")
        found = getattr(found, part)
    if not callable(found):
        raise Problem(f"{file}:{name} is {type(found).__name__}, nothing that can be called")
    make = _maker(spec, found, getattr(module, "example_inputs", None))

    def prepare(transform: Transform) -> Prepared:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            target, args, kwargs = make()
        return Prepared.of_call(transform(target), target, args, kwargs)

    about = (inspect.getdoc(found) or "").strip().partition("\n")[0] if not inspect.isclass(found) else ""
    return Workload(name, about or spec, prepare, suite=SUITE, seconds=_ROUND_SECONDS)


def _module(file: str) -> ModuleType:
    """Return the file as a module with the file's name, run once per process. Raises Problem for an error in it."""
    path = Path(file)
    try:
        if path.is_file():
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise Problem(f"{file} is no Python file")
            if path.stem in sys.modules:
                return _known(path)
            module = importlib.util.module_from_spec(spec)
            sys.path.insert(0, str(path.resolve().parent))
            sys.modules[path.stem] = module  # pickle and dataclasses look the module up in sys.modules
            spec.loader.exec_module(module)
            return module
        if path.suffix == ".py" or "/" in file or importlib.util.find_spec(file) is None:
            raise Problem(f"no such file: {file}")
        return importlib.import_module(file)
    except Problem:
        raise
    except Exception as error:
        raise Problem(f"{file} cannot be loaded: {_where(error)}{type(error).__name__}: {error}") from None


def _known(path: Path) -> ModuleType:
    module = sys.modules[path.stem]
    file = getattr(module, "__file__", None)
    if file is None or not path.samefile(file):
        raise Problem(f"{path}: a module {path.stem!r} is imported already; call the file something else")
    return module


def _where(error: BaseException) -> str:
    """Return the place at which an exception was raised, for a message."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return f"line {last.tb_lineno} of {Path(last.tb_frame.f_code.co_filename).name}: " if last is not None else ""


def _maker(spec: str, found: Any, of_file: Any) -> Callable[[], Call]:
    """Return a function that makes a callable and arguments for an engine. It is tried once, to report errors early."""
    if hasattr(found, "example_inputs") and not inspect.isclass(found):
        return lambda: (_own(found), *_inputs(spec, found.example_inputs))
    if _takes_nothing(found):
        made = _made(spec, found)
        if _is_call(made):
            return lambda: _as_call(_made(spec, found))
        if callable(made) and hasattr(made, "example_inputs"):

            def with_its_own() -> Call:
                target = _made(spec, found)
                return (target, *_inputs(spec, target.example_inputs))

            return with_its_own
        if callable(made) and of_file is not None:
            return lambda: (_made(spec, found), *_inputs(spec, of_file))
        if not callable(made):
            return lambda: (_own(found), (), {})
    elif of_file is not None and not inspect.isclass(found):
        return lambda: (_own(found), *_inputs(spec, of_file))
    raise Problem(
        f"{spec} has no inputs: give it or its file example_inputs, or name a function that returns (callable, args)"
    )


def _made(spec: str, maker: Any) -> Any:
    try:
        return maker()
    except Exception as error:
        raise Problem(f"{spec} raises: {_where(error)}{type(error).__name__}: {error}") from None


def _own(found: Any) -> Any:
    return copy.deepcopy(found) if isinstance(found, torch.nn.Module) else found


def _is_call(made: Any) -> bool:
    return (
        isinstance(made, tuple)
        and len(made) in (2, 3)
        and callable(made[0])
        and not isinstance(made[0], torch.Tensor)
        and isinstance(made[1], (tuple, list))
        and (len(made) == 2 or isinstance(made[2], Mapping))
    )


def _as_call(made: Any) -> Call:
    return made[0], tuple(made[1]), dict(made[2]) if len(made) == 3 else {}


def _takes_nothing(found: Any) -> bool:
    if isinstance(found, torch.nn.Module):
        return False
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        return False
    return True


def _inputs(spec: str, given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments and keyword arguments from example_inputs."""
    if callable(given) and not isinstance(given, torch.Tensor):
        given = given()
    else:
        with contextlib.suppress(RuntimeError):  # deepcopy refuses tensors that autograd has computed
            given = copy.deepcopy(given)  # so that an engine cannot change the inputs of the next engine
    if isinstance(given, torch.Tensor):
        return (given,), {}
    if isinstance(given, Mapping):
        return (), dict(given)
    if isinstance(given, (tuple, list)):
        return tuple(given), {}
    raise Problem(
        f"{spec}: example_inputs gives {type(given).__name__}, not a tuple of arguments or a dict of keywords"
    )
