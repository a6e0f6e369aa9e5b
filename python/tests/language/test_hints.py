"""typing.get_type_hints in captured code: its result is known as long as the annotations keep their meaning."""

from __future__ import annotations

import typing

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check, reasons

cases = Cases()

Alias = int


class Base:
    a: int
    b: typing.Optional[str] = None


class Derived(Base):
    c: list[Alias]
    d: "typing.ClassVar[float]" = 1.0


class Computed:
    a: print("annotation")  # type: ignore[valid-type]


def annotated(x: int, *rest: str, k: "Alias | None" = None) -> typing.Callable[[int], str]:
    return str


@cases
def of_classes(x):
    return (
        x + 1,
        typing.get_type_hints(Base),
        list(typing.get_type_hints(Derived)),
        typing.get_type_hints(Derived)["a"] is int,
    )


@cases
def of_a_function(x):
    hints = typing.get_type_hints(annotated)
    hints["more"] = 1
    return x + len(hints), hints["x"] is int, hints["k"], list(hints), typing.get_type_hints(annotated)


@cases(graphs=2, breaks=1)
def that_run_code(x):
    y = x + 1
    typing.get_type_hints(Computed)
    return y * 2


@pytest.mark.row("S004-58")
@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_hints(case: Case) -> None:
    check(case)


def test_another_meaning_is_another_case() -> None:
    global Alias

    def f(x):
        return x + 1, typing.get_type_hints(Derived)["c"]

    g = godynamo.optimize(f, backend="eager")
    assert g(torch.ones(1))[1] == list[int]
    Alias, before = str, Alias
    try:
        assert g(torch.ones(1))[1] == f(torch.ones(1))[1] == list[str]
    finally:
        Alias = before
    assert not reasons()


def test_hints_that_the_program_has_just_changed() -> None:
    def of_a_function(x):
        def inner(a: int, b): ...

        inner.__annotations__["b"] = "float"
        return x + 1, typing.get_type_hints(inner)

    def of_a_class(x):
        Derived.__annotations__["more"] = bytes
        try:
            return x + 1, typing.get_type_hints(Derived)
        finally:
            del Derived.__annotations__["more"]

    for f in (of_a_function, of_a_class):
        g = godynamo.optimize(f)
        for _ in range(2):
            assert g(torch.ones(1))[1] == f(torch.ones(1))[1]
