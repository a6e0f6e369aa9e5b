"""Hooks that the frame itself registers: register_hook, register_post_accumulate_grad_hook, retain_grad."""

from __future__ import annotations

import traceback
import warnings

import pytest
import torch

import godynamo
from harness.training import assert_one_graph, assert_predictions_hold
from training.test_optimizer_steps import same
from training.test_whole_steps import Program, play

STATE = {"n": 0}


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()
    STATE["n"] = 0


def parameter(n: int = 3) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.arange(float(n)) + 1)


def doubled(g):
    return g * 2


# ---- hooks without side effects --------------------------------------------------------------------------------------


def on_a_result(log):
    p = parameter()

    def step(i):
        y = p * i
        y.register_hook(lambda g: g * 3)
        y.sum().backward()
        return p.grad

    return step


def on_a_leaf_and_removed(log):
    p = parameter()

    def step(i):
        handle = p.register_hook(doubled)
        (p * i).sum().backward()
        handle.remove()
        handle.remove()
        (p * p).sum().backward()
        return p.grad

    return step


def several_in_order(log):
    p = parameter()

    def step(i):
        p.grad = None
        y = p * 2
        y.register_hook(lambda g: g + 1)
        y.register_hook(hook=lambda g: None)
        y.register_hook(doubled)
        (y * y).sum().backward()
        return p.grad

    return step


