"""Functions and modules of torch.compile and godynamo.run in captured code; subclasses of a class."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo._user.optimize import transparent
from harness.capture import break_reasons, check, describe, nb, no_translation, translations

X = torch.ones(3)


def double(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return x * by


def triple(x: torch.Tensor, by: float = 3.0) -> torch.Tensor:
    return x * by


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


class Methods:
    scale = 3.0

    @torch.compile(backend="eager")
    def compiled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale

    @godynamo.run
    def ran(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def compiled_module() -> Any:
    module = Model()
    module.compile(backend="eager")
    return module


WRAPPED = {
    "run": lambda: godynamo.run(double),
    "run of optimize": lambda: godynamo.run(godynamo.optimize(double)),
    "run of a module": lambda: godynamo.run(Model()),
    "compile": lambda: torch.compile(double, backend="eager"),
    "compile of compile": lambda: torch.compile(torch.compile(double, backend="eager"), backend="eager"),
    "compile of a module": lambda: torch.compile(Model(), backend="eager"),
    "compile of a method": lambda: torch.compile(Model().forward, backend="eager"),
    "module.compile": compiled_module,
    "compiled method": lambda: Methods().compiled,
    "run method": lambda: Methods().ran,
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("make", WRAPPED.values(), ids=WRAPPED)
def test_one_graph(make, whole):
    wrapped = make()

    def f(x):
        return wrapped(x + 1) + 1

    godynamo.reset()
    backend: Any = nb() if whole else "eager"
    g = godynamo.optimize(f, backend=backend)
    with translations(1):
        for _ in range(3):
            assert describe(g(X)) == describe(f(X))
    assert not break_reasons()
    assert not whole or len(backend) == 1


@pytest.mark.parametrize("wrap", [godynamo.run, lambda f: torch.compile(f, backend="eager")])
def test_another_function_is_seen(wrap):
    table = {"f": wrap(double)}

    def f(x):
        return table["f"](x, by=4.0) + table["f"](x)

    g = godynamo.optimize(f)
    assert describe(g(X)) == describe(f(X))
    with no_translation():
        assert describe(g(X)) == describe(f(X))
    table["f"] = wrap(triple)
    assert describe(g(X)) == describe(f(X))
    wrapped = table["f"]
    cell = wrapped.__closure__[wrapped.__code__.co_freevars.index("fn")]
    cell.cell_contents = double
    assert describe(g(X)) == describe(f(X))
    assert not break_reasons()


def test_a_change_of_the_module_in_a_compiled_module():
    module = Model()
    compiled = torch.compile(module, backend="eager")

    def f(x):
        return compiled(x) * 2

    g = godynamo.optimize(f)
    assert describe(g(X)) == describe(f(X))
    compiled.linear = nn.Linear(3, 3)
    assert describe(g(X)) == describe(f(X))
    calls: list[Any] = []
    compiled.register_forward_hook(lambda *_: calls.append(1))
    assert describe(g(X)) == describe(f(X))
    assert len(calls) == 2
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: calls.append(2))
    try:
        with pytest.warns(UserWarning, match="global hooks"):
            g(X)
    finally:
        handle.remove()
    assert set(calls[2:]) == {1, 2}


def test_errors_of_the_wrapped_function():
    def fails(x):
        raise ValueError("no")

    for wrapped in (godynamo.run(fails), torch.compile(fails, backend="eager")):

        def f(x, wrapped=wrapped):
            try:
                return wrapped(x)
            except ValueError as e:
                return x + len(str(e))

        check(f, X)
        with pytest.raises(TypeError):
            godynamo.optimize(lambda x, wrapped=wrapped: wrapped(x, 1, 2, 3))(X)


def test_a_disabled_function_is_still_left_to_cpython():
    disabled = torch._dynamo.disable(double)
    godynamo.reset()
    check(lambda x: disabled(x) + 1, X)
    assert break_reasons()


def test_a_served_program_keeps_its_compiler():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    compiled = torch.compile(double, backend=backend)

    def f(x):
        return compiled(x) + 1

    godynamo.reset()
    g = transparent(godynamo.optimize())(f)
    for _ in range(2):
        assert torch.equal(g(X), X * 2 + 1)
    assert len(graphs) == 1 and break_reasons()


# ---- subclasses ------------------------------------------------------------------------------------------------------


class Base:
    pass


class First(Base):
    scale = 2.0


class Second(Base):
    scale = 3.0


def by_subclasses(x: torch.Tensor, cls: type) -> Any:
    for c in cls.__subclasses__():
        x = x * c.scale  # type: ignore[attr-defined]
    return x, len(cls.__subclasses__()), cls.__subclasses__() is cls.__subclasses__()


def test_subclasses_are_one_graph():
    godynamo.reset()
    g = godynamo.optimize(by_subclasses)
    for cls in (Base, First, Base):
        assert describe(g(X, cls)) == describe(by_subclasses(X, cls))
    assert not break_reasons()
    with no_translation():
        g(X, Base)


def test_a_new_subclass_and_one_that_dies():
    class Root:
        pass

    class Child(Root):
        scale = 5.0

    def count(x):
        return x * len(Root.__subclasses__())

    g, h = godynamo.optimize(count), godynamo.optimize(by_subclasses)
    check(count, X, optimized=g)
    extra: Any = type("Extra", (Root,), {"scale": 7.0})
    check(count, X, optimized=g)
    del extra
    gc.collect()
    assert Root.__subclasses__() == [Child]  # the guards have not kept it alive
    check(count, X, optimized=g)
    for scale in (5.0, 9.0):
        Child.scale = scale
        assert describe(h(X, Root)) == describe(by_subclasses(X, Root))


def test_a_class_that_lists_others():
    class Meta(type):
        def __subclasses__(cls):
            return [First]

    class Own(metaclass=Meta):
        pass

    class Shadowing:
        @classmethod
        def __subclasses__(cls):
            return [Second]

    for cls in (Own, Shadowing):
        check(lambda x, cls=cls: by_subclasses(x, cls)[0], X)
