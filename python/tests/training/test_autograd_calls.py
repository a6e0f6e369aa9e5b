"""torch.autograd.grad, torch.autograd.backward, and leaves that the frame itself makes or switches."""

from __future__ import annotations

import traceback
import warnings

import pytest
import torch

import godynamo
from harness.training import assert_one_graph, assert_predictions_hold
from training.test_optimizer_steps import same
from training.test_whole_steps import Program, network, play


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()


def parameter(n: int = 3) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.arange(float(n)) + 1)


# ---- torch.autograd.grad ---------------------------------------------------------------------------------------------


def gradient_of_a_parameter(log):
    p = parameter()

    def step(i):
        (g,) = torch.autograd.grad((p * p * i).sum(), p)
        log.append((g, g.requires_grad, g.is_contiguous(), g.stride(), g.shape, p.grad))
        return g + 1

    return step


def expanded_gradient(log):
    p = parameter(6)

    def step(i):
        (g,) = torch.autograd.grad(p.sum() if i % 2 else p.view(2, 3).t().square().sum(), [p])
        log.append((g.stride(), g.is_contiguous(), g))

    return step


def several_inputs(log):
    model = network()

    def step(i):
        loss = model(torch.full((i + 2, 4), float(i))).square().mean()
        gradients = torch.autograd.grad(loss, model.parameters())
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients, strict=True):
                p.sub_(g, alpha=0.1)
        log.append([p.clone() for p in model.parameters()])
        return type(gradients), len(gradients), loss

    return step


def gradients_that_may_be_none(log):
    p, q = parameter(), parameter()

    def step(i):
        y = (p * 2 + (q if i == 4 else q.detach())).sum()
        found = torch.autograd.grad(y, [p, q], allow_unused=True)
        log.append((found[0], found[1], found[1] is None))
        zeros = torch.autograd.grad((p * p).sum(), (q, p), materialize_grads=True)
        log.append(zeros)

    return step


def predicted_gradient_that_is_none(log):
    p, q = parameter(), parameter()

    def step(i):
        y = torch.cat([p, q[:0]]).index_select(0, torch.arange(3)).sum() + (q.floor() * 0).detach().sum()
        found = torch.autograd.grad(y, [p, q], allow_unused=True)
        z = torch.nextafter(p, q.detach()).sum() if p.requires_grad else p
        log.append((found, z))
        return found[1] is None

    return step


def unused_input_raises(log):
    p, q = parameter(), parameter()

    def step(i):
        try:
            torch.autograd.grad((p * i).sum(), [p, q])
        except RuntimeError as e:
            log.append(str(e))
        try:
            torch.autograd.grad((p * i).detach().sum(), p)
        except RuntimeError as e:
            log.append(str(e))
        return p * 2

    return step


def second_derivative(log):
    p = parameter()

    def step(i):
        y = (p**3 * i).sum()
        (g,) = torch.autograd.grad(y, p, create_graph=True)
        log.append((g.requires_grad, g))
        (h,) = torch.autograd.grad(g.sum(), p)
        log.append((h.requires_grad, h))
        (linear,) = torch.autograd.grad((p * 2).sum(), p, create_graph=True)
        log.append((linear.requires_grad, linear.stride()))

    return step


def gradient_penalty(log):
    critic = network()
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)

    def step(i):
        x = torch.rand(5, 4).requires_grad_()
        optimizer.zero_grad()
        score = critic(x)
        (g,) = torch.autograd.grad(score, x, grad_outputs=torch.ones_like(score), create_graph=True)
        loss = score.mean() + ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        log.append((loss, x.grad, [p.grad.clone() for p in critic.parameters()]))

    return step


def graph_used_twice(log):
    p = parameter()

    def step(i):
        y = (p * p).sum()
        a = torch.autograd.grad(y, p, retain_graph=True)
        b = torch.autograd.grad([y, p * 2], [p], [None, torch.ones(3) * i], retain_graph=i % 2 == 0)
        log.append((a, b))
        try:
            log.append(torch.autograd.grad(y, p))
        except RuntimeError as e:
            log.append(str(e)[:50])

    return step


def frozen_input(log):
    p = parameter()

    def step(i, x):
        try:
            (g,) = torch.autograd.grad((p * x).sum(), x)
        except RuntimeError as e:
            return str(e)
        return g

    step.arguments = lambda i: (torch.ones(3, requires_grad=i % 3 == 0),)
    return step


