"""Decides how the translator treats a callable, mostly from torch's own tables, once per callable and process."""

from __future__ import annotations

import _warnings
import collections
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

from .._called import effects, gradients, runtime, torch_state
from .._user import break_errors
from .._user.callable_kinds import OWN, CallableKind, Classified, classified
from . import arrays, foreign, higher, kinds, pure, torch_function
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

#: Names of the package ``godynamo`` that captured code may read. They are imported when the first function is
#: translated, so that reading a name later imports nothing.
ASKED_WITHIN = ("comptime", "error_on_graph_break", "is_dynamo_compiling", "is_exporting")


@functools.lru_cache(maxsize=1)
def _special() -> dict[Any, Classified]:
    """Return the callables that the translator handles in a special way, with their kinds."""
    import godynamo

    table: dict[Any, Classified] = {}

    def put(kind: CallableKind, *paths: str, detail: str = "") -> None:
        for path in paths:
            obj: Any = torch
            for part in path.split("."):
                obj = getattr(obj, part, None)
            if obj is not None:
                put_objects(kind, obj, detail=detail)

    def put_objects(kind: CallableKind, *objects: Any, detail: str = "") -> None:
        table.update(dict.fromkeys(objects, classified(kind, detail)))

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
        "_C._is_tracing",
        "_C._get_deterministic_algorithms",
        "is_autocast_cache_enabled",
        "_C._is_autocast_available",
        "_C._get_privateuse1_backend_name",
        "_C._is_torch_function_enabled",
    )
    put("state", "get_num_threads", detail="threads")
    put("set_state", *torch_state.SETTERS)
    put("transform", "vmap", *(f"func.{name}" for name in "grad grad_and_value jacrev jacfwd hessian".split()))
    for name in ("func.vjp", "func.jvp", "func.linearize", "func.functional_call", "utils.checkpoint.checkpoint"):
        put("taker", name, detail=name.rsplit(".", 1)[1])
    put(
        "torch_function_check",
        "overrides.has_torch_function",
        "_C._has_torch_function",
        "_C._has_torch_function_unary",
        "_C._has_torch_function_variadic",
        "overrides.has_torch_function_unary",
        "overrides.has_torch_function_variadic",
    )
    # Availability of devices never changes in a process.
    put(
        "constant",
        "cuda.is_available",
        "xpu.is_available",
        "mps.is_available",
        "backends.mps.is_available",
        "backends.mps.is_built",
        "accelerator.current_accelerator",
        "accelerator.is_available",
    )
    put("asked", "distributed.is_available", "distributed.is_initialized", "_C._get_default_device")
    put("asked", "get_default_device", detail="modes")  # looks for a device among the modes of the program first
    for name in ("autograd.backward", "autograd.grad"):
        put("backward_pass", name, detail=f"torch.{name}")
    put_objects("expected_zero", gradients.found_infinite)
    put_objects("fact", *foreign.rank_facts())
    # Seeding runs in its place, once, like an operation of torch.distributed.
    put("foreign", "random.manual_seed", detail="object")
    put("foreign", "random.set_rng_state", "cuda.manual_seed", "cuda.manual_seed_all", detail="none")
    put("modes", "_C._push_on_torch_function_stack", detail="push")
    put("modes", "_C._pop_torch_function_stack", detail="pop")
    put("modes", "_C._len_torch_function_stack", detail="number")
    put("modes", "_C._get_function_stack_at", detail="at")
    put("modes", "_C._is_torch_function_mode_enabled", detail="active")
    put("from_numpy", "from_numpy")
    for fn, detail in arrays.FUNCTIONS.items():
        put_objects("numpy", fn, detail=detail)
    put("true", "compiler.is_compiling", "compiler.is_dynamo_compiling")
    put("false", "jit.is_scripting", "_jit_internal.is_scripting", "fx._symbolic_trace._get_is_fx_tracing")
    put("inline", "fx._symbolic_trace.is_fx_tracing", "fx._symbolic_trace.is_fx_symbolic_tracing")
    put("tracing", "jit.is_tracing", "compiler.is_exporting")
    put("inline", "fx.traceback.annotate.__wrapped__")
    put("asked", "onnx.is_in_onnx_export")
    put("asked", *(f"cpu.{name}" for name in dir(torch.cpu) if name.startswith("_is_") and name.endswith("_supported")))
    put("first", "jit.annotate")
    put("tensor_predicate", "is_tensor", "is_floating_point", "is_complex", "is_signed", "numel")
    put_objects("log", *effects.LOGGING)
    put_objects("warn", _warnings.warn)
    put_objects("exc_info", sys.exc_info)
    put_objects("current_exception", sys.exception)
    put_objects("type_hints", typing.get_type_hints)
    put_objects("signature", inspect.signature)
    put_objects("namedtuple", collections.namedtuple)
    put_objects("converted", torch_function.converted, torch._tensor._convert)
    put_objects("make_subclass", torch.Tensor._make_subclass)
    put_objects("make_wrapper", torch.Tensor._make_wrapper_subclass)
    put_objects("handle_torch_function", torch.overrides.handle_torch_function)
    put_objects(
        "enter_state",
        torch_state.enter_functions_off,
        torch_state.enter_all_functions_off,
        torch_state.enter_inference_mode,
        torch_state.enter_sdpa_kernel,
        torch_state.enter_record,
    )
    put_objects("set_state", torch_state.leave_entered)
    put_objects("inline", torch.autograd.profiler.record_function.__init__)
    # what finds ``forward`` of a traced module
    put_objects("inline", torch.jit._script._CachedForward.__get__, torch.jit._trace.TracedModule.__getattr__)
    put_objects("check", torch._check_with)
    put_objects("later", torch.nn.modules.lazy.LazyModuleMixin._infer_parameters)
    put_objects("substitute", torch.nn.parallel.DistributedDataParallel._run_ddp_forward)
    put_objects("true", godynamo.is_compiling)
    put_objects("tracing", godynamo.is_exporting)
    put_objects("graph_break", godynamo.graph_break)
    put_objects("skip_frame", godynamo.skip_frame)
    for fn in break_errors.REGIONS:
        put_objects("region", fn, detail=fn.__name__.removeprefix("region_"))
    return table


