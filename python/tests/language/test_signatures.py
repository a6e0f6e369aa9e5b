"""inspect.signature in captured code: computed while translating, with guards on its inputs."""

from __future__ import annotations

import enum
import functools
import inspect

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


def plain(x, scale=2, *rest, flag=True, **more):
    return x * scale


@functools.wraps(plain)
def wrapper(*args, **kwargs):
    return plain(*args, **kwargs)


class Layer(torch.nn.Module):
    def chunk(self, hidden, mask=None):
        return hidden + 1

    def forward(self, x):
        if len(inspect.signature(self.chunk).parameters) != 2:
            raise ValueError("parameters")
        return self.chunk(x)


@cases
def parameters(x):
    sig = inspect.signature(plain)
    names = [name for name in sig.parameters]
    return x + len(sig.parameters), names, list(sig.parameters.keys()), "flag" in sig.parameters, "no" in sig.parameters


@cases
def kinds_and_defaults(x):
    p = inspect.signature(plain).parameters
    keyword = [n for n, q in p.items() if q.kind is inspect.Parameter.KEYWORD_ONLY or q.kind == q.VAR_KEYWORD]
    return x * p["scale"].default, keyword, p["x"].default is inspect.Parameter.empty, p["flag"].name, p.get("none")


@cases
def follows_wrapped(x):
    return wrapper(x, 3), len(inspect.signature(wrapper).parameters)


@cases(args=lambda: (Layer(),))
def method_of_a_module(x, layer):
    return layer(x)


@cases
def leaves(x):
    sig = inspect.signature(plain)
    return x + 1, str(sig), sig.parameters


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_signature(case: Case):
    check(case)


def test_what_it_rests_on_is_guarded():
    def f(x, a: int = 1, *, b=2):
        return x

    def g(x, a, b, c, d):
        return x

    def told(x, fn):
        return x + 1, str(inspect.signature(fn))

    compiled, x = godynamo.optimize(told), torch.ones(2)
    changes = [
        ("__defaults__", (7,)),
        ("__kwdefaults__", {"b": 5}),
        ("__annotations__", {"x": str}),
        ("__code__", g.__code__),
        ("__signature__", inspect.signature(plain)),
        ("__wrapped__", g),
    ]
    for name, value in changes:
        assert compiled(x, f)[1] == told(x, f)[1]
        setattr(f, name, value)
        assert compiled(x, f)[1] == told(x, f)[1], name
    f.__annotations__["a"] = bytes
    assert compiled(x, f)[1] == told(x, f)[1]


@functools.singledispatch
def dispatching(a, b=1):
    return a


class Made:
    def __init__(self, x, y: int = 1):
        pass


class MadeFurther(Made):
    def __new__(cls, x, **options):
        return super().__new__(cls)


class Signed:
    __signature__ = inspect.Signature()


def parameters_of(x, obj):
    found = inspect.signature(obj)
    return x + len(found.parameters), str(found), list(found.parameters)


@pytest.mark.parametrize("obj", [dispatching, Made, MadeFurther, torch.nn.Linear], ids=lambda obj: obj.__name__)
def test_signatures_of_classes_and_dispatching_functions(obj):
    x = torch.ones(2)
    expected = parameters_of(x, obj)
    w = godynamo.optimize(parameters_of)
    for _ in range(2):
        y, *rest = w(x, obj)
        assert torch.equal(y, expected[0]) and tuple(rest) == expected[1:]
    assert godynamo.explain(parameters_of)(x, obj).graph_break_count == 0


@pytest.mark.parametrize("obj", [Signed, int, type, enum.Enum], ids=lambda obj: obj.__name__)
def test_signatures_that_may_run_code_are_cpythons(obj):
    def run(fn):
        try:
            return fn(torch.ones(2), obj)[1:]
        except Exception as error:
            return type(error), str(error)

    assert run(godynamo.optimize(parameters_of)) == run(parameters_of)


def test_a_constructor_that_is_replaced():
    class Changes:
        def __init__(self, a):
            pass

    w = godynamo.optimize(parameters_of)
    x = torch.ones(2)
    assert w(x, Changes)[1:] == ("(a)", ["a"])
    Changes.__init__.__defaults__ = (1,)
    assert w(x, Changes)[1:] == ("(a=1)", ["a"])
    Changes.__init__ = lambda self, b, c: None
    assert w(x, Changes)[1:] == ("(b, c)", ["b", "c"])


def test_views_of_parameters_have_the_types_of_cpython():
    signature = inspect.signature(plain)

    def views(x):
        p = signature.parameters
        return p.keys(), p.values(), p.items(), p.copy(), x + 1

    assert [type(v) for v in godynamo.optimize(views)(torch.ones(2))] == [type(v) for v in views(torch.ones(2))]
