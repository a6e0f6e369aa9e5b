"""The two native libraries, as setuptools builds them; everything else about the package is in pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent / "build_backend"))

import native


class BuildNative(build_ext):
    """Compiles ``_C``, then puts the Go library beside it (also with ``--inplace``)."""

    def build_extensions(self) -> None:
        """Builds both; a missing compiler or Go ends the build with its reason."""
        try:
            native.check_python()
            # Python's own -L and -rpath name the build machine's directories, and nothing of them is linked.
            self.compiler.linker_so = [
                flag for flag in self.compiler.linker_so if not flag.startswith(("-L", "-Wl,-rpath"))
            ]
            super().build_extensions()
            # setuptools builds below build_lib and copies from there, also with --inplace.
            native.build_go_library(Path(self.build_lib).resolve() / "godynamo" / native.GO_LIBRARY)
        except native.BuildError as error:
            raise SystemExit(f"godynamo: {error}") from None

    def copy_extensions_to_source(self) -> None:
        """The last step of --inplace: both libraries go beside the package's Python files."""
        super().copy_extensions_to_source()
        built = Path(self.build_lib) / "godynamo" / native.GO_LIBRARY
        native.install(built, native.PACKAGE / native.GO_LIBRARY)

    def get_outputs(self) -> list[str]:
        """Both libraries: the wheel contains what is listed here."""
        return [*super().get_outputs(), str(Path(self.build_lib) / "godynamo" / native.GO_LIBRARY)]


setup(
    ext_modules=[
        Extension(
            "godynamo._C",
            sources=native.core_sources(),
            depends=native.core_headers(),
            include_dirs=["pyhook/core"],
            extra_compile_args=native.C_FLAGS,
        )
    ],
    cmdclass={"build_ext": BuildNative},
)
