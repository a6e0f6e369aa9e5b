"""Containers, submodules called twice or replaced, shared parameters, wrappers: rows S003-29, 30, 43, 44."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest
import torch
from torch import nn

from modules_support import check, judged


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


class Lists(nn.Module):
    """Everything that can be done with a ModuleList inside forward."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        for i, layer in enumerate(self.layers[1:]):
            x = layer(x) * (i + 1)
        for layer in reversed(self.layers):
            x = layer(x)
        return x, self.layers[-1](x), len(self.layers), self.layers[0] in self.layers, nn.ReLU() in self.layers


class Dicts(nn.Module):
    """Everything that can be done with a ModuleDict inside forward."""

    def __init__(self):
        super().__init__()
        self.kinds = nn.ModuleDict({"relu": nn.ReLU(), "linear": nn.Linear(4, 4)})
        self.kinds["gelu"] = nn.GELU()

    def forward(self, x, name="linear"):
        seen = []
        for key, layer in self.kinds.items():
            x = layer(x)
            seen.append(key)
        x = self.kinds[name](x) + self.kinds["gelu"](x)
        for layer in self.kinds.values():
            x = layer(x)
        return (
            x,
            seen,
            list(self.kinds.keys()),
            list(self.kinds),
            len(self.kinds),
            "relu" in self.kinds,
            "tanh" in self.kinds,
        )


class Parameters(nn.Module):
    """ParameterList and ParameterDict."""

    def __init__(self):
        super().__init__()
        self.ps = nn.ParameterList([nn.Parameter(torch.randn(4)) for _ in range(3)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.randn(4)), "b": nn.Parameter(torch.randn(4))})

    def forward(self, x):
        for p in self.ps:
            x = x + p
        for i in range(len(self.ps)):
            x = x * self.ps[i]
        for name, p in self.named.items():
            x = x - p if name == "a" else x + p
        return x + self.ps[-1], self.named["a"] * 2, len(self.named), "b" in self.named, sorted(self.named.keys())


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        named = OrderedDict([("first", nn.Linear(4, 4)), ("second", nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))])
        self.seq = nn.Sequential(named)

    def forward(self, x):
        y = self.seq(x) + self.seq.first(x)
        for layer in self.seq.second:
            y = layer(y)
        return self.seq[:1](y) + self.seq[-1](y), len(self.seq), [type(m).__name__ for m in self.seq]


class Walk(nn.Module):
    """The methods that traverse a module tree."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))

    def forward(self, x):
        total = x
        for p in self.parameters():
            total = total + p.sum()
        for name, p in self.named_parameters():
            total = total + p.mean() * len(name)
        names = [name for name, _ in self.named_modules()] + [name for name, _ in self.named_children()]
        buffers = [name for name, _ in self.named_buffers()]
        return total, names, buffers, [type(m).__name__ for m in self.children()], self.get_parameter("a.weight") * 1


@pytest.mark.row("S003-29")
@pytest.mark.parametrize("cls", [Lists, Dicts, Parameters, Nested, Walk], ids=lambda c: c.__name__)
def test_container(cls):
    judged(cls, x())


@pytest.mark.row("S003-29")
def test_containers_that_change_between_calls():
    def program(optimize):
        m = Lists()
        o = optimize(m)
        out = [o(x())]
        m.layers.append(nn.Tanh())
        out.append(o(x()))
        m.layers[1] = nn.Sigmoid()
        out.append(o(x()))
        m.layers.insert(0, nn.Linear(4, 4))
        del m.layers[1]
        out.append(o(x()))
        d = Dicts()
        o = optimize(d)
        out.append(o(x(), "relu"))
        d.kinds.update({"tanh": nn.Tanh()})
        out.append(o(x(), "tanh"))
        d.kinds.pop("relu")
        out.append(o(x()))
        return out

    check(program)


@pytest.mark.row("S003-29")
def test_a_container_is_optimized_itself():
    def program(optimize):
        seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        o = optimize(seq)
        layers = optimize(nn.ModuleList([nn.Linear(4, 4)]))
        return (
            o(x()),
            len(o),
            type(o[0]).__name__,
            o[:1](x()),
            [type(m).__name__ for m in o],
            layers[0](x()),
            len(layers),
        )

    check(program)


@pytest.mark.row("S003-30")
def test_data_parallel_and_a_wrapper_of_the_users():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

        def forward(self, *args, **kwargs):
            return self.module(*args, **kwargs) * self.scale

    inner = nn.Linear(4, 4)
    inner.scale = 3
    judged(lambda: nn.DataParallel(copy.deepcopy(inner)), x())
    judged(lambda: Wrapper(copy.deepcopy(inner)), x())


@pytest.mark.row("S003-30")
def test_distributed_data_parallel_in_one_process(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:

        def program(optimize):
            from torch.nn.parallel import DistributedDataParallel

            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
            out = []
            for m in (
                optimize(DistributedDataParallel(model)),
                DistributedDataParallel(optimize(copy.deepcopy(model))),
            ):
                for _ in range(3):
                    y = m(x())
                    y.sum().backward()
                    out.append([y, [p.grad.clone() for p in m.parameters()]])
            return out

        check(program)
    finally:
        torch.distributed.destroy_process_group()


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.embedding(ids))


@pytest.mark.row("S003-43")
def test_tied_parameters_accumulate_once():
    def program(optimize):
        m = Tied()
        o = optimize(m)
        for _ in range(2):
            o(torch.tensor([1, 2, 5])).sum().backward()
        names = [name for name, _ in o.named_parameters()]
        out = [m.head.weight.grad, m.head.weight is m.embedding.weight, names]
        m.head.weight = nn.Parameter(torch.randn(6, 4))  # no longer tied
        o(torch.tensor([1, 2, 5])).sum().backward()
        return out, m.head.weight.grad, m.embedding.weight.grad, o.head.weight is o.embedding.weight

    recorder = check(program)
    assert recorder.graphs == 2
    assert recorder.breaks == {}


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.same = self.inner

    def forward(self, x):
        return self.inner(torch.relu(self.inner(x))) + self.same(x)


@pytest.mark.row("S003-44")
def test_a_submodule_called_twice_and_replaced():
    judged(Twice, x())

    def program(optimize):
        m = Twice()
        o = optimize(m)
        out = [o(x())]
        o.inner = nn.Linear(4, 4)  # through the handle
        out.append(o(x()))
        m.inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        out.append(o(x()))
        m.same = None
        with torch.no_grad():
            try:
                o(x())
            except TypeError as error:
                out.append(str(error))
        del m.inner
        try:
            o(x())
        except AttributeError as error:
            out.append(str(error))
        return out

    check(program)


@pytest.mark.row("S003-44")
def test_modules_shared_between_two_optimized_ones():
    def program(optimize):
        shared = nn.BatchNorm1d(4)
        a, b = nn.Sequential(nn.Linear(4, 4), shared), nn.Sequential(shared, nn.Linear(4, 4))
        oa, ob = optimize(a), optimize(b)
        out = [oa(x()), ob(x()), oa(x())]
        shared.eval()
        return out, ob(x()), oa(x()), shared.state_dict(), oa[1] is ob[0]

    check(program)
