"""Operations on an unknown object: attributes, calls, items, operators, iteration, with."""

from __future__ import annotations

import inspect
import json
import math
import operator
import re

import pytest
import torch

import godynamo
from python_ops_support import Opaque, both_ways, kinds, make, note, same

torch.set_num_threads(1)


class Node:
    """Attributes, calls and items yield further Nodes."""

    def __init__(self, depth=3):
        self.depth = depth

    def __repr__(self):
        return f"Node({self.depth})"

    @property
    def b(self):
        return Node(self.depth - 1)

    def c(self, n, *more, k=0):
        return Node(self.depth - n - sum(more) - k)

    def __call__(self, *args, **kwargs):
        return (args, sorted(kwargs.items()))

    def __getitem__(self, key):
        return (self.depth, key)

    def __iter__(self):
        return iter(range(self.depth))

    def __eq__(self, other):
        return isinstance(other, Node) and other.depth == self.depth

    def __lt__(self, other):
        return self.depth < other

    __hash__ = None


@godynamo.disable
def node(depth=3):
    return Node(depth)


@pytest.mark.row("S000-08")
def test_attributes_are_getattr_nodes_and_missing_ones_are_cpythons_error():
    def read(x):
        return x + 1, open(__file__).name

    def missing(x):
        return x + 1, open(__file__).nope

    assert "^getattr()" in kinds(both_ways(read, torch.ones(2)).graphs[0])
    both_ways(missing, torch.ones(2))
    compiled = godynamo.optimize(fn=missing, python_ops=True)
    with pytest.raises(AttributeError, match="'_io.TextIOWrapper' object has no attribute 'nope'"):
        compiled(torch.ones(2))


@pytest.mark.row("S000-09")
def test_chains_of_attributes_and_calls():
    def f(x):
        a = node()
        return x * a.b.c(1).depth, a.b.b.b

    names = kinds(both_ways(f, torch.ones(2)).graphs[0])
    assert names.count("^getattr()") >= 6 and names.count("^<PyObjectCall>()") == 2


@pytest.mark.row("S000-10")
def test_results_are_called_indexed_iterated_and_compared():
    def f(x):
        n = node()
        first, second, third = n
        return x, n(1, k=2), n[4], n["a":2], first + third, n == node(3), n < 5, list(n), second

    both_ways(f, torch.ones(2))


@pytest.mark.row("S000-11")
def test_keyword_arguments():
    def f(x):
        return x, open(__file__, encoding="utf8", newline="").encoding, node().c(1, k=1)

    gm = both_ways(f, torch.ones(2)).graphs[0]
    assert any(set(n.kwargs) == {"encoding", "newline"} for n in gm.graph.nodes)


@pytest.mark.row("S000-12")
@pytest.mark.parametrize("args, kwargs", [((1,), {}), ((), {"k": 1}), ((1, 0, 1), {"k": 1})])
def test_star_arguments(args, kwargs):
    def known(x, args, kwargs):
        return x, node()(*args, **kwargs), node()(0, *args, z=1, **kwargs)

    def unknown(x, args, kwargs):
        return x, node()(*same(args), **same(kwargs)), node()(*node(2)), [*same(args), 1], {**same(kwargs), "y": 1}

    both_ways(known, torch.ones(1), args, kwargs)
    both_ways(unknown, torch.ones(1), args, kwargs)


