"""Describes the objects of a translation so that another process can find them, and finds them there.

An object is described by its value if that is all it is; by its name if a module has it; by its place if the guard
program reads it from the frame; or by how godynamo made it. An object that the program can change is never described by
its contents, since a copy of it would not change.
"""

from __future__ import annotations

import _collections_abc  # noqa: F401 named below
import enum
import functools
import importlib
import operator
import os
import struct
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from .. import _C
from .._backends.rows import Ref
from .._called import ddp, fsdp
from .._called.copies import Copies
from .._translator import caches, callable_names, recipes
from .._translator.classes import is_pybind_enum
from . import ranks
from .prints import TupleGetter, plain_text, print_of, version_of
from .quietly import fields_of, is_a, made_in_python, module_of, mro_of, qualname_of, space_of

#: kinds of rows; cache/record has the same numbers
REGISTER, TYPE, RESUME, GRAPH, PYTHON = 1, 2, 3, 4, 5

#: (kind, number, way, data, items, fingerprint, whether the object is found by what it is)
Row = tuple[int, int, str, bytes, tuple[int, ...], bytes, bool]


class NotStored(Exception):
    """An object cannot be described."""


class Missing(Exception):
    """An object cannot be found, or is another one."""


_SINGLETONS = {"None": None, "True": True, "False": False, "Ellipsis": ..., "NotImplemented": NotImplemented}
_BY_ID = {id(o): name for name, o in _SINGLETONS.items()}
_TORCH_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)
_DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_small_ints = range(-5, 257)
#: the types of CPython that are not in builtins, although __module__ says so
_TYPES = {
    id(value): f"{module}:{name}"
    for module in ("_collections_abc", "types")  # the former names the types of iterators, and itself collections.abc
    for name, value in vars(sys.modules[module]).items()
    if isinstance(value, type)
}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Table:
    """Rows that describe objects. An object has one row, and its items have rows before it."""

    def __init__(
        self,
        function: types.FunctionType,
        places: dict[int, tuple[int, int]],
        made: dict[int, tuple[int, int]],
        pool: Sequence[Any] = (),
    ) -> None:
        """``places`` maps id(object) to (REGISTER or TYPE, register), ``made`` to (RESUME or GRAPH, number). ``pool``
        has the objects of the guards, among them the functions or code objects that were inlined.
        """
        self.rows: list[Row] = []
        self.function = function
        self._pool = pool
        self._places = places
        self._objects_made = made
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []

    def add(self, obj: Any) -> int:
        """Return the number of an object's row. Raises NotStored."""
        number = self._numbers.get(id(obj))
        return self._append(obj, self._row(obj)) if number is None else number

    def add_plain(self, obj: Any, strict: bool = False) -> int:
        """Return the number of a row for data that the translation has made: lists and dicts are copied.

        The globals of a module are not copied. What is no data is left out. If ``strict``, it is described like any
        object, as in the rows of graphs.
        """
        kind = type(obj)

        def add(item: Any) -> int:
            return self.add_plain(item, strict)

        if kind is list:
            row = self._python("list", b"", tuple(map(add, obj)))
        elif kind is dict and self._globals(obj) is not None:
            return self.add(obj)
        elif kind is dict:
            row = self._python("dict", b"", tuple(add(x) for pair in obj.items() for x in pair))
        elif kind is tuple and not (strict and id(obj) in self._constants_of_code):
            row = self._python("tuple", b"", tuple(map(add, obj)))
        elif kind is Ref:
            row = self._python("ref", b"%d" % obj.index)
        elif kind is str and strict and obj.startswith('  File "'):
            row = self._located(obj)
        elif kind in (str, int, float, bool) or strict:
            return self.add(obj)
        else:
            row = self._python("None")
        self.rows.append(row)
        return len(self.rows) - 1

    def _located(self, text: str) -> Row:
        """Return the row of a node's stack trace, which names source files. They may move."""
        files = [code for file, code in self._code_of_files.items() if f'"{file}"' in text]
        for i, code in enumerate(files):
            text = text.replace(f'File "{code.co_filename}", line', f'File "\0{i}\0", line')
        return self._python("located", _bytes(text), tuple(map(self.add, files)))

    @functools.cached_property
    def _code_of_files(self) -> dict[str, types.CodeType]:
        """{file: a code object from it} for the user's code and the code objects that guards compare."""
        codes = [*(obj for obj in self._pool if type(obj) is types.CodeType), users_code(self.function)]
        return {code.co_filename: code for code in codes}

    def _append(self, obj: Any, row: Row) -> int:
        """Add the row of an object, which lives on, so that its id is not reused."""
        self._kept.append(obj)
        self.rows.append(row)
        self._numbers[id(obj)] = len(self.rows) - 1
        return len(self.rows) - 1

    def _python(self, way: str, data: bytes = b"", items: tuple[int, ...] = (), mark: bytes = b"") -> Row:
        return (PYTHON, 0, way, data, items, mark, False)

    def _own(self, obj: Any, way: str, data: bytes = b"", items: tuple[int, ...] = ()) -> Row:
        return (PYTHON, 0, way, data, items, print_of(obj), True)

    def _row(self, obj: Any) -> Row:
        if id(obj) in self._objects_made:
            return (*self._objects_made[id(obj)], "", b"", (), b"", True)
        place = self._places.get(id(obj))
        row = None
        if not _has_identity(obj):
            row = self._value(obj)
        elif place is None:
            row = self._constant(obj) or self._value(obj)
        if row is None:
            row = self._named(obj)
        if row is None and place is not None and (place[0] == TYPE or _guarded(obj)):
            return (*place, "", b"", (), print_of(obj), True)
        if row is None:
            row = self._made(obj) or self._of_library(obj)
        if row is None and place is not None:
            raise NotStored(f"{_name(obj)} is guarded by identity alone")
        if row is None:
            raise NotStored(f"{_name(obj)} has neither a name nor a place")
        return row

    def _of_library(self, obj: Any) -> Row | None:
        """Return the row of an object that a module of torch or godynamo has, if the object itself has no name."""
        module, name = _constant_of(module_of(type(obj)), obj)
        if not module:  # most are globals of functions that were inlined
            module, name = self._globals_of_libraries.get(id(obj), ("", ""))
        if not module:
            module, name = _library_constants().get(id(obj), ("", ""))
        return self._own(obj, "global", _bytes(f"{module}:{name}")) if _look(module, name) is obj else None

    @functools.cached_property
    def _globals_of_libraries(self) -> dict[int, tuple[str, str]]:
        """Do what _library_constants does, for the modules of the pool's functions."""
        names = [fn.__globals__.get("__name__") for fn in self._pool if type(fn) is types.FunctionType]
        known = dict.fromkeys(name for name in names if type(name) is str and name in sys.modules)
        return _constants_of([sys.modules[name] for name in known])

    def _constant(self, obj: Any) -> Row | None:
        """Return the row of a constant of the code that was translated: programs compare constants by identity."""
        code, path = self._constants_of_code.get(id(obj), (None, b""))
        return None if code is None else self._own(obj, "const", path, (self.add(code),))

    @functools.cached_property
    def _constants_of_code(self) -> dict[int, tuple[types.CodeType, bytes]]:
        """{id: (code object, indices)} of the constants that have an identity."""
        found: dict[int, tuple[types.CodeType, bytes]] = {}

        def note(items: Sequence[Any], code: types.CodeType, path: bytes) -> None:
            for i, item in enumerate(items):
                kind = type(item)
                if kind in _KINDS_IN_CODE and id(item) not in found and _has_identity(item):
                    found[id(item)] = (code, at := path + b".%d" % i)
                    if kind is tuple:
                        note(item, code, at)

        for code in self._translated:
            note(code.co_consts, code, b"")
            for _, inner in _inner(code):
                note(inner.co_consts, inner, b"")
        return found

    @functools.cached_property
    def _translated(self) -> list[types.CodeType]:
        """The user's code and what was inlined."""
        codes = [obj.__code__ if type(obj) is types.FunctionType else obj for obj in self._pool]
        return [users_code(self.function), *(code for code in codes if type(code) is types.CodeType)]

    def _value(self, obj: Any) -> Row | None:
        """Return the row of an object that is nothing but its value."""
        kind = type(obj)
        name = _BY_ID.get(id(obj))
        if name is not None:
            return self._python(name)
        if kind is int:
            return self._python("int", b"%d" % obj if -(2**63) <= obj < 2**63 else _bytes(hex(obj)))
        if kind is float:
            return self._python("float", struct.pack("<d", obj))
        if kind is complex:
            return self._python("complex", struct.pack("<dd", obj.real, obj.imag))
        if kind is str:
            return self._python("name" if _interned(obj) else "str", _bytes(obj))
        if kind is bytes:
            return self._python("bytes", obj)
        if kind is tuple or kind is torch.Size:
            return self._python("tuple" if kind is tuple else "size", b"", tuple(map(self.add, obj)))
        if kind is frozenset:
            return self._python("frozenset", b"", tuple(map(self.add, obj)), lasting_seed() if _seeded(obj) else b"")
        if kind is types.UnionType and all(map(_joins_plainly, obj.__args__)):
            return self._python("union", b"", tuple(map(self.add, obj.__args__)))
        if kind is slice or kind is range:
            parts = (obj.start, obj.stop, obj.step)
            return self._python(kind.__name__, b"", tuple(map(self.add, parts)))
        if kind in _TORCH_CONSTANTS:
            return self._python("torch", _bytes(str(obj).removeprefix("torch.")))
        if kind is torch.device:
            return self._python("device", _bytes(str(obj)))
        numpy = _arrays().plain_text(obj) if _is_numpys(kind) else None
        if numpy is not None:
            return self._python("numpy", _bytes(numpy))
        placement = ranks.placement(obj)
        if placement is not None:
            return self._python("placement", placement[0].encode(), tuple(map(self.add, placement[1])))
        return None

    def _named(self, obj: Any) -> Row | None:
        """Return the row of an object that a module or class has under a name."""
        kind = type(obj)
        if is_a(obj, types.ModuleType):
            name = fields_of(obj).get("__name__")
            if type(name) is not str or sys.modules.get(name) is not obj:
                return None
            return self._own(obj, "module", _bytes(name))
        if kind is dict:
            return self._globals(obj)
        if kind is types.CodeType:
            return self._code(obj)
        if kind in _DESCRIPTORS:
            cls, name = obj.__objclass__, obj.__name__
            if space_of(cls).get(name) is obj:
                return self._own(obj, "attr", _bytes(name), (self.add(cls),))
            return None
        if id(obj) in _TYPES:
            return self._own(obj, "global", _bytes(_TYPES[id(obj)]))
        for module, path in _names(obj):
            if _look(module, path) is obj:
                return self._own(obj, "global", _bytes(f"{module}:{path}"))
            if _follow(self.function.__globals__, path) is obj:
                return self._own(obj, "frame global", _bytes(path))
            outer = _look(module, path)
            for depth, inside in enumerate(_unwrapped(outer)):
                if inside is obj:
                    return self._own(obj, "wrapped", b"%d" % depth, (self.add(outer),))
        of_class = kind is types.BuiltinFunctionType and is_a(obj.__self__, type)
        if of_class or (kind is types.MethodWrapperType and type(obj.__self__) in _DESCRIPTORS):
            return self._python("bound", _bytes(obj.__name__), (self.add(obj.__self__),))
        return None

    def _globals(self, obj: dict[str, Any]) -> Row | None:
        if obj is self.function.__globals__:
            return self._own(obj, "frame globals")
        name = obj.get("__name__")
        module = sys.modules.get(name) if type(name) is str else None
        if module is not None and vars(module) is obj:
            return self._own(obj, "globals", _bytes(str(name)))
        if obj is sys.modules:
            return self._own(obj, "global", b"sys:modules")
        return None

    def _code(self, code: types.CodeType) -> Row | None:
        root = users_code(self.function)
        if code is root:
            return self._own(code, "frame code")
        if code == root:  # a Root finds resume callables by equal code, which may have been compiled twice
            return self._python("frame code")
        for path, inner in _inner(root):
            if inner is code:
                return self._own(code, "frame code", path)
        place = self._places.get(id(code))
        if place is not None:
            return None
        outer, _, _ = code.co_qualname.partition(".<locals>")
        spaces = [vars(sys.modules[name]) for name in _modules_of(code.co_filename)]
        for space in (self.function.__globals__, *spaces):
            found = _follow(space, outer)
            if type(found) is types.FunctionType and found.__code__ is code:
                return self._own(code, "code", b"", (self.add(found),))
            for fn in _unwrapped(found):
                if fn.__code__ is code:
                    return self._own(code, "code", b"", (self.add(fn),))
                for inside, inner in _inner(fn.__code__):
                    if inner is code:
                        return self._own(code, "code", inside, (self.add(fn),))
        return None

    def _made(self, obj: Any) -> Row | None:
        """Return the row of an object that godynamo has made."""
        kind = type(obj)
        recipe = recipes.recipe_of(obj)
        if recipe is not None and recipe[1] is not None:
            return self._python("item", b"%d" % recipe[1], (self.add(recipe[0]),))
        if recipe is not None or kind is recipes.Recipe:
            return self._recipe(obj if recipe is None else recipe[0])
        if kind is _C.Keywords:
            return self._python("keywords", b"", (self.add(obj.names),))
        if kind is _C.Group or kind is _C.Epilogue:
            return self._python(kind.__name__.lower(), b"", (self.add(obj.plan),))
        if kind is _C.AheadCall:
            return self._python("ahead", b"", (self.add(obj.function),))
        if kind is caches.Finds:
            return self._cached(obj)
        if kind is fsdp.AsDescribed or kind is ddp.AsDescribed:
            return self._python("described", kind.__module__.encode(), (self.add(obj.told),))
        if kind is Copies:
            return self._python("copies", b"", (self.add(obj.groups),))
        if kind is types.FunctionType and _is_ours(obj):
            original = obj.__dict__.get("__godynamo_stands_for__")
            if original is not None and original() is not None:
                return self._python("remade", _bytes(obj.__module__), (self.add(original()),))
            return self._closure(obj)
        if kind is weakref.ref:
            return self._python("weakref", b"", (self.add(obj()),)) if obj() is not None else None
        if kind is types.MethodType and _is_ours(obj.__func__):
            return self._python("method", b"", (self.add(obj.__func__), self.add(obj.__self__)))
        return None

    def _recipe(self, recipe: recipes.Recipe) -> Row:
        return self._python("made", recipe.maker.encode(), tuple(self.add_plain(x, True) for x in recipe.args))

    def _cached(self, finds: caches.Finds) -> Row:
        wrapper = finds.wrapper()
        if wrapper is None or (finds.hit and (plain_text(finds.value) is None or _has_identity(finds.value))):
            raise NotStored("the result of a cached call that is no constant")
        parts = (wrapper, finds.args, finds.names, finds.hit, finds.value)
        return self._python("cached", b"", tuple(map(self.add, parts)))

    def _closure(self, fn: types.FunctionType) -> Row:
        cells = [cell.cell_contents for cell in fn.__closure__ or ()]
        if fn.__kwdefaults__ or fn.__dict__:
            raise NotStored(f"{fn.__qualname__} has attributes")
        code = self._our_code(fn)
        items = (code, self.add(fn.__defaults__), *map(self.add, cells))
        return self._python("closure", _bytes(fn.__module__), items)

    def _our_code(self, fn: types.FunctionType) -> int:
        """Add the code of a function of godynamo's that another one has made."""
        if id(fn.__code__) in self._numbers:
            return self._numbers[id(fn.__code__)]
        outer, _, _ = fn.__qualname__.partition(".<locals>")
        named = _look(fn.__module__, outer)
        found = getattr(named, "__wrapped__", named)
        if type(found) is types.FunctionType:
            for path, inner in _inner(found.__code__):
                if inner is fn.__code__:
                    return self._append(inner, self._own(inner, "code", path, (self.add(named),)))
        raise NotStored(f"{fn.__qualname__} has no name")


