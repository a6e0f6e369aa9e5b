"""Models forward and backward under every kind of backend: an MLP and an attention block as transformers writes them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import godynamo
from godynamo import _C, utils

#: flag of an entry that runs the user's own code (golib.h)
RUN_ORIGINAL = 1


class MLP(nn.Module):
    """(Linear + ReLU) x 4."""

    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())))

    def forward(self, x):
        return self.layers(x)


class AttentionConfig:
    """What the block below is built from, as a plain attribute object."""

    def __init__(self, hidden_size=32, heads=4, dropout=0.1, sdpa=False):
        self.hidden_size = hidden_size
        self.num_attention_heads = heads
        self.attention_dropout = dropout
        self.use_sdpa = sdpa


class SelfAttention(nn.Module):
    """Multi-head self-attention with separate q, k, v and output projections and an additive mask."""

    def __init__(self, config):
        super().__init__()
        if config.hidden_size % config.num_attention_heads:
            raise ValueError("heads do not divide the hidden size")
        self.config = config
        self.num_heads = config.num_attention_heads
        self.head_dim = config.hidden_size // self.num_heads
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.k_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.out_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = config.attention_dropout

    def _shape(self, tensor, seq_len, bsz):
        return tensor.view(bsz, seq_len, self.num_heads, self.head_dim).transpose(1, 2).contiguous()

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        bsz, tgt_len, _ = hidden_states.size()
        query = self._shape(self.q_proj(hidden_states), tgt_len, bsz)
        key = self._shape(self.k_proj(hidden_states), -1, bsz)
        value = self._shape(self.v_proj(hidden_states), -1, bsz)
        weights = None
        if self.config.use_sdpa and not output_attentions:
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, dropout_p=0.0)
        else:
            scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(self.head_dim)
            if attention_mask is not None:
                if attention_mask.size() != (bsz, 1, tgt_len, tgt_len):
                    raise ValueError(f"Attention mask should be of size {(bsz, 1, tgt_len, tgt_len)}")
                scores = scores + attention_mask
            weights = F.softmax(scores, dim=-1)
            weights = F.dropout(weights, p=self.dropout, training=self.training)
            context = torch.matmul(weights, value)
        context = context.transpose(1, 2).reshape(bsz, tgt_len, self.num_heads * self.head_dim)
        return self.out_proj(context), weights if output_attentions else None


class Block(nn.Module):
    """Pre-norm attention and feed-forward with residuals; takes and returns what a transformers layer does."""

    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size)
        self.attn = SelfAttention(config)
        self.ln_2 = nn.LayerNorm(config.hidden_size)
        self.fc_1 = nn.Linear(config.hidden_size, 2 * config.hidden_size)
        self.act = nn.GELU(approximate="tanh")
        self.fc_2 = nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.resid_dropout = nn.Dropout(config.attention_dropout)

    def forward(self, hidden_states, attention_mask=None, output_attentions=False):
        residual = hidden_states
        hidden_states, weights = self.attn(
            self.ln_1(hidden_states), attention_mask=attention_mask, output_attentions=output_attentions
        )
        hidden_states = self.resid_dropout(hidden_states)
        hidden_states = residual + hidden_states
        hidden_states = hidden_states + self.resid_dropout(self.fc_2(self.act(self.fc_1(self.ln_2(hidden_states)))))
        outputs = (hidden_states,)
        if output_attentions:
            outputs += (weights,)
        return outputs


class Counting:
    """A custom callable: runs graphs as they are, keeps them."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        self.graphs.append(gm)
        return gm.forward


def mask_for(batch, length):
    """A causal additive mask."""
    return torch.full((length, length), float("-inf")).triu(1).expand(batch, 1, length, length).contiguous()


def mlp_case():
    return MLP(), (torch.randn(3, 16),), {}


def attention_case(**config):
    return Block(AttentionConfig(**config)), (torch.randn(2, 5, 32),), {"attention_mask": mask_for(2, 5)}


CASES = {
    "mlp": mlp_case,
    "attention by matmul": lambda: attention_case(),
    "attention by sdpa": lambda: attention_case(sdpa=True),
}

#: two gemms in another order differ in the last bits; a backend that only re-runs torch's operations may not
EXACT = {"eager", "custom"}
LIGHT = ["eager", "aot_eager", "custom"]
BACKENDS = [*LIGHT, "inductor"]


def run(model, args, kwargs):
    """Outputs, gradient of the input and of every parameter of one forward and backward, from one seed."""
    args = [a.clone().requires_grad_() for a in args]
    model.zero_grad(set_to_none=True)
    torch.manual_seed(7)
    outputs = model(*args, **kwargs)
    tensors = outputs if isinstance(outputs, tuple) else (outputs,)
    sum((t * torch.arange(t.shape[-1])).sum() for t in tensors).backward()
    grads = {name: p.grad for name, p in model.named_parameters()}
    return outputs, [a.grad for a in args], grads


