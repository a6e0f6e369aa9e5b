"""An object is freed where a store, a removal or a variable drops its last reference.

Its ``__del__`` runs before the program's next step, in every call, whatever object the translated call had there.
"""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo

DEAD: list[Any] = []


class Mortal:
    """Records its death."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __del__(self) -> None:
        DEAD.append(self.n)


class Holder:
    """Has arbitrary attributes."""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class DictOfOurs(dict):
    pass


class ListOfOurs(list):
    pass


GLOBAL: Any = None


def died() -> list[Any]:
    """Return who died since the last call. A translation that reads the list too early guards that it is empty."""
    seen = list(DEAD)
    DEAD.clear()
    return seen


def store_global(h: Any) -> None:
    global GLOBAL
    GLOBAL = 1


def delete_global(h: Any) -> None:
    global GLOBAL
    del GLOBAL


def store(h: Any) -> None:
    h.a = 1


def delete(h: Any) -> None:
    del h.a


def store_in_dict(h: Any) -> None:
    h.__dict__["a"] = 1


def item(h: Any) -> None:
    h[0] = 1


def last(h: Any) -> None:
    h[-1] = 1


def delete_item(h: Any) -> None:
    del h[0]


def store_slice(h: Any) -> None:
    h[0:1] = [1]


def delete_slice(h: Any) -> None:
    del h[:]


def key(h: Any) -> None:
    h["k"] = 1


def delete_key(h: Any) -> None:
    del h["k"]


def pop_key(h: Any) -> None:
    h.pop("k")


def pop_key_or_none(h: Any) -> None:
    h.pop("k", None)


def pair(h: Any) -> None:
    h[1, 2] = 1


def delete_pair(h: Any) -> None:
    del h[1, 2]


def update(h: Any) -> None:
    h.update(k=1)


def merge(h: Any) -> None:
    h |= {"k": 1}


def append(h: Any) -> None:
    h.append(1)


def append_two(h: Any) -> None:
    h.append(1)
    h.append(2)


def extend(h: Any) -> None:
    h.extend([1, 2])


def pop_variable(h: Any) -> None:
    thing = h.pop()
    thing = None  # noqa: F841


def pop_two(h: Any) -> None:
    first, second = h.pop("k"), h.pop("l")  # noqa: F841


def method(name: str, *args: Any) -> Callable[[Any], None]:
    def call(h: Any) -> None:
        getattr(h, name)(*args)

    call.__name__ = name
    return call


def inside(h: Any) -> None:
    h[0].a = 1


def key_inside(h: Any) -> None:
    h["d"]["k"] = 1


def two_places(h: Any) -> None:
    h.a = None
    h.b = None


def two_lists(h: Any) -> None:
    h.a[0] = None
    h.b.pop()


def global_and_attribute(h: Any) -> None:
    global GLOBAL
    GLOBAL = None
    h.a = None


def shift(h: Any) -> None:
    h.a, h.b = h.b, None


#: a function that drops an object, and one that stores the object there first
PLACES: list[tuple[Callable[[Any], None], Callable[[Any], Any]]] = [
    (store_global, lambda m: globals().update(GLOBAL=m)),
    (delete_global, lambda m: globals().update(GLOBAL=m)),
    (store, lambda m: Holder(a=m)),
    (delete, lambda m: Holder(a=m)),
    (store, Slotted),
    (delete, Slotted),
    (store, lambda m: type("Class", (), {"a": m})),
    (store, lambda m: Holder(a=[m, m])),
    (store, lambda m: Holder(a=[[m], {"x": m}, (m,)])),
    (store_in_dict, lambda m: Holder(a=m)),
    (item, lambda m: [m]),
    (item, lambda m: ListOfOurs([m])),
    (item, lambda m: deque([m])),
    (item, lambda m: {0: m}),
    (last, lambda m: [0, m]),
    (delete_item, lambda m: [m, 1]),
    (store_slice, lambda m: [m]),
    (delete_slice, lambda m: [m]),
    (method("clear"), lambda m: [m]),
    (method("pop"), lambda m: [m]),
    (method("pop", 0), lambda m: [m, 1]),
    (method("pop"), lambda m: deque([m])),
    (method("popleft"), lambda m: deque([m])),
    (method("clear"), lambda m: deque([m])),
    (pop_variable, lambda m: [m]),
    (append, lambda m: deque([m], maxlen=1)),
    (append_two, lambda m: deque([m, 0], maxlen=2)),
    (append_two, lambda m: deque([m, m], maxlen=2)),
    (extend, lambda m: deque([0, m], maxlen=2)),
    (key, lambda m: {"k": m}),
    (key, lambda m: DictOfOurs(k=m)),
    (key, lambda m: OrderedDict(k=m)),
    (key, lambda m: defaultdict(int, k=m)),
    (delete_key, lambda m: {"k": m}),
    (pop_key, lambda m: {"k": m}),
    (pop_key_or_none, lambda m: {"k": m}),
    (pop_two, lambda m: {"k": m, "l": m}),
    (method("popitem"), lambda m: {"k": m}),
    (method("clear"), lambda m: {"k": m}),
    (pair, lambda m: {(1, 2): m}),
    (delete_pair, lambda m: {(1, 2): m}),
    (update, lambda m: {"k": m}),
    (merge, lambda m: {"k": m}),
    (inside, lambda m: [Holder(a=m)]),
    (inside, lambda m: [Slotted(m)]),
    (key_inside, lambda m: {"d": {"k": m}}),
    (two_places, lambda m: Holder(a=m, b=m)),
    (two_lists, lambda m: Holder(a=[m], b=[m])),
    (global_and_attribute, lambda m: (globals().update(GLOBAL=m), Holder(a=m))[1]),
    (shift, lambda m: Holder(a=m, b=m)),
    (shift, lambda m: Holder(a=m, b=1)),
]

KEPT: list[Any] = []


def kept_once(n: int) -> Mortal:
    """Return a Mortal that is also referenced elsewhere in the translated call."""
    m = Mortal(n)
    if n == 0:
        KEPT.append(m)
    return m


#: n → the object that the n-th call drops
VALUES: dict[str, Callable[[int], Any]] = {
    "itself": Mortal,
    "from the second call on": lambda n: Mortal(n) if n else 5,
    "an object before": lambda n: Mortal(n) if n else object(),
    "in a list": lambda n: [Mortal(n)],
    "in a list from the second call on": lambda n: [Mortal(n)] if n else [5],
    "in a tuple": lambda n: (1, Mortal(n)),
    "in an instance from the second call on": lambda n: Holder(a=Mortal(n) if n else 0),
    "held elsewhere at first": kept_once,
}


def deaths(call: Callable[..., Any], put: Callable[[Any], Any], value: str) -> list[Any]:
    out = []
    for n in range(4):
        KEPT.clear()
        gc.collect()
        DEAD.clear()
        h = put(VALUES[value](n))
        out.append((call(torch.ones(1), h)[0], list(DEAD)))
    KEPT.clear()
    return out


@pytest.mark.parametrize("value", VALUES)
def test_what_is_let_go_of_dies_there(value: str) -> None:
    for letting_go, put in PLACES:

        def f(x: Any, h: Any, letting_go: Any = letting_go) -> Any:
            letting_go(h)
            return died(), x + 1

        godynamo.reset()
        assert deaths(godynamo.optimize(f), put, value) == deaths(f, put, value), letting_go.__name__


def an_attribute_and_a_variable(x: Any, h: Any) -> Any:
    thing = h[0]
    godynamo.graph_break()
    h[0] = None
    seen = died()
    del thing
    return [*seen, "then", *died()], x + 1


def two_variables(x: Any, h: Any) -> Any:
    thing = h.pop()
    other = thing
    godynamo.graph_break()
    seen = died()
    thing = None
    seen += ["one", *died()]
    other = None
    assert thing is other
    return [*seen, "both", *died()], x + 1


def rebound(x: Any, h: Any) -> Any:
    thing = h.pop()
    godynamo.graph_break()
    thing = 1
    y = x + thing
    return died(), y


def in_a_loop(x: Any, h: Any) -> Any:
    seen: list[Any] = []
    while h:
        thing = h.pop()
        godynamo.graph_break()
        x = x + (thing is None)
        seen += [*died(), "round"]
    return seen + died(), x + 1


def looked_into(x: Any, h: Any) -> Any:
    thing = h.pop()
    godynamo.graph_break()
    y = x + len(str(getattr(thing, "a", 1)))
    thing = None  # noqa: F841
    return died(), y * 0


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("fn", [an_attribute_and_a_variable, two_variables, rebound, in_a_loop, looked_into])
def test_what_a_variable_lets_go_of_behind_a_split_dies_there(fn: Callable[..., Any], value: str) -> None:
    assert deaths(godynamo.optimize(fn), lambda m: [m], value) == deaths(fn, lambda m: [m], value)


@pytest.mark.parametrize("value", VALUES)
def test_what_a_closure_lets_go_of_dies_there(value: str) -> None:
    def make() -> tuple[Callable[..., Any], Callable[[Any], None]]:
        held = None

        def put(m: Any) -> None:
            nonlocal held
            held = m

        def f(x: Any, _: Any) -> Any:
            nonlocal held
            held = 1
            return died(), x + 1

        return f, put

    (plain, put), (translated, put_again) = make(), make()
    assert deaths(godynamo.optimize(translated), put_again, value) == deaths(plain, put, value)


def test_a_quiet_value_is_no_reason_to_split() -> None:
    def f(x: Any, h: Any) -> Any:
        h.a = 1
        h.items[0] = 2
        h.items.pop()
        h.log.append(3)
        return x + 1

    counter = godynamo.testing.CompileCounter()
    compiled = godynamo.optimize(f, backend=counter)
    for value in (1, [1], "text", torch.ones(1), {"k": [1]}, Holder(a=[1])):
        compiled(torch.ones(1), Holder(a=value, items=[value, value], log=deque([value], maxlen=1)))
    assert counter.frame_count == 1
