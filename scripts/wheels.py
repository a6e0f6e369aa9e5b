"""`make wheels`: builds a wheel for each Python that is found into dist/, checks its tag, and tries it.

Each wheel is installed into an empty environment that has only torch and its requirements, and nothing on PATH but that
environment. There the demo and `godynamo doctor` run. auditwheel, from the package index, checks that the tag is right
and not newer than manylinux_2_34; without it, the tag that build_backend/native.py computes is compared.

A Python that is not found is named in the table as not tested. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import pythons

ROOT = pythons.ROOT
AUDITWHEEL = "auditwheel==6.8.2"
#: the newest glibc that a wheel may need
NEWEST_GLIBC = (2, 34)
HEAD = ("Python", "wheel", "tag", "demo", "doctor")


class Failure(Exception):
    """A check failed. The text is short, for the table; the details have been printed."""


def run(command: Sequence[str | Path], what: str, timeout: int = 1800, **options: object) -> str:
    """Run a command and return its output. Prints the output and raises Failure if the command fails."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            **options,  # type: ignore[call-overload]
        )
    except subprocess.TimeoutExpired as error:
        print(f"{what}: no end after {timeout} s: {error.cmd}", file=sys.stderr)
        raise Failure("timed out") from None
    if done.returncode != 0:
        print(f"{what}: exit code {done.returncode}\n{done.stdout}", file=sys.stderr)
        raise Failure("failed")
    return str(done.stdout)