def close(actual, expected, backend, grads=False):
    # The derived formulas of aot_autograd may add in another order even where the forward operations are the same.
    exact = backend in EXACT or (backend == "aot_eager" and not grads)
    torch.testing.assert_close(actual, expected, **({"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}))


def assert_translated_once(optimized):
    """One entry, which runs transformed code: right results alone would hide a fallback to CPython."""
    assert [entry.flags & RUN_ORIGINAL for entry in godynamo.cache_entries(optimized)] == [0]
    counters = _C.counters()
    assert {name: counters[name] for name in ("translations", "translated", "internal_errors")} == {
        "translations": 1,
        "translated": 1,
        "internal_errors": 0,
    }


def make_backend(name):
    return Counting() if name == "custom" else name


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_forward_and_backward_equal_eagers(case, backend, training):
    torch.manual_seed(0)
    model, args, kwargs = CASES[case]()
    if backend == "inductor":
        # Its dropout draws other numbers than eager's by design (config.fallback_random), so none is left to draw.
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            if isinstance(module, SelfAttention):
                module.dropout = 0.0
    model.train(training)
    expected = run(model, args, kwargs)
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(3):
        outputs, inputs, grads = run(optimized, args, kwargs)
        assert type(outputs) is type(expected[0])
        close(outputs, expected[0], backend)
        close(inputs, expected[1], backend, grads=True)
        close(grads, expected[2], backend, grads=True)
    assert not utils.counters["graph_break"]
    assert_translated_once(optimized)


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_train_and_eval_are_told_apart(case, backend):
    """Switching the mode back and forth takes one translation a mode at most, and dropout acts in train() only."""
    torch.manual_seed(0)
    model, args, kwargs = CASES[case]()
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for round_ in range(3):
        for training in (True, False):
            optimized.train(training)
            assert model.training is training
            expected = run(model, args, kwargs)
            actual = run(optimized, args, kwargs)
            close(actual[0], expected[0], backend)
            close(actual[2], expected[2], backend, grads=True)
        if round_ == 0:
            after_first = _C.counters()["translations"]
    assert _C.counters()["translations"] == after_first <= 2
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
def test_no_grad_inference_and_another_batch(backend):
    torch.manual_seed(0)
    model, args, kwargs = attention_case()
    model.eval()
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(2):
        for batch in (2, 3, 1, 4):
            x, mask = torch.randn(batch, 5, 32), mask_for(batch, 5)
            for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
                with mode():
                    actual, expected = optimized(x, attention_mask=mask)[0], model(x, attention_mask=mask)[0]
                    assert actual.requires_grad == expected.requires_grad
                    close(actual, expected, backend)
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
def test_other_arguments_take_another_path(backend):
    """A default, a keyword and an optional tensor: each has its own structure of outputs."""
    torch.manual_seed(0)
    model, args, kwargs = attention_case(dropout=0.0)
    optimized = godynamo.optimize(model, backend=make_backend(backend))
    for _ in range(2):
        for call in ({}, kwargs, {**kwargs, "output_attentions": True}, {"output_attentions": True}):
            actual, expected = optimized(*args, **call), model(*args, **call)
            assert len(actual) == len(expected)
            close(actual, expected, backend)
    with pytest.raises(ValueError, match=r"^Attention mask should be of size \(2, 1, 5, 5\)$"):
        optimized(*args, attention_mask=mask_for(3, 5))
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_a_training_loop_ends_with_eagers_weights(case, backend):
    """Ten steps of SGD: the parameters change in place under the translated code, which must read them anew."""
    results = []
    for optimized in (False, True):
        torch.manual_seed(0)
        model, args, kwargs = CASES[case]()
        callable_ = godynamo.optimize(model, backend=make_backend(backend)) if optimized else model
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(10):
            torch.manual_seed(step)
            optimizer.zero_grad()
            outputs = callable_(*args, **kwargs)
            tensor = outputs[0] if isinstance(outputs, tuple) else outputs
            tensor.square().mean().backward()
            optimizer.step()
        results.append({name: p.detach().clone() for name, p in model.named_parameters()})
        if optimized:
            assert_translated_once(callable_)
    close(results[1], results[0], backend, grads=True)


def test_a_custom_backend_gets_one_graph_a_model():
    for case in CASES.values():
        model, args, kwargs = case()
        backend = Counting()
        godynamo.optimize(model, backend=backend, nopython=True)(*args, **kwargs)
        assert len(backend.graphs) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_over_a_model(backend):
    """The loss function is optimized, the model is one of its globals."""
    torch.manual_seed(0)
    model, (x,), kwargs = mlp_case()

    def loss(x, target):
        return F.mse_loss(model(x), target) + 0.1 * x.abs().mean()

    target = torch.randn(3, 16)
    expected = loss(x, target)
    expected.backward()
    expected_grads = {name: p.grad for name, p in model.named_parameters()}
    optimized = godynamo.optimize(loss, backend=make_backend(backend))
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        actual = optimized(x, target)
        actual.backward()
        close(actual, expected, backend)
        close({name: p.grad for name, p in model.named_parameters()}, expected_grads, backend, grads=True)
    assert_translated_once(optimized)
