"""Defines the names that guard texts use, so that Python can evaluate the texts.

A guard text such as ``___guarded_code.valid and ___check_type_id(y, 94367738391392) and y == 2 and
___check_tensors(x)`` is a Python expression. :func:`eval_text` evaluates a text for a frame, with the same verdict as
the evaluator in C. The two evaluators share as little code as possible, since tests compare them: the functions here
are plain Python, except where plain Python would run user code.

The C core imports this module for tasks that are simpler in Python: sample tensors for the layout probe
(:func:`layout_samples`), and the metadata of tensors with an unknown layout (:func:`tensor_state`). Importing this
module does not import torch.
"""

from __future__ import annotations

import builtins as _builtins
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from godynamo import _C

__all__ = ["environment", "eval_text", "field_text", "hook_samples", "layout_samples", "tensor_state"]

# Bits of the C field gd_tensor_spec.fields.
TYPE, KEYSET, DTYPE, DEVICE, REQUIRES_GRAD, NDIM, SIZES, STRIDES = (1 << i for i in range(8))

_type_mro = type.__dict__["__mro__"].__get__
_type_dict = type.__dict__["__dict__"].__get__
_MISSING = object()


class Failed(LookupError):
    """Raised if a value that a text names cannot be read. The condition that names it then does not hold."""


# ---- functions that guard texts call --------------------------------------------------------------------------------


def type_lookup(cls: type, name: str) -> Any:
    """Return the first entry with this name in the ``__dict__``s along the MRO, without running a descriptor.

    >>> type_lookup(bool, "__add__") is int.__dict__["__add__"]
    True
    """
    for base in _type_mro(cls):
        found = _type_dict(base).get(name, _MISSING)
        if found is not _MISSING:
            return found
    raise Failed(name)


def type_hasattr(cls: type, name: str) -> bool:
    """Return whether any class in the MRO has the name."""
    return isinstance(cls, type) and any(name in _type_dict(base) for base in _type_mro(cls))


def mro_class(cls: type, index: int) -> Any:
    """Return the class at an index of the MRO, without running code of the metaclass."""
    return _type_mro(cls)[index]


def instance_attr(obj: object, name: str) -> Any:
    """Return an attribute of the instance itself, without reading its class or creating its ``__dict__``."""
    return _C.instance_attr(obj, name)


def instance_dict(obj: object) -> dict[str, Any]:
    """Return the instance's ``__dict__``, which is created if necessary. No ``__getattribute__`` runs."""
    return _C.instance_dict(obj)


def dict_getitem(d: dict[Any, Any], key: object) -> Any:
    """Return the value that the dict stores. ``__missing__`` and an overridden ``__getitem__`` are not called."""
    return _C.dict_get(d, key)


def dict_contains(key: object, d: dict[Any, Any]) -> bool:
    """Return whether the dict stores the key. An overridden ``__contains__`` is not called."""
    try:
        _C.dict_get(d, key)
    except KeyError:
        return False
    return True


class Keys(tuple):  # type: ignore[type-arg]
    """A tuple of keys that compares values and types, in order: 1 and True differ."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is tuple and len(self) == len(other) and all(map(equals, self, other))

    __hash__ = None  # type: ignore[assignment]


def dict_keys(d: dict[Any, Any]) -> Keys:
    """Return the dict's keys in order. An OrderedDict has its own order, which move_to_end() may change."""
    return Keys(_C.dict_keys(d))


def dict_key(d: dict[Any, Any] | set[Any] | frozenset[Any], i: int) -> Any:
    """Return the i-th key of the dict, or the i-th member of the set."""
    return _C.key_at(d, i)


def dict_value(d: dict[Any, Any], i: int) -> Any:
    """Return the value of the i-th key of the dict."""
    return _C.value_at(d, i)


def holds(container: object, key: object) -> bool:
    """Return whether a dict or set has this object, which equals only itself, as a key or member."""
    found = _C.find_object(container, key)[0]
    if found < 0:
        raise Failed("a comparison of the program decides")
    return bool(found)


