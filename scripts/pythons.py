"""The Pythons that godynamo builds with: finds them and their environments, for scripts that visit several of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "build_backend"))

import native

ROOT = Path(__file__).resolve().parent.parent


class NotTested(Exception):
    """A Python cannot be tested here. The text says why."""


def environment() -> dict[str, str]:
    """Return the variables for a command that works on one Python: without those of an outer make, or of one Python."""
    own = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GODYNAMO_VENV")  # the last names one environment; each needs its own
    return {name: value for name, value in os.environ.items() if name not in own}


@dataclass(frozen=True)
class Python:
    """One version: ``path`` is None if no interpreter was found."""

    version: str
    path: Path | None

    @property
    def supported(self) -> bool:
        """Whether the version is advertised, as opposed to only built."""
        return self.version in [native.spelled((version,)) for version in native.SUPPORTED]

    def environment(self, limit: float | None = None) -> Path:
        """Make the project's virtual environment of this version if needed, and return its python.

        Raises NotTested if there is no interpreter, or the environment cannot be made, or not in ``limit`` seconds.
        """
        if self.path is None:
            raise NotTested(f"no CPython {self.version} found")
        with subprocess.Popen(
            ["scripts/venv.sh"],
            cwd=ROOT,
            env={**environment(), "PYTHON": self.version},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise NotTested("its environment took too long to make") from None
        if process.returncode != 0:
            raise NotTested("its environment could not be made")
        return Path(out.strip()) / "bin" / "python"


def find(versions: Sequence[str] = ()) -> list[Python]:
    """Return the Pythons of these versions, or of all that godynamo builds with, found or not.

    Raises ValueError for a version that it does not build with.
    """
    lines = subprocess.run(
        ["scripts/find_python.sh", "--all"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    found = {}
    for line in lines:
        version, _, path = line.partition(" ")
        found[version] = Python(version, Path(path) if path else None)
    unknown = [version for version in versions if version not in found]
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: choose from {', '.join(found)}")
    return [found[version] for version in versions or found]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines if i < len(line)) for i in range(len(head))]
    return "\n".join("  ".join(f"{cell:{widths[i]}}" for i, cell in enumerate(line)).rstrip() for line in lines)
