"""Edits a program of two modules at random, as its author might between two runs."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HELPER = """
import functools
import torch

SCALE = 3
TABLE = {"a": 1, "b": 2}
NAMES = ["a", "b"]

def plain(fn):
    return fn

def wrapped(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)
    return inner

def shift(y, by=1, *, sign=-1):
    return y + by * sign

def turn(y, by=2, *, sign=1):
    return y - by * sign

def scaled(y, k):
    y = y * k
    y = shift(y, 2)
    return y * SCALE

def picked(y, name="a"):
    total = y
    for each in NAMES:
        total = total + TABLE[each] * (1 if each == name else 2)
    return total

def closing(n):
    def closed(x, by=n):
        return x * by + n
    return closed

class Config:
    depth = 2
    rate = 5
    names = ("x", "y")

    def __init__(self):
        self.width = 3

    @property
    def size(self):
        return self.depth * self.width

    @staticmethod
    def mix(a, b):
        return a - b

    @classmethod
    def deep(cls):
        return cls.depth + 1

    def apply(self, x):
        return self.mix(x, self.rate) * self.size

class Wide(Config):
    rate = 6

    def twice(self, x):
        return self.apply(x) * 2
"""

MODEL = """
import torch
import helper
from helper import picked, wrapped

LIMIT = 4
seen = []

class Base(torch.nn.Module):
    k = 2

    def mixed(self, x):
        return x + self.k

    def after(self, x):
        return x * 2

class Other(torch.nn.Module):
    k = 5

    def mixed(self, x):
        return x - self.k

    def after(self, x):
        return x * 3

class Block(Base):
    part = 1
    flag = True

    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.own = 7

    def forward(self, x, *, skip=False, by=1):
        y = torch.nn.functional.relu(self.linear(x))
        if self.flag and not skip:
            y = helper.scaled(y, self.part)
        y = self.mixed(y) + self.own
        return self.after(y) - by

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(4) for _ in range(2))
        self.config = helper.Wide()

    @property
    def start(self):
        return self.config.depth

    def forward(self, x, skip=False):
        x = x + self.start
        for layer in self.layers:
            x = layer(x, skip=skip)
        return picked(x, "b")

def step(x, config, names):
    y = config.apply(x) + len(names)
    if x.shape[0] > LIMIT:
        y = y - 1
    z = helper.closing(config.deep())(y)
    try:
        total = config.twice(z) + names[1]
    except (IndexError, AttributeError) as e:
        seen.append(type(e).__name__)
        total = z
    print("total", len(names))
    seen.append(LIMIT)
    if total.sum() > 10:
        return total, max(names)
    return total * 2, isinstance(config, helper.Wide)

def calls(optimize, size, skip, train, grad):
    torch.manual_seed(0)
    net = Net().train(train)
    f, g, config = optimize(net), optimize(step), helper.Wide()
    with torch.set_grad_enabled(grad):
        yield lambda: f(torch.ones(size, 4), skip)
        yield lambda: (g(torch.ones(size), config, [1, 2]), list(seen))
        yield lambda: (g(torch.ones(size + 3), config, [1]), list(seen))
