"""Guards read of an iterator what it yields afterwards."""

from __future__ import annotations

import pytest

from godynamo import _C

DICT = {"a": 1, "b": 2, "c": 3, "d": 4}


def thinned():
    """Return a dict whose table has gaps."""
    d = {i: str(i) for i in range(9)}
    for key in (0, 3, 4, 8):
        del d[key]
    return d


class Instance:
    def __init__(self):
        self.x, self.y, self.z = 1, 2, 3


ITERATORS = {
    "list": lambda: iter([1, 2, 3]),
    "empty list": lambda: iter([]),
    "tuple": lambda: iter((1, 2, 3)),
    "reversed list": lambda: reversed([1, 2, 3]),
    "reversed tuple": lambda: reversed((1, 2, 3)),
    "keys": lambda: iter(DICT),
    "values": lambda: iter(DICT.values()),
    "items": lambda: iter(DICT.items()),
    "keys of a dict with gaps": lambda: iter(thinned()),
    "items of an instance": lambda: iter(vars(Instance()).items()),
    "range": lambda: iter(range(3, 12, 4)),
    "falling range": lambda: iter(range(3, -9, -4)),
    "empty range": lambda: iter(range(0)),
}
NUMBERS = ("range", "falling range", "empty range")


def peeked(name, it, i):
    if name in NUMBERS:
        return _C.iterator_number(it, i)
    if "items" in name:
        return _C.iterator_item(it, i), _C.iterator_value(it, i)
    return _C.iterator_item(it, i)


@pytest.mark.parametrize("name", ITERATORS)
def test_what_is_read_is_what_comes(name):
    total = len(list(ITERATORS[name]()))
    for taken in range(total + 1):
        it = ITERATORS[name]()
        for _ in range(taken):
            next(it)
        left = max(_C.iterator_left(it), 0)
        assert left == total - taken
        read = [peeked(name, it, i) for i in range(left)]
        with pytest.raises(IndexError):
            peeked(name, it, left)
        assert read == list(it), (name, taken)
        if name not in NUMBERS:
            assert _C.iterator_left(it) == -1


def test_parts():
    xs, ys = [1, 2], (3,)
    a, b = iter(xs), iter(ys)
    both, counted = zip(a, b), enumerate(a, 7)
    assert _C.iterator_part(a, 0) is xs and _C.iterator_part(b, 0) is ys
    assert [_C.iterator_part(both, i) for i in range(_C.iterator_left(both))] == [a, b]
    assert _C.iterator_part(counted, 0) is a and _C.iterator_number(counted, 2) == 9
    mapped, chosen = map(max, a, b), filter(None, a)
    assert [_C.iterator_part(mapped, i) for i in range(3)] == [max, a, b] and _C.iterator_left(mapped) == 2
    assert [_C.iterator_part(chosen, i) for i in range(2)] == [None, a]
    with pytest.raises(IndexError):
        _C.iterator_part(both, 2)


class Items(list):
    def __getitem__(self, i):
        return "mine"


def test_iterators_whose_next_step_is_unknown():
    changed = dict(DICT)
    over_changed = iter(changed)
    changed["e"] = 5
    replaced = dict(DICT)
    over_replaced = iter(replaced)
    for _ in range(4):
        next(over_replaced)
    del replaced["a"]
    replaced["f"] = 6
    for it in (iter(Items([1])), over_changed, over_replaced, iter({1}), iter("a"), enumerate([1]), 3, None):
        assert _C.iterator_left(it) == -2, it
        with pytest.raises(IndexError):
            _C.iterator_item(it, 0)
    with pytest.raises(IndexError):
        _C.iterator_number(enumerate([1], 2**70), 0)


def test_a_strict_zip_differs_from_others():
    ones = iter([1])
    assert _C.iterator_left(zip(ones, [2], strict=True)) == 2 + (1 << 16)  # GD_STRICT
    assert _C.iterator_left(zip(ones, [2])) == 2
    assert _C.iterator_part(zip(ones, [2], strict=True), 0) is ones


def test_a_list_that_has_shrunk():
    xs = [1, 2, 3]
    it, back = iter(xs), reversed(xs)
    next(it), next(it)
    del xs[1:]
    assert (_C.iterator_left(it), _C.iterator_left(back)) == (0, 0)
    assert list(it) == list(back) == []
