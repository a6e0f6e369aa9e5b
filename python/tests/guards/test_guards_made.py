"""Guards that cannot be made; guard checks that run no user code."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C
from godynamo._translator import values
from harness.capture import (
    check,
    counted,
    entries,
    nb,
    outcome,
)


def add(x, y):
    return x + y


# ---- what must not happen --------------------------------------------------------------------------------------------


MALFORMED: dict[str, dict[str, Any]] = {
    "register out of range": {"nodes": [("VALID", 0, 0, 0, 0, 0, 0), ("TYPE_MATCH", 0, 0, 99, 0, 0, 0)]},
    "constant out of range": {"nodes": [("VALID", 0, 0, 0, 0, 0, 0), ("TYPE_MATCH", 0, 0, 0, 0, 55, 0)]},
    "part out of range": {"nodes": [("VALID", 0, 0, 0, 9, 0, 0)]},
    "without .valid": {"nodes": [("TYPE_MATCH", 0, 0, 0, 0, 0, 0)], "consts": [(int, 0)]},
}


@pytest.mark.row("S002-106")
@pytest.mark.parametrize("what", list(MALFORMED))
def test_a_malformed_program_makes_no_entry(what: str) -> None:
    """The core rejects a malformed program when the entry is created."""
    spec = {
        "function": add, "nodes": [], "nregs": 4, "nslots": 2, "ncaches": 0, "consts": [], "tensors": [], "extra": [],
        "flags": 0, "parts": ("___guarded_code.valid",), "info": {}, **MALFORMED[what],
    }  # fmt: skip
    with pytest.raises(ValueError, match="malformed guard program"):
        _C.make_entry(spec)


@pytest.mark.row("S002-106")
@pytest.mark.parametrize("fault", ["raises", "says no"])
def test_a_bad_guard_fails_its_own_compile(
    fault: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard predicate of a device argument is replaced: it holds when the translator calls it, never again."""

    def raises(value):
        asked = []

        def same(other):
            asked.append(other)
            return len(asked) == 1 or 1 / 0

        return same

    def says_no(value):
        asked = []

        def same(other):
            asked.append(other)
            return len(asked) == 1

        return same

    monkeypatch.setattr(values.equal_to, "__code__", (raises if fault == "raises" else says_no).__code__)

    def f(x, device):
        return x + torch.ones(2, device=device)

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    with caplog.at_level(logging.ERROR, logger="godynamo"):
        assert torch.equal(w(x, torch.device("cpu")), x + 1), "eager"
    assert counted("internal_errors") == 1 and entries(w) == []
    assert "the call runs in CPython" in caplog.text and "cpu" in caplog.text


@pytest.mark.row("S002-106")
def test_values_whose_repr_is_no_python_still_make_a_good_guard() -> None:
    """pytorch#128090: a guard text that does not compile."""

    class Weird:
        def __repr__(self):
            return "not ( python"

    def f(x, o, d):
        return x + len(d) if o is not None else x

    w = godynamo.optimize(f, backend=nb())
    x = torch.ones(1)
    weird = Weird()
    assert w(x, weird, {weird: 1}).item() == 2.0
    for entry in entries(w):
        compile(entry.text, "<guards>", "eval")
    check(lambda x, s: x + len(s), torch.ones(1), "quote ' \" \\ \n \x00 \ud800 é")


class Watched:
    """Records each call of its special methods."""

    log: list[str] = []

    def __init__(self) -> None:
        self.value = 2

    def __eq__(self, other: object) -> bool:
        self.log.append("eq")
        return self is other

    def __hash__(self) -> int:
        self.log.append("hash")
        return 1

    def __getattribute__(self, name: str) -> Any:
        if name not in ("log",):
            type(self).log.append(f"getattribute {name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        type(self).log.append(f"getattr {name}")
        raise AttributeError(name)


class PlainWatched(Watched):
    __getattribute__ = object.__getattribute__  # type: ignore[assignment]


@pytest.mark.row("S002-108")
@pytest.mark.parametrize("kind", [Watched, PlainWatched])
def test_checking_guards_runs_no_code_of_the_users(kind: type[Watched]) -> None:
    def f(x, o, d, items):
        return x + o.value + len(d) + len(items)

    o = kind()
    d, items = {o: 1}, [o, o]
    x = torch.ones(1)
    w = godynamo.optimize(f, backend=nb())
    assert w(x, o, d, items).item() == 6.0
    for entry in entries(w):
        Watched.log.clear()
        entry.check(x, o, d, items, globals=globals())
        assert Watched.log == []
    Watched.log.clear()
    f(x, o, d, items)
    eager = list(Watched.log)
    Watched.log.clear()
    w(x, o, d, items)
    assert [e for e in Watched.log if e not in eager] == [] and len(Watched.log) <= len(eager)


@pytest.mark.row("S002-108")
def test_torch_function_is_called_as_often_as_by_eager() -> None:
    calls: list[str] = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        return x + 1

    x = torch.ones(2).as_subclass(Logged)
    w = godynamo.optimize(f, backend=nb())
    w(x)
    calls.clear()
    f(x)
    eager = list(calls)
    for _ in range(2):
        calls.clear()
        w(x)
        assert calls == eager


@pytest.mark.row("S002-98")
def test_outcome_of_wrong_calls_is_cpythons() -> None:
    """Arguments that do not match the signature never reach the guards; the call ends as in CPython."""
    w = godynamo.optimize(add, backend=nb())
    w(torch.ones(1), 1)
    for args in ((), (1,), (1, 2, 3)):
        assert outcome(w, args)["how"][:3] == outcome(add, args)["how"][:3]