def users_code(function: types.FunctionType) -> types.CodeType:
    """Return the user's code object, of which a resume function runs the rest."""
    origin = function.__dict__.get("__godynamo_origin__")
    code: types.CodeType = origin[0] if origin is not None else function.__code__
    return code


def _unwrapped(fn: Any) -> Iterator[types.FunctionType]:
    """Yield the function and, if decorators have wrapped it, the functions inside."""
    seen: set[int] = set()
    while type(fn) is types.FunctionType and id(fn) not in seen:
        seen.add(id(fn))
        yield fn
        fn = fn.__dict__.get("__wrapped__")


def _is_ours(fn: Any) -> bool:
    """Return whether a function is godynamo's."""
    name = fn.__globals__.get("__name__") if type(fn) is types.FunctionType else None
    return type(name) is str and name.startswith("godynamo.")


def _name(obj: Any) -> str:
    """Return words for an object. They run no code of the program."""
    kind = type(obj)
    if kind is types.CodeType:
        return f"the code of {obj.co_qualname}"
    own = qualname_of(obj) if is_a(obj, type) else ""
    if kind in (types.FunctionType, types.BuiltinFunctionType):
        own = obj.__qualname__
    return f"{module_of(kind)}.{qualname_of(kind)} {own}".strip()


def _has_identity(obj: Any) -> bool:
    """Return whether there may be another object that equals this one."""
    kind = type(obj)
    if kind is str:
        return not (_interned(obj) or not obj or (len(obj) == 1 and ord(obj) < 256))
    if kind is tuple or kind is bytes:
        return len(obj) > (kind is bytes)
    if kind in _TORCH_CONSTANTS:
        return False
    return not (id(obj) in _BY_ID or (kind is int and obj in _small_ints))


