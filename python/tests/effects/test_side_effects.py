"""Mutations and output: replayed in program order, visible through every alias, after a return or an exception."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import check, describe, nb, outcome, unsupported

SHARED_A: list[Any] = []
SHARED_B: list[Any] = SHARED_A
COUNTER = 0
LATEST: Any = None


class Box:
    kind = "box"

    def __init__(self, value: Any) -> None:
        self.value = value


def both_globals(x):
    SHARED_A.append(x + 1)
    SHARED_B.append("b")
    return len(SHARED_A), SHARED_A is SHARED_B, SHARED_A[-2] * 2


def run_on_globals(fn: Any, x: torch.Tensor) -> tuple[Any, Any]:
    """Return the call's outcome with initially empty module lists, and the lists afterwards."""
    SHARED_A.clear()
    return outcome(fn, (x,)), describe(SHARED_A)


@pytest.mark.row("S002-55")
@pytest.mark.parametrize("backend", ["eager", "recording"])
def test_a_list_reached_through_two_globals(backend: str) -> None:
    x = torch.randn(3)
    expected = run_on_globals(both_globals, x.clone())
    w = godynamo.optimize(both_globals, backend="eager" if backend == "eager" else nb())
    for _ in range(3):
        assert run_on_globals(w, x.clone()) == expected
    assert SHARED_A is SHARED_B and len(SHARED_A) == 2


def writes_globals(x):
    global COUNTER, LATEST
    COUNTER = COUNTER + 1
    LATEST = x * COUNTER
    COUNTER += 10
    return LATEST + 1


@pytest.mark.row("S002-55")
def test_globals_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    w = godynamo.optimize(writes_globals, backend=nb())
    x = torch.randn(3)
    for start in (0, 0, 5, 0):
        monkeypatch.setitem(globals(), "COUNTER", start)
        monkeypatch.setitem(globals(), "LATEST", None)
        result = w(x)
        assert COUNTER == start + 11
        assert torch.equal(LATEST, x * (start + 1)) and torch.equal(result, LATEST + 1)


def mutates_everything(x, items, d, box, s, od, q):
    items.append(x + 1)
    items.insert(0, "first")
    items[1] = 7
    d["new"] = x * 2
    del d["old"]
    d.update(a=1, b=2)
    box.value = x - 1
    box.made = d
    s.add(3)
    s.discard(1)
    od.move_to_end("p")
    od["z"] = 0
    q.append(4)
    items.extend([1, 2])
    last = items.pop()
    items.reverse()
    return last, d.pop("a"), len(items), box.value + 1


@pytest.mark.row("S002-55")
def test_mutations_of_arguments_of_every_kind() -> None:
    check(
        mutates_everything,
        torch.randn(3),
        ["a", "b"],
        {"old": 0, "kept": 1},
        Box(1),
        {1, 2},
        OrderedDict(p=1, q=2),
        deque([1, 2, 3]),
    )


def raises_between(x, items, index):
    items.append("before")
    y = x[index]
    items.append("after")
    return y


@pytest.mark.row("S002-55")
@pytest.mark.parametrize("backend", ["eager", "recording"])
@pytest.mark.parametrize("index", [0, 7])
def test_effects_before_an_operation_that_raises_stay(backend: str, index: int) -> None:
    check(raises_between, torch.randn(3), [], torch.tensor(index), backend="eager" if backend == "eager" else nb())


def raises_itself(x, items, box):
    items.append(x + 1)
    box.value = 5
    if len(items) > 1:
        raise ValueError("too many")
    items.append("more")
    return x


@pytest.mark.row("S002-55")
def test_effects_before_a_raise_statement_stay() -> None:
    check(raises_itself, torch.randn(3), ["one"], Box(0))
    check(raises_itself, torch.randn(3), [], Box(0))


def prints_in_order(x, items):
    print("start", len(items))
    y = x + 1
    items.append(1)
    print("middle", items)
    z = y * 2
    print(f"end {items[0]}", sep="-", end="!\n")
    return z


@pytest.mark.row("S002-55")
@pytest.mark.parametrize("queue", [True, False])
def test_output_keeps_its_order(queue: bool) -> None:
    with godynamo.config.patch(queue_effects=queue):
        check(prints_in_order, torch.randn(3), [])


def aliases(x, a, b):
    a.append(x)
    b.append(a)
    a[0].append("deep")
    c = a
    c.append(len(b))
    return a, b, c is a, b[-1] is a


@pytest.mark.row("S002-55")
def test_aliases_see_each_others_mutations() -> None:
    inner: list[Any] = []
    shared = [inner]
    check(aliases, torch.randn(2), shared, shared)
    check(aliases, torch.randn(2), [inner], [inner])


def effects_around_break(x, items):
    items.append("a")
    y = x + 1
    items.append(y)
    seen = unsupported(items)
    seen.append(len(seen))
    z = y * 2
    items.append("b")
    return z, seen is items


@pytest.mark.row("S002-55")
def test_effects_are_done_before_a_break_runs() -> None:
    check(effects_around_break, torch.randn(3), [])


def mutates_tensor(x, y):
    v = x[0]
    x.add_(1)
    y[1] = v
    y.mul_(2)
    z = x + y
    x.zero_()
    return z, v


@pytest.mark.row("S002-55")
@pytest.mark.parametrize("backend", ["eager", "recording"])
def test_tensors_mutated_in_place(backend: str) -> None:
    check(mutates_tensor, torch.randn(3), torch.randn(3), backend="eager" if backend == "eager" else nb())
    t = torch.randn(3)
    check(mutates_tensor, t, t, backend="eager" if backend == "eager" else nb())


def builds_objects(x):
    box = Box(x + 1)
    box.value = box.value * 2
    box.other = [box.value, box]
    return box


@pytest.mark.row("S002-55")
def test_objects_made_inside_are_real() -> None:
    check(builds_objects, torch.randn(3))
    result = godynamo.optimize(builds_objects, backend=nb())(torch.ones(1))
    assert type(result) is Box and result.other[1] is result and result.other[0] is result.value


def nonlocal_count(x):
    count = 0

    def bump(k):
        nonlocal count
        count += k
        return count

    y = x * bump(2)
    y = y + bump(3)
    return y, count, bump


@pytest.mark.row("S002-55")
def test_cells_are_shared_with_closures_that_escape() -> None:
    w = godynamo.optimize(nonlocal_count, backend=nb())
    for _ in range(2):
        y, count, bump = w(torch.ones(2))
        assert y.tolist() == [7.0, 7.0] and count == 5 and bump(1) == 6 and bump(1) == 7
