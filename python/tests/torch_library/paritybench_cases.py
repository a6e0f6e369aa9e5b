"""Cases of pytorch-jit-paritybench: modules of many projects, as its generator has cut them out of their repositories.

The checkout is the user's (GODYNAMO_PARITYBENCH_DIR): ``generated/test_*.py`` files, each with a table TESTCASES of
(class, lambda: (args, kwargs) of the constructor, lambda: (args, kwargs) of the call, ...). Nothing of it is ours.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from library_judge import SEED, Case
from module_cases import maker

#: first letters of the projects that are run
LETTERS = frozenset("ABCDEFGHIJKLM")


def folder() -> Path:
    """Where the generated files are; SystemExit where there are none."""
    root = Path(os.environ.get("GODYNAMO_PARITYBENCH_DIR", "")).resolve()
    for place in (root / "generated", root):
        if any(place.glob("test_*.py")):
            return place
    raise SystemExit(
        f"no generated/test_*.py under {root}: make paritybench DIR=<a checkout of pytorch-jit-paritybench>"
    )


def units() -> dict[str, Path]:
    """Files of projects A to M by name."""
    found = {path.stem.removeprefix("test_"): path for path in sorted(folder().glob("test_*.py"))}
    return {name: path for name, path in found.items() if name[:1].upper() in LETTERS}


def cases(path: Path, most: int) -> Iterator[Case]:
    """The cases of a file, in training and in evaluation; ``most`` modules of it. What a file raises at its import is its own."""
    for number, (cls, init, call, *_) in enumerate(_table(path)[:most]):
        torch.manual_seed(SEED)
        try:
            args, kwargs = call()
            _constructed(cls, init)
        except Exception:  # the generator's guess at arguments was wrong
            continue
        for training in (True, False):
            make = maker(lambda cls=cls, init=init: _constructed(cls, init), training)
            mode = "train" if training else "eval"
            yield Case(f"{number} {cls.__name__} {mode}", make, tuple(args), dict(kwargs))


def _constructed(cls: Any, init: Any) -> torch.nn.Module:
    args, kwargs = init()
    made = cls(*args, **kwargs)
    if not isinstance(made, torch.nn.Module):
        raise TypeError(f"{cls.__name__} is no module")
    return made


def _table(path: Path) -> list[Any]:
    for place in (path.parent, path.parent.parent):  # the checkout's own helpers
        if str(place) not in sys.path:
            sys.path.append(str(place))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return list(module.TESTCASES)