def tuple_iterator_len(iterator: object) -> int:
    """Return the number of items a tuple iterator has left."""
    if type(iterator) is not type(iter(())):
        raise Failed("no tuple iterator")
    return operator.length_hint(iterator)


def tuple_iterator_getitem(iterator: Any, i: int) -> Any:
    """Return the i-th of the remaining items, without advancing the iterator."""
    if type(iterator) is not type(iter(())):
        raise Failed("no tuple iterator")
    state: Any = iterator.__reduce__()
    items, start = (state[1][0], state[2]) if len(state) == 3 else ((), 0)
    return items[start + i]


def equals(a: object, b: object) -> bool:
    """Compare constants as guards do, item by item: types count, ``nan`` equals ``nan``, ``0.0`` and ``-0.0`` differ.

    >>> equals((1, 2.0), (1, 2.0)), equals((1, 2), (True, 2)), equals(0.0, -0.0)
    (True, False, False)
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))  # type: ignore
    if kind is complex:
        return equals(a.real, b.real) and equals(a.imag, b.imag)  # type: ignore[attr-defined]
    if kind in (int, str, bytes):
        return a == b
    if kind is range or kind is slice:
        return all(equals(getattr(a, part), getattr(b, part)) for part in ("start", "stop", "step"))
    if kind is frozenset:
        within = [all(any(equals(x, y) for y in other) for x in one) for one, other in ((a, b), (b, a))]  # type: ignore
        return len(a) == len(b) and all(within)  # type: ignore[arg-type]
    if isinstance(a, tuple) and kind.__dictoffset__ == 0 and type_lookup(kind, "__eq__") is tuple.__eq__:
        return len(a) == len(b) and all(map(equals, tuple.__iter__(a), tuple.__iter__(b)))  # type: ignore[arg-type]
    if _is_torch_device(kind):
        return bool(a == b)
    return False


def _is_torch_device(kind: type) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and kind is torch.device


def param_names(module: Any) -> Keys:
    """Return the names of the module's parameters, in order."""
    return Keys(name for name, _ in module.named_parameters())