def before_grad(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.register_hook(doubled)
        return torch.autograd.grad((y * i).sum(), p)

    return step


def on_a_leaf_of_the_frame(log):
    def step(i, x):
        w = x.detach().clone().requires_grad_()
        w.register_hook(doubled)
        (w * i).sum().backward()
        return w.grad, w

    step.arguments = lambda i: (torch.arange(3.0) + i,)
    return step


def of_a_closure(log):
    p = parameter()

    def step(i):
        p.grad = None
        scale = torch.full((3,), float(i))

        def hook(g, extra=2):
            return g * scale + extra

        (y := p * 2).register_hook(hook)
        y.sum().backward()
        return p.grad, hook(p.detach())

    return step


# ---- retain_grad -----------------------------------------------------------------------------------------------------


def retained(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.retain_grad()
        before = y.grad
        (y * y).sum().backward()
        return before, y.grad, p.grad

    return step


def retained_twice(log):
    p = parameter()

    def step(i):
        y = p * 2
        z = (y * y).sum()
        y.sum().backward(retain_graph=True)
        y.retain_grad()
        before = y.grad
        z.backward(retain_graph=True)
        first = y.grad
        z.backward()
        return before, first, y.grad

    return step


def retained_but_not_reached(log):
    p = parameter()

    def step(i):
        y, z = p * 2, p * 3
        y.retain_grad()
        z.retain_grad()
        y.sum().backward()
        return y.grad, z.grad

    return step


def retained_of_a_leaf(log):
    p = parameter()

    def step(i):
        p.retain_grad()
        (p * i).sum().backward()
        return p.grad

    return step


def retained_behind_a_hook(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.retain_grad()
        y.register_hook(doubled)
        y.sum().backward()
        return y.grad, p.grad

    return step


ONE_GRAPH: list[Program] = [
    on_a_result,
    on_a_leaf_and_removed,
    several_in_order,
    before_grad,
    on_a_leaf_of_the_frame,
    of_a_closure,
    retained,
    retained_twice,
    retained_but_not_reached,
    retained_of_a_leaf,
    retained_behind_a_hook,
]


# ---- hooks that do more ----------------------------------------------------------------------------------------------


def appends(log):
    p = parameter()

    def step(i):
        seen: list[object] = []
        p.register_hook(seen.append)
        y = p * 2
        y.register_hook(lambda g: log.append(("y", g)))
        (y * i).sum().backward()
        return seen, p.grad

    return step


def counts(log):
    p = parameter()

    def step(i):
        n = 0

        def hook(g):
            nonlocal n
            n += 1
            STATE["n"] += 1

        y = p * 2
        y.register_hook(hook)
        before = STATE["n"]
        y.sum().backward()
        return n, STATE["n"] - before

    return step


def raises(log):
    p = parameter()

    def step(i):
        def hook(g):
            log.append("hook")
            raise ValueError(i)

        try:
            with torch.enable_grad():
                y = p * 2
                y.register_hook(hook)
                y.sum().backward()
        except ValueError as e:
            log.append(repr(e))
        return p.grad

    return step


def reads_what_changes(log):
    p = parameter()

    def step(i):
        k, items = 3, [1.0]
        y = p * 2
        y.register_hook(lambda g: g * k * items[0])
        k = 5
        items[0] = 7.0
        y.sum().backward()
        return p.grad

    return step


def changes_the_gradient(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.register_hook(lambda g: g.mul_(2) and None if i > 100 else g.expand(3).to(torch.float32))
        p.register_hook(lambda g: torch.zeros(3).copy_(g).as_strided((3,), (1,)))
        y.sum().backward()
        return p.grad

    return step


def depends_on_grad_mode(log):
    p = parameter()

    def step(i):
        def hook(g):
            if torch.is_grad_enabled() == (i % 2 == 0):
                STATE["n"] += 1
            return g

        y = p * p
        y.register_hook(hook)
        before = STATE["n"]
        (g,) = torch.autograd.grad(y.sum(), p, create_graph=i % 2 == 0)
        return g, STATE["n"] - before

    return step


def after_accumulation(log):
    p = parameter()

    def step(i):
        def hook(q):
            log.append(q.grad.clone())
            q.grad = None

        handle = p.register_post_accumulate_grad_hook(hook)
        (p * i).sum().backward()
        handle.remove()
        return p.grad

    return step


def others_have_hooks(log):
    p = parameter()

    def step(i):
        handle = p.register_hook(doubled)
        (p * 2).sum().backward()
        handle.remove()
        if i == 2:
            p.register_hook(lambda g: log.append("another"))
        return p.grad

    return step


def handle_that_escapes(log):
    p, handles = parameter(), []

    def step(i):
        y = p * 2
        handles.append(y.register_hook(doubled))
        godynamo.graph_break()
        y.sum().backward(retain_graph=True)
        handle = handles[-1]
        handle.remove()
        y.sum().backward()
        log.append(type(handle).__name__)
        return p.grad, handle is handles[-1], bool(handle)

    return step


def hooked_across_a_break(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.retain_grad()
        handle = y.register_hook(doubled)
        godynamo.graph_break()
        (y * i).sum().backward()
        handle.remove()
        return y.grad, p.grad

    return step


def changed_after_it_is_retained(log):
    p = parameter()

    def step(i):
        y = p * 2
        y.retain_grad()
        y.mul_(3)
        (y * y).sum().backward(retain_graph=True)
        first = y.grad
        (y * 2).sum().backward()
        return y.grad, first is y.grad

    return step


def other_strides(log):
    p = parameter()

    def step(i):
        y = p.reshape(3, 1).expand(3, 4).t()
        y.retain_grad()
        z = p.reshape(3, 1) * torch.ones(1, 4)
        t = z.t()
        t.retain_grad()
        (y * 2 + t).sum().backward()
        return y.grad, y.grad.stride(), t.grad.stride()

    return step


MORE: list[Program] = [
    appends,
    counts,
    raises,
    reads_what_changes,
    changes_the_gradient,
    depends_on_grad_mode,
    after_accumulation,
    others_have_hooks,
    handle_that_escapes,
    hooked_across_a_break,
    changed_after_it_is_retained,
    other_strides,
]


@pytest.mark.parametrize("program", [*ONE_GRAPH, *MORE], ids=lambda p: p.__name__)
def test_programs_run_as_in_eager_mode(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert same(play(program, godynamo.optimize), play(program, lambda f: f))


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_programs_are_one_graph(program):
    assert_one_graph(program)


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_predictions_hold(program):
    assert_predictions_hold(program)


def test_hooks_alone_do_not_break_the_graph():
    """Without backward(), a hook may do anything: other code runs it."""
    seen: list[torch.Tensor] = []

    def f(x):
        y = x * 2
        return y, y.register_hook(seen.append), x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))

    x = torch.ones(3, requires_grad=True)
    assert godynamo.explain(f)(x).graph_break_count == 0
    x = torch.ones(3, requires_grad=True)
    seen.clear()
    y, handle, _ = godynamo.optimize(f)(x)
    assert type(handle) is torch.utils.hooks.RemovableHandle
    y.sum().backward()
    assert [t.tolist() for t in seen] == [[1.0] * 3, [2.0] * 3]


def test_a_hook_with_side_effects_breaks_the_graph_at_backward():
    def f(x):
        seen = []
        y = x * 2
        y.register_hook(seen.append)
        y.sum().backward()
        return seen

    explained = godynamo.explain(f)(torch.ones(3, requires_grad=True))
    assert (explained.graph_count, explained.graph_break_count) == (1, 1)
    assert "backward" in str(explained.break_reasons[0])


@pytest.mark.parametrize("call", ["register_hook", "retain_grad", "register_post_accumulate_grad_hook"])
def test_what_torch_rejects_raises_as_in_eager_mode(call):
    def step(x):
        y = x.detach() * 2
        y = y if call != "register_post_accumulate_grad_hook" else x * 2
        getattr(y, call)(*[print] * (call != "retain_grad"))

    def caught(f):
        with pytest.raises(RuntimeError) as error:
            f(torch.ones(3, requires_grad=True))
        frames = traceback.extract_tb(error.value.__traceback__)[1:]
        return str(error.value), [(frame.name, frame.lineno) for frame in frames]

    assert caught(godynamo.optimize(step)) == caught(step)


def test_a_hook_that_changes_the_size_raises_as_in_eager_mode():
    def step(x):
        y = x * 2
        y.register_hook(lambda g: g[0])
        y.sum().backward()

    for f in (step, godynamo.optimize(step)):
        with pytest.raises(RuntimeError, match="has changed the size of value"):
            f(torch.ones(3, requires_grad=True))
