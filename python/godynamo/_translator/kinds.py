"""Derives the result kinds of torch's functions and methods from torch's operator schemas. Lists pure calls.

A result kind is one of the words in ResultKind. ``go generate ./variables`` makes Go's constants from the rows of
ResultKind; variables/torch_results.go parses "tensors:N".
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator
import types
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import torch

ResultKind = Literal[
    "tensor",  # one tensor
    "tensors",  # a tuple of N tensors: "tensors:N"
    "list",  # a tuple of tensors, of a length that the schema does not give
    "self",  # the first argument, changed in place
    "int",  # a Python int computed from tensors
    "float",  # a float computed from tensors
    "bool",  # a bool computed from tensors
    "scalar",  # an int or a float computed from tensors
    "none",  # None: called for its effect
    "object",  # any other object
    "inline",  # unknown until the method of torch.Tensor, written in Python, is inlined
    "unknown",  # depends on arguments that the caller did not pass; the translator must not guess
]

Kwnames = tuple[str, ...]

# Text of a schema type, without Optional[] -> letters of the kinds of arguments that the type accepts: T tensor, L list
# or tuple, i int, f float, b bool, n None, o anything else. A type that is not listed accepts every argument.
_TAKES: dict[str, str] = {
    "Tensor": "T",
    "Tensor[]": "L",
    "int": "ib",
    "SymInt": "ib",
    "float": "fib",
    "bool": "b",
    "Scalar": "ifb",
    "number": "ifb",
    "int[]": "Lib",
    "SymInt[]": "Lib",
    "List[int]": "Lib",
    "List[SymInt]": "Lib",
    "List[Tensor]": "L",
    "List[Optional[Tensor]]": "L",
    "bool[]": "L",
    "List[bool]": "L",
    "List[float]": "L",
    "List[number]": "L",
    "str": "o",
    "Device": "o",
    "ScalarType": "o",
    "Generator": "o",
}
# Names of arguments in Python -> names in schemas.
_ALIASES = {"input": "self", "axis": "dim", "keepdims": "keepdim", "other": "other", "x1": "self", "x2": "other"}
# Keywords that torch's Python bindings add to constructors and copies.
_EVERYWHERE = {"dtype", "device", "layout", "pin_memory", "requires_grad", "memory_format"}

_SCALARS = {
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "SymFloat": "float",
    "bool": "bool",
    "SymBool": "bool",
    "number": "scalar",
    "Scalar": "scalar",
}

# Functions defined in torch's Python bindings or Python code. No schema has their names.
_FUNCTIONS = {
    **dict.fromkeys(
        "tensor as_tensor asarray from_numpy frombuffer full_like empty_permuted scalar_tensor range "
        "sparse_coo_tensor sparse_csr_tensor".split(),
        "tensor",
    ),
    **dict.fromkeys("is_tensor is_floating_point is_complex is_nonzero can_cast equal allclose".split(), "bool"),
    "numel": "int",
    **dict.fromkeys("promote_types result_type get_default_dtype device dtype finfo iinfo Size".split(), "object"),
}
_METHODS = {
    **dict.fromkeys(
        "float double half bfloat16 int long short char byte bool cfloat cdouble chalf cpu new_tensor new type_as "
        "contiguous to detach clone data".split(),
        "tensor",
    ),
    **dict.fromkeys(
        "dim ndimension numel nelement element_size get_device data_ptr __len__ storage_offset".split(), "int"
    ),
    **dict.fromkeys(
        "is_contiguous is_floating_point is_complex is_signed is_inference is_pinned is_shared is_set_to is_same_size "
        "is_nonzero equal allclose __bool__ is_conj is_neg is_coalesced has_names".split(),
        "bool",
    ),
    "__getitem__": "tensor",
    "item": "scalar",
    "__int__": "int",
    "__index__": "int",
    "__float__": "float",
    **dict.fromkeys(
        "size stride tolist numpy type storage untyped_storage __repr__ __format__ __hash__".split(), "object"
    ),
    "requires_grad_": "tensor",
    "backward": "none",
}
_OPERATOR_METHODS = {
    "truediv": "div",
    "rtruediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "invert": "bitwise_not",
    "rsub": "sub",
    "radd": "add",
    "rmul": "mul",
    "rpow": "pow",
    "rmatmul": "matmul",
    "rand": "__and__",
    "ror": "__or__",
    "rxor": "__xor__",
    "and": "__and__",
    "or": "__or__",
    "xor": "__xor__",
    "lshift": "__lshift__",
    "rshift": "__rshift__",
}
#: tensor property -> kind of its value
_PROPERTIES = {
    **dict.fromkeys("T mT H mH real imag data grad".split(), "tensor"),
    **dict.fromkeys("ndim itemsize nbytes output_nr _version".split(), "int"),
    **dict.fromkeys(
        "requires_grad is_leaf is_cuda is_cpu is_meta is_sparse is_quantized is_nested is_mkldnn retains_grad is_mps "
        "is_xpu is_sparse_csr".split(),
        "bool",
    ),
    **dict.fromkeys("shape dtype device layout names grad_fn".split(), "object"),
}


class _Argument(NamedTuple):
    name: str
    type: str  # without Optional[]
    optional: bool
    kwarg_only: bool
    has_default: bool
    is_out: bool

    def takes(self, letter: str) -> bool:
        return (self.optional and letter == "n") or letter in _TAKES.get(self.type, "TLifbno")


class _Overload(NamedTuple):
    arguments: tuple[_Argument, ...]
    kind: str
    has_out: bool
    by_dimname: bool


def _argument(argument: Any) -> _Argument:
    text = str(getattr(argument, "real_type", argument.type))  # not "int" for a dtype
    optional = text.startswith("Optional[")
    return _Argument(
        argument.name,
        text[len("Optional[") : -1] if optional else text,
        optional,
        argument.kwarg_only,
        argument.has_default_value(),
        argument.is_out,
    )


@functools.lru_cache(maxsize=1)
def _dispatched() -> frozenset[str]:
    # The namespace aten also has schemas of TorchScript's operators on Python numbers, lists and strings. These have no
    # dispatcher entry.
    return frozenset(torch._C._dispatch_get_all_op_names())


@functools.cache
def _schemas(name: str) -> tuple[_Overload, ...]:
    rows = []
    custom = "::" in name
    for schema in torch._C._jit_get_schemas_for_operator(name if custom else f"aten::{name}"):
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if custom or full in _dispatched():
            arguments = tuple(map(_argument, schema.arguments))
            rows.append(
                _Overload(
                    arguments,
                    _return_kind(schema),
                    any(a.is_out for a in arguments),
                    any("Dimname" in a.type for a in arguments) or "name" in schema.overload_name,
                )
            )
    return tuple(rows)


def _overload_kind(op: torch._ops.OpOverload) -> str:
    """Return the result kind of one overload. Overloads of in-place operators return their first argument."""
    schema = op._schema
    if schema.is_mutable and schema.name.startswith("aten::") and not any(a.is_out for a in schema.arguments):
        changed = [i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
        return "self" if changed == [0] and [str(r.type) for r in schema.returns] == ["Tensor"] else "unknown"
    return _return_kind(schema)


def operator_trace(op: Any) -> str:
    """Return what a call of a custom operator may leave behind: "none", "draws" (random numbers) or "lasts" (changes).

    The schema and the tags describe the operator. Since operators written in Python often lack the tag of random
    numbers, each of them may draw some.
    """
    overloads = [op] if isinstance(op, torch._ops.OpOverload) else [getattr(op, name) for name in op.overloads()]
    trace = "none"
    for overload in overloads:
        name = overload._schema.name.replace("::", "/")
        kernels = {k.rsplit("/", 1)[1] for k in torch.library._impls if k.startswith(name) and k.count("/") == 2}
        if overload._schema.is_mutable:
            return "lasts"
        if torch.Tag.nondeterministic_seeded in overload.tags or kernels - {"Meta", "Autograd"}:
            trace = "draws"
    return trace


def _return_kind(schema: Any) -> str:
    kinds = [str(r.type) for r in schema.returns]
    if not kinds:
        return "none"
    if not schema.name.startswith("aten::") and schema.is_mutable:
        return "unknown"  # such a custom operator changes an operand and returns a value
    if len(kinds) > 1:
        return f"tensors:{len(kinds)}" if set(kinds) == {"Tensor"} else "object"
    if kinds[0] == "Tensor":
        return "tensor"
    if kinds[0] in ("Tensor[]", "List[Tensor]"):
        return "list"
    return _SCALARS.get(kinds[0], "object")


def _applies(overload: _Overload, nargs: int, kwnames: Iterable[str], letters: str) -> bool:
    """Return whether torch's Python binding may choose this overload for a call.

    ``letters`` (see _TAKES) are those of the positional arguments, or "" if they are unknown.
    """
    arguments = overload.arguments
    names = {a.name for a in arguments}
    kwnames = [k if k in names else _ALIASES.get(k, k) for k in kwnames]  # segment_reduce's schema has the name axis
    if overload.has_out and "out" not in kwnames and not any(a.name in kwnames for a in arguments if a.is_out):
        return False
    if overload.by_dimname and letters and "o" not in letters:
        return False
    positional = [a for a in arguments if not a.kwarg_only]
    if nargs > len(positional):
        # In calls such as x.view(2, 3), the last positional arguments form one list of ints.
        lists = [i for i, a in enumerate(positional) if a.type in ("List[int]", "int[]", "SymInt[]", "List[SymInt]")]
        if not lists or (letters and set(letters[lists[-1] :]) - {"i"}):
            return False
        nargs = lists[-1] + 1
        positional, letters = positional[:nargs], letters[:nargs]
    given = {a.name for a in positional[:nargs]}
    for k in kwnames:
        if k in given or (k not in names and k not in _EVERYWHERE and k != "out"):
            return False
    given.update(kwnames)
    if any(a.name not in given and not a.has_default and not a.is_out for a in arguments):
        return False
    return all(a.takes(letter) for a, letter in zip(positional, letters, strict=False))


def _by_schema(name: str, nargs: int, kwnames: Kwnames, letters: str) -> str:
    schemas = _schemas(name)
    matching = [s for s in schemas if _applies(s, nargs, kwnames, letters)]
    if not matching and letters:
        # torch accepts some arguments that the schema does not, such as a tensor for a number (alpha=t). So match only
        # the number and names of the arguments.
        matching = [s for s in schemas if _applies(s, nargs, kwnames, "")]
    kinds = {s.kind for s in matching}
    if "out" in kwnames and len(kinds) > 1:  # a list that is given as out= is not returned
        kinds = {s.kind for s in matching if s.has_out}
    return kinds.pop() if len(kinds) == 1 else "unknown"


@functools.cache
def _call_kind(name: str, nargs: int, kwnames: Kwnames, letters: str) -> str:
    known = _FUNCTIONS.get(name)
    return known if known is not None else _by_schema(name, nargs, kwnames, letters)


@functools.cache
def _any_kind(name: str) -> str:
    known = _FUNCTIONS.get(name)
    if known is not None:
        return known
    kinds = {s.kind for s in _schemas(name) if not s.has_out}
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _schema_name(fn: Callable[..., Any]) -> str:
    if isinstance(fn, torch._ops.OpOverload):
        return str(fn._schema.name).removeprefix("aten::")
    if isinstance(fn, torch._ops.OpOverloadPacket):
        return str(fn._qualified_op_name).removeprefix("aten::")
    name = str(getattr(fn, "__name__", ""))
    return _SAME_FUNCTION.get(name, name)


#: other names of functions of torch -> the name that has a schema
_SAME_FUNCTION = {"dsmm": "mm", "hsmm": "mm", "spmm": "mm", "saddmm": "sspaddmm"}


def result_kind(fn: Callable[..., Any]) -> str:
    """Return the kind of a torch function's result; "unknown" if it depends on the overload."""
    if isinstance(fn, torch._ops.OpOverload):
        return _overload_kind(fn)
    return _any_kind(_schema_name(fn))