def cell_empty(cell: types.CellType) -> bool:
    """Return whether the cell is empty."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


# ---- tensors -------------------------------------------------------------------------------------------------------


_DEVICES = (
    "cpu cuda mkldnn opengl opencl ideep hip fpga maia xla vulkan metal xpu mps meta hpu ve lazy ipu mtia privateuseone"
).split()  # in the order of c10::DeviceType
_DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 "
    "quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz "
    "uint16 uint32 uint64"
).split()


def field_text(field: int, raw: int) -> str:
    """Return the name of a tensor's key set, dtype or device from its number in the tensor's memory.

    >>> field_text(DEVICE, 0xFF00)
    'cpu'
    """
    if field == KEYSET:
        import torch

        names = str(torch._C.DispatchKeySet.from_raw_repr(raw))
        return names[len("DispatchKeySet(") : -1] if names.startswith("DispatchKeySet(") else names
    if field == DEVICE:
        kind, index = raw & 0xFF, raw >> 8
        return _DEVICES[kind] + (f":{index}" if index < 128 else "")
    return _DTYPES[raw] if field == DTYPE else str(raw)


def tensor_state(tensor: Any) -> tuple[Any, ...]:
    """Return (type, key set, dtype, device, requires_grad, shape, strides) of a tensor, read from Python attributes.

    The ``__torch_function__`` of a subclass is not called. Shape and strides are None for tensors that have none.
    """
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{type(tensor).__name__} is no tensor")
        try:
            strides = tuple(tensor.stride())
        except (RuntimeError, NotImplementedError):
            strides = None
        try:
            shape = tuple(tensor.shape)
        except (RuntimeError, NotImplementedError):  # a nested tensor has no shape
            shape = None
        keys = torch._C._dispatch_keys(tensor).raw_repr()
        return type(tensor), keys, tensor.dtype, tensor.device, tensor.requires_grad, shape, strides


def _device_pair(device: Any) -> tuple[str, int]:
    return device.type, -1 if device.index is None else device.index


# c10::DeviceType numbers.
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xpu": 12, "mps": 13, "meta": 14}
# c10::ScalarType numbers of the common dtypes. They are fixed, since file formats and other languages rely on them.
_SCALAR_TYPES = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex64": 9,
    "complex128": 10, "bool": 11, "bfloat16": 15,
}  # fmt: skip


def _tensor_holds(row: Mapping[str, Any], tensor: Any) -> bool:
    """Evaluate a row of ``entry.tensor_checks()`` for a tensor, with Python attributes alone."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return False
    fields = row["fields"]
    kind, keyset, dtype, device, requires_grad, shape, strides = tensor_state(tensor)
    if fields & TYPE and kind is not row["type"]:
        return False
    if row["state"] is not None:
        _, keyset0, dtype0, device0, grad0, shape0, strides0 = row["state"]
    else:
        keyset0, grad0, shape0, strides0 = row["keyset"], bool(row["requires_grad"]), row["sizes"], row["strides"]
        if keyset != keyset0 and keyset & ~_plain_keys():
            return False
        dtype0 = _dtype_of(row["scalar_type"])
        device = _device_pair(device)
        device0 = _device_name(row["device_type"]), row["device_index"]
    if fields & KEYSET and keyset != keyset0:
        return False
    if (fields & DTYPE and dtype != dtype0) or (fields & DEVICE and device != device0):
        return False
    if fields & REQUIRES_GRAD and requires_grad != grad0:
        return False
    if fields & (NDIM | SIZES | STRIDES) and (shape is None) != (shape0 is None):
        return False
    if fields & (NDIM | SIZES | STRIDES) and shape is not None and len(shape) != len(shape0):
        return False
    return (not fields & SIZES or _dims_equal(shape, shape0, row["static_sizes"])) and (
        not fields & STRIDES or _dims_equal(strides, strides0, row["static_strides"])
    )


def _dims_equal(actual: Sequence[int] | None, wanted: Sequence[int] | None, mask: int) -> bool:
    if actual is None or wanted is None:
        return actual is wanted
    return all(a == w for i, (a, w) in enumerate(zip(actual, wanted, strict=True)) if i >= 64 or mask >> i & 1)


def _dtype_of(scalar_type: int) -> Any:
    import torch

    for name, number in _SCALAR_TYPES.items():
        if number == scalar_type:
            return getattr(torch, name)
    for name in dir(torch):
        dtype = getattr(torch, name)
        if isinstance(dtype, torch.dtype):
            view = _C.tensor_view(torch.empty(0, dtype=dtype, device="cpu"))
            if view is not None and view[3] == scalar_type:
                return dtype
    return None


def _device_name(device_type: int) -> str:
    import torch

    for name, number in _DEVICE_TYPES.items():
        if number == device_type:
            return name
    return str(torch.device(device_type))


def _plain_keys() -> int:
    """Return the key-set bits of dense, strided tensors. The layout probe's offsets are valid for such tensors."""
    import torch

    keys = torch._C.DispatchKey
    plain = 0
    for backend in ("CPU", "CUDA", "XPU", "MPS", "Meta", "HPU", "PrivateUse1"):
        for name in (backend, f"Autograd{backend}", f"Autocast{backend}"):
            if hasattr(keys, name):
                plain |= torch._C.DispatchKeySet(getattr(keys, name)).raw_repr()
    for name in ("ADInplaceOrView", "Conjugate", "Negative", "ZeroTensor", "AutocastCPU", "AutocastMeta"):
        if hasattr(keys, name):
            plain |= torch._C.DispatchKeySet(getattr(keys, name)).raw_repr()
    return plain


# ---- samples of the layout probe -----------------------------------------------------------------------------------


