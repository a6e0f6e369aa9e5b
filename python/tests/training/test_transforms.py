"""Functions passed to one operation of the graph: torch.func's transforms, functional_call, checkpoint, scans."""

from __future__ import annotations

import collections
import warnings

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter
from harness.training import both, breaks, facts, whole

BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
X = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)
LEAF = X.clone().requires_grad_()
Pair = collections.namedtuple("Pair", "a b")


def energy(x):
    return (x.sin() * x).sum()


def affine(left, right):
    return left[0] * right[0], right[0] * left[1] + right[1]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x, *, bias=0.0):
        return self.inner(x) * self.scale + bias


torch.manual_seed(0)
LINEAR, OTHER, NET = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3), Net()
FACTOR = torch.ones(4) * 3
MADE = torch.vmap(lambda a, b: (a * b).sum(), in_dims=(0, None))
MADE_GRAD = torch.func.grad(energy)
MADE_JACOBIAN = torch.func.jacrev(lambda a: a.sin() * FACTOR)


def per_sample(x):
    def loss(p, row):
        return torch.func.functional_call(LINEAR, p, (row,)).pow(2).sum()

    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(LINEAR.named_parameters()), x)


def ensemble(x):
    p, b = torch.func.stack_module_state([LINEAR, OTHER])
    return torch.vmap(lambda p, b, x: torch.func.functional_call(LINEAR, (p, b), (x,)), in_dims=(0, 0, None))(p, b, x)


def twice_vjp(x):
    out, back, aux = torch.func.vjp(lambda a, b: (a * b, a + 1), x, x + 2, has_aux=True)
    return out, back(torch.ones_like(out)), back(out), aux, torch.vmap(back)(torch.stack([out, out]))


def in_no_grad(x):
    with torch.no_grad():
        y = x.sin()
        out, back = torch.func.vjp(lambda a: a * x, y)
        both = torch.func.jacrev(lambda a: a * x[0])(y[0]), torch.func.grad_and_value(energy)(y)
        z = back(out)[0] * x
        hessian = torch.func.hessian(energy)(x[0])
        made = torch.func.grad(lambda a: (a * 2).sum() if (a * 2).requires_grad else a.sum())(x)
    return both, z, hessian, made, z.requires_grad, x * z


def switched(x):
    def inner(a):
        with torch.no_grad():
            b = a * 2
        return (a * b).sum()

    with torch.no_grad():
        made = torch.func.grad(inner)(x)
    return made, x * 2


def all_in(x):
    with torch.no_grad():
        return torch.func.functional_call(
            NET, {"inner.0.weight": x[:1].expand(3, 4), "scale": x[0, :3]}, (x,), {"bias": 1.0}
        )


