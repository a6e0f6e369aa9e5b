"""Converts guards to words: ``___check_type_id(x, 94627598164288)`` to ``type(x) is torch.Tensor``.

The input is a part of an entry's text, which is a Python expression. The output is close to Python, but need not be
Python. A place is written as the user reads it: ``G['torch']`` as ``torch``, and
``___type_lookup(___object(946.., '___type_Net'), 'forward')`` as ``Net.forward``.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable
from typing import Any

Lookup = Callable[[int], Any]  #: an entry's const_by_id: address of an object -> object

#: bits of the C field gd_tensor_spec.fields, from the lowest on
_TYPE, _KEYSET, _DTYPE, _DEVICE, _REQUIRES_GRAD, _NDIM, _SIZES, _STRIDES = (1 << i for i in range(8))


def parsed(text: str) -> ast.expr | None:
    """Return the syntax tree of an entry's text; None if the text is not an expression."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, ValueError, MemoryError):
        return None


def words(text: str, lookup: Lookup) -> str:
    """Return a part of an entry's text in words; the part itself if its form is unknown."""
    tree = parsed(text)
    return _Speaker(lookup).condition(tree) if tree is not None else text


def place(name: str, lookup: Lookup = lambda _: None, members: bool = True) -> str:
    """Return a place such as ``G['torch'].nn`` in words: ``torch.nn``.

    ``members``: write the contents of a module's dicts as attributes, ``self.norm`` for ``self._modules['norm']``.
    """
    tree = parsed(name)
    return _Speaker(lookup, members).place(tree) if tree is not None else name


def base(name: str) -> str | None:
    """Return the place from which this place is read; None for a variable, a global or an object of the entry."""
    tree = parsed(name)
    inner: ast.expr | None = None
    if isinstance(tree, (ast.Attribute, ast.Subscript)):
        inner = tree.value
        if is_dimension(tree):
            inner = tree.value.func.value  # type: ignore[attr-defined]  # x, of x.size()[0]
    elif isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.args:
        inner = None if tree.func.id in ("___object", "___builtin") else tree.args[0]
    if inner is None or (isinstance(inner, ast.Name) and inner.id in ("G", "L", "___cells")):
        return None
    if (
        isinstance(tree, ast.Attribute)
        and tree.attr == "cell_contents"
        and called(inner) is None
        and base(ast.unparse(inner)) is None
    ):
        return None  # a variable of the enclosing function
    return ast.unparse(inner)


def is_dimension(node: ast.AST) -> bool:
    """Report whether a node reads a tensor's size or stride: ``x.size()[0]``."""
    method = node.value.func if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.attr in ("size", "stride")


def tensor(place_name: str, check: dict[str, Any]) -> str:
    """Return in words the checks on a tensor; ``check`` is a row of an entry's ``tensor_checks()``."""
    from .._called import guard_env

    fields, kind = check["fields"], check["type"].__name__
    said = [f"type({place_name}) is {kind}" if fields & _TYPE else f"{place_name} is a tensor"]
    state = check["state"]
    if state is not None:
        told = ((_DTYPE, state[2]), (_DEVICE, state[3]), (_SIZES, _dims(state[5], check["static_sizes"])))
        said += [str(value) for field, value in told if fields & field]
    else:
        if fields & _DTYPE:
            said.append(guard_env.field_text(_DTYPE, check["scalar_type"]))
        if fields & _DEVICE:
            raw = check["device_type"] & 0xFF | (check["device_index"] & 0xFF) << 8
            said.append(guard_env.field_text(_DEVICE, raw))
        if fields & _SIZES:
            said.append(f"sizes {_dims(check['sizes'], check['static_sizes'])}")
        elif fields & _NDIM:
            said.append(f"{check['ndim']} dimensions")
        if fields & _STRIDES:
            said.append(f"strides {_dims(check['strides'], check['static_strides'])}")
    if fields & _REQUIRES_GRAD:
        wants = state[4] if state is not None else check["requires_grad"]
        said.append("requires_grad" if wants else "no requires_grad")
    return ", ".join(said)


def _dims(dims: Any, mask: int) -> str:
    if dims is None:
        return "not known"
    inside = ", ".join(str(n) if i >= 64 or mask >> i & 1 else "any" for i, n in enumerate(dims))
    return f"({inside}{',' if len(dims) == 1 else ''})"


