"""What programs read of a tensor's history and memory: is_leaf, grad_fn, _version, data_ptr, storages."""

from __future__ import annotations

import warnings

import pytest
import torch

import godynamo

W = torch.nn.Parameter(torch.ones(3))
PLAIN = torch.ones(3)
with torch.inference_mode():
    INFERENCE = torch.ones(3)


def leaves(x):
    y = x * W
    z = y.detach()
    v = z.view(3)
    v.requires_grad_()
    u = v * 2
    with torch.no_grad():
        n, m = x * W, W.view(3)
    a, b = torch.ones(3), torch.zeros(3)
    a.add_(W)
    c = b.view(3)
    c.add_(W)
    tensors = (x, y, z, v, u, n, m, a, b, c, W, PLAIN, W.data, torch.relu(PLAIN))
    return [t.is_leaf for t in tensors], [t.grad_fn is None for t in tensors]


def operands(x):
    return x.contiguous().is_leaf, x.to(torch.float32).is_leaf, W.T.is_leaf, x.contiguous().grad_fn is None


def in_place(x):
    x.mul_(2)
    first = x.is_leaf, x.requires_grad, x.grad_fn is None
    x.add_(W)
    return first, x.is_leaf, x.requires_grad, x.grad_fn is None, x._version


def history(x):
    y = x * W
    return y.grad_fn.name(), f"<{y.grad_fn.name()}>", bool(y.grad_fn), y.output_nr, y.retains_grad, x.retains_grad


def versions(x):
    a = x._version
    x.add_(0)
    y = x * 2
    y.zero_()
    return x._version - a, y._version, a, torch.ones(2) * a


def memory(x):
    s = x.untyped_storage()
    numbers = s.nbytes() + x.storage_offset(), x[1:].storage_offset(), x[1:].data_ptr() - x.data_ptr()
    return numbers, s.data_ptr() == x.data_ptr() - 4 * x.storage_offset(), type(s.nbytes()), s.size()


def inference(x):
    with torch.inference_mode():
        y = x * 2
        return y.is_leaf, y.requires_grad


ONE_GRAPH = [leaves, in_place, history, versions, memory, inference]


def node_itself(x):
    y = x * W
    g = y.grad_fn
    return type(g).__name__, g is y.grad_fn, [type(q[0]).__name__ for q in g.next_functions]


def node_across_a_break(x):
    y = x * W
    g = y.grad_fn
    godynamo.graph_break()
    return type(g).__name__, y.grad_fn is g, y + 1


def storage_across_a_break(x):
    d = {"s": x.untyped_storage()}
    godynamo.graph_break()
    return d["s"].nbytes(), d["s"]._cdata == x.untyped_storage()._cdata, len(d["s"])


def handler(x):
    try:
        return x._version
    except RuntimeError as e:
        return str(e)


def branch(x):
    return x + 1 if x._version == 0 else x - 1


def arguments():
    return [
        torch.ones(3),
        torch.ones(3, requires_grad=True),
        torch.ones(3, requires_grad=True) * 2,
        torch.ones(6)[1:4],
        torch.nn.Parameter(torch.ones(3)),
        INFERENCE,
        torch.ones(3).add_(1),
    ]


def outcome(f, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return repr(f(x))
        except RuntimeError as e:
            return str(e)


@pytest.mark.parametrize(
    "f", [*ONE_GRAPH, operands, node_itself, node_across_a_break, storage_across_a_break, handler, branch]
)
def test_answers_are_eagers(f):
    compiled = godynamo.optimize(f)
    for _ in range(2):
        for a, b in zip(arguments(), arguments(), strict=True):
            assert outcome(compiled, a) == outcome(f, b)


@pytest.mark.parametrize("f", ONE_GRAPH)
def test_one_graph(f):
    explained = godynamo.explain(f)(torch.ones(3))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons
