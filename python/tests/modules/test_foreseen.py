"""Queries of tensor data in torch's code are computed while translating and by a guard: rows S003-10, 16, 18, 24."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence
from torch.utils._pytree import tree_leaves

import godynamo
from godynamo.testing import CompileCounter
from modules_support import check


def causal(size):
    return nn.Transformer.generate_square_subsequent_mask(size)


@pytest.mark.row("S003-18")
def test_a_mask_that_changes_between_calls_and_in_place():
    def program(optimize):
        m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)
        o = optimize(m)
        mask, x = causal(4), torch.randn(4, 2, 8)
        out = [o(x, mask), o(x, torch.zeros(4, 4)), o(x, causal(4)), o(x, causal(4) * 0.5)]
        mask[0, 3] = 0.0  # no longer causal
        out.append(o(x, mask))
        mask.copy_(causal(4))
        out += [o(x, mask), o(x, mask.bool()), o(x, None), o(torch.randn(5, 2, 8), causal(5)), o(x, mask, None, True)]
        return out

    check(program)


@pytest.mark.row("S003-18")
def test_two_masks_are_two_graphs():
    def program(optimize):
        o = optimize(nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1))
        x = torch.randn(4, 2, 8)
        return [o(x, mask) for mask in (causal(4), torch.zeros(4, 4), causal(4), torch.ones(4, 4))]

    check(program, graphs=2)


@pytest.mark.row("S003-24")
def test_a_check_that_raises_later():
    def program(optimize):
        loss = optimize(nn.GaussianNLLLoss())
        x, y = torch.randn(3), torch.randn(3)
        out = []
        for var in (
            torch.ones(3),
            torch.tensor([1.0, -1, 1]),
            torch.ones(3) * 2,
            torch.tensor([-1.0, 1, 1]),
            torch.zeros(3),
        ):
            try:
                out.append(loss(x, y, var))
            except ValueError as error:
                out.append(str(error))
        return out

    check(program)


@pytest.mark.row("S003-24")
def test_a_value_that_the_program_computes_or_changes_is_not_foreseen():
    m = nn.Linear(3, 3)

    def computed(x, y):
        return F.gaussian_nll_loss(x, y, m(x).exp())

    def changed(x, y, var):
        var.mul_(-1)
        try:
            return F.gaussian_nll_loss(x, y, var)
        except ValueError as error:
            return str(error)

    def changed_by_another_name(x, y, var):
        var[1:].neg_()
        z = F.softplus(x)
        try:
            return F.gaussian_nll_loss(x, y, var), z
        except ValueError as error:
            return str(error), z

    def program(optimize):
        out = []
        for fn in (changed, changed_by_another_name):
            fast = optimize(fn)
            for sign in (1.0, -1.0, 1.0):
                var = torch.full((3,), sign)
                out += [fast(torch.ones(3), torch.zeros(3), var), var]
        fast = optimize(computed)
        return out, [fast(torch.randn(3), torch.randn(3)) for _ in range(3)]

    check(program)


@pytest.mark.row("S003-16")
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_of_many_sizes(name):
    def program(optimize):
        m = getattr(nn, name)(3, 4, num_layers=2, bidirectional=True)
        o = optimize(m)
        out = []
        for sizes in [(3, 2, 1), (3, 3, 3), (4, 1, 1), (2, 1), (5, 4, 3, 2, 1), (1,), (3, 2, 1)]:
            packed = pack_sequence([torch.randn(n, 3, requires_grad=True) for n in sizes])
            y, h = o(packed)
            y.data.sum().backward()
            out += [y, h]
        return out, [p.grad for p in m.parameters()]

    check(program)


@pytest.mark.row("S003-16")
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_of_one_batch_size_are_not_split(name):
    def program(optimize):
        o = optimize(getattr(nn, name)(3, 4))
        return [o(pack_sequence([torch.randn(n, 3) for n in sizes])) for sizes in [(3, 2, 1), (3, 3, 1), (3, 1, 1)]]

    check(program, graphs=1)  # torch reads no sizes here, so one graph serves all


@pytest.mark.row("S003-16", "S003-10", "S003-25")
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "AdaptiveLogSoftmaxWithLoss", "CTCLoss", "user's sizes"])
def test_a_backend_whose_fake_tensors_have_no_data(name):
    torch.manual_seed(0)
    if name == "CTCLoss":
        lengths = torch.tensor([8, 8]), torch.tensor([3, 2])
        m, args = nn.CTCLoss(), (torch.randn(8, 2, 5).log_softmax(2), torch.randint(1, 5, (2, 3)), *lengths)
    elif name == "AdaptiveLogSoftmaxWithLoss":
        m, args = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]), (torch.randn(4, 8), torch.tensor([1, 6, 7, 15]))
    elif name == "user's sizes":
        m, args = lambda x, n: (torch.zeros(n, 2) + 1, (x > 0).nonzero() * 2), (torch.randn(5), torch.tensor(3))
    else:
        m, args = getattr(nn, name)(3, 4), (pack_sequence([torch.randn(n, 3) for n in (3, 2, 1)]),)
    o = godynamo.optimize(m, backend="aot_eager")
    for _ in range(2):
        assert all(
            torch.equal(a, b)
            for a, b in zip(tree_leaves(o(*args)), tree_leaves(m(*args)), strict=True)
            if a is not None
        )


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(4), nn.GroupNorm(2, 4)])
def test_an_operation_that_raises_once_the_size_is_foreseen(norm):
    """The translation tried to foresee the size again and again."""

    def f(x):
        return norm(x[x > 0] + x.erf())

    x = torch.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    for g in (f, godynamo.optimize(f)):
        with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(4\)"):
            g(x)


def operators(call):
    """Return the names of the operators that a call runs."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return [e.name for e in profile.events()]


