"""Which code the eval-frame hook leaves to CPython by its kind; asked once per code object."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import sysconfig
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import torch

_NOT_FUNCTIONS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


@functools.lru_cache(maxsize=4096)
def _real(file: str) -> str:
    """The real path of a source file; asked for each of its functions."""
    return os.path.realpath(file)


@functools.lru_cache(maxsize=1)
def _torch_folder() -> str:
    return _folder(os.path.dirname(torch.__file__))


def is_torchs(file: str) -> bool:
    """Whether a file is one of torch's."""
    return os.path.realpath(file).startswith(_torch_folder())


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
    """Why the hook leaves this code alone, "" when it does not.

    torch.nn's modules are captured where they compute: they are what models are made of. What makes, registers and
    prints them is left alone.
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
        return "FX's generated code"  # a backend was given it: translating it again would give it to the backend again
    if path.startswith("<"):
        return ""
    if f"{os.sep}torchinductor_" in path or path.startswith(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or "\0"):
        return "inductor's generated code"
    path = _real(path)
    if path.startswith(_own_folder()):
        return "godynamo's own file"
    if path.startswith(_torch_folder()):
        inside = path[len(_torch_folder()) :]
        if not inside.startswith(_NN_MODULES):
            return "torch's own file"
        return "making or registering a module" if _keeps_books(code, inside[len(_NN_MODULES) :]) else ""
    if path.startswith(_stdlib_folders()) and not path.startswith(_site_folders()):
        return "standard library"
    return ""


_NN_MODULES = os.path.join("nn", "modules", "")
#: in files that keep books of modules, what is on the way of a call
_ON_A_CALLS_WAY = frozenset(("__call__", "_call_impl", "_slow_forward", "_wrapped_call_impl", "forward"))
_BOOKS = ("module.py", "container.py")
#: methods of modules that compute nothing of a model's; an optimizer of models serves frames that do
_BOOKKEEPING = frozenset(
    "__init__ __repr__ __setstate__ _load_from_state_dict _reset_parameters _save_to_state_dict extra_repr"
    " reset_parameters".split()
)


def _keeps_books(code: CodeType, file: str) -> bool:
    return code.co_name not in _ON_A_CALLS_WAY if file in _BOOKS else code.co_name in _BOOKKEEPING


def skipped_callable(fn: object) -> bool:
    """Whether the hook leaves a callable's own frames alone: C code, or Python code that skip_code() names."""
    function = getattr(fn, "__func__", fn)
    if not hasattr(function, "__code__"):
        function = inspect.getattr_static(type(function), "__call__", None)
    code = getattr(function, "__code__", None)
    return not isinstance(code, CodeType) or bool(skip_reason(code))


#: what makes a frame worth a translation where everything is served (core/calls/heat.c)
TENSOR_AND_MODULE = (torch.Tensor, torch.nn.Module)


def names_torch(function: FunctionType) -> bool:
    """Whether a function's code reads a global or a variable around it that is torch's, a tensor, a module or a class
    of modules.

    Called by the core once a code object. Runs none of the user's code.
    """
    code, names = function.__code__, function.__globals__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    inner = (name for const in code.co_consts if type(const) is CodeType for name in const.co_names)
    for name in (*code.co_names, *code.co_freevars, *inner):
        value: Any = names.get(name)
        if name in cells:
            try:
                value = cells[name].cell_contents
            except ValueError:  # not set yet
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


# Below a frame of these torch.compile is at work: it has a hook, a translator and generated code of its own.
_OTHER_COMPILERS = tuple(os.path.join("_" + name, "") for name in ("dynamo", "inductor"))


def skip_code(code: CodeType) -> int:
    """Called by the core (eval_frame.c): 0, 1 to leave the code alone, 2 to leave what it calls alone too."""
    if code.co_filename.startswith("<frozen importlib"):
        return 2  # an import is no part of the call: what runs below it only defines
    if any(getattr(callback, "__code__", None) is code for callback in gc.callbacks):
        return 2  # the collector calls it, whenever it runs
    reason = skip_reason(code)
    if reason != "torch's own file":
        return int(bool(reason))
    inside = os.path.realpath(code.co_filename)[len(_torch_folder()) :]
    return 2 if inside.startswith(_OTHER_COMPILERS) else 1
