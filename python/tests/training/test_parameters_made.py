"""Parameters and modules that the frame makes: nn.Parameter(t), nn.Linear(3, 2)(x)."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import godynamo

W = nn.Parameter(torch.ones(3))
KEPT: list[torch.Tensor] = []


def shown(x):
    if isinstance(x, torch.Tensor):
        return type(x), x.requires_grad, x.is_leaf, x.detach().clone(), x.grad if x.is_leaf else None
    if isinstance(x, (list, tuple)):
        return tuple(map(shown, x))
    if isinstance(x, nn.Module):
        return type(x), [(k, shown(v)) for k, v in x.named_parameters()], list(x._parameters), x.training
    return x


def a_parameter(x):
    q = nn.Parameter(x)
    kinds = type(q) is nn.Parameter, isinstance(q, nn.Parameter), isinstance(q, torch.Tensor), type(q).__name__
    return q, q is x, kinds, q.is_leaf, q.requires_grad


def frozen(x):
    q, r = nn.Parameter(x, requires_grad=False), nn.Parameter(x * 2, False)
    return q, r, q.requires_grad, (q * 2).requires_grad


def same_memory(x):
    q = nn.Parameter(x)
    with torch.no_grad():
        q.add_(1)
    return x.clone(), q, q.data_ptr() == x.data_ptr()


def of_a_parameter(x):
    q = nn.Parameter(W)
    return q, q is W, q.data_ptr() == W.data_ptr(), x + 1


def without_data(x):
    return nn.Parameter(), nn.Parameter(requires_grad=False), x + 1


def trained(x):
    q, seen = nn.Parameter(torch.zeros(3)), []
    for _ in range(3):
        ((q - x.detach()) ** 2).sum().backward()
        with torch.no_grad():
            q -= 0.1 * q.grad
        seen.append(q.grad.clone())
        q.grad = None
    return q, seen


def optimized(x):
    q = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([q], lr=0.1)
    ((q - x.detach()) ** 2).sum().backward()
    optimizer.step()
    return q


def a_layer(x):
    m = nn.Linear(3, 2)
    return m, m(x)


def a_trained_module(x):
    m = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1, bias=False))
    m(x).sum().backward()
    return [p.grad for p in m.parameters()], m


def attributes(x):
    q = nn.Parameter(x * 1)
    q.tag = "a"
    return q.tag, hasattr(nn.Parameter(q), "tag"), q


def keys(x):
    q = nn.Parameter(x * 1)
    d, several = {q: 1}, nn.ParameterList([q, W])
    return d[q], q in d, len(several), several[0] is q


def of_ints(x):
    try:
        return nn.Parameter(torch.ones(3, dtype=torch.int64)), x
    except RuntimeError as e:
        return str(e), x + 1


def initialized(x):
    q = nn.Parameter(torch.empty(3, 4))
    nn.init.xavier_uniform_(q)
    nn.init.normal_(q[0].data, std=2.0)
    nn.init.constant_(q[1].data, 2.0)
    return q, x + 1


def without_gradients(x):
    with torch.no_grad():
        q = nn.Parameter(x * 1)
        y = q * 2
    return q, y.requires_grad, q.requires_grad


def differentiated(x):
    q = nn.Parameter(x.detach() * 1)
    return torch.autograd.grad((q * q * W).sum(), q), q.grad


def kept(x):
    q = nn.Parameter(x * 1)
    KEPT.append(q)
    KEPT.append(q * 2)
    return KEPT[-2] is q, KEPT[0].grad


ONE_GRAPH = [
    a_parameter,
    frozen,
    same_memory,
    of_a_parameter,
    without_data,
    trained,
    optimized,
    a_layer,
    a_trained_module,
]
ONE_GRAPH += [attributes, keys, of_ints, initialized, without_gradients, differentiated, kept]


def across_a_break(x):
    q = nn.Parameter(x * 1)
    y = q * 2
    godynamo.graph_break()
    y.sum().backward()
    return q, q.grad, type(q)


def perhaps_the_parameter(x):
    q = nn.Parameter(x * 1)
    c, e, views = q.contiguous(), q.to(torch.float32), (q.view(3), q.detach(), q.data, q.clone())
    return type(c).__name__, type(e).__name__, [type(v).__name__ for v in views], c is q, [v.is_leaf for v in views]


def arguments():
    leaf = torch.ones(3, requires_grad=True)
    return [torch.arange(3.0), leaf, leaf * 2, nn.Parameter(torch.ones(3)), torch.ones(6)[::2], torch.ones(3).double()]


def outcomes(f):
    KEPT.clear()
    out = []
    for x in arguments() + arguments():
        torch.manual_seed(3)
        try:
            out.append(repr((shown(f(x)), shown(x))))
        except RuntimeError as e:
            out.append(str(e))
    return out


@pytest.mark.parametrize("f", [*ONE_GRAPH, across_a_break, perhaps_the_parameter])
def test_parameters_are_eagers(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert outcomes(godynamo.optimize(f)) == outcomes(f)


@pytest.mark.parametrize("f", ONE_GRAPH)
def test_one_graph(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explained = godynamo.explain(f)(torch.ones(3))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons
