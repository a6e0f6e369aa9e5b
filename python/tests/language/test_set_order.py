"""The order of a set made outside the captured code depends on its table's history. So do pop() and copies."""

from __future__ import annotations

import random

import pytest
import torch

import godynamo
from godynamo import _C
from harness.cases import Case, Cases, check

cases = Cases()


def with_gaps():
    s = {8, 16, 24, 1, 3}
    s.discard(16)
    s.add(40)
    return (s,)


@cases(args=with_gaps)
def changed_and_walked(x, s):
    s.add(5)
    s.discard(1)
    s.update([7, 32], {48})
    return x + len(s), list(s), s.copy(), [v * 2 for v in s]


@cases(args=with_gaps)
def popped(x, s):
    first = s.pop()
    second = s.pop()
    s.add(99)
    return x + first, second, s.pop(), list(s), s


@cases(args=with_gaps)
def copied_and_changed(x, s):
    t = s.copy()
    t.clear()
    u = set(s)
    u.add(56)
    w = s | {56, 64}
    return x + 1, t, list(u), list(w), s - {8}, frozenset(s), sorted(s)


@cases(args=with_gaps)
def another_set_takes_it(x, s):
    t = set()
    t.update(s)
    t |= {72}
    return x + 1, list(t), t.pop()


@pytest.mark.row("S004-48", "S004-201")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_set_order(case: Case) -> None:
    check(case)


def random_set(rng: random.Random) -> set[int]:
    made = {rng.randrange(200) * rng.choice((1, 8, 64)) for _ in range(rng.choice((2, 4, 6, 20, 60)))}
    for _ in range(rng.randrange(10)):
        if made and rng.random() < 0.5:
            made.discard(rng.choice(sorted(made)))
        elif rng.random() < 0.3 and made:
            made.pop()
        else:
            made.add(rng.randrange(1600))
    return made


def test_a_clone_goes_on_as_the_set_does() -> None:
    rng = random.Random(3)
    for _ in range(300):
        one = random_set(rng)
        other = _C.set_clone(one)
        assert _C.set_layout(one) == _C.set_layout(other)
        for _ in range(10):
            v = rng.randrange(1600)
            name = rng.choice(("add", "discard", "pop", "copy"))
            if name == "pop":
                assert not one or one.pop() == other.pop()
            elif name == "copy":
                assert list(one.copy()) == list(other.copy())
            else:
                getattr(one, name)(v)
                getattr(other, name)(v)
            assert list(one) == list(other)


def test_equal_sets_of_other_tables_are_other_cases() -> None:
    def f(x, s):
        s.add(5)
        first = s.pop()
        return x + first, list(s)

    rng = random.Random(5)
    compiled = godynamo.optimize(f, backend="eager")
    x = torch.zeros(1)
    for _ in range(30):
        members = [rng.randrange(6) * 8 for _ in range(4)]
        mine, theirs = set(), set()
        for at in rng.sample(range(4), 4):
            mine.add(members[at])
            theirs.add(members[at])
        for junk in range(rng.randrange(3)):
            for s in (mine, theirs):
                s.add(1000 + junk)
                s.discard(1000 + junk)
        expected, got = f(x, mine), compiled(x, theirs)
        assert torch.equal(expected[0], got[0]) and expected[1] == got[1]
        assert _C.set_layout(mine) == _C.set_layout(theirs)


def test_a_subclass_is_not_asked() -> None:
    class Odd(set):
        def __iter__(self):
            raise AssertionError

        def copy(self):
            raise AssertionError

    def f(x, s):
        return x + len(s), 3 in s

    s = Odd((1, 2, 3))
    got = godynamo.optimize(f, backend="eager")(torch.zeros(1), s)
    assert got[0].item() == 3 and got[1] is True
