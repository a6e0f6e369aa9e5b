"""Operators between builtin values and instances of their subclasses: CPython's order of the types' slots."""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

LOG: list[str] = []
OPERATORS = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "matmul": operator.imatmul,
    "truediv": operator.itruediv,
    "floordiv": operator.ifloordiv,
    "mod": operator.imod,
    "pow": operator.ipow,
    "lshift": operator.ilshift,
    "rshift": operator.irshift,
    "and": operator.iand,
    "or": operator.ior,
    "xor": operator.ixor,
    "divmod": divmod,
}
PLAIN = {n: getattr(operator, f"__{n}__") for n in OPERATORS if n != "divmod"} | {"divmod": divmod}
Pair = namedtuple("Pair", "a b")


class Thing:
    def __repr__(self) -> str:
        return "Thing()"


BASES: list[tuple[Any, ...]] = [
    (Thing,),
    (int, 3),
    (float, 1.5),
    (complex, 2j),
    (str, "a"),
    (bytes, b"a"),
    (set, [1]),
    (frozenset, [1]),
    (deque, [1]),
    (dict, {1: 2}),
    (OrderedDict, {1: 2}),
    (defaultdict, int),
    (list, [1]),
    (tuple, (1,)),
    (Pair, 1, 2),
]
VALUES: list[Callable[[], Any]] = [
    lambda: 5,
    lambda: True,
    lambda: 2.5,
    lambda: 1j,
    lambda: "a",
    lambda: b"a",
    lambda: {1, 2},
    lambda: frozenset([1]),
    lambda: {1: 3},
    lambda: {1: 3}.keys(),
    lambda: [1],
    lambda: (1,),
    lambda: Pair(1, 2),
]


def subclass(name: str, base: type, which: str) -> type:
    """Return a subclass with an operator's left, reflected or in-place method, which may refuse (?) or be None (!)."""

    def method(full: str, result: Any) -> Callable[..., Any]:
        def call(self: Any, other: Any) -> Any:
            LOG.append(full)
            return result

        return call

    refuses = which.endswith("?")
    names = {"l": f"__{name}__", "r": f"__r{name}__", "i": f"__i{name}__"}
    made = [names[w] for w in which.strip("?!")]
    if which.endswith("!"):
        return type("C", (base,), dict.fromkeys(made))
    return type("C", (base,), {full: method(full, NotImplemented if refuses else full) for full in made})


def outcome(call: Callable[..., Any], left: Any, right: Any) -> Any:
    LOG.clear()
    try:
        _, result = call(torch.ones(2), left, right)
        said: Any = type(result).__name__, repr(result), result is left, repr(left)
    except Exception as error:
        said = type(error).__name__, str(error)
    return said, list(LOG)


def differing(operation: Callable[..., Any], name: str, which: str) -> list[Any]:
    """Return the cases in which an operation on builtin values and instances of subclasses differs from CPython."""

    def fn(x: torch.Tensor, left: Any, right: Any) -> Any:
        return x + 1, operation(left, right)

    different = []
    for base, *args in BASES:
        cls = subclass(name, base, which)
        for value in VALUES:
            for make in (lambda: (value(), cls(*args)), lambda: (cls(*args), value())):
                godynamo.reset()
                expected, got = outcome(fn, *make()), outcome(godynamo.optimize(fn), *make())
                if expected != got:
                    different.append((*map(repr, make()), base.__name__, expected, got))
    return different


@pytest.mark.parametrize("which", ["r", "l", "i", "lr?", "lri", "r!", "l!", "i!"])
@pytest.mark.parametrize("name", OPERATORS)
def test_slots_come_in_cpythons_order(name: str, which: str) -> None:
    different = differing((OPERATORS if "i" in which else PLAIN)[name], name, which)
    assert not different, different


@pytest.mark.parametrize("which", ["l", "lr?"])
@pytest.mark.parametrize("name", ["add", "mul", "or", "sub"])
def test_an_inherited_slot_in_place_comes_before_the_other_methods(name: str, which: str) -> None:
    """A subclass of list inherits ``+=`` as a number slot, which comes before its own ``__add__``."""
    different = differing(OPERATORS[name], name, which)
    assert not different, different


#: comparisons and their reflected forms
REFLECTED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


@pytest.mark.parametrize("which", ["r", "l", "r?", "l?"])
@pytest.mark.parametrize("name", REFLECTED)
def test_comparisons_come_in_cpythons_order(name: str, which: str) -> None:
    asked = REFLECTED[name] if "r" in which else name
    different = differing(getattr(operator, name), asked, which.replace("r", "l"))
    assert not different, different
