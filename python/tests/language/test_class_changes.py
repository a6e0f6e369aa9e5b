"""Classes changed after a frame was translated: bases assigned, special methods added, replaced or removed."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C
from harness.cases import check_calls

#: the result of a case: the function, and the classes that are changed
Made = tuple[Callable[[torch.Tensor], Any], types.SimpleNamespace]
Change = Callable[[types.SimpleNamespace], Any]


def family(first: dict[str, Any], second: dict[str, Any]) -> types.SimpleNamespace:
    """Return classes A and B with these attributes, C derived from A, and an instance c of C."""
    a, b = type("A", (), dict(first)), type("B", (), dict(second))
    c = type("C", (a,), {})
    return types.SimpleNamespace(A=a, B=b, C=c, c=c())


def rebased(env: types.SimpleNamespace) -> None:
    env.C.__bases__ = (env.B,)


def added(where: str, name: str, value: Any) -> Change:
    return lambda env: setattr(getattr(env, where), name, value)


def asks_instance() -> Made:
    env = family({}, {})

    def f(x: torch.Tensor) -> Any:
        if isinstance(env.c, env.A):
            x = x + 1
        if isinstance(env.c, env.B):
            x = x + 2
        return x

    return f, env


def asks_class() -> Made:
    env = family({}, {})

    def f(x: torch.Tensor) -> Any:
        found = env.C.__mro__
        return x + (4 if issubclass(env.C, env.A) else 8), [k.__name__ for k in found], env.C.__base__

    return f, env


def asks_absent() -> Made:
    env = family({}, {"__getattr__": lambda self, name: 7})

    def f(x: torch.Tensor) -> Any:
        try:
            return x + env.c.nothing
        except AttributeError:
            return x - 1

    return f, env


def asks_truth() -> Made:
    env = family({}, {"__bool__": lambda self: False})
    return (lambda x: x + 1 if env.c else x - 1), env


def iterates() -> Made:
    env = family({}, {"__iter__": lambda self: iter([1, 2])})

    def f(x: torch.Tensor) -> Any:
        try:
            for i in env.c:
                x = x + i
        except TypeError:
            x = x - 1
        return x

    return f, env


def reads_descriptor() -> Made:
    descriptor = type("D", (), {"__get__": lambda self, owner, cls: 3})
    env = family({"d": descriptor()}, {})
    env.D = descriptor
    env.c.__dict__["d"] = 4
    return (lambda x: x + env.c.d), env


def compares() -> Made:
    env = family({}, {"__eq__": lambda self, other: True, "__hash__": lambda self: 1})
    env.other = env.C()
    return (lambda x: (x + 1 if env.c == env.other else x - 1, callable(env.c))), env


def asks_super() -> Made:
    env = types.SimpleNamespace()

    class Top:
        def m(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    class Middle(Top):
        pass

    class Bottom(Middle):
        def m(self, x: torch.Tensor) -> torch.Tensor:
            return super().m(x) * 2

    env.A, env.B, env.c = Top, Middle, Bottom()
    return (lambda x: env.c.m(x)), env


def times_ten(self: object, x: torch.Tensor) -> torch.Tensor:
    return x * 10


def gives_five(self: object) -> Iterator[int]:
    return iter([5])


CASES: dict[str, tuple[Callable[[], Made], list[Change]]] = {
    "isinstance": (asks_instance, [rebased]),
    "issubclass, __mro__, __base__": (asks_class, [rebased]),
    "absent attribute, __getattr__ of the new base": (asks_absent, [rebased]),
    "absent attribute, __getattr__ added": (asks_absent, [added("A", "__getattr__", lambda self, name: 5)]),
    "truth by the new base": (asks_truth, [rebased]),
    "truth, __len__ then __bool__ added": (
        asks_truth,
        [added("A", "__len__", lambda self: 0), added("C", "__bool__", lambda self: True)],
    ),
    "iteration": (iterates, [rebased, added("B", "__iter__", gives_five), added("C", "__iter__", None)]),
    "a descriptor becomes one of data": (reads_descriptor, [added("D", "__set__", lambda self, owner, value: None)]),
    "equality": (compares, [rebased, added("C", "__call__", lambda self: None)]),
    "a class between super() and what it found": (asks_super, [added("B", "m", times_ten)]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_changed_class_is_translated_again(name: str) -> None:
    make, changes = CASES[name]
    env = types.SimpleNamespace()

    def fresh() -> Callable[..., Any]:
        nonlocal env
        fn, env = make()
        return fn

    def after(change: Change) -> Callable[[], tuple[Any, ...]]:
        def arguments() -> tuple[Any, ...]:
            change(env)
            return (torch.ones(3),)

        return arguments

    steps = [step for change in changes for step in (after(change), after(unchanged))]
    check_calls(
        fresh,
        [after(unchanged), after(unchanged), *steps],
        graphs=1 + len(changes),
        translations=[1, 0] * (1 + len(changes)),
    )


def unchanged(env: types.SimpleNamespace) -> None:
    """Do not change the class before this call."""


def test_an_unrelated_change_of_a_class_is_no_reason_to_translate() -> None:
    fn, env = asks_truth()
    ours = godynamo.optimize(fn)
    x = torch.ones(3)
    ours(x)
    before = _C.counters()["translations"]
    env.A.counter = 1
    env.C.name = "c"
    assert ours(x).equal(x + 1)
    assert _C.counters()["translations"] == before