def called(node: ast.AST | None) -> str | None:
    """Return the name of the helper that a node calls, such as ``___check_type_id``; None if it calls none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("___"):
        return node.func.id
    return None


#: key of an answer in _called/predictions.refuted, if its question names a branch
_ANSWER = re.compile(r"(?:.*\n)?.+? (?P<name>\S+):\d+ at \d+(?s:.*) is (?P<truth>True|False)")


def prediction(node: ast.AST | None) -> tuple[str, bool] | None:
    """Return the function of the branch whose predicted truth a node checks, and that truth; None for other nodes."""
    if isinstance(node, ast.Call) and called(node) == "___dict_contains" and len(node.args) == 2:
        key = _constant(node.args[0])
        if isinstance(key, str) and ast.unparse(node.args[1]).endswith("'___predictions').refuted"):
            found = _ANSWER.fullmatch(key)
            return (found["name"], found["truth"] == "True") if found else None
    return None


def parts(text: str) -> list[str]:
    """Split a guard text at its top-level ``and`` operators; an ``and`` inside a string does not count."""
    body = ast.parse(text, mode="eval").body
    if not (isinstance(body, ast.BoolOp) and isinstance(body.op, ast.And)):
        return [text]
    raw, start, found = text.encode(), 0, []
    for node in body.values[:-1]:
        assert node.end_col_offset is not None
        end = raw.index(b" and ", node.end_col_offset)
        found.append(raw[start:end].decode())
        start = end + len(b" and ")
    return [*found, raw[start:].decode()]


class _Speaker:
    def __init__(self, lookup: Lookup, members: bool = True) -> None:
        self.lookup = lookup
        self.members = _MEMBERS if members else frozenset[str]()

    # -- conditions --

    def condition(self, node: ast.expr) -> str:
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            return " and ".join(map(self.condition, node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._check(node.operand, False)
        return self._check(node, True)

    def _check(self, node: ast.expr, wanted: bool) -> str:
        name = called(node)
        predicted = prediction(node)
        if predicted is not None:
            return f"the branch on data in {predicted[0]} is predicted to be {predicted[1]}"
        if name is not None and isinstance(node, ast.Call):
            said = _CONDITIONS.get(name)
            if said is not None:
                return said(self, node.args, wanted)
        if isinstance(node, ast.Call) and called(node.func) == "___object" and isinstance(node.func, ast.Call):
            what = _constant(node.func.args[1]) if len(node.func.args) > 1 else "holds"
            return f"{self.place(node.args[0])} {what}" if node.args else str(what)
        if isinstance(node, ast.Compare) and called(node.left) in ("___dict_keys", "___param_names"):
            call = node.left
            assert isinstance(call, ast.Call)
            what = "keys" if called(call) == "___dict_keys" else "parameter names"
            return f"the {what} of {self.place(call.args[0])} are {ast.unparse(node.comparators[0])}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "___guarded_code":
            return "what the entry rests on is alive"
        text = self.place(node)
        return text if wanted else f"not {text}"

    # -- places --

    def place(self, node: ast.expr) -> str:
        try:
            return ast.unparse(_Places(self).visit(node))
        except (RecursionError, ValueError):
            return ast.unparse(node)

    def object(self, address: Any) -> str:
        """Return the object at an address, in words."""
        if not isinstance(address, int):
            return "the same object"
        for singleton in (None, True, False, ...):
            if address == id(singleton):
                return repr(singleton)
        try:
            found = self.lookup(address)
        except LookupError:  # the object has died, or the entry never held it
            found = None
        return describe(found) if found is not None else "the same object"


def describe(value: Any) -> str:
    """Describe an object that a guard names, without running code of the object or its class.

    >>> describe(int), describe(ast), describe(3)
    ('int', 'module ast', '3')
    """
    kind = type(value)
    if issubclass(kind, type):
        module = type.__getattribute__(value, "__module__")
        name = str(type.__getattribute__(value, "__qualname__"))
        return name if module in ("builtins", "__main__") or not isinstance(module, str) else f"{module}.{name}"
    if kind is types.ModuleType:
        return f"module {types.ModuleType.__getattribute__(value, '__dict__').get('__name__')}"
    if kind is types.CodeType:
        return f"the code of {value.co_qualname}"
    if kind is types.FunctionType:
        return f"function {value.__qualname__}"
    if kind in (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType):
        return f"builtin {value.__qualname__}"
    if value is None or kind in (bool, int, float, str, bytes):
        text = repr(value)
        return text if len(text) <= 80 else f"{text[:60]}...{text[-10:]}"
    return f"the same {kind.__name__} object"


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node)


def _type_is(s: _Speaker, args: list[ast.expr], wanted: bool) -> str:
    return f"type({s.place(args[0])}) is {'' if wanted else 'not '}{s.object(_constant(args[1]))}"


def _object_is(s: _Speaker, args: list[ast.expr], wanted: bool) -> str:
    return f"{s.place(args[0])} is {'' if wanted else 'not '}{s.object(_constant(args[1]))}"


def _grad_mode(_s: _Speaker, _args: list[ast.expr], wanted: bool) -> str:
    return f"grad mode is {'on' if wanted else 'off'}"


def _form(yes: str, no: str = "") -> Callable[[_Speaker, list[ast.expr], bool], str]:
    """Return a function that writes a condition (``no``: its negation). {0} and {1} are its arguments in words."""

    def said(s: _Speaker, args: list[ast.expr], wanted: bool) -> str:
        filled = [s.place(a) for a in args]
        return (yes if wanted else no or f"not ({yes})").format(*filled)

    return said


_CONDITIONS: dict[str, Callable[[_Speaker, list[ast.expr], bool], str]] = {
    "___check_type_id": _type_is,
    "___check_obj_id": _object_is,
    "___check_mutation": _form("{0} is the same object and unchanged"),
    "___is_grad_enabled": _grad_mode,
    "___check_global_state": lambda *_: "torch's modes are as they were",
    "___check_tensors": lambda s, args, _: f"the metadata of {', '.join(map(s.place, args))} is as it was",
    "___check_distinct": lambda s, args, _: f"{', '.join(map(s.place, args))} are distinct objects",
    "___loads": _form("{0} can be read"),
    "___equals": _form("{0} == {1}"),
    "___hasattr": _form("{1} in vars({0})", "{1} not in vars({0})"),
    "___type_hasattr": _form("hasattr({0}, {1})", "not hasattr({0}, {1})"),
    "___dict_contains": _form("{0} in {1}", "{0} not in {1}"),
    "___holds": _form("{1} in {0}", "{1} not in {0}"),
    "___cell_empty": _form("{0} has no value yet", "{0} has a value"),
    "___ends_in_code": lambda s, args, wanted: (
        f"the end of {s.place(args[1])} in {s.place(args[0])} {'may run' if wanted else 'runs no'} code"
    ),
    "___ends": lambda s, args, wanted: f"the end of {s.place(args[0])} {'may run' if wanted else 'runs no'} code",
}


def on_stack(name: str) -> str:
    """Return the readable name of a resume function's stack parameter: ``stack[0]`` for ``___stack0``."""
    number = name.removeprefix("___stack")
    return f"stack[{number}]" if name.startswith("___stack") and number.isdecimal() else name


