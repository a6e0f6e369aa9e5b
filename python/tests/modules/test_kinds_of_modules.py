"""Modules of unusual classes, and optimized modules in unusual surroundings: rows S003-39, 40, 42, 44."""

from __future__ import annotations

import abc
import copy
import dataclasses
import threading
from typing import Generic, TypeVar

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import godynamo
from modules_support import Counted, check

pytestmark = pytest.mark.row("S003-40")
T = TypeVar("T")


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


@dataclasses.dataclass(eq=False)
class Data(nn.Module):
    width: int = 4
    scale: float = 2.0

    def __post_init__(self):
        super().__init__()
        self.lin = nn.Linear(self.width, self.width)

    def forward(self, x):
        return self.lin(x) * self.scale


class Abstract(nn.Module, abc.ABC):
    @abc.abstractmethod
    def step(self, x): ...

    def forward(self, x):
        return self.step(x) + 1


class Concrete(Abstract):
    def step(self, x):
        return x * 2


class Typed(nn.Module, Generic[T]):
    kind: T

    def __init__(self, kind: T = 3):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x * self.kind


class Slots(nn.Module):
    __slots__ = ("factor",)

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "factor", 3.0)

    def forward(self, x):
        return x * self.factor


class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self._scale = 2.0
        self.asked = 0

    @property
    def scale(self):
        self.asked += 1
        return self._scale

    @scale.setter
    def scale(self, value):
        self._scale = value * 2

    def forward(self, x):
        y = x * self.scale
        self.scale = 1.5
        return y * self.scale


class Registered(nn.Module):
    kinds: dict = {}

    def __init_subclass__(cls, *, name="?", **kwargs):
        super().__init_subclass__(**kwargs)
        cls.kinds[name] = cls

    def forward(self, x):
        return x + len(self.kinds)


class Named(Registered, name="named"):
    def forward(self, x):
        return super().forward(x) * 2


class Called(nn.Module):
    """Has every kind of parameter: positional-only, with defaults, keyword-only, and stars."""

    def forward(self, a, /, b=2.0, *rest, c, d=1.0, **more):
        for r in rest:
            a = a + r
        return a * b + c - d + sum(more.values())


class Multiple(nn.Linear, nn.ReLU):
    def __init__(self):
        nn.Linear.__init__(self, 4, 4)
        self.inplace = False

    def forward(self, x):
        return nn.ReLU.forward(self, nn.Linear.forward(self, x))


class Outputs(nn.Module):
    """Also returns values that are not tensors."""

    def forward(self, x):
        return {"x": x + 1, "n": 3, "l": [x, (x * 2, None)], "t": torch.Size([1, 2]), "s": slice(1, 2), "d": x.dtype}


class Recursive(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.child = Recursive(depth - 1) if depth else None

    def forward(self, x):
        return self.lin(x if self.child is None else self.child(x))


KINDS = [Data, Concrete, Typed, Slots, Property, Named, Multiple, Outputs, Recursive]


@pytest.mark.row("S003-39")
@pytest.mark.parametrize("cls", KINDS, ids=lambda c: c.__name__)
def test_kind(cls):
    def program(optimize):
        m = cls()
        o = optimize(m)
        out = [o(x()) for _ in range(3)]
        return out, m, isinstance(o, cls), type(o).__name__, copy.deepcopy(o)(x())

    recorder = check(program)
    assert recorder.breaks == {} or cls is Slots  # the copy of Slots has lost its slot, as in eager


@pytest.mark.row("S003-36")
def test_called_in_every_way():
    def program(optimize):
        o = optimize(Called())
        out = [o(x(), c=1), o(x(), 3.0, 4, 5, c=x()), o(x(), b=1, c=2, d=3, e=4, f=5), o(*(x(), 2), **{"c": 1})]
        for bad in (lambda: o(), lambda: o(x()), lambda: o(a=x(), c=1), lambda: o(x(), c=1, b=2, **{"d": 1, "1": x()})):
            try:
                out.append(bad())
            except TypeError as error:
                out.append(str(error))
        return out

    check(program)


def test_methods_of_the_optimized_module():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.dec = nn.Linear(4, 2), nn.Linear(2, 4)

        def encode(self, x):
            return self.enc(x)

        @staticmethod
        def double(x):
            return x * 2

        @classmethod
        def make(cls):
            return cls()

        def forward(self, x):
            return self.dec(self.encode(x))

    def program(optimize):
        m = Two()
        o = optimize(m)
        fast = optimize(m.encode)
        o.register_forward_hook(lambda mod, args, y: y + 1)
        made = type(o).make()
        return o(x()), o.encode(x()), o.forward(x()), fast(x()), o.double(x()), type(made).__name__, o.enc(x())

    check(program)


def test_optimized_modules_inside_of_each_other():
    def program(optimize):
        inner = optimize(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
        outer = optimize(nn.Sequential(inner, nn.Linear(4, 4), optimize(nn.Dropout(0.5))))
        again = optimize(outer)
        out = [outer(x()), again(x()), inner(x())]
        outer.eval()
        out += [outer(x()), inner.training, len(list(outer.parameters())), sorted(outer.state_dict())]
        return out, optimize(lambda y: outer(y) + inner(y))(x())

    check(program)


def test_torch_compiled_and_scripted_parts():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    traced = torch.jit.trace(nn.Linear(4, 4), torch.ones(2, 4))

    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 4), copy.deepcopy(scripted), traced)
        o = optimize(m)
        return o(x()), optimize(scripted)(x()), optimize(lambda y: traced(y) * 2)(x())

    check(program)


