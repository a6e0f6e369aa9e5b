"""Lookups on a class: their results, found or not, may change between two calls."""

from __future__ import annotations

import abc
import builtins
import collections.abc
import enum
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C

Case = tuple[Callable[[], types.SimpleNamespace], Callable[..., Any], Callable[[types.SimpleNamespace], Any]]


def classes(**of_c: Any) -> Callable[[], types.SimpleNamespace]:
    """Return a maker of a metaclass M, its class A, C derived from A with these attributes, and an instance c."""

    def make() -> types.SimpleNamespace:
        m = type("M", (type,), {})
        a = m("A", (), {})
        c = m("C", (a,), dict(of_c))
        return types.SimpleNamespace(M=m, A=a, C=c, c=c())

    return make


def plain() -> types.SimpleNamespace:
    """Return classes of the usual metaclass, an abstract class, and a descriptor's class D."""
    d = type("D", (), {"__get__": lambda self, obj, owner: ("got", obj is None)})
    c = type("C", (), {"d": d(), "k": 1, "__doc__": "first", "hello": lambda self: "hello"})
    return types.SimpleNamespace(C=c, D=d, c=c(), Shape=abc.ABCMeta("Shape", (), {}))


def color() -> types.SimpleNamespace:
    e = enum.Enum("Color", "RED BLUE")
    return types.SimpleNamespace(C=e, c=e.RED)


def nameless() -> types.SimpleNamespace:
    """Return an enum class whose member has lost its attributes."""
    env = color()
    vars(env.c).clear()
    return env


def sets(where: str, name: str, value: Any) -> Callable[[types.SimpleNamespace], Any]:
    return lambda env: setattr(getattr(env, where), name, value)


def registers(env: types.SimpleNamespace) -> None:
    env.Shape.register(env.C)


def new_metaclass(env: types.SimpleNamespace) -> None:
    env.C.__class__ = type("N", (env.M,), {"hello": lambda cls: "meta", "__len__": lambda cls: 7})


def stored(env: types.SimpleNamespace) -> Any:
    env.c.d = 5
    return env.c.d


CASES: dict[str, Case] = {
    "__getattr__ added": (plain, lambda e: getattr(e.c, "absent", 3), sets("C", "__getattr__", lambda self, n: n)),
    "__new__ added": (
        plain,
        lambda e: type(e.C()).__name__,
        sets("C", "__new__", staticmethod(lambda cls: 13)),
    ),
    "__call__ added": (plain, lambda e: callable(e.c), sets("C", "__call__", lambda self: 1)),
    "hasattr of a function": (plain, lambda e: hasattr(e.c, "hello"), lambda e: delattr(e.C, "hello")),
    "a value becomes a property": (plain, lambda e: e.c.k, sets("C", "k", property(lambda self: "now"))),
    "a descriptor's __set__ added": (plain, stored, sets("D", "__set__", lambda self, obj, v: None)),
    "a descriptor's __get__ taken away": (plain, lambda e: type(e.c.d).__name__, lambda e: delattr(e.D, "__get__")),
    "__doc__": (plain, lambda e: (e.C.__doc__, e.c.__doc__), sets("C", "__doc__", "second")),
    "__module__": (plain, lambda e: e.C.__module__, sets("C", "__module__", "moved")),
    "__qualname__": (plain, lambda e: e.C.__qualname__, sets("C", "__qualname__", "Outer.C")),
    "text of a class": (plain, lambda e: f"{e.C}", sets("C", "__module__", "moved")),
    "name in a message": (plain, lambda e: e.c.absent, sets("C", "__name__", "Renamed")),
    "name in a message of C's": (plain, lambda e: e.c < 3, sets("C", "__name__", "Renamed")),
    "ABC.register": (plain, lambda e: isinstance(e.c, e.Shape), registers),
    "ABC.register, issubclass of a tuple": (plain, lambda e: issubclass(e.C, (int, e.Shape)), registers),
    "__abstractmethods__": (plain, lambda e: type(e.C()).__name__, sets("C", "__abstractmethods__", frozenset(["k"]))),
    "metaclass gains __bool__": (classes(), lambda e: bool(e.C), sets("M", "__bool__", lambda cls: False)),
    "metaclass gains __len__": (classes(), lambda e: not e.C, sets("M", "__len__", lambda cls: 0)),
    "metaclass gains __eq__": (classes(), lambda e: e.C == e.A, sets("M", "__eq__", lambda cls, other: True)),
    "metaclass gains __repr__": (classes(), lambda e: f"{e.C!r}"[:3], sets("M", "__repr__", lambda cls: "<M>")),
    "metaclass gains __instancecheck__": (
        classes(),
        lambda e: isinstance(3, e.C),
        sets("M", "__instancecheck__", lambda cls, obj: True),
    ),
    "metaclass gains __call__": (
        classes(),
        lambda e: type(e.C()).__name__,
        sets("M", "__call__", lambda cls, *a: 17),
    ),
    "metaclass gains __getattr__": (
        classes(),
        lambda e: getattr(e.C, "absent", 1),
        sets("M", "__getattr__", lambda cls, name: "meta " + name),
    ),
    "another metaclass": (classes(), lambda e: getattr(e.C, "hello", 1) == 1, new_metaclass),
    "another metaclass, truth": (classes(), lambda e: type(e.C).__name__, new_metaclass),
    "a member's value": (color, lambda e: e.c.value, sets("c", "_value_", 9)),
    "a member's name": (color, lambda e: (e.c.name, str(e.c)), sets("c", "_name_", "PINK")),
    "a member's own attribute": (color, lambda e: getattr(e.c, "extra", 0), sets("c", "extra", 4)),
    "a member that gets a value": (nameless, lambda e: e.c.value, sets("c", "_value_", 7)),
    "an enum's function": (color, lambda e: repr(e.c), sets("C", "__repr__", lambda self: "mine")),
}


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    try:
        x, value = fn(*args)
        return x.tolist(), value
    except Exception as error:
        return type(error).__name__, str(error)