def _interned(text: str) -> bool:
    """Return whether equal strings are this object. Before 3.13 nothing tells, but sys.intern, which interns it."""
    known = getattr(sys, "_is_interned", None)
    if known is not None:
        return bool(known(text))
    return text.isascii() and text.replace("_", "a").isalnum() and sys.intern(text) is text


def _joins_plainly(cls: Any) -> bool:
    """Return whether ``cls | other`` runs no code of the program: its metaclass does not define it."""
    return is_a(cls, type) and not any({"__or__", "__ror__"} & space_of(c).keys() for c in mro_of(type(cls))[:-2])


#: the types of constants in code objects, apart from code objects and singletons
_KINDS_IN_CODE = {int, float, complex, str, bytes, tuple, frozenset}


def _seeded(items: frozenset[Any]) -> bool:
    """Return whether the order of the items depends on the process's hash seed."""
    return any(type(x) is not int and type(x) is not bool for x in items)


def seed() -> bytes:
    """Return bytes that distinguish hash seeds."""
    return struct.pack("<q", hash("godynamo"))


def lasting_seed() -> bytes:
    """Return seed(). Raises NotStored if each process has a seed of its own, since no other one would load the file."""
    if os.environ.get("PYTHONHASHSEED", "random") in ("", "random"):
        raise NotStored("the order of a set depends on the process's hash seed (PYTHONHASHSEED is not set)")
    return seed()


