"""eval() of a text in its caller's namespaces."""

from __future__ import annotations

import typing
import warnings
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import break_reasons, check, describe, nb, translations

X = torch.ones(3)
SCALE = 2.0


def of_locals(x):
    y = x + 1
    return eval("x * y + SCALE") * 2


def of_constants(x):
    return x * eval(" 1 + 2 ")


def of_a_cell(x):
    y = 3

    def inner():
        return y

    return eval("y * x") + inner()


def of_calls(x):
    return eval("torch.cat([x, abs(x)]), len(x.shape)")


def passed(x, text):
    return x + eval(text)


def assigned_after(x):
    z = eval("x + 1")
    x = x * 3
    return z * x


def called(x):
    return of_locals(x) + 1


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("f", [of_locals, of_constants, of_a_cell, of_calls, assigned_after, called])
def test_one_graph(f, whole):
    godynamo.reset()
    g = godynamo.optimize(f, backend=nb() if whole else "eager")
    with translations(1):
        for _ in range(3):
            assert describe(g(X)) == describe(f(X))
    assert not break_reasons()


def test_another_text_and_another_global(monkeypatch):
    g = godynamo.optimize(passed)
    for text in ("x", "x * 2", "SCALE", "x", "len(text)"):
        assert describe(g(X, text)) == describe(passed(X, text))
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert describe(g(X, "SCALE")) == describe(passed(X, "SCALE"))


OTHERS = [
    "[x for _ in range(2)][0]",  # up to 3.11, the comprehension does not see the function's variables
    "(lambda: text)()",
    "(w := x)",
    "locals()['text'] and x",
    "eval('x')",
    "missing",
    "x.missing",
    "1 / 0",
    "x +",
    "x) + (x",
    "yield x",
    "",
    "x # comment",
    "\t x",
    "(x\n * 2)",
]


@pytest.mark.parametrize("text", OTHERS)
def test_texts_that_end_otherwise(text):
    def run(f: Any) -> Any:
        try:
            return describe(f(X, text))
        except Exception as e:
            last = e.__traceback__
            while last is not None and last.tb_next is not None:
                last = last.tb_next
            assert last is not None
            return type(e), str(e), last.tb_frame.f_code.co_name, last.tb_frame.f_code.co_filename, last.tb_lineno

    g = godynamo.optimize(passed)
    for _ in range(2):
        assert run(g) == run(passed)


def test_two_texts():
    def f(x):
        y = eval("x + 1")
        exec("z = 3")
        return y, eval("z if 'z' in dir() else 4")

    check(f, X)


def warned(f, *args):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = f(*args)
    return result, [str(w.message) for w in found]


def of_a_text_that_warns(x):
    return x + eval(r"len('\d')")


def hint_that_warns(x):
    def f(y: "typing.Literal['\\d']"):
        return y

    return typing.get_type_hints(f)["y"], x + 1


@pytest.mark.parametrize("f", [of_a_text_that_warns, hint_that_warns])
def test_a_text_warns_each_time_it_is_evaluated(f):
    optimized = godynamo.optimize(f)
    for _ in range(2):
        (want, texts), (got, seen) = warned(f, X), warned(optimized, X)
        assert texts and texts == seen
        assert describe(want) == describe(got)
