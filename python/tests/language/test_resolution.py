"""tuple, getattr, hasattr, zip, enumerate, and the resolution rules: rows S004-141 to S004-150."""

from __future__ import annotations

import builtins
import math
import os
import subprocess
import sys
import types
from math import pi as module_pi
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import add as torch_add
from torch import nn

import godynamo
import harness.graph_counts as support
from harness.graph_counts import nb, one_graph, same, x3
from test_builtins_a_to_h import Bare2, raises, with_tensor

row = pytest.mark.row


# ---- the statements tuple, getattr, hasattr, zip, enumerate


@row("S004-141")
def test_tuple_of_iterables() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    named = nn.ModuleDict({"a": nn.ReLU()})

    def func(x: torch.Tensor) -> Any:
        return x + 1, x * 2

    def f(x: torch.Tensor, items: list[int], d: dict[str, int]) -> Any:
        abc_ = func(x)
        a, b = func(x)
        return (
            abc_,
            a,
            b,
            tuple(x),
            tuple(items),
            tuple((1, 2)),
            tuple(d),
            tuple("ab"),
            len(tuple(layers)),
            tuple(named),
        )

    one_graph(f, x3(), [1, 2], {"a": 1})
    with_tensor(lambda: (tuple(), tuple(range(3)), tuple(v for v in (1, 2))))
    raises(lambda: tuple(5))
    raises(lambda: tuple(1, 2))


@row("S004-142", "S004-176")
def test_getattr() -> None:
    def f(x: torch.Tensor, o: Any, name: str) -> Any:
        computed = "ki" + "nd"
        return (
            getattr(x, "shape"),
            getattr(x, "re" + "lu")(),
            getattr(o, "v"),
            getattr(o, computed),
            getattr(o, name, "default"),
            getattr(o, "missing", x),
            getattr(torch, "sin")(x),
            getattr(math, "pi"),
            getattr(torch._C, "_no_such_name", None),
            getattr(F, "relu")(x),
        )

    one_graph(f, x3(), Bare2(), "v")
    godynamo.reset()
    one_graph(f, x3(), Bare2(), "nothing")
    raises(lambda o: getattr(o, "missing"), Bare2())
    raises(lambda o: getattr(o, 5), Bare2())
    raises(lambda o: getattr(o), Bare2())
    same(lambda x: (x + 1, torch.classes.no_such_library.thing), x3())


@row("S004-143", "S004-178")
def test_hasattr() -> None:
    with_tensor(
        lambda o: (
            hasattr(o, "v"),
            hasattr(o, "no"),
            hasattr(o, "kind"),
            hasattr(torch, "sin"),
            hasattr(torch._C, "_no"),
            hasattr(5, "real"),
            hasattr([], "append"),
            hasattr(int, "nope"),
            hasattr(math, "pi"),
        ),
        Bare2(),
    )
    one_graph(lambda x: (x + 1, hasattr(x, "shape"), hasattr(x, "no_such_attribute"), hasattr(x, "relu")), x3())
    module = nn.Linear(3, 3)
    one_graph(lambda x: (x + 1, hasattr(module, "weight"), hasattr(module, "no"), hasattr(module, "forward")), x3())
    raises(lambda o: hasattr(o, 5), Bare2())


@row("S004-144", "S004-211")
def test_zip() -> None:
    a, b = [1, 2], [2, 3, 4]
    with_tensor(lambda a, b: list(zip(a, b)), a, b)
    with_tensor(lambda a, b: list(zip(tuple(a), b)), a, b)
    with_tensor(lambda a, b: list(zip(a, b)), [1.3, 2.4], b)
    with_tensor(lambda a, b: (list(zip()), list(zip(a)), dict(zip("ab", b)), list(zip(*[(1, 2), (3, 4)]))), a, b)
    with_tensor(lambda a: list(zip(a, (5, 6), strict=True)), a)
    one_graph(lambda x, y: [v * w for v, w in zip(x, y)], x3(), x3())
    raises(lambda a, b: list(zip(a, b, strict=True)), a, b)
    raises(lambda a, b: list(zip(b, a, strict=True)), a, b)
    raises(lambda a: list(zip(a, 5)), a)

    def consumed(x: torch.Tensor) -> Any:
        it = iter([1, 2, 3])
        first = list(zip(it, [10]))
        return x + 1, first, list(it)

    one_graph(consumed, x3())


@row("S004-145", "S004-169")
def test_enumerate() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def f(x: torch.Tensor) -> Any:
        for i, layer in enumerate(layers):
            x = layer(x) + i
        for i, r in enumerate(x, start=2):
            x = x + i * r
        return (
            x,
            list(enumerate("ab")),
            list(enumerate((1, 2), 5)),
            list(enumerate({"k": 1})),
            [*enumerate(range(2), -1)],
        )

    one_graph(f, x3())
    raises(lambda: list(enumerate(5)))
    raises(lambda: list(enumerate([1], "s")))
    raises(lambda: enumerate())


