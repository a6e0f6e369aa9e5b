"""What a callable is to the translator: read from torch itself, once per object and process."""

from __future__ import annotations

import _warnings
import dataclasses
import functools
import inspect
import reprlib
import sys
import types
import typing
import weakref
from typing import Any

import torch
import torch.nn.functional as F
import torch.overrides

from .._called import effects, runtime, torch_state
from .._user import break_errors
from . import higher, pure, torch_function
from .callable_names import callable_name, ops
from .identity_map import IdentityMap

_CALLABLE_TYPES = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    type,
    torch._ops.OpOverloadPacket,
    torch._ops.OpOverload,
)

#: names of the package that captured code reads, imported when the first function is: reading one must not import it then
ASKED_WITHIN = ("comptime", "error_on_graph_break", "is_dynamo_compiling", "is_exporting")


@functools.lru_cache(maxsize=1)
def _special() -> dict[Any, str]:
    """Callables whose meaning while translating is not the call itself."""
    import godynamo

    table: dict[Any, str] = {}

    def put(word: str, *paths: str) -> None:
        for path in paths:
            obj: Any = torch
            for part in path.split("."):
                obj = getattr(obj, part, None)
            if obj is not None:
                table[obj] = word

    put(
        "state",
        "_C._len_torch_dispatch_stack",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "get_default_dtype",
        "_C._get_tracing_state",
        "is_autocast_enabled",
        "get_autocast_dtype",
        "is_autocast_cpu_enabled",
        "are_deterministic_algorithms_enabled",
        "is_deterministic_algorithms_warn_only_enabled",
        "get_num_threads",
        "_C._is_tracing",
        "_C._get_deterministic_algorithms",
        "is_autocast_cache_enabled",
        "_C._is_autocast_available",
        "_C._get_privateuse1_backend_name",
        "_C._is_torch_function_enabled",
    )
    put("set_state", *torch_state.SETTERS)
    put("transform", "vmap", *(f"func.{name}" for name in "grad grad_and_value jacrev jacfwd hessian".split()))
    for name in ("func.vjp", "func.jvp", "func.functional_call", "utils.checkpoint.checkpoint"):
        put("taker:" + name.rsplit(".", 1)[1], name)
    put(
        "torch_function_check",
        "overrides.has_torch_function",
        "_C._has_torch_function",
        "_C._has_torch_function_unary",
        "_C._has_torch_function_variadic",
        "overrides.has_torch_function_unary",
        "overrides.has_torch_function_variadic",
    )
    # Their answers are the process's: what is available never changes, the rest is guarded.
    put(
        "constant",
        "cuda.is_available",
        "xpu.is_available",
        "mps.is_available",
        "backends.mps.is_available",
        "backends.mps.is_built",
    )
    put("asked", "distributed.is_available", "distributed.is_initialized", "_C._get_default_device")
    put("modes_push", "_C._push_on_torch_function_stack")
    put("modes_pop", "_C._pop_torch_function_stack")
    put("modes_number", "_C._len_torch_function_stack")
    put("modes_at", "_C._get_function_stack_at")
    put("modes_active", "_C._is_torch_function_mode_enabled")
    put("from_numpy", "from_numpy")
    put("true", "compiler.is_compiling", "compiler.is_dynamo_compiling")
    put("false", "jit.is_scripting", "_jit_internal.is_scripting")
    put("tracing", "jit.is_tracing", "compiler.is_exporting")
    put("asked", "onnx.is_in_onnx_export")
    put("first", "jit.annotate")
    put("tensor_predicate", "is_tensor", "is_floating_point", "is_complex", "is_signed", "numel")
    table.update(dict.fromkeys(effects.LOGGING, "log"))
    table[_warnings.warn] = "warn"
    table[sys.exc_info] = "exc_info"
    table[sys.exception] = "current_exception"
    table[typing.get_type_hints] = "type_hints"
    table[inspect.signature] = "signature"
    table[torch_function.converted] = table[torch._tensor._convert] = "converted"
    table[torch.Tensor._make_subclass] = "make_subclass"
    table[torch.overrides.handle_torch_function] = "handle_torch_function"
    table[torch_state.enter_functions_off] = "enter_state"
    table[torch_state.enter_all_functions_off] = "enter_state"
    table[torch_state.enter_inference_mode] = "enter_state"
    table[torch_state.enter_record] = "enter_state"
    table[torch_state.leave_entered] = "set_state"
    table[torch.autograd.profiler.record_function.__init__] = "inline"
    table[torch._jit_internal.is_scripting] = "false"
    table[torch.nn.modules.lazy.LazyModuleMixin._infer_parameters] = "later"
    table[godynamo.is_compiling] = "true"
    table[godynamo.is_exporting] = "false"
    table[godynamo.graph_break] = "graph_break"
    table[godynamo.skip_frame] = "skip_frame"
    table.update({fn: fn.__name__ for fn in break_errors.REGIONS})
    return table