def run(case: Case, wrap: Callable[[Any], Any]) -> list[Any]:
    make, question, change = case
    env = make()

    def f(x: torch.Tensor) -> Any:
        y = x * 2
        return y + 1, question(env)

    fn, x = wrap(f), torch.ones(2)
    results = [outcome(fn, x), outcome(fn, x)]
    change(env)
    return [*results, outcome(fn, x), outcome(fn, x)]


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen(name: str) -> None:
    errors: list[Any] = []
    before = _C.set_callback("internal_error", errors.append)
    try:
        expected, got = run(CASES[name], lambda fn: fn), run(CASES[name], godynamo.optimize)
    finally:
        _C.set_callback("internal_error", before)
    assert got == expected
    assert expected[0] != expected[2], "the change changes nothing"
    assert not errors


FLAGS = {
    "cudnn.benchmark": (torch.backends.cudnn, "benchmark"),
    "cudnn.allow_tf32": (torch.backends.cudnn, "allow_tf32"),
    "cudnn.deterministic": (torch.backends.cudnn, "deterministic"),
    "matmul.allow_tf32": (torch.backends.cuda.matmul, "allow_tf32"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_of_torch_backends_is_guarded(name: str) -> None:
    owner, flag = FLAGS[name]

    @godynamo.optimize
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if getattr(owner, flag) else x - 1

    before = getattr(owner, flag)
    try:
        for value in (True, True, False, False, True):
            with torch.backends.__allow_nonbracketed_mutation():  # torch.testing locks the flags for the whole process
                setattr(owner, flag, value)
            assert f(torch.zeros(2)).tolist() == [1.0 if value else -1.0] * 2
    finally:
        with torch.backends.__allow_nonbracketed_mutation():
            setattr(owner, flag, before)


def test_a_class_used_as_a_counter_is_translated_once() -> None:
    class Counted:
        calls = 0

        def step(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    c = Counted()
    fn = godynamo.optimize(lambda x: c.step(x) + 1)
    fn(torch.ones(2))
    before = _C.counters()["translations"]
    for _ in range(3):
        Counted.calls += 1
        fn(torch.ones(2))
    assert _C.counters()["translations"] == before


def test_builtins_are_those_of_the_function() -> None:
    """A function keeps the builtins that its globals had when it was created; f creates a function at each call."""
    text = (
        "import torch\n"
        "def f(x):\n"
        "    y = x + len([1, 2])\n"
        "    torch._dynamo.graph_break()\n"
        "    return y + len([3]), [len(v) for v in ([1], 'ab')]\n"
    )

    def calls(wrap: Callable[[Any], Any]) -> list[Any]:
        ns: dict[str, Any] = {}
        exec(text, ns)
        fn, out = wrap(ns["f"]), []
        for replaced in (False, False, True, True):
            if replaced:
                ns["__builtins__"] = {**vars(builtins), "len": lambda v: 99}
            out.append(outcome(fn, torch.ones(2)))
        return out

    assert calls(godynamo.optimize) == calls(lambda fn: fn)


def test_isinstance_of_an_abstract_class_reads_class_of_the_instance() -> None:
    class Odd:
        def __getattribute__(self, name: str) -> Any:
            return "all " + name

    def f(x: torch.Tensor, o: Any) -> Any:
        return x + 1, isinstance(o, collections.abc.Sized)

    assert outcome(godynamo.optimize(f), torch.ones(2), Odd()) == outcome(f, torch.ones(2), Odd())


def test_a_partial_of_what_cannot_be_called_raises_in_its_place() -> None:
    def f(x: torch.Tensor, o: Any) -> Any:
        y, r = x * 2, []
        try:
            r.append(functools.partial(o, 1)())
        except TypeError as error:
            r.append(str(error))
        return y, r

    for value in (3, object(), "text"):
        assert outcome(godynamo.optimize(f), torch.ones(2), value) == outcome(f, torch.ones(2), value)
