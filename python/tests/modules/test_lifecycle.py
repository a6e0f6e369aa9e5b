"""Uses of an optimized module other than calls: rows S003-38 to S003-42, and 35."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import godynamo
from modules_support import check, judged


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


class Model(nn.Module):
    """Has parameters, a buffer, a submodule and plain attributes."""

    def __init__(self):
        super().__init__()
        self.lin, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.register_buffer("steps", torch.zeros(()))
        self.dim, self.scale = 1, 2.0

    def forward(self, x):
        self.steps += 1
        y = self.drop(self.norm(self.lin(x)))
        return y.softmax(self.dim) * self.scale


# ---- attributes and modes (S003-35, 38) ------------------------------------------------------------------------------


@pytest.mark.row("S003-35", "S003-38")
def test_attributes_modes_and_buffers_changed_between_calls():
    def program(optimize):
        m = Model()
        o = optimize(m)
        out = [o(x())]
        m.dim = 0
        out.append(o(x()))
        o.scale = 0.5  # through the optimized handle
        out.append((o(x()), m.scale))
        m.eval()
        out.append((o(x()), o.training, m.norm.running_mean))
        o.train()
        m.drop.p = 0.9
        out.append((o(x()), m.drop.training))
        m.norm.eval()
        out.append((o(x()), m.norm.num_batches_tracked))
        m.norm.momentum = 0.3
        m.norm.train()
        out.append((o(x()), m.norm.state_dict()))
        m.steps = torch.full((), 10.0)
        out.append((o(x()), m.steps))
        m.register_buffer("steps", torch.full((), 20.0))
        out.append((o(x()), o.steps))
        m.lin.bias = None
        out.append(o(x()))
        m.lin.weight.requires_grad_(False)
        out.append((o(x()), o(x()).requires_grad))
        return out

    check(program)


@pytest.mark.row("S003-38")
def test_an_attribute_of_the_class_and_one_that_shadows_it():
    class Scaled(nn.Module):
        factor = 2

        def forward(self, x):
            return x * self.factor

    def program(optimize):
        m = Scaled()
        o = optimize(m)
        out = [o(x())]
        Scaled.factor = 3
        out.append(o(x()))
        m.factor = 4
        out.append(o(x()))
        del m.factor
        out.append(o(x()))
        Scaled.factor = 2
        return out

    check(program)


@pytest.mark.row("S003-35", "S003-36")
def test_in_place_modules_and_default_arguments():
    class InPlace(nn.Module):
        def forward(self, x, scale=2.0, *, shift=1.0, keep=None):
            y = x + 0
            nn.functional.relu_(y)
            y.add_(shift).mul_(scale)
            return y if keep is None else (y, keep)

    def program(optimize):
        o = optimize(InPlace())
        given = torch.randn(2, 4)
        act = optimize(nn.ReLU(inplace=True))
        same = act(given) is given
        return o(x()), o(x(), 3.0), o(x(), shift=2.0), o(x(), scale=1.0, keep=given), same, given

    check(program)


# ---- every method of nn.Module (S003-39, 40, 41) ---------------------------------------------------------------------


class GLU(nn.Module):
    """The seed document's class, without ScriptModule and __constants__."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return nn.functional.glu(input, self.dim)


@pytest.mark.row("S003-39")
def test_the_seeds_glu_needs_no_annotation():
    judged(GLU, x(2, 6))
    judged(lambda: GLU(0), x(2, 6))

    def program(optimize):
        m = GLU()
        o = optimize(m)
        out = [o(x(4, 6))]
        m.dim = 0
        out.append(o(x(4, 6)))
        return out

    assert check(program).graphs == 2


METHODS = {
    "state_dict": lambda o: o.state_dict(),
    "load_state_dict": lambda o: str(o.load_state_dict({k: v + 1 for k, v in o.state_dict().items()})),
    "load_state_dict, assign": lambda o: str(
        o.load_state_dict({k: v.clone() + 1 for k, v in o.state_dict().items()}, assign=True)
    ),
    "named_parameters": lambda o: list(o.named_parameters()),
    "named_modules": lambda o: [(n, type(m).__name__) for n, m in o.named_modules()],
    "children": lambda o: [type(m).__name__ for m in o.children()],
    "apply": lambda o: o.apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None) is o,
    "double": lambda o: o.double() is o,
    "to dtype": lambda o: o.to(torch.bfloat16) is o,
    "half": lambda o: o.half() is o,
    "cpu": lambda o: o.cpu() is o,
    "float": lambda o: o.float() is o,
    "eval": lambda o: o.eval() is o,
    "train": lambda o: (o.train(False), o.train(True)) is None,
    "requires_grad_": lambda o: o.requires_grad_(False) is o,
    "zero_grad": lambda o: o.zero_grad(),
    "register_buffer": lambda o: o.register_buffer("extra", torch.ones(2)),
    "register_parameter": lambda o: o.register_parameter("extra", nn.Parameter(torch.ones(2))),
    "add_module": lambda o: o.add_module("extra", nn.Linear(2, 2)),
    "get_submodule": lambda o: o.get_submodule("lin").weight,
    "set_submodule": lambda o: o.set_submodule("lin", nn.Linear(4, 4, bias=False)),
    "repr": lambda o: repr(o),
    "dir": lambda o: sorted(n for n in dir(o) if not n.startswith("_")),
    "isinstance": lambda o: (isinstance(o, Model), isinstance(o, nn.Module), type(o).__name__),
    "extra_repr": lambda o: o.extra_repr(),
    "share_memory": lambda o: o.share_memory() is o,
    "to_empty": lambda o: [p.shape for p in o.to_empty(device="cpu").parameters()] and o.apply(_fill) is o,
    "forward": lambda o: o.forward(torch.ones(2, 4)),
    "type": lambda o: o.type(torch.float64) is o,
    "bfloat16": lambda o: o.bfloat16() is o,
    "buffers": lambda o: list(o.buffers()),
    "setattr": lambda o: setattr(o, "dim", 0),
    "delattr": lambda o: delattr(o, "scale"),
    "a module in it": lambda o: setattr(o, "drop", nn.Identity()),
    "compile": lambda o: None,
}


