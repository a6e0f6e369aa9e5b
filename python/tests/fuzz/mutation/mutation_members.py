"""Members of a program's classes: rows with placeholders that mutation_program fills at random.

{o} an object, {c} a class of the program, {d} some class, {new} a new instance, {v} a value, {i} a small number, {a} an
attribute's name, {s} a special method's name, {body} "name = function" of a special method, {native} a C method or
field of a builtin type, {taken} "name = a C method of that name". <% and %> are braces.
"""

from __future__ import annotations

import collections

KINDS = (
    "object object object Base Base Plainest Mixin int int str str float tuple list dict set frozenset bytes complex "
    "namedtuple "
    "@dataclass enum.Enum enum.IntEnum enum.Flag abc.ABC Shape Duck Exception collections.OrderedDict "
    "collections.defaultdict "
    "collections.deque numbers.Number contextlib.ContextDecorator collections.UserDict types.SimpleNamespace"
).split() + ["str, enum.Enum", "typing.Generic[typing.TypeVar('T')]", "Mixin, Base"]

VALUES = (
    "1 0 2.5 None True 'k' 'ab' '' (1,2) [1] <%%> <%'k':1%> N torch.ones(2) -1 3 b'a' helper <%1,2%> o p q C0".split()
)

_BINARY = (
    "self, other",
    ["('{o}', type(other).__name__)", "NotImplemented", "7", "other", "x if (x := type(self).__name__) else 0"],
)
_COMPARE = ("self, other", ["True", "False", "NotImplemented", "[]", "self is other", "'truthy'"])
_UNARY = ("self", ["3", "'u'", "self"])

METHODS: dict[str, tuple[str, list[str]]] = {
    "__bool__": ("self", ["True", "False", "3", "'s'"]),
    "__len__": ("self", ["0", "2", "-1", "'s'", "True", "1 << 70"]),
    "__repr__": ("self", ["'R'", "'other R'", "3", "f'<%type(self).__name__%>!'"]),
    "__str__": ("self", ["'S'", "'other S'", "None"]),
    "__format__": ("self, spec", ["'F' + spec", "3", "'other F'"]),
    "__bytes__": ("self", ["b'x'", "'x'"]),
    "__eq__": _COMPARE,
    "__ne__": _COMPARE,
    "__lt__": _COMPARE,
    "__le__": _COMPARE,
    "__gt__": _COMPARE,
    "__ge__": _COMPARE,
    "__hash__": ("self", ["7", "8", "'s'", "-1"]),
    "__iter__": ("self", ["iter([1, 2])", "iter((4,))", "3", "yield 5", "drawn(2)", "self"]),
    "__next__": ("self", ["raise StopIteration", "raise ValueError('next')"]),
    "__reversed__": ("self", ["iter([9])", "[8]"]),
    "__contains__": ("self, item", ["True", "False", "[]", "item == 1"]),
    "__getitem__": ("self, key", ["(5, 6)[key]", "TABLE[key]", "raise IndexError(key)"]),
    "__setitem__": ("self, key, value", ["LOG.append(('setitem', key))", "None"]),
    "__delitem__": ("self, key", ["LOG.append(('delitem', key))"]),
    "__missing__": ("self, key", ["9", "'missing'"]),
    "__length_hint__": ("self", ["3", "'s'"]),
    "__call__": ("self, *args", ["len(args)", "('called', args)", "self"]),
    "__getattr__": ("self, name", ["'attr ' + name", "raise AttributeError(name)", "raise KeyError(name)", "11"]),
    "__getattribute__": (
        "self, name",
        ["object.__getattribute__(self, name)", "super().__getattribute__(name)", "'all ' + name"],
    ),
    "__setattr__": ("self, name, value", ["object.__setattr__(self, name, value)", "LOG.append(('setattr', name))"]),
    "__delattr__": ("self, name", ["LOG.append(('delattr', name))", "object.__delattr__(self, name)"]),
    "__dir__": ("self", ["['d']", "3"]),
    "__new__": (
        "cls, *args",
        ["super().__new__(cls, *args)", "super().__new__(cls)", "13", "object.__new__(cls)", "int.__new__(cls, 4)"],
    ),
    "__init__": ("self, *args", ["None", "object.__setattr__(self, 'j', len(args))", "3", "super().__init__(*args)"]),
    "__init_subclass__": ("cls, **kw", ["None"]),
    "__class_getitem__": ("cls, item", ["('item', item)", "cls"]),
    "__instancecheck__": ("cls, obj", ["True", "False"]),
    "__int__": ("self", ["21", "'i'", "True", "2.5"]),
    "__index__": ("self", ["1", "0", "'i'", "True"]),
    "__float__": ("self", ["1.25", "1", "'f'"]),
    "__complex__": ("self", ["1j", "2"]),
    "__trunc__": ("self", ["5"]),
    "__round__": ("self, n=None", ["('round', n)", "6"]),
    "__floor__": ("self", ["4"]),
    "__ceil__": ("self", ["9"]),
    "__abs__": _UNARY,
    "__neg__": _UNARY,
    "__pos__": _UNARY,
    "__invert__": _UNARY,
    "__enter__": ("self", ["5", "self"]),
    "__exit__": ("self, *args", ["None", "True", "args[0] is None"]),
    "__get__": ("self, obj, owner=None", ["('get', obj is None)", "14"]),
    "__set__": ("self, obj, value", ["LOG.append(('set', value))"]),
    "__delete__": ("self, obj", ["LOG.append('delete')"]),
    "__set_name__": ("self, owner, name", ["None"]),
    "__copy__": ("self", ["'copied'"]),
    "__deepcopy__": ("self, memo", ["'deep'"]),
    "__fspath__": ("self", ["'/p'", "3"]),
    "__sizeof__": ("self", ["100"]),
    "__reduce__": ("self", ["(int, (3,))"]),
    "__subclasshook__": ("cls, *a", ["NotImplemented"]),
    "__torch_function__": ("cls, func, types, args=(), kwargs=None", ["'tf'"]),
    "hello": ("self", ["'hi'", "('hello', self.k)"]),
    "quack": ("self", ["'quack'"]),
    "area": ("self", ["6", "super().area()"]),
}
for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split():
    METHODS[f"__{_name}__"] = _BINARY
    METHODS[f"__r{_name}__"] = _BINARY
    if _name != "divmod":
        METHODS[f"__i{_name}__"] = _BINARY

