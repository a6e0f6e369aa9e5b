"""The collections module: deque, OrderedDict, defaultdict, Counter, ChainMap, UserDict, UserList, namedtuple."""

from __future__ import annotations

from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


@cases
def deque_methods(x):
    d = deque([1, 2])
    d.append(3)
    d.appendleft(0)
    d.extend([4, 5])
    d.extendleft([-1, -2])
    ends = d.pop(), d.popleft()
    d.rotate(1)
    d.rotate(-2)
    d.reverse()
    d.insert(1, "i")
    d.remove(3)
    found = d.count("i"), d.index("i"), "i" in d
    d.append(x)
    return d, ends, len(d), d[0], d[-1], found, list(d), x + 1


@cases
def deque_bounded(x):
    d = deque(maxlen=3)
    for i in range(5):
        d.append(i)
    d.appendleft("l")
    d.extend([8, 9])
    e = d.copy()
    e.clear()
    return d, d.maxlen, e, list(reversed(d)), x + 1


@cases(args=lambda: (deque([1, 2, 3], maxlen=4),))
def deque_of_the_caller(x, d):
    d.append(x + 1)
    d.append(5)
    d.popleft()
    d[0] = "zero"
    total = 0
    for v in d:
        total += 1
    return total, x * 2


@cases(args=lambda: (deque([torch.ones(4), [torch.zeros(4)], 4, None, deque(["a"])], maxlen=5),))
def deque_with_tensors(x, d):
    d[1].append(d[0] + x)
    d.append(d.popleft() * 2)
    d.append(x)
    d[2].appendleft(d[0])
    y = sum(t for t in d if isinstance(t, torch.Tensor)) + d[-2]
    d.rotate(2)
    return y, d, d.maxlen, d[-1] is None, len(d)


@cases
def deque_as_queue(x):
    todo, out = deque([x]), []
    while todo:
        t = todo.popleft()
        out.append(t + 1)
        if len(out) < 3:
            todo.append(out[-1])
    return out


@cases
def ordered_dict(x):
    d = OrderedDict()
    d["a"] = 1
    d["b"] = x
    d["c"] = 3
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    last = d.popitem()
    d["z"] = 0
    first = d.popitem(last=False)
    d["y"] = 1
    return d, last, first, list(d), list(reversed(d)), d.pop("z"), d.copy(), x + 1


@cases(args=lambda: (OrderedDict([("a", 1), ("b", 2), ("c", 3)]),))
def ordered_dict_of_the_caller(x, d):
    d.move_to_end("a")
    d["d"] = x + 1
    d.popitem(last=False)
    d.update(e=5)
    for k in d:
        x = x + len(k)
    return x


@cases
def ordered_dict_equality(x):
    a, b = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    return (
        a == b,
        a == {"b": 2, "a": 1},
        a != b,
        a == OrderedDict([("a", 1), ("b", 2)]),
        OrderedDict.fromkeys("ab"),
        a | {"c": 3},
        x + 1,
    )


@cases
def default_dict(x):
    d = defaultdict(list)
    d["a"].append(1)
    d["a"].append(x)
    d["b"] = [2]
    n = defaultdict(int)
    for c in "hello":
        n[c] += 1
    s = defaultdict(lambda: {"k": 0})
    s["q"]["k"] += 5
    return d, n, s["q"], d.get("zz"), "zz" in d, len(d), d.default_factory is list, dict(n), x + 1


@cases
def default_dict_from_keys(x):
    d = defaultdict.fromkeys(iter("ab"), x - 2)
    e = defaultdict.fromkeys([1, 1.0, 2])
    e[3] = [x]
    try:
        d["c"]
    except KeyError as error:
        return type(d), d, d.default_factory, e, str(error), x + 1


@cases(args=lambda: (defaultdict(list, {"a": [1]}),))
def default_dict_of_the_caller(x, d):
    d["a"].append(2)
    d["b"].append(x + 1)
    d["c"]
    return sorted(d), x * 2


@cases
def default_dict_nested(x):
    d = defaultdict(lambda: defaultdict(int))
    d["a"]["b"] += 1
    d["a"]["c"] += 2
    return {k: dict(v) for k, v in d.items()}, x + 1


@cases(breaks=1)
def default_dict_without_factory(x):
    d = defaultdict()
    y = x + 1
    return y, d["a"]


