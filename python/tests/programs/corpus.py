"""Small programs, one construct each; test_programs.py runs them against plain CPython under several backends.

Every program is a module-level function with its arguments in CASES; it may mutate them.
"""
# ruff: noqa: B018, E731

from __future__ import annotations

import math
import os
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F

G = 3
STORED: Any = None


class Counter:
    """A user object with state."""

    scale = 2

    def __init__(self, v: Any) -> None:
        self.v = v

    def add(self, x: Any) -> Any:
        self.v += 1
        return x + self.v

    @property
    def twice(self) -> Any:
        return self.v * 2

    @staticmethod
    def half(x: Any) -> Any:
        return x / 2

    @classmethod
    def scaled(cls, x: Any) -> Any:
        return x * cls.scale


class Base:
    def run(self, x: Any) -> Any:
        return x + 1


class Derived(Base):
    def run(self, x: Any) -> Any:
        return super().run(x) * 2


def helper(x: Any, k: int = 2) -> Any:
    return x * k + G


def relu(a, b):
    return (a + b).relu() * 2


def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def inline(x):
    return helper(helper(x), k=5)


def list_mutated(x, items):
    items.append(x + 1)
    items[0] = x
    return len(items), items[-1] * 2


def dict_mutated(x, d):
    d["k"] = x * 2
    return d["k"] + d.get("z", 1), list(d)


def loop(x):
    for i in range(4):
        x = x + i
    return x


def comprehension(x):
    return sum([x * i for i in range(3)])


def closure(x):
    y = 2

    def g(z):
        nonlocal y
        y += 1
        return z * y + x

    return g(x), y


def recursive_closure(x):
    def down(n):
        return x if n == 0 else down(n - 1) * 2

    return down(3)


def returns_closure(x):
    k = 3

    def g(z):
        return z * k + x

    return g(x), g(x * 2)


def shapes(x):
    return x.view(x.shape[0] * x.shape[1]), x.size(0), x.dim(), len(x), x.numel()


def user_object(x, c):
    return c.add(x), c.twice, c.half(x), c.scaled(x)


def new_object(x):
    c = Counter(3)
    r = c.add(x)
    c.extra = [c]
    return r, c.v, c.extra[0] is c


def uses_super(x):
    return Derived().run(x)


def prints(x):
    print("hello", 3, sep="-")
    y = x + 1
    print(y.shape)
    return y


def breaks_on_call(x):
    y = x * 2
    z = y + eval("y+1")
    return z * 3


def breaks_with_list(x):
    items = [x]
    open(os.devnull).close()
    items.append(x)
    return items


def breaks_in_loop(x):
    for i in range(3):
        x = x + i
        open(os.devnull).close()
    return x


def breaks_in_expression(x):
    return x + math.floor(float(x.sum() * 0)) * x


def breaks_with_closure(x):
    n = 1

    def bump():
        nonlocal n
        n += 1
        return n

    y = x * bump()
    open(os.devnull).close()
    return y * bump() + n


def raises(x):
    x + 1
    raise ValueError("no %d" % 3)


def raises_after_effect(x, items):
    items.append(1)
    y = x + 1
    items.append(2)
    y @ torch.ones(77, 3)
    items.append(3)


def raises_inside(x):
    return raises_after_effect(x, [])


def keywords(x, *, s=2, **kw):
    return x * s + kw.get("q", 0)


def star_args(x, *args):
    return x + len(args), args


def unpacking(x):
    a, (b, *c) = x, (1, 2, 3)
    return a * b + c[1], [*c, b], {**{"a": 1}, "b": x}


def several_results(x):
    v, i = torch.max(x, 0)
    return v, i, torch.max(x, dim=1).values


def chunks(x):
    a, b = x.chunk(2)
    return a + b


def item(x):
    return x * x.sum().item()


def formats(x):
    return x, f"{x.shape[0]}-{G!r:>4}-{x.dtype}"


def constructor(n):
    return torch.ones(n) * 2


def pure_python(a, b):
    s = 0
    for i in range(a):
        s += i * b
    return s


def item_stored(x):
    y = torch.zeros(3)
    y[1] = x[0, 0]
    return y


def while_on_tensor(x):
    while x.abs().sum() < 10:
        x = x * 2 + 1
    return x


def and_or(x, y):
    return (x.sum() > 0) and y, y or x


def stores_global(x):
    global STORED
    STORED = x + 1
    return STORED * 2


def identity(x):
    return x


def concatenation(x):
    return torch.cat([x, x], dim=0), torch.stack((x, x))


def attributes(x):
    return x.T, x.dtype, x.device, x.requires_grad


def in_place(x):
    y = x
    x += 1
    x.mul_(2)
    return y is x, y