def _guarded(obj: Any) -> bool:
    """Return whether guards check all that counts of an object which they find by its place.

    Objects of classes written in C (functools.partial, operator.itemgetter, compiled patterns) are guarded by identity
    alone.
    """
    if is_a(obj, (type, types.FunctionType, types.CodeType, types.ModuleType, torch.nn.Module)):
        return True
    cls = type(obj)
    if plain_text(obj) is not None or cls is TupleGetter:  # print_of has their contents
        return True
    if is_a(obj, enum.Enum) and plain_text(fields_of(obj).get("_value_")) is not None:
        return True
    if ranks.members(obj) is not None:  # print_of also covers groups and meshes
        return True
    return not module_of(cls).startswith("torch") and all(map(made_in_python, mro_of(cls)[:-1]))


def _names(obj: Any) -> Iterator[tuple[str, str]]:
    """Yield (module, dotted path) pairs under which an object may be found."""
    kind = type(obj)
    if is_a(obj, type):
        yield module_of(obj), qualname_of(obj)
        yield "torch._C", "Graph.__class__"  # pybind11's metaclass, the type of many torch classes
    elif kind is types.FunctionType or (kind is functools._lru_cache_wrapper and type(obj.__module__) is str):
        yield obj.__module__ if type(obj.__module__) is str else "", obj.__qualname__
    elif kind is types.BuiltinFunctionType:
        module = obj.__module__
        if type(module) is str:
            yield module, obj.__name__
        name = callable_names.ops().get(obj)
        if name is not None:
            yield "torch", name
            yield "torch._C", "_VariableFunctions." + name
    elif module_of(kind) == "sys":  # sys.version_info, sys.flags, ...
        yield "sys", qualname_of(kind)
    elif ranks.reduction(obj):
        yield "torch.distributed", "ReduceOp." + ranks.reduction(obj)
    elif is_pybind_enum(kind):
        yield "torch._C", f"{qualname_of(kind)}.{obj.name}"
        yield module_of(kind), f"{qualname_of(kind)}.{obj.name}"
    elif module_of(kind) == "typing" and type(getattr(obj, "_name", None)) is str:  # typing.Literal and its kin
        yield "typing", obj._name
    elif kind is torch._ops.OpOverload or kind is torch._ops.OpOverloadPacket:
        library = str(obj).partition(".")[0]
        if library not in TORCHS_LIBRARIES and not version_of(library):
            raise NotStored(f"the program defines the operator {obj}")
        yield "torch", "ops." + str(obj)
    elif "godynamo._translator.arrays" in sys.modules and _arrays().path_of(obj) is not None:
        folder, _, name = f"numpy.{_arrays().path_of(obj)}".rpartition(".")
        yield folder, name


