"""Programs that look at the history of computed tensors, under backends that compile several results to one node."""

from __future__ import annotations

import logging

import pytest
import torch

import godynamo


def gradient_of_a_computed_tensor(x):
    y = x * 2
    (g,) = torch.autograd.grad(y.sin().sum(), y)
    return g


def gradient_of_one_in_a_list(x):
    y = x * 2
    g, h = torch.autograd.grad([y.sin().sum()], [x, y], allow_unused=True)
    return g, h


def backward_to_a_computed_tensor(x):
    y = x * 2
    y.retain_grad()
    y.sin().sum().backward(inputs=[y])
    return y.grad


def gradient_penalty(x):
    z = x.exp().sin().sum()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    (g.pow(2).sum() + z).backward()
    return x.grad


def backward_that_makes_history(x):
    z = x.exp().sin().sum()
    z.backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.pow(2).sum().backward()
    return g, x.grad


def penalty(x, z):
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    return g.pow(2).sum()


def gradient_penalty_of_a_function(x):
    z = x.exp().sin().sum()
    p = penalty(x, z)
    (p + z).backward()
    return x.grad


def two_gradients_after_a_break(x):
    y = x * 2
    z, w = y.sin().sum(), y.cos().sum()
    godynamo.graph_break()
    (g,) = torch.autograd.grad(z, y, retain_graph=True)
    (h,) = torch.autograd.grad(w + z, x)
    return g, h


def a_kept_gradient_after_a_break(x):
    y = x * 2
    z = y.sin().sum()
    godynamo.graph_break()
    y.retain_grad()
    z.backward()
    return y.grad, x.grad


def a_kept_gradient(x):
    y = x * 2
    z = y.sin().sum()
    y.retain_grad()
    z.backward()
    return y.grad, x.grad


def a_hook(x):
    y = x * 2
    z = y.sin().sum()
    y.register_hook(lambda g: g * 3)
    z.backward()
    return x.grad


def two_losses(x):
    z, w = x.sin().sum(), x.cos().sum()
    z.backward()
    g = x.grad.clone()
    w.backward()
    return g, x.grad


def two_losses_after_a_break(x):
    z, w = x.sin().sum(), x.cos().sum()
    godynamo.graph_break()
    z.backward()
    w.backward()
    return x.grad


def losses_of_a_loop(x):
    for loss in (x.sin().sum(), x.cos().sum()):
        loss.backward()
    return x.grad


def losses_of_a_loop_after_a_break(x):
    a, b = x.sin().sum(), x.cos().sum()
    godynamo.graph_break()
    for loss in (a, b):
        loss.backward()
    return x.grad


def listed_losses_after_a_break(x):
    losses = [x.sin().sum(), x.cos().sum()]
    godynamo.graph_break()
    for loss in losses:
        loss.backward()
    return x.grad


def gradients_in_a_comprehension(x):
    losses = [x.sin().sum(), x.cos().sum()]
    sum(losses).backward(retain_graph=True)
    return x.grad, *[torch.autograd.grad(loss, x, create_graph=True)[0] for loss in losses]


def gradient_penalty_after_a_break(x):
    z = x.exp().sin().sum()
    godynamo.graph_break()
    (g,) = torch.autograd.grad(z, x, create_graph=True)
    g.pow(2).sum().backward()
    return x.grad


def hessian(x):
    return torch.autograd.functional.hessian(lambda t: t.sin().pow(3).sum(), x)


def second_loss_of_two_terms(x):
    z, w = x.sin().sum(), x.cos().sum()
    z.backward()
    (w * 2).backward()
    return x.grad


class Strategy:
    def manual_backward(self, loss):
        loss.backward()


def two_losses_by_a_method(x, strategy=Strategy()):
    z, w = x.sin().sum(), x.cos().sum()
    strategy.manual_backward(z)
    strategy.manual_backward(w)
    return x.grad


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__code__", None) and value is not penalty]


def outcomes(run):
    """Return what two calls of a program return."""
    return [
        tuple(t.detach() for t in (found if isinstance(found, tuple) else (found,)))
        for found in (run(torch.linspace(0, 1, 4).requires_grad_()) for _ in range(2))
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_are_eagers(backend, program):
    for want, got in zip(outcomes(program), outcomes(godynamo.optimize(backend)(program)), strict=True):
        assert all(map(torch.equal, want, got))


def plain_step(x):
    out = x.sin()
    loss = out.sum()
    loss.backward()
    return out.argmax(), loss.item()


def loop_of_steps(x):
    for _ in range(2):
        out = x.sin()
        loss = out.sum()
        x.grad = None
        loss.backward()
        print(end=str(out.argmax().item())[:0])
    return x.grad


def loop_that_may_differentiate_twice(x, twice=False):
    for _ in range(2):
        loss = x.sin().sum()
        x.grad = None
        loss.backward(create_graph=twice)
        print(end=str(loss.item())[:0])
    return x.grad


def gradient_of_a_leaf(x):
    (g,) = torch.autograd.grad(x.exp().sin().sum(), x)
    return g


@pytest.mark.parametrize(
    "program",
    [plain_step, loop_of_steps, loop_that_may_differentiate_twice, gradient_of_a_leaf],
    ids=lambda p: p.__name__,
)
def test_one_pass_is_compiled(program):
    from functorch.compile import aot_module_simplified, nop

    compiled = []

    def compiler(gm, inputs):
        compiled.append(gm)
        return aot_module_simplified(gm, inputs, fw_compiler=nop)

    godynamo.optimize(compiler)(program)(torch.linspace(0, 1, 4).requires_grad_())
    assert any("sin" in str(node.target) for gm in compiled for node in gm.graph.nodes)


def test_one_graph_is_still_demanded():
    with pytest.raises(godynamo.exc.Unsupported, match="compiles whole graphs"):
        godynamo.optimize("aot_eager", nopython=True)(gradient_penalty)(torch.ones(3, requires_grad=True))


def test_the_log_says_so(caplog):
    caplog.set_level(logging.INFO, logger="godynamo")
    outcomes(godynamo.optimize("aot_eager")(gradient_penalty))
    (line,) = [r.getMessage() for r in caplog.records if "backend" in r.getMessage()]
    assert line.startswith("'gradient_penalty' (") and "is not passed to the backend" in line
