"""Functions in static and class methods, properties and partials are read at each call; entries keep none alive."""

from __future__ import annotations

import functools
import gc
import weakref

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter


class Held:
    """Referenced by the wrapped functions, to observe how long they live."""


def make_static(held):
    class A:
        @staticmethod
        def f(x):
            assert A and held
            return x + 1

    return A


def make_class_method(held):
    class A:
        @classmethod
        def f(cls, x):
            assert A and held
            return x + 1

    return A


def make_property(held):
    class A:
        @property
        def f(self):
            assert A and held
            return lambda x: x + 1

    return A()


def make_cached_property(held):
    class A:
        @functools.cached_property
        def f(self):
            assert A and held
            return lambda x: x + 1

    return A()


def make_setter(held):
    class A:
        def __init__(self):
            self.seen = []

        def f(self, x):
            self.total = x
            return x + self.seen[-1]

        @property
        def total(self):
            raise AssertionError

        @total.setter
        def total(self, x):
            assert A and held
            self.seen.append(1)

    return A()


def make_partial(held):
    class A:
        pass

    def add(y, x, *, z):
        assert held
        return x + y + z

    A.f = functools.partial(add, 0, z=1)
    return A


def use(a, x):
    return a.f(x) * 2


MAKERS = [make_static, make_class_method, make_property, make_cached_property, make_setter, make_partial]


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_what_they_wrap_dies_with_them(make):
    counter = CompileCounter()
    compiled = godynamo.optimize(use, backend=counter)
    refs = []
    for _ in range(2):
        held = Held()
        refs.append(weakref.ref(held))
        assert compiled(make(held), torch.ones(2)).equal(torch.full((2,), 4.0))
        del held
        gc.collect()
    assert [r() for r in refs] == [None, None]
    assert counter.op_count >= 2
    assert not counter.frame_count > 2


def test_code_dies_with_its_function():
    def use(f, x):
        return x + 1, f.__code__.co_name, f.__name__

    compiled = godynamo.optimize(use)
    for _ in range(2):
        f = eval("lambda x: x")
        assert compiled(f, torch.ones(1)) == (2, "<lambda>", "<lambda>")
        code = weakref.ref(f.__code__)
        del f
        assert code() is None


def test_another_function_in_the_same_wrapper_is_another_translation():
    class A:
        @staticmethod
        def f(x):
            return x + 1

    compiled = godynamo.optimize(use)
    assert compiled(A, torch.ones(1)).item() == 4
    A.f = staticmethod(lambda x: x + 2)
    assert compiled(A, torch.ones(1)).item() == 6
    A.f = classmethod(lambda cls, x: x + 3)
    assert compiled(A, torch.ones(1)).item() == 8
    A.f = staticmethod(torch.neg)
    assert compiled(A, torch.ones(1)).item() == -2
    A.f = staticmethod(torch.exp)
    assert compiled(A, torch.zeros(1)).item() == 2
    A.f = property(lambda self: 1)  # read from the class, a property is itself
    with pytest.raises(TypeError, match="'property' object is not callable"):
        compiled(A, torch.ones(1))


def test_a_property_that_gets_another_getter():
    class A:
        @property
        def f(self):
            return lambda x: x + 1

    compiled = godynamo.optimize(use)
    assert compiled(A(), torch.ones(1)).item() == 4
    A.f = A.f.getter(lambda self: lambda x: x + 2)
    assert compiled(A(), torch.ones(1)).item() == 6
    A.f = property()
    with pytest.raises(AttributeError, match="has no getter"):
        compiled(A(), torch.ones(1))


def test_a_property_that_gets_a_setter():
    class A:
        @property
        def f(self):
            return 1

    def assign(a, x):
        try:
            a.f = 3
        except AttributeError as e:
            return x + 1, str(e)
        return x + 2, ""

    compiled = godynamo.optimize(assign)
    for _ in range(2):
        assert compiled(A(), torch.ones(1)) == (2, f"property 'f' of {A.__qualname__!r} object has no setter")
    seen = []
    A.f = A.f.setter(lambda self, value: seen.append(value))
    for _ in range(2):
        assert compiled(A(), torch.ones(1)) == (3, "")
    assert seen == [3, 3]


def test_partials_of_one_shape_share_an_entry():
    def add(y, x, *, z):
        return x + y + z

    def call(p, q, x):
        return p(x) * 2, p is q

    counter = CompileCounter()
    compiled = godynamo.optimize(call, backend=counter)
    for n in range(3):
        p, q = functools.partial(add, torch.full((1,), float(n)), z=1), functools.partial(add, 1, z=1)
        assert compiled(p, q, torch.ones(1)) == (2 * (n + 2), False)
    assert counter.frame_count == 1
    assert compiled(p, p, torch.ones(1)) == (8, True)
    p.keywords["z"] = 2
    assert compiled(p, q, torch.ones(1)) == (10, False)
    q = functools.partial(add, torch.zeros(1), torch.ones(1), z=1)
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        compiled(q, p, torch.ones(1))
    other = functools.partial(lambda y, x, *, z: x - y - z, torch.ones(1), z=1)
    assert compiled(other, p, torch.ones(1)) == (-2, False)


def test_a_partial_class_that_calls_in_its_own_way():
    class Twice(functools.partial):
        def __call__(self, x):
            return super().__call__(super().__call__(x))

    compiled = godynamo.optimize(lambda p, x: p(x) * 3)
    for p in (Twice(torch.add, 2), functools.partial(torch.add, 2)):
        for _ in range(2):
            assert compiled(p, torch.ones(1)).equal(p(torch.ones(1)) * 3)