def _is_numpys(kind: type) -> bool:
    return module_of(kind).partition(".")[0] == "numpy"


def _arrays() -> Any:
    """Return _translator.arrays. A process that loads no operation of numpy does not import it."""
    return importlib.import_module("godynamo._translator.arrays")


#: libraries of operators that are torch's own. The metadata of other operators is computed by Python code, whose
#: fingerprint is the version of the package with the library's name.
TORCHS_LIBRARIES = {"aten", "prims", "prim", "c10d", "_c10d_functional", "quantized", "sparse", "mkldnn", "inductor"}

_constants: dict[int, tuple[str, str]] = {}
_OF_NO_INTEREST = (type, types.FunctionType, types.ModuleType, str, int, float, bool)


def _constant_of(module: str, obj: Any) -> tuple[str, str]:
    """Return (module, name) if godynamo's module of this name has the object, else ("", "")."""
    if module.partition(".")[0] == "godynamo" and module in sys.modules:
        for key, value in list(vars(sys.modules[module]).items()):
            if value is obj:
                return module, key
    return "", ""


def _library_constants() -> dict[int, tuple[str, str]]:
    """Return {id: (module, name)} of the objects in torch's and godynamo's modules, for objects without a name."""
    if not _constants:
        _constants.update(_constants_of(list(sys.modules.values())))
    return _constants


