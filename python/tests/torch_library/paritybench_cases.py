"""Cases of pytorch-jit-paritybench: modules of many projects, as its generator has extracted them from repositories.

The user supplies the checkout (GODYNAMO_PARITYBENCH_DIR; GODYNAMO_PARITYBENCH_SECONDS skips modules whose call takes
longer): ``generated/test_*.py`` files, each with a table TESTCASES of (class, lambda: (args, kwargs) of the
constructor, lambda: (args, kwargs) of the call, ...). We ship none of it.
"""

from __future__ import annotations

import collections.abc
import contextlib
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy
import torch

from library_judge import SEED, Case
from module_cases import maker

#: libraries that every generated file imports but few use
IMPORTED = ("matplotlib", "pandas", "scipy", "sklearn", "tensorboard", "tensorflow", "torchaudio", "torchtext")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces the missing libraries of IMPORTED by modules whose attributes are mocks."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a spec for a library of IMPORTED; this finder is the last one."""
        known = name.partition(".")[0] in IMPORTED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return a module that creates a mock for each attribute, and keeps it."""
        module = types.ModuleType(spec.name)

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            made = MagicMock(name=f"{spec.name}.{name}")
            setattr(module, name, made)
            return made

        module.__getattr__ = attribute  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing."""


def restore_old_names() -> None:
    """Restore names that the projects import and that Python, numpy and torch have removed. What needs a library that
    is missing is replaced like it."""
    six: Any = types.ModuleType("torch._six")
    six.container_abcs, six.string_classes, six.int_classes, six.inf = collections.abc, (str, bytes), int, math.inf
    sys.modules.setdefault("torch._six", six)
    board = importlib.machinery.ModuleSpec("torch.utils.tensorboard", Absent())
    sys.modules.setdefault(board.name, Absent().create_module(board))
    for name in collections.abc.__all__:
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    for kind in (bool, int, float, complex, object, str):
        if kind.__name__ not in vars(numpy):
            setattr(numpy, kind.__name__, kind)


def folder() -> Path:
    """Return the folder of the generated files; raises SystemExit if there are none."""
    root = Path(os.environ.get("GODYNAMO_PARITYBENCH_DIR", "")).resolve()
    for place in (root / "generated", root):
        if any(place.glob("test_*.py")):
            return place
    raise SystemExit(
        f"no generated/test_*.py under {root}: make paritybench DIR=<a checkout of pytorch-jit-paritybench>"
    )


def units() -> dict[str, Path]:
    """Return the files by the projects' names."""
    return {path.stem.removeprefix("test_"): path for path in sorted(folder().glob("test_*.py"))}


def cases(path: Path, most: int) -> Iterator[Case]:
    """Yield the cases of a file, in training and in evaluation, for up to ``most`` modules. Exceptions of the file's
    import propagate."""
    longest = float(os.environ.get("GODYNAMO_PARITYBENCH_SECONDS", "inf"))
    for number, (cls, init, call, *_) in enumerate(_table(path)[:most]):
        torch.manual_seed(SEED)
        try:
            args, kwargs = call()
            module = _constructed(cls, init)
        except Exception:  # the generator guessed wrong arguments
            continue
        if _seconds(module, args, kwargs) > longest:
            continue
        for training in (True, False):
            make = maker(lambda module=module, cls=cls, init=init: _another(module, cls, init), training)
            mode = "train" if training else "eval"
            yield Case(f"{number} {cls.__name__} {mode}", make, tuple(args), dict(kwargs))


def _seconds(module: torch.nn.Module, args: Any, kwargs: Any) -> float:
    started = time.monotonic()
    with torch.no_grad(), contextlib.suppress(Exception):
        copy.deepcopy(module)(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    return time.monotonic() - started


def _another(module: torch.nn.Module, cls: Any, init: Any) -> torch.nn.Module:
    """Return a copy of the module: a constructor may leave memory uninitialized, which then differs from call to call.
    Some modules cannot be copied."""
    try:
        return copy.deepcopy(module)
    except Exception:
        return _constructed(cls, init)


def _constructed(cls: Any, init: Any) -> torch.nn.Module:
    args, kwargs = init()
    made = cls(*args, **kwargs)
    if not isinstance(made, torch.nn.Module):
        raise TypeError(f"{cls.__name__} is no module")
    return made


def _table(path: Path) -> list[Any]:
    if not any(isinstance(finder, Absent) for finder in sys.meta_path):
        sys.meta_path.append(Absent())
        restore_old_names()
    for place in (path.parent, path.parent.parent):  # for the checkout's own helpers
        if str(place) not in sys.path:
            sys.path.append(str(place))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return list(getattr(module, "TESTCASES", []))