# Modules of torch whose Python functions are not inlined: they use process-wide state, or features of torch that the
# translator does not support.
_OPAQUE_MODULES = tuple(
    "torch." + name
    for name in "_dynamo _inductor utils.data distributed autograd serialization optim cuda random jit fx export "
    "_guards storage "
    "multiprocessing profiler backends _functorch nn.init _tensor_str".split()
)

# Exceptions to _OPAQUE_MODULES. torch._check and similar functions call symbolic_shapes to check numbers that may be
# symbolic, but captured code has only Python numbers.
_INLINED_MODULES = (
    "torch.nn.init",
    "torch.nn.modules",
    "torch.backends.mha",
    "torch.autograd.grad_mode",
    "torch.cuda.amp",
    "torch._dynamo._trace_wrapped_higher_order_op",
    "torch._functorch.functional_call",
    "torch.fx.experimental.symbolic_shapes",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
    "torch.optim",
)

# Exceptions to _INLINED_MODULES. The length of a step of LBFGS depends on the data and on a history that grows, so each
# step would be another graph. The closure that it calls is one graph.
_OPAQUE_INSIDE = ("torch.optim.lbfgs",)

#: modules with Python functions that have stand-ins, see _polyfills
_PYTHON_STAND_INS = (
    "contextlib",
    "godynamo._user.modules",
    "copy",
    "numpy._core.getlimits",
    "numpy.core.getlimits",
    "torch._dynamo.decorators",
    "torch._export.wrappers",
    "torch._higher_order_ops.invoke_subgraph",
    "torch.amp.grad_scaler",
    "torch.autograd.profiler",
    "torch.fx.experimental.symbolic_shapes",
    "torch._tensor",
    "torch.masked._ops",
    "torch.optim.swa_utils",
    "torch.utils._foreach_utils",
)

_cache: dict[Any, Classified] = {}

