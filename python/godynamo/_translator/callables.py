"""What the translator asks of callables and types: read from torch itself, once per object and process.

The Go side fetches :func:`facts` at its first translation and keeps the objects; the functions below are called
while translating only, never on a hit.
"""

from __future__ import annotations

import _warnings
import abc
import builtins
import collections
import dataclasses
import enum
import functools
import inspect
import operator
import random
import re
import reprlib
import string
import sys
import types
import typing
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.overrides
from torch.utils._device import DeviceContext

from .. import _C
from .._called import effects, runtime, torch_state
from .._user import break_errors
from . import alike, answers, caches, classes, higher, hints, pure, shadows, tensor_types, torch_function
from . import numpy as _numpy
from .identity_map import IdentityMap

MISSING = object()

_TORCH_CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.qscheme)
#: other types of immutable values that programs read and pass on: unions and aliases of typing, limits of dtypes, regular
#: expressions
_PLAIN_CONSTANTS = (
    torch.finfo,
    torch.iinfo,
    types.UnionType,
    types.GenericAlias,
    type(Callable[[], Any]),
    *(
        cls
        for name, cls in vars(typing).items()
        if name.startswith("_") and isinstance(cls, type) and issubclass(cls, typing._Final)
    ),
    typing.TypeVar,
    re.Pattern,
    re.Match,
    inspect.Signature,
    inspect.Parameter,
    type(sys.version_info),
    type(sys.flags),
)
# What is told apart by identity: torch's singletons, and immutable values whose equality says less than all of them.
_SINGLETONS = (
    *(torch.dtype, torch.layout, torch.memory_format, torch.qscheme, re.Pattern, re.Match),
    *(type(sys.version_info), type(sys.flags)),
)
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


def _op_namespaces() -> list[Any]:
    names = ("_nn", "_fft", "_linalg", "_special", "_sparse", "_nested")
    return [torch._C._VariableFunctions] + [getattr(torch._C, n) for n in names if hasattr(torch._C, n)]


@functools.lru_cache(maxsize=1)
def _ops() -> dict[Any, str]:
    """Every C function that torch's op namespaces offer, with its name."""
    table: dict[Any, str] = {}
    for space in _op_namespaces():
        for name in dir(space):
            fn = getattr(space, name, None)
            if isinstance(fn, types.BuiltinFunctionType) and not name.startswith("__"):
                table.setdefault(
                    fn,
                    name
                    if space is torch._C._VariableFunctions
                    else space.__name__.removeprefix("torch.") + "." + name,
                )
    return table


#: names of the package that captured code reads, imported when the first function is: reading one must not import it then
_ASKED_WITHIN = ("comptime", "error_on_graph_break", "is_dynamo_compiling", "is_exporting")


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
    if obj in _ops() or isinstance(obj, (torch._ops.OpOverloadPacket, torch._ops.OpOverload)):
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


def callable_name(fn: Any) -> str:
    """The name a graph prints: qualified for torch's operations."""
    name = _ops().get(fn) or getattr(fn, "__name__", None) or type(fn).__name__
    module = getattr(fn, "__module__", None) or ""
    if fn in _ops() or module.startswith("torch"):
        return "torch." + name
    return str(name)


def mode_active() -> bool:
    """Whether a torch function mode is entered that may do anything with an operation."""
    return bool(torch._C._len_torch_function_stack() > 0) and default_device() is None


def default_device() -> torch.device | None:
    """The device that constructors get by torch.set_default_device and ``with torch.device``, where no other mode is entered.

    All that these modes do is to give constructors their device. What is captured under them runs under them, too.
    """
    device = None
    for i in range(torch._C._len_torch_function_stack()):
        mode = torch._C._get_function_stack_at(i)
        if type(mode) is not DeviceContext:
            return None
        device = mode.device
    return device


def is_default_device(device: torch.device) -> bool:
    """The guard of what was captured under a default device."""
    return default_device() == device


_BUILTIN_NAMES: dict[Any, str] = {}
for _name in dir(operator):
    _obj = getattr(operator, _name)
    if isinstance(_obj, types.BuiltinFunctionType):
        _BUILTIN_NAMES.setdefault(_obj, "operator." + _name)