def tensor_error(x):
    y = x + 1
    return y @ torch.ones(77, 3)


def tensor_error_inside(x):
    return tensor_error(x)


LINEAR = nn.Linear(3, 4)
SEQUENTIAL = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.0), nn.LayerNorm(4), nn.Linear(4, 2))


def module_call(x):
    return F.relu(LINEAR(x))


def sequential_call(x):
    return SEQUENTIAL(x).sum()


def no_grad(x):
    with torch.no_grad():
        y = x * 2
    return y + 1


def try_block(x):
    try:
        y = x * 2
    except Exception:
        y = x
    return y


def sorted_and_zipped(x):
    pairs = sorted(zip([3, 1, 2], "abc", strict=True), key=lambda p: -p[0])
    total = x
    for i, (n, _) in enumerate(pairs, start=1):
        total = total + i * n
    return total, pairs


def generator_expression(x):
    return sum(x * i for i in range(3))


def chained_comparison(x, n):
    return x * 2 if 1 < n <= 5 else x * 3


def is_none(x, y):
    return x if y is None else x + y


def default_mutable(x, acc=[]):  # noqa: B006
    return x + len(acc)


def matches(x, command):
    match command:
        case [a, b]:
            return x * a + b
        case {"k": _}:
            return x
        case int():
            return x - command
    return x + 1


def slices(x):
    items = list(range(10))
    items[2:4] = [7]
    del items[0]
    return x[0:1, None, ..., ::2], items[::-2], "abc"[-1]


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (relu, (torch.randn(4), torch.randn(4))),
    (toy, (torch.randn(10), torch.ones(10))),
    (toy, (torch.randn(10), -torch.ones(10))),
    (inline, (torch.randn(2, 3),)),
    (list_mutated, (torch.randn(2, 3), [1, 2])),
    (dict_mutated, (torch.randn(2, 3), {"a": 1})),
    (loop, (torch.randn(2, 3),)),
    (comprehension, (torch.randn(2, 3),)),
    (closure, (torch.randn(2, 3),)),
    (recursive_closure, (torch.randn(2, 3),)),
    (shapes, (torch.randn(2, 3),)),
    (user_object, (torch.randn(2, 3), Counter(2))),
    (new_object, (torch.randn(2, 3),)),
    (uses_super, (torch.randn(2, 3),)),
    (prints, (torch.randn(2, 3),)),
    (breaks_on_call, (torch.randn(2, 3),)),
    (breaks_with_list, (torch.randn(2, 3),)),
    (breaks_in_loop, (torch.randn(2, 3),)),
    (breaks_in_expression, (torch.randn(2, 3),)),
    (breaks_with_closure, (torch.randn(2, 3),)),
    (raises, (torch.randn(2, 3),)),
    (raises_after_effect, (torch.randn(2, 3), [])),
    (raises_inside, (torch.randn(2, 3),)),
    (keywords, (torch.randn(2, 3),)),
    (star_args, (torch.randn(2, 3), 1, 2)),
    (unpacking, (torch.randn(2, 3),)),
    (several_results, (torch.randn(2, 3),)),
    (chunks, (torch.randn(4),)),
    (item, (torch.randn(2, 3),)),
    (formats, (torch.randn(2, 3),)),
    (constructor, (3,)),
    (pure_python, (5, 2)),
    (item_stored, (torch.randn(2, 3),)),
    (while_on_tensor, (torch.ones(3),)),
    (and_or, (torch.ones(3), 4)),
    (and_or, (-torch.ones(3), 0)),
    (stores_global, (torch.randn(2, 3),)),
    (identity, (torch.randn(2, 3),)),
    (concatenation, (torch.randn(2, 3),)),
    (attributes, (torch.randn(2, 3),)),
    (in_place, (torch.randn(2, 3),)),
    (tensor_error, (torch.randn(2, 3),)),
    (tensor_error_inside, (torch.randn(2, 3),)),
    (module_call, (torch.randn(2, 3),)),
    (sequential_call, (torch.randn(2, 3),)),
    (no_grad, (torch.randn(2, 3, requires_grad=True),)),
    (try_block, (torch.randn(2, 3),)),
    (sorted_and_zipped, (torch.randn(2, 3),)),
    (generator_expression, (torch.randn(2, 3),)),
    (chained_comparison, (torch.randn(2, 3), 4)),
    (is_none, (torch.randn(2, 3), None)),
    (default_mutable, (torch.randn(2, 3),)),
    (matches, (torch.randn(2, 3), [2, 3])),
    (matches, (torch.randn(2, 3), {"k": 3})),
    (slices, (torch.randn(2, 3),)),
]
