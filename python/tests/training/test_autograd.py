"""Autograd in optimized functions: effects, their order and gradients are as in eager mode, also after a break."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo.testing import CompileCounter
from harness.training import both, breaks, facts, whole

BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
X = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)
LEAF = X.clone().requires_grad_()


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4))


@pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["inline", "whole", "aot"])
@pytest.mark.parametrize("trained", [True, False])
def test_a_tensor_that_comes_to_require_gradients_inside(backend, trained):
    def make():
        m = mlp().eval().requires_grad_(trained)

        def by_backward(x):
            x = x.clone().detach().requires_grad_(True)
            m(x).sum().backward()
            return (x + 0.1 * x.grad.sign()).detach(), x.is_leaf

        def by_grad(x):
            y = x.detach().requires_grad_()
            z = y.requires_grad_() * 2  # changes nothing
            return torch.autograd.grad(m(z).pow(2).sum(), y)

        def no_more(x):
            y = (x * 2).detach().requires_grad_().requires_grad_(False)
            return m(y), y.requires_grad

        def made(x):
            a = torch.ones(4, requires_grad=True)
            b = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
            c = x.new_ones(4, requires_grad=True)
            d = x.new_zeros(4, requires_grad=False) + torch.zeros_like(b, requires_grad=True)
            (m(x) * a * b * c + d).sum().backward()
            return a.grad, b.grad, c.grad, d.is_leaf

        return lambda x: (by_backward(x), by_grad(x), no_more(x), made(x))

    both(make, (X,), (LEAF,), (X * 2,), backend=backend)


@pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["inline", "whole", "aot"])
def test_a_leaf_changed_in_place_raises_and_keeps_its_value(backend):
    def make():
        def fn(x, w):
            with torch.no_grad():
                w.mul_(2)
            try:
                w.add_(1)
            except RuntimeError as error:
                return str(error), w.clone(), x * w
            return w * 1

        return fn

    both(make, (X, LEAF), (X, X), backend=backend)
    both(lambda: lambda x, w: (w.add_(1), x * w), (X, LEAF), (LEAF, X), (X, LEAF * 1), backend=backend)


# ---- backward and grad inside


@BACKENDS
def test_backward_inside_twice_and_the_gradients_read(backend):
    def make():
        m = mlp()

        def fn(x):
            m.zero_grad()
            (m(x).sum() * 2).backward()
            first = [p.grad.clone() for p in m.parameters()]
            loss = m(x).pow(2).mean()
            loss.backward(retain_graph=True)
            loss.backward()
            return first, [p.grad for p in m.parameters()], x.grad

        return fn

    both(make, (LEAF,), (X,), (LEAF,), backend=backend)


@BACKENDS
def test_autograd_grad_of_first_and_second_order(backend):
    def make():
        m = mlp().eval()

        def fn(x):
            (g,) = torch.autograd.grad(m(x).sin().sum(), x, create_graph=True)
            penalty = g.pow(2).sum()
            return penalty, torch.autograd.grad(penalty, [x, *m.parameters()], allow_unused=True)

        return fn

    both(make, (LEAF,), (LEAF * 2,), (X,), backend=backend)


@BACKENDS
def test_modes_around_parts(backend):
    def make():
        m = mlp().eval()

        @torch.no_grad()
        def target(x):
            return m(x)

        def fn(x, on):
            with torch.set_grad_enabled(on):
                y = m(x)
            with torch.no_grad():
                z = y * 2
                with torch.enable_grad():
                    w = m(x)
            with torch.inference_mode():
                v = y + 1
            return y, z, w, v, v.is_inference(), target(x), torch.is_grad_enabled()

        return fn

    both(make, (LEAF, True), (LEAF, False), (X, True), backend=backend)


# ---- hooks


@BACKENDS
def test_hooks_on_tensors(backend):
    def make():
        seen = []

        def fn(x):
            y = x * 2
            handle = y.register_hook(lambda g: seen.append("y") or g * 3)
            z = (y * y).sum()
            z.register_hook(lambda g: seen.append(("z", g.item())))
            z.backward()
            handle.remove()
            y2 = x.sin()
            y2.retain_grad()
            y2.sum().backward()
            return x.grad, y2.grad, list(seen)

        return fn

    both(make, (LEAF,), (LEAF * 2,), (X,), backend=backend)


@BACKENDS
def test_hooks_on_parameters_and_modules(backend):
    def make():
        m, seen = mlp().eval(), []
        for i, p in enumerate(m.parameters()):
            p.register_hook(lambda g, i=i: seen.append(i))
            p.register_post_accumulate_grad_hook(lambda p, i=i: seen.append(("post", i)))
        m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(type(mod).__name__))
        m[3].register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
        m.register_forward_hook(lambda mod, args, out: out + 1)

        def fn(x):
            m(x).sum().backward()
            return list(seen), [p.grad for p in m.parameters()]

        return fn

    both(make, (LEAF,), (X,), (LEAF,), backend=backend)


@BACKENDS
def test_saved_tensors_hooks(backend):
    def make():
        log = []

        def pack(t):
            log.append(tuple(t.shape))
            return t.clone()

        def unpack(t):
            log.append("unpacked")
            return t

        def fn(x):
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                y = (x.exp() * x).sum()
            y.backward()
            with torch.autograd.graph.save_on_cpu():
                z = x.sin().sum()
            z.backward()
            with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
                w = x.cos()
            return y, z, w, x.grad, list(log)

        return fn

    both(make, (LEAF,), (LEAF * 2,), (X,), backend=backend)


# ---- autograd.Function


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        ctx.set_materialize_grads(False)
        return x * k, x + k

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, a, b):
        return (a * ctx.k if a is not None else 0) + (b if b is not None else 0), None


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


class Integer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        i = x.argmax(-1)
        ctx.mark_non_differentiable(i)
        ctx.shape = x.shape
        return x.max(-1).values, i

    @staticmethod
    def backward(ctx, g, _):
        return g.unsqueeze(-1).expand(ctx.shape) if ctx.needs_input_grad[0] else None


class Setup(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y + ty * x


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ValueError("in backward")


FUNCTIONS = {
    "save_for_backward": lambda x: Square.apply(x).sum(),
    "twice differentiable": lambda x: torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)[0].sum(),
    "once_differentiable": lambda x: Once.apply(x, 3)[0].sum() + Once.apply(x, 2)[1].sum(),
    "once, twice": lambda x: torch.autograd.grad(Once.apply(x, 3)[0].sum(), x, create_graph=True)[0].sum(),
    "mark_dirty": lambda x: InPlace.apply(x * 2).sum(),
    "mark_dirty of a leaf": lambda x: InPlace.apply(x).sum(),
    "mark_non_differentiable": lambda x: Integer.apply(x)[0].sum() + Integer.apply(x)[1].sum(),
    "setup_context": lambda x: Setup.apply(x, x + 1).sum(),
    "an error in backward": lambda x: Fails.apply(x).sum(),
}


@BACKENDS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_autograds(name, backend):
    def make():
        return lambda x: FUNCTIONS[name](x)

    def with_backward():
        def fn(x):
            y = FUNCTIONS[name](x)
            y.backward()
            return y, x.grad

        return fn

    both(make, (LEAF,), (X,), (LEAF * 2,), backend=backend)
    godynamo.reset()
    both(with_backward, (LEAF,), (X,), (LEAF,), backend=backend)


# ---- checkpoint


@BACKENDS
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
def test_checkpoints_draw_the_same_random_numbers_again(reentrant, preserve, backend):
    def make():
        m = mlp()

        def fn(x):
            m.zero_grad()
            y = checkpoint(m, x, use_reentrant=reentrant, preserve_rng_state=preserve)
            y = checkpoint(lambda a, k: F.dropout(m(a), 0.3) * k, y, 2.0, use_reentrant=reentrant)
            y.sum().backward()
            return y, x.grad, [p.grad for p in m.parameters()]

        return fn

    both(make, (LEAF,), (LEAF * 2,), backend=backend)


@BACKENDS
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_with_the_backward_pass_outside(reentrant, backend):
    torch.manual_seed(0)
    m = mlp()
    fn = lambda x: checkpoint(m, x, use_reentrant=reentrant).sum()  # noqa: E731
    results = []
    for call in (fn, godynamo.optimize(fn, backend=backend)):
        for _ in range(3):
            torch.manual_seed(1)
            x = LEAF.detach().clone().requires_grad_()
            m.zero_grad()
            y = call(x)
            y.backward()
            results.append([facts(y), facts(x.grad), [facts(p.grad) for p in m.parameters()], torch.rand(()).item()])
    assert results[:3] == results[3:]


def test_autocast_is_in_the_graph():
    m = mlp()

    def fn(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = m(x)
            with torch.autocast("cpu", enabled=False):
                z = m(x)
        return y, z, y.dtype, z.dtype

    counter = CompileCounter()
    torch.manual_seed(0)
    found = godynamo.optimize(fn, backend=counter)(X)
    torch.manual_seed(0)
    assert facts(found) == facts(fn(X))
    assert counter.frame_count == 1
    assert not breaks()
