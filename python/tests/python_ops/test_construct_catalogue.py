"""Every kind of value and every language construct of the seed document, with Python calls in the graph."""

from __future__ import annotations

import enum
import math
import types
from collections import namedtuple
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import _C
from harness.capture import nb
from python_ops_support import both_ways, make, note, same

torch.set_num_threads(1)

Point = namedtuple("Point", "x y")
TABLE = [1, 2, 3]


class Typed(NamedTuple):
    a: int
    b: int = 2


class Colour(enum.Enum):
    RED = 1


class Plain:
    K = 3

    def __init__(self, n):
        self.n = n

    def method(self, x):
        return x * self.n

    def __add__(self, other):
        return other + self.n


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleDict({"a": torch.nn.ReLU(), "b": torch.nn.Tanh()})
        self.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU()])
        self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])

    def forward(self, x):
        return self.parts["a"](x)


NET = Net()


def plain_function(x):
    return x + 1


CATALOGUE = {
    "BooleanDispatch": lambda x: F.max_pool1d(x.view(1, 1, -1), 2, return_indices=False),
    "BuiltinFunction": lambda x: torch.relu(x),
    "BuiltinModule": lambda x: torch.nn.functional.relu(x) + math.pi,
    "ClassNamespace": lambda x: x * Plain.K,
    "Class": lambda x: Plain(2).n * x,
    "Closure": lambda x: (lambda y: y + x)(x),
    "ConstantParameterList": lambda x: x[:2] * NET.weights[0],
    "ConstantTable": lambda x: x * TABLE[1],
    "ExceptionMessage": lambda x: (x, str(ValueError("text"))),
    "Exception": lambda x: (x, ValueError("a", 1).args),
    "Function": lambda x: plain_function(x),
    "IterableTree": lambda x: [a * x + i for i, (a, _) in enumerate(zip([1, 2], [3, 4]))],
    "MagicMethod": lambda x: x * (Plain(2) + 3),
    "Method": lambda x: Plain(3).method(x),
    "ModuleDictMethod": lambda x: [m(x) for m in NET.parts.values()],
    "Module": lambda x: NET(x),
    "NamedTupleConstructor": lambda x: Point(x, 1).x + Typed(1).b,
    "None": lambda x: x if None is None else 0,
    "Ops": lambda x: torch.ops.aten.relu(x),
    "Print": lambda x: (print("shown"), x)[1],
    "PythonSliceClass": lambda x: x[slice(0, 2)],
    "Python": lambda x: same(x) + 1,
    "Range": lambda x: [x * i for i in range(1, 6, 2)],
    "Simple": lambda x: x + 1,
    "Slice": lambda x: x[1:],
    "SpecialForm": lambda x: (x, isinstance(x, torch.Tensor), hasattr(x, "relu"), getattr(x, "ndim")),
    "SugaredDict": lambda x: {k: m(x) for k, m in NET.parts.items()},
    "SugaredEnumClass": lambda x: x * Colour.RED.value,
    "SugaredTuple": lambda x: (x, 1)[0] + (x, 2)[1],
    "TensorCast": lambda x: (x + float(2), x * int(3.5), x + bool(1)),
}


@pytest.mark.row("S000-31")
@pytest.mark.parametrize("kind", CATALOGUE)
def test_each_kind_of_value_has_its_counterpart(kind):
    assert len(CATALOGUE) == 30
    both_ways(CATALOGUE[kind], torch.ones(4), graphs=1 if kind not in NO_GRAPH else 0)


NO_GRAPH = {"None", "Print", "ExceptionMessage", "Exception", "SpecialForm"}