#: Kinds of torch's closures, such as functions that a decorator has returned. When a closure dies, its kind is dropped.
_cache_of_made: IdentityMap[Any, Classified] = IdentityMap()


def classify(obj: Any) -> Classified:
    """Return how the translator treats a callable: OWN for the user's callables, else a kind of CallableKind.

    Registrations (allow_in_graph, disallow_in_graph, disable) are looked up each time. Kinds of torch's callables are
    cached.
    """
    if type(obj) is typing.NewType:
        return classified("first")  # a call of a NewType returns the argument
    if obj is torch._C._VariableFunctions:
        return classified("namespace")
    kind = type(obj)  # isinstance would read obj's __class__
    detail = arrays.detail(obj)
    if detail is not None:
        return runtime.registered_kind(obj) or classified("numpy", detail)
    # issubclass(kind, HigherOrderOperator) would call ABCMeta, which crashes on types that CPython does not initialize
    # (the type of code.co_positions() in 3.11).
    if not issubclass(kind, _CALLABLE_TYPES) and not type.__subclasscheck__(torch._ops.HigherOrderOperator, kind):
        return OWN
    registered = runtime.registered_kind(obj)
    if registered:
        return registered
    if isinstance(obj, type):
        return OWN
    cache: Any = _cache if kind is not types.FunctionType or obj.__closure__ is None else _cache_of_made
    known: Classified | None = cache.get(obj)
    if known is not None:
        return known
    if isinstance(obj, types.FunctionType):
        # functools.wraps copies __module__: a wrapper of torch.compile has the __module__ of the user's function.
        module = obj.__globals__.get("__name__") or ""
    else:
        module = getattr(obj, "__module__", None) or ""
    word = _classify(obj, module)
    if isinstance(obj, types.BuiltinFunctionType) and word == OWN:
        return OWN
    if isinstance(obj, types.MethodWrapperType):
        return word  # not cached, because the method-wrapper holds a user object
    if not isinstance(obj, types.FunctionType) or module.split(".", 1)[0] == "torch":
        cache[obj] = word
    return word


def _classify(obj: Any, module: str) -> Classified:
    special = _special().get(obj)
    if special:
        return special
    if obj in ops() or isinstance(obj, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)):
        return classified("op")
    if isinstance(obj, torch._ops.HigherOrderOperator):
        return classified("hop")
    if isinstance(obj, types.BuiltinFunctionType):
        return OWN
    if isinstance(obj, types.FunctionType):
        if module == "godynamo.comptime":
            return classified("comptime", obj.__name__[1:])
        if module == "torch._dynamo.external_utils" and obj.__name__ == "is_compiling":
            return classified("true")  # this is torch._dynamo.is_compiling, found without importing torch._dynamo
        if module in _PYTHON_STAND_INS and stand_in(obj) is not None:
            return classified("stand_in")
        if module == "torch._dynamo.eval_frame" and obj.__qualname__ == "OptimizedModule.__call__":
            return classified("inline")
        if module == "godynamo" or module.startswith("godynamo."):
            return classified("inline" if module.startswith(_OWN_INLINED) else "opaque")
        if module == "torch.optim.optimizer" and stand_in(obj) is not None:
            return classified("substitute")
        if (
            obj.__code__ is _DISABLED and obj.__dict__.get("__wrapped__") is torch.random.manual_seed
        ):  # importing torch._dynamo does this
            return classified("foreign", "object")
        if obj.__code__ is _DISPATCHING and _caches_plainly(obj):
            return classified("dispatch")
        if obj.__code__ in _RECURSIVE:
            return classified("recursive_repr")
        if module.startswith("torch._functorch.") and higher.is_made(obj):
            return classified("transformed")
        if pure.is_pure(obj, module):
            return classified("pure")
        # These functions wrap a C function of the same name. FX can name only the wrapper, such as torch.split.
        if module == "torch.functional":
            return classified("op")
        if obj.__code__ is _SCRIPT_IF_TRACING:
            return OWN
        if module.startswith(("torch.distributed.", "torch.nn.parallel.")):
            gives = foreign.returns(obj)
            if gives:
                return OWN if gives == "inline" else classified("foreign", gives)
        if module.startswith(_OPAQUE_MODULES) and (module in _OPAQUE_INSIDE or not module.startswith(_INLINED_MODULES)):
            return classified("opaque")
    return OWN