META_METHODS: dict[str, tuple[str, list[str]]] = {
    "__call__": ("cls, *args", ["('made', len(args))", "super().__call__(*args)", "type.__call__(cls, *args)", "17"]),
    "__instancecheck__": ("cls, obj", ["True", "False", "type.__instancecheck__(cls, obj)", "[]"]),
    "__subclasscheck__": ("cls, sub", ["True", "False", "type.__subclasscheck__(cls, sub)"]),
    "__getattr__": ("cls, name", ["'meta ' + name", "raise AttributeError(name)"]),
    "__getattribute__": ("cls, name", ["type.__getattribute__(cls, name)"]),
    "__setattr__": ("cls, name, value", ["type.__setattr__(cls, name, value)", "LOG.append(name)"]),
    "__iter__": ("cls", ["iter([1, 2])", "iter('ab')"]),
    "__len__": ("cls", ["0", "3"]),
    "__bool__": ("cls", ["False", "True"]),
    "__contains__": ("cls, item", ["True", "False"]),
    "__getitem__": ("cls, key", ["('meta item', key)"]),
    "__eq__": ("cls, other", ["True", "False", "NotImplemented"]),
    "__hash__": ("cls", ["5", "6"]),
    "__repr__": ("cls", ["'<M>'"]),
    "__str__": ("cls", ["'<S>'"]),
    "__or__": ("cls, other", ["'or'"]),
    "__add__": ("cls, other", ["'added'", "7"]),
    "__lt__": ("cls, other", ["True"]),
    "__neg__": ("cls", ["'neg'"]),
    "__dir__": ("cls", ["['m']"]),
    "hello": ("cls", ["'meta hello'"]),
    "__enter__": ("cls", ["3"]),
    "__exit__": ("cls, *args", ["None"]),
    "__index__": ("cls", ["1"]),
    "__format__": ("cls, spec", ["'mf'"]),
    "mro": ("cls", ["type.mro(cls)"]),
}

