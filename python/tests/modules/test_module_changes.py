"""Changes to a module that bypass its optimized handle, each seen by the next call: rows S003-38, 41, 42, 44."""

from __future__ import annotations

import types
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules_support import check

pytestmark = pytest.mark.row("S003-38", "S003-41", "S003-44")


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


class Inner(nn.Module):
    factor = 1.0

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("shift", torch.randn(4))
        self.register_parameter("none", None)

    @property
    def twice(self):
        return self.weight * 2

    def extra(self, x):
        return x + 1

    def forward(self, x):
        y = x * self.weight + self.shift
        if self.none is not None:
            y = y + self.none
        return self.extra(y) * self.factor + self.twice


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Inner(), Inner()
        self.plain = [Inner(), Inner()]
        self.table = {"scale": 2.0, "t": torch.ones(4)}
        self.pair = (1, 2)
        self.act = F.relu
        self.flag, self.number = True, 3

    def forward(self, x, k=1):
        y = self.act(self.b(self.a(x)))
        for m in self.plain:
            y = m(y)
        if self.flag is True:
            y = y * self.number
        for n in self.pair:
            y = y + n
        return y * self.table["scale"] + self.table["t"] + k


def patched(self, x):
    return x * 7


class Other(Inner):
    def extra(self, x):
        return x - 1


def swap(m):
    m.a, m.b = m.b, m.a


def swap_in_the_dict(m):
    m._modules["a"], m._modules["b"] = m._modules["b"], m._modules["a"]


def patch_class(m):
    Inner.extra, m.undo = patched, lambda kept=Inner.extra: setattr(Inner, "extra", kept)


def patch_functional(m):
    m.act = lambda x: F.leaky_relu(x, 0.3)


def patch_torch(m):
    kept = F.relu
    F.relu = F.gelu
    m.act = None
    m.act = F.relu
    m.undo = lambda: setattr(F, "relu", kept)


def set_weight_in_dict(m):
    m.a.__dict__["weight"] = torch.ones(4)


def delete_and_register(m):
    del m.a.weight
    m.a.register_buffer("weight", torch.ones(4))


CHANGES = {
    "a parameter's dict": lambda m: m.a._parameters.__setitem__("weight", nn.Parameter(torch.ones(4))),
    "a buffer's dict": lambda m: m.a._buffers.__setitem__("shift", torch.ones(4)),
    "a parameter that was None": lambda m: setattr(m.b, "none", nn.Parameter(torch.ones(4))),
    "modules swapped": swap,
    "modules swapped in the dict": swap_in_the_dict,
    "a module of another class": lambda m: setattr(m, "a", Other()),
    "the class changed": lambda m: setattr(m.a, "__class__", Other),
    "a method of the instance": lambda m: setattr(m.a, "extra", types.MethodType(patched, m.a)),
    "forward of the instance": lambda m: setattr(m.a, "forward", types.MethodType(patched, m.a)),
    "a lambda for forward": lambda m: setattr(m.b, "forward", lambda x: x * 2),
    "a method of the class": patch_class,
    "an activation": patch_functional,
    "torch's own function": patch_torch,
    "a list of modules": lambda m: m.plain.append(Inner()),
    "an item of a list": lambda m: m.plain.__setitem__(0, Other()),
    "a list emptied": lambda m: m.plain.clear(),
    "a number in a dict": lambda m: m.table.__setitem__("scale", 3.0),
    "a tensor in a dict": lambda m: m.table.__setitem__("t", torch.full((4,), 5.0)),
    "a tensor in a dict, in place": lambda m: m.table["t"].fill_(9),
    "a dict replaced": lambda m: setattr(m, "table", OrderedDict(scale=1.0, t=torch.zeros(4))),
    "a tuple": lambda m: setattr(m, "pair", (1, 2, 3)),
    "True becomes 1": lambda m: setattr(m, "flag", 1),
    "3 becomes 3.0": lambda m: setattr(m, "number", 3.0),
    "an attribute of the class": lambda m: setattr(m.a, "factor", 2.0),
    "weight shadowed in __dict__": set_weight_in_dict,
    "weight shadowed by object.__setattr__": lambda m: object.__setattr__(m.a, "weight", torch.ones(4)),
    "a submodule shadowed in __dict__": lambda m: m.__dict__.__setitem__("a", Other()),
    "a parameter becomes a buffer": delete_and_register,
    "another shape": lambda m: setattr(m.a, "shift", torch.ones(2, 4)),
    "another dtype": lambda m: setattr(m.a, "shift", torch.ones(4, dtype=torch.float64)),
    "no gradient": lambda m: m.a.weight.requires_grad_(False),
    "data": lambda m: setattr(m.a.weight, "data", torch.ones(4)),
    "in place": lambda m: m.a.weight.data.zero_(),
    "a hook in the dict": lambda m: m.a._forward_hooks.__setitem__(7, lambda mod, args, y: y * 2),
    "a pre hook in the dict": lambda m: m.b._forward_pre_hooks.__setitem__(7, lambda mod, args: (args[0] * 2,)),
    "double": lambda m: m.double(),
    "one parameter for two": lambda m: setattr(m.b, "weight", m.a.weight),
    "one module for two": lambda m: setattr(m, "b", m.a),
    "a buffer is None": lambda m: setattr(m.a, "none", None),
    "defaults of forward": lambda m: setattr(type(m).forward, "__defaults__", (5,)),
}
#: Changes that a translation does not notice: it then computes with another value than eager mode, and neither is
#: right.
ONCE = ("defaults of forward",)


