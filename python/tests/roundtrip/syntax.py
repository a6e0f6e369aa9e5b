"""Random Python sources with every kind of statement, expression and pattern; they compile, but are never
run.

    syntax.py FOLDER COUNT [FIRST]      writes COUNT files, for the seeds from FIRST (0) on

`make roundtrip` decodes and lowers their code objects. Programs are built as syntax trees, and code that is invalid in
its context (a yield outside a function, a name that is both global and nonlocal) is never built.
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

NAMES = "a b c d e f g h value item self data result x y".split()
BIG = 300  #: more names, constants or instructions than fit in one byte


@dataclass
class Scope:
    """The context of a node, as far as the grammar depends on it."""

    function: bool = False
    is_async: bool = False
    loop: bool = False
    star_handler: bool = False  #: inside except*, which break, continue and return may not leave
    class_body: bool = False
    depth: int = 0
    bound: set[str] = field(default_factory=set)  #: names of the enclosing functions, for nonlocal
    declared: set[str] = field(default_factory=set)  #: names declared global or nonlocal in this function
    parameters: set[str] = field(default_factory=set)
    comprehension: bool = False


class Syntax:
    """Builds one module."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes = 0

    def module(self) -> ast.Module:
        scope = Scope()
        body = [self.function(scope) for _ in range(self.rng.randint(1, 3))]
        body += self.block(scope, 6)
        if self.rng.random() < 0.05:
            body.append(self.long_function())
        return ast.fix_missing_locations(ast.Module(body, []))

    # ---- choices ----

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def free_name(self, s: Scope) -> str:
        """Return a name that may be bound here: not a parameter or a declared name."""
        return self.rng.choice([n for n in NAMES if n not in s.declared] or ["z"])

    def load(self) -> ast.Name:
        return ast.Name(self.name(), ast.Load())

    def some(self, make: Callable[[], Any], low: int, high: int) -> list[Any]:
        return [make() for _ in range(self.rng.randint(low, high))]

    def maybe(self, make: Callable[[], Any], p: float = 0.5) -> Any:
        return make() if self.chance(p) else None

    # ---- statements ----

    def block(self, s: Scope, most: int = 4) -> list[ast.stmt]:
        inner = replace(s, depth=s.depth + 1)
        return self.some(lambda: self.statement(inner), 1, most)

    def statement(self, s: Scope) -> ast.stmt:
        simple = "assign unpack augmented annotated expression delete assert_ raise_ import_ import_from pass_".split()
        if sys.version_info >= (3, 12):
            simple += ["type_alias"]
        if s.function:
            simple += ["return_", "yield_", "return_", "yield_"]
        if s.loop:
            simple += ["break_", "continue_"]
        if s.depth > 4:
            return getattr(self, self.rng.choice(simple))(s)
        compound = "if_ while_ for_ try_ try_star with_ match_ function class_".split()
        if s.is_async:
            compound += ["async_for", "async_with"]
        return getattr(self, self.rng.choice(simple + compound))(s)

    def assign(self, s: Scope) -> ast.stmt:
        return ast.Assign(self.some(lambda: self.target(s), 1, 2), self.expr(s))

    def unpack(self, s: Scope) -> ast.stmt:
        targets = self.some(lambda: self.target(s), 1, 4)
        if self.chance(0.5):
            at = self.rng.randrange(len(targets))
            targets[at] = ast.Starred(ast.Name(self.name(), ast.Store()), ast.Store())
        kind = self.rng.choice((ast.Tuple, ast.List))
        return ast.Assign([kind(targets, ast.Store())], self.expr(s))

    def augmented(self, s: Scope) -> ast.stmt:
        operator = self.rng.choice(OPERATORS)()
        return ast.AugAssign(self.target(s), operator, self.expr(s))

    def annotated(self, s: Scope) -> ast.stmt:
        name = self.free_name(s)
        if name in s.declared or self.chance(0.3):
            target: Any = ast.Attribute(self.load(), self.name(), ast.Store())
            return ast.AnnAssign(target, self.load(), self.maybe(lambda: self.expr(s)), 0)
        return ast.AnnAssign(ast.Name(name, ast.Store()), self.load(), self.maybe(lambda: self.expr(s)), 1)

    def expression(self, s: Scope) -> ast.stmt:
        return ast.Expr(self.expr(s))

    def delete(self, s: Scope) -> ast.stmt:
        return ast.Delete(self.some(lambda: self.target(s, ast.Del()), 1, 2))

    def assert_(self, s: Scope) -> ast.stmt:
        return ast.Assert(self.expr(s), self.maybe(lambda: self.expr(s)))

    def raise_(self, s: Scope) -> ast.stmt:
        raised = self.maybe(lambda: self.expr(s), 0.8)
        return ast.Raise(raised, self.maybe(lambda: self.expr(s)) if raised else None)

    def import_(self, s: Scope) -> ast.stmt:
        return ast.Import(self.some(lambda: ast.alias("p.q" if self.chance(0.3) else "m", self.maybe(self.name)), 1, 2))

    def import_from(self, s: Scope) -> ast.stmt:
        aliases = self.some(lambda: ast.alias(self.name(), self.maybe(self.name)), 1, 3)
        if not s.function and not s.class_body and self.chance(0.2):
            aliases = [ast.alias("*")]
        return ast.ImportFrom("m", aliases, self.rng.choice((0, 0, 1, 2)))

    def type_alias(self, s: Scope) -> ast.stmt:
        value = ast.Subscript(self.load(), self.load(), ast.Load())
        return ast.TypeAlias(ast.Name(self.free_name(s), ast.Store()), [], value)

    def pass_(self, s: Scope) -> ast.stmt:
        return ast.Pass()

    def return_(self, s: Scope) -> ast.stmt:
        if s.star_handler:
            return ast.Pass()
        # An asynchronous generator may not return a value, and it is not known yet whether this function becomes one.
        return ast.Return(None if s.is_async else self.maybe(lambda: self.expr(s), 0.8))

    def yield_(self, s: Scope) -> ast.stmt:
        return ast.Expr(self.yield_expr(s))

    def break_(self, s: Scope) -> ast.stmt:
        return ast.Break()

    def continue_(self, s: Scope) -> ast.stmt:
        return ast.Continue()

    def if_(self, s: Scope) -> ast.stmt:
        return ast.If(self.expr(s), self.block(s), self.block(s) if self.chance(0.5) else [])

    def while_(self, s: Scope) -> ast.stmt:
        test = ast.Constant(True) if self.chance(0.1) else self.expr(s)
        return ast.While(test, self.block(replace(s, loop=True)), self.block(s) if self.chance(0.3) else [])

    def for_(self, s: Scope, kind: Any = ast.For) -> ast.stmt:
        target = self.target(s) if self.chance(0.7) else ast.Tuple(self.some(lambda: self.target(s), 2, 3), ast.Store())
        return kind(target, self.expr(s), self.block(replace(s, loop=True)), self.block(s) if self.chance(0.3) else [])

    def async_for(self, s: Scope) -> ast.stmt:
        return self.for_(s, ast.AsyncFor)

    def handlers(self, s: Scope, bare: bool) -> list[ast.ExceptHandler]:
        def handler() -> ast.ExceptHandler:
            return ast.ExceptHandler(self.expr(s), self.maybe(lambda: self.free_name(s)), self.block(s))

        out = self.some(handler, 1, 2)
        return [*out, ast.ExceptHandler(None, None, self.block(s))] if bare and self.chance(0.4) else out

    def try_(self, s: Scope) -> ast.stmt:
        handlers = self.handlers(s, True) if self.chance(0.7) else []
        final = self.block(s) if not handlers or self.chance(0.4) else []
        return ast.Try(self.block(s), handlers, self.block(s) if handlers and self.chance(0.3) else [], final)

    def try_star(self, s: Scope) -> ast.stmt:
        handlers = self.handlers(replace(s, loop=False, star_handler=True), False)
        return ast.TryStar(
            self.block(s),
            handlers,
            self.block(s) if self.chance(0.3) else [],
            self.block(s) if self.chance(0.3) else [],
        )

    def with_(self, s: Scope, kind: Any = ast.With) -> ast.stmt:
        items = self.some(lambda: ast.withitem(self.expr(s), self.maybe(lambda: self.target(s))), 1, 3)
        return kind(items, self.block(s))

    def async_with(self, s: Scope) -> ast.stmt:
        return self.with_(s, ast.AsyncWith)

    def match_(self, s: Scope) -> ast.stmt:
        cases = self.some(
            lambda: ast.match_case(self.pattern(s, 2), self.maybe(lambda: self.expr(s), 0.3), self.block(s)), 1, 4
        )
        if self.chance(0.4):
            cases.append(ast.match_case(ast.MatchAs(None, None), None, self.block(s)))
        return ast.Match(self.expr(s), cases)

    def function(self, s: Scope, method: bool = False) -> ast.stmt:
        arguments, names = self.arguments(s, annotated=True)
        is_async = self.chance(0.25)
        enclosing = s.bound if not s.function else s.bound | s.parameters
        inner = Scope(True, is_async, depth=s.depth + 1, bound=enclosing, parameters=names)
        body: list[ast.stmt] = [ast.Expr(ast.Constant("text"))] if self.chance(0.1) else []
        free = [n for n in enclosing if n not in names]
        if free and self.chance(0.5):
            chosen = self.rng.choice(sorted(free))
            body.append(ast.Nonlocal([chosen]))
            inner.declared.add(chosen)
        others = [n for n in NAMES if n not in names and n not in inner.declared]
        if self.chance(0.25):
            chosen = self.rng.choice(others)
            body.append(ast.Global([chosen]))
            inner.declared.add(chosen)
        body += self.block(inner, 6)
        kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
        decorators = self.some(lambda: self.expr(s), 0, 1)
        return kind(self.free_name(s), arguments, body, decorators, self.maybe(self.load, 0.2))

    def class_(self, s: Scope) -> ast.stmt:
        keywords = self.some(lambda: ast.keyword(self.rng.choice(("metaclass", "k", None)), self.expr(s)), 0, 1)
        inner = Scope(class_body=True, depth=s.depth + 1, bound=s.bound | s.parameters)
        body = self.some(lambda: self.function(inner, True), 0, 2) + self.block(inner)
        return ast.ClassDef(
            self.free_name(s),
            self.some(lambda: self.expr(s), 0, 2),
            keywords,
            body,
            self.some(lambda: self.expr(s), 0, 1),
        )

    def arguments(self, s: Scope, annotated: bool = False) -> tuple[ast.arguments, set[str]]:
        names = self.rng.sample(NAMES, self.rng.randint(0, 6))
        args = [ast.arg(n, self.load() if annotated and self.chance(0.2) else None) for n in names]
        cut = sorted(self.rng.randint(0, len(args)) for _ in range(2))
        only_positional, plain, rest = args[: cut[0]], args[cut[0] : cut[1]], args[cut[1] :]
        vararg = rest.pop() if rest and self.chance(0.4) else None
        kwarg = rest.pop() if rest and self.chance(0.4) else None
        defaults = [self.expr(s) for _ in range(self.rng.randint(0, len(only_positional) + len(plain)))]
        kw_defaults = [self.maybe(lambda: self.expr(s)) for _ in rest]
        return ast.arguments(only_positional, plain, vararg, rest, kw_defaults, kwarg, defaults), set(names)

    def long_function(self) -> ast.stmt:
        """Return a function whose names, constants and jumps need EXTENDED_ARG."""
        store = [ast.Assign([ast.Name(f"v{i}", ast.Store())], ast.Constant(i * 1000 + 0.5)) for i in range(BIG)]
        use = [ast.Expr(ast.Attribute(ast.Name(f"v{i}", ast.Load()), f"attr{i}", ast.Load())) for i in range(BIG)]
        loop = ast.For(ast.Name("i", ast.Store()), ast.Name("g", ast.Load()), [*store, *use], [])
        everything = ast.Try([loop], [ast.ExceptHandler(None, None, [ast.Pass()])], [], [])
        no_args = ast.arguments([], [], None, [], [], None, [])
        return ast.FunctionDef("long", no_args, [everything, ast.Return(ast.Name("v0", ast.Load()))], [], None)

    # ---- targets and patterns ----

    def target(self, s: Scope, context: Any = None) -> Any:
        context = context or ast.Store()
        kind = self.rng.randint(0, 5)
        if kind == 0:
            return ast.Attribute(self.load(), self.name(), context)
        if kind == 1:
            return ast.Subscript(self.load(), self.slice(s), context)
        return ast.Name(self.name(), context)

    def pattern(self, s: Scope, depth: int) -> ast.pattern:
        """Return a pattern. Captures have numbered names, since a pattern may not bind a name twice."""
        capture = lambda: self.capture()  # noqa: E731
        leaves = [
            lambda: ast.MatchValue(ast.Constant(self.rng.choice((0, -1.5, "s", b"b")))),
            lambda: ast.MatchValue(ast.Attribute(self.load(), self.name(), ast.Load())),
            lambda: ast.MatchSingleton(self.rng.choice((None, True, False))),
        ]
        if depth == 0:
            return self.rng.choice(leaves)()
        inner = lambda: self.pattern(s, depth - 1)  # noqa: E731
        kind = self.rng.randint(0, 6)
        if kind == 0:
            patterns = self.some(inner, 0, 3)
            if self.chance(0.4):
                patterns.insert(self.rng.randint(0, len(patterns)), ast.MatchStar(self.maybe(capture)))
            return ast.MatchSequence(patterns)
        if kind == 1:
            values = self.some(inner, 0, 2)
            return ast.MatchMapping([ast.Constant(f"k{i}") for i in range(len(values))], values, self.maybe(capture))
        if kind == 2:
            by_name = self.some(inner, 0, 2)
            return ast.MatchClass(self.load(), self.some(inner, 0, 2), [f"n{i}" for i in range(len(by_name))], by_name)
        if kind == 3:
            return ast.MatchOr([self.rng.choice(leaves)() for _ in range(self.rng.randint(2, 3))])
        if kind == 4:
            return ast.MatchAs(inner(), capture())
        return self.rng.choice(leaves)()

    def capture(self) -> str:
        self.nodes += 1
        return f"m{self.nodes}"

    # ---- expressions ----

    def yield_expr(self, s: Scope) -> ast.expr:
        if not s.is_async and self.chance(0.3):
            return ast.YieldFrom(self.expr(s))
        return ast.Yield(self.maybe(lambda: self.expr(s)))

    def expr(self, s: Scope, depth: int = 3) -> Any:
        if depth == 0 or self.chance(0.3):
            return self.load() if self.chance(0.6) else ast.Constant(self.rng.choice(CONSTANTS))
        sub = lambda: self.expr(s, depth - 1)  # noqa: E731
        return getattr(self, self.rng.choice(EXPRESSIONS))(s, sub)

    def bool_op(self, s: Scope, sub: Any) -> ast.expr:
        return ast.BoolOp(self.rng.choice((ast.And, ast.Or))(), self.some(sub, 2, 3))

    def bin_op(self, s: Scope, sub: Any) -> ast.expr:
        return ast.BinOp(sub(), self.rng.choice(OPERATORS)(), sub())

    def unary_op(self, s: Scope, sub: Any) -> ast.expr:
        return ast.UnaryOp(self.rng.choice((ast.Not, ast.USub, ast.UAdd, ast.Invert))(), sub())

    def compare(self, s: Scope, sub: Any) -> ast.expr:
        n = self.rng.randint(1, 3)
        return ast.Compare(self.load(), [self.rng.choice(COMPARISONS)() for _ in range(n)], [sub() for _ in range(n)])

    def if_exp(self, s: Scope, sub: Any) -> ast.expr:
        return ast.IfExp(sub(), sub(), sub())

    def lambda_(self, s: Scope, sub: Any) -> ast.expr:
        arguments, names = self.arguments(s)
        return ast.Lambda(arguments, self.expr(Scope(True, depth=s.depth + 1, bound=s.bound, parameters=names), 1))

    def call(self, s: Scope, sub: Any) -> ast.expr:
        args = self.some(lambda: ast.Starred(sub(), ast.Load()) if self.chance(0.15) else sub(), 0, 3)
        names = self.rng.sample(NAMES, 3)
        keywords = self.some(lambda: ast.keyword(None if self.chance(0.15) else names.pop(), sub()), 0, 2)
        callee = ast.Attribute(sub(), self.name(), ast.Load()) if self.chance(0.5) else self.load()
        return ast.Call(callee, args, keywords)

    def attribute(self, s: Scope, sub: Any) -> ast.expr:
        return ast.Attribute(sub(), self.name(), ast.Load())

    def slice(self, s: Scope) -> Any:
        part = lambda: self.maybe(lambda: self.expr(s, 1))  # noqa: E731
        if self.chance(0.4):
            return ast.Slice(part(), part(), part())
        if self.chance(0.2):
            return ast.Tuple([ast.Slice(part(), part(), None), self.expr(s, 1)], ast.Load())
        return self.expr(s, 1)

    def subscript(self, s: Scope, sub: Any) -> ast.expr:
        return ast.Subscript(self.load(), self.slice(s), ast.Load())

    def sequence(self, s: Scope, sub: Any) -> ast.expr:
        items = self.some(lambda: ast.Starred(self.load(), ast.Load()) if self.chance(0.15) else sub(), 1, 4)
        kind = self.rng.choice((ast.List, ast.Tuple, ast.Set))
        return ast.Set(items) if kind is ast.Set else kind(items, ast.Load())

    def dict_(self, s: Scope, sub: Any) -> ast.expr:
        keys = self.some(lambda: None if self.chance(0.2) else sub(), 0, 3)
        return ast.Dict(keys, [self.load() if k is None else sub() for k in keys])

    def joined(self, s: Scope, sub: Any) -> ast.expr:
        template = sys.version_info >= (3, 14) and self.chance(0.3)

        def part() -> ast.expr:
            if self.chance(0.4):
                return ast.Constant("text ")
            form = ast.JoinedStr([ast.Constant(">10")]) if self.chance(0.3) else None
            value, conversion = self.load(), self.rng.choice((-1, 114, 115, 97))
            if template:
                return ast.Interpolation(value, ast.unparse(value), conversion, form)
            return ast.FormattedValue(value, conversion, form)

        return (ast.TemplateStr if template else ast.JoinedStr)(self.some(part, 1, 3))

    def comprehension(self, s: Scope, sub: Any) -> ast.expr:
        inner = replace(s, comprehension=True)

        def generator(first: bool) -> ast.comprehension:
            iterable = self.expr(replace(inner, comprehension=True), 1)
            conditions = self.some(lambda: self.expr(inner, 1), 0, 1)
            is_async = int(s.is_async and s.function and self.chance(0.2))
            names = ast.Name("q", ast.Store())
            return ast.comprehension(
                ast.Tuple([names, ast.Name("r", ast.Store())], ast.Store()) if self.chance(0.3) else names,
                iterable,
                conditions,
                is_async,
            )

        generators = [generator(i == 0) for i in range(self.rng.randint(1, 2))]
        kind = self.rng.choice((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
        element = lambda: self.expr(inner, 1)  # noqa: E731
        return kind(element(), element(), generators) if kind is ast.DictComp else kind(element(), generators)

    def walrus(self, s: Scope, sub: Any) -> ast.expr:
        if s.class_body or s.comprehension:
            return sub()
        return ast.NamedExpr(ast.Name(self.free_name(s), ast.Store()), sub())

    def suspend(self, s: Scope, sub: Any) -> ast.expr:
        if not s.function or s.comprehension:
            return sub()
        return ast.Await(sub()) if s.is_async and self.chance(0.7) else self.yield_expr(replace(s, depth=9))


OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.MatMult,
)  # fmt: skip
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn)
CONSTANTS = (0, 1, -1, 2**70, 1.5, 2j, True, None, Ellipsis, "text", "", b"bytes", "\u00e9\U0001f600", float("inf"))
EXPRESSIONS = (
    "bool_op bin_op unary_op compare if_exp lambda_ call attribute subscript sequence dict_ joined comprehension "
    "walrus suspend"
).split()


def source(seed: int) -> str:
    """Return the program of a seed.

    Two random choices may conflict and cause a syntax error (a name used before it is declared global, an asynchronous
    comprehension in a lambda); then the seed's next attempt is used.
    """
    for turn in range(100):
        text = ast.unparse(Syntax(seed * 1000 + turn).module())
        try:
            compile(text, f"<syntax {seed}>", "exec", dont_inherit=True)
        except SyntaxError:
            continue
        return text + "\n"
    raise AssertionError(f"seed {seed} gives no program that compiles")


def main() -> None:
    """Write the files."""
    import warnings

    warnings.simplefilter("ignore")  # calls of constants and comparisons with `is` are intended
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        (folder / f"p{seed:06}.py").write_text(source(seed), encoding="utf-8")


if __name__ == "__main__":
    main()
