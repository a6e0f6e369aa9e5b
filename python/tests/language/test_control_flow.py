"""Compound statements: rows S004-118 to S004-140."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import enum
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils
from harness.graph_counts import nb, one_graph, same, split, unsupported, x3

row = pytest.mark.row


# ---- if and while


@row("S004-118")
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_if(n: int) -> None:
    def f(x: torch.Tensor, n: int, mode: str) -> Any:
        if n == 0:
            y = x + 1
        elif n == 1 and mode == "a":
            y = x * 2
        elif n == 2 or not mode:
            y = x - 3
        else:
            y = x / 4
        if x.shape[0] == 3 and x.dim() == 1:
            y = y + 1
        return y

    one_graph(f, x3(), n, "a")


def layer_with_flag(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return (x.sin() if flag else x.cos()) + 1


def stage_with_flag(x: torch.Tensor, flag: bool) -> torch.Tensor:
    return layer_with_flag(x * 2, flag) * 3


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("negated", [False, True])
def test_a_flag_of_the_data_on_which_inlined_functions_branch(negated: bool, whole: bool) -> None:
    """The graph breaks where the flag is made, so one graph holds all calls that branch on it.

    The inline backend predicts the flag until four predictions have been wrong.
    """

    def f(x: torch.Tensor) -> torch.Tensor:
        flag = (x > 0).any().item()
        if negated:
            flag = not flag
        for _ in range(3):
            x = stage_with_flag(x + 1, flag)
        return x

    optimized = godynamo.optimize(f, backend=nb() if whole else "eager")
    calls = (x3(), -x3().abs()) * 2
    for x in calls if not whole else ():
        assert torch.equal(optimized(x), f(x))
    utils.counters.clear()
    for x in calls:
        assert torch.equal(optimized(x), f(x))
    assert utils.counters["frames"]["total"] == 3  # up to the flag, and from there on with each of its values


@row("S004-118")
def test_the_chosen_arm_is_guarded() -> None:
    def f(x: torch.Tensor, flag: Any) -> Any:
        if flag:
            return x + 1
        return x * 2

    backend = nb()
    compiled = godynamo.optimize(f, backend=backend)
    for flag in (True, False, True, False):
        assert torch.equal(compiled(x3(), flag), f(x3(), flag))
    assert len(backend) == 2


@row("S004-119")
@pytest.mark.parametrize("flag", [True, False])
def test_ternary_return(flag: bool) -> None:
    one_graph(lambda x, c: x + 1 if c else (x * 2, 3), x3(), flag)


@row("S004-120")
def test_if_on_one_element_tensor() -> None:
    def fn(x: torch.Tensor) -> bool:
        if x:
            return True
        return False

    def around(x: torch.Tensor) -> Any:
        y = x + 1
        if y:
            return y * 2
        return y * 3

    assert godynamo.optimize(fn, backend=nb())(torch.rand(1) + 0.1) is True
    split(around, torch.rand(1))
    split(around, torch.tensor([-1.0]))


@row("S004-121")
def test_if_on_several_elements() -> None:
    def fn() -> None:
        if torch.rand(2):
            print("Tensor is available")
        if torch.rand(4, 5, 6):
            print("Tensor is available")

    same(fn)
    with pytest.raises(RuntimeError, match="^Boolean value of Tensor with more than one value is ambiguous$"):
        godynamo.optimize(fn, backend=nb())()


@row("S004-123", "S004-226", "S004-234")
def test_is_scripting_arm_is_not_taken() -> None:
    def f(x: torch.Tensor) -> Any:
        if torch.jit.is_scripting():
            return undefined_name(x)  # type: ignore[name-defined] # noqa: F821
        if not torch.jit.is_scripting() and not torch.jit.is_tracing():
            x = x + 1
        return x * 2

    one_graph(f, x3())


@row("S004-124")
def test_while() -> None:
    def f(x: torch.Tensor, n: int) -> Any:
        while n > 0:
            x = x + n
            n -= 1
        items = [1, 2, 3]
        while items:
            x = x * items.pop()
        return x

    one_graph(f, x3(), 4)


@row("S004-125")
def test_while_on_tensor() -> None:
    def f(x: torch.Tensor) -> Any:
        while x.sum() < 100:
            x = x * 2
        return x + 1

    split(f, torch.ones(3), at_most=3)


@row("S004-126")
@pytest.mark.parametrize("stop", [2, 10])
def test_while_else(stop: int) -> None:
    def f(x: torch.Tensor, stop: int) -> Any:
        n = 0
        while n < 5:
            if n == stop:
                break
            x = x + n
            n += 1
        else:
            x = x * 100
        return x

    one_graph(f, x3(), stop)


# ---- for


def numbers(n: int) -> Any:
    for i in range(n):
        yield i * i


ITERABLES = {
    "range": lambda x: range(4),
    "negative range": lambda x: range(5, 0, -2),
    "list": lambda x: [1, 2],
    "tuple": lambda x: (1, 2.5),
    "dict": lambda x: {1: "a", 2: "b"},
    "items": lambda x: {1: "a", 2: "b"}.items(),
    "values": lambda x: {"a": 3}.values(),
    "str": lambda x: "ab",
    "bytes": lambda x: b"ab",
    "set": lambda x: {3},
    "rows": lambda x: torch.stack([x, x + 1]),
    "zip": lambda x: zip([1, 2], x),
    "enumerate": lambda x: enumerate(x),
    "reversed": lambda x: reversed([1, 2]),
    "map": lambda x: map(lambda v: v * 2, [1, 2]),
    "filter": lambda x: filter(None, [0, 1, 2]),
    "generator": lambda x: numbers(3),
    "generator expression": lambda x: (x * i for i in range(3)),
    "iterator": lambda x: iter([1, 2]),
    "nested": lambda x: [(1, (2, 3)), (4, (5, 6))],
    "empty": lambda x: [],
}


@row("S004-127")
@pytest.mark.parametrize("name", ITERABLES)
def test_for(name: str) -> None:
    make = ITERABLES[name]

    def f(x: torch.Tensor) -> Any:
        out = []
        for item in make(x):
            out.append(item)
        return x + len(out), out

    one_graph(f, x3())


@row("S004-127")
def test_for_targets() -> None:
    def f(x: torch.Tensor, items: list[Any]) -> Any:
        d = {}
        for d["k"], (b, *c) in items:
            x = x + d["k"] * b
        return x, d, c

    one_graph(f, x3(), [(1, (2, 3)), (4, (5, 6, 7))])
    same(lambda x: [v for v in 5], x3())


class Countdown:
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> int:
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@row("S004-127")
def test_for_over_user_iterators() -> None:
    def f(x: torch.Tensor, c: Countdown) -> Any:
        for i in c:
            x = x + i
        return x

    one_graph(f, x3(), Countdown(3))


@row("S004-128")
@pytest.mark.parametrize("stop", [2, 10])
def test_for_else(stop: int) -> None:
    def f(x: torch.Tensor, stop: int) -> Any:
        for n in range(5):
            if n == stop:
                break
            x = x + n
        else:
            x = x * 100
        return x, n

    one_graph(f, x3(), stop)


@row("S004-129")
def test_for_over_heterogenous_tuple() -> None:
    def fn() -> None:
        tup = (3, torch.ones(4))
        for x in tup:
            print(x)

    split(fn)


class SubModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return self.weight + input


class MyModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mods = nn.ModuleList([SubModule() for i in range(10)])

    def forward(self, v: torch.Tensor) -> torch.Tensor:
        for module in self.mods:
            v = module(v)
        return v


@row("S004-130")
def test_for_over_module_list() -> None:
    assert len(one_graph(MyModule(), torch.randn(2)).ops()) == 10


@row("S004-131")
def test_list_growing_during_iteration() -> None:
    def f(x: torch.Tensor, items: list[int]) -> Any:
        for i in items:
            if i < 4:
                items.append(i + 2)
            x = x + i
        for i in items:
            if i > 3:
                items.remove(i)
        return x

    one_graph(f, x3(), [1, 2])

    def g(x: torch.Tensor, d: dict[int, int]) -> Any:
        y = x + 1
        for k in d:
            d[k + 10] = 1
        return y

    same(g, x3(), {1: 2})


@row("S004-132")
def test_for_with_a_break_in_the_body() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        for i in range(3):
            y = y * 2
            unsupported(i)
            y = y - i
        return y / 3

    backend = split(f, x3(), at_most=6)
    assert "add" in backend.ops()
    assert "truediv" in backend.all_ops()

    def printing(x: torch.Tensor) -> Any:
        y = x + 1
        for i in range(3):
            y = y * 2
            print(i, y.sum())
            y = y - i
        return y / 3

    split(printing, x3(), at_most=6)


# ---- with


class Manager:
    def __init__(self, log: list[Any], name: str, suppress: bool = False) -> None:
        self.log = log
        self.name = name
        self.suppress = suppress

    def __enter__(self) -> str:
        self.log.append(("enter", self.name))
        return self.name

    def __exit__(self, kind: Any, value: Any, tb: Any) -> bool:
        self.log.append(("exit", self.name, kind, str(value), tb is None))
        return self.suppress


@row("S004-133")
def test_with() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        with Manager(log, "a") as a, Manager(log, "b") as b:
            x = x + 1
            with Manager(log, "c"):
                x = x * 2
        return x, a, b

    one_graph(f, x3(), [])


@row("S004-134")
@pytest.mark.parametrize("suppress", [True, False])
def test_with_and_exceptions(suppress: bool) -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        y = x + 1
        with Manager(log, "outer", suppress), Manager(log, "inner"):
            y = y * 2
            raise ValueError("text")
        return y * 3

    if suppress:
        one_graph(f, x3(), [])
    else:
        same(f, x3(), [])


@contextlib.contextmanager
def managed(log: list[Any]) -> Any:
    log.append("enter")
    try:
        yield len(log)
    finally:
        log.append("exit")


@row("S004-135")
def test_with_and_try() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        with Manager(log, "a"):
            try:
                x = x + 1
                raise KeyError("k")
            except KeyError:
                x = x * 2
            finally:
                log.append("finally")
        return x

    one_graph(f, x3(), [])


CONTEXTS = {
    "no_grad": lambda: torch.no_grad(),
    "enable_grad": lambda: torch.enable_grad(),
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "inference_mode": lambda: torch.inference_mode(),
    "profiler": lambda: torch.profiler.record_function("block"),
    "nullcontext": lambda: contextlib.nullcontext(),
    "suppress": lambda: contextlib.suppress(KeyError),
}


@row("S004-135")
@pytest.mark.parametrize("name", CONTEXTS)
def test_with_torch_contexts(name: str) -> None:
    make = CONTEXTS[name]

    def f(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = x + 1
        with make():
            z = y @ w
            inside = torch.is_grad_enabled()
        return z * 2, inside, torch.is_grad_enabled(), z.requires_grad

    one_graph(f, x3(), torch.randn(3, 3))
    godynamo.reset()
    same(f, x3(), torch.randn(3, 3, requires_grad=True))


# ---- generators


def sender(x: torch.Tensor) -> Any:
    total = x
    while True:
        got = yield total
        if got is None:
            return "done"
        total = total + got


def delegating(x: torch.Tensor) -> Any:
    result = yield from inner_gen(x)
    yield result


def inner_gen(x: torch.Tensor) -> Any:
    yield x + 1
    yield x + 2
    return x * 3


def cleaning(log: list[Any]) -> Any:
    try:
        yield 1
        yield 2
    except KeyError as e:
        log.append(("caught", str(e)))
        yield 3
    finally:
        log.append("closed")


@row("S004-136")
def test_generators() -> None:
    def f(x: torch.Tensor) -> Any:
        def local(n: int) -> Any:
            for i in range(n):
                yield x * i

        return [*local(3)], list(delegating(x)), sum(local(2))

    one_graph(f, x3())


@row("S004-136")
def test_send_throw_close() -> None:
    def send(x: torch.Tensor, log: list[Any]) -> Any:
        g = sender(x)
        out = [next(g), g.send(1), g.send(2)]
        try:
            g.send(None)
        except StopIteration as e:
            out.append(e.value)
        return out

    def throw(x: torch.Tensor, log: list[Any]) -> Any:
        g = cleaning(log)
        out = [next(g), g.throw(KeyError("k"))]
        g.close()
        return x + 1, out

    for f in (send, throw):
        godynamo.reset()
        one_graph(f, x3(), [])


@row("S004-136")
def test_contextmanager() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        with managed(log) as n:
            x = x + n
        return x * 2

    one_graph(f, x3(), [])


@row("S004-136")
def test_generator_left_unfinished_and_returned() -> None:
    def f(x: torch.Tensor) -> Any:
        g = inner_gen(x + 1)
        first = next(g)
        return first, g

    compiled = godynamo.optimize(f, backend=nb())
    for _ in range(3):
        first, rest = compiled(x3())
        expected_first, expected_rest = f(x3())
        assert torch.equal(first, expected_first)
        assert [v.tolist() for v in rest] == [v.tolist() for v in expected_rest]


# ---- try


@row("S004-137")
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_try(n: int) -> None:
    def f(x: torch.Tensor, n: int, log: list[Any]) -> Any:
        try:
            log.append("body")
            if n == 1:
                raise KeyError("k")
            if n == 2:
                [][n]
            x = x + 1
        except (KeyError, ZeroDivisionError) as e:
            log.append(repr(e))
            x = x * 2
        except LookupError:
            x = x * 3
            try:
                int("no")
            except ValueError as inner:
                log.append(str(inner))
        else:
            log.append("else")
        finally:
            log.append("finally")
        return x

    one_graph(f, x3(), n, [])


@row("S004-137")
def test_try_uncaught_and_bare_raise() -> None:
    def f(x: torch.Tensor, n: int, log: list[Any]) -> Any:
        y = x + 1
        try:
            try:
                {}[n]
            except KeyError:
                log.append("inner")
                raise
            finally:
                log.append("finally")
        except IndexError:
            log.append("not here")
        return y

    same(f, x3(), 3, [])


@row("S004-137")
def test_except_star() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> Any:
        y = x + 1
        try:
            raise ExceptionGroup("g", [ValueError("v"), KeyError("k")])
        except* ValueError as group:
            log.append([str(e) for e in group.exceptions])
        except* KeyError:
            log.append("key")
        return y * 2

    split(f, x3(), [], at_most=3)


@row("S004-138")
def test_exception_of_a_tensor_operation() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> Any:
        y = x + 1
        try:
            z = y @ w
        except RuntimeError as e:
            return y * 2, str(e)
        return z

    split(f, x3(), torch.randn(4, 4), at_most=3)
    godynamo.reset()
    split(f, x3(), torch.randn(3, 3), at_most=3)


# ---- match


@dataclasses.dataclass
class Vector:
    a: Any
    b: Any = 0


class Positional:
    __match_args__ = ("v",)

    def __init__(self, v: Any) -> None:
        self.v = v


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def matched(x: torch.Tensor, command: Any) -> Any:
    match command:
        case 1 | 2:
            return x + 1
        case -3.5:
            return x + 2
        case None:
            return x + 3
        case "word" | b"bytes":
            return x + 4
        case True:
            return x + 5
        case Color.RED:
            return x + 6
        case []:
            return x + 7
        case [a]:
            return x + 8, a
        case [1, b, *rest] if b > 5:
            return x + 9, b, rest
        case (a, [b, c]):
            return x + 10, a, b, c
        case [first, *_, last]:
            return x + 11, first, last
        case {"k": v, "n": {"m": m}}:
            return x + 12, v, m
        case {"k": v, **rest} if rest:
            return x + 13, v, rest
        case {"k": str() as text}:
            return x + 14, text
        case {}:
            return x + 15
        case Vector(a=0, b=b):
            return x + 16, b
        case Vector(a, b) if a == b:
            return x + 17, a, b
        case Vector() as whole:
            return x + 18, whole
        case Positional(Positional(v)):
            return x + 19, v
        case Positional(int(v)):
            return x + 20, v
        case int(n) | float(n):
            return x + 21, n
        case str(s):
            return x + 22, s
        case torch.Tensor() as t:
            return x + t
        case _:
            return x + 24


SUBJECTS = [
    1, 2, -3.5, None, "word", b"bytes", True, Color.RED, Color.BLUE, [], [5], (7,), [1, 6, 7, 8], [1, 2, 7], (2, [2,
    3]),
    [1, 2, 3], range(3), {"k": 1, "n": {"m": 2}}, {"k": 1, "z": 0}, {"k": "t"}, {"k": 3}, {}, {"q": 1}, Vector(0, 5), Vector(3, 3),  # noqa: E501
    Vector(3, 4), Positional(Positional(9)), Positional(8), Positional("s"), 77, 7.5, "other", torch.ones(3), object,
    {1}, 2j,
]  # fmt: skip


@row("S004-139")
@pytest.mark.parametrize("number", range(len(SUBJECTS)))
def test_match(number: int) -> None:
    subject = SUBJECTS[number]
    if isinstance(subject, torch.Tensor):  # its comparison with 1 has several elements, so bool() raises
        same(matched, x3(), subject)
    else:
        one_graph(matched, x3(), subject)


@row("S004-139")
@pytest.mark.parametrize("subject", [torch.ones(3), 3, Vector(1, torch.ones(3))], ids=lambda v: type(v).__name__)
def test_match_on_classes(subject: Any) -> None:
    def f(x: torch.Tensor, v: Any) -> Any:
        match v:
            case torch.Tensor(shape=(n,)) as t:
                return x + t + n
            case Vector(a=a, b=torch.Tensor() as b):
                return x + a + b
            case int() | float():
                return x * v

    one_graph(f, x3(), subject)


@row("S004-139")
def test_match_errors() -> None:
    def too_many(x: torch.Tensor, p: Any) -> Any:
        y = x + 1
        match p:
            case Positional(1, 2):
                return y
        return y * 2

    def not_a_class(x: torch.Tensor, p: Any) -> Any:
        y = x + 1
        kind = 5
        match p:
            case kind():  # type: ignore[misc]
                return y
        return y * 2

    for f in (too_many, not_a_class):
        godynamo.reset()
        same(f, x3(), Positional(1))


# ---- async


class AsyncThing:
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    async def __aenter__(self) -> int:
        self.log.append("enter")
        return 5

    async def __aexit__(self, *exc: Any) -> None:
        self.log.append("exit")

    async def items(self) -> Any:
        for i in range(3):
            yield i


@row("S004-140")
def test_async() -> None:
    async def work(x: torch.Tensor, log: list[Any]) -> Any:
        thing = AsyncThing(log)
        async with thing as k:
            x = x + k
        async for i in thing.items():
            x = x * (i + 1)
        got = await asyncio.sleep(0, result=2)
        return x * got, [v async for v in thing.items()]

    def f(x: torch.Tensor, log: list[Any]) -> Any:
        y = x + 1
        return asyncio.run(work(y, log))

    same(f, x3(), [])
    compiled = godynamo.optimize(work, backend=nb())
    log: list[Any] = []
    actual = asyncio.run(compiled(x3(), log))
    expected = asyncio.run(work(x3(), []))
    assert torch.equal(actual[0], expected[0])
    assert actual[1] == expected[1]
    assert log == ["enter", "exit"]
