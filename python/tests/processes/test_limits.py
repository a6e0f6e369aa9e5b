"""Programs of extreme size are translated or skipped, with correct results; an interrupt reaches the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C


def made(source: str, **names: Any) -> Callable[..., Any]:
    """Return the function f of a source text."""
    namespace = {"torch": torch, **names}
    exec(compile(source, "<generated>", "exec"), namespace)
    return namespace["f"]


def lines(head: str, line: Callable[[int], str], n: int, tail: str) -> Callable[..., Any]:
    return made(head + "".join(line(i) for i in range(n)) + tail)


def nested_calls(n: int) -> Callable[..., Any]:
    text = "def f0(x):\n    return x\n" + "".join(f"def f{i}(x):\n    return f{i - 1}(x) + 1\n" for i in range(1, n))
    return made(text + f"f = f{n - 1}")


def blocks(n: int, opening: str) -> Callable[..., Any]:
    text = "def f(x):\n" + "".join("    " * (i + 1) + opening + "\n" for i in range(n))
    return made(text + "    " * (n + 1) + "x = x + 1\n    return x")


X = torch.arange(4.0)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "10,000 lines of operations": (lines("def f(x):\n", lambda i: f"    x = x + {i}\n", 10_000, "    return x"), (X,)),
    "10,000 lines of numbers": (
        lines("def f(x):\n    n = 0\n", lambda i: f"    n += {i}\n", 10_000, "    return x + n"),
        (X,),
    ),
    "1,000 constants": (
        lines("def f(x):\n    n = 0\n", lambda i: f"    n += {i}.5\n", 1_000, "    return x + n"),
        (X,),
    ),
    "1,000 texts": (
        lines("def f(x):\n    n = []\n", lambda i: f"    n.append('c{i}')\n", 1_000, "    return x + len(n)"),
        (X,),
    ),
    "19 loops in each other": (blocks(19, "for _ in range(1):"), (X,)),
    "90 ifs in each other": (blocks(90, "if x.dim() == 1:"), (X,)),
    "500 with blocks": (
        lines("def f(x):\n", lambda i: "    with torch.no_grad():\n        x = x + 1\n", 500, "    return x"),
        (X,),
    ),
    "500 try blocks": (
        made(
            "def f(x):\n"
            + "    try:\n        x = x + 1\n    except ValueError:\n        x = -x\n" * 500
            + "    return x"
        ),
        (X,),
    ),
    "500 calls in each other": (nested_calls(500), (X,)),
    "5,000 operations": (made("def f(x):\n    for _ in range(5000):\n        x = x + 1\n    return x"), (X,)),
    "100,000 operations": (made("def f(x):\n    for _ in range(100000):\n        x = x + 1\n    return x"), (X,)),
    "a million turns": (
        made("def f(x):\n    n = 0\n    for i in range(1000000):\n        n += i\n    return x + n"),
        (X,),
    ),
    "30,000 tuples in each other": (
        made("def f(x):\n    t = ()\n    for _ in range(30000):\n        t = (t,)\n    return x + len(t)"),
        (X,),
    ),
    "1,000 arguments": (
        made("def f(x, *a):\n    n = 0\n    for v in a:\n        n += v\n    return x + n"),
        (X, *range(1000)),
    ),
    "a list of a million": (made("def f(x, a):\n    return x + len(a) + a[3]"), (X, list(range(1_000_000)))),
    "a dict of 10,000": (made("def f(x, d):\n    return x + sum(d.values())"), (X, {i: i for i in range(10_000)})),
    "200 splits": (
        made("def f(x, p):\n" + "    p()\n    x = x + 1\n" * 200 + "    return x"),
        (X, godynamo.disable(lambda: None)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_extreme_programs(name: str) -> None:
    fn, args = PROGRAMS[name]
    expected = fn(*args)
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert torch.equal(compiled(*args), expected)
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("through", ["the function itself", "an inlined one"])
def test_endless_recursion(through: str) -> None:
    if through == "the function itself":
        fn = made("def f(x):\n    return f(x + 1)")
    else:
        fn = made("def h(x):\n    return h(x)\ndef f(x):\n    return h(x + 1)")
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
            compiled(X)


RECURSIVE = {
    "lru_cache": "@functools.lru_cache(None)\ndef down(n): return n if n <= 1 else down(n - 1) + 1",
    "map": "def down(n): return max(map(lambda k: 0 if k == 0 else 1 + down(k - 1), [n]))",
    "getattr": """
class Down:
    def __getattr__(self, name):
        n = int(name[1:])
        return 0 if n == 0 else 1 + getattr(self, f"a{n - 1}")
def down(n): return getattr(Down(), f"a{n}")""",
    "python": "def down(n): return 0 if n == 0 else 1 + down(n - 1)",
}


@pytest.mark.parametrize("through", RECURSIVE)
def test_deep_recursion_with_everything_translated(through: str) -> None:
    """It ends with the right result or with RecursionError, never with a crash."""
    # CPython 3.11 has no limit for recursion in C, so a raised recursion limit makes it overflow the C stack by itself.
    depths = (500, 10_000, 60_000) if sys.version_info >= (3, 12) or through == "python" else (500,)
    text = f"""
import functools, sys
import torch, godynamo
godynamo.config.translate_everything = True
{RECURSIVE[through]}
def tried(fn, n):
    try:
        return fn(n)
    except RecursionError:
        return "RecursionError"
sys.setrecursionlimit(200_000)
for n in {depths}:
    got = tried(godynamo.optimize(lambda n: down(n)), n)
    assert got == n or n > 500 and got == "RecursionError", (n, got)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(godynamo.__file__).parents[1])}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]


def test_15_000_frames_above_and_below() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        below = made("def h(x, n):\n    return x if n == 0 else h(x, n - 1) + 1\ndef f(x):\n    return h(x, 15000)")
        assert torch.equal(godynamo.optimize(below)(X), X + 15_000)

        compiled = godynamo.optimize(lambda x: x * 2)

        def above(n: int) -> torch.Tensor:
            return compiled(X) if n == 0 else above(n - 1)

        assert torch.equal(above(15_000), X * 2)
    finally:
        sys.setrecursionlimit(limit)


def test_an_interrupt_while_translating() -> None:
    """KeyboardInterrupt is raised before the translation ends, and the next call is correct.

    A system timer sends the signal: during a translation, no other Python thread runs.
    """
    fn = made("def f(x):\n    for _ in range(20000):\n        x = x + 1\n    return x")
    fn(X)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        compiled = godynamo.optimize(fn)
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            compiled(X)
            time.sleep(1)
        assert _C.counters()["translated"] == 0
        for _ in range(2):
            assert torch.equal(compiled(X), X + 20_000)
        assert _C.counters()["translated"] == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert _C.counters()["internal_errors"] == 0
