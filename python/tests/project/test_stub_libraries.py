"""scripts/stub_libraries.py: what the stand-ins for CUDA's libraries define."""

import shutil

import pytest

import project_support  # noqa: F401 (scripts are importable)
import stub_libraries
from stub_libraries import Library


def test_the_runtimes_symbols_are_left_to_it():
    """A library that was linked without symbol versions leaves everything undefined in the same manner."""
    libraries = {
        "libtorch.so": Library(needed=["libcuda.so.1", "libc.so.6"], defined={"at_add"}),
        "libtorch_unversioned.so": Library(
            needed=["libcudart.so.13", "libtorch.so"],
            undefined=[
                ("cudaMalloc", ""),
                ("malloc", ""),
                ("at_add", ""),
                ("PyObject_Call", ""),
                ("fopen", "GLIBC_2.2.5"),
            ],
            providers={"GLIBC_2.2.5": "libc.so.6"},
        ),
    }
    assert stub_libraries.missing(libraries, {"malloc", "fopen"}) == {
        "libcuda.so.1": {},
        "libcudart.so.13": {"cudaMalloc": ""},
    }


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, which says where the libraries are")
def test_the_runtimes_symbols_are_read_from_its_libraries():
    found = stub_libraries.system_symbols({"a": Library(needed=["libc.so.6", "libcuda.so.1", "libm.so.6"])}, "gcc")
    assert {"malloc", "fopen", "sin"} <= found
    assert not stub_libraries.system_symbols({"a": Library(needed=["libcuda.so.1"])}, "gcc")
