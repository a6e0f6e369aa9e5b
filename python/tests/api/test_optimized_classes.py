"""optimize(cls) and compile(cls) return the class itself, as torch.compile does; calls of instances are optimized."""

from __future__ import annotations

import copy
import io
import pickle
import types

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter

X = torch.arange(4.0)


@godynamo.optimize
class Scaled(torch.nn.Module):
    def __init__(self, scale=2.0):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return (x * self.scale).relu() + x.shape[0]


@godynamo.optimize
class Adder:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x + self.n

    def other(self, x):
        return x * self.n


class Sub(Adder):
    def __call__(self, x):
        return super().__call__(x) * 2


class SubModule(Scaled):
    def forward(self, x):
        return super().forward(x) - 1


def test_it_is_the_class():
    for cls in (Scaled, Adder):
        assert isinstance(cls, type)
        assert godynamo.optimize(cls) is cls
        assert isinstance(cls(3.0), cls)
    assert issubclass(SubModule, torch.nn.Module)
    assert torch.nn.Module.__call__ is not Scaled.__call__


@pytest.mark.parametrize("whole", [False, True], ids=["inline", "whole graph"])
def test_calls_of_instances_are_captured(whole):
    counter = CompileCounter()

    class Model(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n = n

        def forward(self, x):
            return x * self.n

    class Plain:
        def __call__(self, x):
            return x * 3

    for cls, args, n in ((Model, (2,), 2), (Plain, (), 3)):
        before = counter.frame_count
        assert godynamo.optimize(cls, backend=counter if whole else "eager") is cls
        for _ in range(3):
            assert torch.equal(cls(*args)(X), X * n)
        assert counter.frame_count - before == whole
        assert len(godynamo.cache_entries(cls.__call__)) == 1


def test_values_hooks_subclasses_and_methods():
    assert torch.equal(Scaled(3.0)(X), (X * 3).relu() + 4)
    assert torch.equal(SubModule(3.0)(X), (X * 3).relu() + 3)
    assert torch.equal(Adder(1)(X), X + 1)
    assert torch.equal(Sub(1)(X), (X + 1) * 2)
    assert torch.equal(Adder(5).other(X), X * 5)
    model, seen = Scaled(), []
    model.register_forward_hook(lambda *_: seen.append(1))
    model(X)
    model(X)
    assert seen == [1, 1]
    model(X).sum().backward()
    assert model.scale.grad is not None


def test_an_instance_inside_of_what_is_captured_and_optimized_again():
    model, adder = Scaled(), Adder(2)

    def fn(x):
        return adder(model(x)) + 1

    wanted = (X * 2).relu() + 4 + 2 + 1
    assert torch.equal(godynamo.optimize(fn, nopython=True)(X), wanted)
    assert torch.equal(godynamo.optimize(model)(X) + 3, wanted)
    assert torch.equal(godynamo.optimize(adder)(X), X + 2)
    assert torch.equal(torch.nn.Sequential(model, Scaled(1.0))(X), Scaled(1.0)(model(X)))


def test_copies_pickles_and_state():
    for made in (Scaled(3.0), Adder(3)):
        for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert type(other) is type(made)
            assert torch.equal(other(X), made(X))
    assert pickle.loads(pickle.dumps(Scaled)) is Scaled
    assert list(Scaled().state_dict()) == ["scale"]
    torch.save(Scaled(), io.BytesIO())


def test_other_forms():
    class Callable:
        __call__ = staticmethod(lambda x: x + 1)

    class NoCall:
        pass

    @godynamo.optimize(backend=CompileCounter())
    class Decorated:
        def __call__(self, x):
            return x + 1

    assert torch.equal(godynamo.optimize(Callable)()(X), X + 1)
    assert godynamo.optimize(NoCall) is NoCall
    assert not callable(NoCall())
    assert torch.equal(Decorated()(X), X + 1)
    assert godynamo.compile(Adder, backend="eager") is Adder
    plain = type("Plain", (), {"__call__": lambda self, x: x})
    call = plain.__call__
    assert godynamo.optimize(plain, disable=True) is plain
    assert plain.__call__ is call


@pytest.mark.parametrize("cls", [bool, list, int, object, type, torch.Size, types.FunctionType, CompileCounter])
def test_what_is_refused(cls):
    for optimize in (godynamo.optimize, lambda c: godynamo.compile(c, backend="eager"), godynamo.optimize()):
        with pytest.raises(TypeError, match="builtin type|instance of the backend"):
            optimize(cls)