_OWN_INLINED = ("godynamo._polyfills", "godynamo.overrides", "godynamo._user.break_errors")

#: the code object of the functions that functools.singledispatch returns
_DISPATCHING = functools.singledispatch(id).__code__  # type: ignore[attr-defined]

#: the code object of the functions that torch.jit.script_if_tracing returns: outside of tracing they call the original
_SCRIPT_IF_TRACING = torch.jit.script_if_tracing(id).__code__  # type: ignore[no-untyped-call]


#: the code object of the functions that torch._disable_dynamo returns
_DISABLED: types.CodeType = torch._compile._disable_dynamo(id).__code__


def _caches_plainly(fn: Any) -> bool:
    """Return whether calling ``fn.dispatch``, of a singledispatch function, changes only singledispatch's own cache."""
    dispatch = fn.__dict__.get("dispatch")  # missing while singledispatch() is still making the function
    if type(dispatch) is not types.FunctionType:
        return False
    return type(inspect.getclosurevars(dispatch).nonlocals.get("dispatch_cache")) is weakref.WeakKeyDictionary


#: code objects of the wrappers with which dataclasses and reprlib protect a __repr__ from endless recursion
_RECURSIVE = (
    getattr(dataclasses, "_recursive_repr", reprlib.recursive_repr())(repr).__code__,  # 3.13 has one for both
    reprlib.recursive_repr()(repr).__code__,
)


def stand_in(obj: Any) -> tuple[Any, bool] | None:
    """Return (stand-in, fold) for a callable, or None. The stand-in is a function or class that is inlined instead: the
    user's (substitute_in_graph), or one of _polyfills. If ``fold`` is true and all arguments are known, the callable
    itself may be called during translation."""
    found = runtime.substitute_of(obj)
    if found is not None:
        return found
    from .. import _polyfills

    return _polyfills.find_python(obj) if type(obj) is types.FunctionType else _polyfills.find(obj)


def stand_in_object(obj: Any) -> Any:
    """Return (maker, args, kwargs) of the stand-in for a C object that a frame uses, or None."""
    from .. import _polyfills

    return _polyfills.find_object(obj)


@functools.lru_cache(maxsize=1)
def foreach_gives_list() -> bool:
    """Return whether torch's in-place operations on lists return the list, as newer versions of torch do, or None."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        tensors = [torch.empty(0, device="cpu")]
        return torch._foreach_zero_(tensors) is tensors


def polyfill(name: str) -> Any:
    """Return the function of _polyfills with the name "module.function"."""
    from .. import _polyfills

    return _polyfills.named(name)


_NOT_METHODS = {"backward", "register_hook", "retain_grad", "share_memory_", "numpy", "__array__"}


def method_kind(name: str, nargs: int, kwnames: tuple[str, ...], argkinds: str = "") -> str:
    """Return the result kind of ``Tensor.name(*args, **kwargs)``: "tensor", "self", "inline" (a Python method), ...
    ``argkinds`` are the letters for the positional arguments without self, as in kinds._TAKES."""
    if name in _NOT_METHODS:
        return "unknown"
    fn = getattr(torch.Tensor, name, None)
    if name.endswith("_") and not name.endswith("__"):
        return "self"
    kind = kinds.method_kind(name, nargs, kwnames, argkinds)
    if kind == "unknown" and isinstance(fn, types.FunctionType) and fn.__module__ == "torch._tensor":
        return "unknown" if name.startswith("__") else "inline"
    return kind


def result_kind(fn: Any, nargs: int, kwnames: tuple[str, ...], argkinds: str) -> str:
    """Return the result kind of a call of a torch function; ``argkinds`` are letters as in kinds._TAKES."""
    name = callable_name(fn)
    if name.endswith("_") and not name.endswith("__"):
        return "self"
    return kinds.result_kind_call(fn, nargs, kwnames, argkinds)


_ = F  # torch.nn.functional is imported here so that it exists before its functions are classified
