"""Operators and protocols of classes written in Python: reflection, NotImplemented, subclasses first, special
methods."""

from __future__ import annotations

import functools
import operator

import pytest

from harness.cases import Case, Cases, check

cases = Cases()


class Num:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Num(self.v + (other.v if isinstance(other, Num) else other))

    def __radd__(self, other):
        return Num(("r", other, self.v))

    def __sub__(self, other):
        if not isinstance(other, Num):
            return NotImplemented
        return Num(self.v - other.v)

    def __rsub__(self, other):
        return Num(("rsub", other, self.v))

    def __mul__(self, other):
        return self.v * other

    def __rmul__(self, other):
        return other * self.v

    def __iadd__(self, other):
        self.v = self.v + other
        return self

    def __neg__(self):
        return Num(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        return "inverted"

    def __abs__(self):
        return Num(abs(self.v))

    def __matmul__(self, other):
        return ("matmul", other)

    def __pow__(self, other, mod=None):
        return ("pow", other, mod)

    def __divmod__(self, other):
        return ("divmod", other)

    def __rdivmod__(self, other):
        return ("rdivmod", other)

    def __truediv__(self, other):
        return ("truediv", other)

    def __floordiv__(self, other):
        return ("floordiv", other)

    def __mod__(self, other):
        return ("mod", other)

    def __rmod__(self, other):
        return ("rmod", other)

    def __lshift__(self, other):
        return ("lshift", other)

    def __and__(self, other):
        return ("and", other)

    def __or__(self, other):
        return ("or", other)

    def __ror__(self, other):
        return ("ror", other)

    def __xor__(self, other):
        return ("xor", other)


class Sub(Num):
    def __radd__(self, other):
        return Num(("sub radd", self.v))


class SubWithout(Num):
    pass


@cases
def binary(x):
    n = Num(2)
    return (
        ((n + Num(3)).v, (n + 1).v, (1 + n).v, (n - Num(1)).v, n * x, x * 2, 3 * n, [1] * 2, (5 - n).v),
        (n @ 1, n**2, n / 1, n // 1, n % 1, n << 1, n & 1, n | 1, n ^ 1, 5 | n, divmod(n, 3), divmod(3, n), pow(n, 2)),
    )


@cases
def with_tensors(x):
    n = Num(x)
    return (n + 1).v, n * 2, (n + Num(x)).v


@cases
def unary(x):
    n = Num(-2)
    return (-n).v, (+n) is n, ~n, abs(n).v, not n, x + 1


@cases
def in_place(x):
    n = Num(1)
    m = n
    n += 2
    n -= Num(1)
    n *= 3
    return n, m.v, x + 1


@cases
def subclass_priority(x):
    return (Num(1) + Sub(2)).v, (Sub(1) + Num(2)).v, (Num(1) + SubWithout(2)).v, x + 1


@cases(breaks=1)
def not_implemented(x):
    y = x + 1
    return y, Num(1) - 1


class Ordered:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return ("lt", self.v) if isinstance(other, Ordered) else NotImplemented

    def __eq__(self, other):
        return isinstance(other, Ordered) and self.v == other.v

    def __le__(self, other):
        return NotImplemented

    def __ge__(self, other):
        return ("ge", self.v)

    __hash__ = None


class OrderedSub(Ordered):
    def __gt__(self, other):
        return ("sub gt", self.v)


@cases
def comparisons(x):
    a, b = Ordered(1), Ordered(2)
    return (
        a < b,
        a > b,
        a <= b,
        a >= b,
        a == b,
        a != b,
        a == Ordered(1),
        a == 1,
        a != 1,
        a < OrderedSub(3),
        1 == a,
        x + 1,
    )


@functools.total_ordering
class Total:
    def __init__(self, v):
        self.v = v

    def __lt__(self, other):
        return self.v < other.v

    def __eq__(self, other):
        return self.v == other.v

    def __hash__(self):
        return hash(self.v)


@cases
def total_order(x):
    a, b = Total(1), Total(2)
    return a < b, a <= b, a > b, a >= b, max(a, b).v, min([b, a]).v, [t.v for t in sorted([b, a])], x + 1


@cases
def sorted_objects(x):
    items = [Total(3), Total(1), Total(2)]
    items.sort()
    return (
        [t.v for t in items],
        [t.v for t in sorted(items, reverse=True)],
        Total(1) in items,
        items.index(Total(2)),
        x + 1,
    )


@cases
def hashed_objects(x):
    d = {Total(1): "a", Total(2): "b"}
    d[Total(1)] = "again"
    s = {Total(1), Total(1), Total(3)}
    return len(d), d[Total(1)], Total(2) in d, Total(9) in d, len(s), x + 1


class Plain:
    pass


@cases
def identity_objects(x):
    a, b = Plain(), Plain()
    d = {a: 1, b: 2}
    return a == b, a == a, a != b, d[a], d[b], a in d, a in [b, a], [a, b].index(b), Plain() in d, len({a, b, a}), x + 1


class Seq:
    def __init__(self, *items):
        self.items = list(items)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Seq(*self.items[i])
        return self.items[i]

    def __len__(self):
        return len(self.items)


@cases
def sequence_protocol(x):
    s = Seq(1, 3, x)
    return (
        [v for v in s],
        list(s),
        len(s),
        bool(s),
        bool(Seq()),
        s[0],
        s[-1],
        s[1:].items,
        3 in s,
        [*s],
        list(reversed(s)),
        x + 1,
    )


class Box:
    def __init__(self):
        self.d = {}

    def __setitem__(self, k, v):
        self.d[k] = v

    def __getitem__(self, k):
        return self.d[k]

    def __delitem__(self, k):
        del self.d[k]

    def __contains__(self, k):
        return k in self.d

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)

    def __bool__(self):
        return True

    def __reversed__(self):
        return ["reversed"]


@cases
def container_protocol(x):
    b = Box()
    b["a"] = x
    b["b"] = 2
    b["c"] = 3
    b["b"] += 10
    del b["c"]
    k, m = b
    return b["a"] + 1, b["b"], "a" in b, "z" not in b, [*b], list(b), len(b), bool(Box()), reversed(b), k, m, b


class Count:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Fixed:
    def __init__(self, items):
        self.items = items
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.i += 1
        return self.items[self.i - 1]


@cases
def own_iterator(x):
    out = []
    for i in Count(3):
        out.append(x + i)
    return out, list(Count(2)), sum(Count(4)), [*zip(Count(2), "ab")], 1 in Count(3)


@cases
def own_iterator_by_next(x):
    f = Fixed([x, 2, 3])
    return next(f), next(f), f.i, iter(f) is f, x + 1


class Numeric:
    def __index__(self):
        return 2

    def __int__(self):
        return 5

    def __float__(self):
        return 2.5

    def __complex__(self):
        return 1 + 2j

    def __round__(self, n=None):
        return ("round", n)

    def __trunc__(self):
        return 7

    def __ceil__(self):
        return 8

    def __bool__(self):
        return False


@cases
def numeric_protocol(x):
    n = Numeric()
    return (
        [1, 2, 3][n],
        int(n),
        float(n),
        complex(n),
        round(n),
        round(n, 1),
        bool(n),
        n or 1,
        "abc"[n],
        [1, 2, 3][:n],
        list(range(n)),
        operator.index(n),
        [0] * n,
        x + 1,
    )


@cases(breaks=3, graphs=0)  # CPython runs the indexing of a tensor
def index_of_tensor(x):
    return x[Numeric()], x[: Numeric()], x.view(Numeric(), 2)


class Texts:
    def __init__(self, v):
        self.v = v

    def __str__(self):
        return f"str {self.v}"

    def __repr__(self):
        return f"Texts({self.v!r})"

    def __format__(self, spec):
        return f"<{spec}>"


class OnlyRepr:
    def __repr__(self):
        return "only"


@cases
def text_protocol(x):
    t = Texts(1)
    o = OnlyRepr()
    return (
        str(t),
        repr(t),
        f"{t}",
        f"{t:abc}",
        f"{t!r}",
        f"{t!s:>8}",
        format(t, "q"),
        "%s %r" % (t, t),
        "{} {!r}".format(t, t),
        str(o),
        f"{o}",
        str([t, o]),
        x + 1,
    )


class Called:
    def __call__(self, x, *args, k=1, **kw):
        return x + k, args, kw


@cases
def call_protocol(x):
    c = Called()
    return c(x), c(x, 1, 2, k=3, z=4), list(map(c, [x])), callable(c), callable(Plain())


class Missing(dict):
    def __missing__(self, key):
        self[key] = value = [key]
        return value


@cases
def missing_protocol(x):
    m = Missing(a=1)
    return m["a"], m["b"], m["b"] is m["b"], m.get("zz"), dict(m), len(m), x + 1


class Generic:
    def __class_getitem__(cls, item):
        return (cls.__name__, item)


@cases
def class_getitem(x):
    return Generic[1], Generic[int, "a"], x + 1


class Contains:
    def __contains__(self, v):
        return v


@cases
def contains_truth(x):
    return 1 in Contains(), 0 in Contains(), "" not in Contains(), x + 1


@cases
def operator_module(x):
    n = Num(2)
    return (
        operator.add(n, 1).v,
        operator.mul(n, x),
        operator.lt(Ordered(1), Ordered(2)),
        operator.contains([1], 1),
        operator.getitem([1, x], 1),
        operator.concat([1], [2]),
        operator.truth([]),
        operator.itemgetter(1)([1, 2]),
        operator.attrgetter("v")(n),
        operator.methodcaller("upper")("a"),
    )


class Matrix:
    def __init__(self, t):
        self.t = t

    def __matmul__(self, other):
        return Matrix(self.t * other.t)

    def __rmatmul__(self, other):
        return ("rmatmul", other)

    def __eq__(self, other):
        return self.t is other.t


@cases
def tensor_holders(x):
    a, b = Matrix(x), Matrix(x + 1)
    c = a @ b
    return c.t, a == a, a == b, a != b, 3 @ a


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_operators(case: Case) -> None:
    check(case)