class Number:
    """Records every operator in its text."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def _named(name):
    def binary(self, *others):
        return Number(f"{name}({', '.join(map(repr, (self, *others)))})")

    return binary


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
UNARY = "neg pos abs invert".split()
for _name in [*BINARY, *(f"r{n}" for n in BINARY), *UNARY, "lt", "le", "gt", "ge", "eq", "ne"]:
    setattr(Number, f"__{_name}__", _named(_name))
Number.__hash__ = None


@godynamo.disable
def number(text="n"):
    return Number(text)


SYMBOLS = dict(
    add="+",
    sub="-",
    mul="*",
    truediv="/",
    floordiv="//",
    mod="%",
    pow="**",
    matmul="@",
    xor="^",
    lshift="<<",
    rshift=">>",
) | {"and": "&", "or": "|"}


def expression(text):
    scope = {"number": number, "same": same}
    exec(f"def f(x):\n    a, b = number('a'), number('b')\n    return x + 1, {text}\n", scope)
    return scope["f"]


@pytest.mark.row("S000-13", "S000-14")
@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_and_their_reflections(name):
    s = SYMBOLS[name]
    gm = both_ways(
        expression(f"(a {s} b, a {s} 2, 2 {s} a, 'x' {s} a if {name != 'mod'} else 0)"), torch.ones(2)
    ).graphs[0]
    assert kinds(gm).count(f"^{vars(operator)[name if name not in ('and', 'or') else name + '_'].__name__}()") >= 3


@pytest.mark.row("S000-13")
@pytest.mark.parametrize("text", ["-a", "+a", "~a", "abs(a)", "operator.neg(a)"])
def test_unary_operators(text):
    f = expression(text)
    f.__globals__["operator"] = operator
    both_ways(f, torch.ones(2))


@pytest.mark.row("S000-13")
def test_an_operator_with_a_tensor_on_one_side():
    def f(x):
        two = same(2)
        return x + two, two * x, x**two, two - x, x[same(0)], x < two

    names = kinds(both_ways(f, torch.ones(3)).graphs[0])
    assert [n for n in names if n in ("^add()", "^mul()", "^pow()", "^sub()", "^lt()")] == [
        "^add()",
        "^mul()",
        "^pow()",
        "^sub()",
        "^lt()",
    ]


class Both:
    def __init__(self, n):
        self.n = n

    def __repr__(self):
        return f"Both({self.n})"

    def __radd__(self, other):
        return ("radd", self.n, other)

    def __iadd__(self, other):
        self.n += other
        return self

    def __add__(self, other):
        return NotImplemented


@godynamo.disable
def both(n):
    return Both(n)


@pytest.mark.row("S000-14")
def test_in_place_operators_and_notimplemented():
    def f(x):
        b = both(1)
        alias = b
        b += 5
        return x, b, alias is b, 3 + b

    def unsupported(x):
        return x, both(1) + 1

    assert "^iadd()" in kinds(both_ways(f, torch.ones(1)).graphs[0])
    both_ways(unsupported, torch.ones(1))
    with pytest.raises(TypeError, match="unsupported operand"):
        godynamo.optimize(fn=unsupported, python_ops=True)(torch.ones(1))


class Bag:
    def __init__(self):
        self.items = [1, 2, 3]

    def __contains__(self, item):
        return item in self.items

    def __len__(self):
        return len(self.items)

    def __bool__(self):
        return False

    def __hash__(self):
        return 77

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def __setitem__(self, i, v):
        self.items[i] = v

    def __delitem__(self, i):
        del self.items[i]


@godynamo.disable
def bag():
    return Bag()


@pytest.mark.row("S000-15")
def test_questions_about_an_unknown_object():
    def f(x):
        b = bag()
        it = iter(b)
        asked = (1 in b, 9 not in b, b is b, b is None, b is not None, not b, bool(b), len(b), hash(b))
        more = (next(it), next(it), next(it), next(it, "end"), b == 1, b != b, callable(b), isinstance(b, Bag))
        return x, asked, more, hasattr(b, "items"), hasattr(b, "no"), getattr(b, "no", 5), type(b), max(b), sorted(b)

    both_ways(f, torch.ones(1))


@pytest.mark.row("S000-16")
def test_items_and_attributes_are_stored_and_deleted():
    def f(x):
        b = bag()
        b[0] = 10
        b[1:2] = [8, 9]
        del b[-1]
        b.extra = 5
        read = b.extra
        b.extra += 1
        setattr(b, "more", 1)
        last = b.extra
        del b.extra
        return x, list(b), read, last, vars(b)

    names = kinds(both_ways(f, torch.ones(1)).graphs[0])
    assert {"^setitem()", "^delitem()", "^setattr()", "^delattr()"} <= set(names)


@pytest.mark.row("S000-17")
def test_with_an_unknown_context_manager():
    def f(x):
        with open(__file__) as f:
            text = f.readline()
        return x + 1, text, f.closed

    def raises(x):
        with open(__file__) as f:
            note(f)
            {}["missing"]
        return x

    both_ways(f, torch.ones(2), breaks=None, graphs=None)
    both_ways(raises, torch.ones(2), breaks=None, graphs=None, reset=Opaque.log.clear)
    assert Opaque.log.pop().closed


@pytest.mark.row("S000-26")
def test_an_exception_keeps_its_type_text_and_frames():
    def f(x):
        y = x + 1
        return y, json.loads(same("{}"))["k"]

    def inside(x):
        return x, node().c("a")

    both_ways(f, torch.ones(1))
    both_ways(inside, torch.ones(1))
    with pytest.raises(KeyError):
        godynamo.optimize(fn=f, python_ops=True)(torch.ones(1))


@pytest.mark.row("S000-26")
def test_an_exception_meets_its_handler():
    def f(x):
        try:
            note(1)
            {}[make()]
        except KeyError as e:
            return x + 1, type(e)
        finally:
            note(2)

    both_ways(f, torch.ones(1), breaks=None, graphs=None)


@pytest.mark.row("S000-30")
def test_names_are_found_locally_then_globally_then_among_builtins():
    def f(x):
        def len(v):
            return "local"

        return x, len([1]), abs(-3), same(1), ord("a"), len(same([1]))

    both_ways(f, torch.ones(1), breaks=None, graphs=None)


def abs(x):  # noqa: A001 - hides the builtin for this module
    return ("hidden", x)


SCALE = 2


@godynamo.disable
def rebind(value):
    global SCALE
    SCALE = value


@pytest.mark.row("S000-30", "S000-28")
def test_a_global_that_a_python_call_rebinds_is_read_anew():
    def f(x):
        before = x * SCALE
        rebind(7)
        return before, x * SCALE, abs(same(1))

    both_ways(f, torch.ones(2), reset=lambda: rebind(2))


@pytest.mark.row("S000-32")
def test_python_functions_are_inlined_and_their_python_calls_go_into_the_graph():
    def helper(x, path):
        return x.relu() + len(same(path))

    def f(x):
        return helper(x, "abc") * 2

    explained = godynamo.explain(godynamo.optimize(fn=f, python_ops=True))(torch.ones(2))
    assert explained.graph_count == 1 and explained.graph_break_count == 0
    assert "relu" in explained.graphs[0]
    both_ways(f, torch.ones(2))


@pytest.mark.row("S000-33")
def test_c_extensions():
    import numpy as np

    def f(x):
        m = re.match(r"(\d+)-(\d+)", "12-34")
        mantissa, exponent = math.frexp(same(8.0))
        return (
            x + int(m.group(1)),
            json.dumps({"a": [1, 2]}),
            mantissa,
            exponent,
            np.sqrt(same(4.0)),
            np.arange(3).tolist(),
        )

    both_ways(f, torch.ones(2))


class Sided:
    count = 0

    @property
    def a(self):
        Sided.count += 1
        return slice(Sided.count)


@pytest.mark.row("S000-35")
def test_a_failure_late_in_a_chain_leaves_no_half_done_work():
    def f(x, o):
        return x + 1, o.a.indices(len(same("xx"))), same(o).a

    def reset():
        Sided.count = 0

    both_ways(f, torch.ones(1), Sided(), reset=reset, breaks=None, graphs=None)
    assert Sided.count == 2
    assert inspect.isfunction(f)
