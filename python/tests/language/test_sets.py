"""Sets and frozensets: methods, operators, comprehension, order of iteration, mutation."""

from __future__ import annotations

import pytest

from harness.cases import Case, Cases, check

cases = Cases()


@cases
def methods(x):
    s = {1, 2, 3}
    s.add(4)
    s.add(4)
    s.discard(1)
    s.discard(99)
    s.remove(2)
    s.update([7, 8], (9,))
    t = s.copy()
    t.clear()
    return s, t, len(s), 3 in s, bool(t), x + 1


@cases
def operators(x):
    a, b = {1, 2, 3}, {2, 3, 4}
    return a | b, a & b, a - b, a ^ b, a <= b, a < {1, 2, 3, 4}, a >= {1}, a > a, a == {3, 2, 1}, a != b, x + 1


@cases
def named_operators(x):
    a, b = {1, 2, 3}, [2, 3, 4]
    return (
        (a.union(b), a.union(b, [9]), a.intersection(b), a.difference(b), a.symmetric_difference(b)),
        (a.issubset(b), a.issuperset([1]), a.isdisjoint({9}), set().union(*[[1], [2]])),
        x + 1,
    )


@cases
def updates(x):
    a = {1, 2, 3, 4, 5}
    a.intersection_update([1, 2, 3, 4])
    a.difference_update({1})
    a.symmetric_difference_update([4, 9])
    a |= {10}
    a &= {2, 3, 9, 10}
    a -= {2}
    a ^= {3, 77}
    return a, x + 1


@cases(args=lambda: ({1, 2, 3}, {"a", "b"}))
def mutation_seen_by_the_caller(x, a, b):
    a.add(4)
    a.discard(1)
    a |= {8}
    a -= {2}
    b.update(["c"])
    b.remove("a")
    b.intersection_update({"b", "c", "d"})
    return len(a), len(b), x + 1


@cases(args=lambda: ({5, 3, 1},))
def mutation_of_an_alias(x, a):
    b = a
    b ^= {1, 9}
    c = a | {2}
    c.add(77)
    return b is a, c, x + 1


@cases
def iteration_of_constants(x):
    out = []
    for i in {30, 10, 20}:
        out.append(i)
    for word in {"b", "a", "c"}:
        out.append(word)
    return out, list({3, 1, 2}), sorted({3, 1, 2}), sum({1, 2}), max({1, 5}), x + 1


@cases
def order_follows_history(x):
    a = set()
    for i in (8, 0, 16, 24):
        a.add(i)
    b = {0, 8, 16, 24}
    b.discard(8)
    b.add(8)
    c = a | b
    c -= {0}
    c.add(0)
    return list(a), list(b), list(c), tuple(set("hello")), x + 1


@cases(args=lambda: ({16, 8, 0, "a"},))
def iteration_of_an_argument(x, a):
    total = [i for i in a]
    a.add(32)
    return total, list(a), x + 1


@cases
def comprehension(x):
    return {i % 3 for i in range(7)}, {c for c in "abca"}, {(i, j) for i in range(2) for j in range(2)}, x + 1


@cases
def frozen(x):
    f = frozenset([1, 2, 3])
    g = frozenset({3, 4})
    return (
        (
            f | g,
            f & g,
            f - g,
            f ^ g,
            f <= g,
            f.union([9]),
            f.intersection([1]),
            f.difference([1]),
            f.issubset(f),
            f.copy() is f,
        ),
        (2 in f, len(f), list(f), hash(f) == hash(frozenset([3, 2, 1])), {f: 1}[frozenset([1, 2, 3])], frozenset()),
        x + 1,
    )


@cases
def mixed_operands(x):
    s, f = {1, 2}, frozenset([2, 3])
    return s | f, f | s, s & f, f - s, s == frozenset([1, 2]), type(s | f) is set, type(f | s) is frozenset, x + 1


@cases
def membership(x):
    names = {"relu", "gelu"}
    if "relu" in names:
        x = x.relu()
    if "tanh" not in names:
        x = x + 1
    return x, (1, 2) in {(1, 2)}, 1.0 in {1}, True in {1}, None in {None}


@cases
def numbers_of_one_value(x):
    s = {1, 1.0, True}
    s.add(1.0)
    t = {0, False, 0.0}
    return s, len(t), list(t), x + 1


@cases
def of_tensors(x):
    y = x + 1
    s = {x, y}
    s.add(x)
    s.discard(y)
    return len(s), x in s, y in s, x + 2


