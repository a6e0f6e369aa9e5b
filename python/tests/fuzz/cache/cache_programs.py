"""The programs whose stored translations are damaged: name -> module -> source.

Each has a function calls(optimize), which yields the calls to compare. The module of the program's name comes last.
"""

from __future__ import annotations

HELPER = """
def scaled(y, k, *, by=2):
    return shifted(y * k) + by

def shifted(y):
    return y - OFFSET

OFFSET = 3
"""

MODEL = """
import torch
import helper

class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear, self.norm, self.k = torch.nn.Linear(n, n), torch.nn.LayerNorm(n), 3
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, *, flag=True):
        y = torch.nn.functional.relu(self.linear(x))
        if flag:
            y = helper.scaled(y, self.k)
        if self.training:
            self.seen.add_(1)
        return self.norm(y) + x

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Block(4) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {"x": x * 2, "n": len(self.layers)}

def calls(optimize):
    torch.manual_seed(0)
    net = Net()
    f = optimize(net)
    yield lambda: f(torch.ones(2, 4))
    yield lambda: (f(torch.ones(3, 4)), [layer.seen for layer in net.layers])
    net.eval()
    yield lambda: f(torch.ones(3, 4))
"""

BREAKS = """
import torch

def part(x, n):
    print("part", n)
    return x * n

def f(x, n, *more, key=None):
    y = x + n
    print("first")
    z = part(y, n) * int(y.sum())
    rows = []
    for i in range(n):
        rows.append(z[i] + i)
        if i == 1:
            print("second", i)
    if z.sum() > 0:
        return rows, key, more
    return [r * 2 for r in rows]

def calls(optimize):
    g = optimize(f)
    yield lambda: g(torch.ones(3), 2)
    yield lambda: g(torch.ones(4), 3, 1, key="k")
    yield lambda: g(-torch.ones(4) * 9, 3)
"""

CONTEXTS = """
import contextlib
import torch

LOG = []
COUNT = 0

class Noted:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        LOG.append("enter " + self.name)
        return self

    def __exit__(self, kind, error, tb):
        LOG.append(kind and kind.__name__)
        return kind is ValueError

@contextlib.contextmanager
def held(x):
    LOG.append("held")
    try:
        yield x + 1
    finally:
        LOG.append("freed")

def f(x, how, box):
    global COUNT
    COUNT += 1
    with Noted("outer") as n, torch.no_grad():
        y = x * 2
        try:
            if how == 1:
                raise KeyError(how)
            with held(y) as z:
                y = z * 3
                if how == 2:
                    print("how", how)
                    raise ValueError("two")
        except KeyError as e:
            y = y - e.args[0]
            box["error"] = repr(e)
        finally:
            box["y"] = y
        n.name += "!"
    return y + COUNT, n.name

def calls(optimize):
    g, box = optimize(f), {}
    for how in (0, 1, 2):
        yield lambda how=how: (g(torch.ones(2), how, box), list(LOG), box, COUNT)
"""

SIZES = """
import torch

def f(x, w):
    n, m = x.shape
    y = x.reshape(m, n) if n != m else x * 2
    out = []
    for i in range(0, n, 2):
        out.append(y[: m // 2 + 1].sum() * (i + n))
    if n * m > 20:
        out.append(w[:n].mean() - n)
    return torch.stack(out), n * m + 1, torch.zeros(n + 1, m), f"{n}x{m}"

def calls(optimize):
    g, w = optimize(f), torch.arange(40.0)
    for n, m in ((2, 3), (4, 3), (5, 6), (3, 3), (6, 7)):
        yield lambda n=n, m=m: g(torch.arange(float(n * m)).reshape(n, m), w)
"""

RAISES = """
import torch

class Refused(Exception):
    pass

def inner(x, w):
    y = x + 1
    return y @ w

def checked(x, w):
    try:
        return inner(x, w)
    except RuntimeError as e:
        raise Refused(x.shape[0], "refused") from e

def f(x, w, how):
    y = x * 2
    if how:
        return checked(y, w)
    z = inner(y, w)
    assert how is None, "no how"
    return z

def calls(optimize):
    g = optimize(f)
    for how, n in ((None, 2), (None, 3), (True, 3), (True, 2), (0, 2)):
        yield lambda how=how, n=n: g(torch.ones(2, n), torch.ones(2, 2), how)
"""

