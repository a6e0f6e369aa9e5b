"""Models that tests run under every kind of backend: an MLP, and an attention block in the style of transformers."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """(Linear + ReLU) x 4."""

    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())))

    def forward(self, x):
        return self.layers(x)


class AttentionConfig:
    """The settings of the block below, as a plain attribute object."""

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
    """Pre-norm attention and feed-forward with residuals; has the signature of a transformers layer."""

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
    """A custom callable that runs graphs unchanged and keeps them."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        self.graphs.append(gm)
        return gm.forward


def mask_for(batch, length):
    """Return a causal additive mask."""
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

#: compared exactly: these backends only rerun torch's operations; gemms in another order differ in the last bits
EXACT = {"eager", "custom"}
LIGHT = ["eager", "aot_eager", "custom"]
BACKENDS = [*LIGHT, "inductor"]


def close(actual, expected, backend, grads=False):
    # The derived formulas of aot_autograd may add in another order even if the forward operations are the same.
    exact = backend in EXACT or (backend == "aot_eager" and not grads)
    torch.testing.assert_close(actual, expected, **({"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}))


def make_backend(name):
    return Counting() if name == "custom" else name