def result_kind_call(fn: Callable[..., Any], nargs: int, kwnames: Kwnames, argkinds: str = "") -> str:
    """Return the result kind of a call with ``nargs`` positional arguments, of kinds ``argkinds``, and these keywords.

    ``argkinds`` are letters as in _TAKES, "" if unknown.
    """
    if isinstance(fn, torch._ops.OpOverload):
        return _overload_kind(fn)
    return _call_kind(_schema_name(fn), nargs, tuple(kwnames), argkinds if len(argkinds) == nargs else "")


@functools.cache
def method_kind(name: str, nargs: int = -1, kwnames: Kwnames = (), argkinds: str = "") -> str:
    """Return the result kind of ``Tensor.name``. ``nargs`` and ``argkinds`` do not include self.

    If ``nargs`` is -1, the kind is that of any call. ``argkinds`` are letters as in _TAKES, "" if unknown.
    """
    if (name == "size" and nargs == 1) or (name == "stride" and nargs == 1):
        return "int"
    if name == "type" and nargs >= 1:
        return "tensor"
    if name in ("cuda", "xpu", "to_dense") and nargs >= 0:
        return "tensor"
    known = _METHODS.get(name)
    if known is not None:
        return known
    if not hasattr(torch.Tensor, name):
        return "unknown"
    if name.startswith("__") and name.endswith("__"):
        bare = name[2:-2]
        base = bare[1:] if bare.startswith("i") and not _schemas(bare) and _schemas(bare[1:]) else bare
        name = _OPERATOR_METHODS.get(base, base)
    if nargs < 0:
        kinds = {s.kind for s in _schemas(name) if not s.has_out}
        return kinds.pop() if len(kinds) == 1 else "unknown"
    letters = "T" + argkinds if len(argkinds) == nargs else ""
    return _by_schema(name, nargs + 1, tuple(kwnames), letters)