TRANSFORMS = {
    "grad": lambda x: torch.func.grad(energy)(x),
    "grad of grad": lambda x: torch.func.grad(lambda a: torch.func.grad(energy)(a).sum())(x),
    "grad_and_value": lambda x: torch.func.grad_and_value(energy)(x),
    "argnums and aux": lambda x: torch.func.grad(lambda a, b: ((a * b).sum(), b + 1), argnums=(0, 1), has_aux=True)(
        x, x + 1
    ),
    "vmap": lambda x: torch.vmap(lambda row: row.sum() * row)(x),
    "vmap of two": lambda x: torch.func.vmap(lambda a, b: a @ b, in_dims=(0, 1))(x, x.t()),
    "vmap of vmap": lambda x: torch.vmap(torch.vmap(lambda a: a * 2))(x),
    "vmap of grad": lambda x: torch.vmap(torch.func.grad(energy))(x),
    "vmap with out_dims": lambda x: torch.vmap(lambda a: (a, a * 2), out_dims=(1, 0))(x),
    "random vmap": lambda x: torch.vmap(lambda a: a + torch.rand(4), randomness="different")(x),
    "jacrev": lambda x: torch.func.jacrev(lambda a: a.sin())(x[0]),
    "jacfwd": lambda x: torch.func.jacfwd(lambda a: a.exp())(x[0]),
    "hessian": lambda x: torch.func.hessian(energy)(x[0]),
    "vjp": lambda x: torch.func.vjp(torch.cos, x)[1](torch.ones_like(x)),
    "jvp": lambda x: torch.func.jvp(torch.cos, (x,), (torch.ones_like(x),)),
    "linearize": lambda x: torch.func.linearize(torch.sin, x)[1](x),
    "functional_call": lambda x: torch.func.functional_call(
        LINEAR, {k: v * 2 for k, v in LINEAR.named_parameters()}, (x,)
    ),
    "grad of functional_call": lambda x: torch.func.grad(
        lambda p: torch.func.functional_call(LINEAR, p, (x,)).pow(2).sum()
    )(dict(LINEAR.named_parameters())),
    "vmap over a closure": lambda x: torch.vmap(lambda a: a + x.sum())(x),
    "an error in vmap": lambda x: torch.vmap(lambda a: a.item())(x),
    "vmap of a dict": lambda x: torch.vmap(lambda d: d["a"].sum() * d["b"], in_dims=({"a": 0, "b": None},))(
        {"a": x, "b": x[0]}
    ),
    "vmap of a list and a number": lambda x: torch.vmap(lambda p, n: p[0] @ p[1] + n, in_dims=([1, 1], None))(
        [x, x], 2
    ),
    "vmap of named tuples": lambda x: torch.vmap(lambda p: Pair(p.a.sum(), p.b), in_dims=(Pair(0, 1),))(Pair(x, x.t())),
    "vmap with keywords": lambda x: torch.vmap(lambda a, k: a * k.sum(), in_dims=1)(x, k=x),
    "vmap in chunks": lambda x: torch.vmap(lambda a: a.cumsum(0), chunk_size=1)(x),
    "vmap of a module": lambda x: torch.vmap(LINEAR)(x),
    "vmap over a module": lambda x: torch.vmap(lambda a: LINEAR(a).relu() * FACTOR[0])(x),
    "vmap of what does not match": lambda x: torch.vmap(lambda a, b: a * b)(x, x[:1]),
    "vmap of a number": lambda x: torch.vmap(lambda a: 3)(x),
    "vmap of the same": lambda x: torch.vmap(lambda a: a)(x),
    "vmap of none": lambda x: torch.vmap(lambda a, b: a * b)(x[:0], x[:0]),
    "vmap of promoted types": lambda x: torch.vmap(lambda a, b: a * b)(x, (x * 3).int()),
    "vmap of rows and scalars": lambda x: torch.vmap(lambda a, b: a * b)(x, x[:, 0]),
    "vmap of one random number": lambda x: torch.vmap(lambda a: a + torch.rand(()), randomness="same")(x),
    "vmap of a random number": lambda x: torch.vmap(lambda a: a + torch.rand(()))(x),
    "made before": lambda x: (MADE(x, x[1]), MADE_GRAD(x), MADE_JACOBIAN(x[0])),
    "grad by a dict": lambda x: torch.func.grad(lambda p, k: (p["a"] * p["b"]).sum() * k)({"a": x, "b": x * 2}, 3),
    "grad with keywords": lambda x: torch.func.grad(lambda a, *, k: (a * k).sum())(x, k=x),
    "grad that asks": lambda x: torch.func.grad(lambda a: (a * 2).sum() if a.requires_grad else a.sum())(x.detach()),
    "grad of no scalar": lambda x: torch.func.grad(lambda a: a * 2)(x),
    "grad of an integer": lambda x: torch.func.grad(lambda a: (a * 2).sum())(x.int()),
    "grad in a decorated function": lambda x: torch.no_grad()(lambda: torch.func.grad(energy)(x))(),
    "transforms in no_grad": in_no_grad,
    "a switch in grad in no_grad": switched,
    "vjp twice, vmapped": twice_vjp,
    "jvp with aux": lambda x: torch.func.jvp(lambda a: (a.sin(), a), (x,), (x + 1,), has_aux=True),
    "hessian of a module": lambda x: torch.func.hessian(lambda a: LINEAR(a).pow(3).sum())(x[0]),
    "per sample": per_sample,
    "ensemble": ensemble,
    "functional_call of a net": all_in,
    "functional_call of an unknown name": lambda x: torch.func.functional_call(LINEAR, {"none": x}, (x,)),
    "functional_call of a number": lambda x: torch.func.functional_call(LINEAR, {"weight": 3}, (x,)),
    "functional_call twice named": lambda x: torch.func.functional_call(LINEAR, ({"bias": x[0]}, {"bias": x[0]}), (x,)),
    "functional_call, strict": lambda x: torch.func.functional_call(LINEAR, {"bias": x[0, :3]}, (x,), strict=True),
    "checkpoint": lambda x: checkpoint(lambda a, k: LINEAR(a).sin() * k, x, 2.0, use_reentrant=False),
    "checkpoint with dropout": lambda x: checkpoint(torch.nn.functional.dropout, x, p=0.5, use_reentrant=False),
    "associative_scan": lambda x: associative_scan(torch.mul, x, 1, combine_mode="generic"),
    "associative_scan of pairs": lambda x: associative_scan(affine, (x, x + 1), 1, combine_mode="generic"),
    "associative_scan, reversed": lambda x: associative_scan(
        lambda a, b: a @ b, x[0].expand(5, 4, 4), 0, reverse=True, combine_mode="generic"
    ),
}


