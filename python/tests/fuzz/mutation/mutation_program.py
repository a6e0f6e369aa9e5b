"""Random programs whose classes and containers change between two calls.

A program has a few classes (C0, C1, ..., sometimes with a metaclass M), ``make()``, which returns the arguments,
``change_0()`` and ``change_1()``, and ``fn(x, o, p, q)``, which uses them. mutation_members, mutation_operations and
mutation_changes are tables of members of a class, operations on an object and changes.
"""

from __future__ import annotations

import random
from pathlib import Path

from harness.fuzz_statements import Statement, line, render_block
from mutation_changes import CHANGES, CLASS_CHANGES
from mutation_members import CONTAINERS, KINDS, MEMBERS, META_METHODS, METHODS, NATIVE, VALUES
from mutation_operations import CLASS_OPERATIONS, OPERATIONS, SUITED

PRELUDE = (Path(__file__).resolve().parent / "mutation_prelude.py").read_text()


def source(body: list[Statement]) -> str:
    """Return the whole text of a program."""
    out: list[str] = [PRELUDE]
    render_block(body, 0, out)
    return "\n".join(out) + "\n"


def program(seed: int) -> list[Statement]:
    """Return a seed's program."""
    return Generator(seed).program()


class Generator:
    """Builds one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"mutation {seed}")
        self.classes: list[str] = []
        self.kinds: dict[str, str] = {}
        self.named: list[str] = []  #: special methods of classes and changes so far, preferred by operations
        self.meta = False

    def program(self) -> list[Statement]:
        """Return classes, make, changes and fn."""
        rng = self.rng
        body: list[Statement] = []
        self.meta = rng.random() < 0.3
        if self.meta:
            members = self.members(META_METHODS, rng.randrange(3)) or [line("pass")]
            body.append(Statement([("class M(type):", members)]))
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            body.append(self.a_class())
        objects = [self.an_object() for _ in range(3)]
        body += [line(f"G = {self.an_object()}")]
        body.append(Statement([("def make():", [line(f"return {', '.join(objects)}")])]))
        changes = [self.a_change(i) for i in range(rng.choice((1, 1, 2)))]
        work = self.work()
        return [*body, *changes, Statement([("def fn(x, o, p, q):", work)])]

    def a_class(self) -> Statement:
        rng = self.rng
        name = f"C{len(self.classes)}"
        kind = rng.choice(KINDS)
        if self.classes and rng.random() < 0.35:
            base = rng.choice(self.classes)
            kind, bases = self.kinds[base], base
        else:
            bases = kind
        header, body = f"class {name}({bases}):", []
        if kind == "@dataclass":
            body = [line("a: int = 1"), line("b: object = 'b'")]
            options = rng.choice(("", "(frozen=True)", "(order=True)", "(eq=False)", "(slots=True)"))
            header = f"class {name}({'' if bases == kind else bases}):"
            parts = [(f"@dataclasses.dataclass{options}\n{header}", body)]
        elif kind in ("enum.Enum", "enum.IntEnum", "enum.Flag", "str, enum.Enum"):
            if bases != kind:
                bases = kind
            quoted = "'" if kind.startswith("str") else ""
            body = [line(f"RED = {quoted}1{quoted}"), line(f"BLUE = {quoted}2{quoted}")]
            parts = [(f"class {name}({bases}):", body)]
        elif kind == "namedtuple":
            if bases == kind:
                bases = f"collections.namedtuple('{name}', 'a b')"
            parts = [(f"class {name}({bases}):", body)]
        else:
            meta = ""
            if self.meta and bases in ("object", "int", "str", "list", "dict", "tuple", "Base", "Plainest"):
                meta = ", metaclass=M" if rng.random() < 0.7 else ""
            parts = [(f"class {name}({bases}{meta}):", body)]
        self.classes.append(name)
        self.kinds[name] = kind
        body += self.members(METHODS, rng.choice((0, 0, 1, 1, 2, 3)))
        if not body:
            body.append(line("pass"))
        return Statement(parts)

    def members(self, table: dict[str, tuple[str, list[str]]], count: int) -> list[Statement]:
        """Return random members for a class body: special methods from the table, and others from MEMBERS."""
        rng, out = self.rng, []
        for _ in range(count):
            if rng.random() < 0.7:
                out.append(self.a_method(self.a_name(table), table))
            else:
                out += [line(row) for row in self.filled(rng.choice(MEMBERS)).split("\n")]
        return out

    def a_name(self, table: dict[str, tuple[str, list[str]]]) -> str:
        name = self.rng.choice(list(table))
        self.named.append(name)
        return name

    def a_method(self, name: str, table: dict[str, tuple[str, list[str]]]) -> Statement:
        params, results = table[name]
        rows = [line(f"LOG.append('{name}')")] if self.rng.random() < 0.2 else []
        result = self.filled(self.rng.choice(results))
        return Statement(
            [
                (
                    f"def {name}({params}):",
                    [
                        *rows,
                        line(
                            result
                            if " " in result and result.split()[0] in ("raise", "yield", "return")
                            else f"return {result}"
                        ),
                    ],
                )
            ]
        )

    def an_object(self) -> str:
        """Return an expression outside the function: an instance, or a container of instances."""
        rng = self.rng
        if rng.random() < 0.3:
            return self.filled(rng.choice(CONTAINERS))
        return self.instance()

    def instance(self) -> str:
        c = self.rng.choice(self.classes)
        kind = self.kinds[c]
        return {
            "enum.Enum": f"{c}.RED",
            "enum.IntEnum": f"{c}.RED",
            "enum.Flag": f"{c}.RED",
            "str, enum.Enum": f"{c}.RED",
            "namedtuple": f"{c}(1, 'b')",
            "@dataclass": f"{c}(2)",
            "int": f"{c}({self.rng.choice((0, 1, 5))})",
            "float": f"{c}({self.rng.choice((0.0, 1.5, 'N'))})",
            "complex": f"{c}(1+2j)",
            "str": f"{c}({self.rng.choice(('', 'ab', '12'))!r})",
            "bytes": f"{c}(b'ab')",
            "tuple": f"{c}({self.rng.choice(('', '(1, 2)'))})",
            "list": f"{c}({self.rng.choice(('', '[1, 2]'))})",
            "set": f"{c}({self.rng.choice(('', '[1, 2]'))})",
            "frozenset": f"{c}({self.rng.choice(('', '[1, 2]'))})",
            "dict": f"{c}({self.rng.choice(('', '{1: 2}', 'k=1'))})",
            "collections.OrderedDict": f"{c}(k=1)",
            "collections.defaultdict": f"{c}(int)",
            "collections.deque": f"{c}([1, 2])",
            "Exception": f"{c}('text')",
            "Plainest": f"{c}(3)",
        }.get(kind, f"{c}()")

    def filled(self, text: str) -> str:
        """Fill a row's placeholders: objects, classes, values, names."""
        rng = self.rng
        while "{" in text:
            before = text
            for place, choice in (
                ("{o}", lambda: rng.choice(("o", "o", "p", "q", "G"))),
                ("{c}", lambda: rng.choice(self.classes or ["Base"])),
                (
                    "{d}",
                    lambda: rng.choice(
                        [*(self.classes or ["Base"]), "Duck", "Shape", "Base", "Mixin", "int", "object"]
                    ),
                ),
                ("{new}", self.instance),
                ("{v}", lambda: rng.choice(VALUES)),
                ("{i}", lambda: str(rng.choice((0, 1, 2, 3, 7)))),
                ("{a}", lambda: rng.choice(("k", "v", "j", "a", "value", "hello", "prop", "extra"))),
                ("{s}", self.special),
                ("{body}", self.lambda_),
                ("{meta_body}", self.meta_lambda),
                ("{native}", lambda: rng.choice(rng.choice(list(NATIVE.values())))),
                ("{taken}", self.taken),
            ):
                at = text.find(place)
                if at >= 0:
                    text = text[:at] + choice() + text[at + len(place) :]
            if text == before:
                break
        return text.replace("<%", "{").replace("%>", "}")

    def special(self) -> str:
        """Return a special method's name, preferably one that the program has."""
        if self.named and self.rng.random() < 0.6:
            return self.rng.choice(self.named)
        return self.rng.choice(list(METHODS))

    def lambda_(self) -> str:
        """Return ``name = function`` for a change of a class."""
        name = self.special()
        if name not in METHODS:
            name = self.a_name(METHODS)
        self.named.append(name)
        return f"{name} = {self.function(name, METHODS)}"

    def taken(self) -> str:
        """Return ``name = a C method of that name``."""
        name = self.special()
        if name not in NATIVE:
            name = self.rng.choice(list(NATIVE))
        self.named.append(name)
        return f"{name} = {self.rng.choice(NATIVE[name])}"

    def meta_lambda(self) -> str:
        name = self.rng.choice(list(META_METHODS))
        self.named.append(name)
        return f"{name} = {self.function(name, META_METHODS)}"

    def function(self, name: str, table: dict[str, tuple[str, list[str]]]) -> str:
        params, results = table[name]
        for _ in range(9):
            result = self.rng.choice(results)
            if not result.startswith(("raise", "yield")) and "super()" not in result:
                return f"lambda {params}: {self.filled(result)}"
        return f"lambda {params}: None"

    def a_change(self, number: int) -> Statement:
        rng = self.rng
        rows: list[Statement] = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            pick = rng.random()
            if pick < 0.45:
                text = self.filled(rng.choice(CLASS_CHANGES))
            elif pick < 0.55 and self.meta:
                text = self.filled("M.{meta_body}")
            else:
                text = self.filled(rng.choice(CHANGES))
            rows += [line(row) for row in text.split("\n")]
        return Statement([(f"def change_{number}(o, p, q):", [line("global G, LIMIT, helper, C0, sum"), *rows])])

    def operation(self) -> str:
        """Return an expression, preferably one that looks up a method that the program's classes have or get."""
        rng = self.rng
        pick = rng.random()
        if pick < 0.5:
            for _ in range(4):
                name = self.special()
                if name in SUITED:
                    return self.filled(rng.choice(SUITED[name]))
        if pick < 0.75:
            return self.filled(rng.choice(OPERATIONS))
        return self.filled(rng.choice(CLASS_OPERATIONS))

    def work(self) -> list[Statement]:
        """Return the function's statements."""
        rng = self.rng
        body = [line("r = []"), line("y = x * 2")]
        for _ in range(rng.choice((1, 2, 3, 4, 5))):
            text = self.operation()
            if text.endswith(";"):
                done = [line(row) for row in text[:-1].rstrip("\n").split("\n")]
            elif rng.random() < 0.1:
                done = [Statement([(f"if {text}:", [line("y = y + 1")]), ("else:", [line("y = y - 1")])])]
            elif rng.random() < 0.1:
                done = [Statement([(f"for i in {text}:", [line("r.append(i)"), line("if len(r) > 5: break")])])]
            else:
                done = [line(f"r.append({text})")]
            if rng.random() < 0.7:
                done = [Statement([("try:", done), ("except Exception as error:", [line("r.append(failed(error))")])])]
            body += done
            if rng.random() < 0.2:
                body.append(line("y = y + len(r)"))
        body.append(line("return y + 1, r"))
        return body
