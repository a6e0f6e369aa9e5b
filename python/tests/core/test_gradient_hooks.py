"""_C.gradients_run_code: whether hooks of leaves run in backward()."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from godynamo import _C


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


def runs(*tensors: object) -> bool:
    return _C.gradients_run_code(tensors)


def node_of(t: torch.Tensor):
    return t.view_as(t).grad_fn.next_functions[0][0]


def test_leaves_without_hooks():
    a, b = leaf(), torch.nn.Parameter(torch.ones(2, 2))
    assert not runs(a, b, torch.ones(2))
    y = (a * 2).sum() + b.sum()  # the nodes of both leaves are alive
    assert not runs(a, b)
    y.backward()
    assert not runs(a, b)


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_hooks_of_tensors(register):
    t, other = leaf(), leaf()
    getattr(t, register)(print)
    assert runs(t) and runs(other, t) and not runs(other)


@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_hooks_of_nodes(register):
    t = leaf()
    node = node_of(t)
    assert not runs(t)
    getattr(node, register)(print)
    assert runs(t)
    del node
    gc.collect()
    assert not runs(t)  # the hooks were the node's


def test_other_objects_may_have_hooks():
    assert runs(1) and runs(leaf(), "a tensor")
    with pytest.raises(TypeError, match="a tuple of tensors, not list"):
        _C.gradients_run_code([leaf()])


def test_hooks_under_a_dispatch_mode():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode():
        t = leaf()
        t.register_hook(print)
        assert runs(t)


def test_a_removed_hook_leaves_an_empty_table():
    t, other = leaf(), torch.nn.Parameter(torch.ones(3))
    handles = [t.register_hook(print), t.register_hook(print), other.register_hook(print)]
    handles[0].remove()
    assert runs(t) and runs(other)
    handles[1].remove()
    handles[2].remove()
    assert not runs(t, other)
    t.register_post_accumulate_grad_hook(print)
    node_of(other).register_prehook(print)
    assert runs(t)
