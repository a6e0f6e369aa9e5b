"""The symbolic interpreter from outside: opcodes, try tables, inlining, dead code."""

from __future__ import annotations

import dis
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils
from harness.capture import check, counted, entries, nb, no_translation, nodes_of, texts, translations, unsupported

ROOT = Path(__file__).resolve().parents[3]


def deletes_a_global(x):
    global SCRATCH
    SCRATCH = 1
    y = x + 1
    del SCRATCH
    return y * 2


def with_walrus_match(x, command):
    match command:
        case [a, b]:
            return x + a + b
        case {"k": k}:
            return x * k
        case str():
            return x - 1
    return x


@pytest.mark.row("S002-47")
def test_an_opcode_without_a_handler_runs_in_cpython() -> None:
    check(deletes_a_global, torch.randn(3))
    assert any(reason.startswith("missing") for reason in utils.counters["graph_break"]), utils.counters["graph_break"]


@pytest.mark.row("S002-47")
@pytest.mark.parametrize("command", [[1, 2], {"k": 3}, "text", 5])
def test_patterns_are_right(command: Any) -> None:
    check(with_walrus_match, torch.randn(3), command)


@pytest.mark.row("S002-52")
def test_every_opcode_has_a_handler_or_a_reason() -> None:
    """Reads the source text: the table is internal to the translator, and its Go test checks it directly."""
    text = (ROOT / "bytecode" / "translate" / "handlers.go").read_text()
    named = set(re.findall(r"opcode\.([A-Z_0-9]+)", text))
    decoded = {"POP_JUMP_FORWARD_IF_", "POP_JUMP_BACKWARD_IF_", "INSTRUMENTED_", "ENTER_EXECUTOR"}
    missing = [
        name
        for name, op in dis.opmap.items()
        if name not in named and not any(name.startswith(prefix) for prefix in decoded) and op < 256
    ]
    assert missing == []


