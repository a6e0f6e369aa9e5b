"""Drops each condition of a translation once and looks for sizes at which the result is then wrong.

A program is translated at its first call's sizes. For each check of a size or an int, one run drops this check alone,
and makes calls that satisfy all other checks. A condition is "needed" if the result of one such call differs from eager
mode. It is "raising" if eager mode raises in all of them, since an operation of the entry then raises as well. It is
"superfluous" if none differs and eager mode does not always raise. It is "unreached" if no such call was found: the
other conditions imply it, or too few sizes were tried.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import godynamo
from harness.fuzz_compare import FILENAME, Mismatch, codes_of, whole_graph
from sizes_judge import arguments, described, namespace

#: sizes that calls try besides the first call's sizes and their neighbours; ints are also negative
POOL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
TRIED = 600  #: random calls drawn for all conditions of an entry
MORE = 4000  #: random calls drawn for a condition that none of those reaches
CALLS = 8  #: calls made for a condition
INT = re.compile(r"\w+ == -?\d+")  #: the guard of an int among the arguments
HUGE = re.compile(r"\d{10}")  #: matches a condition on sizes that are too large for a test

Shapes = dict[str, Any]  # an argument's name → its sizes, or an int


@dataclass
class Condition:
    """One check of an entry."""

    text: str
    drop: Callable[[Any], None]  #: makes this check of an equal entry always hold
    line: tuple[str, int] | None  #: file and line of the code that needs it


@dataclass
class Outcome:
    """What the calls without the condition showed."""

    condition: Condition
    verdict: str  #: "needed", "raising", "superfluous" or "unreached"
    calls: int = 0  #: calls that were served without the condition
    case: Shapes | None = None  #: the first call with a wrong result


def conditions(entry: Any) -> Iterator[Condition]:
    """Yield the checks of sizes, of values computed from them, and of the ints among the arguments."""
    lines = entry.part_lines or (None,) * len(entry.parts)
    for index, (op, _, _, _, part, _, _) in enumerate(entry.nodes()):
        text = entry.parts[part]
        if op == "SHAPE_ENV" and not HUGE.search(text) or op == "EQUALS" and INT.fullmatch(text):
            yield Condition(text, lambda e, i=index: e.drop_node(i), lines[part])
    for number, check in enumerate(entry.tensor_checks()):
        if check["register"] >= entry.nslots or check["state"] is not None:
            continue  # the tensor is not an argument, or no size of it is compared on its own
        for dim in range(check["ndim"]):
            if check["static_sizes"] >> dim & 1:
                text = f"size {dim} of register {check['register']} == {check['sizes'][dim]}"
                yield Condition(text, lambda e, t=number, d=dim: e.drop_size(t, d), None)


# ---- calls -----------------------------------------------------------------------------------------------------------


def near(rng: random.Random, first: Shapes) -> Shapes:
    """Return sizes that differ from the first call's: in one place, in some, or in all places of a size."""
    numbers = sorted({n for value in first.values() for n in _numbers(value)})
    pool = [*POOL, *(n + d for n in numbers for d in (-1, 0, 1) if n + d >= 0), *(2 * n for n in numbers if n > 0)]
    if rng.random() < 0.4:  # equal sizes stay equal
        changed = {n: rng.choice(pool) for n in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 3))))}
        return {name: _mapped(value, lambda n: changed.get(n, n)) for name, value in first.items()}
    places = sum(len(_numbers(value)) for value in first.values())
    some = set(rng.sample(range(places), min(places, rng.choice((1, 1, 1, 2, 2, 3, 4)))))
    counter = iter(range(places))
    one = rng.choice(pool)
    pick = rng.choice((lambda: one, lambda: rng.choice(pool)))
    case = {name: _mapped(value, lambda n: pick() if next(counter) in some else n) for name, value in first.items()}
    if rng.random() < 0.1:
        case |= {
            name: -rng.choice(POOL) for name, value in case.items() if isinstance(value, int) and rng.random() < 0.5
        }
    return case


def _numbers(value: Any) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _mapped(value: Any, change: Callable[[int], int]) -> Any:
    return change(value) if isinstance(value, int) else tuple(map(change, value))


# ---- the search ------------------------------------------------------------------------------------------------------