# ---- resolution rules


@row("S004-146")
def test_python_implementation_is_inlined() -> None:
    assert one_graph(lambda x: support.x3() + x, x3()).ops()[-1] == "add"


@row("S004-147")
def test_wrapper_becomes_its_node() -> None:
    assert one_graph(lambda x: F.relu(x) + F.softmax(x, dim=0), x3()).ops() == ["relu", "softmax", "add"]


@row("S004-148")
def test_aliases_become_the_same_node() -> None:
    backend = one_graph(lambda x: torch_add(torch.add(x, 1), torch.functional.torch.add(x, 2)), x3())
    targets = {n.target for n in backend.graphs[0].graph.nodes if n.op == "call_function"}
    assert len(targets) == 1, targets


def _shadowing() -> Any:
    def all(x: Any) -> Any:
        return x * 100

    return lambda x: all(x) + 1


len_shadowed = types.FunctionType(
    compile("lambda x: len(x)", "shadow.py", "eval").co_consts[0], {"len": lambda x: x + 7}, "len_shadowed"
)


@row("S004-149")
def test_builtins_are_resolved_by_object() -> None:
    one_graph(_shadowing(), x3())
    assert torch.equal(godynamo.optimize(len_shadowed, backend=nb())(x3()), x3() + 7)
    one_graph(len_shadowed, x3())
    renamed = abs
    one_graph(lambda x: renamed(x), x3())


@row("S004-149")
def test_replaced_builtin_is_seen() -> None:
    f = godynamo.optimize(lambda x, items: x + len(items), backend=nb())
    assert torch.equal(f(x3(), [1]), x3() + 1)
    original = builtins.len
    builtins.len = lambda v: 50  # type: ignore[assignment]
    try:
        changed = f(x3(), [1])
    finally:
        builtins.len = original
    assert torch.equal(changed, x3() + 50)
    assert torch.equal(f(x3(), [1]), x3() + 1)


@pytest.mark.parametrize("name", ["len", "isinstance"])
def test_a_builtin_that_is_replaced_before_the_first_graph(name: str) -> None:
    code = f"""
import builtins, torch, godynamo
from godynamo.testing import CompileCounter
torch.relu(torch.ones(1))
original = builtins.{name}
ours = lambda *a: 50 if a == ([1],) else original(*a)
builtins.{name} = ours
f = godynamo.optimize(lambda x, v: x + 50 if {name}(*v) == 50 else x * 2, backend=CompileCounter())
print(f(torch.ones(2), ([1],) if "{name}" == "len" else ([1], list)).tolist(), builtins.{name} is ours)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)
    assert run.stdout.split("\n")[0] == ("[51.0, 51.0] True" if name == "len" else "[2.0, 2.0] True"), run.stderr


@row("S004-150")
def test_value_snapshot_is_guarded() -> None:
    backend = nb()
    f = godynamo.optimize(lambda x: x * math.pi + module_pi, backend=backend)
    g = f.__wrapped__
    assert torch.equal(f(x3()), g(x3()))
    original = math.pi
    math.pi = 3  # type: ignore[misc]
    try:
        assert torch.equal(f(x3()), x3() * 3 + module_pi)
    finally:
        math.pi = original  # type: ignore[misc]
    assert torch.equal(f(x3()), x3() * original + module_pi)
    assert len(backend) == 2


def test_a_builtin_whose_key_runs_code() -> None:
    """CPython's test_iter: no lookup in the builtins may call ``__eq__`` but those of the program."""

    class Name:
        def __init__(self, name: str) -> None:
            self.name, self.asked = name, 0

        def __hash__(self) -> int:
            return hash(self.name)

        def __eq__(self, other: object) -> bool:
            self.asked += 1
            return other == self.name

    def replaced(x: Any, name: Name) -> Any:
        before = builtins.__dict__.pop(name.name)
        try:
            builtins.__dict__[name] = before  # type: ignore[index]
            return x + 1, tuple(reversed([1, 2])), called(x)
        finally:
            del builtins.__dict__[name]  # type: ignore[arg-type]
            builtins.__dict__[name.name] = before

    def called(x: Any) -> Any:
        return x * 2

    kept, asked = dict(vars(builtins)), []
    for fn in (replaced, godynamo.optimize(replaced)):
        name = Name("reversed")
        y, items, z = fn(torch.ones(1), name)
        assert y.item() == 2 and items == (2, 1) and z.item() == 2
        asked.append(name.asked)
    assert asked[0] == asked[1] > 0
    assert dict(vars(builtins)) == kept