def _constants_of(modules: list[types.ModuleType]) -> dict[int, tuple[str, str]]:
    """Return {id: (module, name)} of the objects in those of the modules that are torch's and godynamo's."""
    found: dict[int, tuple[str, str]] = {}
    for module in modules:
        name = fields_of(module).get("__name__") if type(module) is types.ModuleType else None
        if type(name) is str and name.partition(".")[0] in ("torch", "godynamo"):
            for key, value in list(vars(module).items()):
                if type(value) not in _OF_NO_INTEREST:
                    found.setdefault(id(value), (name, key))
    return found


def _look(module: str, path: str) -> Any:
    """Return what a loaded module has under a dotted path, without running code of the program; else Missing."""
    holder = sys.modules.get(module)
    if holder is None or not is_a(holder, types.ModuleType):
        return Missing
    if module.partition(".")[0] in ("torch", "godynamo"):
        found: Any = holder
        for part in path.split("."):
            found = getattr(found, part, Missing)
        return found
    return _follow(fields_of(holder), path)


def _follow(space: Mapping[str, Any], path: str) -> Any:
    """Return what a dotted path leads to through classes, without running code of the program; else Missing."""
    found: Any = Missing
    for part in path.split("."):
        found = space.get(part, Missing)
        if type(found) in (staticmethod, classmethod):
            found = found.__func__
        space = space_of(found) if is_a(found, type) else {}
    return found


def _inner(code: types.CodeType, path: bytes = b"") -> Iterator[tuple[bytes, types.CodeType]]:
    """Yield (path, code) of all code objects among a code object's constants."""
    for i, const in enumerate(code.co_consts):
        if type(const) is types.CodeType:
            at = path + b".%d" % i
            yield at, const
            yield from _inner(const, at)


_files: dict[str, list[str]] = {}


def _modules_of(file: str) -> list[str]:
    """Return the names of the loaded modules that a file defines."""
    if file not in _files:
        _files.setdefault(file, [])
        for name, module in list(sys.modules.items()):
            of = fields_of(module).get("__file__") if is_a(module, types.ModuleType) else None
            if type(of) is str and name not in _files.setdefault(of, []):
                _files[of].append(name)
    return [name for name in _files[file] if name in sys.modules]


# ---- finding ----


