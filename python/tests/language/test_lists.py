"""Lists and tuples: methods, operators, slices, sorting, searching, comparison, text, aliases, mutation."""

from __future__ import annotations

from collections import deque

import pytest

from harness.cases import Case, Cases, check

cases = Cases()


@cases
def methods(x):
    a = [1, 3, x]
    a.append(4)
    a.extend((5, 6))
    a.extend(i for i in [7])
    a.insert(0, "front")
    a.insert(100, "back")
    a.insert(-1, "before back")
    b = a.copy()
    popped = a.pop(), a.pop(0), a.pop(-2)
    a.remove(3)
    a.reverse()
    b.clear()
    return a, b, popped, x + 1


@cases(args=lambda: ([3, 1, 2], ["a", "b"]))
def mutation_seen_by_the_caller(x, a, b):
    a.append(x + 1)
    a[0] = "zero"
    a[1:2] = [7, 8, 9]
    del a[2]
    del b[:]
    b += ["c"]
    b *= 2
    b.extend(b)
    b.insert(1, a)
    a.reverse()
    return x * 2


@cases(args=lambda: ([5, 3, 4, 1],))
def sorting(x, a):
    a.sort()
    b = sorted(a, reverse=True)
    words = ["bb", "a", "ccc", "dd"]
    words.sort(key=len)
    pairs = sorted([(1, "b"), (0, "z"), (1, "a")], key=lambda p: p[0], reverse=True)
    pairs.sort(key=None)
    values = [x + 2, x + 1]
    values.sort(key=lambda t: t.dim())
    return a, b, words, pairs, values


@cases
def sorting_text_keys(x):
    words = ["Banana", "apple", "Cherry"]
    words.sort(key=str.lower)
    return words, sorted(words, key=str.lower, reverse=True), sorted({"b": 1, "a": 2}), x + 1


@cases
def searching(x):
    y = x + 1
    a, b = [1, 2, 2.0, True], [y, x, y]
    return a.index(2), a.count(2), a.count(1), b.index(y), b[1:].index(x), x in b[1:], "q" in [1, 2], y * 2


@cases
def search_bounds(x):
    a = [1, 2, 3, 1, 2, 3]
    t = (1, 2, 3, 1)
    return a.index(1, 1), a.index(3, -2), a.index(2, 2, 5), t.index(1, 1), t.count(1), x + 1


@cases
def slices(x):
    a = [0, 1, x, 3, 4, 5]
    b = a[::-2], a[1:3], a[-2:], a[10:], a[:-4]
    a[::2] = ["a", "b", "c"]
    a[2:2] = (9, 9)
    a[5:] = []
    del a[0:2]
    del a[::2]
    return a, b, (1, 2, 3)[::-1], x + 1


@cases
def operators(x):
    a = [1] + [x]
    b = a * 2
    c = 2 * a
    d = a
    d += (3,)
    d *= 2
    e = [[]] * 3
    e[0].append(1)
    t = (1, x) + (2,)
    u = t * 2 + 1 * t
    u += (5,)
    return a, b, c, d is a, e, t, u, [1] * 0, [1] * -1, x + 1


@cases
def comparisons(x):
    a, b = [1, 2, 3], [1, 2, 4]
    return (
        (a < b, a <= b, a == b, a != b, a > b, a >= b),
        (
            [1] < [1, 0],
            [] < [1],
            (1, 2) < (1, 3),
            (1,) == [1],
            [1] == (1,),
            [1, 2] == [1.0, 2.0],
            [x] == [x],
            [1, x] < [2, x],
        ),
        [[1], (2,)] == [[1], (2,)],
        x + 1,
    )


@cases
def comparing_tracked(x):
    y = x + 1
    return [x, y] == [x, y], [y, 1] != [y, 2], (x, 1) == (x, 1), [1, y] < [2, x], (y, 3) >= (y, 3)


@cases
def aliases(x):
    a = [1]
    b = a
    c = [a, a]
    b.append(x + 1)
    c[0].append(2)
    return a, c, a is b, c[0] is c[1]


@cases(args=lambda: ([1, 2],))
def nested_alias(x, a):
    outer = [a, a, [a]]
    outer[2][0].append(x * 2)
    outer[0] += [4]
    return outer


@cases
def unpacking(x):
    a, *b, c = [1, x, 3, 4]
    (d, e), [f, *g] = (1, 2), "xyz"
    h = [*b, *(5, 6), *{"k": 1}]
    i = (*h, *range(2))
    return a, b, c, d, e, f, g, h, i, x + 1


@cases
def comprehension(x):
    a = [i * j for i in range(3) for j in range(2) if i != j]
    b = [[x + i for i in range(2)] for _ in range(2)]
    c = [(i, s) for i, s in enumerate("ab", 1)]
    return a, b, c


@cases(args=lambda: ([1, 2, 3],))
def grows_while_iterated(x, a):
    for i in a:
        if len(a) < 6:
            a.append(i * 10)
        x = x + i
    return x