"""

#: statements at the end of a module, which change what others have defined
PATCHES = {
    "helper": (
        "SCALE = {n}",
        "TABLE['a'] = {n}",
        "NAMES.append('a')",
        "NAMES.reverse()",
        "shift = turn",
        "Config.rate = {n}",
        "shift.__defaults__ = ({n},)",
        "shift.__kwdefaults__ = {{'sign': {n}}}",
        "shift.__code__ = turn.__code__",
        "Wide.size = {n}",
        "Wide.mix = staticmethod(lambda a, b: a + b)",
        "Config.apply = Wide.twice",
        "del Wide.rate",
        "Config.__getattr__ = lambda self, name: {n}",
        "Wide.__bases__ = (type('Between', (Config,), {{'rate': {n}}}),)",
        "Config.deep = classmethod(lambda cls: {n})",
        "len = lambda x: {n}",
        "del SCALE",
        "TABLE = {{'a': {n}, 'b': 0}}",
        "scaled = functools.partial(scaled, k={n})",
        "scaled = functools.lru_cache(scaled)",
        "closing = lambda n: shift",
        "Wide = Config",
        "NAMES = tuple(NAMES)",
        "Config.names = ['z']",
        "Wide.width = property(lambda self: {n})",
        "class Wide(Wide):\n    rate = {n}",
        "picked = wrapped(picked)",
        "shift = torch.no_grad()(shift)",
        "class TABLE(dict):\n    __class_getitem__ = lambda key: {n}",
    ),
    "model": (
        "LIMIT = {n}",
        "helper.SCALE = {n}",
        "helper.scaled = helper.shift",
        "helper.shift = helper.turn",
        "picked = helper.scaled",
        "Block.k = {n}",
        "Block.part = {n}",
        "Block.flag = False",
        "Block.mixed = Other.mixed",
        "Base.mixed = Other.mixed",
        "Block.after = lambda self, x: x - {n}",
        "Block.__bases__ = (Other,)",
        "Net.start = {n}",
        "Net.forward.__defaults__ = (True,)",
        "Block.forward.__kwdefaults__ = {{'skip': True, 'by': {n}}}",
        "Block.forward.__code__ = (lambda self, x, *, skip=0, by=1: x - by).__code__",
        "torch.nn.functional.relu = torch.nn.functional.gelu",
        "torch.nn.Linear.forward = lambda self, x: x + {n}",
        "torch.relu = torch.sigmoid",
        "len = lambda x: {n}",
        "max = min",
        "isinstance = lambda a, b: {n} > 4",
        "Block.own = property(lambda self: {n}, lambda self, value: None)",
        "seen.append({n})",
        "seen = [{n}]",
        "Block.__call__ = lambda self, x, skip: x * {n}",
        "class Block(Block):\n    k = {n}",
        "step = wrapped(step)",
        "step.__defaults__ = ({n},)",
        "Net.__getattr__ = lambda self, name: torch.nn.Module.__getattr__(self, name)",
        "torch.nn.Module.__add__ = lambda self, x: {n}",
        "helper.Wide.rate = {n}",
        "helper.Config.rate = {n}",
        "del helper.TABLE['a']",
        # for modules only: nothing can be imported while len() returns the same for everything
        "import builtins; builtins.len = lambda x, f=len: {n} if type(x).__name__ == 'ModuleList' else f(x)",
        "print = lambda *args: None",
        "class Shape(type):\n    __instancecheck__ = lambda cls, o: {n} > 4\n"
        "helper.Wide = Shape('Wide', (helper.Wide,), {{}})",
        "AttributeError = KeyError",
        "Net.config = {n}",
        "Base.forward = Other.after",
        "del Block.part",
    ),
}

#: statements that functions get; {a} is the first argument
STATEMENTS = (
    "{a} = {a} + {n}",
    "print('said', {n})",
    "return {a}",
    "raise ValueError({n})",
    "if {n} > 4:\n    {a} = {a} * 2",
    "seen.append({n})",
    "import math",
    "global SCALE\nSCALE = {n}",
    "{a}.extra = {n}",
    "assert {n} > 1, 'small'",
    "pass",
    "'a text'",
    "del {a}",
    "for i in range({n}):\n    {a} = {a} * 1",
    "with torch.no_grad():\n    pass",
)
OPERATORS: tuple[type[ast.operator], ...] = (ast.Add, ast.Sub, ast.Mult)
COMPARISONS: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.Gt, ast.LtE, ast.GtE, ast.Eq, ast.NotEq)
Function = ast.FunctionDef
Trees = dict[str, ast.Module]
Edit = Callable[[random.Random, Trees], str]


@dataclass
class Edited:
    """A program, and the arguments of its function calls()."""

    seed: int
    sources: dict[str, str]
    arguments: tuple[Any, ...]
    text: str  #: the edits in words
    program: str = "edited"


class NoEdit(Exception):
    """The edit is not possible here."""


def _pick(rng: random.Random, items: list[Any]) -> Any:
    if not items:
        raise NoEdit
    return rng.choice(items)


def _functions(trees: Trees) -> list[tuple[str, Function]]:
    """Return (module, function) of all functions that tests do not rely on."""
    found = [(name, node) for name, tree in trees.items() for node in ast.walk(tree) if isinstance(node, Function)]
    return [(name, node) for name, node in found if node.name not in ("calls", "__init__", "wrapped", "inner")]


def _classes(trees: Trees) -> list[tuple[str, ast.ClassDef]]:
    return [(name, node) for name, tree in trees.items() for node in tree.body if isinstance(node, ast.ClassDef)]


def _inside(trees: Trees, kind: Any) -> list[tuple[str, Any]]:
    """Return (place, node) of all nodes of a type, apart from those of the function calls()."""
    roots = [
        (f"{name}.{getattr(top, 'name', 'top')}", top)
        for name, tree in trees.items()
        for top in tree.body
        if getattr(top, "name", "") != "calls"
    ]
    return [(where, node) for where, root in roots for node in ast.walk(root) if isinstance(node, kind)]


def _number(rng: random.Random) -> int:
    return rng.randrange(-2, 10)


def constant(rng: random.Random, trees: Trees) -> str:
    where, node = _pick(rng, _inside(trees, ast.Constant))
    old = node.value
    if isinstance(old, bool):
        node.value = not old
    elif isinstance(old, int):
        node.value = rng.choice([old + 1, old - 1, -old, float(old), _number(rng)])
    elif isinstance(old, str):
        node.value = rng.choice(["a", "b", "x", old + "z"])
    return f"{where}: {old!r} -> {node.value!r}"


def operator(rng: random.Random, trees: Trees) -> str:
    where, node = _pick(rng, _inside(trees, (ast.BinOp, ast.Compare)))
    before = ast.unparse(node)
    if isinstance(node, ast.BinOp):
        node.op = rng.choice(OPERATORS)()
    elif isinstance(node.ops[0], COMPARISONS):
        node.ops[0] = rng.choice(COMPARISONS)()
    return f"{where}: {before} -> {ast.unparse(node)}"


def default(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, [(m, f) for m, f in _functions(trees) if f.args.defaults or f.args.kw_defaults])
    values = [ast.Constant(_number(rng)), ast.Constant(rng.random() < 0.5), ast.Name("len", ast.Load())]
    lists: list[list[Any]] = [node.args.defaults, node.args.kw_defaults]
    chosen = _pick(rng, [row for row in lists if row])
    chosen[rng.randrange(len(chosen))] = rng.choice(values)
    return f"{module}.{node.name}({ast.unparse(node.args)})"


def order(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, [*_functions(trees), *_classes(trees)])
    if len(node.body) < 2:
        raise NoEdit
    at = rng.randrange(len(node.body) - 1)
    node.body[at : at + 2] = node.body[at : at + 2][::-1]
    return f"{module}.{node.name}: statements {at} and {at + 1} swapped"


def without(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, [*_functions(trees), *_classes(trees)])
    at = rng.randrange(len(node.body))
    gone = node.body.pop(at)
    node.body = node.body or [ast.Pass()]
    return f"{module}.{node.name}: without {ast.unparse(gone)!r}"


def again(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, _functions(trees))
    at = rng.randrange(len(node.body))
    node.body.insert(at, copy.deepcopy(node.body[at]))
    return f"{module}.{node.name}: statement {at} twice"


def added(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, _functions(trees))
    names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")] or ["self"]
    text = rng.choice(STATEMENTS).format(a=rng.choice(names), n=_number(rng))
    at = rng.randrange(len(node.body) + 1)
    node.body[at:at] = ast.parse(text).body
    return f"{module}.{node.name}: {text!r} at {at}"


def decorator(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, _functions(trees))
    known = ["wrapped", "torch.no_grad()", *(["functools.cache", "plain"] if module == "helper" else ["helper.plain"])]
    text = rng.choice(known)
    node.decorator_list.insert(rng.randrange(len(node.decorator_list) + 1), ast.parse(text, mode="eval").body)
    return f"{module}.{node.name}: @{text}"


def undecorated(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, [(m, f) for m, f in _functions(trees) if f.decorator_list])
    gone = node.decorator_list.pop()
    other = rng.choice(["", "staticmethod", "classmethod", "property"])
    if other:
        node.decorator_list.append(ast.Name(other, ast.Load()))
    return f"{module}.{node.name}: {other} in place of {ast.unparse(gone)}"


def renamed(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, _functions(trees))
    old = _pick(rng, [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)])
    new = rng.choice(["renamed", "other", "len", "x", "y"])
    for name in ast.walk(node):
        if isinstance(name, ast.Name) and name.id == old:
            name.id = new
        elif isinstance(name, ast.arg) and name.arg == old:
            name.arg = new
    return f"{module}.{node.name}: {old} is {new}"


def attribute(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, _classes(trees))
    name = rng.choice(["k", "part", "flag", "rate", "depth", "size", "width", "own", "start", "mixed", "training"])
    value = rng.choice([str(_number(rng)), "True", "None", "[1]", "'a'", "lambda self, x=1: x"])
    kept = [s for s in node.body if not (isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == name)]
    node.body = [*kept, *ast.parse(f"{name} = {value}").body]
    return f"{module}.{node.name}.{name} = {value}"


def base(rng: random.Random, trees: Trees) -> str:
    module, node = _pick(rng, [(m, c) for m, c in _classes(trees) if c.name in ("Block", "Wide", "Base", "Other")])
    known = (
        ("Config", "object", "")
        if module == "helper"
        else ("Base", "Other", "Base, Other", "Other, Base", "torch.nn.Module")
    )
    text = rng.choice(known)
    node.bases = ast.parse(f"({text},)", mode="eval").body.elts if text else []  # type: ignore[attr-defined]
    return f"{module}.{node.name}({text})"


def moved(rng: random.Random, trees: Trees) -> str:
    module, one, other = rng.choice([("model", "Block", "Base"), ("helper", "Wide", "Config")])
    classes = {node.name: node for of, node in _classes(trees) if of == module}
    if rng.random() < 0.4:
        one, other = other, one
    if one not in classes or other not in classes:
        raise NoEdit
    chosen = _pick(rng, [s for s in classes[one].body if isinstance(s, (Function, ast.Assign))])
    classes[one].body = [s for s in classes[one].body if s is not chosen] or [ast.Pass()]
    classes[other].body.append(chosen)
    return f"{module}: {ast.unparse(chosen).splitlines()[0]} from {one} to {other}"


def field(rng: random.Random, trees: Trees) -> str:
    """Replace a property or a method by an attribute."""
    module, cls = _pick(rng, _classes(trees))
    methods = [s for s in cls.body if isinstance(s, Function) and s.name not in ("__init__", "forward")]
    chosen = _pick(rng, methods)
    value = rng.choice([str(_number(rng)), "lambda self, x: x"]) if not chosen.decorator_list else str(_number(rng))
    cls.body[cls.body.index(chosen)] = ast.parse(f"{chosen.name} = {value}").body[0]
    return f"{module}.{cls.name}.{chosen.name} = {value}"


def method(rng: random.Random, trees: Trees) -> str:
    """Add a method that overrides an inherited one, or that Python calls."""
    module, cls = _pick(rng, [(m, c) for m, c in _classes(trees) if c.name != "Other"])
    text = rng.choice(
        [
            "def mixed(self, x):\n    return super().mixed(x) * {n}",
            "def apply(self, x):\n    return super().apply(x) + {n}",
            "def after(self, x):\n    return x - {n}",
            "def __getattribute__(self, name):\n    return super().__getattribute__(name)",
            "def __len__(self):\n    return {n}",
            "def __setattr__(self, name, value):\n    super().__setattr__(name, value)",
            "__slots__ = ()",
            "def deep(self):\n    return {n}",
            "def mix(self, a, b=1):\n    return a * {n}",
        ]
    ).format(n=_number(rng))
    cls.body += ast.parse(text).body
    return f"{module}.{cls.name}: {text!r}"


def patched(rng: random.Random, trees: Trees) -> str:
    module = rng.choice(["helper", "model"])
    text = rng.choice(PATCHES[module]).format(n=_number(rng))
    trees[module].body += ast.parse(text).body
    return f"{module}: {text!r}"


def early(rng: random.Random, trees: Trees) -> str:
    """Move all lines of a module down, as a comment would."""
    module = rng.choice(["helper", "model"])
    trees[module].body[1:1] = ast.parse("pass\n" * rng.randrange(1, 4)).body
    return f"{module}: new lines"


EDITS: dict[Edit, int] = {
    constant: 4,
    operator: 3,
    default: 2,
    order: 2,
    without: 2,
    again: 1,
    added: 4,
    decorator: 2,
    undecorated: 1,
    renamed: 2,
    attribute: 3,
    base: 2,
    moved: 2,
    field: 2,
    method: 3,
    patched: 10,
    early: 1,
}


def edited(seed: int, edits: int | None = None) -> Edited:
    """Return the seed's program, with up to three edits unless ``edits`` is their number."""
    rng = random.Random(f"edits {seed}")
    arguments = (rng.choice([2, 3, 5]), rng.random() < 0.3, rng.random() < 0.5, rng.random() < 0.5)
    trees = {"helper": ast.parse(HELPER), "model": ast.parse(MODEL)}
    texts: list[str] = []
    wanted = rng.choice([1, 1, 1, 2, 3]) if edits is None else edits
    while len(texts) < wanted:
        trial = copy.deepcopy(trees)
        try:
            text = rng.choices(list(EDITS), list(EDITS.values()))[0](rng, trial)
            for name, tree in trial.items():
                compile(ast.fix_missing_locations(tree), name, "exec")
        except (NoEdit, SyntaxError, ValueError):
            continue
        trees = trial
        texts.append(text)
    sources = {name: ast.unparse(tree) + "\n" for name, tree in trees.items()}
    return Edited(seed, sources, arguments, f"{arguments} {'; '.join(texts) or 'no edits'}")
