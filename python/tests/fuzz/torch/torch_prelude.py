import torch.utils.checkpoint


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, k=2.0):
        ctx.save_for_backward(t)
        ctx.k = k
        return t * k

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * ctx.k + t.sum() * 0.5, None


class Part(torch.nn.Module):
    """A layer; the layers are equal until the program changes one."""

    def __init__(self, width, p):
        super().__init__()
        self.lin, self.norm, self.drop = torch.nn.Linear(width, width), torch.nn.LayerNorm(width), torch.nn.Dropout(p)
        self.register_buffer("seen", torch.zeros(width))
        self.scale, self.shapes, self.options = 0.5, False, {"shift": 0.25, "again": 1}

    def forward(self, t, other=None, *, k=1):
        u = self.norm(t) * self.scale + self.options["shift"]
        for _ in range(self.options["again"]):
            u = self.lin(u).tanh()
        if self.shapes:
            u = u / u.shape[0]
        if other is not None:
            u = u - other
        self.seen.add_(u.detach().float().mean(0))
        return t + self.drop(u) * k


class Net(torch.nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.lin = torch.nn.Linear(width, width)
        self.drop = torch.nn.Dropout(p)
        self.norm = torch.nn.BatchNorm1d(width)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width)])
        self.tied = self.layers[0]
        self.parts = torch.nn.ModuleList(Part(width, p) for _ in range(5))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(width))
        self.scale = 1.5
        self.kept = None
        self.calls = 0

    def forward(self, t):
        for layer in self.layers:
            t = layer(t)
        return self.drop(t) * self.scale

    def counted(self, t):
        self.steps += 1
        self.calls += 1
        return self.lin(t)

    def stacked(self, t, *others):
        for i, part in enumerate(self.parts):
            t = part(t, *others[:1], k=1 + i // 3)
        return t

    def moving(self, t):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(t.detach().float().mean(0), alpha=0.1)
        return t - self.mean

    def keep(self, t):
        self.kept = t
        return t

    @torch.no_grad()
    def frozen(self, t):
        return self.lin(t)


def half_in_place(t):
    t[:1] *= 2
    return t


def doubled_row(t):
    return t * 2 if t.shape[0] > 1 else t


def changed(t):
    t.add_(1)
    return t.sum()


def twice(f, t):
    return f(f(t))


def shown(hook_log, k):
    def hook(g):
        hook_log.append(k)
        return g * k

    return hook


def observed_hook(module, args, output):
    LOG.append(type(module).__name__)


def scaling_hook(module, args, output):
    return output * 2


def clear_hooks(module):
    for one in module.modules():
        one._forward_hooks.clear()


def pairs(t):
    yield t
    yield t * 2
    yield t.detach()
