"""Where a backend's result differs from eager mode, torch.compile has the same result, or both break the graph."""

from __future__ import annotations

import pytest
import torch

import godynamo
from godynamo import exc, utils
from harness.training import STEPS, Transformer, batch, loss_of

LAYERS = {"RNN": torch.nn.RNN, "LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU}


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", LAYERS)
def test_recurrent_layers_are_eagers(kind, dropout):
    def run(optimize):
        torch.manual_seed(0)
        m = LAYERS[kind](4, 5, num_layers=2, dropout=dropout)
        f = optimize(lambda x: m(x.sin())[0] * 2)
        outputs = []
        for _ in range(2):
            torch.manual_seed(1)
            y = f(torch.ones(3, 2, 4))
            y.sum().backward()
            outputs.append(y.detach())
        return [*outputs, *(p.grad for p in m.parameters()), torch.rand(1)]

    expected = run(lambda f: f)
    for found in (
        run(lambda f: godynamo.optimize(f, backend="aot_eager")),
        run(lambda f: torch.compile(f, backend="aot_eager")),
    ):
        assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_only_what_would_be_another_is_split():
    x = torch.ones(3, 2, 4)
    gru = torch.nn.GRU(4, 5, num_layers=2, dropout=0.5)
    godynamo.optimize(gru.eval(), backend="aot_eager", nopython=True)(x)
    godynamo.optimize(torch.nn.GRU(4, 5), backend="aot_eager", nopython=True)(x)
    godynamo.optimize(torch.nn.LSTM(4, 5), backend=lambda gm, example_inputs: gm.forward, nopython=True)(x)
    with pytest.raises(exc.Unsupported, match="lstm"):
        godynamo.optimize(torch.nn.LSTM(4, 5), backend="aot_eager", nopython=True)(x)


def adamw(optimize, eps):
    """Train for twenty steps; return the parameters by name, and the first gradients."""
    torch.manual_seed(0)
    model = Transformer(layers=1).eval()
    opt = torch.optim.AdamW(model.parameters(), 1e-2, amsgrad=True, eps=eps)
    forward = optimize(model) if optimize else model
    gradients = {}
    for i in range(STEPS):
        opt.zero_grad()
        loss_of(forward, batch(i)).backward()
        gradients = gradients or {n: p.grad.clone() for n, p in model.named_parameters()}
        opt.step()
    return {n: p.detach() for n, p in model.named_parameters()}, gradients


def test_adamw_magnifies_rounding_where_a_gradient_is_zero():
    """Attention ignores the keys' bias, so the bias's gradient is only rounding error.

    Adam divides it by its own size.
    """
    ours = lambda m: godynamo.optimize(m, backend="inductor")  # noqa: E731
    bias = "blocks.0.attention.in_proj_bias"
    eager, gradients = adamw(None, 1e-8)
    keys = gradients[bias][16:32].abs()
    assert keys.max() < 1e-4 * gradients[bias][32:].abs().min()
    found = adamw(ours, 1e-8)[0]
    for name, p in found.items():
        if name == bias:
            p, expected = torch.cat([p[:16], p[32:]]), torch.cat([eager[name][:16], eager[name][32:]])
        else:
            expected = eager[name]
        torch.testing.assert_close(p, expected, rtol=1e-5, atol=1e-5)
    torchs = adamw(lambda m: torch.compile(m, backend="inductor"), 1e-8)[0]
    assert all(torch.equal(p, torchs[name]) for name, p in found.items())
    eager, found = adamw(None, 1e-4)[0], adamw(ours, 1e-4)[0]
    for name, p in found.items():
        torch.testing.assert_close(p, eager[name], rtol=1e-5, atol=1e-5)
    assert not utils.counters["stats"]["graphs_that_raise"]
