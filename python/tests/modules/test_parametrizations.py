"""Parametrizations, pruning and the functions of torch.nn.utils: row S003-31."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from modules_support import check

pytestmark = pytest.mark.row("S003-31")


def x(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (2, 4)), requires_grad=True)


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


def registered(m):
    parametrize.register_parametrization(m, "weight", Symmetric())
    return m


KINDS = {
    "weight_norm": lambda m: parametrizations.weight_norm(m, dim=0),
    "spectral_norm": lambda m: parametrizations.spectral_norm(m),
    "orthogonal": lambda m: parametrizations.orthogonal(m),
    "user's": registered,
    "old weight_norm": lambda m: nn.utils.weight_norm(m),
    "old spectral_norm": lambda m: nn.utils.spectral_norm(m),
    "l1 pruned": lambda m: prune.l1_unstructured(m, "weight", amount=0.5),
    "randomly pruned": lambda m: prune.random_structured(m, "weight", amount=0.5, dim=0),
    "pruned twice": lambda m: prune.ln_structured(prune.l1_unstructured(m, "weight", 0.2), "weight", 0.5, n=2, dim=0),
}
#: cases that break the graph: a hook stores a tensor in the module, then changes the module's buffers by ``out=``
SPLIT = {("old spectral_norm", True)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("kind", KINDS)
def test_parametrized(kind, training):
    def program(optimize):
        m = nn.Sequential(KINDS[kind](nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 2)).train(training)
        o = optimize(m)
        out = []
        for _ in range(3):
            y = o(x())
            y.sum().backward()
            out.append(y)
        return out, [p.grad for p in m.parameters()], m

    recorder = check(program)
    if (kind, training) not in SPLIT:
        assert recorder.breaks == {}
        assert recorder.graphs == 1


@pytest.mark.filterwarnings("ignore")
def test_parametrizations_removed_and_cached():
    def program(optimize):
        m = nn.Sequential(registered(nn.Linear(4, 4)), nn.Linear(4, 4))
        o = optimize(m)
        out = [o(x())]
        with parametrize.cached():
            out += [o(x()), o(x())]
        parametrize.remove_parametrizations(m[0], "weight")
        out.append(o(x()))
        prune.l1_unstructured(m[1], "bias", amount=2)
        out.append(o(x()))
        prune.remove(m[1], "bias")
        out.append(o(x()))
        m[0].weight = nn.Parameter(torch.eye(4))
        return out, o(x()), m

    check(program)


@pytest.mark.parametrize("how", ["clip_grad_norm_", "clip_grad_value_", "get_total_norm"])
def test_gradients_are_clipped(how):
    def program(optimize):
        m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
        o = optimize(m)

        def clip(parameters):
            if how == "clip_grad_norm_":
                return nn.utils.clip_grad_norm_(parameters, 0.1)
            if how == "clip_grad_value_":
                return nn.utils.clip_grad_value_(parameters, 0.01)
            return nn.utils.get_total_norm([p.grad for p in parameters])

        fast = optimize(clip)
        out = []
        for _ in range(2):
            o(x()).sum().backward()
            out.append(fast(list(m.parameters())))
        return out, [p.grad for p in m.parameters()]

    check(program)


def test_vectors_and_functional_call():
    def program(optimize):
        m = nn.Linear(4, 3)

        def through(m, given):
            vector = nn.utils.parameters_to_vector(m.parameters())
            return vector * 2, torch.func.functional_call(m, {"weight": m.weight * 2}, (given,))

        def back(m, vector):
            nn.utils.vector_to_parameters(vector, m.parameters())
            return m.weight.sum()

        vector, y = optimize(through)(m, x())
        return vector, y, optimize(back)(m, vector.detach() + 1), m

    check(program)


def test_sequences_are_packed_and_padded():
    def program(optimize):
        lstm = nn.LSTM(3, 4, batch_first=True)

        def run(given, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(given, lengths, batch_first=True, enforce_sorted=False)
            out, (h, c) = lstm(packed)
            padded, sizes = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
            return padded, sizes, h, c

        fast = optimize(run)
        o = optimize(lstm)
        seqs = [torch.randn(n, 3) for n in (4, 2, 3)]
        padded = nn.utils.rnn.pad_sequence(seqs, batch_first=True)
        packed = nn.utils.rnn.pack_sequence(seqs, enforce_sorted=False)
        out = [fast(padded, torch.tensor([4, 2, 3])), fast(padded, torch.tensor([3, 2, 4])), o(packed)]
        for sizes in ((3, 2), (4, 4, 1, 1), (2,), (5, 1)):
            out.append(o(nn.utils.rnn.pack_sequence([torch.randn(n, 3) for n in sizes])))
        return out, nn.utils.rnn.unpad_sequence(padded, torch.tensor([4, 2, 3]), batch_first=True)

    check(program)


def test_conv_and_batch_norm_are_fused():
    def program(optimize):
        conv, norm = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3).eval()
        fused = nn.utils.fuse_conv_bn_eval(conv, norm)
        skipped = nn.utils.skip_init(nn.Linear, 2, 2)
        return optimize(fused)(x(1, 2, 5, 5)), optimize(nn.Sequential(conv, norm))(x(1, 2, 5, 5)), skipped.weight.shape

    check(program)