for _name in dir(builtins):
    _obj = getattr(builtins, _name)
    if isinstance(_obj, (types.BuiltinFunctionType, type)) and not (
        isinstance(_obj, type) and issubclass(_obj, BaseException)
    ):
        _BUILTIN_NAMES[_obj] = _name
del _BUILTIN_NAMES[object]
#: by identity: a metaclass may say what its classes hash to
_NAMES_BY_ID = {id(_obj): _name for _obj, _name in _BUILTIN_NAMES.items()}
_type_name: Any = type.__dict__["__qualname__"].__get__


def builtin_name(obj: Any) -> str:
    """Name of a function or type of builtins or operator; dotted name of another C function; "" for classes."""
    known = _NAMES_BY_ID.get(id(obj))
    if known:
        return known
    if issubclass(type(obj), type):
        return ""
    if (
        type(obj) is types.BuiltinMethodType
        and (owner := obj.__self__) is not None
        and type(owner) is not types.ModuleType
    ):
        # its __qualname__ reads the class's, which a metaclass may answer
        return f"{_type_name(owner if issubclass(type(owner), type) else type(owner))}.{obj.__name__}"
    return str(getattr(obj, "__qualname__", "") or "builtin")


def equal_to(value: Any) -> Callable[[Any], bool]:
    """A guard predicate; ``value`` is of a type of torch's or a frozenset of plain constants."""
    if isinstance(value, (set, frozenset)):
        typed = _typed(value)
        return lambda other: _typed(other) == typed
    if getattr(value, "__args__", None) is not None:  # Union[int, str] equals Union[str, int]
        parts = _alias_parts(value)
        return lambda other: type(other) is type(value) and other == value and _alias_parts(other) == parts
    if type(value) in _numpy.SCALARS:
        told = _numpy.told(value)
        return lambda other: type(other) is told[0] and _numpy.told(other) == told
    return lambda other: type(other) is type(value) and other == value


_ALIASES: tuple[Any, ...] = (types.GenericAlias, types.UnionType, typing._GenericAlias)  # type: ignore[attr-defined]


def _alias_parts(value: Any) -> Any:
    """A generic alias or union with its arguments in their order; no hook of a class among them runs."""
    args = value.__args__ if issubclass(type(value), _ALIASES) else None
    return (type(value), tuple(map(_alias_parts, args))) if type(args) is tuple else value


def _typed(value: Any) -> Any:
    """A plain constant with its types: 1, 1.0 and True are equal, and so are the zeros."""
    if isinstance(value, tuple):
        return tuple, tuple(map(_typed, value))
    if isinstance(value, (set, frozenset)):
        return frozenset, frozenset(map(_typed, value))
    return type(value), value.hex() if isinstance(value, float) else value


def plain_layout(cls: type) -> bool:
    """Instances of cls are made of a dict or slots alone: no base class written in C but object and SimpleNamespace, which has a
    dict and nothing else. An abstract class has none."""
    is_abstract = 1 << 20
    bare = (object, types.SimpleNamespace)
    return not cls.__flags__ & is_abstract and all(c in bare or _class_statement_made(c) for c in cls.__mro__)


def _class_statement_made(cls: type) -> bool:
    heap_type, disallow_instantiation = 1 << 9, 1 << 7
    if not cls.__flags__ & heap_type or cls.__flags__ & disallow_instantiation:
        return False
    # C's heap types have functions and fields of their own; a class statement adds a dict, a list of weak references, slots
    if any(_written_in_c(cls, d) for d in vars(cls).values()):
        return False
    fields = sum(type(d) is types.MemberDescriptorType for d in vars(cls).values())
    base = cls.__base__
    return base is None or cls.__basicsize__ - base.__basicsize__ <= (fields + 2) * tuple.__itemsize__


def _written_in_c(cls: type, attribute: Any) -> bool:
    """A slot, method or ``__new__`` that C code gave this very class."""
    kind = type(attribute)  # isinstance would read its __class__
    if kind is types.WrapperDescriptorType or kind is types.MethodDescriptorType:
        return attribute.__objclass__ is cls
    return kind is types.BuiltinFunctionType and attribute.__self__ is cls


def bound_self(fn: Any) -> Any:
    """What a C function is bound to, MISSING for functions of modules and classes."""
    owner = getattr(fn, "__self__", None)
    if owner is None or issubclass(type(owner), (types.ModuleType, type)):  # isinstance would ask the user's object
        return MISSING
    return owner