def test_transforms_of_torch_func():
    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        o = optimize(m)
        params = {k: v.detach() for k, v in m.named_parameters()}
        out = [o(x())]

        def loss(params, x):
            return torch.func.functional_call(o, params, (x,)).sum()

        out.append(torch.func.grad(loss)(params, x()))
        out.append(torch.func.vmap(lambda row: m(row))(x()))
        out.append(torch.func.vmap(o)(x()))
        out.append(torch.func.functional_call(o, {k: v * 2 for k, v in params.items()}, (x(),)))
        stacked = {k: torch.stack([v, v * 2]) for k, v in params.items()}
        out.append(torch.func.vmap(lambda p, y: torch.func.functional_call(o, p, (y,)), (0, None))(stacked, x()))
        out.append(torch.func.jacrev(o)(torch.ones(4)))
        return out, o(x())

    check(program)


def test_checkpoint_autocast_and_modes():
    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.GELU(), nn.Linear(8, 4))
        o = optimize(m)
        given, out = x(), []
        y = checkpoint(o, given, use_reentrant=False)
        y.sum().backward()
        out += [y, given.grad, m[0].weight.grad]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out.append(o(given))
        with torch.no_grad():
            out.append(o(given))
        with torch.inference_mode():
            out.append(o(given).sum().item())
        fast = optimize(lambda y: checkpoint(m, y, use_reentrant=False) + 1)
        out.append(fast(given))
        with torch.autograd.graph.save_on_cpu():
            z = o(given)
        z.sum().backward()
        return out, z, given.grad

    check(program)


def test_double_backward_and_retained_gradients():
    def program(optimize):
        o = optimize(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)))
        given = x()
        y = o(given).sum()
        (first,) = torch.autograd.grad(y, given, create_graph=True)
        (first**2).sum().backward()
        return first, given.grad, [p.grad for p in o.parameters()]

    check(program)


def test_from_several_threads():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    o = godynamo.optimize(m, backend=Counted())
    given = [torch.randn(2, 4) for _ in range(8)]
    expected = [m(g) for g in given]
    got: dict[int, torch.Tensor] = {}
    threads = [threading.Thread(target=lambda i=i: got.__setitem__(i, o(given[i]))) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(torch.equal(got[i], expected[i]) for i in range(8))


def test_a_disabled_module_stays_so():
    class Model(nn.Module):
        def forward(self, x):
            return F.relu(x) + 1

    for make in (
        lambda: godynamo.disable(Model()),
        lambda: torch.compiler.disable(Model()),
        lambda: godynamo.disable(type("Disabled", (Model,), {}))(),
    ):
        recorder = Counted()
        m = make()
        assert torch.equal(godynamo.optimize(m, backend=recorder)(torch.ones(2)), torch.full((2,), 2.0))
        assert recorder.graphs == 0
        f = godynamo.optimize(lambda x, m=m: m(x * 2) * 3, backend=recorder)
        assert torch.equal(f(torch.ones(2)), torch.full((2,), 9.0))
        assert recorder.ops() == ["mul", "mul"]
    enabled = Counted()
    godynamo.optimize(Model(), backend=enabled)(torch.ones(2))
    assert enabled.graphs == 1