def _fill(module: nn.Module) -> None:
    module.zero_grad()
    with torch.no_grad():
        for t in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            t.fill_(1)


@pytest.mark.row("S003-40", "S003-41")
@pytest.mark.parametrize("name", METHODS)
def test_method(name):
    def program(optimize):
        m = Model()
        o = optimize(m)
        out = [o(x())]
        out[0].sum().backward()
        out.append(METHODS[name](o))
        given = x().detach().to(next(o.parameters()).dtype)
        for _ in range(2):
            try:
                out.append(o(given))
            except Exception as error:
                out.append(f"{type(error).__name__}: {error}")
        return out, [p.grad for p in o.parameters()], m

    check(program)


@pytest.mark.row("S003-41")
def test_load_and_convert_are_seen_by_the_next_call():
    def program(optimize):
        m, other = Model().eval(), Model().eval()
        o = optimize(m)
        out = [o(x())]
        o.load_state_dict(other.state_dict())
        out.append((o(x()), other(x())))
        o.to(torch.float64)
        out.append(o(x().double()))
        o.to(torch.float32)
        out.append(o(x()))
        with torch.no_grad():
            for p in m.parameters():
                p.mul_(2)
            m.lin.weight.data = torch.eye(4)
        out.append(o(x()))
        nn.init.zeros_(m.lin.bias)
        m.lin.weight = nn.Parameter(torch.ones(4, 4))
        out.append(o(x()))
        return out

    recorder = check(program)
    assert recorder.breaks == {}


@pytest.mark.row("S003-40")
def test_copies_and_pickles():
    def program(optimize):
        m = Model()
        o = optimize(m)
        out = [o(x())]
        deep, shallow = copy.deepcopy(o), copy.copy(o)
        out += [deep(x()), shallow(x()), deep.lin.weight is o.lin.weight, shallow.lin.weight is o.lin.weight]
        deep.dim = 0
        out += [deep(x()), o(x()), o.dim, type(deep).__name__]
        saved = io.BytesIO()
        torch.save(o.state_dict(), saved)
        saved.seek(0)
        o.load_state_dict(torch.load(saved))
        return out, o(x())

    check(program)


@pytest.mark.row("S003-40")
@pytest.mark.parametrize("how", ["pickle", "torch.save"])
def test_an_optimized_module_is_pickled(how):
    o = godynamo.optimize(Model())
    torch.manual_seed(0)
    o(x())
    if how == "pickle":
        again = pickle.loads(pickle.dumps(o))
    else:
        saved = io.BytesIO()
        torch.save(o, saved)
        saved.seek(0)
        again = torch.load(saved, weights_only=False)
    given = x()
    torch.manual_seed(1)
    expected = o(given)
    torch.manual_seed(1)
    assert torch.equal(again(given), expected)
    assert isinstance(again, Model)


@pytest.mark.row("S003-40")
def test_subclasses_that_override_call_and_getattr():
    class Called(nn.Linear):
        def __call__(self, x, *, double=False):
            y = super().__call__(x)
            return y * 2 if double else y

    class Asked(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.asked = []

        def __getattr__(self, name):
            if name.startswith("made_"):
                self.__dict__["asked"].append(name)
                return float(name[5:])
            return super().__getattr__(name)

        def forward(self, x):
            return self.inner(x) * self.made_3 + self.made_2

    class Set(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 1

        def __setattr__(self, name, value):
            super().__setattr__(name, value * 2 if name == "n" else value)

        def forward(self, x):
            self.n = self.n + 1
            return x * self.n

    def program(optimize):
        called, asked, stored = optimize(Called(4, 4)), optimize(Asked()), optimize(Set())
        out = [called(x()), called(x(), double=True), called(x()), asked(x()), asked(x()), asked.asked]
        return out, [stored(x()) for _ in range(3)], stored.n

    check(program)