# Python functions of torch's that are not inlined: they touch process-wide state or machinery the translator does not follow.
_OPAQUE_MODULES = tuple(
    "torch." + name
    for name in "_dynamo _inductor utils.data distributed autograd serialization optim cuda random jit fx export _guards storage "
    "multiprocessing profiler backends _functorch nn.init _tensor_str".split()
)

# Of torch.fx, what torch's own functions ask about numbers that may be symbolic: Python's numbers are not (torch._check).
_INLINED_MODULES = (
    "torch.nn.modules",
    "torch.backends.mha",
    "torch.autograd.grad_mode",
    "torch.cuda.amp",
    "torch._functorch.functional_call",
    "torch.fx.experimental.symbolic_shapes",
)

#: modules whose Python functions have stand-ins, see _polyfills
_PYTHON_STAND_INS = ("copy", "torch.autograd.profiler", "torch._tensor", "torch.masked._ops")

_cache: dict[Any, str] = {}

#: of functions that a call of a function of torch's has made (a decorator's): they live no longer than the program holds them
_cache_of_made: IdentityMap[Any, str] = IdentityMap()


def classify(obj: Any) -> str:
    """What a callable is to the translator: "" for the user's own, "inline", or a word TorchVariable.Call knows.

    Registered functions (allow_in_graph, disallow_in_graph, disable) are looked up each time, torch's own are cached.
    """
    if type(obj) is typing.NewType:
        return "first"  # its call gives the argument
    if obj is torch._C._VariableFunctions:
        return "namespace"
    kind = type(obj)  # isinstance would ask obj for its __class__
    # HigherOrderOperator's metaclass is abc's, whose check crashes on types that CPython does not make ready (that of
    # code.co_positions() in 3.11).
    if not issubclass(kind, _CALLABLE_TYPES) and not type.__subclasscheck__(torch._ops.HigherOrderOperator, kind):
        return ""
    registered = runtime.registered_kind(obj)
    if registered:
        return str(registered)
    if isinstance(obj, type):
        return ""
    cache: Any = _cache if kind is not types.FunctionType or obj.__closure__ is None else _cache_of_made
    known = cache.get(obj)
    if known is not None:
        return str(known)
    if isinstance(obj, types.FunctionType):
        # Not __module__, which functools.wraps copies: torch.compile's wrapper has the user's.
        module = obj.__globals__.get("__name__") or ""
    else:
        module = getattr(obj, "__module__", None) or ""
    word = _classify(obj, module)
    if isinstance(obj, types.BuiltinFunctionType) and word == "":
        return ""
    if isinstance(obj, types.MethodWrapperType):
        return word  # it holds an object of the program's
    if not isinstance(obj, types.FunctionType) or module.split(".", 1)[0] == "torch":
        cache[obj] = word
    return word