def layout_samples() -> dict[str, Any] | None:
    """Return tensors of known metadata for the layout probe, or None under dispatch modes, which might replace tensors.

    Draws no random number, leaves every mode unchanged, and is not seen by saved-tensor hooks.
    """
    import torch

    from .saved_tensors import unseen

    if torch._C._len_torch_dispatch_stack() > 0:
        return None
    with torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.enable_grad(), unseen():
        return _make_samples(torch)


def hook_samples() -> dict[str, list[tuple[Any, Any]]] | None:
    """Return leaf tensors with hooks and without, for the probe in torch/gradient_hooks.c; None under dispatch modes.

    Each comes with the node that accumulates its gradient, or None if there is no such node.
    """
    import torch

    from .saved_tensors import unseen

    if torch._C._len_torch_dispatch_stack() > 0:
        return None

    def leaf() -> Any:
        return torch.empty(3, device="cpu").requires_grad_(True)

    def noded(hook: str = "") -> tuple[Any, Any]:
        t = leaf()
        node = t.view_as(t).grad_fn.next_functions[0][0]
        if hook:
            getattr(node, hook)(print)
        return t, node

    def hooked(hook: str) -> tuple[Any, Any]:
        t, node = noded()
        getattr(t, hook)(print)
        return t, node

    with torch._C.DisableTorchFunction(), torch.inference_mode(False), torch.enable_grad(), unseen():
        return {
            "bare": [(leaf(), None) for _ in range(4)],
            "gone": [(noded()[0], None) for _ in range(4)],
            "quiet": [noded() for _ in range(4)],
            "hooked": [hooked("register_hook") for _ in range(4)],
            "posted": [hooked("register_post_accumulate_grad_hook") for _ in range(4)],
            "before": [noded("register_prehook") for _ in range(4)],
            "after": [noded("register_hook") for _ in range(4)],
        }


def _storage_row(t: Any) -> tuple[Any, ...]:
    storage = t.untyped_storage()
    return t, storage._cdata, storage.data_ptr(), storage.nbytes()


def _make_samples(torch: Any) -> dict[str, Any]:
    def tensor(*shape: int, dtype: Any = torch.float32, device: str = "cpu") -> Any:
        strides = [1] * len(shape)
        for i in reversed(range(len(shape) - 1)):
            strides[i] = strides[i + 1] * max(shape[i + 1], 1)
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    def leaf(i: int) -> Any:
        return tensor(i + 2).requires_grad_(True)

    dtypes = [(tensor(3, dtype=getattr(torch, name)), number) for name, number in _SCALAR_TYPES.items()]
    devices = [(tensor(i + 1, 2, device=name), _DEVICE_TYPES[name]) for i in range(3) for name in ("cpu", "meta")]
    computed = [leaf(i) * 2 for i in range(12)]
    keyed = [tensor(2), tensor(2, device="meta"), leaf(0), computed[0], tensor(2, dtype=torch.complex64).conj()]
    return {
        "base": torch._C.TensorBase,
        "plain_keys": _plain_keys(),
        "odd": [torch.empty_strided((1237, 3, 7, 2, 5), (210, 70, 10, 5, 1), dtype=torch.float32, device="cpu")],
        "dims": [tensor(*range(2, 2 + n)) for n in range(6)],
        "dtypes": dtypes,
        "devices": devices,
        "keysets": [(t, torch._C._dispatch_keys(t).raw_repr()) for t in keyed],
        "storages": [_storage_row(t) for t in (tensor(3), tensor(50), leaf(4), computed[9])],
        "plain": [tensor(i + 2) for i in range(12)],
        "leaf": [leaf(i) for i in range(12)],
        "computed": computed,
        "switched_off": [leaf(i).requires_grad_(False) for i in range(12)],
        "random": [(t, _view_by_attributes(torch, t)) for t in _varied(torch, tensor, leaf, 160)],
        "views": [(t, _view_by_attributes(torch, t)) for t in _views(tensor)],
    }