def pip(python: Path, target: Path | None = None) -> list[str | Path]:
    """Return the command of a Python's pip, for itself or another one; of this Python's pip if it has none."""
    own = subprocess.run([python, "-c", "import pip"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    runner = python if own else Path(sys.executable)
    target = target or python
    elsewhere: list[str | Path] = [] if target == runner else ["--python", target]
    return [runner, "-m", "pip", "--disable-pip-version-check", "--quiet", *elsewhere]


def build(python: Path, out: Path) -> Path:
    """Build the wheel of a Python into a folder, in place of older ones of that Python. Return its path."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        # Two builds in one checkout would write the same files.
        lock: list[str | Path] = ["flock", ROOT / "build" / ".lock"]
        options = ["--no-deps", "--no-build-isolation", "--ignore-requires-python", "--wheel-dir", scratch]
        run([*lock, *pip(python), "wheel", *options, ROOT], "pip wheel")
        (built,) = Path(scratch).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob(f"godynamo-*-{built.name.split('-')[2]}-*.whl"):
            old.unlink()
        return Path(shutil.move(built, out / built.name))


def glibc_of(name: str) -> tuple[int, int]:
    """Return the glibc that a manylinux tag names. Raises Failure for another tag."""
    found = re.search(r"manylinux_(\d+)_(\d+)_", name)
    if found is None:
        print(f"{name}: no manylinux tag", file=sys.stderr)
        raise Failure("no manylinux tag")
    return int(found[1]), int(found[2])


def check_tag(wheel: Path, python: Path) -> str:
    """Check the wheel's tag with auditwheel, and that it is old enough. Return a text for the table."""
    ours = glibc_of(wheel.name)
    if ours > NEWEST_GLIBC:
        raise Failure(f"needs glibc {ours[0]}.{ours[1]}")
    folder = ROOT / "build" / "auditwheel"
    try:
        run([*pip(python), "install", "--upgrade", "--target", folder, AUDITWHEEL], AUDITWHEEL, timeout=300)
    except Failure:
        return "not audited"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    said = run([python, "-m", "auditwheel", "show", wheel], "auditwheel", env=environment)
    # The answer is wrapped at words, and comes with a list of newer tags that are fine as well.
    found = re.search(r'following\s+platform\s+tag:\s+"([^"]+)"', said)
    if found is None or glibc_of(found[1]) > ours:
        print(f"auditwheel show {wheel.name}:\n{said}", file=sys.stderr)
        raise Failure("auditwheel disagrees")
    return "audited"


def needed_by_torch(site: Path) -> Iterator[str]:
    """Yield the names of files and folders in a site-packages that torch and its requirements consist of."""
    installed = {_normal(d.metadata["Name"]): d for d in importlib.metadata.distributions(path=[str(site)])}
    wanted: list[tuple[str, str]] = [("torch", "")]  # packages, each with one of its extras, or "" for none
    seen = set()
    while wanted:
        name, extra = wanted.pop()
        if (name, extra) in seen or name not in installed:
            continue
        seen.add((name, extra))
        yield from sorted({path.parts[0] for path in installed[name].files or ()} - {"..", "__pycache__"})
        for requirement in installed[name].requires or ():
            of = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
            found = re.match(r"([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?", requirement)
            if found is not None and (of is None or of[1] == extra):
                wanted += [(_normal(found[1]), asked.strip()) for asked in ("", *(found[2] or "").split(","))]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def empty_environment(python: Path, folder: Path) -> Path:
    """Make a virtual environment whose only packages are torch and its requirements. Return its python.

    They are links into the environment of ``python``, since torch takes 5 GB. Raises Failure if godynamo is there too.
    """
    run([python, "-m", "venv", "--without-pip", folder], "venv")
    made = folder / "bin" / "python"
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    here, there = (Path(run([p, "-c", ask], "sysconfig").strip()) for p in (made, python))
    for name in needed_by_torch(there):
        if not (here / name).exists():
            (here / name).symlink_to(there / name)
    ask = "import importlib.util as u; print(u.find_spec('torch') is None, u.find_spec('godynamo'))"
    if run([made, "-c", ask], "find_spec", cwd=folder, env=bare(folder)).strip() != "False None":
        print(f"{folder}: torch is not there, or godynamo already is", file=sys.stderr)
        raise Failure("no empty environment")
    return made


def bare(folder: Path) -> Mapping[str, str]:
    """Return environment variables with which only the programs of a virtual environment are found."""
    return {"PATH": str(folder / "bin"), "HOME": str(folder), "LANG": "C.UTF-8", "CUDA_VISIBLE_DEVICES": ""}


def try_out(wheel: Path, python: Path) -> Iterator[str]:
    """Install a wheel into an empty environment. Run the demo and doctor there; yield a text for the table for each."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "environment"
        made = empty_environment(python, folder)
        install = [*pip(python, made), "install", "--no-index", "--ignore-requires-python", wheel]
        run(install, "pip install", env=_without_ours())
        demo = Path(scratch) / "demo.py"  # a copy, so that it does not find the checkout
        shutil.copy(ROOT / "scripts" / "demo.py", demo)
        last = run([made, demo], "demo", timeout=600, cwd=scratch, env=bare(folder)).splitlines()[-2]
        yield last.partition(";")[0]
        said = run([folder / "bin" / "godynamo", "doctor"], "doctor", timeout=600, cwd=scratch, env=bare(folder))
        if str(made) not in said:
            print(said, file=sys.stderr)
            raise Failure("looked at another Python")
        yield said.splitlines()[-1]


def _without_ours() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("GODYNAMO_", "PYTHON"))}


def row(python: pythons.Python, out: Path) -> tuple[list[str], bool]:
    """Build and check the wheel of one Python. Return its row of the table, and whether nothing failed."""
    cells = [python.version]
    try:
        own = python.environment()
        print(f"building and trying the wheel of {python.version}", flush=True)
        wheel = build(own, out)
        cells.append(wheel.name)
        cells.append(check_tag(wheel, own))
        cells.extend(try_out(wheel, own))
    except pythons.NotTested as reason:
        return [*cells, f"not tested: {reason}"], python.path is None
    except Failure as failure:
        return [*cells, f"FAILED: {failure}"], False
    return cells, True


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="such as 3.12 (default: all)")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(arguments)
    try:
        chosen = pythons.find(options.versions)
    except ValueError as error:
        parser.error(str(error))
    rows, fine = [], True
    for python in chosen:
        cells, passed = row(python, options.out)
        rows.append(cells)
        fine = fine and passed
    print(pythons.table(HEAD, rows))
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