@cases
def one_tensor(x):
    s = {x}
    for t in s:
        x = t + 1
    return s, x


@cases
def pop_of_one(x):
    s = {7}
    return s.pop(), s, x + 1


@cases
def pop_of_many(x):
    s = {5, 6, 7}
    return s.pop(), s, x + 1


@cases
def pops_until_one_is_left(x):
    s = {11, 22, 33, 44, 55}
    out = []
    while len(s) > 2:
        out.append(s.pop())
    return out, s, x + 1


def _popped():
    s = set(range(8))
    for _ in range(3):
        s.pop()
    s.add(1)
    return (s,)


@cases(args=_popped)  # where pop starts depends on earlier pops
def pop_of_an_argument(x, s):
    y = x + 1
    return s.pop(), len(s), y


def _with_holes():
    s = set("abcdefghijklmnop")
    for c in "abcdefghijk":
        s.discard(c)
    s.update("zab")
    return (s,)


@cases(args=_with_holes)  # a copy of such a set has another order
def order_of_an_argument(x, s):
    out = [c for c in s]
    return out, sorted(s), s - {"a"}, s | {"y"}, x + len(s)


class Named(set):
    """A set whose class misreports its contents."""

    def __iter__(self):
        return iter((7, 8))

    def copy(self):
        raise AssertionError("nobody asked for a copy")


class Plain(set):
    """A subclass that overrides nothing."""


@cases(args=lambda: (Named([3]),))
def subclass_with_methods_of_its_own(x, s):
    return 3 in s, len(s), repr(Plain("a")), f"{Plain()}", x + 1


@cases(args=lambda: (Named([3]),), breaks=1)
def text_of_a_subclass_with_an_order_of_its_own(x, s):
    return repr(s), x + 1


class Counted:
    """A key that counts its hashes."""

    def __init__(self, n):
        self.n = n
        self.hashed = 0

    def __hash__(self):
        self.hashed += 1
        return self.n

    def __eq__(self, other):
        return isinstance(other, Counted) and self.n == other.n


@cases(args=lambda: (Counted(1),), breaks=3)
def hash_with_an_effect_is_called_as_often_as_in_cpython(x, key):
    y = x + 1
    d = {key: 1}
    s = set(d)
    return key in s, key.hashed, y


class Refuses:
    """A key whose comparison raises."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no")


@cases(breaks=1)
def member_that_refuses_to_be_compared(x):
    y = x + 1
    s = Named()
    s.update([Refuses()])
    return y, Refuses() in s


class Value:
    """Compares by value."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return isinstance(other, Value) and self.n == other.n


@cases
def values_inside_tuples(x):
    d = {(Value(1), 2): "a"}
    s = {Value(3)}
    s.discard(Value(3))
    s.add(Value(3))
    return (Value(1), 2) in d, (Value(2), 2) in d, d[Value(1), 2], len(s), Value(3) in s, x + 1


@cases
def key_changed_after_it_went_in(x):
    k = Value(1)
    d = {k: "a"}
    k.n = 2
    return k in d, len(d), x + 1


@cases(breaks=1)
def remove_missing(x):
    s = {1}
    y = x + 1
    s.remove(2)
    return y


@cases(breaks=1)
def pop_of_empty(x):
    y = x + 1
    return y, set().pop()


@cases(breaks=1)
def wrong_operand(x):
    y = x + 1
    return y, {1} | [2]


@cases(breaks=1)
def unhashable(x):
    y = x + 1
    return y, {1, [2]}


@cases(graphs=0)  # CPython runs the frame: a FOR_ITER raises
def changes_while_iterated(x):
    s = {1, 2, 3}
    y = x + 1
    for i in s:
        s.add(i + 10)
    return y


@cases
def seen_set(x):
    seen = set()
    out = []
    for name in ["a", "b", "a"]:
        if name in seen:
            continue
        seen.add(name)
        out.append(x + len(seen))
    return out, seen


@cases
def unpacked(x):
    a = [*{1}]
    b = {*[1, 2], *(3,)}
    (c,) = {4}
    return a, b, c, x + 1


GLOBAL_SET = {"a", "b", "c"}


@cases
def global_set(x):
    out = x
    for name in sorted(GLOBAL_SET):
        out = out + len(name)
    return out, "a" in GLOBAL_SET, GLOBAL_SET & {"a"}, len(GLOBAL_SET)


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_sets(case: Case) -> None:
    check(case)