def _views(tensor: Callable[..., Any]) -> list[Any]:
    """Return views of tensors. Some bases start to require gradients later, which the views' own fields do not show."""
    plain, leaf, computed = (tensor(2, 3) for _ in range(3))
    views = [v for base in (plain, leaf, computed) for v in (base[0], base.t())]
    leaf.requires_grad_(True)
    computed.mul_(tensor(3).requires_grad_(True))
    return views


def _varied(torch: Any, tensor: Callable[..., Any], leaf: Callable[[int], Any], count: int) -> list[Any]:
    """Return tensors of mixed shape, strides, dtype, device and history, from a small random generator of our own."""
    seed = 20250607

    def draw(n: int) -> int:
        nonlocal seed
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        return (seed >> 33) % n

    names = list(_SCALAR_TYPES)
    out = []
    for _ in range(count):
        shape = [draw(4) for _ in range(draw(6))]
        dtype = getattr(torch, names[draw(len(names))])
        t = tensor(*shape, dtype=dtype, device=("cpu", "cpu", "meta")[draw(3)])
        if shape and draw(2):
            t = t.transpose(0, len(shape) - 1)
        if shape and len(shape) < 5 and draw(3) == 0:
            t = t.unsqueeze(draw(len(shape))).expand(*_expanded(t, draw))
        if draw(3) == 0 and dtype.is_floating_point and t.is_contiguous():
            t = t.detach().requires_grad_(True)
            # No operation runs on the meta device: it would import torch's decompositions, which takes a second.
            t = t * 2 if draw(2) and t.device.type == "cpu" else t
        if dtype.is_complex and draw(2):
            t = t.conj()
        out.append(t)
    return out


def _expanded(t: Any, draw: Callable[[int], int]) -> list[int]:
    return [draw(3) + 1, *t.shape] if t.dim() == 0 else [-1] * (t.dim() + 1)


def _view_by_attributes(torch: Any, t: Any) -> tuple[Any, ...]:
    """Return the values that ``_C.tensor_view`` should find in the tensor's memory, read from Python attributes."""
    device_type, index = _device_pair(t.device)
    scalar_type = _SCALAR_TYPES[str(t.dtype).removeprefix("torch.")]
    keys = torch._C._dispatch_keys(t).raw_repr()
    return tuple(t.shape), t.stride(), keys, scalar_type, _DEVICE_TYPES[device_type], index, t.requires_grad, t.is_leaf


# ---- evaluating a text ---------------------------------------------------------------------------------------------


