"""A captured module call is reused for equal modules: the graph is as without reuse, the result as in eager mode."""

from __future__ import annotations

import copy
import traceback

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import godynamo
from godynamo import config
from godynamo.testing import CompileCounterWithBackend

BACKENDS = ["eager", "whole graphs"]


def reused(optimized) -> int:
    return sum(e.info["reused_layers"] for e in godynamo.cache_entries(optimized))


class Block(nn.Module):
    """A layer with submodules, reads of sizes, and random numbers."""

    def __init__(self, d=8, p=0.0):
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(d), nn.Dropout(p)
        self.parts = nn.ModuleList([nn.Linear(d, d), nn.Linear(d, d)])
        self.scale, self.act, self.sizes = 2.0, F.relu, [1, 2]

    def forward(self, x, mask=None, *, shift=1):
        b, d = x.shape
        y = self.act(self.parts[0](self.norm(x))).view(b, 2, d // 2).transpose(1, 2)
        y = self.parts[1](y.reshape(b, d)) * self.scale + shift
        if mask is not None:
            y = y * mask
        return x + self.drop(y)


class Stack(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        x = x * 1  # computed, like the inputs of the other layers
        for block in self.blocks:
            x = block(x)
        return x


def make(n=4, **options):
    torch.manual_seed(0)
    return Stack([Block(**options) for _ in range(n)])


def once(model, x, reuse, backend):
    """Make one call; return a list of values, gradients, buffers and random state; the graphs; guards and operations;
    the number of reused layers."""
    model = copy.deepcopy(model)
    x = x.clone().requires_grad_(x.is_floating_point())
    counter = CompileCounterWithBackend("eager")
    run, optimized = model, None
    if reuse is not None:
        run = optimized = godynamo.optimize(model, backend="eager" if backend == "eager" else counter)
    torch.manual_seed(1)
    with config.patch(reuse_layers=bool(reuse)):
        out = run(x)
    out.sum().backward()
    tensors = [out, x.grad, *(p.grad for p in model.parameters()), *model.buffers(), torch.get_rng_state()]
    graphs = [str(g.graph) for g in counter.graphs]
    guards = [str(g) for g in godynamo.guards(optimized)] if optimized else []
    guards += [e.info["ops"] for e in godynamo.cache_entries(optimized)] if optimized else []
    return tensors, graphs, guards, reused(optimized) if optimized else 0


def same(a, b) -> bool:
    return all(p is q or p is not None and q is not None and torch.equal(p, q) for p, q in zip(a, b, strict=True))


def check(model, served, backend="eager", x=None, texts=True):
    """Check for eager mode's result, and for the graph and guards of a translation without reuse. ``served`` layers
    must be reused."""
    x = torch.randn(3, 8) if x is None else x
    want, *_ = once(model, x, None, backend)
    plain, graphs, guards, none = once(model, x, False, backend)
    got, again, guarded, count = once(model, x, True, backend)
    assert same(plain, want) and same(got, want)
    assert none == 0
    assert count == served
    if texts:
        assert (again, guarded) == (graphs, guards)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("train", [False, True])
def test_equal_layers(backend, train):
    check(make(5, p=0.5).train(train), 3, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_batch_norm_in_training(backend):
    torch.manual_seed(0)
    parts = lambda: (nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.ReLU())  # noqa: E731
    model = Stack([nn.Sequential(*parts()) for _ in range(5)])
    check(model, 3, backend)


class Wider(Block):
    pass


def rescaled(block):
    block.scale = 3.0


def unequal_type(block):
    block.scale = 2


def longer(block):
    block.sizes.append(3)


def other_activation(block):
    block.act = F.gelu


def evaluated(block):
    block.drop.eval()


def hooked(block):
    block.parts[1].register_forward_hook(lambda m, args, out: out * 2)


def frozen(block):
    block.norm.weight.requires_grad_(False)


def without_bias(block):
    block.parts[0].bias = None


def doubled(block):
    block.double()
    block.register_forward_pre_hook(lambda m, args: (args[0].double(),))
    block.register_forward_hook(lambda m, args, out: out.float())


def replaced_part(block):
    block.parts[0] = nn.Sequential(block.parts[0], nn.Tanh())


def own_forward(block):
    block.forward = lambda x: x - 1


def another_class(block):
    block.__class__ = Wider
    Wider.extra = lambda self, x: x


def strided(block):
    block.parts[0].weight = nn.Parameter(torch.randn(16, 8)[::2])


CHANGES = [rescaled, unequal_type, other_activation, evaluated, hooked, frozen, without_bias, doubled, replaced_part,
own_forward,
           another_class, strided]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("at", range(3))
def test_a_layer_that_differs(change, at):
    """The layer that differs is translated, and others are still reused."""
    model = make(4, p=0.5)
    change(model.blocks[at])
    x = torch.randn(3, 8)
    want, *_ = once(model, x, None, "eager")
    got, *_, count = once(model, x, True, "eager")
    assert same(got, want)
    assert count >= 1


def test_what_the_layer_does_not_ask_does_not_count():
    model = make(4)
    longer(model.blocks[2])
    check(model, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_shared_parameters_and_modules(backend):
    tied = make(4)
    tied.blocks[2].parts[0].weight = tied.blocks[0].parts[0].weight
    shared = make(4)
    shared.blocks[1].norm = shared.blocks[3].norm = shared.blocks[0].norm
    repeated = make(2)
    repeated.blocks.append(repeated.blocks[0])
    within = make(4)
    within.blocks[2].parts[1] = within.blocks[2].parts[0]
    for model in (tied, shared, repeated, within):
        x = torch.randn(3, 8)
        want, *_ = once(model, x, None, backend)
        got, graphs, *_ = once(model, x, True, backend)
        plain = once(model, x, False, backend)[1]
        assert same(got, want)
        assert graphs == plain


class Loops(nn.Module):
    """Calls each block with different operands."""

    def __init__(self, n, call):
        super().__init__()
        self.blocks, self.call = nn.ModuleList(Block() for _ in range(n)), call
        self.count = 0

    def forward(self, x):
        return self.call(self, x)


def constants(self, x):
    for i, block in enumerate(self.blocks):
        x = block(x, shift=i // 2)
    return x


def masks(self, x):
    mask = (x > 0).float()
    for i, block in enumerate(self.blocks):
        x = block(x, mask if i % 2 else None)
    return x


def shapes(self, x):
    for i, block in enumerate(self.blocks):
        x = block(torch.cat([x, x]) if i % 2 else x)
    return x


def dtypes(self, x):
    for i, block in enumerate(self.blocks):
        x = block(x.double().float() if i % 2 else x + 1)
    return x


def two_names(self, x):
    for block in self.blocks:
        x = block(x, x)
    return block(x, x + 1)


def counted(self, x):
    for block in self.blocks:
        self.count += 1
        x = block(x, shift=self.count)
    return x


def rescales(self, x):
    for i, block in enumerate(self.blocks):
        x = block(x)
        self.blocks[(i + 1) % len(self.blocks)].scale = float(i)
    return x


def switches(self, x):
    for i, block in enumerate(self.blocks):
        with torch.set_grad_enabled(i % 2 == 0):
            x = block(x)
    return self.blocks[0](x)


def handled(self, x):
    for block in self.blocks:
        try:
            x = block(x)
        except ValueError:
            return x
    return x


def grows(self, x):
    seen = []
    for block in self.blocks:
        seen.append(x)
        x = block(x, seen[0])
    return x + sum(seen)


def changed_in_place(self, x):
    x = x * 1
    for block in self.blocks:
        x = block(x)
        x += 1
    return x


CALLS = [constants, masks, shapes, dtypes, two_names, counted, rescales, switches, handled, grows, changed_in_place]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS, ids=lambda f: f.__name__)
def test_operands(call, backend):
    torch.manual_seed(0)
    model = Loops(6, call)
    x = torch.randn(3, 8)
    want, *_ = once(model, x, None, backend)
    got, graphs, guards, count = once(model, x, True, backend)
    assert same(got, want)
    assert graphs == once(model, x, False, backend)[1]
    assert (count > 0) == (call not in (counted, rescales, switches))


class Asks(nn.Module):
    """Reads a dict that the program changes outside the layer."""

    def __init__(self, settings):
        super().__init__()
        self.settings, self.fc = settings, nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x) * self.settings["scale"]


@pytest.mark.parametrize("own", [False, True])
def test_objects_that_the_program_has_changed(own):
    """All layers share one dict, or each has its own and the program changes one of them."""
    one = {"scale": 1}
    model = Stack([Asks({"scale": 1} if own else one) for _ in range(4)])

    class Changes(nn.Module):
        def __init__(self):
            super().__init__()
            self.stack = model

        def forward(self, x):
            self.stack.blocks[2].settings["scale"] += 1
            return self.stack(x)

    x = torch.randn(3, 8)
    for _ in range(2):
        plain = copy.deepcopy(Changes())
        optimized = godynamo.optimize(copy.deepcopy(plain))
        for _ in range(3):
            assert torch.equal(optimized(x), plain(x))


def test_later_calls_are_guarded():
    """A reused layer is guarded like any other."""
    plain = make(6).eval()
    optimized = godynamo.optimize(plain)
    x = torch.randn(3, 8)
    assert torch.equal(optimized(x), plain(x))
    assert reused(optimized) == 4
    for change in (rescaled, other_activation, hooked, without_bias, own_forward):
        change(plain.blocks[3])
        assert torch.equal(optimized(x), plain(x)), change.__name__
    plain.blocks[2].parts[0].weight = plain.blocks[1].parts[0].weight
    assert torch.equal(optimized(x), plain(x))
    plain.blocks[1].load_state_dict(make(1).blocks[0].state_dict())
    assert torch.equal(optimized(x), plain(x))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x, rest):
        y = self.fc(x).relu() * 2 - rest[1]
        return y.tanh(), (rest[0], y + 1, None, 3)


def test_tuples_in_and_out():
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Pair() for _ in range(6))

        def forward(self, x):
            x = x * 1
            rest = (x, x * 2, None, 3)
            for layer in self.layers:
                x, rest = layer(x, rest)
            return x + rest[0] * rest[1] * rest[3]

    check(Pairs(), 4)


class Fails(Block):
    def forward(self, x):
        return super().forward(x) @ self.other


@pytest.mark.parametrize("backend", BACKENDS)
def test_traceback_of_a_layer_that_was_not_run_through(backend):
    """Only the operation detects that the sizes do not match: the traceback shows the layer's own lines."""
    blocks = [Fails() for _ in range(6)]
    for i, b in enumerate(blocks):
        b.other = torch.eye(8)
        b.last = i == 5
    plain = Stack(blocks)
    optimized = godynamo.optimize(plain, backend=backend if backend == "eager" else CompileCounterWithBackend("eager"))
    x = torch.randn(3, 8)
    assert torch.equal(optimized(x), plain(x))
    assert reused(optimized) >= 3

    def lines(f):
        with pytest.raises(RuntimeError) as caught:
            f(torch.randn(3, 8, dtype=torch.float16))
        frames = traceback.extract_tb(caught.value.__traceback__)
        return str(caught.value), [(f.name, f.lineno) for f in frames if "godynamo" not in f.filename][2:]

    assert lines(optimized) == lines(plain)


def test_a_setting_switches_it_off():
    with config.patch(reuse_layers=False):
        optimized = godynamo.optimize(make())
        optimized(torch.randn(3, 8))
    assert reused(optimized) == 0


class Curious(nn.Module):
    """Adds 10 if ``question``, called with the operand, returns true."""

    def __init__(self, question):
        super().__init__()
        self.fc, self.question = nn.Linear(4, 4), question

    def forward(self, x):
        y = self.fc(x).tanh() * 2 + 1
        if self.question(x):
            y = y + 10
        return y.relu()


QUESTIONS = {
    "sizes": (lambda x: x.shape == (4, 4), lambda x: torch.cat([x, x])),
    "size": (lambda x: x.size(0) > 4, lambda x: torch.cat([x, x])),
    "len": (lambda x: len(x) > 4, lambda x: torch.cat([x, x])),
    "dim": (lambda x: x.dim() > 2, lambda x: x[None]),
    "contiguous": (lambda x: x.is_contiguous(), lambda x: x[:4].t()),
    "stride": (lambda x: x.stride()[0] == 1, lambda x: x[:4].t()),
    "dtype": (lambda x: x.dtype == torch.bfloat16, lambda x: x.bfloat16()),
    "floating": (lambda x: x.is_floating_point(), lambda x: x.flatten()[:16].view(4, 4)),
    "gradients": (lambda x: x.requires_grad, lambda x: x.detach()),
    "is": (lambda x: x is KEPT, lambda x: x),
    "parameter": (lambda x: isinstance(x, nn.Parameter), lambda x: x),
    "attribute": (lambda x: hasattr(x, "mark"), lambda x: x * 1),
    "bytes": (lambda x: x.nbytes > 64, lambda x: torch.cat([x, x])),
}
KEPT = torch.zeros(4, 4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_about_operands(name, backend):
    """Every third layer is called with an operand that differs in sizes, strides, type or kind."""
    question, other = QUESTIONS[name]

    class Asked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Curious(question) for _ in range(9))

        def forward(self, x):
            x, outs = x * 1, []
            for i, layer in enumerate(self.layers):
                given = other(x) if i % 3 == 2 else x * 1
                outs.append(
                    layer(given.float() if given.dtype != torch.bfloat16 else given.to(self.layers[0].fc.weight.dtype))
                )
            return torch.cat([o.reshape(-1) for o in outs])

    model, x = Asked(), torch.randn(4, 4)
    want, *_ = once(model, x, None, backend)
    got, graphs, *_ = once(model, x, True, backend)
    assert same(got, want)
    assert graphs == once(model, x, False, backend)[1]


class Points(nn.Module):
    """Reads a weight of the second layer by a path that does not start at that layer."""

    def __init__(self, way):
        super().__init__()
        self.fc, self.way = nn.Linear(8, 8), way

    def forward(self, x, *rest):
        return (self.fc(x).relu() * 2 + self.way(self, *rest).sum()).tanh()


class Root(nn.Module):
    def __init__(self, way, call):
        super().__init__()
        self.layers = nn.ModuleList(Points(way) for _ in range(6))
        for layer in self.layers:
            layer.__dict__["root"], layer.__dict__["one"], layer.__dict__["all"] = self, self.layers[1], [self]
        self.call = call

    def forward(self, x):
        x = x * 1
        for layer in self.layers:
            x = self.call(self, layer, x)
        return x


def plain_call(root, layer, x):
    return layer(x)


WAYS = {
    "its root": (lambda layer: layer.root.layers[1].fc.weight, plain_call),
    "a list with its root": (lambda layer: layer.all[0].layers[1].fc.weight, plain_call),
    "one layer": (lambda layer: layer.one.fc.weight, plain_call),
    "a global": (lambda layer: HOLDER["root"].layers[1].fc.weight, plain_call),
    "the root as operand": (lambda layer, root: root.layers[1].fc.weight, lambda root, layer, x: layer(x, root)),
    "the layers as operand": (lambda layer, layers: layers[1].fc.weight, lambda root, layer, x: layer(x, root.layers)),
    "a layer as operand": (lambda layer, one: one.fc.weight, lambda root, layer, x: layer(x, root.layers[1])),
    "a tensor as operand": (lambda layer, w: w, lambda root, layer, x: layer(x, root.layers[1].fc.weight)),
    "tensors in a tuple": (lambda layer, w: w[0], lambda root, layer, x: layer(x, (root.layers[1].fc.weight, x))),
    "dict of its modules": (lambda layer, d: d["1"].fc.weight, lambda root, layer, x: layer(x, root.layers._modules)),
}
HOLDER = {}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_one_layer(way, backend):
    """When the code of every layer reads the second layer's weight, no layer gets its own weight instead."""
    torch.manual_seed(0)
    plain = Root(*WAYS[way])
    HOLDER["root"] = plain
    optimized = godynamo.optimize(plain, backend=backend if backend == "eager" else CompileCounterWithBackend("eager"))
    x = torch.randn(3, 8)
    assert torch.equal(optimized(x), plain(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_global_module_that_its_code_names(backend):
    """The layers are globals of the function, and their code reads the second one by name."""
    torch.manual_seed(0)
    layers = [Points(lambda layer: SECOND.fc.weight) for _ in range(4)]
    names = dict(zip(["FIRST", "SECOND", "THIRD", "FOURTH"], layers, strict=True))
    globals().update(names)

    def f(x):
        return FOURTH(THIRD(SECOND(FIRST(x * 1))))  # noqa: F821

    optimized = godynamo.optimize(f, backend=backend if backend == "eager" else CompileCounterWithBackend("eager"))
    x = torch.randn(3, 8)
    assert torch.equal(optimized(x), f(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_other_tensors_in_the_place_of_a_modules(backend):
    plain, other = make(6).eval(), make(6).eval()
    given = {name: torch.randn_like(p) for name, p in plain.named_parameters()}

    def before(x):
        return other(torch.func.functional_call(plain, given, (x,)))

    def behind(x):
        return torch.func.functional_call(plain, given, (other(x),))

    def both(x):
        return plain(torch.func.functional_call(plain, given, (plain(x),)))

    x = torch.randn(3, 8)
    for f in (before, behind, both):
        optimized = godynamo.optimize(f, backend=backend if backend == "eager" else CompileCounterWithBackend("eager"))
        assert torch.equal(optimized(x), f(x))
