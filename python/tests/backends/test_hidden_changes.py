"""In-place changes hidden from autograd, in graphs compiled by AOTAutograd: values, gradients, errors as in eager."""

from __future__ import annotations

import pytest
import torch

import godynamo


def between(w, x):
    y = w * x
    with torch.no_grad():
        w.add_(1)
    return (y * w).sum()


def a_view(w, x):
    y = w * x
    with torch.no_grad():
        w[:2].mul_(3)
    return (y * w).sum()


def out(w, x):
    y = w * x
    with torch.no_grad():
        torch.add(w, 1, out=w)
    return (y * w).sum()


def in_inference_mode(w, x):
    y = w * x
    with torch.inference_mode():
        w.add_(1)
    return (y * w).sum()


def saved_and_changed(w, x):
    with torch.no_grad():
        w.add_(1)
    y = w * w
    with torch.no_grad():
        w.mul_(2)
    return (y * w).sum()


def before_all(w, x):
    with torch.no_grad():
        w.add_(1)
    return (w * w * x).sum()


def data(w, x):
    y = w * x
    w.data.add_(1)
    return (y * w).sum()


def data_is_kept(w, x):
    d = w.data
    d.mul_(2)
    return (w * d).sum() + (d is not w.data)


def detached(w, x):
    w.detach().add_(1)
    return (w * x).sum()


def outcome(fn, leaf):
    """Return results, gradients and errors of two calls.

    Before each call, another graph saves the tensor to be changed.
    """
    p, x, seen = torch.ones(3, requires_grad=True), torch.arange(3.0), []
    for _ in range(2):
        w = p if leaf else p * 1.5
        outer = (w * w).sum()
        for root in (lambda w=w: fn(w, x), lambda outer=outer: outer):
            p.grad = None
            try:
                result = root()
                seen.append((result.tolist(), w.tolist()))
                result.backward(retain_graph=True)
                seen.append(p.grad.tolist())
            except RuntimeError as error:
                seen.append((str(error)[:40], w.tolist()))
    return seen


@pytest.mark.filterwarnings("ignore")  # anomaly mode warns about errors in the backward pass
@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "computed"])
@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
@pytest.mark.parametrize(
    "fn", [between, a_view, out, in_inference_mode, saved_and_changed, before_all, data, data_is_kept, detached]
)
def test_gradients_and_errors_of_a_hidden_change(fn, backend, leaf):
    assert outcome(godynamo.optimize(backend=backend)(fn), leaf) == outcome(fn, leaf)


def test_a_graph_that_ends_in_inference_mode():
    """The mode's guard object must not be created while AOTAutograd traces: it would save the dispatcher's state during
    tracing."""

    def fn(w, x):
        y = w * x
        with torch.inference_mode():
            godynamo.graph_break()
            x = x + 1
        return (y * w).sum(), x.is_inference()

    w, x = torch.ones(3, requires_grad=True), torch.arange(3.0)
    fast = godynamo.optimize(backend="aot_eager")(fn)
    for _ in range(2):
        got, want = fast(w, x), fn(w, x)
        assert torch.equal(got[0], want[0]) and got[1] and want[1]
    assert torch.equal(w + 1, torch.full((3,), 2.0))


def test_an_optimizer_step_by_hand_is_one_graph():
    def step(parameters, gradients):
        for p, g in zip(parameters, gradients, strict=True):
            with torch.no_grad():
                p.sub_(0.1 * g)

    parameters = [torch.ones(3, requires_grad=True) for _ in range(3)]
    fast = godynamo.optimize(backend="aot_eager")(step)
    fast(parameters, [torch.ones(3)] * 3)
    assert [p.tolist() for p in parameters] == [torch.full((3,), 0.9).tolist()] * 3
    assert len(godynamo.guards(fast)) == 1


@pytest.mark.parametrize("change", [lambda x: x.add_(1), lambda x: x[:, :1].add_(1)], ids=["itself", "a part"])
def test_a_leaf_that_is_a_view_must_not_change(change):
    leaf = torch.arange(4.0).reshape(1, 4).requires_grad_()  # a view of arange's result
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        change(leaf)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        godynamo.optimize(change, backend="aot_eager")(leaf)


def test_an_operation_that_raises_in_inference_mode_leaves_the_dispatcher_as_it_was() -> None:
    def f(x):
        with torch.inference_mode():
            return x.unbind(0)[0]

    optimized = godynamo.optimize(f, backend=lambda gm, _example_inputs: gm.forward)
    with pytest.raises(IndexError):
        optimized(torch.ones(0, 2))
    assert torch.equal(torch.ones(2) + 1, torch.full((2,), 2.0))  # failed, as did all later operations