def find(rows: list[Row], function: types.FunctionType, found: list[Any]) -> None:
    """Fill in ``found``, a list with None for each object that is not known yet and a tuple (object,) for each other.

    Rows that depend on unknown registers are left out. Raises Missing.
    """
    for i, (kind, _, way, data, items, _, _) in enumerate(rows):
        if kind != PYTHON or found[i] is not None:
            continue
        parts = [found[k] for k in items]
        if None not in parts:
            found[i] = (_FIND[way](data, [p[0] for p in parts], function),)


def check(rows: list[Row], found: list[tuple[Any]]) -> None:
    """Raise Missing if an object differs from what was described, or if two objects have become one."""
    owned: dict[int, int] = {}
    for i, ((_, _, way, _, _, mark, own), (obj,)) in enumerate(zip(rows, found, strict=True)):
        if own:
            if owned.setdefault(id(obj), i) != i:
                raise Missing(f"{_name(obj)} is in two places")
            if mark and print_of(obj) != mark:
                raise Missing(f"{_name(obj)} has changed")
        elif mark and way == "frozenset" and mark != seed():
            raise Missing("the order of a set depends on the hash seed")


def check_folded(function: Callable[..., Any], arguments: tuple[Any, ...], result: Any) -> None:
    """Raise Missing unless a function marked with assume_constant_result returns an equal result again."""
    now = function(*arguments)
    if type(now) is not type(result) or now != result:
        raise Missing(f"{_name(function)} returned another result")


def moved(data: Any, files: tuple[tuple[str, str], ...]) -> Any:
    """Return dicts, lists and tuples with new names of files. ``files`` has pairs of an old name and the new one."""
    names = dict(files)

    def renamed(x: Any) -> Any:
        kind = type(x)
        if kind is str:
            return names.get(x, x)
        if kind is dict:
            return {key: renamed(value) for key, value in x.items()}
        return kind(map(renamed, x)) if kind is list or kind is tuple else x

    return renamed(data)


def _by_path(code: types.CodeType, path: bytes) -> types.CodeType:
    for part in path.split(b".")[1:]:
        consts = code.co_consts
        if int(part) >= len(consts) or type(consts[int(part)]) is not types.CodeType:
            raise Missing(f"{code.co_qualname} has changed")
        code = consts[int(part)]
    return code


def _global(data: bytes, _: list[Any], function: types.FunctionType) -> Any:
    module, path = data.decode("utf-8", "surrogatepass").split(":", 1)
    if module not in sys.modules and module.partition(".")[0] in ("torch", "godynamo"):
        importlib.import_module(module)
    found = _look(module, path)
    if found is Missing:
        raise Missing(f"{module}.{path}")
    return found


def _frame_global(data: bytes, _: list[Any], function: types.FunctionType) -> Any:
    path = data.decode("utf-8", "surrogatepass")
    found = _follow(function.__globals__, path)
    if found is Missing:
        raise Missing(path)
    return found


