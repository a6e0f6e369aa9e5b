"""What classes reject, and what they misreport.

super() and object.__new__ with wrong arguments, special methods that are None or another type's, a false __class__,
slots without a dict, hashes, computed strings.
"""

from __future__ import annotations

import itertools
import re
import sys
import types

import pytest
import torch

import godynamo
from godynamo import _C
from harness.cases import Case, Cases, check, outcome

cases = Cases()
ONE = "a1"


class Base:
    def f(self):
        return "base"


class Derived(Base):
    def f(self):
        return super().f() + "derived"


class Plain:
    pass


class OwnInit:
    def __init__(self, *args):
        super().__init__(*args)


class OwnNew:
    def __new__(cls, *args):
        return super().__new__(cls, *args)


class Nothings:
    __add__ = None
    __iadd__ = None
    __lt__ = None
    __eq__ = None
    __neg__ = None
    __call__ = None
    __len__ = None
    __getitem__ = None
    __hash__ = None


class Adds:
    def __add__(self, other):
        return "added"


class NoInPlace(Adds):
    __iadd__ = None


class Claims:
    """Claims to be of the class it was given."""

    def __init__(self, cls):
        self.cls = cls

    @property
    def __class__(self):
        return self.cls


class Slotted:
    __slots__ = ("a", "__weakref__")
    b = 1


class OneHash:
    """Has a string's hash, and equals nothing."""

    def __init__(self, text):
        self.text = text

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        print("asked", other)
        return False


class StringsOperators(int):
    __eq__ = str.__eq__
    __add__ = str.__add__
    __hash__ = int.__hash__


def told(fn, *args):
    try:
        return fn(*args)
    except Exception as e:
        return type(e), str(e)


@cases
def super_with_wrong_arguments(x):
    return x + 1, told(lambda: super(1, int)), told(lambda: super(float, 1)), told(lambda: Derived.f(Base()))


@cases(breaks=1, graphs=2)
def super_without_a_class_or_self(x):
    class Emptied:
        def f(self):
            nonlocal __class__
            del __class__
            return super()

    def deleted(self):
        del self
        return super()

    def none():
        return super()

    return x + 1, told(none), told(deleted, 1), told(Emptied().f)


@cases
def object_takes_no_arguments(x):
    return (
        x + 1,
        told(lambda: Plain(1)),
        told(lambda: Plain.__new__(Plain, 1)),
        told(lambda: object.__init__(Plain(), 1)),
        told(lambda: OwnInit(1)),
        told(lambda: OwnNew(1)),
        type(object.__new__(OwnInit, 1)),
    )


@cases
def special_methods_that_are_none(x):
    n = Nothings()

    def add_in_place(a):
        a += 1
        return a

    return (
        x + 1,
        told(lambda: n + 1),
        told(lambda: n < 1),
        told(lambda: n == 1),
        told(lambda: -n),
        told(lambda: n()),
        told(lambda: len(n)),
        told(lambda: n[0]),
        told(add_in_place, n),
        told(add_in_place, NoInPlace()),
    )


class NoEnter:
    __enter__ = None

    def __exit__(self, *args):
        return True


@cases(breaks=1, graphs=2)
def entering_by_none(x):
    y = x + 1
    try:
        with NoEnter():
            y = y + 1
    except TypeError:
        return y * 2


@cases
def operators_of_another_type(x):
    n = StringsOperators(3)
    return x + 1, told(lambda: n == n), told(lambda: n + n)


operators_case = cases.all.pop()


@cases
def class_that_says_otherwise(x):
    c = Claims(int)
    return x + 1, isinstance(c, int), isinstance(c, str), isinstance(c, Claims), isinstance(c, (str, int))


@cases(args=lambda: (Slotted(),))
def slots_take_no_other_names(x, s):
    try:
        s.c = 1
    except AttributeError as e:
        first = str(e)
    try:
        s.b = 1
    except AttributeError as e:
        return x + 1, first, str(e)


@cases(breaks=1)
def a_key_of_a_string_s_hash(x):
    d = {OneHash("attr"): 0}
    return x + 1, d.get("attr")


@cases
def attributes_of_builtin_containers(x):
    return x + 1, [].__hash__, {}.__hash__, hasattr([], "__hash__")


@cases(breaks=1)
def computed_strings_are_not_literals(x):
    a = "a" + str(1)
    return x + 1, a is ONE, a == ONE


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_case(case: Case) -> None:
    check(case)


def test_operators_of_another_type_are_left_to_cpython():
    fn = operators_case.fn
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert outcome(compiled, (torch.ones(2),)) == outcome(fn, (torch.ones(2),))


def test_a_module_that_reads_its_own_attributes_is_not_asked():
    log = []

    class Logged(types.ModuleType):
        def __getattribute__(self, name):
            log.append(name)
            return types.ModuleType.__getattribute__(self, name)

    def use(x, m):
        m.a = 1
        return x + m.a

    module = Logged("logged")
    compiled = godynamo.optimize(use)
    for _ in range(2):
        log.clear()
        assert compiled(torch.ones(2), module).tolist() == [2.0, 2.0]
        assert log == ["a"]


def test_the_name_of_a_class_is_guarded():
    class Named:
        pass

    compiled = godynamo.optimize(lambda x: (x + 1, Named.__name__))
    assert compiled(torch.ones(1))[1] == "Named"
    Named.__name__ = "Other"
    assert compiled(torch.ones(1))[1] == "Other"


def set_trace(trace):
    sys.settrace(trace)
    sys._getframe().f_back.f_trace = trace


def traced(x, trace):
    y = x + 1
    set_trace(trace)
    y = y + 1
    sys.settrace(None)
    return y


def caller_of_traced(x, trace):
    y = traced_by_a_callee(x + 1, trace)
    return y * 2


def traced_by_a_callee(x, trace):
    set_trace(trace)
    return x + 1


@pytest.mark.parametrize("fn", [traced, traced_by_a_callee, caller_of_traced])
def test_events_from_a_callee_that_sets_them(fn):
    events = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename == __file__:
            events.append((frame.f_code.co_name, frame.f_lineno, event))
        return trace

    def run(fn):
        events.clear()
        try:
            fn(torch.ones(2), trace)
        finally:
            sys.settrace(None)
        return [e for e in events if e[0] != "run"]

    expected = run(fn)
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert run(compiled) == expected
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("cls", [re.Pattern, itertools.count, int])
def test_a_class_that_refuses_changes(cls):
    """Some C types are static, others are heap types that are protected: both raise where the program stores."""

    def fn(x):
        try:
            cls.label = 1
        except TypeError as error:
            return x + 1, str(error)
        return x, None

    x = torch.ones(2)
    for got in (godynamo.optimize("eager")(fn)(x), fn(x)):
        assert torch.equal(got[0], x + 1) and "immutable type" in got[1]
