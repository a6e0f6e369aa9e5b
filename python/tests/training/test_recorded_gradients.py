"""Gradients with a history of their own (backward(create_graph=True)), and batches of gradients (is_grads_batched)."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.training import assert_one_graph, assert_predictions_hold
from training.test_optimizer_steps import same
from training.test_whole_steps import Program, network, play

pytestmark = pytest.mark.usefixtures("fresh")


def parameter(n: int = 3) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.arange(float(n)) + 1)


def penalty_of_all_gradients(log):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(i):
        x = torch.full((3, 4), float(i + 1))
        optimizer.zero_grad()
        model(x).square().mean().backward(create_graph=True)
        norm = sum([(p.grad**2).sum() for p in model.parameters()])
        optimizer.zero_grad()
        loss = model(x).square().mean() + 0.1 * norm
        loss.backward()
        optimizer.step()
        log.append([p.grad for p in model.parameters()])
        return loss, norm

    return step


def second_derivative(log):
    p = parameter()

    def step(i):
        p.grad = None
        (p**3 * i).sum().backward(create_graph=True)
        first = p.grad
        p.grad = None
        (first * first).sum().backward()
        log.append((first, first + 0, p.grad))
        p.grad = None

    return step


def gradients_that_add_up(log):
    p, q = parameter(), parameter()

    def step(i):
        p.grad = q.grad = None
        (p * p * q).sum().backward(create_graph=True)
        one = p.grad
        (p * q * i).sum().backward(create_graph=True)
        two = p.grad
        log.append((one is two, one, two, q.grad))
        (p * 2).sum().backward()
        log.append((p.grad is two, one, two))
        p.grad = q.grad = None

    return step


def gradients_across_steps(log):
    p = parameter()

    def step(i):
        (p**3).sum().backward(create_graph=i % 3 == 1)
        log.append((p.grad, p.grad.requires_grad, p.grad.is_leaf))
        if i % 2:
            p.grad = None

    return step


def what_a_gradient_is(log):
    p, q = parameter(), parameter()

    def step(i):
        p.grad = q.grad = None
        (p * p + q * 2).sum().backward(create_graph=True)
        log.append((p.grad.requires_grad, q.grad.requires_grad, p.grad.is_leaf, p.grad.grad_fn is None))
        log.append(((p.grad * 2).requires_grad, p.grad.detach(), p.grad.shape, p.grad.stride()))
        for r in (p, q):
            if r.grad.grad_fn is not None:
                r.grad.detach_()
            r.grad.zero_()
        log.append((p.grad, q.grad))
        p.grad = q.grad = None

    return step


def zero_grad_without_none(log):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(i):
        model(torch.full((3, 4), float(i + 1))).square().mean().backward(create_graph=i % 2 == 0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        log.append([(p.grad, p.grad.requires_grad, p) for p in model.parameters()])

    return step


def a_hook_of_the_gradient(log):
    p = parameter()

    def step(i):
        p.grad = None
        (p**3).sum().backward(create_graph=True)
        if i == 4:
            p.register_hook(lambda g: g * 2)
        first, p.grad = p.grad, None
        first.sum().backward()
        log.append((first, p.grad))
        p.grad = None

    return step


def jacobian(log):
    model = network()[:2]

    def step(i):
        x = torch.full((4,), float(i + 1), requires_grad=True)
        y = model(x)
        (found,) = torch.autograd.grad(y, x, torch.eye(8), is_grads_batched=True)
        log.append((found, found.shape, found.dtype))
        return found + 1

    return step


def penalty_of_a_jacobian(log):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step(i):
        x = torch.full((4,), float(i + 1), requires_grad=True)
        optimizer.zero_grad()
        y = model(x)
        (found,) = torch.autograd.grad(y, (x,), (torch.eye(3),), create_graph=True, is_grads_batched=True)
        loss = found.square().sum() + y.sum()
        loss.backward()
        optimizer.step()
        return loss, found

    return step


def batches_of_several(log):
    p, q, idle = parameter(), parameter(), parameter()

    def step(i):
        y, z = p * q * i, q.square()
        rows = torch.stack([torch.ones(3), torch.arange(3.0)])
        found = torch.autograd.grad(
            [y, z], [p, q, idle], grad_outputs=[rows, rows * 2], is_grads_batched=True, allow_unused=True
        )
        log.append((found, found[2] is None, found[0].sum(0)))

    return step


def batches_of_other_sizes(log):
    p = parameter(5)

    def step(i):
        rows = torch.eye(5)[: i % 4 + 1]
        (found,) = torch.autograd.grad(p.square(), p, rows, is_grads_batched=True)
        log.append((found.shape[0], found))
        return found.reshape(found.shape[0] * 5)

    return step


def wrong_batches(log):
    p = parameter()

    def attempt(fn):
        try:
            log.append(fn())
        except (RuntimeError, ValueError) as error:
            log.append(str(error))

    def step(i):
        attempt(lambda: torch.autograd.grad(p * 2, p, torch.ones(2, 4), is_grads_batched=True))
        attempt(lambda: torch.autograd.grad(p * 2, p, torch.ones(3), is_grads_batched=True))
        attempt(lambda: torch.autograd.grad((p * 2).sum(), p, is_grads_batched=True))
        attempt(lambda: torch.autograd.grad((p * 2).sum(), p, torch.ones(2), is_grads_batched=True))

    return step


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 if g.dim() == 1 else g * 3


def batches_through_a_function(log):
    p = parameter()

    def step(i):
        (found,) = torch.autograd.grad(Doubled.apply(p * i), p, torch.eye(3), is_grads_batched=True)
        log.append(found)

    return step


ONE_GRAPH: list[Program] = [
    penalty_of_all_gradients,
    second_derivative,
    jacobian,
    penalty_of_a_jacobian,
    batches_of_several,
]
PROGRAMS: list[Program] = [
    *ONE_GRAPH,
    gradients_that_add_up,
    gradients_across_steps,
    what_a_gradient_is,
    zero_grad_without_none,
    a_hook_of_the_gradient,
    batches_of_other_sizes,
    wrong_batches,
    batches_through_a_function,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_run_as_in_eager_mode(program):
    assert same(play(program, godynamo.optimize), play(program, lambda f: f))


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_programs_are_one_graph(program):
    assert_one_graph(program)


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_predictions_hold(program):
    assert_predictions_hold(program)