@pytest.mark.row("S003-24")
def test_what_a_guard_has_computed_is_not_computed_again():
    loss = nn.GaussianNLLLoss()
    fast = godynamo.optimize(loss)
    args = torch.randn(3), torch.randn(3), torch.ones(3)
    assert torch.equal(fast(*args), loss(*args))
    fast(*args)
    want, got = operators(lambda: loss(*args)), operators(lambda: fast(*args))
    for name in ("aten::lt", "aten::any", "aten::sub", "aten::log"):
        assert got.count(name) == want.count(name) > 0


@pytest.mark.row("S003-18")
def test_other_translations_do_not_use_up_the_answers():
    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)
    counter = CompileCounter()
    fast, mask = godynamo.optimize(m, backend=counter, dynamic=False), causal(4)
    for batch in range(1, 8):  # each size has its own entry
        x = torch.randn(4, batch, 8)
        assert torch.allclose(fast(x, mask), m(x, mask), atol=1e-6)
    assert counter.frame_count == 7  # one graph each, not broken by the question about the mask


@pytest.mark.row("S003-18")
def test_a_value_that_is_another_each_time_is_split_in_the_end():
    from godynamo._translator import foreseen

    m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1)
    fast, code = godynamo.optimize(m), causal.__code__
    try:
        assert all(foreseen._settled(code, "size", n) for n in range(4))
        assert not foreseen._settled(code, "size", 4)
        assert not foreseen._settled(code, "size", 5)
        assert foreseen._settled(code, "size", 3)
        assert foreseen._settled(code, "another question", 1)
        assert not foreseen._settled(code, "another question", 2)
    finally:
        godynamo.reset()
    assert foreseen._settled(code, "size", 5)
    x = torch.randn(4, 2, 8)
    for mask in (causal(4), torch.zeros(4, 4), causal(4), torch.ones(4, 4)) * 2:
        assert torch.equal(fast(x, mask), m(x, mask))


@pytest.mark.row("S003-16")
def test_sizes_that_are_no_integers_stay_eagers_error():
    def program(optimize):
        fast = optimize(
            lambda t: nn.functional.one_hot(torch.zeros(t, dtype=torch.int64)) if t is None else torch.zeros(2, t)
        )
        out = []
        for t in (torch.tensor(2.5), torch.tensor([1, 2]), torch.tensor(3), torch.tensor(True)):
            try:
                out.append(fast(t))
            except (TypeError, RuntimeError) as error:
                out.append((type(error).__name__, str(error)))
        return out

    check(program)


@pytest.mark.row("S003-10")
def test_adaptive_softmax_with_many_targets():
    def program(optimize):
        m = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
        o, x = optimize(m), torch.randn(6, 8, requires_grad=True)
        targets = [
            [0, 1, 2, 3, 4, 4],
            [5, 6, 0, 1, 2, 3],
            [0, 4, 6, 7, 12, 19],
            [10, 11, 12, 13, 14, 15],
            [0, 4, 6, 8, 12, 18],
        ]
        out = []
        for target in targets:
            y = o(x, torch.tensor(target))
            y.loss.backward()
            out += [y.output, y.loss]
        try:
            o(x, torch.tensor([0, 1, 2, 3, 4, 25]))
        except RuntimeError as error:
            out.append(str(error))
        return out, x.grad, o.predict(x), o.log_prob(x)

    check(program)


@pytest.mark.row("S003-18")
def test_under_autocast_inference_and_transforms():
    def program(optimize):
        m = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 1).eval()
        o, x, out = optimize(m), torch.randn(4, 2, 8), []
        for mask in (causal(4), torch.zeros(4, 4)):
            out.append(o(x, mask))
            with torch.no_grad():
                out.append(o(x, mask))
            with torch.inference_mode():
                inside = o(x, mask)
            out.append(inside.clone())
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out.append(o(x, mask))
        loss = optimize(nn.GaussianNLLLoss(reduction="none"))
        try:
            out.append(torch.func.vmap(loss)(torch.ones(2, 3), torch.zeros(2, 3), torch.ones(2, 3)))
        except RuntimeError as error:
            out.append(str(error).splitlines()[0])
        return out

    check(program)


def test_in_the_users_own_code_a_branch_is_split_as_ever():
    def f(x):
        y = x + 1
        if (x > 0).all():
            return y * 2
        return y * 3

    def program(optimize):
        fast = optimize(f)
        return [fast(torch.ones(3)), fast(-torch.ones(3)), fast(torch.ones(3))]

    recorder = check(program)
    assert recorder.graphs == 3
    assert list(recorder.breaks) == ["branch on a tensor's value: result of all"]


@pytest.mark.row("S003-18")
def test_masks_made_inside_and_grad_mode_switched_before():
    def program(optimize):
        t = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)

        def f(a, b):
            with torch.no_grad():
                before = t.encoder(a, causal(a.shape[0]))
            return t(a, b, tgt_mask=causal(b.shape[0])) + before.sum()

        fast = optimize(f)
        return [fast(torch.randn(4, 2, 8), torch.randn(4, 2, 8)) for _ in range(3)]

    check(program, graphs=1)
