"""The key of a translation: everything that decides what is translated, apart from the frame's values.

Guards compare values when a translation is loaded. The key has the rest: the builds, the settings, the user's code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .. import _C, config
from .._called import guard_env
from .._user import registry
from .objects import NotStored
from .prints import code_print, version_of
from .quietly import module_of, mro_of, qualname_of, space_of

#: settings that do not change what is translated
_NO_MATTER = {
    "cache_dir",
    "cache_evict",
    "cache_mib",
    "cache_min_ms",
    "cache_size_limit",
    "compile_aside",
    "disable",
    "error_on_recompile",
    "fail_on_recompile_limit_hit",
    "fork_reload",
    "inner_limit",
    "max_internal_errors",
    "memory_mib",
    "raise_on_ctx_manager_usage",
    "suppress_errors",
    "trace_dir",
    "trace_file_mib",
    "trace_files",
    "verify_correctness",
}


#: called by Go while another process translates; tests of programs replace time.sleep
pause = time.sleep


def parts(
    function: types.FunctionType, origin: tuple[Any, ...] | None, options: Any, kind: int, first: type | None
) -> list[tuple[str, str]]:
    """Return the key's parts, each with its name. ``origin`` describes a resume function (translate.Origin).
    ``first`` is the type of the frame's first argument. All models run the same wrapper, so the code alone does not
    distinguish them.

    Raises NotStored if the translation depends on something that other processes do not have.
    """
    if options.exporting or options.shapes is not None or config.traceable_tensor_subclasses:
        raise NotStored("the options name objects of this process")
    if options.python_ops == "checked":
        raise NotStored("the types of variables are read from the source, which is no part of the code object")
    code = origin[0] if origin is not None else function.__code__
    place = "" if origin is None else repr(origin[1:])
    return [
        ("function", f"{code.co_qualname} {code_print(code).hex()}"),
        ("place", place),
        ("kind", str(kind)),
        ("first argument", _class_text(first) if first is not None else ""),
        *_process_parts(),
        ("backend", options.backend_name),
        ("options", f"{options.nopython} {options.dynamic} {options.python_calls} {options.transparent}"),
        ("settings", _settings()),
        ("registered", _registered()),
    ]  # fmt: skip


def _class_text(cls: type) -> str:
    """Return a class's name, with the fingerprint of its forward() if it has one."""
    text = f"{module_of(cls)}.{qualname_of(cls)}"
    for base in mro_of(cls):
        forward = space_of(base).get("forward")
        if forward is not None:
            return text + (f" {code_print(forward.__code__).hex()}" if type(forward) is types.FunctionType else "")
    return text


def marks(attributes: dict[str, Any]) -> str:
    """Return what mark_dynamic and its kin have noted on a tensor, given its __dict__."""
    return repr(sorted((name, repr(v)) for name, v in attributes.items() if name.startswith("_dynamo_")))


def tensor_meta(tensor: Any) -> tuple[tuple[str, str, str], bool, tuple[int, ...], tuple[int, ...]] | None:
    """Return ((key set, dtype, device), requires_grad, shape, strides) of a tensor that C cannot read.

    Returns None if the tensor has no shape or strides, or if a size is not an int (nested tensors, sparse CSR).
    """
    _, keys, dtype, device, requires_grad, shape, strides = guard_env.tensor_state(tensor)
    if shape is None or strides is None or not all(type(n) is int for n in (*shape, *strides)):
        return None
    return (str(keys), str(dtype), str(device)), requires_grad, shape, strides


def torch_state() -> str:
    """Return torch's global state, as far as guards compare it."""
    return repr({name: value for name, (value, _) in _C.torch_state().items()})


@functools.lru_cache(maxsize=1)
def devices() -> str:
    """Return which kinds of devices the machine has. This never changes in a process."""
    mps = torch.backends.mps
    return f"{torch.cuda.is_available()} {torch.xpu.is_available()} {mps.is_available()} {mps.is_built()}"


def _settings() -> str:
    return ", ".join(f"{k}={v!r}" for k, v in config.get_config().items() if k not in _NO_MATTER)


def _registered() -> str:
    """Return the callables that the program has registered, by name. torch's own are registered when first needed."""
    named = []
    for ref, word in list(registry._kinds.values()):
        obj = ref()
        module = str(getattr(obj, "__module__", None))
        if obj is not None and module.partition(".")[0] not in ("torch", "godynamo"):
            named.append(f"{module}.{getattr(obj, '__qualname__', type(obj))} {word}")
    return "\n".join(sorted(named))


@functools.lru_cache(maxsize=1)
def _process_parts() -> Sequence[tuple[str, str]]:
    """Return the parts that never change in a process."""
    version = torch.version
    return (
        ("python", f"{sys.version} {platform.machine()} {sys.flags.optimize}"),
        ("torch", f"{torch.__version__} {version.git_version} {version.cuda} {version.hip}{version_of('numpy')}"),
        ("godynamo", build_print(Path(_C.__file__).parent, Path(config.cache_dir))),
    )


def build_print(package: Path, memo: Path | None = None) -> str:
    """Return a fingerprint of godynamo's files: equal builds have equal ones, on any machine.

    ``memo`` is a folder that keeps the fingerprint under the files' sizes and times, so that they are read only once.
    """
    files = _files(package)
    known = None if memo is None else memo / f"build-{_short_hash(repr(files))}"
    with contextlib.suppress(OSError, ValueError):
        if known is not None and len(text := known.read_text("utf-8")) == 2 * _PRINT_SIZE:
            return text
    h = hashlib.sha256()  # faster than blake2b where the processor has instructions for it
    for path, _, _ in files:
        h.update(f"{path}\n".encode())
        h.update((package / path).read_bytes())
    text = h.hexdigest()[: 2 * _PRINT_SIZE]
    with contextlib.suppress(OSError):
        if known is not None and memo is not None:
            memo.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = memo / f".{known.name}-{os.getpid()}"
            part.write_text(text, "utf-8")
            part.replace(known)
    return text


_PRINT_SIZE = 16


def _short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_PRINT_SIZE).hexdigest()


def _files(package: Path) -> list[tuple[str, int, int]]:
    """Return (relative path, size, time in ns) of the package's files: Python's and this version's libraries."""
    this = f"{sys.version_info[0]}{sys.version_info[1]}"
    found = []
    for folder, names, files in os.walk(package):
        names[:] = [n for n in names if n != "__pycache__"]
        for name in files:
            if name.endswith(".py") or (name.endswith(".so") and this in name):
                path = os.path.join(folder, name)
                stat = os.stat(path)
                found.append((os.path.relpath(path, package), stat.st_size, stat.st_mtime_ns))
    return sorted(found)
