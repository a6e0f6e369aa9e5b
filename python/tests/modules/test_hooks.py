"""Hooks of every kind, in order and with their side effects: row S003-42."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.modules import module as global_hooks

from modules_support import check

pytestmark = pytest.mark.row("S003-42")


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, scale=1.0):
        return self.b(torch.relu(self.a(x))) * scale


def forward_hooks(m, log):
    m.a.register_forward_pre_hook(lambda mod, args: log.append(("pre", type(mod).__name__, len(args))))
    m.a.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
    m.a.register_forward_pre_hook(lambda mod, args: args[0] + 1)
    m.a.register_forward_hook(lambda mod, args, out: log.append(("post", out.shape)))
    m.b.register_forward_hook(lambda mod, args, out: out * 3)
    m.b.register_forward_hook(lambda mod, args, out: None)


def hooks_with_keywords(m, log):
    def pre(mod, args, kwargs):
        log.append(("pre", sorted(kwargs)))
        return args, {**kwargs, "scale": kwargs.get("scale", 1.0) * 2}

    def post(mod, args, kwargs, out):
        log.append(("post", kwargs["scale"]))
        return out + kwargs["scale"]

    m.register_forward_pre_hook(pre, with_kwargs=True)
    m.register_forward_hook(post, with_kwargs=True)


def prepended_and_removed(m, log):
    first = m.a.register_forward_hook(lambda mod, args, out: log.append("first"))
    m.a.register_forward_hook(lambda mod, args, out: log.append("second"))
    m.a.register_forward_hook(lambda mod, args, out: log.append("third"), prepend=True)
    first.remove()


def always_called(m, log):
    m.b.register_forward_hook(lambda mod, args, out: log.append(("always", out is None)), always_call=True)

    def fail(mod, args):
        if len(log) > 1:
            raise RuntimeError("no more")

    m.b.register_forward_pre_hook(fail)


def backward_hooks(m, log):
    m.a.register_full_backward_hook(
        lambda mod, gin, gout: log.append(("backward", [g is None for g in gin], gout[0].sum()))
    )
    m.b.register_full_backward_hook(lambda mod, gin, gout: (gin[0] * 2,))
    m.b.register_full_backward_pre_hook(lambda mod, gout: (gout[0] * 3,))
    m.a.weight.register_hook(lambda g: log.append("weight") or g * 0.5)
    m.a.bias.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p.grad.sum())))


def tensor_hooks_in_forward(m, log):
    def post(mod, args, out):
        out.register_hook(lambda g: log.append(("output", g.sum())))

    m.a.register_forward_hook(post)


def a_hook_that_keeps_activations(m, log):
    kept = {}
    for name, child in m.named_children():
        child.register_forward_hook(lambda mod, args, out, name=name: kept.__setitem__(name, out.detach()))
    m.register_forward_hook(lambda mod, args, out: log.append(sorted((k, v.sum()) for k, v in kept.items())))


def a_hook_that_changes_the_module(m, log):
    def post(mod, args, out):
        mod.calls = getattr(mod, "calls", 0) + 1
        log.append(mod.calls)
        return out * mod.calls

    m.a.register_forward_hook(post)


KINDS = {
    f.__name__: f
    for f in (
        forward_hooks,
        hooks_with_keywords,
        prepended_and_removed,
        always_called,
        backward_hooks,
        tensor_hooks_in_forward,
        a_hook_that_keeps_activations,
        a_hook_that_changes_the_module,
    )
}
#: cases whose breaks are not checked: hooks on tensors, and calls that change something for the next call
SPLIT = {"always_called", "backward_hooks", "tensor_hooks_in_forward", "a_hook_that_changes_the_module"}


@pytest.mark.parametrize("late", [False, True], ids=["before", "after optimize"])
@pytest.mark.parametrize("kind", KINDS)
def test_hooks(kind, late):
    def program(optimize):
        m, log, out = Model(), [], []
        if not late:
            KINDS[kind](m, log)
        o = optimize(m)
        if late:
            out.append(o(x()))
            KINDS[kind](o, log)
        for _ in range(3):
            try:
                y = o(x(), scale=2.0)
                y.sum().backward()
                out.append(y)
            except RuntimeError as error:
                out.append(str(error))
            log.append("called")
        return out, log, [p.grad for p in m.parameters()]

    recorder = check(program)
    if kind not in SPLIT:
        assert recorder.breaks == {}
        again = kind == "a_hook_that_keeps_activations"  # the dict of activations is empty in the first call
        assert recorder.graphs == 1 + late + again


@pytest.mark.parametrize("kind", ["forward", "forward pre", "full backward", "full backward pre", "registration"])
def test_global_hooks(kind):
    def program(optimize):
        m, log = Model(), []
        o = optimize(m)
        out = [o(x())]
        if kind == "forward":
            h = global_hooks.register_module_forward_hook(lambda mod, args, y: log.append(type(mod).__name__))
        elif kind == "forward pre":
            h = global_hooks.register_module_forward_pre_hook(lambda mod, args: log.append(type(mod).__name__))
        elif kind == "full backward":
            h = global_hooks.register_module_full_backward_hook(lambda mod, gi, go: log.append(go[0].sum()))
        elif kind == "full backward pre":
            h = global_hooks.register_module_full_backward_pre_hook(lambda mod, go: log.append(go[0].sum()))
        else:
            h = global_hooks.register_module_module_registration_hook(lambda mod, name, sub: log.append(name))
        try:
            for _ in range(2):
                y = o(x())
                y.sum().backward()
                out.append(y)
            m.c = nn.Linear(2, 2)
        finally:
            h.remove()
        out.append(o(x()))
        return out, log, [p.grad for p in m.parameters()]

    check(program)


def test_state_dict_hooks():
    def program(optimize):
        m, log = Model(), []
        o = optimize(m)
        o(x())
        m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix)))
        m.a.register_state_dict_post_hook(lambda mod, state, prefix, meta: log.append(("post", prefix, len(state))))
        m.register_load_state_dict_pre_hook(lambda mod, state, prefix, *rest: log.append(("load", len(state))))
        m.register_load_state_dict_post_hook(lambda mod, keys: log.append(("loaded", str(keys))))
        state = o.state_dict()
        o.load_state_dict({k: v * 2 for k, v in state.items()})
        return o(x()), log, state

    check(program)


def test_hooks_added_and_removed_between_calls_translate_anew():
    def program(optimize):
        m = Model()
        o = optimize(m)
        out = [o(x())]
        h = o.register_forward_hook(lambda mod, args, y: y + 1)
        out.append(o(x()))
        h.remove()
        out.append(o(x()))
        h = m.b.register_forward_pre_hook(lambda mod, args: (args[0].relu(),))
        out.append(o(x()))
        h.remove()
        return out, o(x())

    recorder = check(program)
    assert recorder.breaks == {}
    assert recorder.graphs == 3
