"""Writes replacements for the CUDA libraries that an installed torch links, so that it runs on the CPU without them.

    python scripts/stub_libraries.py TORCH_LIB_DIR [--cc gcc]

Reads every shared library in TORCH_LIB_DIR with readelf, and finds the needed libraries that are neither there nor on
the system. Writes a replacement of each into TORCH_LIB_DIR: torch's own libraries look there, since ``$ORIGIN`` is on
their run path. A replacement defines every symbol that torch leaves undefined, with the soname and symbol versions that
torch expects. Each function returns 100, which means "no device" for the CUDA runtime and driver, and an error for the
other libraries. Existing files are not changed, so a second run changes nothing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

#: the number of cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE; no CUDA library uses 100 for success
NO_DEVICE = 100
#: names of functions that return a text, for which 100 would be an invalid address
RETURNS_TEXT = re.compile(r"(String|Name)$|^ncclGetLastError$")
#: libraries of the C and C++ runtime, which are always present
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util)\.so|ld-linux)")
#: symbols that the interpreter provides; they are not replaced
INTERPRETER = re.compile(r"^_?Py")


@dataclass
class Library:
    """The dynamic section of one shared library."""

    needed: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    #: (symbol, version or "") that the library imports
    undefined: list[tuple[str, str]] = field(default_factory=list)
    #: version name -> soname of the library that must provide it
    providers: dict[str, str] = field(default_factory=dict)


def readelf(path: Path) -> str:
    """Return the dynamic section, dynamic symbols and symbol versions of a library as readelf prints them."""
    command = ["readelf", "--wide", "--dynamic", "--dyn-syms", "--version-info", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def parse(text: str) -> Library:
    """Extract the needed parts of readelf's output."""
    library = Library()
    provider = ""
    for line in text.splitlines():
        if match := re.search(r"\(NEEDED\).*\[(.+)\]", line):
            library.needed.append(match[1])
        elif match := re.search(r"Version: \d+\s+File: (\S+)", line):
            provider = match[1]
        elif match := re.search(r"Name: (\S+)\s+Flags: .*Version: \d+", line):
            if provider:
                library.providers[match[1]] = provider
        elif line.startswith("Version definition section"):
            provider = ""  # the following lines with "Name:" are versions that the library itself defines
        elif match := re.match(r"\s*\d+: [0-9a-f]+\s+\S+ \S+\s+(\S+)\s+\S+\s+(\S+) (\S+)", line):
            binding, section, symbol = match.groups()
            name, _, version = symbol.partition("@")
            if section != "UND":
                library.defined.add(name)
            elif binding == "GLOBAL":
                library.undefined.append((name, version.lstrip("@")))
    return library


def system_symbols(libraries: dict[str, Library], cc: str) -> set[str]:
    """Return the symbols of the C and C++ runtime that these libraries need."""
    found = set()
    for soname in {name for library in libraries.values() for name in library.needed if SYSTEM.match(name)}:
        command = [cc, f"-print-file-name={soname}"]
        path = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        if path.is_file():
            found |= parse(readelf(path)).defined
    return found


def missing(libraries: dict[str, Library], system: set[str]) -> dict[str, dict[str, str]]:
    """Return {soname of a missing library: {symbol to define: version, or "" if torch expects none}}.

    ``system`` has the symbols of the C and C++ runtime. A library of torch that was linked without versions (torch
    2.11 has one) leaves them undefined like all others.
    """
    defined = system.union(*(library.defined for library in libraries.values()))
    wanted: dict[str, dict[str, str]] = defaultdict(dict)
    for library in libraries.values():
        absent = [name for name in library.needed if name not in libraries and not SYSTEM.match(name)]
        for soname in absent:
            _ = wanted[soname]  # the library must exist even if no symbol of it is used
        for symbol, version in library.undefined:
            if version:
                provider = library.providers.get(version, "")
                if provider in absent:
                    wanted[provider][symbol] = version
            elif absent and symbol not in defined and not INTERPRETER.match(symbol):
                # Symbols without a version do not name their library. The loader searches all libraries that this
                # library needs.
                wanted[absent[0]].setdefault(symbol, "")
    return wanted


def write(soname: str, symbols: dict[str, str], target: Path, cc: str) -> None:
    """Compile the replacement of one library."""
    lines = []
    for symbol in sorted(symbols):
        if RETURNS_TEXT.search(symbol):
            lines.append(f'const char *{symbol}(void) {{ return "no CUDA: a stand-in library"; }}')
        else:
            lines.append(f"int {symbol}(void) {{ return {NO_DEVICE}; }}")
    versions = defaultdict(list)
    for symbol, version in symbols.items():
        if version:
            versions[version].append(symbol)
    script = "".join(
        f"{version} {{ global: {' '.join(f'{s};' for s in names)} }};\n" for version, names in versions.items()
    )
    with tempfile.TemporaryDirectory() as scratch:
        source, version_script = Path(scratch, "stub.c"), Path(scratch, "stub.map")
        source.write_text("\n".join(lines) + "\n")
        version_script.write_text(script)
        command = [
            cc,
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-w",
            "-O1",
            f"-Wl,-soname,{soname}",
            "-o",
            str(target),
            str(source),
        ]
        if script:
            command.insert(1, f"-Wl,--version-script={version_script}")
        subprocess.run(command, check=True)


def main() -> int:
    """Write the missing libraries; print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="the lib folder of the installed torch")
    parser.add_argument("--cc", default="gcc", help="C compiler")
    options = parser.parse_args()
    files = sorted(options.directory.glob("*.so*"))
    if not files:
        parser.error(f"no shared library in {options.directory}")
    libraries = {path.name: parse(readelf(path)) for path in files}
    for soname, symbols in sorted(missing(libraries, system_symbols(libraries, options.cc)).items()):
        write(soname, symbols, options.directory / soname, options.cc)
        print(f"{soname}: {len(symbols)} symbols", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
