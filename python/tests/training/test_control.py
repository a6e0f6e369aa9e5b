"""godynamo's and torch.compiler's marks on functions; calls of scripted code, higher-order and custom operations."""

from __future__ import annotations

import operator

import pytest
import torch

import godynamo
from godynamo.testing import CompileCounter
from harness.training import both, breaks, facts, whole

BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
X = torch.linspace(-1.0, 1.0, 6).reshape(2, 3)


def counted(fn, *args):
    """Check the result under a backend that counts; return the counter."""
    counter = CompileCounter()
    optimized = godynamo.optimize(fn, backend=counter)
    for _ in range(2):
        assert facts(optimized(*args)) == facts(fn(*args))
    return counter


# ---- marks


@pytest.mark.parametrize("allow", [godynamo.allow_in_graph, torch.compiler.allow_in_graph], ids=["ours", "torch's"])
def test_an_allowed_function_is_one_node(allow):
    def chooses(x):
        return x * 2 if x.sum() > 100 else x - 1

    allow(chooses)
    assert counted(lambda x: chooses(x + 1) + 1, X).frame_count == 1
    assert not breaks()


def test_a_disallowed_function_splits_in_front_of_it():
    godynamo.disallow_in_graph(torch.erfinv)
    try:
        counter = counted(lambda x: torch.erfinv(x + 0.1).sin(), X)
    finally:
        from godynamo._user import registry

        registry.unregister(torch.erfinv)
    assert counter.frame_count == 2
    assert counter.op_count == 2


def test_a_substitute_is_captured():
    def original(x, k):
        return eval("x * k")

    @godynamo.substitute_in_graph(original)
    def replacement(x, k):
        return x * k

    assert counted(lambda x: original(x + 1, 3), X).frame_count == 1
    assert not breaks()
    with pytest.raises(ValueError, match="replacement already"):
        godynamo.substitute_in_graph(original)(replacement)
    with pytest.raises(TypeError):
        godynamo.substitute_in_graph(operator.indexOf)(lambda a: 0)


@pytest.mark.parametrize(
    "constant", [godynamo.assume_constant_result, torch._dynamo.assume_constant_result], ids=["ours", "torch's"]
)
def test_a_constant_result_is_baked_in(constant):
    calls = []

    @constant
    def setting():
        calls.append(1)
        return 3

    f = godynamo.optimize(lambda x: x * setting())
    for _ in range(3):
        assert torch.equal(f(X), X * 3)
    assert len(calls) == 1


@pytest.mark.parametrize("disable", [godynamo.disable, torch.compiler.disable], ids=["ours", "torch's"])
def test_a_disabled_function_runs_in_cpython(disable):
    seen = []

    @disable
    def inner(x):
        seen.append(torch.compiler.is_compiling())
        return x * 2

    counter = counted(lambda x: inner(x + 1) + 1, X)
    assert counter.frame_count == 2
    assert seen and not any(seen)


def test_is_compiling_is_true_inside_alone():
    def fn(x):
        return x + 1, torch.compiler.is_compiling(), godynamo.is_compiling()

    assert fn(X)[1:] == (False, False)
    assert godynamo.optimize(fn)(X)[1:] == (True, True)


# ---- scripted code


@torch.jit.script
def scripted(x: torch.Tensor, k: int = 2):
    if bool(x.sum() > 0):
        return x * k
    return x - k


class Scripted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x).relu()


@BACKENDS
def test_scripted_functions_and_modules_are_called(backend):
    def make():
        m = torch.jit.script(Scripted())
        traced = torch.jit.trace(Scripted(), X)

        def fn(x):
            y = scripted(x + 1) + m(x)
            return y, traced(y), scripted(x, 3), m.lin.weight.sum()

        return fn

    both(make, (X,), (X.clone().requires_grad_(),), (-X - 3,), backend=backend)


@torch.jit.script
def straight(x: torch.Tensor):
    return x * 2 + 1


def test_a_scripted_function_is_one_node():
    assert counted(lambda x: straight(x + 1) * 2, X).frame_count == 1


def test_errors_inside_scripted_code_are_its_own():
    @torch.jit.script
    def fails(x: torch.Tensor):
        return x @ x

    def fn(x):
        try:
            return fails(x)
        except RuntimeError as error:
            return "mat1 and mat2" in str(error)

    assert godynamo.optimize(fn)(X) is True


# ---- higher-order operations


@BACKENDS
def test_control_flow_operations(backend):
    from torch._higher_order_ops import associative_scan, while_loop

    def make():
        k = torch.ones(3)

        def fn(x):
            y = torch.cond(x.sum() > 0, lambda a: a + k, lambda a: a - k, (x,))
            (n, z) = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), y))
            s = associative_scan(torch.add, z, dim=0, combine_mode="generic")
            return y, n, z, s

        return fn

    both(make, (X + 1,), (X - 1,), (X + 2,), backend=backend)


# ---- custom operations


@torch.library.custom_op("godynamo_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k


@scaled.register_fake
def _(x, k):
    return torch.empty_like(x)


scaled.register_autograd(
    lambda ctx, g: (g * ctx.k, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1])
)


@torch.library.custom_op("godynamo_tests::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("godynamo_tests::pair", mutates_args=())
def pair(xs: list[torch.Tensor], n: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    return xs[0] + (n or 0), xs[-1].clone()


LIBRARY = torch.library.Library("godynamo_tests2", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
LIBRARY.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")


@BACKENDS
def test_custom_operations(backend):
    def make():
        def fn(x):
            y = scaled(x, 2.0) + torch.ops.godynamo_tests.scaled(x, 3.0)
            z = y.detach().clone()
            bump(z)
            a, b = pair([y, z], n=2)
            y.sum().backward() if y.requires_grad else None
            return y, z, a, b, x.grad, torch.ops.godynamo_tests2.twice(z)

        return fn

    both(make, (X,), (X.clone().requires_grad_(),), (X * 2,), backend=backend)


def test_custom_operations_are_nodes():
    def fn(x):
        y = scaled(x, 2.0)
        a, b = pair([y, x + 1])
        return torch.ops.godynamo_tests2.twice(a) + b

    assert counted(fn, X).frame_count == 1
    assert not breaks()


def test_an_error_of_a_custom_operation_is_its_own():
    def fn(x):
        return scaled(x + 1, "k")

    with pytest.raises(Exception) as plain:
        fn(X)
    with pytest.raises(type(plain.value)) as ours:
        godynamo.optimize(fn)(X)
    assert str(ours.value) == str(plain.value)
