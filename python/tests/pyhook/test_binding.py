"""Binding of arguments to slots: the same values, errors and error texts as in CPython."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godynamo import _C
from pyhook_support import counted, give_slots, make_entry, outcome, slots_of, translator

SIGNATURES = [
    "",
    "a",
    "a, b",
    "a, b=2",
    "a=1, b=2",
    "a, b, c",
    "*args",
    "**kw",
    "a, *args",
    "a, **kw",
    "a, b=2, *args, **kw",
    "*, c",
    "*, c=3",
    "a, *, c",
    "a, *, c, d",
    "a, *, c=3, d",
    "a, b=2, *, c, d=4",
    "*args, c",
    "a, *args, c, d=4, **kw",
    "a, /",
    "a, /, b",
    "a, b=2, /, c=3",
    "a, /, **kw",
    "a, /, b, *, c, **kw",
]

CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, 3), {}),
    ((1, 2, 3, 4, 5), {}),
    ((), {"a": 1}),
    ((), {"b": 1}),
    ((1,), {"a": 1}),
    ((1,), {"b": 5}),
    ((1,), {"c": 5}),
    ((1, 2), {"c": 5}),
    ((1,), {"c": 5, "d": 6}),
    ((1, 2, 3), {"c": 5, "e": 6}),
    ((), {"a": 1, "b": 2, "c": 3, "d": 4}),
    ((), {"nope": 1}),
    ((1,), {"nope": 1, "other": 2}),
]


def make(signature: str) -> Any:
    """Return a function with this signature that returns its arguments as a tuple, in the order of its slots."""
    names = [p.strip().split("=")[0] for p in signature.split(",")]
    positional = [n for n in names if n.isidentifier()]
    star = [n[1:] for n in names if n.startswith("*") and not n.startswith("**") and len(n) > 1]
    double = [n[2:] for n in names if n.startswith("**")]
    space: dict[str, Any] = {}
    exec(f"def f({signature}): return ({''.join(n + ', ' for n in positional + star + double)})", space)
    return space["f"]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_slots_and_errors_are_cpythons(signature: str) -> None:
    f = make(signature)
    untranslated, translated = _C.Callable(f), _C.Callable(f)
    for args, kwargs in CALLS:
        expected = outcome(f, args, kwargs)
        assert outcome(untranslated, args, kwargs) == expected
        with translator(give_slots):
            assert outcome(translated, args, kwargs) == expected
    assert untranslated.cache.hits == 0


@pytest.mark.parametrize("signature", [s for s in SIGNATURES if s.startswith("a")])
def test_self_comes_first(signature: str) -> None:
    f = make(signature)
    me = object()
    bound, plain = _C.Callable(f, me), f.__get__(me)
    for args, kwargs in CALLS:
        with translator(give_slots):
            assert outcome(bound, args, kwargs) == outcome(plain, args, kwargs)
        with translator(lambda request: None):
            assert outcome(bound, args, kwargs) == outcome(plain, args, kwargs)


names = st.sampled_from(["a", "b", "c", "d", "e"])


@st.composite
def signatures(draw: st.DrawFn) -> str:
    n = draw(st.integers(0, 4))
    parts = ["a", "b", "c", "d"][:n]
    first_default = draw(st.integers(0, n))
    parts = [p if i < first_default else f"{p}={i}" for i, p in enumerate(parts)]
    if n and draw(st.booleans()):
        parts.insert(draw(st.integers(1, n)), "/")
    star = draw(st.sampled_from(["", "*", "*args"]))
    keyword_only = [k if draw(st.booleans()) else f"{k}=9" for k in ["k1", "k2"][: draw(st.integers(0, 2))]]
    if star == "*" and not keyword_only:
        star = ""
    if keyword_only and not star:
        star = "*"
    parts += [star] * bool(star) + keyword_only + ["**kw"] * draw(st.booleans())
    return ", ".join(parts)


@settings(max_examples=300, deadline=None)
@given(
    signatures(),
    st.lists(st.integers(), max_size=6),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", "k1", "k2", "z"]), st.integers(), max_size=4),
)
def test_any_signature_any_call(signature: str, args: list[int], kwargs: dict[str, int]) -> None:
    f = make(signature)
    with translator(give_slots):
        assert outcome(_C.Callable(f), tuple(args), kwargs) == outcome(f, tuple(args), kwargs)


def test_an_error_has_cpythons_traceback() -> None:
    def f(a: int) -> int:
        return a

    def frames(function: Any) -> list[str]:
        try:
            function(1, 2)
        except TypeError as error:
            return [s.name for s in traceback.extract_tb(error.__traceback__)]
        raise AssertionError

    before = counted("unbound")
    assert frames(_C.Callable(f)) == frames(f)
    assert counted("unbound") == before + 1


def test_keywords_that_are_subclasses_of_str() -> None:
    class Name(str):
        def __eq__(self, other: object) -> bool:
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def f(a: int, **kw: int) -> tuple[int, dict[str, int]]:
        return a, kw

    assert _C.Callable(f)(**{Name("a"): 1, Name("b"): 2}) == f(**{Name("a"): 1, Name("b"): 2})
    assert outcome(_C.Callable(f), (), {Name("b"): 2}) == outcome(f, (), {Name("b"): 2})


def test_names_equal_but_not_identical_bind() -> None:
    def f(long_name: int) -> int:
        return long_name

    key = "".join(["long", "_name"])
    with translator(give_slots):
        assert _C.Callable(f)(**{key: 7}) == (7,)


def test_defaults_replaced_while_a_call_runs() -> None:
    def f(a: object = object()) -> object:  # noqa: B008
        return a

    def answer(request: dict[str, Any]) -> Any:
        f.__defaults__ = (None,)
        f.__kwdefaults__ = None
        return make_entry(slots_of, 1)

    with translator(answer):
        (got,) = _C.Callable(f)()
    assert type(got) is object


def test_cells_of_the_closure_follow_the_arguments() -> None:
    free, other = 10, 20

    def f(a: int, *args: int) -> int:
        return a + free + other + len(args)

    with translator(give_slots) as t:
        a, args, first, second = _C.Callable(f)(1, 2, 3)
    assert (a, args) == (1, (2, 3))
    assert {first.cell_contents, second.cell_contents} == {10, 20}
    assert f.__closure__ == (first, second)
    assert t.requests[0]["nargs"] == 2 and t.requests[0]["nslots"] == 4


def test_many_arguments_leave_the_stack_array() -> None:
    names = [f"p{i}" for i in range(200)]
    f = make(", ".join(names))
    w = _C.Callable(f)
    with translator(give_slots):
        for _ in range(3):
            assert w(*range(200)) == tuple(range(200))
            assert w(**{n: i for i, n in enumerate(names)}) == tuple(range(200))
            assert _C.Callable(f, 0)(*range(1, 200)) == tuple(range(200))
    assert w.cache.hits == 5


def test_extra_registers_follow_the_slots() -> None:
    def f(a: int, b: int) -> None: ...

    # nslots = 2, so register 2 is the globals dict and 3 the builtins: passed as the third and fourth argument
    with translator(lambda request: make_entry(slots_of, 2, extra=[2, 3])):
        w = _C.Callable(f)
        for call in (lambda: w(1, 2), lambda: w(1, b=2)):
            a, b, g, builtins = call()
            assert (a, b) == (1, 2) and g is f.__globals__ and builtins["len"] is len
