"""Builds the two native libraries and the command line tool. Everything else about the package is in pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent / "build_backend"))

import native


class Wheel(bdist_wheel):
    """Builds a wheel. Its tag names the oldest glibc that its libraries run with, as package indexes require."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag of the built files."""
        implementation, abi, platform = super().get_tag()
        if platform.startswith("linux_") and self.bdist_dir is not None:
            major, minor = native.glibc_needed(Path(self.bdist_dir))
            platform = f"manylinux_{major}_{minor}_{platform.removeprefix('linux_')}"
        return implementation, abi, platform


class BuildPython(build_py):
    """Copies the Python files into an empty folder.

    Otherwise the wheel would contain deleted files of earlier builds.
    """

    def run(self) -> None:
        """Empty the target folder, then copy the files."""
        if not self.editable_mode:
            for old in Path(self.build_lib).rglob("*.py"):
                old.unlink()
        super().run()


class BuildNative(build_ext):
    """Compiles ``_C``, then puts the Go library beside it (also with ``--inplace``)."""

    def build_extensions(self) -> None:
        """Build both libraries. A missing compiler or Go ends the build with an error that names it."""
        try:
            native.check_python()
            # Python's own -L and -rpath name folders of the machine that built it. Nothing is linked from there.
            self.compiler.linker_so = [
                flag for flag in self.compiler.linker_so if not flag.startswith(("-L", "-Wl,-rpath"))
            ]
            super().build_extensions()
            self.build_launcher(Path(self.build_lib) / "godynamo" / native.LAUNCHER)
            # setuptools builds below build_lib and copies from there, also with --inplace.
            native.build_go_library(Path(self.build_lib).resolve() / "godynamo" / native.GO_LIBRARY)
        except native.BuildError as error:
            raise SystemExit(f"godynamo: {error}") from None

    def build_launcher(self, output: Path) -> None:
        """Compile the program that starts CPython inside a Go process. It links neither CPython nor Go."""
        objects = self.compiler.compile(
            [native.LAUNCHER_SOURCE], output_dir=self.build_temp, extra_preargs=native.C_FLAGS
        )
        output.parent.mkdir(parents=True, exist_ok=True)
        self.compiler.link_executable(objects, output.name, output_dir=str(output.parent), libraries=["dl"])

    def copy_extensions_to_source(self) -> None:
        """Put libraries and launcher beside the package's Python files, and the tool into build/bin (--inplace)."""
        super().copy_extensions_to_source()
        native.build_tool(native.ROOT / "build" / "bin" / native.TOOL)
        for name in (native.GO_LIBRARY, native.LAUNCHER):
            native.install(Path(self.build_lib) / "godynamo" / name, native.PACKAGE / name)

    def get_outputs(self) -> list[str]:
        """Return the libraries and the launcher. The wheel contains the files listed here."""
        built = [str(Path(self.build_lib) / "godynamo" / name) for name in (native.GO_LIBRARY, native.LAUNCHER)]
        return [*super().get_outputs(), *built]


class BuildTool(Distribution().get_command_class("build_scripts")):  # distutils' class: setuptools has none to import
    """Compiles the command line tool into the folder of scripts. pip installs it beside the environment's python."""

    def run(self) -> None:
        """Build the tool. The command of setuptools would read it as a Python file."""
        try:
            native.build_tool(Path(self.build_dir).resolve() / native.TOOL)
        except native.BuildError as error:
            raise SystemExit(f"godynamo: {error}") from None

    def get_source_files(self) -> list[str]:
        """Return no files: the source distribution has the Go files as they are in git."""
        return []


native.choose_compiler()
setup(
    python_requires=native.requires_python(),
    classifiers=[
        "Operating System :: POSIX :: Linux",
        "Programming Language :: C",
        "Programming Language :: Go",
        *native.classifiers(),
        "Typing :: Typed",
    ],
    scripts=["cmd/godynamo"],  # makes setuptools run build_scripts
    ext_modules=[
        Extension(
            "godynamo._C",
            sources=native.core_sources(),
            depends=native.core_headers(),
            include_dirs=["pyhook/core"],
            extra_compile_args=native.C_FLAGS,
        )
    ],
    cmdclass={"bdist_wheel": Wheel, "build_py": BuildPython, "build_ext": BuildNative, "build_scripts": BuildTool},
)
