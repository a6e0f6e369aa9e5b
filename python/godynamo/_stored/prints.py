"""Fingerprints of what a translation relies on although no guard checks it.

A guard compares a function's code by identity. In another process the code is another object, so its contents count.
"""

from __future__ import annotations

import collections
import enum
import functools
import hashlib
import importlib.metadata
import sys
import types
from typing import Any

import torch

from .._translator.identity_map import IdentityMap
from .quietly import fields_of, is_a, module_of, mro_of, qualname_of
from .ranks import members

#: the type of the fields of namedtuples
TupleGetter = type(vars(collections.namedtuple("_", "field"))["field"])
#: the fingerprints of code objects, which are not kept alive
_codes: IdentityMap[types.CodeType, bytes] = IdentityMap()


def code_print(code: types.CodeType) -> bytes:
    """Return 16 bytes that depend on all of a code object except the name of its file."""
    known = _codes.get(code)
    if known is not None:
        return known
    h = hashlib.blake2b(digest_size=16)
    head = (
        code.co_name, code.co_qualname, code.co_flags, code.co_firstlineno, code.co_argcount,
        code.co_posonlyargcount, code.co_kwonlyargcount, code.co_names, code.co_varnames, code.co_freevars,
        code.co_cellvars, len(code.co_code), len(code.co_linetable), len(code.co_exceptiontable),
    )  # fmt: skip
    h.update(repr(head).encode("utf-8", "surrogatepass"))
    for part in (code.co_code, code.co_linetable, code.co_exceptiontable):
        h.update(part)
    for const in code.co_consts:
        _constant(h, const)
    _codes[code] = digest = h.digest()
    return digest


def _constant(h: Any, const: Any) -> None:
    """Add a constant of a code object. Sets are added in sorted order, since theirs depends on the hash seed."""
    kind = type(const)
    if kind is types.CodeType:
        h.update(b"code" + code_print(const))
    elif kind is tuple:
        h.update(b"tuple%d" % len(const))
        for item in const:
            _constant(h, item)
    elif kind is frozenset:
        h.update(repr(sorted(map(repr, const))).encode("utf-8", "surrogatepass"))
    else:
        h.update(f"{kind.__name__} {const!r}".encode("utf-8", "surrogatepass"))


def print_of(obj: Any) -> bytes:
    """Return the fingerprint of an object that is found by its name or place; b"" if guards check all that counts."""
    kind = type(obj)
    if kind is types.FunctionType:
        return code_print(obj.__code__)
    if kind is types.CodeType:
        return code_print(obj)
    if is_a(obj, type):
        names = "\n".join(f"{module_of(c)}.{qualname_of(c)}" for c in mro_of(obj))
        return _short(names + version_of(module_of(obj)))
    if is_a(obj, enum.Enum):
        fields = fields_of(obj)
        value = fields.get("_value_")
        return _short(f"{fields.get('_name_')} {plain_text(value) or qualname_of(type(value))}")
    if kind is torch._ops.OpOverload or kind is torch._ops.OpOverloadPacket:
        every = [obj] if kind is torch._ops.OpOverload else [getattr(obj, name) for name in obj.overloads()]
        library = str(obj).partition(".")[0]
        return _short("\n".join(str(op._schema) for op in every) + version_of(library))
    if kind is TupleGetter:
        return _short(repr(obj.__reduce__()[1]))
    text = repr(obj) if module_of(kind) == "sys" else members(obj)
    if text is not None:
        return _short(text)
    if kind in _PLAIN:
        text = plain_text(obj)
        return _short(text) if text is not None else b""
    module = obj.__module__ if kind is types.BuiltinFunctionType else module_of(kind)
    return _short(qualname_of(kind) + version_of(module))


_PLAIN = (int, float, complex, str, bytes, bool, tuple, frozenset, range, type(None), type(...))


def plain_text(obj: Any) -> str | None:
    """Return a text that depends on the value of an immutable object, or None if it contains objects of the program."""
    kind = type(obj)
    if kind not in _PLAIN:
        return None
    if kind is not tuple and kind is not frozenset:
        return f"{kind.__name__} {obj!r}"
    texts = [plain_text(x) for x in obj]
    if None in texts:
        return None
    order = "" if kind is tuple or all(type(x) is int for x in obj) else str(hash("godynamo"))
    return f"{kind.__name__}({', '.join(map(str, texts))}){order}"


def version_of(module: object) -> str:
    """Return the version that a module's package states, or ""."""
    name = module.partition(".")[0] if type(module) is str else ""
    package = sys.modules.get(name)
    version = fields_of(package).get("__version__") if is_a(package, types.ModuleType) else None
    if version is None and is_a(package, types.ModuleType) and type(package) is not types.ModuleType:
        version = _installed(name)  # transformers' module makes its attributes when they are read
    return f" {version}" if type(version) is str else ""


@functools.cache
def _installed(package: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _short(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
