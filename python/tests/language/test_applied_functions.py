"""autograd.Function.apply with objects among its arguments, flags of ctx, and in functions given to operations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo import _C, utils
from harness.cases import reasons

log: list[Any] = []
linear = torch.nn.Linear(3, 3)
blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())])


class SumOver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dims, config, function):
        ctx.dims, ctx.config, ctx.shape = dims, config, x.shape
        return function(x.sum(dims, keepdim=True) * config["factor"])

    @staticmethod
    def backward(ctx, g):
        assert ctx.dims == [0]
        return g.expand(ctx.shape) * ctx.config["factor"], None, None, None


class Reversible(torch.autograd.Function):
    """Saves nothing but its result, and computes the blocks again in backward."""

    @staticmethod
    def forward(ctx, x, layers, kwargs):
        for layer in layers:
            x = layer(x, **kwargs)
        ctx.y, ctx.layers = x.detach(), layers
        return x

    @staticmethod
    def backward(ctx, g):
        log.append(len(ctx.layers))
        return g * ctx.y.sign(), None, None


class Recomputed(torch.autograd.Function):
    """torch.utils.checkpoint as programs wrote it by hand."""

    @staticmethod
    def forward(ctx, run, count, *args):
        ctx.run, ctx.tensors, ctx.parameters = run, list(args[:count]), list(args[count:])
        with torch.no_grad():
            return ctx.run(*ctx.tensors)

    @staticmethod
    def backward(ctx, *gradients):
        tensors = [t.detach().requires_grad_(True) for t in ctx.tensors]
        with torch.enable_grad():
            out = ctx.run(*tensors)
        return (None, None, *torch.autograd.grad(out, tensors + ctx.parameters, gradients))


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, options):
        index = x.argmax()
        ctx.mark_non_differentiable(index)
        fixed = x * 3
        ctx.mark_non_differentiable(fixed)
        return x * options["k"], index, None, fixed

    @staticmethod
    def backward(ctx, g, *_):
        return g * 2, None


class Flags(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None)
        return x @ w * (3 if ctx.needs_input_grad[0] else 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g if ctx.needs_input_grad[0] else None, x.T @ g if ctx.needs_input_grad[1] else None


class Twice(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 + x * 0


class Tells(Twice):
    @staticmethod
    def backward(ctx, g):
        log.append("backward")
        return g * 2


class OwnRule(Twice):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x):
        log.append(info.batch_size)
        return OwnRule.apply(x), in_dims[0]


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.mark_dirty(x)
        ctx.k = k
        return x.mul_(k)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class DirtyPair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        x.add_(1)
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        return y * 2, x

    @staticmethod
    def backward(ctx, g, h):
        return h, g * 2 + ctx.saved_tensors[0] * 0


def dirty(x):
    y = x * 3
    z = Dirty.apply(y, 2)
    w = y.view(-1)[:3] + 1
    return z + y, w, z is y


def dirty_without_history(x):
    y = torch.zeros(3, 3)
    a, b = DirtyPair.apply(y, x)
    return a + y, b is y, y


def dirty_leaf(x):
    with torch.no_grad():
        z = Dirty.apply(x, 2)
    return z * x, z is x


def dirty_view(x):
    y = x * 3
    try:
        return DirtyPair.apply(y.view(9), x)
    except RuntimeError as e:
        return (x + len(str(e)),)


def asks_after(x):
    y = torch.zeros(3, 3)
    before = y.requires_grad
    _, b = DirtyPair.apply(y, x)
    return b * 2, before, y.requires_grad


def inputs():
    return torch.arange(1.0, 10.0).reshape(3, 3).div(7).requires_grad_()


def run(fn, *more):
    torch.manual_seed(0)
    log.clear()
    for p in (*linear.parameters(), *blocks.parameters()):
        p.grad = None
    x = inputs()
    result = fn(x, *more)
    during = list(log)
    tensors = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, torch.Tensor)]
    flags = [(t.requires_grad, t.is_leaf, t.stride(), t.tolist()) for t in tensors]
    flags += [r for r in result if not isinstance(r, torch.Tensor)] if isinstance(result, tuple) else []
    total = sum(t.sum() for t in tensors if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    grads = [None if t.grad is None else t.grad.tolist() for t in (x, *linear.parameters(), *blocks.parameters())]
    return flags, grads, during, list(log)


def with_a_list(x):
    dims = [0]
    y = SumOver.apply(x * 2, dims, {"factor": 3}, torch.sin) + 1
    dims.append(1)
    dims.pop()
    return y


def with_a_lambda(x):
    k = 2.0
    y = SumOver.apply(x, [0], {"factor": 3}, lambda t: t * k)
    return y + (1 if y.requires_grad else 2)


def reversible(x):
    return Reversible.apply(x, blocks, {}).relu()


def without_gradients(x):
    y = Reversible.apply(x.detach(), blocks, {})  # the blocks' parameters are no arguments
    return y * (1 if y.requires_grad else 2), x * 1


def recomputed(x):
    return Recomputed.apply(linear.forward, 1, x, *linear.parameters()).sin()


def several(x):
    a, index, nothing, fixed = Several.apply(x, {"k": 2})
    assert nothing is None
    return a.view(-1)[index], index, fixed, fixed.requires_grad, a.requires_grad


def several_off(x):
    with torch.no_grad():
        a, _, _, _ = Several.apply(x, {"k": 2})
    return a, a.requires_grad


def of_an_argument(x, options):
    return Several.apply(x, options)[0]


def flags(x):
    w = torch.ones(3, 3)
    return Flags.apply(x, w) + Flags.apply(w, x)


def checkpointed(x):
    return checkpoint(lambda t: Twice.apply(t.sin()).cos(), x, use_reentrant=False)


def checkpointed_with_effects(x):
    return checkpoint(lambda t: Tells.apply(t.sin()).cos(), x, use_reentrant=False)


def differentiated(x):
    return torch.func.grad(lambda t: Twice.apply(t).pow(2).sum())(x)


def mapped(x):
    return torch.vmap(lambda t: Twice.apply(t) + 1)(x)


CASES = [
    *(with_a_list, with_a_lambda, reversible, without_gradients, recomputed, several, several_off, flags),
    *(checkpointed, checkpointed_with_effects, differentiated, mapped, dirty, dirty_without_history),
]


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_one_graph(fn):
    compiled = godynamo.optimize(fn)
    for _ in range(3):
        assert run(compiled) == run(fn)
    assert reasons() == [] and _C.counters()["internal_errors"] == 0
    assert utils.counters["frames"]["ok"] == 1


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
@pytest.mark.parametrize(
    "fn",
    [
        *CASES,
        dirty_leaf,
        lambda x: torch.func.grad(lambda t: Tells.apply(t).pow(2).sum())(x),
        lambda x: Tells.apply(x).sum(),
        lambda x: torch.vmap(lambda t: OwnRule.apply(t) + 1)(x),
    ],
)
def test_code_of_a_function_runs_as_often_as_in_cpython(fn, backend):
    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(3):
        assert run(compiled) == run(fn)
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("fn", [dirty_view, asks_after], ids=lambda fn: fn.__name__)
def test_marks_that_torch_rejects_or_that_change_flags(fn):
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert run(compiled) == run(fn)


def test_an_object_of_the_caller_is_passed_itself():
    compiled = godynamo.optimize(of_an_argument)
    options = {"k": 2}
    for k in (2, 3, 2):
        options["k"] = k
        assert run(compiled, options) == run(of_an_argument, options)
    assert reasons() == []


def test_ctx_has_the_object_of_the_program():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, box):
            ctx.box = box
            return x * box[0]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.box[0], None

    def fn(x):
        box = [2.0]
        y = Keeps.apply(x, box)
        box[0] = 5.0  # backward sees this
        return y

    assert run(godynamo.optimize(fn)) == run(fn)
    assert reasons() == []


def test_flags_are_guarded():
    def fn(x, w):
        return Flags.apply(x, w)

    compiled = godynamo.optimize(fn)
    x = torch.ones(3, 3)
    for a, b in ((0, 1), (1, 0), (1, 1), (0, 0), (0, 1)):
        given = x.clone().requires_grad_(bool(a)), x.clone().requires_grad_(bool(b))
        got, want = compiled(*given), fn(*given)
        assert torch.equal(got, want) and got.requires_grad == want.requires_grad
    assert reasons() == []


def test_a_forward_with_objects_that_raises():
    def fn(x):
        try:
            return SumOver.apply(x, [0], {}, torch.sin)
        except KeyError as e:
            return x + 1, str(e)

    got, want = godynamo.optimize(fn)(torch.ones(3, 3)), fn(torch.ones(3, 3))
    assert torch.equal(got[0], want[0]) and got[1] == want[1]
