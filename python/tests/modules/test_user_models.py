"""Models as users write them, each captured in one graph: row S003-48."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from modules_support import judged

pytestmark = pytest.mark.row("S003-48")


class BasicBlock(nn.Module):
    """A ResNet block, as in torchvision."""

    def __init__(self, width_in=4, width=8, stride=2):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.downsample = nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class GPTBlock(nn.Module):
    """nanoGPT's block, with a mask in a buffer."""

    def __init__(self, width=16, heads=4, length=8):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.ModuleDict({"fc": nn.Linear(width, 4 * width), "proj": nn.Linear(4 * width, width)})
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = self.drop(F.softmax(att, dim=-1)) @ v
        x = x + self.drop(self.proj(y.transpose(1, 2).contiguous().view(b, t, c)))
        return x + self.drop(self.mlp.proj(F.gelu(self.mlp.fc(self.ln_2(x)))))


class LanguageModel(nn.Module):
    """An LSTM over words that carries its state from call to call."""

    def __init__(self, words=20, width=8, layers=2):
        super().__init__()
        self.drop, self.encoder = nn.Dropout(0.2), nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=0.2)
        self.decoder = nn.Linear(width, words)
        self.decoder.weight = self.encoder.weight
        self.layers, self.width, self.words = layers, width, words

    def init_hidden(self, size):
        weight = next(self.parameters())
        return weight.new_zeros(self.layers, size, self.width), weight.new_zeros(self.layers, size, self.width)

    def forward(self, ids, hidden=None):
        if hidden is None:
            hidden = self.init_hidden(ids.size(1))
        out, hidden = self.rnn(self.drop(self.encoder(ids)), hidden)
        decoded = self.decoder(self.drop(out)).view(-1, self.words)
        return F.log_softmax(decoded, dim=1), tuple(h.detach() for h in hidden)


class VAE(nn.Module):
    """Reparametrized sampling, and the loss inside."""

    def __init__(self, width=12, latent=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, 8), nn.ReLU())
        self.mean, self.logvar = nn.Linear(8, latent), nn.Linear(8, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 8), nn.ReLU(), nn.Linear(8, width), nn.Sigmoid())

    def reparameterize(self, mean, logvar):
        if self.training:
            std = torch.exp(0.5 * logvar)
            return mean + torch.randn_like(std) * std
        return mean

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.mean(h), self.logvar(h)
        out = self.decoder(self.reparameterize(mean, logvar))
        kld = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
        return out, F.binary_cross_entropy(out, x.sigmoid(), reduction="sum") + kld


class DoubleConv(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """Two levels with skip connections; padding makes the sizes match."""

    def __init__(self):
        super().__init__()
        self.downs = nn.ModuleList([DoubleConv(1, 4), DoubleConv(4, 8)])
        self.middle = DoubleConv(8, 16)
        self.ups = nn.ModuleList([nn.ConvTranspose2d(16, 8, 2, 2), nn.ConvTranspose2d(8, 4, 2, 2)])
        self.convs = nn.ModuleList([DoubleConv(16, 8), DoubleConv(8, 4)])
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, conv, skip in zip(self.ups, self.convs, reversed(skips)):
            x = up(x)
            dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
            x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = conv(torch.cat([skip, x], dim=1))
        return self.out(x)


class MixtureOfExperts(nn.Module):
    """Soft routing over modules from a list comprehension, with an auxiliary loss in an attribute."""

    def __init__(self, width=8, experts=3):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.SiLU()) for _ in range(experts))
        self.aux = None

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        self.aux = (weights.mean(0) ** 2).sum()
        out = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (out * weights.unsqueeze(1)).sum(-1) + self.aux


MODELS = {
    "resnet block": (BasicBlock, (2, 4, 8, 8)),
    "gpt block": (GPTBlock, (2, 6, 16)),
    "vae": (VAE, (4, 12)),
    "u-net": (UNet, (1, 1, 10, 12)),
    "mixture of experts": (MixtureOfExperts, (4, 8)),
}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODELS)
def test_model(name, training):
    cls, shape = MODELS[name]

    def make():
        torch.manual_seed(0)
        return cls().train(training)

    assert judged(make, torch.randn(*shape, requires_grad=True)).ran


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("given", [False, True], ids=["no state", "a state"])
def test_language_model(training, given):
    def make():
        torch.manual_seed(0)
        return LanguageModel().train(training)

    hidden = [(torch.randn(2, 3, 8), torch.randn(2, 3, 8))] if given else []
    assert judged(make, torch.randint(0, 20, (5, 3)), *hidden).ran