@cases(args=lambda: ([1, 2, 3, 4],))
def shrinks_while_iterated(x, a):
    for i in a:
        a.remove(i)
        x = x + i
    return x


@cases(breaks=1)
def pop_from_empty(x):
    return (x + 1), [].pop()


@cases(breaks=1)
def index_out_of_range(x):
    y = x + 1
    return y, [1][3]


@cases(breaks=1)
def missing_value(x):
    y = x + 1
    return y, [1, 2].index(7)


@cases(breaks=1)
def wrong_slice_size(x):
    a = [1, 2, 3, 4]
    y = x + 1
    a[::2] = [1]
    return y, a


@cases
def whole_list_assignment(x):
    a = [1, 2]
    b = a
    a[:] = [x, 3]
    a[len(a) :] = "xy"
    return b, x + 1


@cases
def of_iterables(x):
    return (
        list("abc"),
        list({"a": 1}),
        tuple([1, x]),
        list(zip([1], [x])),
        list(map(len, ["a", "bb"])),
        list(range(3)),
        x + 1,
    )


@cases
def reversed_and_len(x):
    a = [1, x, 3]
    r = reversed(a)
    first = next(r)
    return first, list(r), len(a), bool([]), not a, x + 1


@cases
def multiplication_by_known(x):
    n = len(x.shape)
    return [x] * n, (1,) * n, [None] * (n + 1), x + 1


@cases
def deep_methods(x):
    a = [1, 2, 3]
    f = a.append
    f(4)
    g = list.append
    g(a, 5)
    list.extend(a, [6])
    a.__setitem__(0, "zero")
    a.__delitem__(1)
    n = a.__len__(), a.__contains__(3), a.__getitem__(0), a.__add__([1]), a.__mul__(2), a.__eq__(a)
    return a, n, x + 1


@cases
def tuple_things(x):
    t = 1, x, (2, 3)
    a, b, (c, d) = t
    return t[0], t[-1], t[1:], len(t), t == t, hash((1, 2)) == hash((1, 2)), tuple(), tuple(t) is t, a + c + d, b + 1


@cases(args=lambda: ([[1, 2], [3, 4]],))
def inner_lists(x, a):
    a[0][1] = x + 1
    a[1] += [5]
    a.append(a[0])
    a[2].append("seen twice")
    return [row[0] for row in a]


@cases
def min_max_sum(x):
    return min([3, 1, 2]), max(3, 4), sum([1, 2, 3]), sum([[1], [2]], []), min("abc", key=lambda c: -ord(c)), x + 1


@cases
def zip_strict_and_star(x):
    rows = [(1, 2), (3, 4)]
    cols = list(zip(*rows))
    return cols, list(zip([1, 2], "ab", strict=True)), dict(zip("ab", [x, x + 1]))


@cases
def ends_and_aliases(x):
    """Copies of a list do not see items that are added to it later."""
    a = [1, 2, 3]
    t, u = tuple(a), a[:]
    a.pop()
    a.append(9)
    b = list(a)
    a.pop(0)
    a.append(8)
    a.insert(1, x)
    a.pop(-2)
    a.append(7)
    del a[0]
    a.insert(-100, 5)
    a.insert(100, 6)
    return t, u, b, a, x + 1


@cases
def long_queues(x):
    queue, total = [0], 0
    while queue:
        k = queue.pop(0)
        total += k
        if k < 500:
            queue += [2 * k + 1, 2 * k + 2]
    other = deque([0])
    while other:
        k = other.popleft()
        total += k
        if k < 500:
            other.append(2 * k + 1)
            other.appendleft(2 * k + 2)
    return x + total


@cases
def ends_that_are_not_there(x):
    out = []
    for name, args in (
        ("pop", (5,)),
        ("pop", (-4,)),
        ("pop", ("a",)),
        ("insert", ("a", 1)),
    ):
        a = [1, 2, 3]
        try:
            getattr(a, name)(*args)
        except (IndexError, TypeError) as e:
            out.append((type(e).__name__, str(e), a))
    return out, x + 1


class Shrinking:
    def __init__(self, items):
        self.items = items

    def __repr__(self):
        if self.items:
            self.items.pop()
        return "item"


class Changing:
    def __init__(self, pairs, change):
        self.pairs, self.change = pairs, change

    def __repr__(self):
        self.change(self.pairs)
        return "value"


def replace(pairs):
    pairs["last"] = 3


def remove(pairs):
    pairs.pop("last", None)


def insert(pairs):
    pairs.setdefault("new", 4)


def text_of_changing(change):
    pairs = {}
    pairs["first"], pairs["last"] = Changing(pairs, change), 2
    return repr(pairs)


@cases
def reprs_that_change_the_list_or_dict(x):
    out = [text_of_changing(replace)]
    for text in (repr, str, "{}".format):
        items = []
        for _ in range(5):
            items.append(Shrinking(items))
        out.append((text(items), len(items)))
    return out, x + 1


@cases(breaks=None)
def reprs_that_change_the_keys_of_the_dict(x):
    return text_of_changing(insert), text_of_changing(remove), x + 1


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_lists(case: Case) -> None:
    check(case)