CONTAINERS = """
import collections
import dataclasses
import enum
import functools
import torch

class Kind(enum.Enum):
    ADD = "add"
    SUB = "sub"

@dataclasses.dataclass
class Config:
    rate: float = 0.5
    kind: Kind = Kind.ADD
    names: list = dataclasses.field(default_factory=lambda: ["a", "b"])

    @property
    def twice(self):
        return self.rate * 2

    @classmethod
    def other(cls):
        return cls(0.25, Kind.SUB)

class Slots:
    __slots__ = ("value", "next")

    def __init__(self, value, next=None):
        self.value, self.next = value, next

    def __len__(self):
        return 1 + (len(self.next) if self.next is not None else 0)

Pair = collections.namedtuple("Pair", "left right")
TABLE = {"a": 1.5, "b": 2.5, Kind.ADD: 3, (1, 2): 4}
registered = frozenset({1, 2, 3})

def counter(start):
    n = start
    def more(x):
        nonlocal n
        n += 1
        return x + n
    return more

def squares(x, items):
    for i in items:
        yield x * i

def f(x, config, chain, pair, more, /, *rest, scale=2):
    total = x * config.twice if config.kind is Kind.ADD else x - config.rate
    for name in config.names:
        total = total + TABLE[name]
    total = more(total) + len(chain) + pair.left * TABLE[1, 2]
    total = functools.reduce(lambda a, b: a + b, squares(total, rest), total)
    made = {"total": total, **{k: v + 1 for k, v in zip(config.names, rest)}}
    chain.value = made["total"]
    config.names.append("a")
    if 2 in registered and isinstance(pair, Pair) and not isinstance(pair, Slots):
        pair = pair._replace(right=total * scale)
    return pair, made, [*rest][::-1], Slots(total, chain), config, sorted(made), type(pair)

def calls(optimize):
    g, more, chain = optimize(f), counter(1), Slots(1, Slots(2))
    config = Config()
    yield lambda: g(torch.ones(2), config, chain, Pair(1, 2), more, 2, 3)
    yield lambda: (g(torch.ones(2), config, chain, Pair(1, 2), more, 2, 3, scale=5), config, chain.value)
    yield lambda: g(torch.ones(2), Config.other(), chain, Pair(1.5, None), more)
"""

TRAINING = """
import torch

def loss(model, x, target):
    out = model(x)
    return torch.nn.functional.mse_loss(out, target) + sum(p.abs().sum() for p in model.parameters()) * 0.01

def step(model, optimizer, x, target):
    optimizer.zero_grad()
    value = loss(model, x, target)
    value.backward()
    optimizer.step()
    return value.detach(), {name: p.grad for name, p in model.named_parameters()}

def calls(optimize):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    optimizer, g = torch.optim.SGD(model.parameters(), lr=0.1), optimize(step)
    optimizer.zero_grad()  # the first call in a process stores an attribute, which the next translation compares
    for _ in range(2):
        yield lambda: (g(model, optimizer, torch.ones(2, 3), torch.zeros(2, 1)), torch.rand(2))
"""

FUNCTIONS = """
import torch
from torch.utils.checkpoint import checkpoint

def scaled(row, w):
    return (torch.sort(row)[0] * w).sum()

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.k = torch.nn.Linear(3, 3), 2

    def part(self, x, n):
        return torch.tanh(self.linear(x)) * n + self.k, {"n": n}

    def forward(self, x):
        y, made = checkpoint(self.part, x, 3, use_reentrant=False)
        z = torch.cond(y.sum() > 0, lambda v: v + x, lambda v: v - x, (y,))
        return torch.vmap(scaled, in_dims=(0, None))(z, x[0]), made

def calls(optimize):
    torch.manual_seed(0)
    layer = Layer()
    g = optimize(layer)
    for sign in (1, -1):
        x = torch.full((2, 3), float(sign), requires_grad=True)
        def step(x=x):
            y, made = g(x)
            y.sum().backward()
            return y, made, x.grad, layer.linear.weight.grad
        yield step
    mapped = optimize(torch.vmap(scaled, (0, None)))
    yield lambda: mapped(torch.ones(2, 3), torch.ones(3))
"""

PROGRAMS: dict[str, dict[str, str]] = {
    "model": {"helper": HELPER, "model": MODEL},
    "breaks": {"breaks": BREAKS},
    "contexts": {"contexts": CONTEXTS},
    "sizes": {"sizes": SIZES},
    "raises": {"raises": RAISES},
    "containers": {"containers": CONTAINERS},
    "training": {"training": TRAINING},
    "functions": {"functions": FUNCTIONS},
}