@BACKENDS
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, backend):
    transform = TRANSFORMS[name]

    def make():
        return lambda x: (transform(x * 1), x + 1)

    both(make, (X,), (LEAF,), (X * 2,), backend=backend)


#: transforms that are not one operation of the graph
SPLIT = {
    *("an error in vmap", "vmap of what does not match", "vmap of a number", "vmap of a random number"),
    *(
        "grad of no scalar",
        "grad of an integer",
        "grad in a decorated function",
        "a switch in grad in no_grad",
        "functional_call, strict",
        "functional_call twice named",
    ),
    *("functional_call of an unknown name", "functional_call of a number"),
}


@pytest.mark.parametrize("name", [name for name in TRANSFORMS if name not in SPLIT])
def test_transforms_are_operations_of_one_graph(name):
    transform, counter = TRANSFORMS[name], CompileCounter()
    f = godynamo.optimize(lambda x: (transform(x * 1), x + 1), backend=counter)
    for x in (X, X * 2):
        torch.manual_seed(0)
        want = facts((transform(x * 1), x + 1))
        torch.manual_seed(0)
        assert facts(f(x)) == want
    assert counter.frame_count == 1
    assert not breaks()


def test_warnings_of_torch_occur_as_often_as_in_eager_mode():
    def fn(x):
        return torch.func.linearize(torch.sin, x)[1](x)

    seen = []
    for f in (fn, godynamo.optimize(fn)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                f(X)
        seen.append([(w.category, str(w.message)) for w in caught])
    assert seen[0] == seen[1]


@BACKENDS
def test_what_a_transformed_function_holds_is_of_each_call(backend):
    factor = 2.0

    def make():
        m = torch.nn.Linear(4, 4)

        def fn(x, k, scale):
            other = x.sum(0)

            def inner(row, *, bias=scale):
                return (row * other * k).sum() + bias * factor

            def outer(row):
                return torch.func.grad(inner)(row) + m.weight[0]

            y = torch.vmap(outer)(x) + torch.vmap(torch.mul, in_dims=(0, None))(x, other)
            y.sum().backward()
            return y, x.grad, m.weight.grad

        return fn

    one = X.clone().requires_grad_()
    both(make, (one, 2, 1.0), (one, 3, 1.0), (one * 2, 3, torch.ones(())), (one, 2, 1.5), backend=backend)


@BACKENDS
def test_a_transformed_function_with_effects_is_cpythons(backend):
    def make():
        log, calls = [], 0

        def fn(x):
            nonlocal calls

            def inner(row):
                nonlocal calls
                calls += 1
                log.append(tuple(row.shape))
                return row * calls

            y = torch.vmap(inner)(x)
            z = torch.func.grad(lambda a: print("seen", a.dim()) or a.sum())(x)
            return y, z, calls, list(log)

        return fn

    both(make, (X,), (X * 2,), (X,), backend=backend)


@BACKENDS
def test_a_function_that_a_transform_has_made_is_kept(backend):
    def make():
        kept = []

        def fn(x):
            f = torch.vmap(lambda a: a * 2)
            kept.append(f)
            return f(x), kept[0](x), callable(f)

        return fn

    both(make, (X,), (X * 2,), (X,), backend=backend)


def test_a_transform_under_aot_autograd_has_its_gradients():
    def fn(x):
        k = x.mean(0)
        return torch.vmap(lambda row: row.sin() * k)(x).sum() + torch.func.grad(energy)(x).pow(2).sum()

    def run(call):
        x = X.clone().requires_grad_()
        y = call(x)
        y.backward()
        return y, x.grad

    for a, b in zip(run(fn), run(godynamo.optimize(fn, backend="aot_eager"))):
        torch.testing.assert_close(a, b)
    assert not breaks()


@BACKENDS
def test_what_a_function_changes_outside_is_cpythons(backend):
    def make():
        def fn(x):
            n, kept, given, steps = 0, [], {}, iter([1.0, 2.0, 3.0])

            def counts(a):
                nonlocal n
                n += 1
                return a * n

            def keeps(a):
                kept.append(a.dim())
                given["dim"] = a.dim()
                return a * next(steps)

            def own(a):
                made, total = [a], a.clone()
                made.append(a * 2)
                for b in made:
                    total += b
                return total

            one = torch.vmap(counts, chunk_size=1)(x)
            two = torch.func.jacrev(lambda a: keeps(a).sum())(x)
            return one, two, torch.vmap(own)(x), n, kept, given, next(steps)

        return fn

    both(make, (X,), (X * 2,), (X,), backend=backend)


def test_a_function_that_changes_what_it_has_made_is_captured():
    def own(a):
        made, total = [a], a.clone()
        made.append(a * 2)
        for b in made:
            total += b
        return total

    counter = CompileCounter()
    f = godynamo.optimize(lambda x: torch.vmap(own)(x), backend=counter)
    assert torch.equal(f(X), torch.vmap(own)(X))
    assert counter.frame_count == 1 and not breaks()


@BACKENDS
def test_a_change_of_a_tensor_from_outside_is_cpythons(backend):
    def make():
        def fn(x):
            y = x * 1

            def changes(a):
                y.add_(1)
                return a.mul_(2)

            try:
                return torch.func.grad(lambda a: changes(a).sum())(x * 2), y
            except RuntimeError as error:
                return str(error), y

        return fn

    both(make, (X,), (X * 2,), backend=backend)


def test_vmap_of_what_works_element_by_element_is_the_operations_themselves():
    names = []

    def backend(gm, example_inputs):
        names.extend(node.name for node in gm.graph.nodes)
        return gm.forward

    def fn(x, y):
        return torch.vmap(lambda a, b: ((a * b).sin(), a))(x, y), torch.vmap(lambda a, b: a * b, in_dims=(1, 1))(x, y)

    f = godynamo.optimize(fn, backend=backend)
    assert facts(f(X, X + 1)) == facts(fn(X, X + 1))
    assert names == ["x", "y", *(n for n in names if n not in "xy")] and sum("vmap" in n for n in names) == 1


def test_parameters_of_a_module_are_of_each_call():
    m = torch.nn.Linear(4, 4)
    f = godynamo.optimize(lambda x: torch.func.functional_call(m, {"bias": x[0]}, (x,)).sum() + torch.vmap(m)(x).sum())
    for change in (
        None,
        lambda: m.weight.data.add_(1),
        lambda: setattr(m, "weight", torch.nn.Parameter(torch.ones(4, 4))),
    ):
        if change:
            change()
        m.zero_grad()
        want = torch.func.functional_call(m, {"bias": X[0]}, (X,)).sum() + torch.vmap(m)(X).sum()
        want.backward()
        gradients = [facts(p.grad) for p in m.parameters()]
        m.zero_grad()
        got = f(X)
        got.backward()
        assert torch.equal(got, want) and [facts(p.grad) for p in m.parameters()] == gradients


def test_tied_parameters_are_cpythons():
    m = torch.nn.Module()
    m.a = torch.nn.Parameter(torch.ones(4))
    m.b = torch.nn.Parameter(torch.ones(4))
    m.forward = lambda x: x * m.a + m.b
    fn = lambda x: torch.func.functional_call(m, {"a": x[0]}, (x,))  # noqa: E731
    f = godynamo.optimize(fn)
    assert torch.equal(f(X), fn(X))
    m.b = m.a
    assert torch.equal(f(X), fn(X))


def test_a_checkpoint_computes_again_in_backward():
    f = godynamo.optimize(
        lambda x: checkpoint(lambda a: torch.dropout(a.exp(), 0.5, True).sin(), x, use_reentrant=False)
    )
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t):
        y = f(LEAF * 1)
    held = len(saved)
    y.sum().backward()
    assert held < 3 and not breaks()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x: checkpoint(torch.sin, x, use_reentrant=False),
        lambda x: torch.vmap(lambda a: a + (lambda b: b.sin() * b)(a).cos())(x),
        lambda x: torch.func.grad(energy)(x),
        Doubled.apply,
    ],
    ids=["checkpoint", "vmap", "grad", "function"],
)
@BACKENDS
def test_a_resumed_frame_lets_go_of_a_tensor_meanwhile(backend, call):
    def fn(x, n):
        w = x * 2
        torch._dynamo.graph_break()
        for _ in range(n):
            y = call(x)
            w = x  # when the function runs again, the resumed frame's initial value is no longer referenced
        return w + y

    godynamo.reset()
    both(lambda: fn, (X, 3), (X * 2, 3), backend=backend)
    assert list(breaks().values()) == [1]
    assert _C.counters()["internal_errors"] == 0
