"""Makes the table of objects that the Go side gets from Python. Go calls :func:`facts` once, at the first translation.

Functions in the table are called only during translation, never on a hit.
"""

from __future__ import annotations

import abc
import builtins
import collections
import enum
import functools
import inspect
import operator
import random
import re
import sys
import time
import types
import typing
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
import torch.overrides

from .. import _C
from .._called import torch_state
from .._user import modules
from . import (
    alike,
    answers,
    caches,
    classes,
    dispatchers,
    evaluated,
    foreign,
    hints,
    kinds,
    pure,
    shadows,
    tensor_types,
    torch_function,
    vague,
    warned,
    words,
)
from . import numpy as _numpy
from .answers import default_device, handles_nothing, is_default_device, mode_active
from .binding import binding_error
from .callable_names import MISSING, bound_self, builtin_name, callable_name
from .callables import ASKED_WITHIN, classify, method_kind, polyfill, result_kind, stand_in, stand_in_object
from .classes import plain_layout
from .formats import Repr, ascii_text, format_fields, percent_fields
from .values import (
    ITERATOR_KINDS,
    advanced,
    default_factory,
    equal_to,
    factory_is,
    layout_is,
    maxlen_is,
    plain_value,
    same_order,
    set_is,
    spent,
    value_is,
)

_TORCH_CONSTANTS = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, torch.qscheme)

#: additional types of immutable values that user code reads and passes on: unions and aliases of typing, limits of
#: dtypes, regular expressions
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

# Types whose values are compared by identity: torch's singletons, and immutable values whose ``==`` ignores something.
_SINGLETONS = (
    *(torch.dtype, torch.layout, torch.memory_format, torch.qscheme, re.Pattern, re.Match),
    *(type(sys.version_info), type(sys.flags), type(typing.Optional)),
)


#: functions that read a clock → the type of their results
_CLOCKS: dict[Any, type] = {
    **dict.fromkeys((time.time, time.monotonic, time.perf_counter, time.process_time, time.thread_time), float),
    **dict.fromkeys((time.time_ns, time.monotonic_ns, time.perf_counter_ns, time.process_time_ns), int),
}


def _autograd_parts() -> tuple[Any, Any, Any]:
    """Return _polyfills.autograd's stand-in for ctx, its maker of functions with names for torch.fx, and its call of
    a function's backward."""
    from .._polyfills import autograd

    return autograd.Context, autograd.applied, autograd.differentiate


