"""Operations that read the length of an iterable or its iterator, and those that stop inside an iterator."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import godynamo

LOG: list[Any] = []


class Sized:
    """An iterable whose __len__ returns or raises a given value."""

    def __init__(self, size: Any) -> None:
        self.size = size

    def __len__(self) -> int:
        LOG.append("len")
        if isinstance(self.size, Exception):
            raise self.size
        return self.size  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        LOG.append("iter")
        return iter((1, 2))


class Hinted:
    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def __length_hint__(self) -> int:
        LOG.append("hint")
        return self.hint  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        LOG.append("iter")
        return iter((1, 2))


class SizedThenHinted(Sized):
    def __length_hint__(self) -> int:
        LOG.append("hint")
        return 3


class Subscripts:
    def __len__(self) -> int:
        LOG.append("len")
        return 3

    def __getitem__(self, i: int) -> int:
        LOG.append(i)
        if i > 2:
            raise IndexError
        return i


class Steps:
    """An iterator with its own length hint."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Any:
        LOG.append("iter")
        return self

    def __next__(self) -> str:
        LOG.append("next")
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return str(self.at)

    def __length_hint__(self) -> int:
        LOG.append("hint")
        return 2


class ListSaysSeven(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        LOG.append("len")
        return 7


class TextSaysSeven(str):
    def __len__(self) -> int:
        LOG.append("len")
        return 7


class TupleSaysLess(tuple):  # type: ignore[type-arg]
    def __len__(self) -> int:
        LOG.append("len")
        return -1


class DictWithoutIter(dict):  # type: ignore[type-arg]
    __iter__ = None  # type: ignore[assignment]


class Letters(str, enum.Enum):
    A = "xy"

    def __len__(self) -> int:
        LOG.append("len")
        return 2


class Meta(type):
    def __iter__(cls) -> Iterator[int]:
        LOG.append("iter")
        return iter((5, 6))

    def __len__(cls) -> int:
        LOG.append("len")
        return 2


class OfMeta(metaclass=Meta):
    pass


MADE: list[Callable[[], Any]] = [
    lambda: Sized(2),
    lambda: Sized(-1),
    lambda: Sized(1 << 70),
    lambda: Sized("k"),
    lambda: Sized(ValueError("v")),
    lambda: SizedThenHinted(TypeError("t")),
    lambda: Hinted(1),
    lambda: Hinted(NotImplemented),
    lambda: Hinted("k"),
    lambda: Hinted(-4),
    Subscripts,
    Steps,
    lambda: ListSaysSeven([1, 2]),
    lambda: TextSaysSeven("ab"),
    lambda: TupleSaysLess((1, 2)),
    lambda: DictWithoutIter({1: 2}),
    lambda: Letters.A,
    lambda: OfMeta,
]


def extended(o: Any) -> Any:
    a = [0]
    a.extend(o)
    return a


def added(o: Any) -> Any:
    a = [0]
    a += o
    return a


def starred(o: Any) -> Any:
    first, *rest = o
    return first, rest


def unpacked(o: Any) -> Any:
    first, second = o
    return first, second


def assigned(o: Any) -> Any:
    a = [1, 2, 3]
    a[1:2] = o
    return a


def taken(*values: Any) -> Any:
    return values


USES: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "sorted": sorted,
    "set": set,
    "extend": extended,
    "+=": added,
    "a display": lambda o: [*o, 1],
    "a call": lambda o: taken(*o),
    "a starred target": starred,
    "targets": unpacked,
    "a slice": assigned,
    "join": lambda o: "-".join(o),
    "bytes": lambda o: bytes(o),
    "bytearray": lambda o: bytearray(o),
    "an iterator": lambda o: list(iter(o)),
    "reversed": lambda o: tuple(reversed(o)),
    "pairs": lambda o: dict([o]),
    "a loop": lambda o: [i for i in o],
}


@pytest.mark.parametrize("use", USES)
def test_lengths_are_asked_as_by_cpython(use: str) -> None:
    take = USES[use]

    def fn(x: torch.Tensor, o: Any) -> Any:
        y = x * 2
        try:
            r = take(o)
        except Exception as error:
            r = type(error), str(error)
        return y, r

    for at, make in enumerate(MADE):
        outcomes = []
        for run in (fn, godynamo.optimize("eager")(fn)):
            LOG.clear()
            outcomes.append((repr(run(torch.ones(2), make())), list(LOG)))
        assert outcomes[0] == outcomes[1], at


def test_a_sized_iterable_breaks_no_graph() -> None:
    def fn(x: torch.Tensor, o: Any) -> Any:
        return x + 1, list(o), tuple(o), [*o]

    counter = godynamo.testing.CompileCounter()
    godynamo.optimize(counter)(fn)(torch.ones(2), Sized(2))
    assert counter.frame_count == 1
    assert godynamo.explain(fn)(torch.ones(2), Sized(2)).graph_break_count == 0


def counted(n: int) -> Iterator[int]:
    for i in range(n):
        LOG.append(i)
        yield i


def test_targets_leave_the_rest_of_an_iterator() -> None:
    def fn(x: torch.Tensor) -> Any:
        y, texts, rest = x + 1, [], []
        for it in (iter([1, 2, 3, 4, 5]), counted(5), counted(3)):
            try:
                a, b = it
            except ValueError as error:
                texts.append(str(error))
            rest.append(list(it))
        return y, texts, rest

    outcomes = []
    for run in (fn, godynamo.optimize("eager")(fn)):
        LOG.clear()
        outcomes.append((str(run(torch.ones(2))), list(LOG)))
    assert outcomes[0] == outcomes[1]
