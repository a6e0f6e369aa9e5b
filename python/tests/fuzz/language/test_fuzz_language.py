"""The short form of make fuzz-language, and its harness: what it detects, how it shrinks, what a crash costs."""

from __future__ import annotations

import os

import pytest

import fuzz_judge as judging
import harness.fuzz_children as children
import harness.fuzz_compare as comparing
from fuzz_program import program, source
from fuzz_run import LANGUAGE
from harness.fuzz_shrink import shrink
from harness.fuzz_statements import Statement, line


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_random_programs_are_cpythons(first):
    found = [
        (seed, str(m)) for seed, m in children.mismatches(LANGUAGE, list(range(first, first + 25))) if m is not None
    ]
    assert not found, "\n".join(f"fuzz_run.py --count 1 --seed {seed}: {text}" for seed, text in found)


def test_a_seed_is_one_program_that_compiles():
    for seed in range(300):
        text = source(program(seed))
        compile(text, "p", "exec")
    assert source(program(7)) == source(program(7)) != source(program(8))


def test_the_programs_have_every_construct():
    text = "\n".join(source(program(seed)).split("\ndef fn(", 1)[1] for seed in range(300))
    for word in (
        "for ",
        "while ",
        "else:",
        "elif ",
        "try:",
        "except ",
        " as ",
        "finally:",
        "raise",
        " from ",
        "with ",
        "yield",
        "nonlocal ",
        "global ",
        "class ",
        "super()",
        "match ",
        "case ",
        "lambda ",
        "break",
        "continue",
        "return ",
        "del ",
        "assert ",
        ":=",
        "print(",
        "opaque(",
        "no_grad",
        "[*",
        "**",
        'f"',
    ):
        assert word in text, word


BODY = """
def fn(x, y, n, l, d, o):
    a = x + 1
    l.append(n)
    print(n)
    return a, l
"""


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda fn: lambda x, *a: (fn(x, *a)[0] + 1, a[2]), "value"),
        (lambda fn: lambda *a: fn(*a) if a[2] else fn(None), "exception"),
        (lambda fn: lambda *a: (fn(*a), print("more"))[0], "output"),
        (lambda fn: lambda *a: (fn(*a), a[5].add(1))[0], "effects"),
        (
            lambda fn: lambda *a: (fn(*a)[0], list(a[3])),
            "effects",
        ),  # an equal but different list: the comparison of arguments detects it
    ],
)
def test_a_wrong_translation_is_seen(monkeypatch, wrong, kind):
    text = source([]).split("\ndef fn(", 1)[0] + BODY
    assert judging.judge(text) is None
    monkeypatch.setattr(comparing.godynamo, "optimize", lambda backend: wrong)
    assert judging.judge(text).kind == kind


def test_an_exceptions_context_is_compared():
    plain = comparing.Plain()

    def raised(chained: bool) -> BaseException:
        try:
            try:
                raise KeyError(1)
            except KeyError as error:
                raise ValueError(2) from (error if chained else None)
        except ValueError as error:
            return error

    assert plain.error(raised(True), {}) != plain.error(raised(False), {})
    assert comparing.Plain().error(raised(True), {}) == comparing.Plain().error(raised(True), {})


def test_shrinking_keeps_what_is_needed():
    inner = [line("b = 2"), line("needed()"), line("c = 3")]
    body = [
        line("a = 1"),
        Statement(
            [
                ("try:", [Statement([("if a:", inner), ("else:", [line("d = 4")])], (False, True))]),
                ("finally:", [line("e = 5")]),
            ]
        ),
        *[line(f"f{i} = 0") for i in range(20)],
    ]
    small = shrink(body, lambda candidate: "needed()" in source(candidate))
    assert source(small).splitlines()[-2:] == ["def fn(x, y, n, l, d, o):", "    needed()"]


def test_a_crash_and_a_hang_are_reported_with_their_program(monkeypatch):
    aborts = lambda fn: (lambda *args: os.abort()) if "os" in fn.__code__.co_varnames else fn  # noqa: E731
    monkeypatch.setattr(comparing.godynamo, "optimize", lambda backend: aborts)
    good, crash = source([]), source([line("import os")])
    jobs = [("good", good, False), ("crash", crash, False), ("later", good, False)]
    assert [(name, m and m.kind) for name, m in children.in_child(LANGUAGE, jobs)] == [
        ("good", None),
        ("crash", "crash"),
    ]
    monkeypatch.undo()
    forever = source([line("import time"), line("time.sleep(1000)")])
    old, comparing.PLAIN_LIMIT = comparing.PLAIN_LIMIT, 1000.0
    try:
        found = children.in_child(LANGUAGE, [("hang", forever, False)], timeout=2)
        assert [(name, m.kind) for name, m in found] == [("hang", "hang")]
    finally:
        comparing.PLAIN_LIMIT = old


@pytest.mark.parametrize("before", [0, 1])
def test_a_program_that_crashes_without_godynamo_is_not_judged(before):
    jobs = [("good", source([]), False)] * before + [("crash", source([line("import os"), line("os.abort()")]), False)]
    assert [m for _, m in children.in_child(LANGUAGE, jobs)] == [None] * len(jobs)


def test_what_cpython_does_not_end_is_not_judged(monkeypatch):
    monkeypatch.setattr(comparing, "PLAIN_LIMIT", 0.2)
    assert judging.judge(source([Statement([("while True:", [line("pass")])])])) is None


def test_an_object_may_die_earlier_than_in_cpython_but_not_later():
    text = "DEAD = set()\nLOG = []\nCOUNT = 0\n\nclass Thing:\n    def __init__(self, *args):\n        pass\n\n"
    text += "Child = Thing\n\ndef fn(*args):\n    DEAD.add(7)\n"
    codes = comparing.codes_of(text)
    died = judging.run(codes, lambda fn: fn)
    lives = judging.run(codes, lambda fn: lambda *args: None)
    assert died[0]["deaths"] != lives[0]["deaths"]
    assert lives[0]["deaths"] == died[0]["deaths"]


def test_addresses_in_the_texts_of_exceptions_are_not_compared():
    error = comparing.Plain().error
    first, second = (error(KeyError(type("Mortal", (), {})()), {}) for _ in range(2))
    assert first == second != error(KeyError(1), {})