def without_gradients(log):
    p = parameter()

    def step(i):
        with torch.no_grad():
            y = (p * i).sum()
        try:
            log.append(torch.autograd.grad(y, p))
        except RuntimeError as e:
            log.append(str(e))
        with torch.enable_grad():
            y = (p * i).sum()
        with torch.no_grad():
            (g,) = torch.autograd.grad(y, p)
            (h,) = torch.autograd.grad((p * 2).sum(), p, allow_unused=True) if p.sum().requires_grad else (None,)
        log.append((g, h))

    def outside(i):
        with torch.inference_mode():
            return step.inner(i)

    step.inner = godynamo.optimize(lambda i: (p * i).sum().requires_grad)
    return lambda i: (step(i), outside(i))


def hook_of_a_leaf(log):
    p, state = parameter(), {"n": 0}

    def hook(g):
        state["n"] += 1
        log.append(("hook", g))
        return g * 2

    def step(i):
        if i == 2:
            state["handle"] = p.register_hook(hook)
        if i == 5:
            state["handle"].remove()
        found = torch.autograd.grad((p * p).sum(), p)
        log.append((found, state["n"]))
        return found[0] + state["n"]

    return step


def hook_that_raises(log):
    p = parameter()

    def hook(g):
        log.append("hook")
        raise ValueError("no")

    def step(i):
        if i == 3:
            p.register_hook(hook)
        log.append("before")
        try:
            (g,) = torch.autograd.grad((p * p).sum(), p)
        except ValueError as e:
            log.append(str(e))
            return None
        return g

    return step


def sparse(log):
    table = torch.nn.Embedding(5, 2, sparse=True)

    def step(i):
        (g,) = torch.autograd.grad(table(torch.tensor([i % 5])).sum(), table.weight)
        log.append((g.is_sparse, g.to_dense()))

    return step


def result_across_a_break(log):
    p = parameter()

    def step(i):
        found = torch.autograd.grad((p * i).sum(), [p], create_graph=True)
        godynamo.graph_break()
        log.append((found, type(found), found[0].requires_grad))
        return found

    return step


def other_sizes(log):
    p = parameter(1)

    def step(i, x):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((p * x * x).sum(), x)
        log.append((g.shape, g.numel(), (g.view(-1) + 1).shape))
        return g

    step.arguments = lambda i: (torch.rand(2, i + 2),)
    return step