class _Cells(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise Failed(name)


def slot_names(entry: Any) -> list[str]:
    """Return the names of an entry's slots: the arguments of its code, then the free variables, which are cells."""
    code = entry.orig_code
    if not isinstance(code, types.CodeType):
        return []
    flags = code.co_flags
    count = code.co_argcount + code.co_kwonlyargcount + bool(flags & 4) + bool(flags & 8)
    return [*code.co_varnames[:count], *code.co_freevars]


def environment(
    entry: Any, slots: Mapping[str, Any] | None = None, globals: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a dict of the names that an entry's text uses besides variables: helpers, ``L``, ``G``, ``___cells``.

    `slots` maps the frame's variables to the contents of their slots. The slot of a free variable contains a cell.
    """
    held = dict(slots or {})
    scope = globals if globals is not None else {}
    tensors = entry.tensor_checks()

    def check_tensors(*values: Any) -> bool:
        return entry.state_holds() and len(values) == len(tensors) and all(map(_tensor_holds, tensors, values))

    def builtin(name: str) -> Any:
        if name in scope:
            raise Failed(name)
        module = scope.get("__builtins__", _builtins)
        return (module if isinstance(module, dict) else vars(module))[name]

    def is_grad_enabled() -> bool:
        import torch

        return torch.is_grad_enabled()

    return {
        "___guarded_code": entry,
        "___check_type_id": lambda value, ident: id(type(value)) == ident,
        "___check_obj_id": lambda value, ident: id(value) == ident,
        "___check_tensors": check_tensors,
        "___check_distinct": lambda *values: len(set(map(id, values))) == len(values),
        "___check_global_state": entry.state_holds,
        "___check_mutation": lambda value, ident: id(value) == ident and entry.unchanged(value),
        "___is_grad_enabled": is_grad_enabled,
        "___object": lambda ident, _words="": entry.const_by_id(ident),
        "___builtin": builtin,
        "___cells": _Cells(held),
        "___loads": lambda _value: True,
        "___equals": equals,
        "___hasattr": _C.has_instance_attr,
        "___instance_attr": instance_attr,
        "___instance_dict": instance_dict,
        "___type_lookup": type_lookup,
        "___type_hasattr": type_hasattr,
        "___mro_class": mro_class,
        "___referent": weakref.ref.__call__,
        "___dict_keys": dict_keys,
        "___dict_key": dict_key,
        "___dict_value": dict_value,
        "___dict_contains": dict_contains,
        "___holds": holds,
        "___dict_getitem": dict_getitem,
        "___tuple_iterator_len": tuple_iterator_len,
        "___tuple_iterator_getitem": tuple_iterator_getitem,
        "___iterator_part": _C.iterator_part,
        "___iterator_item": _C.iterator_item,
        "___iterator_value": _C.iterator_value,
        "___iterator_number": _C.iterator_number,
        "___iterator_left": _C.iterator_left,
        "___param_names": param_names,
        "___cell_empty": cell_empty,
        "___ends_in_code": _C.ends_in_code_at,
        "___ends": _C.ends_in_code,
        "___int64": int64,
        "L": held,
        "G": scope,
        "inf": math.inf,
        "nan": math.nan,
        "range": range,
        "slice": slice,
        "frozenset": frozenset,
        "type": type,
        "list": list,
        "len": len,
        "max": max,
        "min": min,
        "___exact": exact,
        **_NUMBER_FUNCTIONS,
        "Ellipsis": Ellipsis,
    }


class _Names(dict[str, Any]):
    """Looks up a text's names: helpers first, then the frame's variables, then globals."""

    def __init__(self, env: dict[str, Any], variables: Mapping[str, Any], globals: Mapping[str, Any]) -> None:
        super().__init__(variables)
        self.update(env)
        self._globals = globals

    def __missing__(self, name: str) -> Any:
        if name in self._globals:
            return self._globals[name]
        raise Failed(name)


def _variables(entry: Any, slots: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the frame's variables by name. A variable whose cell is empty is left out."""
    code = entry.orig_code
    cells = set(code.co_freevars) | set(code.co_cellvars) if isinstance(code, types.CodeType) else set()
    text = entry.text
    out = {}
    for name, value in slots.items():
        if isinstance(value, types.CellType) and (name in cells or f"___cells[{name!r}]" in text):
            if not cell_empty(value):
                out[name] = value.cell_contents
        else:
            out[name] = value
    return out


def names(entry: Any, slots: Mapping[str, Any], globals: dict[str, Any]) -> Mapping[str, Any]:
    """Return the names of the entry's texts for a frame. `slots` maps variables to the contents of their slots."""
    return _Names(environment(entry, slots, globals), _variables(entry, slots), globals)


def eval_text(
    entry: Any,
    slots: Sequence[Any] | Mapping[str, Any],
    globals: dict[str, Any] | None = None,
    names: Sequence[str] = (),
) -> bool:
    """Evaluate the entry's text for a frame. The verdict is that of ``entry.check``, but is computed independently.

    `slots` is a sequence of the slots' contents, in the order of `names` or slot_names(), or a mapping from variables
    to the contents of their slots. A condition on a value that cannot be read does not hold. A condition on sizes does
    not hold if an int exceeds 64 bits, as in C (see _in_64_bits).
    """
    if not isinstance(slots, Mapping):
        slots = dict(zip(names or slot_names(entry), slots, strict=False))
    return _holds(entry, entry.parts, slots, globals)


def part_holds(entry: Any, part: str, slots: Sequence[Any], globals: dict[str, Any]) -> bool:
    """Return whether one condition of the entry's text holds for a frame, regardless of the other conditions."""
    return _holds(entry, [part], dict(zip(slot_names(entry), slots, strict=False)), globals)


def int64(value: Any) -> int:
    """Return the value; raise Failed unless it is an exact int of 64 bits."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise Failed("no int of 64 bits")
    return value


def exact(value: Any) -> Any:
    """Return an int; raise Failed if its absolute value exceeds 2**53, so that it may differ from a float."""
    if abs(value) > 2**53:
        raise Failed("no float has this value exactly")
    return value


def power(x: float, y: float) -> Any:
    """Return x ** y; raise Failed if x is negative, or if the result is too large or small for full precision."""
    if x == 0 and y > 0:
        return 0.0
    if not x > 0 or not sys.float_info.min <= (result := x**y) <= sys.float_info.max:
        raise Failed("no such float")
    return result


#: functions of ints or floats in conditions on sizes; the program may have variables with their names
_NUMBER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "___float": float, "___int": int, "___round": round, "___floor": math.floor, "___ceil": math.ceil,
    "___sqrt": math.sqrt, "___power": power,
}  # fmt: skip


def _in_64_bits(part: str) -> str:
    """Return a condition on sizes that raises Failed if a value is not an int of 64 bits.

    In C the condition then fails. It also raises Failed if an int that is converted to a float, or a float that is
    rounded, exceeds 2**53.
    """
    import ast

    def call(name: str, *nodes: Any) -> Any:
        return ast.Call(ast.Name(name, ast.Load()), list(nodes), [])

    def is_float(node: Any) -> bool:
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Div) or is_float(node.left) or is_float(node.right)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            return name in ("float", "math.sqrt") or (name in ("max", "min") and any(map(is_float, node.args)))
        if isinstance(node, ast.UnaryOp):
            return is_float(node.operand)
        return isinstance(getattr(node, "value", None), float) or getattr(node, "id", None) in ("inf", "nan")

    def checked(node: Any) -> Any:
        decimal = is_float(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            node = call("___power", checked(node.left), checked(node.right))
        elif isinstance(node, ast.BinOp):
            node = ast.BinOp(checked(node.left), node.op, checked(node.right))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("max", "min"):
            node = ast.Call(node.func, [checked(arg) for arg in node.args], [])
        elif (
            isinstance(node, ast.Call)
            and (name := "___" + ast.unparse(node.func).removeprefix("math.")) in _NUMBER_FUNCTIONS
        ):
            of = node.args[0]
            if isinstance(of, ast.Compare):
                return call(name, ast.Compare(checked(of.left), of.ops, [checked(of.comparators[0])]))
            of = checked(of)
            node = call(name, call("___exact", of) if name == "___float" else of)
            if not decimal:
                node = call("___exact", node)
        return node if decimal else call("___int64", node)

    tree = ast.parse(part, mode="eval").body
    assert isinstance(tree, ast.Compare)
    return ast.unparse(ast.Compare(checked(tree.left), tree.ops, [checked(tree.comparators[0])]))


def _holds(entry: Any, parts: Sequence[str], slots: Mapping[str, Any], globals: dict[str, Any] | None) -> bool:
    on_sizes = {entry.parts[node[4]] for node in entry.nodes() if node[0] == "SHAPE_ENV"}
    text = " and ".join(_in_64_bits(part) if part in on_sizes else part for part in parts)
    scope = globals if globals is not None else {}
    code = compile(text, "<guards>", "eval")
    try:
        return bool(eval(code, {"__builtins__": {}}, names(entry, slots, scope)))
    except (Failed, AttributeError, ArithmeticError, LookupError, NameError, TypeError, ValueError):
        return False