def _classify(obj: Any, module: str) -> str:
    special = _special().get(obj)
    if special:
        return special
    if obj in ops() or isinstance(obj, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)):
        return "op"
    if isinstance(obj, torch._ops.HigherOrderOperator):
        return "hop"
    if isinstance(obj, types.BuiltinFunctionType):
        return ""
    if isinstance(obj, types.FunctionType):
        if module == "godynamo.comptime":
            return f"comptime:{obj.__name__[1:]}"
        if module == "torch._dynamo.external_utils" and obj.__name__ == "is_compiling":
            return "true"  # torch._dynamo.is_compiling, which need not be imported
        if module == "godynamo" or module.startswith("godynamo."):
            return "inline" if module.startswith(_OWN_INLINED) else "opaque"
        if module in _PYTHON_STAND_INS and stand_in(obj) is not None:
            return "stand_in"
        if obj.__code__ is _DISPATCHING and _caches_plainly(obj):
            return "dispatch"
        if obj.__code__ in _RECURSIVE:
            return "recursive_repr"
        if module.startswith("torch._functorch.") and higher.is_made(obj):
            return "transformed"
        if pure.is_pure(obj, module):
            return "pure"
        # Wrappers whose bare builtin FX cannot name: it would print torch.split, which is the wrapper.
        if module == "torch.functional":
            return "op"
        if module.startswith(_OPAQUE_MODULES) and not module.startswith(_INLINED_MODULES):
            return "opaque"
    return ""


_OWN_INLINED = ("godynamo._polyfills", "godynamo.overrides", "godynamo._user.break_errors")

#: the code of what functools.singledispatch gives
_DISPATCHING = functools.singledispatch(id).__code__  # type: ignore[attr-defined]


def _caches_plainly(fn: Any) -> bool:
    """Whether asking a singledispatch function has no effect but on a cache that nobody looks at."""
    dispatch = fn.__dict__.get("dispatch")  # absent while singledispatch() makes the function
    if type(dispatch) is not types.FunctionType:
        return False
    return type(inspect.getclosurevars(dispatch).nonlocals.get("dispatch_cache")) is weakref.WeakKeyDictionary


#: the code of what dataclasses and reprlib wrap a __repr__ into, which may meet itself
_RECURSIVE = (
    dataclasses._recursive_repr(repr).__code__,  # type: ignore[attr-defined]
    reprlib.recursive_repr()(repr).__code__,
)


def stand_in(obj: Any) -> tuple[Any, bool] | None:
    """(function or class, fold) that is called in the place of a callable: the user's own (substitute_in_graph), or one of
    _polyfills. fold: the callable itself may be called while translating, where all arguments are known."""
    found = runtime.substitute_of(obj)
    if found is not None:
        return found
    from .. import _polyfills

    return _polyfills.find_python(obj) if type(obj) is types.FunctionType else _polyfills.find(obj)


def stand_in_object(obj: Any) -> Any:
    """(maker, args, kwargs) of the stand-in for an object of the frame, or None; see _polyfills.find_object."""
    from .. import _polyfills

    return _polyfills.find_object(obj)


def polyfill(name: str) -> Any:
    """A function of _polyfills by "module.function"."""
    from .. import _polyfills

    return _polyfills.named(name)


_NOT_METHODS = {"backward", "register_hook", "retain_grad", "share_memory_", "numpy", "cuda", "__array__"}


def method_kind(name: str, nargs: int, kwnames: tuple[str, ...], argkinds: str = "") -> str:
    """Result kind of ``Tensor.name(*args, **kwargs)``: "tensor", "self", "inline" (a Python method), ...; argkinds as for
    result_kind, without self."""
    if name in _NOT_METHODS:
        return "unknown"
    fn = getattr(torch.Tensor, name, None)
    if name.endswith("_") and not name.endswith("__"):
        return "self"
    kind = runtime.method_kind(name, nargs, kwnames, argkinds)
    if kind == "unknown" and isinstance(fn, types.FunctionType) and fn.__module__ == "torch._tensor":
        return "unknown" if name.startswith("__") else "inline"
    return kind


def result_kind(fn: Any, nargs: int, kwnames: tuple[str, ...], argkinds: str) -> str:
    """Result kind of a torch function called with ``nargs`` positional arguments of the given kinds."""
    name = callable_name(fn)
    if name.endswith("_") and not name.endswith("__"):
        return "self"
    return runtime.result_kind_call(fn, nargs, kwnames, argkinds)


_ = F  # imported so that torch.nn.functional's module object exists before it is classified
