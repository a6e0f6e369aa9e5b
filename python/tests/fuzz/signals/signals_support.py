"""Builds and loads ``arrivals``, the C module that places arrivals, and registers the programs' tick operations."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "build_backend"))

import native  # noqa: E402

BUILD = ROOT / "build" / "fuzz_signals"


def _load() -> Any:
    """Return the module ``arrivals``, compiled if its source is new. Raises CalledProcessError if that fails."""
    source = ROOT / "pyhook" / "arrivals" / "arrivals.c"
    core = ROOT / "pyhook" / "core"
    own = core / "py{}{}".format(*sys.version_info) / "opcodes.h"
    opcodes = own if own.exists() else core / "pycommon" / "opcodes.h"
    key = hashlib.sha256(source.read_bytes() + opcodes.read_bytes() + sys.version.encode()).hexdigest()[:12]
    library = BUILD / f"arrivals-{key}.so"
    if not library.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        temporary = library.with_suffix(f".{os.getpid()}.so")
        native.choose_compiler()
        compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()
        includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{opcodes.parent}"]
        subprocess.run([*compiler, "-O1", "-shared", "-fPIC", *includes, str(source), "-o", str(temporary)], check=True)
        os.replace(temporary, library)
    loader = importlib.machinery.ExtensionFileLoader("arrivals", str(library))
    spec = importlib.util.spec_from_file_location("arrivals", library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


arrivals = sys.modules.setdefault("arrivals", sys.modules.get("arrivals") or _load())

# The kernel of sig::tick is a C function: an arrival is pending when the call of the operation returns. That of
# sig::pytick is a Python function: an arrival is raised inside the operation.
_LIBRARY = torch.library.Library("sig", "DEF")
for _name, _kernel in (("tick", arrivals.tick), ("pytick", lambda x: (arrivals.tick(), x.clone())[1])):
    _LIBRARY.define(f"{_name}(Tensor x) -> Tensor")
    _LIBRARY.impl(_name, _kernel, "CPU")
    _LIBRARY.impl(_name, torch.empty_like, "Meta")