MEMBERS = [
    "k = {v}",
    "j = {i}",
    "d = Data({v})",
    "d = NonData({v})",
    "v = Data({i})",
    "prop = property(lambda self: ('prop', LIMIT))",
    "prop = property(lambda self: 1, lambda self, v: LOG.append(v))",
    "cached = functools.cached_property(lambda self: len(LOG))",
    "stat = staticmethod(lambda *a: len(a))",
    "cls = classmethod(lambda cls, *a: (cls.__name__, len(a)))",
    "part = functools.partial(helper, {i})",
    "meth = functools.partialmethod(helper, {i})",
    "with_default = lambda self, n={i}, *, z=2: (n, z)",
    "__slots__ = ('v', 'slot')",
    "__slots__ = ()",
    "__hash__ = None",
    "__iter__ = None",
    "__contains__ = None",
    "__bool__ = None",
    "__add__ = None",
    "__radd__ = None",
    "__doc__ = 'documented'",
    "__match_args__ = ('k',)",
    "__module__ = 'elsewhere'",
    "__qualname__ = 'Outer.Inner'",
    "__len__ = lambda self: {i}",
    "__call__ = helper",
    "__getitem__ = staticmethod(lambda k: ('static', k))",
    "__str__ = lambda self: 'assigned'",
    "__class__ = property(lambda self: int)",
    "other = closed({i})",
    "instance = Plainest({i})",
    "nested = [{v}]",
    "@property\ndef k(self):\n    return ('k prop', LIMIT)",
    "@staticmethod\ndef hello():\n    return 'static hello'",
    "@classmethod\ndef hello(cls):\n    return cls.__name__",
    "@functools.singledispatchmethod\ndef single(self, v):\n    return 'single'",
    "@torch.no_grad()\ndef hello(self):\n    return torch.is_grad_enabled()",
    "@contextlib.contextmanager\ndef ctx(self):\n    yield {i}",
    "{taken}",
    "{taken}",
    "{s} = {native}",
    "{a} = {native}",
]

_BUILTIN = [
    int,
    str,
    float,
    complex,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    object,
    type,
    slice,
    range,
    BaseException,
]
_BUILTIN += [collections.deque, collections.OrderedDict]
#: methods that return addresses, or sizes that depend on the interpreter's state
_VARYING = "__sizeof__ __dir__ __getstate__ __reduce__ __reduce_ex__ __hash__ __repr__ __str__".split()
_DESCRIPTORS = "wrapper_descriptor method_descriptor classmethod_descriptor getset_descriptor member_descriptor".split()

#: C methods and fields by name, each as an expression
NATIVE: dict[str, list[str]] = {}
for _type in _BUILTIN:
    for _name, _value in vars(_type).items():
        if type(_value).__name__ in _DESCRIPTORS and not (_name in _VARYING and _type is object):
            _path = f"collections.{_type.__name__}" if _type.__module__ == "collections" else _type.__name__
            NATIVE.setdefault(_name, []).append(f"{_path}.__dict__['{_name}']")

CONTAINERS = (
    "[1,{new},2] ({new},{v}) <%'k':{new}%> <%1,2,3%> [N,1,N] <%N:1%> [{new},{new}] <%{new}%> {c} [{c},int] Data({i}) "
    "Base({i}) "
    "collections.deque([1,{v}]) collections.OrderedDict(k={v}) types.SimpleNamespace(k={v}) closed({i}) helper "
    "iter([1,2]) "
    "functools.partial(helper,{i}) [3,1,2] <%'k':1,'j':2%> (1,2.5) 'text' Plainest({new}) {new}.hello torch.ones(2) "
    "types.MappingProxyType(<%1:2%>) "
    "frozenset([1]) range(3) bytearray(b'ab') slice(1,2) collections.Counter('aab') collections.defaultdict(list)"
).split()