@dataclass
class Subject:
    """A program whose conditions are tried."""

    first: Shapes
    #: returns an equal program in its initial state: a function, and a function from a call's sizes to its arguments
    make: Callable[[], tuple[Any, Callable[[Shapes], tuple[Any, ...]]]]
    #: makes one call and describes it, effects included, as data comparable with ==; "exception" holds its exception
    observe: Callable[[Any, tuple[Any, ...]], dict[str, Any]]
    options: dict[str, Any]

    def translated(self) -> tuple[Any, Any, Callable[[Shapes], tuple[Any, ...]]] | None:
        """Return a new optimized function after its first call, its entry, and the function that makes arguments."""
        fn, arguments = self.make()
        compiled = godynamo.optimize(fn, **self.options)
        self.observe(compiled, arguments(self.first))
        entries = godynamo.cache_entries(compiled)
        return (compiled, entries[0], arguments) if len(entries) == 1 else None


def judge(subject: Subject, seed: int) -> list[Outcome]:
    """Drop each condition of the program's translation once."""
    rng = random.Random(seed)
    clean = subject.translated()
    if clean is None:
        return []
    _, entry, arguments = clean
    drawn = [near(rng, subject.first) for _ in range(TRIED)]
    out = []
    for index, condition in enumerate(conditions(entry)):
        out.append(_dropped(subject, index, condition, [case for case in drawn if not entry.check(*arguments(case))]))
        if out[-1].verdict == "unreached":
            more = (near(rng, subject.first) for _ in range(MORE))
            out[-1] = _dropped(subject, index, condition, (c for c in more if not entry.check(*arguments(c))))
    return out


def _dropped(subject: Subject, index: int, condition: Condition, cases: Any) -> Outcome:
    """Make calls without this condition, for those of the cases that no other condition rejects."""
    again = subject.translated()
    if again is None:
        return Outcome(condition, "unreached")
    compiled, entry, arguments = again
    list(conditions(entry))[index].drop(entry)
    eager, eager_arguments = subject.make()
    subject.observe(eager, eager_arguments(subject.first))
    served = raised = 0
    with godynamo.set_stance("eager_on_recompile"):
        for case in cases:
            if not entry.check(*arguments(case)):
                continue
            hits = entry.hits
            want = subject.observe(eager, eager_arguments(case))
            got = subject.observe(compiled, arguments(case))
            if entry.hits > hits:
                served += 1
                raised += want["exception"] is not None
            if got != want:
                return Outcome(condition, "needed", served, case)
            if served == CALLS:
                break
    verdict = "unreached" if not served else "raising" if raised == served else "superfluous"
    return Outcome(condition, verdict, served)


# ---- random programs -------------------------------------------------------------------------------------------------


def of_program(text: str, whole: bool) -> Subject:
    """Return the subject of a random program of sizes_program."""
    codes = codes_of(text)
    ns = namespace(codes)
    named = ns["CASES"][0]
    first = {name: named[name] for name in ("x", "y", "z", "v", "n", "k")}

    def make() -> Any:
        ns = namespace(codes)
        torch.manual_seed(0)
        m = ns["Net"]()

        def made(case: Shapes) -> tuple[Any, ...]:
            m.last, m.calls = None, 0
            return arguments(ns, {**named, **case}, ns["Thing"](3), m)

        return ns["fn"], made

    def observe(fn: Any, args: tuple[Any, ...]) -> Any:
        torch.manual_seed(1)
        return described(fn.__globals__, fn, args)

    options = {"backend": whole_graph if whole else "eager", "dynamic": ns["OPTIONS"]["dynamic"]}
    return Subject(first, make, observe, options)


def judge_program(text: str, whole: bool = False) -> Mismatch:
    """Return a program's conditions as children report them: the number of needed ones, and the others."""
    verdicts = judge(of_program(text, whole), seed=len(text))
    lines = text.split("\n")
    others = [
        (found.verdict, found.condition.text, lines[at[1] - 1].strip() if at and at[0] == FILENAME else "")
        for found in verdicts
        if found.verdict != "needed"
        for at in [found.condition.line]
    ]
    return Mismatch("conditions", len(verdicts) - len(others), json.dumps(others))