def property_kind(name: str) -> str:
    """Return the kind of the value of ``tensor.name``; "unknown" if it is not a known property."""
    return _PROPERTIES.get(name, "unknown")


# ---- results that are new tensors ----

#: Composite operators that return a new tensor because the last operator that they call returns one. Schemas of
#: composite operators do not say reliably whether a result is an alias.
_COMPOSED_ANEW = frozenset(
    "linear layer_norm group_norm batch_norm instance_norm rms_norm matmul softmax log_softmax conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d "
    "scaled_dot_product_attention cross_entropy_loss binary_cross_entropy_with_logits silu one_hot stack tensor sum "
    "mean rand randn randint randperm rand_like randn_like zeros ones full eye arange linspace logspace empty "
    "zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty new_tensor clone bernoulli "
    "where outer".split()
)


#: parts of the names of operators that may return a view or an operand although their schemas do not say so
_UNSAID = ("unsafe", "pixel", "channel_shuffle", "lift", "pin_memory")


@functools.cache
def makes_new(target: str, views: bool = False) -> bool:
    """Return whether an operation, given by its printed name, always returns a new tensor.

    Such an operation never returns an operand. With ``views`` it may return a view of an operand, otherwise it never
    does. torch's schemas annotate results that are aliases. But a composite operator may return an operand without such
    an annotation, as dropout does in evaluation mode. So composite operators are listed by name.
    """
    module, _, name = target.rpartition(".")
    if module == "operator":
        name = name.strip("_")
        name = {"truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "eq": "eq"}.get(name, name)
        if name in ("add", "sub", "mul", "pow", "neg", "abs", "matmul", "true_divide", "floor_divide", "remainder"):
            return True
        return name in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "invert")
    if module not in ("", "torch", "torch._C._nn", "torch.nn.functional", "torch.special", "torch.linalg"):
        return False
    if name in _COMPOSED_ANEW:
        return True
    if name.startswith("_") or any(word in name for word in _UNSAID):
        return False
    found = False
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if full not in _dispatched() or any(a.is_out for a in schema.arguments):
            continue
        found = True
        if schema.is_mutable or (not views and any(r.alias_info is not None for r in schema.returns)):
            return False
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            return False
    return found


