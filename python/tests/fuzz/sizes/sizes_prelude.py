import math

import torch
import torch.nn.functional as F

import godynamo  # noqa: F401 programs break graphs with it

LOG, KEY = [], "k"


class Thing:
    """Keeps sizes in attributes, a list and a dict."""

    def __init__(self, size):
        self.size, self.sizes, self.table, self.t = size, [size, 2], {KEY: size}, torch.ones(2, 4)

    def note(self, t):
        self.sizes.append(t.shape[0])
        self.table[t.dim()] = t.numel()
        return len(self.sizes)

    def grown(self, t):
        self.size += t.shape[-1]
        return t * self.size


class Net(torch.nn.Module):
    """A layer of width 4 that reads its input's sizes."""

    def __init__(self):
        super().__init__()
        self.lin, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 4))
        self.kernel = torch.nn.Parameter(torch.ones(3, 4, 2) * 0.5)
        self.register_buffer("positions", torch.arange(48.0).reshape(12, 4))
        self.last, self.calls = None, 0

    def forward(self, t):
        rows = t.shape[0]
        u = self.norm(self.lin(t))
        if rows > 4:
            u = u / rows
        return u + self.positions[:rows] if rows <= 12 else u

    def counted(self, t):
        self.calls += 1
        return self.lin(t) * self.calls

    def remembers(self, t):
        if self.last != t.shape:
            self.last = t.shape
            LOG.append(tuple(t.shape))
        return t.flatten()


def heads(t, n):
    *lead, width = t.shape
    return t.view(*lead, n, width // n).transpose(-3, -2)


def causal(n):
    return torch.full((n, n), float("-inf")).triu(1)


def attention(t):
    length = t.shape[-2]
    scores = t @ t.transpose(-1, -2) / math.sqrt(t.shape[-1] + 1)
    return (scores + causal(length)).softmax(-1) @ t


def padded(t, size):
    missing = size - t.shape[-1]
    return F.pad(t, (0, missing)) if missing > 0 else t[..., :size]


def same(a, b):
    if a.shape == b.shape:
        return a * b
    if a.shape[-1] == b.shape[-1]:
        return a.sum() + b
    raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)}")


def sizes_of(*tensors):
    return [size for t in tensors for size in t.shape]


def windows(t, size):
    total = t.new_zeros(())
    for start in range(0, min(t.shape[0], 6), max(size, 1)):
        total = total + t[start : start + size].sum() * start
    return total.reshape(1)


def pieces(t, n):
    step = -(-t.shape[0] // max(n, 1))
    return [t[i * step : (i + 1) * step] for i in range(n)]


def checked(t, n):
    if t.numel() % max(n, 1) != 0:
        raise RuntimeError(f"{t.numel()} elements in {n} rows")
    return t.reshape(n, -1) if n > 0 else t.reshape(1, -1)