def _told(v: Any) -> Any:
    """A plain constant with its type and that of its parts: 1, 1.0 and True differ, 0.0 and -0.0 too."""
    if isinstance(v, tuple):
        return type(v), tuple(map(_told, v))
    if isinstance(v, frozenset):
        return type(v), frozenset(map(_told, v))
    return type(v), repr(v) if isinstance(v, (float, complex)) else v


def set_is(value: frozenset[Any]) -> Callable[[Any], bool]:
    """A guard predicate: a set of equal members of the same types, plain constants all. Calls no method of a subclass."""
    typed = frozenset(map(_told, value))
    if all(type(v) is str for v in value):
        return lambda other: set.__eq__(other, value) is True and all(type(v) is str for v in set.__iter__(other))
    return lambda other: set.__eq__(other, value) is True and frozenset(map(_told, set.__iter__(other))) == typed


def layout_is(members: set[Any]) -> Callable[[Any], bool]:
    """A guard predicate: a set whose table is laid out as this one's, so that it has the same order after any change."""
    layout = _C.set_layout(members)
    return lambda other: bool(_C.set_layout(other) == layout)


def same_order(items: tuple[Any, ...]) -> Callable[[Any], bool]:
    """A guard predicate: the set or frozenset has equal items in this order."""
    return lambda other: tuple((set if isinstance(other, set) else frozenset).__iter__(other)) == items


def deque_is(items: tuple[Any, ...], maxlen: int | None) -> Callable[[Any], bool]:
    """A guard predicate: a deque of these constants."""
    typed = tuple(map(_told, items))
    return lambda other: other.maxlen == maxlen and tuple(map(_told, other)) == typed


#: reads a defaultdict's factory; its class's own attribute hooks are not asked
_default_factory: Any = collections.defaultdict.__dict__["default_factory"].__get__


def factory_is(factory: Any) -> Callable[[Any], bool]:
    """A guard predicate: a defaultdict with this factory."""
    return lambda other: _default_factory(other) is factory


def value_is(base: type, value: Any) -> Callable[[Any], bool]:
    """A guard predicate: an instance of a subclass of ``base`` that holds this value, whatever its class says of equality."""
    if base in (float, complex):  # not a number, and zeros of either sign
        text, known = base.__repr__, base.__repr__(value)
        return lambda other: text(other) == known
    equal: Any = base.__eq__
    return lambda other: bool(equal(other, value))


def plain_value(base: type, value: Any) -> Any:
    """What an instance of a subclass of an immutable builtin type holds, as that type; no code of the subclass runs."""
    if base is str:
        return str.__str__(value) if type(value) is str else "".join(str.__iter__(value))
    if base is bytes:
        return bytes(bytes.__iter__(value))
    if base is complex:
        return complex.__pos__(value)
    return {int: int.__int__, float: float.__float__}[base](value)


def advanced(iterable: Any, n: int) -> Any:
    """``iter(iterable)`` after n steps."""
    it = iter(iterable)
    for _ in range(n):
        next(it, None)
    return it


def spent(empty: Any) -> Any:
    """An iterator over an empty container that has seen its end."""
    it = iter(empty)
    next(it, None)
    return it


_PERCENT = re.compile(
    r"%(?:\((?P<key>[^()]*)\))?[-+ #0]*(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<type>[a-zA-Z%])"
)


def percent_fields(text: str) -> list[Any]:
    """Keys (None: the next operand) and conversions of a % format, flat. Raises ValueError where it is beyond the pattern."""
    out: list[Any] = []
    at = 0
    while (at := text.find("%", at)) >= 0:
        field = _PERCENT.match(text, at)
        if field is None:
            raise ValueError(text)
        at = field.end()
        if field["type"] == "%" and field["key"] is None:
            continue
        out += [x for part in ("width", "precision") if field[part] == "*" for x in (None, "d")]
        out += [field["key"], field["type"]]
    return out


