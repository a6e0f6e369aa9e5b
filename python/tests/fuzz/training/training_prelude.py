import copy

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

LOG = []


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4)
        self.drop = torch.nn.Dropout(0.2)

    def forward(self, x):
        return self.last(self.drop(self.first(x).relu()))


class Normed(torch.nn.Module):
    """Has buffers that change, an unused layer and a number as a parameter."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4, bias=False)
        self.norm, self.unused = torch.nn.BatchNorm1d(6), torch.nn.Linear(2, 2)
        self.scale = torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        return self.last(F.gelu(self.norm(self.first(x)))) * self.scale


class Tied(torch.nn.Module):
    """One weight is used twice, once transposed."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.last.weight = self.first.weight

    def forward(self, x):
        return self.last(self.first(x).tanh()) + x @ self.first.weight


class Shared(torch.nn.Module):
    """Parameters that share memory, are not contiguous, or have no elements."""

    def __init__(self):
        super().__init__()
        whole = torch.randn(8, 4) * 0.3
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.first.weight, self.last.weight = torch.nn.Parameter(whole[:4]), torch.nn.Parameter(whole[4:].t())
        self.empty = torch.nn.Parameter(torch.zeros(0))

    def forward(self, x):
        return self.last(self.first(x).sigmoid()) + self.empty.sum()


class Mixed(torch.nn.Module):
    """Parameters of two dtypes and of many dimensions."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4).double()
        self.kernel = torch.nn.Parameter(torch.randn(2, 1, 3) * 0.2)

    def forward(self, x):
        folded = F.conv1d(self.first(x)[:, None], self.kernel, padding=1).mean(1)
        return self.last(folded.double()).float()


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.GRU(4, 3, batch_first=True), torch.nn.Linear(3, 4)

    def forward(self, x):
        return self.last(self.first(x[:, None].repeat(1, 2, 1))[0][:, -1])


class Words(torch.nn.Module):
    """An embedding, whose gradient may be sparse."""

    def __init__(self, sparse=False):
        super().__init__()
        self.first, self.last = torch.nn.Embedding(5, 4, sparse=sparse), torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.first(x.abs().long().clamp(0, 4)).mean(1))


class State:
    """What a step reads and changes."""

    def __init__(self, model, optimizer, scheduler=None, scaler=False):
        self.model = model
        self.opt = optimizer(model)
        self.sched = scheduler(self.opt) if scheduler is not None else None
        self.scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3, enabled=scaler)
        self.mean = copy.deepcopy(model)
        self.total, self.high, self.losses = torch.zeros(()), 0, []

    def loss(self, out, y):
        return F.mse_loss(out, y)

    def params(self):
        return [p for p in self.model.parameters() if p.grad is not None]

    def averaged(self, decay=0.9):
        with torch.no_grad():
            for mean, p in zip(self.mean.parameters(), self.model.parameters()):
                mean.lerp_(p, 1 - decay)


@torch.no_grad()
def descend(params):
    for p in params:
        p.add_(p.grad, alpha=-0.05)


def penalty(model):
    return sum((p * p).sum() for p in model.parameters()) * 0.01


def logged_hook(name):
    def hook(grad):
        LOG.append(name)
        return grad * 0.5

    return hook


def counted_hook(module, args, output):
    LOG.append(type(module).__name__)


def finite(loss):
    if not torch.isfinite(loss):
        raise FloatingPointError("the loss is not finite")
    return loss
