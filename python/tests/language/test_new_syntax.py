"""What later Pythons added to the language. The programs are in testdata, since older ones cannot parse them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cases import Case, check

SINCE = [path for path in sorted(Path(__file__).with_name("testdata").glob("since_3*.py"))]


def version(path: Path) -> tuple[int, int]:
    """Return the version that a file is for: (3, 12) for since_312.py."""
    return 3, int(path.stem.removeprefix("since_3"))


def load() -> list[Any]:
    """Return the cases of the files that this Python parses; a file for a later one is a skipped parameter."""
    params: list[Any] = []
    for path in SINCE:
        if version(path) > sys.version_info[:2]:
            # This Python cannot parse the file. `make test-all` runs it on those that can.
            reason = "a program of Python {}.{}".format(*version(path))
            params.append(pytest.param(None, marks=pytest.mark.skip(reason=reason), id=path.stem))
            continue
        space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        sys.modules[path.stem] = module = type(sys)(path.stem)
        module.__dict__.update(space)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        params += [pytest.param(case, id=f"{path.stem}-{case.name}") for case in module.cases]
    return params


@pytest.mark.parametrize("case", load())
def test_case(case: Case) -> None:
    check(case)