class _Repr:
    """Prints as a given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def ascii_text(text: str) -> str:
    """What ascii() makes of a repr."""
    return ascii(_Repr(text))


def format_fields(text: str) -> list[Any] | None:
    """Literals, keys (int, str or None), conversions and specs of a str.format text, flat.

    None where fields are nested or reach into their values.
    """
    out: list[Any] = []
    auto = 0
    try:
        for literal, field, spec, conversion in string.Formatter().parse(text):
            if field is None:
                out += [literal, None, "", ""]
                continue
            if "." in field or "[" in field or "{" in (spec or ""):
                return None
            key: Any = field
            if field == "":
                key, auto = auto, auto + 1
            elif field.isdigit():
                key = int(field)
            out += [literal, key, {"s": "str", "r": "repr", "a": "ascii", None: ""}[conversion], spec or ""]
    except (ValueError, KeyError):
        return None
    return out


def handles_nothing(_: Any) -> bool:
    """A guard predicate: no exception is being handled where the call comes from."""
    return sys.exc_info()[1] is None


def _nothing() -> None:
    pass


def binding_error(
    code: types.CodeType, name: str, defaults: int, keywords: tuple[str, ...], nargs: int, kwnames: tuple[str, ...]
) -> str:
    """The text of the TypeError that a call of a function with this code gets; ``keywords`` have defaults too."""
    bare = _nothing.__code__
    flags = bare.co_flags | code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    count = (
        code.co_argcount
        + code.co_kwonlyargcount
        + bool(flags & inspect.CO_VARARGS)
        + bool(flags & inspect.CO_VARKEYWORDS)
    )
    twin = types.FunctionType(
        bare.replace(
            co_argcount=code.co_argcount,
            co_posonlyargcount=code.co_posonlyargcount,
            co_kwonlyargcount=code.co_kwonlyargcount,
            co_flags=flags,
            co_varnames=code.co_varnames[:count],
            co_nlocals=count,
        ),
        {},
        argdefs=(None,) * defaults,
    )
    twin.__qualname__ = name
    twin.__kwdefaults__ = dict.fromkeys(keywords)
    try:
        twin(*(None,) * nargs, **dict.fromkeys(kwnames))
    except TypeError as error:
        return str(error)
    raise AssertionError(name)


def _autograd_parts() -> tuple[Any, Any]:
    """What stands for ctx, and what makes a function that torch.fx can name (_polyfills.autograd)."""
    from .._polyfills import autograd

    return autograd.Context, autograd.applied


def facts() -> dict[str, Any]:
    """The objects the Go side tells kinds apart by."""
    import godynamo

    for name in _ASKED_WITHIN:
        getattr(godynamo, name)
    return {
        "list": list,
        "tuple": tuple,
        "dict": dict,
        "set": set,
        "frozenset": frozenset,
        "slice": slice,
        "range": range,
        "function": types.FunctionType,
        "method": types.MethodType,
        "generator": types.GeneratorType,
        "type": type,
        "ABCMeta": abc.ABCMeta,
        "BaseException": BaseException,
        "object": object,
        "partial": functools.partial,
        "OrderedDict": OrderedDict,
        "Enum": enum.Enum,
        "EnumMeta": enum.EnumMeta,
        "Tensor": torch.Tensor,
        "Parameter": torch.nn.Parameter,
        "Size": torch.Size,
        "Uninitialized": torch.nn.parameter.UninitializedTensorMixin,  # type: ignore[attr-defined]
        "Module": torch.nn.Module,
        "state_contexts": torch_state.CONTEXTS,
        "GenericGetItem": vars(typing.Generic)["__class_getitem__"],
        "ModuleList": torch.nn.ModuleList,
        "Sequential": torch.nn.Sequential,
        "ScriptFunction": torch.jit.ScriptFunction,
        "Callable": _C.Callable,
        "object_getattribute": object.__getattribute__,
        "module_getattr": torch.nn.Module.__getattr__,
        "module_setattr": torch.nn.Module.__setattr__,
        "getattr": getattr,
        "sorted": sorted,
        "print": print,
        "missing": MISSING,
        "operators": {n: getattr(operator, n) for n in dir(operator) if not n.startswith("__")},
        "builtins": dict(vars(builtins)),
        "torch_constants": dict.fromkeys(_TORCH_CONSTANTS + _PLAIN_CONSTANTS + _numpy.SCALARS),
        "singletons": dict.fromkeys(_SINGLETONS),
        "method_kind": method_kind,
        "result_kind": result_kind,
        "callable_name": callable_name,
        "mode_active": mode_active,
        "default_device": default_device,
        "is_default_device": is_default_device,
        "is_pure": runtime.is_pure_call,
        "classify": classify,
        "builtin_name": builtin_name,
        "equal_to": equal_to,
        "named_tuple_fields": classes.named_tuple_fields,
        "checked_classes": classes.checked_classes,
        "default_factory": _default_factory,
        "stays_outside": answers.stays_outside,
        "fact_is": answers.fact_is,
        "flag_is": answers.flag_is,
        "tensor_type_is": tensor_types.tensor_type_is,
        "tensor_like_is": tensor_types.tensor_like_is,
        "tensor_type_name": tensor_types.tensor_type_name,
        "decides_itself": tensor_types.decides_itself,
        "bound_self": bound_self,
        "is_tensor": torch.is_tensor,
        "plain_layout": plain_layout,
        "stand_in": stand_in,
        "stand_in_object": stand_in_object,
        "polyfill": polyfill,
        "call_pure": pure.call,
        "dispatched": answers.dispatched,
        "asked": answers.asked,
        "computed_attribute": answers.computed_attribute,
        "register_buffer": torch.nn.Module.register_buffer,
        "buffer_hooks": torch.nn.modules.module._global_buffer_registration_hooks,
        "deque": collections.deque,
        "cached_property": functools.cached_property,
        "defaultdict": collections.defaultdict,
        "set_is": set_is,
        "same_order": same_order,
        "set_clone": _C.set_clone,
        "numpy_scalars": dict.fromkeys(_numpy.SCALARS),
        "numpy_operation": _numpy.operation,
        "numpy_functions": _numpy.FUNCTIONS,
        "numpy_callables": dict.fromkeys(map(type, _numpy.FUNCTIONS)),
        "numpy_computed": _numpy.computed,
        "binding_error": binding_error,
        "recursive_repr": answers.recursive_repr,
        "function_made": _C.function_made,
        "handles_nothing": handles_nothing,
        "library_class": classes.library_class,
        "end_may_run_code": _C.end_may_run_code,
        "array": _numpy.ARRAY,
        "array_shared": _numpy.shared,
        "weakref": weakref.ref,
        "referent": weakref.ref.__call__,
        "cache_wrapper": caches.Wrapper,
        "cache_peek": caches.peek,
        "module_kinds": alike.Kinds,
        "drawing_functions": {
            fn: name
            for cls in (random.SystemRandom, random.Random)
            for name, fn in vars(cls).items()
            if type(fn) is types.FunctionType
        },
        "Random": random.Random,
        "SystemRandom": random.SystemRandom,
        "type_hints": hints.hints,
        "signature": hints.signature,
        "makes_new": runtime.makes_new,
        "AutogradFunction": torch.autograd.Function,
        "autograd_parts": _autograd_parts,
        "traceable": torch_function.traceable,
        "has_handler": torch_function.has_handler,
        "plain_tensor": torch_function.plain,
        "handlers_enabled": torch_function.enabled,
        "handler_stand_in": torch_function.stand_in,
        "handler_asked": torch_function.asked,
        "make_subclass": torch_function.make_subclass,
        "as_subclass": torch_function.as_subclass,
        "plain_example": torch_function.plain_example,
        "convert": torch_function.converted,
        "grad_enabled": torch.is_grad_enabled,
        "modes_off": torch_function.modes_off,
        "alias": torch.ops.aten.alias.default,
        "detach": torch.detach,
        "wrap_result": torch_function.wrapped,
        "new_tensor": torch_function.new_tensor,
        "handler_mirrors": torch_function.mirrors,
        "handle_torch_function": torch.overrides.handle_torch_function,
        "layout_is": layout_is,
        "deque_is": deque_is,
        "value_is": value_is,
        "plain_value": plain_value,
        "factory_is": factory_is,
        "advanced": advanced,
        "spent": spent,
        "percent_fields": percent_fields,
        "format_fields": format_fields,
        "repr_is": _Repr,
        "ascii_text": ascii_text,
        "shadow_methods": shadows.METHODS,
        "shadow_copied": shadows.copied,
        "shadow_is": shadows.shadow_is,
        "shadow_recipe": shadows.recipe,
        "shadow_called": shadows.called,
    }


__all__ = ["classify", "facts"]
_ = F  # imported so that torch.nn.functional's module object exists before it is classified