@cases
def counter(x):
    c = Counter("hello")
    c["q"] += 2
    c.update("ll")
    c.subtract("h")
    return (
        c,
        c["l"],
        c["absent"],
        c.most_common(1),
        sorted(c.elements()),
        c.total(),
        +c,
        c + Counter("h"),
        c - Counter("l"),
        x + 1,
    )


@cases(args=lambda: (Counter(a=1),))
def counter_of_the_caller(x, c):
    c["a"] += 1
    c["b"] += 1
    return c["zz"], x + 1


@cases
def chain_map(x):
    base, over = {"a": 1, "b": 2}, {"b": x}
    m = ChainMap(over, base)
    m["c"] = 3
    child = m.new_child({"a": 0})
    return m["a"], m["b"], over, child["a"], list(m), len(m), "c" in m, m.get("zz", 1), x + 1


class Table(UserDict):
    def __getitem__(self, key):
        return super().__getitem__(key.lower())


class Items(UserList):
    def total(self):
        return sum(self.data)


@cases
def user_dict(x):
    t = Table({"a": 1})
    t["b"] = x
    return t["A"], "b" in t, len(t), list(t), t.get("B"), t.data, x + 1


@cases
def user_list(x):
    u = Items([1, 2])
    u.append(3)
    u += [4]
    return u.total(), len(u), u[0], u.data, list(u), 3 in u, x + 1


Point = namedtuple("Point", ["x", "y"])
Spread = namedtuple("Spread", "a b c", defaults=(2, 3))


class Typed(NamedTuple):
    name: str
    value: Any = None

    def label(self):
        return self.name.upper()


@cases
def named_tuple(x):
    p = Point(1, x)
    q = p._replace(x=5)
    a, b = p
    return p, q, p.x, p.y, p[0], a, p._asdict(), Point._fields, Point._make([3, 4]), p == (1, x), len(p), p[1:], x + 1


@cases
def named_tuple_defaults(x):
    s, t, u = Spread(1), Spread(1, c=x), Spread(a=0, b=0, c=0)
    return s, t, u, Spread._field_defaults, s < u, s + (4,), hash(s) == hash((1, 2, 3)), x + 1


@cases
def typed_named_tuple(x):
    t = Typed("n")
    u = Typed(value=x, name="m")
    match u:
        case Typed(name=n, value=v):
            x = v + len(n)
    return t, u, t.label(), u._replace(name="k").label(), repr(t), isinstance(t, tuple), x


@cases(args=lambda: (Point([1], 2), Typed("t", 3)))
def named_tuple_of_the_caller(x, p, t):
    p.x.append(x + 1)
    return p._replace(y=x), t.label(), t.value, p.y, t._asdict(), p


@cases(breaks=1)
def named_tuple_wrong_arguments(x):
    y = x + 1
    return y, Point(1)


@cases(breaks=1)
def named_tuple_is_immutable(x):
    p = Point(1, 2)
    y = x + 1
    p.x = 3
    return y


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_collections(case: Case) -> None:
    check(case)


def test_a_deque_of_recent_tensors_is_one_entry() -> None:
    def f(x, recent):
        recent.append(x)
        return sum(recent) / len(recent)

    ours = godynamo.optimize(f, nopython=True)
    mine, plain = deque(torch.zeros(4, 3), maxlen=4), deque(torch.zeros(4, 3), maxlen=4)
    for i in range(6):
        x = torch.full((3,), float(i))
        assert ours(x, mine).tolist() == f(x, plain).tolist()
        assert all(a is b for a, b in zip(list(mine)[max(3 - i, 0) :], list(plain)[max(3 - i, 0) :], strict=True))
    assert len(godynamo.cache_entries(ours)) == 1


def test_what_is_guarded_of_a_deque() -> None:
    def f(x, d):
        d.append(1)
        return x * (len(d) + (d[0] if isinstance(d[0], int) else d[0].sum())), list(d)

    class Other(deque):
        def __getitem__(self, i):
            return 100

    t = torch.ones(2)
    ours = godynamo.optimize(f)
    for items in (t, 2), (t, 3), (t,), (t, 2, 5), (4, 2), (t.double(), 2), (torch.ones(5), 2), ():
        for make in deque, lambda v: deque(v, maxlen=2), lambda v: deque(v, 3), Other, list:
            results = []
            for fn in f, ours, ours:
                value = make(items)
                try:
                    results.append(repr((fn(torch.ones(3), value), value)))
                except IndexError as error:
                    results.append(repr(error))
            assert results[0] == results[1] == results[2], (items, value)
