"""Random programs over tensors, integers, lists, dicts, an object and closures, with branches, loops, effects and calls that
break the graph. The same seed gives the same program.

    python python/tests/programs/generated.py FIRST COUNT      runs seeds FIRST .. FIRST+COUNT-1, long form of test_generated.py
"""

from __future__ import annotations

import random
import sys
from typing import Any

PRELUDE = """
import torch
def helper(t, k): return t * 2 + k
def opaque(o, l):
    o.v += 1
    l.append(7)
    eval("1")
"""
KEYS = ("'k'", "'z'", "3")


class Generator:
    """Writes one function fn(x, y, n, l, d, o): two tensors, an int, a list, a dict, an object with v, t and add()."""

    def __init__(self, seed: int, in_place: bool) -> None:
        self.rng = random.Random(seed)
        self.in_place = in_place
        self.lines: list[str] = []
        self.tensors, self.ints, self.lists = ["x", "y"], ["n"], ["l"]
        self.count = 0

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def tensor(self) -> str:
        t = self.one(*self.tensors)
        if self.rng.random() < 0.5:
            return t
        u = self.one(*self.tensors)
        return self.one(
            f"({t} + {self.int()})",
            f"{t}.relu()",
            f"torch.sin({t})",
            f"({t} * {u})",
            "o.t",
            f"helper({t}, {self.int()})",
            f"({t} if {self.bool()} else {u})",
        )

    def int(self) -> str:
        return self.one(
            str(self.rng.randint(-2, 4)),
            self.one(*self.ints),
            f"len({self.one(*self.lists)})",
            "o.v",
            f"({self.one(*self.ints)} % 3)",
            f"{self.one(*self.tensors)}.shape[0]",
            'd.get("k", 2)',
        )

    def bool(self) -> str:
        return self.one(
            f"{self.int()} > {self.int()}",
            f"{self.one(*self.tensors)}.sum() > 0",
            f"{self.int()} == {self.int()}",
            '"k" in d',
            f"not {self.one(*self.lists)}",
            f"{self.int()} > 1 and {self.int()} < 5",
        )

    def statement(self, depth: int) -> None:
        pad = "    " * depth
        top = depth == 1
        say = lambda text: self.lines.append(pad + text)  # noqa: E731
        kind = self.rng.randint(0, 17)
        if kind <= 2:
            name = self.new("t")
            say(f"{name} = {self.tensor()}")
            self.tensors += [name] if top else []
        elif kind == 3:
            name = self.new("i")
            say(f"{name} = {self.int()}")
            self.ints += [name] if top else []
        elif kind == 4:
            say(f"{self.one(*self.lists)}.append({self.one(self.tensor(), self.int())})")
        elif kind == 5:
            say(f"d[{self.one(*KEYS)}] = {self.int()}")
        elif kind == 6:
            say(f"x = {self.tensor()}")
        elif kind == 7 and depth < 3:
            say(f"if {self.bool()}:")
            self.block(depth + 1, 3)
            say("else:")
            self.block(depth + 1, 2)
        elif kind == 8 and depth < 3:
            say(f"for _ in range({self.rng.randint(0, 3)}):")
            self.block(depth + 1, 3)
        elif kind == 9:
            say(f'print({self.int()}, "s")')
        elif kind == 10:
            say("o.add(x)")
        elif kind == 11:
            say(f"o.t = {self.tensor()}")
        elif kind == 12:
            say(f"opaque(o, {self.one(*self.lists)})")
        elif kind == 13:
            say(f"y {'+=' if self.in_place else '= y +'} {self.int()}")
        elif kind == 14:
            say(f"{self.one(*self.lists)}[-1:] = [{self.int()}]")
        elif kind == 15:
            cell, name = self.new("k"), self.new("f")
            say(f"{cell} = {self.int()}")
            say(f"def {name}(z):")
            say(f"    nonlocal {cell}")
            say(f"    {cell} += 1")
            say(f"    return z * {cell}")
            say(f"x = {name}(x)")
            self.ints += [cell] if top else []
        elif kind == 16:
            name = self.new("l")
            say(f"{name} = {self.one(f'[{self.int()} for _ in range(2)]', self.one(*self.lists))}")
            self.lists += [name] if top else []
        else:
            say(f"x = x * torch.ones({self.one('2', '2', '2', '3')})")

    def block(self, depth: int, most: int) -> None:
        for _ in range(self.rng.randint(1, most)):
            self.statement(depth)

    def source(self) -> str:
        for _ in range(self.rng.randint(3, 10)):
            self.statement(1)
        result = f"    return x, y, [n], l, d, o, {', '.join(self.tensors[-3:])}"
        return PRELUDE + "def fn(x, y, n, l, d, o):\n" + "\n".join([*self.lines, result]) + "\n"


def program(seed: int, in_place: bool = False) -> tuple[Any, str]:
    """The function of a seed and its source."""
    source = Generator(seed, in_place).source()
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<program {seed}>", "exec"), namespace)
    return namespace["fn"], source


if __name__ == "__main__":
    import test_generated

    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        for backend in test_generated.BACKENDS:
            test_generated.test_generated_program_is_cpythons(seed, backend)
        if seed % 50 == 0:
            print(f"{seed - first} of {count} programs", file=sys.stderr)
    print(f"{count} programs equal to CPython under {len(test_generated.BACKENDS)} backends")