def _module(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    name = data.decode("utf-8", "surrogatepass")
    if name not in sys.modules and name.partition(".")[0] in ("torch", "godynamo"):
        importlib.import_module(name)
    if name not in sys.modules:
        raise Missing(f"module {name}")
    return sys.modules[name]


def _attribute(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    space = space_of(items[0])
    name = data.decode()
    if name not in space:
        raise Missing(f"{qualname_of(items[0])}.{name}")
    return space[name]


def _found_code(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    fn = getattr(items[0], "__wrapped__", items[0]) if data and not hasattr(items[0], "__code__") else items[0]
    if type(fn) is not types.FunctionType:
        raise Missing(f"{_name(fn)} is no function")
    return _by_path(fn.__code__, data)


def _found_constant(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    found, within = None, items[0].co_consts
    for part in data.split(b".")[1:]:
        if type(within) is not tuple or int(part) >= len(within):
            raise Missing("a constant has changed")
        found = within = within[int(part)]
    return found


def _function(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    code, defaults, *cells = items
    made = types.FunctionType(
        code, vars(sys.modules[data.decode()]), code.co_name, defaults, tuple(map(types.CellType, cells)) or None
    )
    made.__qualname__ = code.co_qualname
    return made


def _remade(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    """Return the stand-in of a closure (_polyfills/_base.closures_like), which lives as long as the closure."""
    importlib.import_module(data.decode())
    remade = importlib.import_module("godynamo._polyfills._base").remade
    remake = remade.get(items[0].__code__) if type(items[0]) is types.FunctionType else None
    if remake is None:
        raise Missing(f"{_name(items[0])} has no stand-in")
    return remake(items[0])


def _wrapped(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    for depth, inside in enumerate(_unwrapped(items[0])):
        if depth == int(data):
            return inside
    raise Missing(f"{_name(items[0])} wraps no function")


def _made_again(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    for makers in "higher", "values":
        importlib.import_module("godynamo._translator." + makers)
    if data == b"placed":
        _arrays()
    try:
        return recipes.MAKERS[data.decode()](*items)
    except Exception as error:
        raise Missing(f"{data!r} makes no operation: {error}") from error


def _located(data: bytes, items: list[Any], function: types.FunctionType) -> str:
    parts = data.decode("utf-8", "surrogatepass").split("\0")
    parts[1::2] = [items[int(k)].co_filename for k in parts[1::2]]
    return "".join(parts)


def _described(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    makers = {module.__name__: module.AsDescribed for module in (fsdp, ddp)}
    if data.decode() not in makers:
        raise Missing("a guard of another version")
    return makers[data.decode()](items[0])


def _found_cached(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    wrapper, args, names, hit, value = items
    kept = tuple(type(arg) is not weakref.ref for arg in args)
    found = caches.peek(wrapper, caches.arguments(args), kept, names)
    if found is None or found[0] != hit or plain_text(found[1]) != plain_text(value):
        raise Missing("another result of a cached call")
    return found[2]


def _torch_constant(data: bytes, items: list[Any], function: types.FunctionType) -> Any:
    found = getattr(torch, data.decode(), None)
    if not isinstance(found, _TORCH_CONSTANTS):
        raise Missing(f"torch.{data.decode()}")
    return found


_Way = Callable[[bytes, list[Any], types.FunctionType], Any]


def _singleton(value: Any) -> _Way:
    return lambda data, items, function: value


_FIND: dict[str, _Way] = {
    **{name: _singleton(value) for name, value in _SINGLETONS.items()},
    "int": lambda data, items, function: int(data, 0),
    "float": lambda data, items, function: struct.unpack("<d", data)[0],
    "complex": lambda data, items, function: complex(*struct.unpack("<dd", data)),
    "str": lambda data, items, function: data.decode("utf-8", "surrogatepass"),
    "name": lambda data, items, function: sys.intern(data.decode("utf-8", "surrogatepass")),
    "bytes": lambda data, items, function: data,
    "tuple": lambda data, items, function: tuple(items),
    "list": lambda data, items, function: items,
    "dict": lambda data, items, function: dict(zip(items[::2], items[1::2], strict=True)),
    "size": lambda data, items, function: torch.Size(items),
    "frozenset": lambda data, items, function: frozenset(items),
    "union": lambda data, items, function: functools.reduce(operator.or_, items),
    "slice": lambda data, items, function: slice(*items),
    "range": lambda data, items, function: range(*items),
    "torch": _torch_constant,
    "device": lambda data, items, function: torch.device(data.decode()),
    "numpy": lambda data, items, function: _arrays().of_text(data.decode()),
    "module": _module,
    "global": _global,
    "frame global": _frame_global,
    "attr": _attribute,
    "bound": lambda data, items, function: getattr(items[0], data.decode()),
    "globals": lambda data, items, function: vars(_module(data, items, function)),
    "frame globals": lambda data, items, function: function.__globals__,
    "frame code": lambda data, items, function: _by_path(users_code(function), data),
    "code": _found_code,
    "const": _found_constant,
    "closure": _function,
    "wrapped": _wrapped,
    "remade": _remade,
    "described": _described,
    "cached": _found_cached,
    "ahead": lambda data, items, function: items[0],
    "weakref": lambda data, items, function: weakref.ref(items[0]),
    "made": _made_again,
    "item": lambda data, items, function: items[0][int(data)],
    "located": _located,
    "method": lambda data, items, function: types.MethodType(*items),
    "copies": lambda data, items, function: Copies.joining(items[0]),
    "ref": lambda data, items, function: Ref(int(data)),
    "placement": lambda data, items, function: ranks.make_placement(data.decode(), items),
    "keywords": lambda data, items, function: _C.Keywords(items[0]),
    "group": lambda data, items, function: _C.Group(items[0]),
    "epilogue": lambda data, items, function: _C.Epilogue(items[0]),
}
