"""torch.utils.checkpoint: backward calls the program's function again, which may read changed values."""

import functools
import gc
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from godynamo import optimize
from godynamo.testing import CompileCounter
from harness.training import facts, whole


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))


def switched(reentrant, m, x):
    y = checkpoint(m, x, use_reentrant=reentrant)
    m.eval()
    return y


def rate(reentrant, m, x):
    y = checkpoint(m, x, use_reentrant=reentrant)
    m[1].p = 0.25
    return y


def replaced(reentrant, m, x):
    y = checkpoint(m, x, use_reentrant=reentrant)
    m[2].weight = nn.Parameter(m[2].weight.detach() * 2)
    return y


def rebound(reentrant, m, x):
    k = 2

    def scaled(v):
        return torch.sin(m(v) * k)

    y = checkpoint(scaled, x, use_reentrant=reentrant)
    k = 3
    return y


def late(reentrant, m, x):
    for k in range(3):
        x = checkpoint(lambda v: m(v).cos() * (k + 1), x, use_reentrant=reentrant)  # noqa: B023
    return x


def changed_list(reentrant, m, x):
    scales = [2.0, 3.0]
    y = checkpoint(lambda v, s: m(v).sin() * s[-1], x, scales, use_reentrant=reentrant)
    scales[-1] = 7.0
    return y


def changed_keyword(reentrant, m, x):
    options = {"by": 2.0}
    y = checkpoint(lambda v, o: (v * o["by"]).sin(), x, o=options, use_reentrant=False)
    options["by"] = 5.0
    return y


def method(reentrant, m, x):
    y = checkpoint(m.forward, x, use_reentrant=reentrant)
    m.eval()
    return y


def partial(reentrant, m, x):
    return checkpoint(functools.partial(torch.mul, torch.full((4,), 2.0)), x, use_reentrant=reentrant).sin()


def nested(reentrant, m, x):
    k = 2

    def inner(v):
        return torch.sin(v * k)

    def outer(v):
        return checkpoint(inner, v, use_reentrant=False).cos() * k

    y = checkpoint(outer, x, use_reentrant=False)
    k = 3
    return y


def twice(reentrant, m, x):
    y = checkpoint(m, x, use_reentrant=reentrant)
    z = checkpoint(m, y, use_reentrant=reentrant)
    m[2].weight = nn.Parameter(m[2].weight.detach() * 2)
    return z + checkpoint(m, z, use_reentrant=reentrant)


CASES = (switched, rate, replaced, rebound, late, changed_list, changed_keyword, method, partial, nested, twice)


def stepped(fn, reentrant, calls=2):
    """Return the outcomes of two training steps: results, gradients, or exceptions."""

    def step(m, x):
        y = fn(reentrant, m, x)
        y.sum().backward(retain_graph=True)
        first = x.grad.clone()
        y.sum().backward()
        return [facts(t) for t in (y, first, x.grad, *(p.grad for p in m.parameters()))]

    out = []
    for i in range(calls):
        m, x = network(), torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
        torch.manual_seed(i)
        try:
            out.append(step(m, x))
        except RuntimeError as e:
            out.append((type(e), str(e)))
    return out


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
@pytest.mark.parametrize("fn", CASES, ids=lambda f: f.__name__)
def test_backward_reads_what_has_changed(fn, backend, reentrant):
    assert stepped(optimize(fn, backend=backend), reentrant) == stepped(fn, reentrant)


def test_without_the_keyword():
    def fn(reentrant, m, x):
        return checkpoint(m, x, **({} if reentrant else {"use_reentrant": None})).sin()

    def seen(call, given):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return stepped(call, given), [(w.filename, w.lineno, str(w.message)) for w in caught]

    for given in True, False:
        for backend in "eager", whole:
            assert seen(optimize(fn, backend=backend), given) == seen(fn, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stepped(optimize(fn, nopython=True), given)


@pytest.mark.parametrize("fn", [f for f in CASES if f not in (nested, replaced, twice)], ids=lambda f: f.__name__)
def test_it_is_one_graph(fn):
    counter = CompileCounter()
    fast = optimize(fn, backend=counter)
    fast(False, network(), torch.ones(2, 4, requires_grad=True))
    assert counter.frame_count == 1


def test_the_function_lives_as_long_as_the_graph():
    class Scale:
        by = 2.0

    def fn(x, s):
        return checkpoint(lambda v: torch.sin(v * s.by), x, use_reentrant=False)

    fast = optimize(fn)
    for _ in range(2):
        s = Scale()
        gone = weakref.ref(s)
        y = fast(torch.ones(3, requires_grad=True), s)
        del s
        assert gone() is not None
        y.sum().backward()
        del y
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["inline", "whole", "aot"])
@pytest.mark.parametrize("made", [False, True], ids=["a policy", "a list made inside"])
def test_selective_checkpoints_recompute_the_same_operations(made, backend):
    """Both runs of the function are in CPython, since each operation calls the user's policy."""
    contexts = torch.utils.checkpoint.create_selective_checkpoint_contexts
    products = [torch.ops.aten.mm.default]
    w = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append((ctx.is_recompute, str(op)))
        policies = torch.utils.checkpoint.CheckpointPolicy
        return policies.MUST_SAVE if op in products else policies.PREFER_RECOMPUTE

    chosen = functools.partial(contexts, policy)

    def fn(x):
        context_fn = functools.partial(contexts, products) if made else chosen
        y = checkpoint(lambda x: torch.mm((x @ w).sin(), w).cos(), x * 2, use_reentrant=False, context_fn=context_fn)
        return y * 2

    def outcome(f):
        w.grad = None
        asked.clear()
        x = torch.ones(4, 4, requires_grad=True)
        y = f(x)
        y.sum().backward()
        return facts(y), facts(x.grad), facts(w.grad), list(asked)

    f = optimize(fn, backend=backend)
    for _ in range(2):
        assert outcome(f) == outcome(fn)
