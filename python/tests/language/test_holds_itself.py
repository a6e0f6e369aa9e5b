"""Containers that contain themselves, in every operation that traverses its arguments."""

from __future__ import annotations

import copy
import enum
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo


def a_list() -> Any:
    held: list[Any] = [1, torch.ones(2)]
    held.append(held)
    return held


def a_tuple() -> Any:
    within: list[Any] = []
    held = (1, within)
    within.append(held)
    return held


def a_dict() -> Any:
    held: dict[str, Any] = {"a": 1}
    held["d"] = held
    return held


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "an operand": torch.add,
    "a sequence of operands": lambda x, o: torch.stack(o),
    "a keyword": lambda x, o: torch.sum(x, dim=o),
    "sizes": lambda x, o: x.view(o),
    "a subscript": lambda x, o: x[o],
    "an operator": lambda x, o: x * o,
    "text": lambda x, o: f"{o}",
    "itself": lambda x, o: len(copy.deepcopy(o)),
    "sought": lambda x, o: o in o,
    "compared": lambda x, o: o < o,
    "a tree": lambda x, o: torch.utils._pytree.tree_map(lambda v: v, o),
    "after a split": lambda x, o: (godynamo.graph_break(), len(o))[1],
}


def outcome(call: Callable[..., Any], make: Callable[[], Any]) -> Any:
    try:
        result = call(torch.ones(2), make())
    except Exception as error:
        return type(error), str(error).split("0x")[0]
    return type(result), repr(result)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("make", [a_list, a_tuple, a_dict])
def test_a_container_that_holds_itself(make: Callable[[], Any], operation: str) -> None:
    def f(x: Any, o: Any) -> Any:
        return OPERATIONS[operation](x, o)

    assert outcome(godynamo.optimize(f), make) == outcome(f, make)


def test_a_member_whose_value_only_equals_the_one_sought() -> None:
    class Named(int):
        pass

    class Odd(enum.Enum):
        A = Named(7)
        B = True
        C = 2.0

    def f(x: Any, v: Any) -> Any:
        return x + 1, Odd(v)

    compiled = godynamo.optimize(f)
    for v in (7, Named(7), True, 1, 2, 2.0):
        assert compiled(torch.ones(1), v)[1] is Odd(v)


def test_an_ordered_dicts_methods_ask_what_a_subclass_overrides() -> None:
    class Closed(OrderedDict):  # type: ignore[type-arg]
        __contains__ = None  # type: ignore[assignment]

    def f(x: Any, d: Any) -> Any:
        return x + 1, d.setdefault("k", 3)

    assert outcome(godynamo.optimize(f), lambda: Closed(k=1)) == outcome(f, lambda: Closed(k=1))
