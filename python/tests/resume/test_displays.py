"""Graph breaks inside list, set and dict displays, comprehensions and the keywords of calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import godynamo


@godynamo.disable
def opaque(value: Any) -> Any:
    return value


class Items:
    """An iterable whose iteration breaks the graph."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(opaque(self.items))


class Mapping:
    """A mapping whose keys break the graph."""

    def __init__(self, *names: Any) -> None:
        self.names = names

    def keys(self) -> Any:
        return list(opaque(self.names))

    def __getitem__(self, key: str) -> str:
        return key * 2


class Key:
    """A key whose hash breaks the graph."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(opaque(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.value == other.value


class Called:
    def method(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


def called(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def lists(x):
    x = x + 1
    return [x, *Items(x * 2, 1)], [1, [2, *Items(x)], *Items(3)], x * 2


def sets(x):
    return {1, *Items(2, 3)}, len({Key(i) for i in range(3)}), x + 1


def dicts(x):
    return {"a": x, **Mapping("b"), "z": 1}, len({Key(i): x + i for i in range(2)}), x * 2


def tuples(x):
    return torch.cat((x, *Items(x + 1, x * 2))) + 1


def keywords(x):
    return called(x + 1, **Mapping("p", "q")), [called(i, **Mapping(f"k{i}")) for i in range(2)], x * 2


def methods(x):
    return Called().method(x, *Items(1), a=2, **Mapping("b"), **{"c": x + 1}), (lambda **k: k)(**Mapping("l")), x - 1


def caught(make: Callable[[], Any]) -> str:
    try:
        return str(make())
    except TypeError as error:
        return str(error)


def errors(x):
    x = x * 2
    texts = [
        caught(lambda: [x, *Items(), *3]),
        caught(lambda: {**Mapping("a"), **3}),
        caught(lambda: called(a=1, **Mapping("b", "a"))),
        caught(lambda: called(**Mapping("b"), **3)),
        caught(lambda: Called().method(1, **Mapping("a"), **{"a": 1})),
        caught(lambda: dict(**Mapping("a"), **{1: 2})),
    ]
    return texts, x + 1


def in_a_block(x):
    try:
        with torch.no_grad():
            return [*Items(x + 1), *Items(torch.is_grad_enabled()), *opaque(None)]
    except TypeError as error:
        return str(error), torch.is_grad_enabled(), x * 2


@pytest.mark.parametrize("backend", ["eager", lambda gm, _: gm.forward], ids=["inline", "callable"])
@pytest.mark.parametrize(
    "fn", [lists, sets, dicts, tuples, keywords, methods, errors, in_a_block], ids=lambda f: f.__name__
)
def test_a_break_in_a_display(fn: Callable[..., Any], backend: Any) -> None:
    def text(value: Any) -> str:
        return re.sub("0x[0-9a-f]+", "0x", str(value))

    optimized = godynamo.optimize(fn, backend=backend)
    godynamo.utils.counters.clear()
    for value in range(3):
        assert text(optimized(torch.full((2,), float(value)))) == text(fn(torch.full((2,), float(value))))
    frames = godynamo.utils.counters["frames"]
    assert frames["ok"] and not frames["skipped"]