# ---- pure calls ----

# Immutable types. Their methods change nothing. They also return nothing mutable, except those in _NOT_PURE_METHODS.
_IMMUTABLE = (
    str,
    bytes,
    int,
    float,
    complex,
    bool,
    tuple,
    frozenset,
    range,
    slice,
    type(None),
    torch.Size,
    torch.dtype,
)
_NOT_PURE_METHODS = {
    "__new__",
    "__init__",
    "__setattr__",
    "__delattr__",
    "__iter__",
    "__reduce__",
    "__reduce_ex__",
    "__dir__",
    "__getnewargs__",
    "split",
    "rsplit",
    "splitlines",
    "maketrans",
    "__init_subclass__",
    "__subclasshook__",
    "__class__",
    "__sizeof__",
}
_NOT_PURE_OPERATORS = {"setitem", "delitem", "attrgetter", "itemgetter", "methodcaller", "call"}
_PURE_BUILTINS = (
    "abs all any ascii bin bool bytes callable chr complex divmod float format frozenset hash hex int isinstance "
    "issubclass len max min oct ord pow range repr round slice str sum tuple"
).split()


@functools.lru_cache(maxsize=1)
def _pure() -> frozenset[int]:
    table: list[Any] = [getattr(builtins, name) for name in _PURE_BUILTINS]
    for module in (math, cmath):
        table += [f for f in vars(module).values() if isinstance(f, types.BuiltinFunctionType)]
    table += [
        f
        for name, f in vars(operator).items()
        if isinstance(f, types.BuiltinFunctionType)
        and name.strip("_") not in _NOT_PURE_OPERATORS
        and not _inplace(name)
    ]
    for cls in _IMMUTABLE:
        for name, f in vars(cls).items():
            if (
                isinstance(f, (types.MethodDescriptorType, types.WrapperDescriptorType))
                and name not in _NOT_PURE_METHODS
            ):
                table.append(f)
    table += [int.from_bytes, float.fromhex, bytes.fromhex]
    table += [
        torch.finfo,
        torch.iinfo,
        torch.Size,
        torch.device,
        torch.promote_types,
        torch.can_cast,
        torch.is_tensor,
        torch.broadcast_shapes,
        torch._C._log_api_usage_once,  # logs a text once per process; it may log it while translating
    ]
    _keep.extend(table)
    return frozenset(map(id, table))


_keep: list[Any] = []  # keeps the functions alive, so that their ids stay valid; float.fromhex is new at each read


def _inplace(name: str) -> bool:
    bare = name.strip("_")
    return (bare.startswith("i") and hasattr(operator, bare) and hasattr(operator, f"{bare[1:]}")) or bare in (
        "iand",
        "ior",
    )


def is_pure_call(fn: Any) -> bool:
    """Return whether ``fn`` may be called with constants while translating.

    Such a function has no effect, and its result depends on no state and on no identity of an object.
    """
    if id(fn) in _pure():
        return True
    if isinstance(fn, (types.BuiltinFunctionType, types.MethodWrapperType)):
        owner = getattr(fn, "__self__", None)
        if type(owner) in _IMMUTABLE and owner is not None:
            return getattr(fn, "__name__", "") not in _NOT_PURE_METHODS
        if isinstance(owner, type) and owner in _IMMUTABLE:
            return getattr(fn, "__name__", "") in ("from_bytes", "fromhex", "from_number")
    return False