def every_expression(x, a, b, items, d, s):
    t = (+a, -a, ~a, not a)
    u = [a + b, a - b, a * b, a / b, a // b, a % b, a**2, a << 1, a >> 1, a & b, a | b, a ^ b]
    a += 1
    a -= 2
    a *= 3
    v = {a < b, a <= b, a == b, a != b, a > b, a >= b}
    w = {"k": a in items, "l": a not in items, "m": a is b, "n": a is not b, **d}
    first, *middle, last = items
    del d["gone"]
    e = items[1:], items[-1], s[::2], f"{a!r:>4}{b}{s!s}", [*items, *t], (*items,)
    c = [i * 2 for i in items if i] + sorted({i for i in items}) + list({k: 1 for k in items})
    z = a and b or s
    assert items, "not empty"
    g = (lambda q, r=b: q + r)(a)
    return x + a + g, t, u, sorted(v), w, first, middle, last, e, c, z


@pytest.mark.row("S002-52")
def test_a_function_with_most_opcodes() -> None:
    backend = check(every_expression, torch.randn(2), 5, 3, [1, 2, 3], {"gone": 1, "kept": 2}, "text")
    assert len(backend) >= 1


# ---- try tables ------------------------------------------------------------------------------------------------------


def nested_try(x, what, log):
    try:
        log.append("outer")
        try:
            log.append("inner")
            if what == 1:
                raise KeyError("one")
            if what == 2:
                raise ValueError("two")
            if what == 3:
                return x + 3
            log.append("no error")
        except KeyError as error:
            log.append(repr(error))
            x = x * 2
        else:
            log.append("else")
        finally:
            log.append("inner finally")
        if what == 4:
            raise TypeError("four")
    except (ValueError, TypeError) as error:
        log.append(type(error).__name__)
        if what == 4:
            raise RuntimeError("from") from error
        return x - 1
    finally:
        log.append("outer finally")
    return x + 1


@pytest.mark.row("S002-53")
@pytest.mark.parametrize("what", range(5))
def test_nested_handlers_and_finally(what: int) -> None:
    check(nested_try, torch.randn(3), what, [])


def try_in_loop(x, items):
    out = []
    for item in items:
        try:
            if item == 0:
                continue
            if item < 0:
                break
            out.append(10 // item)
        finally:
            out.append("f")
    else:
        out.append("no break")
    return x + len(out), out


@pytest.mark.row("S002-53")
@pytest.mark.parametrize("items", [[1, 0, 2], [3, -1, 5], []])
def test_try_in_a_loop(items: list[int]) -> None:
    check(try_in_loop, torch.randn(3), items)


def catches_from_helper(x, d):
    try:
        return x + lookup(d, "missing")
    except KeyError:
        return x - 1


def lookup(d, key):
    return d[key]


@pytest.mark.row("S002-53")
def test_an_exception_of_an_inlined_call_meets_the_callers_handler() -> None:
    check(catches_from_helper, torch.randn(3), {})
    check(catches_from_helper, torch.randn(3), {"missing": 4})


# ---- inlining --------------------------------------------------------------------------------------------------------


def inner(x, k):
    return x * k


def outer(x):
    y = inner(x, 2)
    return inner(y, 3) + 1


@pytest.mark.row("S002-54")
def test_a_called_function_is_in_the_same_graph() -> None:
    backend = check(outer, torch.randn(3))
    assert len(backend) == 1 and backend.ops() == ["mul", "mul", "add"]


@pytest.mark.row("S002-54")
def test_the_callee_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    w = godynamo.optimize(outer, backend=nb())
    x = torch.randn(3)
    w(x)
    [entry] = entries(w)
    assert any("inner" in name for name in entry.info["inlined"])
    assert "inner" in entry.text
    monkeypatch.setitem(globals(), "inner", lambda x, k: x - k)
    with translations(1):
        assert torch.equal(w(x), x - 2 - 3 + 1)


@pytest.mark.row("S002-54")
def test_guards_of_the_callees_values_are_the_callers() -> None:
    class Box:
        def __init__(self, k):
            self.k = k

        def scale(self, x):
            return x * self.k

    def f(box, x):
        return box.scale(x) + 1

    w = godynamo.optimize(f, backend=nb())
    box, x = Box(2), torch.randn(3)
    assert torch.equal(w(box, x), x * 2 + 1)
    assert "box.k" in texts(w)[0]
    box.k = 5
    with translations(1):
        assert torch.equal(w(box, x), x * 5 + 1)


@pytest.mark.row("S002-54")
def test_recursion_is_inlined_and_bounded() -> None:
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * x

    def f(x):
        return power(x, 5)

    backend = check(f, torch.randn(2))
    assert backend.ops() == ["mul"] * 5
    with godynamo.config.patch(inline_depth_limit=3):
        check(f, torch.randn(2))


# ---- dead code -------------------------------------------------------------------------------------------------------


def constant_branch(x, flag):
    if flag:
        return x.relu()
    return x.exp().sin().cos()


@pytest.mark.row("S002-65")
def test_the_arm_not_taken_is_not_in_the_graph() -> None:
    backend = check(constant_branch, torch.randn(3), True)
    assert backend.ops() == ["relu"]
    backend = check(constant_branch, torch.randn(3), False)
    assert backend.ops() == ["exp", "sin", "cos"]


def unused_results(x):
    a = x.sin()
    b = x.cos()
    c = a + b
    dead = x.exp()
    y = unsupported(x)
    return c + y


@pytest.mark.row("S002-65")
def test_only_what_is_used_later_is_an_output() -> None:
    backend = check(unused_results, torch.randn(3))
    [output] = nodes_of(backend.graphs[0], "output")
    assert [node.name for node in output.args[0]] == ["add"]


def returns_two(x):
    a = x + 1
    b = a * 2
    c = b - 3
    return b, c, b


@pytest.mark.row("S002-65")
def test_outputs_are_the_values_returned_each_once() -> None:
    backend = check(returns_two, torch.randn(3))
    [output] = nodes_of(backend.graphs[0], "output")
    assert sorted(node.name for node in output.args[0]) == ["mul", "sub"]


@pytest.mark.row("S002-64")
def test_a_break_before_any_operation_makes_no_empty_graph() -> None:
    def f(x):
        unsupported(x)
        return x

    backend = check(f, torch.randn(3))
    assert len(backend) == 0

    def g(x):
        y = unsupported(x)
        return y + 1

    backend = check(g, torch.randn(3))
    assert backend.all_ops() == ["add"] and len(backend) == 1


@pytest.mark.row("S002-64")
def test_an_operation_on_no_tensor_makes_no_graph() -> None:
    def f(x, n):
        m = n * 3
        return x, m

    w = godynamo.optimize(f, backend=(backend := nb()))
    x = torch.randn(2)
    assert w(x, 2) == (x, 6) and w(x, 2)[0] is x
    assert len(backend) == 0
    with no_translation():
        w(x, 2)
    assert counted("internal_errors") == 0