def _name(text: str) -> ast.expr:
    return ast.Name(id=text, ctx=ast.Load())


class _Places(ast.NodeTransformer):
    """Replaces calls of helpers in a guard text by the places that they read."""

    def __init__(self, speaker: _Speaker) -> None:
        self.speaker = speaker

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return _name(on_stack(node.id))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = called(node)
        args = node.args
        if name == "___object":
            text = str(_constant(args[1])) if len(args) > 1 else ""
            known = text.removeprefix("___").removeprefix("type_").replace("sys_modules", "sys.modules")
            return _name(known or self.speaker.object(_constant(args[0])))
        if name == "___builtin":
            return _name(str(_constant(args[0])))
        if name is None or not args:
            return self.generic_visit(node)
        inner = self.visit(args[0])
        rest = [_constant(a) for a in args[1:]]
        if name in ("___type_lookup", "___instance_attr") and rest:
            return ast.Attribute(value=inner, attr=str(rest[0]), ctx=ast.Load())
        written = _READS.get(name)
        return _name(written.format(ast.unparse(inner), *map(repr, rest))) if written else self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        inner = self.visit(node.value)
        if node.attr == "cell_contents" and isinstance(inner, ast.Name):
            return _name(inner.id.removeprefix("the cell of "))
        return ast.Attribute(value=inner, attr=node.attr, ctx=ast.Load())

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        key = _constant(node.slice)
        if isinstance(node.value, ast.Name) and isinstance(key, str):
            if node.value.id in ("G", "L"):
                return _name(on_stack(key))
            if node.value.id == "___cells":
                return _name(f"the cell of {key}")
        if isinstance(node.value, ast.Attribute) and node.value.attr == "__globals__" and isinstance(key, str):
            return _name(key)
        inner = self.visit(node.value)
        if isinstance(inner, ast.Name) and inner.id == "sys.modules" and isinstance(key, str):
            return _name(key)
        if isinstance(inner, ast.Attribute) and inner.attr in self.speaker.members and isinstance(key, str):
            return _member(inner.value, key)
        if isinstance(inner, ast.Name) and isinstance(key, str) and key.isidentifier():
            owner = _VARS.fullmatch(inner.id)  # vars(self)['step']
            if owner is not None:
                return _name(f"{owner[1]}.{key}")
        return ast.Subscript(value=inner, slice=node.slice, ctx=ast.Load())


#: dicts of an nn.Module. The user reads their contents as attributes, or by number if the module is a container.
_MEMBERS = frozenset(("_modules", "_parameters", "_buffers", "__dict__"))
_VARS = re.compile(r"vars\((.+)\)")


def _member(owner: ast.expr, key: str) -> ast.expr:
    if key.isidentifier():
        return ast.Attribute(value=owner, attr=key, ctx=ast.Load())
    number = ast.Constant(int(key)) if key.isdecimal() and key.isascii() else ast.Constant(key)
    return ast.Subscript(value=owner, slice=number, ctx=ast.Load())


_READS = {
    "___instance_dict": "vars({0})",
    "___mro_class": "{0}.__mro__[{1}]",
    "___referent": "{0}()",
    "___dict_key": "tuple({0})[{1}]",
    "___dict_value": "tuple({0}.values())[{1}]",
    "___dict_getitem": "{0}[{1}]",
    "___iterator_part": "part {1} of {0}",
    "___iterator_item": "list({0})[{1}]",
    "___iterator_value": "list({0})[{1}][1]",
    "___iterator_number": "list({0})[{1}]",
    "___iterator_left": "len(list({0}))",
    "___tuple_iterator_len": "len(list({0}))",
    "___tuple_iterator_getitem": "list({0})[{1}]",
}