@pytest.mark.parametrize("name", CHANGES)
def test_change(name):
    def program(optimize):
        m = Model()
        given = x()
        o = optimize(m)
        out = [o(given), o(given)]
        try:
            CHANGES[name](m)
            for _ in range(2):
                try:
                    y = o(given.to(next(m.parameters()).dtype))
                    y.sum().backward()
                    out.append(y)
                except Exception as error:
                    out.append((type(error).__name__, str(error)))
        finally:
            if "undo" in m.__dict__:
                m.undo()
            Model.forward.__defaults__ = (1,)
        out.append([p.grad for p in m.parameters()])
        return out

    check(program)


class Writes(nn.Module):
    """Stores of every kind inside forward."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
        self.calls, self.seen, self.last, self.stats = 0, [], None, {}

    def forward(self, x):
        self.calls += 1
        y = self.lin(x)
        with torch.no_grad():
            self.mean = 0.9 * self.mean + 0.1 * y.mean(0)
            self.mean.mul_(1.0)
        self.seen.append(y.detach())
        self.last = y
        self.stats["calls"] = self.calls
        self.stats.setdefault("first", self.calls)
        if self.calls > 2:
            self.lin.bias.data.add_(1)
            self.extra = self.calls
        return y * self.calls + self.mean


@pytest.mark.row("S003-35")
def test_what_forward_writes():
    def program(optimize):
        m = Writes()
        o = optimize(m)
        out = [o(x()) for _ in range(4)]
        out[-1].sum().backward()
        return out, m, m.calls, m.seen, m.last, m.stats, m.extra, m.lin.weight.grad

    check(program)


class MakesModules(nn.Module):
    """Creates modules and parameters inside forward."""

    def forward(self, x):
        if not hasattr(self, "inner"):
            self.inner = nn.Linear(4, 4)
            self.scale = nn.Parameter(torch.ones(4))
            self.register_buffer("made", torch.zeros(4))
        fresh = nn.Sequential(nn.ReLU(), nn.Linear(4, 4, bias=False))
        nn.init.constant_(fresh[1].weight, 0.5)
        return fresh(self.inner(x)) * self.scale + self.made


def test_modules_made_inside():
    def program(optimize):
        m = MakesModules()
        o = optimize(m)
        out = [o(x()) for _ in range(3)]
        out[-1].sum().backward()

        def f(x, width):
            layer = nn.Linear(4, width)
            norm = nn.BatchNorm1d(width)
            return norm(layer(x)), layer, norm

        fast = optimize(f)
        return out, m, [p.grad for p in m.parameters()], fast(x(), 3), fast(x(), 3), fast(x(), 5)

    check(program)


def test_parameters_changed_while_a_graph_is_kept():
    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        o = optimize(m)
        y = o(x())
        with torch.no_grad():
            m[0].weight.mul_(2)  # backward must detect this
        out = []
        try:
            y.sum().backward()
        except RuntimeError as error:
            out.append(str(error)[:60])
        m[0] = nn.Linear(4, 4)
        z = o(x())
        z.sum().backward()
        return out, m[0].weight.grad, z

    check(program)


def test_freed_modules_leave_nothing_wrong_behind():
    def program(optimize):
        def f(m, x):
            return m(x) + 1

        fast = optimize(f)
        out = []
        for n in range(6):
            m = nn.Linear(4, 2 + n % 2) if n % 3 else nn.Sequential(nn.Linear(4, 2))
            out.append(fast(m, x()))
            del m
        return out

    check(program)
