"""Decides, once per code object, which code the eval-frame hook skips. Skipped code runs in CPython."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sys
import sysconfig
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import torch

_NOT_FUNCTIONS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


@functools.lru_cache(maxsize=4096)
def _real(file: str) -> str:
    """Return the real path of a source file. It is cached, since every function of the file needs it."""
    return os.path.realpath(file)


@functools.lru_cache(maxsize=1)
def _torch_folder() -> str:
    return _folder(os.path.dirname(torch.__file__))


def is_torchs(file: str) -> bool:
    """Return whether a file belongs to torch."""
    return os.path.realpath(file).startswith(_torch_folder())


@functools.lru_cache(maxsize=1)
def _numpy_folder() -> str:
    numpy = sys.modules.get("numpy")
    file = getattr(numpy, "__file__", None)
    return _folder(os.path.dirname(file)) if file else ""


@functools.lru_cache(maxsize=1)
def _own_folder() -> str:
    return _folder(os.path.dirname(os.path.dirname(__file__)))


@functools.lru_cache(maxsize=1)
def _stdlib_folders() -> tuple[str, ...]:
    return tuple(_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


@functools.lru_cache(maxsize=1)
def _site_folders() -> tuple[str, ...]:
    return tuple(_folder(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


def skip_reason(code: CodeType) -> str:
    """Return why the hook skips this code, "" if it does not.

    Functions of torch.nn's modules that compute are captured, since models consist of them. Functions that make,
    register or print modules are skipped.
    """
    if code.co_name == "<module>":
        return "module-level code"
    if code.co_flags & _NOT_FUNCTIONS:
        return "generator or coroutine"
    if not code.co_flags & inspect.CO_NEWLOCALS:
        return "class body or code for exec"
    path = code.co_filename
    if path.startswith("<frozen "):
        return "frozen module"
    if code.co_qualname.startswith("__create_fn__.<locals>."):
        return "method that dataclasses made"
    if path.startswith("<eval_with_key>"):
        return "FX's generated code"  # a backend has received this graph, and must not receive its code again
    if path.startswith("<"):
        return ""
    if f"{os.sep}torchinductor_" in path or path.startswith(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or "\0"):
        return "inductor's generated code"
    path = _real(path)
    if path.startswith(_own_folder()):
        return "godynamo's own file"
    if _numpy_folder() and path.startswith(_numpy_folder()):
        return "numpy's own file"
    if path.startswith(_torch_folder()):
        inside = path[len(_torch_folder()) :]
        if not inside.startswith(_NN_MODULES):
            return "torch's own file"
        return "making or registering a module" if _keeps_books(code, inside[len(_NN_MODULES) :]) else ""
    if path.startswith(_stdlib_folders()) and not path.startswith(_site_folders()):
        return "standard library"
    # On Python 3.11, typing_extensions puts functions of its own into typing: Optional[X] calls them.
    return "standard library" if os.path.basename(path) == "typing_extensions.py" else ""


_NN_MODULES = os.path.join("nn", "modules", "")
#: In the files _BOOKS, which mostly manage modules, only these functions are captured: a module's call runs them.
_ON_A_CALLS_WAY = frozenset(("__call__", "_call_impl", "_slow_forward", "_wrapped_call_impl", "forward"))
_BOOKS = ("module.py", "container.py")
#: In other files of torch.nn.modules, these methods are skipped. They take no part in a model's computation.
_BOOKKEEPING = frozenset(
    "__init__ __repr__ __setstate__ _load_from_state_dict _reset_parameters _save_to_state_dict extra_repr"
    " reset_parameters".split()
)


def _keeps_books(code: CodeType, file: str) -> bool:
    return code.co_name not in _ON_A_CALLS_WAY if file in _BOOKS else code.co_name in _BOOKKEEPING


def skipped_callable(fn: object) -> bool:
    """Return whether the hook skips a callable's own frames: it is C code, or its Python code has a skip_reason()."""
    function = getattr(fn, "__func__", fn)
    if not hasattr(function, "__code__"):
        function = inspect.getattr_static(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    return not isinstance(code, CodeType) or bool(skip_reason(code))


#: When a whole program is served, a frame with an argument of these types is translated (core/calls/heat.c).
TENSOR_AND_MODULE = (torch.Tensor, torch.nn.Module)


def names_torch(function: FunctionType) -> bool:
    """Return whether a function reads a global or cell that is torch's, a tensor, an nn.Module, or a class of these.

    The core calls this once per code object. It runs no user code.
    """
    code, names = function.__code__, function.__globals__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    inner = (name for const in code.co_consts if type(const) is CodeType for name in const.co_names)
    for name in (*code.co_names, *code.co_freevars, *inner):
        value: Any = names.get(name)
        if name in cells:
            try:
                value = cells[name].cell_contents
            except ValueError:  # the cell is still empty
                continue
        kind = type(value)
        if issubclass(kind, TENSOR_AND_MODULE) or (issubclass(kind, type) and issubclass(value, TENSOR_AND_MODULE)):
            return True
        if kind is ModuleType:
            of: object = ModuleType.__getattribute__(value, "__dict__").get("__name__")
        elif kind in (FunctionType, BuiltinFunctionType):
            of = value.__module__
        else:
            continue
        if isinstance(of, str) and (of == "torch" or of.startswith("torch.")):
            return True
    return False


# Code of torch below which the hook skips everything: torch.compile, which has its own hook, translator and generated
# code, and functions that differentiate what their callbacks return twice, which no compiled graph allows (under
# aot_eager, torch.autograd.functional.hessian returned zeros).
_SKIPPED_TREES = (
    *(os.path.join("_" + name, "") for name in ("dynamo", "inductor")),
    os.path.join("autograd", "functional.py"),
)


def skip_code(code: CodeType) -> int:
    """Return 0 if the hook serves the code, 1 if it skips the code, and 2 if it skips the code and all that it calls.

    The core calls this function (eval_frame.c).
    """
    if code.co_filename.startswith("<frozen importlib"):
        return 2  # this is an import, whose code only makes definitions
    if any(getattr(callback, "__code__", None) is code for callback in gc.callbacks):
        return 2  # this is a callback of the garbage collector, which may run at any time
    reason = skip_reason(code)
    if reason != "torch's own file":
        return int(bool(reason))
    inside = os.path.realpath(code.co_filename)[len(_torch_folder()) :]
    return 2 if inside.startswith(_SKIPPED_TREES) else 1