CONSTRUCTS = {
    "async def": "async def g(): return 1\nc = g(); c.close(); r = x",
    "generator": "def g():\n    yield note(1)\n    yield 2\nr = x, list(g()), sum(v for v in g())",
    "generator half way": "g = (note(i) for i in range(4)); a = next(g); r = x, a, list(g)",
    "yield from": "def g():\n    v = yield from [1, 2]\n    return v\nr = x, list(g())",
    "class": "class A:\n    n = note(1)\n    def m(self): return self.n\nr = x, A().m(), A.__name__",
    "class with a base and super": (
        "class A:\n    def m(self): return note(1)\n"
        "class B(A):\n    def m(self): return super().m() + 1\nr = x, B().m()"
    ),
    "match": "match same(3):\n    case 1 | 2: r = x\n    case int(n): r = x * n",
    "try": "try:\n    note(1); 1 / note(0)\nexcept ZeroDivisionError as e: r = x, str(e)\nelse: r = 0\nfinally: "
    "note(2)",
    "try star": "try:\n    raise ExceptionGroup('g', [ValueError(1)])\nexcept* ValueError as e: r = x, "
    "len(e.exceptions)",
    "with two": "from contextlib import nullcontext\nwith nullcontext(1) as a, nullcontext(same(2)) as b: r = x * a * "
    "b",
    "while else": "i = 0\nwhile i < 3: i += note(1)\nelse: r = x * i",
    "for else": "for i in range(3): note(i)\nelse: r = x * i",
    "walrus": "r = x * (n := same(3)), n",
    "starred": "a, *b, c = same([1, 2, 3, 4]); r = x, a, b, c",
    "starred display": "r = x, [*same([1]), *[2]], {*same([3])}, {**same({'a': 1})}, (*same((1,)), 2)",
    "comprehensions": "r = x, [same(i) for i in range(3)], {same(i) for i in range(3)}, {same(i): i for i in range(2)}",
    "global": "global COUNT\nCOUNT = note(4)\nCOUNT += 1\nr = x * COUNT",
    "nonlocal": "n = 1\ndef g():\n    nonlocal n\n    n = note(5)\ng(); r = x * n",
    "lambda": "g = lambda v, k=same(2): v * k\nr = g(x)",
    "decorator": "@same\ndef g(v): return v + 1\nr = g(x)",
    "del": "n = same([1, 2]); del n[0]; m = n; del n; r = x, m",
    "assert": "assert same(True), 'never'\nr = x",
    "failing assert": "assert not same(True), 'text'\nr = x",
    "f-string": "n = make(3); r = x, f'{n!r:>12}|{n}|{same(1.5):.3f}'",
    "chained comparison": "r = x, 0 < same(1) < 2",
    "conditional": "r = x if same(0) else x + 1",
    "and or": "r = x, same(0) or same(2), same(1) and same(0)",
    "import": "import math as m\nnote(1)\nimport json as j\nfrom os import path\nr = x, m.pi, j.dumps(1), path.sep",
    "raise from": "try: raise KeyError(same(1)) from ValueError(2)\nexcept KeyError as e: r = x, repr(e.__cause__)",
    "raise": "note(1)\nraise KeyError(same('k'))",
    "unbound": "if same(0): n = 1\nr = x, n",
    "undefined": "note(1)\nr = x, not_defined_anywhere",
    "slices": "n = same([1, 2, 3, 4]); n[1:3] = [9]; r = x, n[::2], n[-1:], x[..., same(0)]",
    "augmented": "n = same([1]); n += [2]; d = {'a': same(1)}; d['a'] += 1; r = x, n, d",
    "type hints": "n: int = same(1); m: 'not evaluated' = 2; r = x, n, m",
    "percent": "r = x, '%s-%d' % (make(), same(3)), '{}'.format(same(1)), ','.join(same(['a', 'b']))",
    "locals": "n = same(1); r = x, sorted(locals())",
    "exec": "exec('note(1)'); r = x, eval('1 + 1')",
    "sorted key": "r = x, sorted([3, 1, 2], key=lambda k: -same(k)), max(same([1, 2]), key=lambda k: -k)",
    "unpack wrong": "a, b = same([1, 2, 3])\nr = x",
    "call wrong": "same(1, 2, 3)\nr = x",
    "not callable": "same(1)(2)\nr = x",
    "star not iterable": "same(*same(1))\nr = x",
    "keywords twice": "dict(a=1, **same({'a': 2}))\nr = x",
    "keywords no mapping": "dict(a=1, **same(2))\nr = x",
}


def construct(text):
    scope = {"same": same, "note": note, "make": make, "COUNT": 0}
    body = "\n".join("    " + line for line in ["y = x + 1", *text.splitlines(), "return r, y"])
    exec(f"def f(x):\n{body}\n", scope)
    return scope["f"]


@pytest.mark.row("S000-34")
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_runs(name):
    f = construct(CONSTRUCTS[name])
    assert isinstance(f, types.FunctionType)
    both_ways(f, torch.ones(2), breaks=None, graphs=None)
    both_ways(f, torch.ones(2), python_ops=False, breaks=None, graphs=None)


@pytest.mark.row("S000-34")
def test_no_frame_is_an_internal_error():
    backend = nb()
    before = _C.counters()["internal_errors"]
    for text in CONSTRUCTS.values():
        f = godynamo.optimize(fn=construct(text), backend=backend, python_ops="checked")
        try:
            f(torch.ones(2))
        except Exception as e:  # an exception of the program, compared above
            assert not isinstance(e, (SystemError, godynamo.exc.TorchDynamoException)), text
    assert _C.counters()["internal_errors"] == before