def facts() -> dict[str, Any]:
    """Return the table: name -> object."""
    import godynamo

    for name in ASKED_WITHIN:
        getattr(godynamo, name)
    return {
        "ListType": list,
        "TupleType": tuple,
        "DictType": dict,
        "SetType": set,
        "FrozenSetType": frozenset,
        "SliceType": slice,
        "RangeType": range,
        "FunctionType": types.FunctionType,
        "MethodType": types.MethodType,
        "GeneratorType": types.GeneratorType,
        "TypeType": type,
        "ABCMeta": abc.ABCMeta,
        "BaseException": BaseException,
        "ObjectType": object,
        "PartialType": functools.partial,
        "OrderedDictType": OrderedDict,
        "EnumType": enum.Enum,
        "EnumMeta": enum.EnumMeta,
        "TensorType": torch.Tensor,
        "ParameterType": torch.nn.Parameter,
        "SizeType": torch.Size,
        "TorchEqual": torch.equal,
        "Uninitialized": torch.nn.parameter.UninitializedTensorMixin,  # type: ignore[attr-defined]
        "NNModule": torch.nn.Module,
        "state_contexts": torch_state.CONTEXTS,
        "GenericGetItem": vars(typing.Generic)["__class_getitem__"],
        "TypingCallable": typing.Callable,
        "AbstractCallable": collections.abc.Callable,
        "ModuleList": torch.nn.ModuleList,
        "Sequential": torch.nn.Sequential,
        "ScriptFunction": torch.jit.ScriptFunction,
        "ScriptMethod": torch._C.ScriptMethod,
        "ScriptObject": torch.ScriptObject,
        "CallableType": _C.Callable,
        "HandleCall": vars(_C.ModuleHandle)["_godynamo_call"],
        "ProxyCall": vars(modules._Proxy)["__call__"],
        "ObjectGetAttribute": object.__getattribute__,
        "ModuleGetAttr": torch.nn.Module.__getattr__,
        "ModuleSetAttr": torch.nn.Module.__setattr__,
        "GetAttrBuiltin": getattr,
        "Sorted": sorted,
        "Print": print,
        "Missing": MISSING,
        "operators": {n: getattr(operator, n) for n in dir(operator) if not n.startswith("__")},
        "builtins": dict(vars(builtins)),
        "dispatched_class": dispatchers.is_dispatched,
        "dispatched_example": dispatchers.plain_example,
        "dispatch_refusal": dispatchers.refusal,
        "view_of_dispatched": vague.is_view_of_dispatched,
        "foreign_class": foreign.is_foreign,
        "foreign_constant": foreign.is_constant,
        "foreign_member": foreign.member,
        "foreign_operand": foreign.is_operand,
        "foreign_classes": foreign.classes_of,
        "fact_of": answers.fact_of,
        "torch_constants": dict.fromkeys(_TORCH_CONSTANTS + _PLAIN_CONSTANTS + _numpy.SCALARS),
        "singletons": dict.fromkeys(_SINGLETONS),
        "method_kind": method_kind,
        "result_kind": result_kind,
        "callable_name": callable_name,
        "mode_active": mode_active,
        "default_device": default_device,
        "is_default_device": is_default_device,
        "is_pure": kinds.is_pure_call,
        "classify": classify,
        "builtin_name": builtin_name,
        "equal_to": equal_to,
        "named_tuple_fields": classes.named_tuple_fields,
        "checked_classes": classes.checked_classes,
        "default_factory": default_factory,
        "stays_outside": answers.stays_outside,
        "fact_is": answers.fact_is,
        "flag_is": answers.flag_is,
        "listed": answers.listed,
        "subclasses": answers.subclasses,
        "class_values": lambda cls: tuple(getattr(v, "__func__", v) for v in vars(cls).values()),
        "evaluated": evaluated.function_of,
        "has_history": lambda tensor: tensor.grad_fn is not None,
        "tensor_type_is": tensor_types.tensor_type_is,
        "tensor_like_is": tensor_types.tensor_like_is,
        "tensor_marks": tensor_types.tensor_marks,
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
        "DequeType": collections.deque,
        "CachedPropertyType": functools.cached_property,
        "DefaultDictType": collections.defaultdict,
        "set_is": set_is,
        "same_order": same_order,
        "set_clone": _C.set_clone,
        "numpy_scalars": dict.fromkeys(_numpy.SCALARS),
        "numpy_operation": _numpy.operation,
        "numpy_functions": _numpy.FUNCTIONS,
        "numpy_callables": dict.fromkeys(map(type, _numpy.FUNCTIONS)),
        "numpy_computed": _numpy.computed,
        "computed": warned.computed,
        "throw_warns": warned.throw_warns(),
        "BindingError": binding_error,
        "absent_slot": words.absent_slot,
        "no_place": words.no_place,
        "not_super": words.not_super,
        "key_text": words.key_text,
        "absent_text": words.absent_text,
        "too_many": words.too_many,
        "not_bool": words.not_bool,
        "not_container": words.not_container,
        "not_context": words.not_context,
        "close_returns": words.close_returns(),
        "map_is_strict": words.map_is_strict(),
        "tuple_asks_length": words.tuple_asks_length(),
        "sum_compensates": sum([0.1] * 10) == 1.0,
        "recursive_repr": answers.recursive_repr,
        "function_made": _C.function_made,
        "handles_nothing": handles_nothing,
        "library_class": classes.library_class,
        "end_may_run_code": _C.end_may_run_code,
        "array_type": _numpy.ARRAY,
        "array_shared": _numpy.shared,
        "weakref_type": weakref.ref,
        "referent_of": weakref.ref.__call__,
        "cache_wrapper": caches.Wrapper,
        "cache_peek": caches.peek,
        "cache_run_ahead": caches.run_ahead,
        "module_kinds": alike.Kinds,
        "drawing_functions": {
            fn: name
            for cls in (random.SystemRandom, random.Random)
            for name, fn in vars(cls).items()
            if type(fn) is types.FunctionType
        },
        "clocks": _CLOCKS,
        "generator_type": torch.Generator,
        "random_type": random.Random,
        "system_random": random.SystemRandom,
        "type_hints": hints.hints,
        "signature": hints.signature,
        "guarded_signature": hints.guarded_signature,
        "makes_new": kinds.makes_new,
        "AutogradFunction": torch.autograd.Function,
        "DistributionType": torch.distributions.Distribution,
        "autograd_parts": _autograd_parts,
        "traceable": torch_function.traceable,
        "has_handler": torch_function.has_handler,
        "plain_tensor": torch_function.plain,
        "handlers_enabled": torch_function.enabled,
        "handler_stand_in": torch_function.stand_in,
        "handler_asked": torch_function.asked,
        "make_subclass": torch_function.make_subclass,
        "make_wrapper": torch_function.make_wrapper,
        "as_subclass": torch_function.as_subclass,
        "plain_example": torch_function.plain_example,
        "convert": torch_function.converted,
        "grad_enabled": torch.is_grad_enabled,
        "inference": torch.is_inference_mode_enabled,
        "SetGradEnabled": torch._C._set_grad_enabled,
        "modes_off": torch_function.modes_off,
        "changes_items_only": torch_function.changes_items_only,
        "alias": torch.ops.aten.alias.default,
        "detach": torch.detach,
        "wrap_result": torch_function.wrapped,
        "new_tensor": torch_function.new_tensor,
        "handler_mirrors": torch_function.mirrors,
        "handle_torch_function": torch.overrides.handle_torch_function,
        "layout_is": layout_is,
        "maxlen_is": maxlen_is,
        "value_is": value_is,
        "plain_value": plain_value,
        "factory_is": factory_is,
        "iterator_kinds": ITERATOR_KINDS,
        "iterator_part": _C.iterator_part,
        "iterator_item": _C.iterator_item,
        "iterator_value": _C.iterator_value,
        "iterator_number": _C.iterator_number,
        "iterator_left": _C.iterator_left,
        "advanced": advanced,
        "spent": spent,
        "percent_fields": percent_fields,
        "format_fields": format_fields,
        "repr_is": Repr,
        "ascii_text": ascii_text,
        "shadow_methods": shadows.METHODS,
        "shadow_copied": shadows.copied,
        "shadow_is": shadows.shadow_is,
        "shadow_recipe": shadows.recipe,
        "shadow_called": shadows.called,
    }


__all__ = ["facts"]
