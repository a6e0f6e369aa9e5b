"""Installs a CPython 3.14 for a user who has none: an interpreter from a Go module, its headers from a Debian package.

    python3 scripts/embedded_python.py [FOLDER]

FOLDER is <user cache directory>/godynamo/python-3.14 by default, where scripts/find_python.sh looks. Nothing outside it
is changed. The module has neither headers nor the package `test`. They come from Debian's packages libpython3.14-dev,
libpython3.14-testsuite and libpython3.14-stdlib, whose files are unpacked and not installed. About 160 MB, half a
minute. Needs `go`, a network and `dpkg-deb`. Raises SystemExit with the reason if something cannot be had.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

MODULE = "github.com/kluctl/go-embed-python@v0.0.0-3.14.6-20260610-1"
VERSION = "3.14"
LIBRARY = Path("lib") / f"python{VERSION}"
COMPLETE = ".complete-2"  # an installation without this file is of an older form of this script
SUITE = "sid"  # the oldest suite with 3.14 is not released; its pool keeps the newest version only


def default_folder() -> Path:
    """Return where the interpreter is installed without an argument."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "godynamo" / f"python-{VERSION}"


def download_module() -> Path:
    """Return the module's folder in Go's module cache."""
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd=empty,
            env={**os.environ, "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{MODULE} cannot be had: {done.stdout.strip() or done.stderr.strip()}")
    return Path(json.loads(done.stdout)["Dir"])


def unpack(data: Path, folder: Path) -> None:
    """Unpack the interpreter from the module's data: links, files that may be compressed, modes."""
    for entry in json.loads((data / "files.json").read_text())["files"]:
        source, target = data / entry["name"], folder / entry["name"]
        if "symlink" in entry:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(entry["symlink"])
        elif entry.get("compressed"):
            target.write_bytes(gzip.decompress(Path(f"{source}.gz").read_bytes()))
        elif source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        if "symlink" not in entry:
            target.chmod(entry["perm"] & 0o777)


def mirror() -> str:
    """Return the address of the Debian mirror that apt uses here."""
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        told = ""
    for line in told.splitlines():
        origin, _, address = line.partition(" ")
        if origin == "Debian" and "security" not in address:
            return address.rstrip("/")
    raise SystemExit("no Debian mirror is known here: the headers of CPython come from a Debian package")


def debian_packages(names: set[str]) -> dict[str, str]:
    """Return the addresses of packages in Debian's index."""
    site = mirror()
    with urllib.request.urlopen(f"{site}/dists/{SUITE}/main/binary-amd64/Packages.xz", timeout=120) as answer:
        index = lzma.decompress(answer.read()).decode()
    found = dict(re.findall(r"^Package: (\S+)\n(?:(?!\n\n)[\s\S])*?^Filename: (\S+)", index, re.MULTILINE))
    return {name: f"{site}/{found[name]}" for name in names}


def unpack_debian(packages: dict[str, str], target: Path) -> None:
    """Unpack the files of packages into a folder."""
    for address in packages.values():
        with tempfile.NamedTemporaryFile(suffix=".deb") as file:
            with urllib.request.urlopen(address, timeout=300) as answer:
                shutil.copyfileobj(answer, file)
            file.flush()
            subprocess.run(["dpkg-deb", "-x", file.name, target], check=True)


def add_headers_and_tests(folder: Path) -> None:
    """Add what the module lacks. Debian splits pyconfig.h off; the headers name the other architectures' as well.

    The tests are in one of its packages, `test.support` and the like in another.
    """
    with tempfile.TemporaryDirectory() as name:
        unpacked = Path(name)
        unpack_debian(
            debian_packages({f"libpython{VERSION}-{part}" for part in ("dev", "testsuite", "stdlib")}), unpacked
        )
        include = folder / "include" / f"python{VERSION}"
        shutil.copytree(unpacked / "usr" / "include" / f"python{VERSION}", include, symlinks=True, dirs_exist_ok=True)
        own = unpacked / "usr" / "include" / "x86_64-linux-gnu" / f"python{VERSION}" / "pyconfig.h"
        (include / "pyconfig.h").unlink(missing_ok=True)
        shutil.copyfile(own, include / "pyconfig.h")
        shutil.copytree(unpacked / "usr" / LIBRARY / "test", folder / LIBRARY / "test", dirs_exist_ok=True)


def repair_symbols(library: Path) -> None:
    """Write the numbers of their sections into the symbols of a library, which has lost sections since it was linked.

    A linker takes a symbol without a section for a constant, so that programs that link the library find no variable of
    it. Only the Go tests link it.
    """
    data = bytearray(library.read_bytes())
    table, size, number = struct.unpack_from("<Q10xHH", data, 0x28)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(number)]
    for _, kind, _, _, offset, length, *_ in sections:
        for at in range(offset, offset + length, _SYMBOL) if kind == _DYNSYM else ():
            section, value = struct.unpack_from("<HQ", data, at + 6)
            if number <= section < _RESERVED:
                found = [
                    i
                    for i, (_, _, flags, start, _, length, *_) in enumerate(sections)
                    if flags & _ALLOCATED and not flags & _THREAD and start <= value < start + max(length, 1)
                ]
                struct.pack_into("<H", data, at + 6, found[0])
    new = library.with_suffix(".new")
    new.write_bytes(data)
    new.chmod(library.stat().st_mode)
    new.replace(library)


# elf.h: SHT_DYNSYM, the size of a symbol, SHN_LORESERVE, SHF_ALLOC, SHF_TLS
_DYNSYM, _SYMBOL, _RESERVED, _ALLOCATED, _THREAD = 11, 24, 0xFF00, 0x2, 0x400


def finish(folder: Path) -> None:
    """Add what the interpreter lacks, and mark the folder as complete."""
    add_headers_and_tests(folder)
    repair_symbols((folder / "lib" / f"libpython{VERSION}.so").resolve())
    (folder / COMPLETE).touch()


def main() -> None:
    """Install into a folder beside the target, then move it into place. Complete an older installation."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else default_folder()
    if (folder / COMPLETE).exists():
        return
    if folder.exists():
        finish(folder)
        return
    print(f"installing CPython {VERSION} into {folder}", file=sys.stderr)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        new = Path(name) / "python"
        unpack(download_module() / "python" / "internal" / "data" / "linux-amd64", new)
        finish(new)
        new.rename(folder)


if __name__ == "__main__":
    main()
