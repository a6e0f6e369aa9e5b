"""Attributes of functions and code objects: reads are guarded, since all but the closure can be assigned."""

from __future__ import annotations

import functools
import sys

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


@wrapped
def one(x, use_cache=None, *, k=3):
    """Adds one."""
    return x + 1


def args():
    return (one,)


def shadowed():
    """Its __dict__ has names of attributes that a function keeps elsewhere."""


shadowed.__dict__.update({"__name__": 5, "__doc__": 6, "__module__": 7, "other": 8})


@cases(args=lambda: (shadowed,))
def names_that_the_dict_does_not_answer(x, fn):
    return fn.__name__, fn.__doc__, fn.__module__, fn.other, x + 1


@cases(breaks=None)
def copies_of_the_attributes_of_a_class(x):
    def wrapper():
        pass

    functools.update_wrapper(wrapper, type, assigned=("__name__", "__module__"))
    return wrapper.__name__, wrapper.__module__, x + 1


@cases(args=args)
def names(x, fn):
    return fn(x), fn.__name__, fn.__qualname__, fn.__doc__, fn.__module__, fn.__wrapped__.__name__


@cases(args=args)
def code_of_it(x, fn):
    code = fn.__wrapped__.__code__
    place = code.co_varnames.index("use_cache") if "use_cache" in code.co_varnames else None
    return (
        x + place,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_name,
        code.co_flags,
        code.co_consts,
        code.co_freevars,
    )


@cases(args=args)
def defaults(x, fn):
    inner = fn.__wrapped__
    return x + inner.__kwdefaults__["k"], inner.__defaults__, inner.__closure__, len(fn.__closure__)


@cases(args=args)
def same_code(x, fn):
    return x + 1 if fn.__code__ is one.__code__ and fn.__code__ == one.__code__ else x


@cases
def the_interpreter(x):
    if sys.version_info >= (3, 8) and sys.version_info[0] == 3 and sys.version_info.major == 3:
        x = x + 1
    return x, sys.version_info, sys.flags.optimize, tuple(sys.version_info), isinstance(sys.version_info, tuple)


@cases(args=args)
def missing(x, fn):
    return x + 1, getattr(fn, "nothing", 3), hasattr(fn.__wrapped__, "nothing")


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_function_attributes(case: Case):
    check(case)


def tell(x, fn):
    return fn(x), fn.__name__, fn.__qualname__, fn.__doc__, fn.__module__, fn.__defaults__, fn.__code__.co_name


def test_assigned_after_translation():
    def f(x, y=2):
        return x + y

    def other(x, y=2):
        return x - y

    x, compiled = torch.ones(2), godynamo.optimize(tell)
    changes = {
        "__name__": "n",
        "__qualname__": "q",
        "__doc__": "d",
        "__module__": "m",
        "__defaults__": (5,),
        "__code__": other.__code__,
    }
    for name, value in changes.items():
        compiled(x, f)
        setattr(f, name, value)
        got, want = compiled(x, f), tell(x, f)
        assert got[1:] == want[1:] and torch.equal(got[0], want[0]), name


@pytest.mark.parametrize("change", [{"__defaults__": (5, 6)}, {"__kwdefaults__": {"only": 7}}])
@pytest.mark.parametrize("first", [{}, {"__defaults__": (1,)}, {"__kwdefaults__": {"other": 1}}])
def test_a_parameter_that_gets_a_default(first, change):
    def called(a, b, *, only=0, other=0):
        return a, b, only, other

    called.__kwdefaults__ = None
    for name, value in first.items():
        setattr(called, name, value)

    def fn(x):
        said = []
        for call in (lambda: called(), lambda: called(1, 2), lambda: called(1, only=2, other=3)):
            try:
                said.append(call())
            except TypeError as error:
                said.append(str(error))
        return x + 1, said

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    for name, value in change.items():
        setattr(called, name, value)
    assert str(fast(x)) == str(fn(x))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PyFunction_SetVectorcall is new in 3.12")
def test_a_call_runs_what_an_extension_put_in_the_code_s_place():
    """CPython runs the C function instead, also in calls that are translated already."""
    testcapi = pytest.importorskip("_testcapi", reason="this CPython has no test modules")

    def helper(x):
        return x + 1

    class Has:
        def __getattribute__(self, name):
            return name

    has = Has()

    def calls(x):
        return x * 2, helper(x), has.attribute

    x, counter = torch.ones(2), godynamo.testing.CompileCounter()
    optimized = godynamo.optimize(calls, backend=counter)
    assert [optimized(x)[1].equal(x + 1) for _ in range(3)] == [True] * 3 and counter.frame_count == 1
    testcapi.function_setvectorcall(Has.__getattribute__)
    assert [optimized(x)[2] for _ in range(3)] == ["overridden"] * 3
    testcapi.function_setvectorcall(helper)
    assert [optimized(x)[1:] for _ in range(3)] == [("overridden", "overridden")] * 3
    assert optimized(x)[0].equal(x * 2) and counter.frame_count > 1