def in_functions_and_blocks(log):
    p = parameter()

    def inner(y):
        (g,) = torch.autograd.grad(y, p)
        return g, "done"

    def step(i):
        if i == 4:
            p.register_hook(lambda g: g + 1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            try:
                g, word = inner((p * i).sum())
            finally:
                log.append("end")
        log.append((g, word))

    return step


def anomaly(log):
    p = parameter()

    def step(i):
        with torch.autograd.set_detect_anomaly(True):
            try:
                return torch.autograd.grad((p * float("nan")).sqrt().sum(), p)
            except RuntimeError as e:
                return str(e)

    return step


def arguments_torch_rejects(log):
    p = parameter()

    def attempt(f):
        try:
            log.append(f())
        except Exception as e:
            log.append((type(e), str(e)))

    def step(i):
        y = (p * p).sum()
        attempt(lambda: torch.autograd.grad(y, []))
        attempt(lambda: torch.autograd.grad(p * 2, p))
        attempt(lambda: torch.autograd.grad(y, p, torch.ones(2)))
        attempt(lambda: torch.autograd.grad(y, p, retain_graph=True, is_grads_batched=True, grad_outputs=torch.ones(1)))
        attempt(lambda: torch.autograd.grad(y, {"p": p}, retain_graph=True))
        attempt(lambda: torch.autograd.grad(y, p, materialize_grads=True, allow_unused=False))
        attempt(lambda: torch.autograd.grad(y, p, retain_graph=True, wrong=1))
        attempt(lambda: torch.autograd.backward(y, inputs=[]))
        attempt(lambda: torch.autograd.backward(p * 2))
        attempt(lambda: torch.autograd.backward(3))
        attempt(lambda: y.backward(inputs=y))
        p.grad = None

    return step


# ---- torch.autograd.backward -----------------------------------------------------------------------------------------


def backward_of_several(log):
    p, q = parameter(), parameter()

    def step(i):
        p.grad = None
        torch.autograd.backward([(p * i).sum(), p * q], [None, torch.ones(3)])
        log.append((p.grad, q.grad.clone()))
        torch.autograd.backward((p * q).sum(), retain_graph=i % 2 == 0)
        log.append((p.grad.clone(), q.grad.clone()))

    return step


def backward_into_some(log):
    p, q = parameter(), parameter()

    def step(i):
        p.grad = q.grad = None
        (p * q).sum().backward(inputs=[p])
        log.append((p.grad.clone(), q.grad))
        torch.autograd.backward((p * q * i).sum(), inputs=q)
        log.append((p.grad.clone(), q.grad))
        (p * 2).sum().backward(inputs=(p, q))
        return p.grad, q.grad

    return step


def backward_twice(log):
    p = parameter()

    def step(i):
        y = (p * p).sum()
        torch.autograd.backward(y)
        try:
            torch.autograd.backward(y)
        except RuntimeError as e:
            log.append(str(e)[:50])
        log.append(p.grad.clone())

    return step


# ---- leaves of the frame ---------------------------------------------------------------------------------------------


def a_copy_as_a_leaf(log):
    p = parameter()

    def step(i, x):
        w = x.clone().detach().requires_grad_()
        log.append((w.grad, w.requires_grad))
        (w * p * i).sum().backward()
        g = w.grad
        (w * 2).sum().backward()
        log.append((g is w.grad, g.clone(), p.grad.clone()))
        w.grad = None
        (w * 3).sum().backward()
        log.append(w.grad)
        w.grad.zero_()
        return w, w.grad

    step.arguments = lambda i: (torch.ones(3, requires_grad=i % 2 == 1),)
    return step


def made_with_gradients(log):
    def step(i, x):
        w = torch.full((3,), float(i), requires_grad=True)
        v = torch.rand(3).requires_grad_(i % 2 == 0)
        u = x.new_ones(3)
        u.requires_grad = True
        (w * v + u * x).sum().backward()
        log.append((w.grad, v.grad, u.grad, x.grad))
        return w

    step.arguments = lambda i: (torch.ones(3),)
    return step


def gradient_descent(log):
    def step(i, x):
        w = torch.zeros(3, requires_grad=True)
        for _ in range(4):
            loss = ((w - x) ** 2).sum()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
                w.grad.zero_()
        return w, w.grad, loss

    step.arguments = lambda i: (torch.full((3,), float(i)),)
    return step


def leaf_across_a_break(log):
    def step(i, x):
        w = x.detach().clone().requires_grad_()
        y = (w * i).sum()
        godynamo.graph_break()
        y.backward()
        godynamo.graph_break()
        g = w.grad
        godynamo.graph_break()
        log.append((g is w.grad, w.is_leaf))
        return w.grad + 1

    step.arguments = lambda i: (torch.ones(3),)
    return step


def leaf_that_escapes(log):
    kept = []

    def step(i, x):
        w = x.detach().clone().requires_grad_()
        kept.append(w)
        (w * i).sum().backward()
        log.append((kept[-1] is w, w.grad, kept[0].grad))
        if len(kept) > 2:
            (kept[0] * 2).sum().backward()
            log.append(kept[0].grad.clone())
        return w

    step.arguments = lambda i: (torch.ones(3),)
    return step


def no_leaf_any_more(log):
    p = parameter()

    def step(i, x):
        w = x * 1
        w.requires_grad_()
        y = w * p
        y.sum().backward()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            log.append((y.grad, w.grad))
            z = (w * 2).detach_()
            log.append((z.grad, z.requires_grad))
        log.append([str(w.message)[:40] for w in caught])

    step.arguments = lambda i: (torch.ones(3),)
    return step


def saliency(log):
    model = network()

    def step(i, x):
        x.requires_grad_()
        model(x).sum().backward()
        return x.grad.abs(), [p.grad for p in model.parameters()]

    step.arguments = lambda i: (torch.ones(2, 4, requires_grad=i == 3),)
    return step


def an_operand_as_a_leaf(log):
    """contiguous() may return its operand."""

    def step(i, x):
        w = x.contiguous().requires_grad_()
        (w * 2).sum().backward()
        log.append((w is x, x.requires_grad, w.grad, x.grad))

    step.arguments = lambda i: (torch.ones(3, 3) if i % 2 else torch.ones(3, 3).t(),)
    return step


def frozen_for_a_while(log):
    d, g = network(), torch.nn.Linear(4, 4)

    def step(i):
        for p in d.parameters():
            p.requires_grad_(False)
            p.grad = None
        g.weight.grad = None
        x = g(torch.full((2, 4), float(i)))
        loss = d(x).mean()
        log.append((loss.requires_grad, d[0].weight.requires_grad))
        loss.backward()
        log.append([p.grad for p in d.parameters()])
        for p in d.parameters():
            p.requires_grad_(True)
        d(x.detach()).mean().backward()
        log.append([p.grad for p in d.parameters()])
        return g.weight.grad

    return step


def frozen_after_use(log):
    p, q = parameter(), parameter()

    def step(i):
        p.requires_grad = True
        p.grad = q.grad = None
        y = (p * q).sum()
        p.requires_grad = False
        y.backward()
        log.append((p.grad, q.grad, p.requires_grad, y.requires_grad, (p * 2).requires_grad))

    return step


def frozen_with_views(log):
    """A view's requires_grad follows that of its base, so the graph breaks where an input is a view."""

    def step(i, x, w):
        w.requires_grad_(i % 2 == 0)
        y = x * 2
        log.append((x.requires_grad, y.requires_grad, w.requires_grad))
        if y.requires_grad:
            y.sum().backward()
        return w.grad, x.is_leaf

    def arguments(i):
        w = torch.ones(4, requires_grad=i in (4, 5))
        if i in (5, 6):
            with torch.no_grad():
                return w[:3], w
        others = [torch.ones(3), w, w[:3], torch.ones(4)[:3], w[:3], w[:3], w, w.detach()[:3]]
        return others[i], w

    step.arguments = arguments
    return step


def frozen_for_a_while_by_name(log):
    """The other input's flag, and what the graph computes from it, do not follow."""
    p, q = parameter(), parameter()

    def step(i):
        p.requires_grad_(False)
        y = p * q
        log.append((y.requires_grad, q.requires_grad, p.requires_grad, (p * 2).requires_grad))
        y.sum().backward()
        p.requires_grad_(True)
        log.append((y.requires_grad, (p * 2).requires_grad))
        return p.grad, q.grad

    return step


PROGRAMS: list[Program] = [
    frozen_with_views,
    frozen_for_a_while_by_name,
    gradient_of_a_parameter,
    expanded_gradient,
    several_inputs,
    gradients_that_may_be_none,
    predicted_gradient_that_is_none,
    unused_input_raises,
    second_derivative,
    gradient_penalty,
    graph_used_twice,
    frozen_input,
    without_gradients,
    hook_of_a_leaf,
    hook_that_raises,
    sparse,
    result_across_a_break,
    other_sizes,
    in_functions_and_blocks,
    anomaly,
    arguments_torch_rejects,
    backward_of_several,
    backward_into_some,
    backward_twice,
    a_copy_as_a_leaf,
    made_with_gradients,
    gradient_descent,
    leaf_across_a_break,
    leaf_that_escapes,
    no_leaf_any_more,
    saliency,
    an_operand_as_a_leaf,
    frozen_for_a_while,
    frozen_after_use,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_run_as_in_eager_mode(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(play(program, godynamo.optimize), play(program, lambda f: f))


ONE_GRAPH: list[Program] = [
    gradient_of_a_parameter,
    several_inputs,
    second_derivative,
    gradient_penalty,
    other_sizes,
    backward_of_several,
    backward_into_some,
    a_copy_as_a_leaf,
    made_with_gradients,
    gradient_descent,
    saliency,
    frozen_for_a_while,
    frozen_for_a_while_by_name,
    frozen_after_use,
]


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_programs_are_one_graph(program):
    assert_one_graph(program)


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_predictions_hold(program):
    assert_predictions_hold(program)


@pytest.mark.parametrize("call", ["grad", "backward"])
def test_an_exception_has_the_users_traceback(call):
    p = parameter()

    def step():
        y = (p * p).sum()
        getattr(torch.autograd, call)(y, *[p] * (call == "grad"))
        getattr(torch.autograd, call)(y, *[p] * (call == "grad"))

    def frames(f):
        with pytest.raises(RuntimeError, match="second time") as caught:
            f()
        found = traceback.extract_tb(caught.value.__traceback__)[1:]
        return [(frame.name, frame.lineno) for frame in found if frame.filename == __file__]

    assert frames(godynamo.optimize(step)) == frames(step)
