"""bytearray and array.array: CPython computes on a copy; changes reach the caller's object."""

from __future__ import annotations

import array

import pytest
import torch

from harness.cases import Case, Cases, check

cases = Cases()


class Index:
    def __index__(self):
        return 2


def buffers():
    return bytearray(b"abc"), array.array("d", [1.5, -0.0, 2.5])


def shared():
    a = array.array("d", [1.5, -0.0, 2.5])
    return torch.frombuffer(a, dtype=torch.float64), a


@cases(args=buffers)
def looked_at(x, b, a):
    return (
        x + len(b) + a[0], list(b), list(a), bool(b), b[0], b[-1], b[1:], a[1:], b == b"abc", b"abc" == b, a == a[:],
        a == [1.5],
        97 in b, 1.5 in a, bytes(b), b.decode(), repr(b), repr(a), str(a), sum(a), max(b), sorted(b), a.typecode,
        a.itemsize,
        b.upper(), b.find(b"c"), b.split(b"b"), isinstance(b, (bytes, bytearray)), type(a) is array.array, a.tobytes(),
    )  # fmt: skip


@cases(args=buffers)
def changed(x, b, a):
    y = x + 1
    b.append(100)
    b.extend([101, 102])
    b += b"xyz"
    b[0] = 65
    b[1:3] = b"!!"
    del b[4]
    a.append(3)
    a.extend(i / 2 for i in range(3))
    a[0] = x.shape[0]
    last = a.pop()
    a.reverse()
    first = b.pop(0)
    a *= 2
    b.insert(Index(), 7)
    return y, last, first, b, a, b[Index()]


@cases
def made_inside(x):
    b = bytearray(b"ab")
    c = bytearray(3)
    d = bytearray("text", "utf8")
    a = array.array("i", [1, 2])
    e = array.array("i", a)
    b.extend(d)
    e.append(9)
    return x + len(b), b, c, d, a, e, bytearray(range(4)), bytearray(), b + b"x", b"x" + b, b * 2, b % (), a + e, b == d


@cases
def one_object(x):
    b = bytearray(b"ab")
    c = b
    out = [b, c]
    c.append(1)
    y = x + len(b)
    b.append(2)
    return out, b is c, y


@cases(args=lambda: (lambda b: (b, b))(bytearray(b"ab")))
def one_object_given_twice(x, b, c):
    y = x + len(c)
    b.append(1)
    return y, b is c, len(c)


@cases(args=lambda: (bytearray(b"ab"), bytearray(b"ab")))
def two_objects(x, b, c):
    y = x + len(c)
    b.append(1)
    return y, b is c, b == c


@cases(args=buffers)
def iterated(x, b, a):
    y = x + len(a)
    out = []
    for i, v in enumerate(b):
        if i < 2:
            b.append(v + 1)
        out.append(v)
    it = iter(a)
    next(it)
    return y, out, [v * 2 for v in a], list(it), list(zip(b, a)), list(reversed(b))


@cases(breaks=1)
def out_of_range(x):
    y = x + 1
    bytearray(b"a").append(300)
    return y


@cases(args=lambda: (array.array("i", [1]),), breaks=1)
def half_done(x, a):
    y = x + 1
    a.extend([2, "three"])
    return y


@cases
def an_error_that_is_caught(x):
    b = bytearray(b"a")
    try:
        b[5] = 1
    except IndexError as error:
        return x + 1, str(error), b


@cases(breaks=1)
def unhashable(x):
    return x + 1, {bytearray(b"a"): 1}


@cases(args=buffers, graphs=2, breaks=2)
def shared_with_a_tensor(x, b, a):
    y = x + 1
    t = torch.frombuffer(a, dtype=torch.float64)
    t += 1
    return y, t, a[0], a


@cases(args=shared, graphs=2, breaks=(0, 1))
def changed_while_a_tensor_shares_it(x, t, a):
    y = t * 2
    a[0] = 7.5
    return y, t + 1


@pytest.mark.row("S004-48")
@pytest.mark.row("S004-158")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_shadows(case: Case) -> None:
    check(case)


def test_other_contents_are_another_case() -> None:
    import godynamo

    f = godynamo.optimize(lambda x, b: (x * len(b), b[0], b.hex()), backend="eager")
    for b in (bytearray(b"ab"), bytearray(b"ac"), bytearray(b"ab"), array_of(1), bytearray(b"abc")):
        plain = (torch.ones(2) * len(b), b[0], bytes(b).hex())
        try:
            got = f(torch.ones(2), b)
        except AttributeError:
            assert isinstance(b, array.array)
            continue
        assert torch.equal(got[0], plain[0]) and got[1:] == plain[1:]


def array_of(v: int) -> array.array[int]:
    return array.array("b", [v])
