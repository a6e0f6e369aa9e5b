"""Random programs over tensors, numbers, containers, objects, closures, exceptions, contexts and generators.

A program is a function ``fn(x, y, n, l, d, o)``: two tensors, an int, a list, a dict, a Thing. Its body is a tree of
statements, so that a mismatch can be shrunk. The same seed yields the same program.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from harness.fuzz_statements import Statement, line, render_block

PRELUDE = (Path(__file__).resolve().parent / "prelude.py").read_text()
ERRORS = "ValueError KeyError IndexError Oops Worse".split()
CAUGHT = [*ERRORS, "LookupError", "(ValueError, KeyError)", "Exception", "Oops", "RuntimeError", "StopIteration"]


def source(body: list[Statement]) -> str:
    """Return the whole text of a program."""
    out = [PRELUDE, "def fn(x, y, n, l, d, o):"]
    render_block(body, 1, out)
    return "\n".join(out) + "\n"


@dataclass
class Scope:
    """The context of a statement: what may be written there."""

    depth: int = 1
    loop: bool = False
    handler: bool = False
    returns: bool = True  #: whether a return is allowed
    function: str = "fn"
    names: dict[str, list[str]] = field(default_factory=dict)  #: kind → names that are certainly bound

    def inside(self, **changes: object) -> Scope:
        """Return the scope of a block; its bindings are not certain after it."""
        new = Scope(
            self.depth + 1,
            self.loop,
            self.handler,
            self.returns,
            self.function,
            {k: list(v) for k, v in self.names.items()},
        )
        for name, value in changes.items():
            setattr(new, name, value)
        return new


class Generator:
    """Builds the body of one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.may_count = False
        self.mortals = False
        self.serial = 0
        self.budget = self.rng.randint(6, 22)  # statements left
        self.simple, self.compound = SIMPLE, COMPOUND  #: names of the methods that make a statement

    def start(self) -> Scope:
        """Return the outermost scope of a program."""
        return Scope(names={"t": ["x", "y"], "i": ["n"], "l": ["l"], "d": ["d"], "o": ["o"], "s": ["NAME"], "m": []})

    def body(self) -> list[Statement]:
        """Return the whole body."""
        s = self.start()
        self.mortals = self.chance(0.25)
        declared = [line("global COUNT, LOG")] if self.chance(0.6) else []
        self.may_count = bool(declared)
        out = [*declared, *([self.mortal(s)] if self.mortals else [])]
        while self.budget > 0:
            out += self.statement(s)
        out.append(line(f"return {self.results(s)}"))
        return out

    # ---- choices ----

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def one(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def name(self, s: Scope, kind: str) -> str:
        return self.rng.choice(s.names[kind])

    def bind(self, s: Scope, kind: str, reuse: float = 0.3) -> str:
        """Return a name to assign to, sometimes an existing one of that kind."""
        if self.chance(reuse):
            return self.name(s, kind) if s.names[kind] != ["NAME"] else self.new("s")
        return self.new(kind)

    def bound(self, s: Scope, kind: str, name: str) -> None:
        if name not in s.names[kind]:
            s.names[kind].append(name)

    # ---- expressions ----

    def results(self, s: Scope) -> str:
        values = [*s.names["t"][-3:], *s.names["i"][-3:], *s.names["l"][-2:], *s.names["o"][-2:], s.names["s"][-1], "d"]
        return ", ".join(dict.fromkeys(values))

    def tensor(self, s: Scope, depth: int = 2) -> str:
        t = self.name(s, "t")
        if depth == 0 or self.chance(0.25):
            return t
        sub = lambda: self.tensor(s, depth - 1)  # noqa: E731
        kind = self.rng.randint(0, 17)
        if kind <= 1:
            return f"({sub()} {self.one('+', '-', '*')} {self.int(s)})"
        if kind <= 3:
            return f"({sub()} {self.one('+', '-', '*')} {sub()})"
        return [
            lambda: f"{t}.{self.one('relu', 'sin', 'abs', 'clone', 'neg', 'detach')}()",
            lambda: f"torch.{self.one('sin', 'cos', 'tanh', 'relu')}({sub()})",
            lambda: f"{self.name(s, 'o')}.t",
            lambda: f"{self.name(s, 'o')}.scaled({t})",
            lambda: f"helper({sub()}, {self.int(s)})",
            lambda: f"({t} if {self.bool(s)} else {sub()})",
            lambda: f"torch.stack([{t}, {t}]).sum(0)",
            lambda: f"torch.where({t} > 0, {t}, {sub()})",
            lambda: f"{self.name(s, 'o')} @ {t}",
            lambda: f"[{t}, {sub()}][{self.int(s)} % 2]",
            lambda: f"{{'a': {t}, 'b': {sub()}}}['{self.one('a', 'b')}']",
            lambda: f"(lambda z, k={self.int(s)}: z + k)({t})",
            lambda: f"torch.full_like({t}, {self.int(s)})",
            lambda: f"sum([{t}, {sub()}])",
        ][kind - 4]()

    def int(self, s: Scope, depth: int = 1) -> str:
        i = self.name(s, "i")
        choices = [
            str(self.rng.randint(-2, 4)),
            i,
            i,
            f"len({self.name(s, 'l')})",
            f"{self.name(s, 'o')}.v",
            f"{self.name(s, 't')}.shape[0]",
            f"{self.name(s, 'd')}.get('k', 2)",
            f"({i} % 3)",
            f"{self.name(s, 'o')}.double",
            f"{self.name(s, 't')}.dim()",
        ]
        if self.may_count:
            choices.append("COUNT")
        if depth:
            a, b = self.int(s, 0), self.int(s, 0)
            choices += [
                f"({a} {self.one('+', '-', '*', '//', '%', '&', '|')} {b})",
                f"max({a}, {b})",
                f"({a} if {self.bool(s, 0)} else {b})",
                f"int({self.name(s, 't')}.sum().item() > {a})",
                f"len([q for q in range({self.rng.randint(0, 4)}) if q != {a}])",
                f"sum(q * {a} for q in (1, 2, 3))",
                f"ord({self.string(s, 0)}[0])",
                f"pick(1, {a}, *[{b}], key={b})",
                f"hash(({a} if type({a}) is int else 0,)) % 7",  # a tensor's hash is its address, new in every run
                f"{self.name(s, 'l')}[{a}]" if self.chance(0.3) else a,
                f"abs({a})",
                f"next(iter([{a}]))",
                f"len({{{a}, {b}}})",
            ]
        return self.rng.choice(choices)

    def string(self, s: Scope, depth: int = 1) -> str:
        choices = ["'ab'", self.name(s, "s"), "NAME"]
        if depth:
            choices += [
                f'f"{{{self.int(s)}}}:{{{self.name(s, "s")}!r}}"',
                f"str({self.int(s)})",
                f"({self.name(s, 's')} + 'z')[-4:]",
                f"'-'.join(str(q) for q in range({self.rng.randint(0, 3)})) + 'e'",
                f"type({self.name(s, 'o')}).__name__",
            ]
        return self.rng.choice(choices)

    def bool(self, s: Scope, depth: int = 1) -> str:
        i = lambda: self.int(s, 0)  # noqa: E731
        choices = [
            f"{i()} > {i()}",
            f"{self.name(s, 't')}.sum() > {self.rng.randint(-1, 2)}",
            f"{i()} == {i()}",
            f"'k' in {self.name(s, 'd')}",
            f"not {self.name(s, 'l')}",
            f"{i()} < {i()} <= {i()}",
            f"isinstance({self.name(s, 'o')}, Child)",
            f"{self.name(s, 'o')}.x is None",
            f"{i()} in (1, 2)",
            f"{self.name(s, 'o')}",
        ]
        if depth:
            choices += [
                f"{self.bool(s, 0)} {self.one('and', 'or')} {self.bool(s, 0)}",
                f"any(q > {i()} for q in (1, {i()}))",
            ]
        return self.rng.choice(choices)

    def value(self, s: Scope) -> str:
        return self.rng.choice([self.tensor, self.int, self.int, self.string])(s)

    # ---- statements ----

    def block(self, s: Scope, most: int = 3, **changes: object) -> list[Statement]:
        inner = s.inside(**changes)
        out: list[Statement] = []
        for _ in range(self.rng.randint(1, most)):
            out += self.statement(inner)
        return out

    def statement(self, s: Scope) -> list[Statement]:
        self.budget -= 1
        simple = (
            self.simple
            + (JUMPS if self.chance(0.5) else [])
            + (["mortal", "lifetime", "lifetime"] if self.mortals else [])
        )
        deep = s.depth > 3 or self.budget < 0
        # A class statement leaves garbage in cycles; the time of its collection would show in a program with Mortals.
        compound = [k for k in self.compound if not (self.mortals and k == "class_")]
        kinds = simple if deep or self.chance(0.5) else compound
        made = getattr(self, self.rng.choice(kinds))(s)
        return made if isinstance(made, list) else [made]

    def assign_tensor(self, s: Scope) -> Statement:
        value = self.tensor(s)
        name = self.bind(s, "t")
        self.bound(s, "t", name)
        return line(f"{name} = {value}")

    def assign_int(self, s: Scope) -> Statement:
        value = self.int(s)
        name = self.bind(s, "i")
        self.bound(s, "i", name)
        return line(f"{name} = {value}" if self.chance(0.8) else f"print({name} := {value})")

    def assign_string(self, s: Scope) -> Statement:
        value = self.string(s)
        name = self.new("s")
        self.bound(s, "s", name)
        return line(f"{name} = {value}")

    def assign_list(self, s: Scope) -> Statement:
        old = self.name(s, "l")
        value = self.one(
            f"[{self.int(s)} for _ in range(2)]",
            old,
            f"list({old})",
            f"{old} + [{self.int(s)}]",
            f"sorted([3, {self.int(s)}, 1])",
            f"[*{old}, {self.tensor(s)}]",
            f"{old}[::-1]",
            f"list(map(str, [{self.int(s)}]))",
            f"list(numbers({self.rng.randint(0, 3)}))",
            f"[a * b for a, b in zip([1, 2], [{self.int(s)}, 3])]",
            f"list(enumerate({old}))",
            f"[*numbers(2), *{old}[:1]]",
        )
        name = self.bind(s, "l")
        self.bound(s, "l", name)
        return line(f"{name} = {value}")

    def assign_dict(self, s: Scope) -> Statement:
        value = self.one(
            f"{{'k': {self.int(s)}, 'q': {self.tensor(s)}}}",
            f"{{**{self.name(s, 'd')}, 'r': {self.int(s)}}}",
            f"{{str(q): q for q in range({self.rng.randint(0, 3)})}}",
            f"dict({self.name(s, 'd')}, k=1)",
        )
        name = self.new("d")
        self.bound(s, "d", name)
        return line(f"{name} = {value}")

    def assign_object(self, s: Scope) -> Statement:
        value = self.one(
            f"Thing({self.int(s)}, {self.tensor(s)})", f"Child({self.int(s)}, {self.tensor(s)})", self.name(s, "o")
        )
        name = self.bind(s, "o")
        self.bound(s, "o", name)
        return line(f"{name} = {value}")

    def mortal(self, s: Scope) -> Statement:
        """Create an object whose death shows in dead()."""
        self.serial += 1
        value = f"{self.one('born', 'born', 'Mortal')}({self.serial})"
        name = self.rng.choice(s.names["m"]) if s.names["m"] and self.chance(0.3) else self.new("m")
        self.bound(s, "m", name)
        return line(f"{name} = {value}")

    def lifetime(self, s: Scope) -> Statement:
        """Begin the life of a mortal, end it, or show which mortals are dead."""
        shown = self.one("print(dead())", "LOG.append(dead())", "print(len(dead()))")
        if not s.names["m"]:
            return line(shown)
        m, other = self.rng.choice(s.names["m"]), self.rng.choice(s.names["m"])
        at = self.name(s, "l")
        return line(
            self.one(
                shown,
                shown,
                shown,
                f"{m} = None",
                f"{m} = {other}",
                f"{at}.append({m})",
                f"{m} = ({m}, 1)",
                f"{self.name(s, 'o')}.x = {m}",
                f"print(type({m}).__name__)",
                f"{self.new('m')} = [{m}, {other}]",
                f"born({self.one('100', '101')})",
                f"print(born({self.one('100', '101')}).k)",
            )
        )

    def unpack(self, s: Scope) -> Statement:
        a, b = self.new("i"), self.new("l")
        text = f"{a}, *{b} = {self.int(s)}, {self.value(s)}, {self.value(s)}"
        self.bound(s, "i", a)
        self.bound(s, "l", b)
        return line(text)

    def mutate_list(self, s: Scope) -> Statement:
        at = self.name(s, "l")
        return line(
            self.one(
                f"{at}.append({self.value(s)})",
                f"{at}.append({self.value(s)})",
                f"{at}.extend([{self.int(s)}])",
                f"{at}.insert(0, {self.value(s)})",
                f"{at}[-1:] = [{self.int(s)}]",
                f"{at}[0] = {self.value(s)}",
                f"{at} += [{self.int(s)}]",
                f"del {at}[:1]",
                f"{at}.reverse()",
                f"{at}.pop()",
                f"{at} *= 2",
            )
        )

    def mutate_dict(self, s: Scope) -> Statement:
        at = self.name(s, "d")
        key = self.one("'k'", "'z'", "3", self.int(s))
        return line(
            self.one(
                f"{at}[{key}] = {self.value(s)}",
                f"{at}[{key}] = {self.value(s)}",
                f"{at}.setdefault({key}, {self.int(s)})",
                f"{at}.pop({key}, None)",
                f"{at}.update(u={self.int(s)})",
                f"del {at}[{key}]",
                f"{at}['k'] += 1",
            )
        )

    def mutate_object(self, s: Scope) -> Statement:
        o = self.name(s, "o")
        return line(
            self.one(
                f"{o}.add({self.tensor(s)})",
                f"{o}.t = {self.tensor(s)}",
                f"{o}.v += {self.int(s)}",
                f"{o}.x = {self.value(s)}",
                f"{o}.double = {self.int(s)}",
                f"{o} += 1",
                f"{o}['key'] = {self.int(s)}",
                f"del {o}.x",
            )
        )

    def mutate_tensor(self, s: Scope) -> Statement:
        t = self.name(s, "t")
        return line(
            self.one(
                f"{t} += {self.int(s)}",
                f"{t}.add_({self.int(s)})",
                f"{t}[0] = {self.int(s)}",
                f"{t} = {t} * torch.ones({self.one('2', '2', '3')})",
            )
        )

    def mutate_global(self, s: Scope) -> Statement:
        if not self.may_count or s.function != "fn":
            return line(f"LOG.append({self.int(s)})")
        return line(
            self.one("COUNT += 1", f"COUNT = {self.int(s)}", f"LOG.append({self.value(s)})", f"LOG = [{self.int(s)}]")
        )

    def effect(self, s: Scope) -> Statement:
        return line(
            self.one(
                f"print({self.int(s)}, {self.string(s)})",
                f"print({self.int(s)})",
                f"opaque({self.name(s, 'o')}, {self.name(s, 'l')})",
                "eval('1')",
                f"print({self.tensor(s)}.tolist())",
                f"assert {self.bool(s)}, {self.string(s)}",
                f"{self.name(s, 'o')}.shout({self.string(s)})",
            )
        )

    def raise_(self, s: Scope) -> Statement:
        error = f"{self.one(*ERRORS)}({self.value(s)})"
        text = self.one(
            f"raise {error}",
            f"raise {error}",
            f"raise {error} from {self.one(*ERRORS)}({self.int(s)})",
            f"raise {self.one(*ERRORS)}",
            f"fail({self.int(s)})",
            f"raise {error} from None",
        )
        if s.handler and self.chance(0.3):
            text = "raise"
        return line(text) if self.chance(0.3) else Statement([(f"if {self.bool(s)}:", [line(text)])])

    def jump(self, s: Scope) -> Statement:
        if s.loop and self.chance(0.7):
            return Statement([(f"if {self.bool(s)}:", [line(self.one("break", "continue"))])])
        if s.returns:
            value = self.results(s) if s.function == "fn" else self.tensor(s)
            return Statement([(f"if {self.bool(s)}:", [line(f"return {value}")])])
        return self.effect(s)

    def if_(self, s: Scope) -> Statement:
        parts = [(f"if {self.bool(s)}:", self.block(s))]
        if self.chance(0.25):
            parts.append((f"elif {self.bool(s)}:", self.block(s)))
        if self.chance(0.5):
            parts.append(("else:", self.block(s)))
        return Statement(parts, (False, *[True] * (len(parts) - 1)))

    def for_(self, s: Scope) -> Statement:
        i, t = self.new("i"), self.new("t")
        inner = s.inside(loop=True)
        kind = self.rng.randint(0, 6)
        if kind <= 2:
            self.bound(inner, "i", i)
            iterable = self.one(
                f"range({self.rng.randint(0, 3)})",
                f"numbers({self.rng.randint(0, 3)})",
                "(1, 5)",
                f"range({self.name(s, 't')}.shape[0])",
            )
            header = f"for {i} in {iterable}:"
        elif kind == 3:
            self.bound(inner, "t", t)
            header = f"for {t} in [{self.tensor(s)}, {self.tensor(s)}]:"
        elif kind == 4:
            self.bound(inner, "i", i)
            self.bound(inner, "t", t)
            header = f"for {i}, {t} in enumerate(({self.tensor(s)}, {self.name(s, 't')})):"
        elif kind == 5:
            self.bound(inner, "s", self.new("s"))
            header = f"for {inner.names['s'][-1]}, {self.new('v')} in {{'p': 1, 'q': {self.value(s)}}}.items():"
        else:
            self.bound(inner, "t", t)
            header = f"for {t} in doubled({self.name(s, 't')}, {self.rng.randint(0, 3)}):"
        body: list[Statement] = []
        for _ in range(self.rng.randint(1, 3)):
            body += self.statement(inner)
        parts = [(header, body)]
        if self.chance(0.2):
            parts.append(("else:", self.block(s)))
        return Statement(parts, (False, True))

    def while_(self, s: Scope) -> list[Statement]:
        w = self.new("w")
        body = [line(f"{w} -= 1"), *self.block(s, 3, loop=True)]
        parts = [(f"while {w} > 0{self.one('', f' and ({self.bool(s)})')}:", body)]
        if self.chance(0.2):
            parts.append(("else:", self.block(s)))
        return [line(f"{w} = {self.rng.randint(0, 3)}"), Statement(parts, (False, True))]

    def try_(self, s: Scope) -> Statement:
        body = self.block(s)
        if self.chance(0.6):
            body.append(self.raise_(s.inside()))
        parts = [("try:", body)]
        for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
            handler = self.block(s, 2, handler=True)
            if self.chance(0.6):
                e = self.new("e")
                handler.insert(
                    0,
                    line(
                        self.one(
                            f"print(type({e}).__name__, len({e}.args))",
                            # A kept exception keeps the frames it went through alive, and their variables.
                            f"LOG.append({e})" if not self.mortals else f"LOG.append(str({e}))",
                            f"LOG.append(type({e}.__context__).__name__)",
                        )
                    ),
                )
                parts.append((f"except {self.one(*CAUGHT)} as {e}:", handler))
            else:
                parts.append((f"except {self.one(*CAUGHT)}:", handler))
        caught = len(parts) > 1
        if caught and self.chance(0.25):
            parts.append(("else:", self.block(s, 2)))
        if not caught or self.chance(0.4):
            parts.append(("finally:", self.block(s, 2)))
        return Statement(parts, (False, *[len(parts) > 2] * (len(parts) - 1)))

    def with_(self, s: Scope) -> Statement:
        i = self.new("i")
        inner = s.inside()
        manager = self.one(
            f"Manager({self.int(s)}, {self.one('False', 'False', 'True')}) as {i}",
            f"Manager({self.int(s)}, {self.bool(s)})",
            f"managed({self.int(s)}) as {i}",
            "torch.no_grad()",
            f"Manager(1, False), managed({self.int(s)}) as {i}",
            "contextlib.suppress(ValueError, Oops)",
        )
        if manager.endswith(f"as {i}"):
            self.bound(inner, "i", i)
        body: list[Statement] = []
        for _ in range(self.rng.randint(1, 3)):
            body += self.statement(inner)
        return Statement([(f"with {manager}:", body)])

    def function(self, s: Scope) -> list[Statement]:
        """Write a closure, called once or twice, that may change a variable of the enclosing function."""
        f, k = self.new("f"), self.new("i")
        inner = s.inside(function=f, loop=False, handler=False, returns=True)
        body = [line(f"nonlocal {k}"), line(f"{k} += 1")] if self.chance(0.6) else []
        inner.names["t"] = ["z"]
        inner.names["i"] = [k, *s.names["i"][:1]]
        for _ in range(self.rng.randint(0, 2)):
            body += self.statement(inner)
        body.append(line(f"return {self.one('z', self.tensor(inner))}"))
        parameters = self.one("z", f"z, h={self.int(s)}", "z, *rest, **options", "z, /, *, h=2")
        out = [line(f"{k} = {self.int(s)}"), Statement([(f"def {f}({parameters}):", body)])]
        self.bound(s, "i", k)
        result = self.new("t")
        out.append(line(f"{result} = {f}({self.tensor(s)})"))
        self.bound(s, "t", result)
        return out

    def generator(self, s: Scope) -> list[Statement]:
        """Write a generator and one of several ways to iterate over it."""
        g, k = self.new("g"), self.new("k")
        inner = s.inside(function=g, loop=True, handler=False, returns=False)
        body = self.statement(inner)
        ways = [line(f"yield {k}"), line(f"yield {self.int(s)}")]
        if self.chance(0.3):
            ways.append(line(f"yield from numbers({self.rng.randint(0, 2)})"))
        if self.chance(0.3):
            ways = [Statement([("try:", ways), ("finally:", [line(f"print('end', {k})")])])]
        loop = Statement([(f"for {k} in range({self.rng.randint(0, 3)}):", [*body, *ways])])
        out = [Statement([(f"def {g}():", [loop, line(self.one("yield 9", "yield 8", f"return {self.int(s)}"))])])]
        result = self.new("l")
        use = self.one(
            f"list({g}())",
            f"[next({g}(), 0)]",
            f"sorted({g}())[:2]",
            f"[q + 1 for q in {g}()]",
            f"[*{g}()]",
            f"list(zip({g}(), 'ab'))",
        )
        out.append(line(f"{result} = {use}"))
        self.bound(s, "l", result)
        return out

    def class_(self, s: Scope) -> list[Statement]:
        c, o = self.new("C"), self.new("o")
        method = Statement([("def scaled(self, t):", [line(f"return super().scaled(t) + {self.int(s, 0)}")])])
        extra = Statement([("def __bool__(self):", [line(f"return self.v > {self.rng.randint(0, 3)}")])])
        self_made = Statement(
            [
                (
                    f"class {c}({self.one('Thing', 'Child')}):",
                    [line(f"kind = {self.int(s, 0)}"), method, *([extra] if self.chance(0.4) else [])],
                )
            ]
        )
        out = [self_made, line(f"{o} = {c}({self.int(s)}, {self.tensor(s)})")]
        self.bound(s, "o", o)
        return out

    def match_(self, s: Scope) -> Statement:
        i = self.new("i")
        inner = s.inside()
        self.bound(inner, "i", i)
        parts: list[tuple[str, list[Statement] | None]] = [
            (
                "match "
                f"{self.one(self.int(s), f'({self.int(s)}, {self.int(s)})', self.name(s, 'd'), self.name(s, 'o'))}:",
                None,
            )
        ]
        cases = [
            ("case 0 | 1:", s),
            (f"case ({i}, 2):", inner),
            (f"case {{'k': {i}}}:", inner),
            (f"case Thing(v={i}):", inner),
            (f"case int() as {i}:", inner),
        ]
        body: list[Statement] = [
            Statement([(header, self.statement(scope.inside()))]) for header, scope in self.rng.sample(cases, 2)
        ]
        body.append(Statement([("case _:", self.statement(s.inside()))]))
        return Statement([(parts[0][0], body)])


SIMPLE = (
    "assign_tensor assign_tensor assign_tensor assign_int assign_int assign_string assign_list assign_dict "
    "assign_object unpack "
    "mutate_list mutate_list mutate_dict mutate_object mutate_tensor mutate_global effect effect"
).split()
JUMPS = ["jump", "raise_"]
COMPOUND = "if_ if_ for_ for_ while_ try_ try_ try_ with_ with_ function function generator class_ match_".split()


def program(seed: int) -> list[Statement]:
    """Return the body of a seed's program."""
    return Generator(seed).body()
