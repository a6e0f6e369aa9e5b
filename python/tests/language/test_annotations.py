"""Annotations: rows S004-49 to S004-58."""

from __future__ import annotations

import collections.abc
import typing
from typing import (
    Any,
    Callable,
    ClassVar,
    Final,
    Generic,
    List,
    Literal,
    NewType,
    NoReturn,
    Optional,
    Protocol,
    TypeVar,
    Union,
)

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb, one_graph, same, x3

row = pytest.mark.row
T = TypeVar("T")
UserId = NewType("UserId", int)
Alias = Union[int, List[int]]
choice: Final = True
_state = {"choice": True}


@row("S004-49")
def test_signature_annotations() -> None:
    def f(a, b: int):  # type: ignore[no-untyped-def]
        return a + b

    one_graph(f, torch.ones([6]), 100)
    same(f, 1, 100)
    same(f, "a", "b")


@row("S004-50")
def test_type_comment() -> None:
    def f(a, b):  # type: ignore[no-untyped-def]
        # type: (torch.Tensor, int) -> torch.Tensor
        return a + b

    one_graph(f, torch.ones([6]), 100)


@row("S004-51")
@pytest.mark.parametrize("set_val", [True, False])
def test_local_annotation(set_val: bool) -> None:
    def f(a, setVal: bool):  # type: ignore[no-untyped-def]
        value: Optional[torch.Tensor] = None
        if setVal:
            value = a
        return value, a + 1

    one_graph(f, torch.ones([6]), set_val)


@row("S004-52")
def test_local_annotations_are_not_evaluated() -> None:
    def f(x: torch.Tensor) -> Any:
        y: print("no")  # type: ignore[valid-type] # noqa: F722
        z: undefined_name = x + 1  # type: ignore[name-defined] # noqa: F821
        try_it: int
        return z

    one_graph(f, x3())


class MyModule(nn.Module):
    offset_: int
    fixed_: Final[int] = 3

    def __init__(self, offset: int) -> None:
        super().__init__()
        self.offset_ = offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset_ * self.fixed_


@row("S004-53")
def test_class_annotations() -> None:
    one_graph(MyModule(2), x3())


@row("S004-54", "S004-223")
def test_annotate() -> None:
    def g(l: List[int], val: int) -> List[int]:
        l.append(val)
        return l

    def f(val: int) -> List[int]:
        return g(torch.jit.annotate(List[int], []), val)

    assert godynamo.optimize(f, backend=nb())(3) == [3]
    one_graph(lambda x: (x + 1, f(3), torch.jit.annotate(Any, x) * 2), x3())


class WithAttribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.names = torch.jit.Attribute({"a": 2}, typing.Dict[str, int])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.names.value["a"]


@row("S004-55", "S004-224")
def test_attribute() -> None:
    one_graph(WithAttribute(), x3())


@row("S004-56", "S004-122", "S004-225")
def test_final_global_chooses_the_arm() -> None:
    def f(x: torch.Tensor) -> Any:
        a: torch.jit.Final[bool] = _choice
        if a:
            return torch.empty(2, 3).shape, x + 1
        return [], x * 2

    global _choice
    _choice = True
    one_graph(f, x3())
    backend = nb()
    g = godynamo.optimize(f, backend=backend)
    assert g(x3())[0] == (2, 3)
    _choice = False
    assert g(x3())[0] == []
    _choice = True
    assert g(x3())[0] == (2, 3)
    assert len(backend) == 2


class Box(Generic[T]):
    count: ClassVar[int] = 3

    def __init__(self, item: T) -> None:
        self.item = item


class HasItem(Protocol):
    item: Any


@typing.overload
def double(v: int) -> int: ...
@typing.overload
def double(v: torch.Tensor) -> torch.Tensor: ...
def double(v: Any) -> Any:
    return v * 2


def never() -> NoReturn:
    raise ValueError("never")


@row("S004-57")
def test_typing_names_are_inert() -> None:
    def f(x: torch.Tensor, mode: Literal["a", "b"], fn: Callable[[Any], Any]) -> Any:
        user: UserId = UserId(5)
        box: Box[torch.Tensor] = Box(x)
        alias: Alias = [1, user]
        item: HasItem = box
        return double(item.item) + fn(double(user)), Box.count, alias, mode

    one_graph(f, x3(), "a", lambda v: v + 1)


@row("S004-57")
def test_generic_alias_call() -> None:
    one_graph(lambda x: Box[torch.Tensor](x).item + 1, x3())


@row("S004-58")
def test_cast_and_unions() -> None:
    def f(x: torch.Tensor, v: int | None) -> list[Any]:
        y = typing.cast(torch.Tensor, x)
        return [y + 1, isinstance(v, int | None), isinstance(v, (int, type(None)))]

    one_graph(f, x3(), 3)
    one_graph(f, x3(), None)


@row("S004-58")
def test_get_type_hints() -> None:
    one_graph(lambda x: (x + 1, sorted(typing.get_type_hints(MyModule))[-2:]), x3())


@row("S004-58")
def test_generic_alias_as_value() -> None:
    one_graph(lambda x: (x + 1, list[int], int | str), x3())


def test_callables_with_known_parameters() -> None:
    def annotated(x):
        def inner(f: Callable[[T], T], g: collections.abc.Callable[[int, str], None] | None = None) -> Callable[..., T]:
            return f(x), g

        return inner(torch.sin)

    one_graph(annotated, x3())
    one_graph(lambda x: (x + 1, Callable[[int], str], collections.abc.Callable[[], int]), x3())
