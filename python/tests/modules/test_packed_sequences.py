"""Recurrent modules on packed sequences, packed and padded in the same function."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

import godynamo

KINDS: dict[str, Any] = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM, "rnn": torch.nn.RNN}


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()
    torch.manual_seed(0)


def whole(kind, batch_first, enforce_sorted, **options):
    module = KINDS[kind](3, 4, batch_first=batch_first, **options)

    def f(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=batch_first, enforce_sorted=enforce_sorted)
        output, hidden = module(packed)
        padded, lengths = pad_packed_sequence(output, batch_first=batch_first, padding_value=-1.0)
        return packed.batch_sizes, padded, hidden, lengths

    return f


def seen(value):
    if isinstance(value, torch.Tensor):
        return type(value), value.tolist(), value.shape, value.stride(), value.dtype, value.requires_grad
    return (type(value), [seen(item) for item in value]) if isinstance(value, (tuple, list)) else value


def outcome(f, *args):
    try:
        return seen(f(*args))
    except (RuntimeError, ValueError) as error:
        return type(error), str(error)


CALLS: list[tuple[int, int, list[int]]] = [
    (2, 5, [5, 3]),
    (2, 5, [4, 4]),
    (3, 5, [5, 2, 1]),
    (3, 6, [1, 1, 1]),
    (2, 5, [2, 4]),
    (1, 2, [2]),
    (2, 5, [5, 0]),
    (2, 5, [6, 1]),
    (2, 5, [3]),
    (4, 7, [7, 6, 6, 2]),
]


@pytest.mark.parametrize("as_tensor", [True, False], ids=["tensor", "list"])
@pytest.mark.parametrize("enforce_sorted", [True, False], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch_first", "time_first"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_calls_are_as_in_eager_mode(kind, batch_first, enforce_sorted, as_tensor):
    f = whole(kind, batch_first, enforce_sorted)
    optimized = godynamo.optimize(f)
    for n, steps, lengths in CALLS:
        x = torch.randn(n, steps, 3) if batch_first else torch.randn(steps, n, 3)
        given = torch.tensor(lengths) if as_tensor else lengths
        assert outcome(optimized, x, given) == outcome(f, x, given), (n, steps, lengths)


@pytest.mark.parametrize("as_tensor", [True, False], ids=["tensor", "list"])
@pytest.mark.parametrize("enforce_sorted", [True, False], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_graph(kind, enforce_sorted, as_tensor):
    f = whole(kind, True, enforce_sorted, num_layers=2, bidirectional=True)
    explained = godynamo.explain(f)(torch.randn(2, 5, 3), torch.tensor([5, 3]) if as_tensor else [5, 3])
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_lengths_in_a_tensor_are_no_constants():
    f = whole("gru", True, False)
    optimized = godynamo.optimize(f)
    for i in range(8):
        x, lengths = torch.randn(3, 9, 3), torch.tensor([1 + i, 9 - i, 2])
        assert seen(optimized(x, lengths)) == seen(f(x, lengths))
    assert len(godynamo.cache_entries(optimized)) == 1


def given_states(module):
    def f(x, lengths, h):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, hidden = module(packed, h)
        return pad_packed_sequence(output, batch_first=True, total_length=8), hidden

    return f


@pytest.mark.parametrize("kind", KINDS)
def test_given_states(kind):
    """A hidden state for another number of sequences raises as in eager mode."""
    f = given_states(KINDS[kind](3, 4, batch_first=True))
    optimized, x, lengths = godynamo.optimize(f), torch.randn(2, 5, 3), torch.tensor([2, 4])
    for n in (2, 2, 3, 1):
        h = torch.randn(1, n, 4)
        states = (h, h + 1) if kind == "lstm" else h
        assert outcome(optimized, x, lengths, states) == outcome(f, x, lengths, states)


def steps_of_training(module, x, lengths):
    def step(x, lengths):
        module.zero_grad()
        output, _ = module(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        padded, n = pad_packed_sequence(output, batch_first=True)
        loss = padded[:, -1].sum() + padded.mean()
        loss.backward()
        return loss, n, [p.grad for p in module.parameters()]

    return step


def test_training():
    module = torch.nn.GRU(3, 4, batch_first=True)
    x, lengths = torch.randn(2, 5, 3), torch.tensor([2, 4])
    step = steps_of_training(module, x, lengths)
    expected = [seen(step(x * i, lengths)) for i in range(3)]
    optimized = godynamo.optimize(step)
    assert [seen(optimized(x * i, lengths)) for i in range(3)] == expected


def reads_sizes(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    padded, n = pad_packed_sequence(packed, batch_first=True)
    return packed, padded.shape, n.shape[0] + 1, packed.data.shape, packed.batch_sizes.shape, isinstance(packed, tuple)


def changes_the_counts(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    packed.batch_sizes[0] = 1
    return GRU(packed)


def changes_a_view_of_the_counts(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    packed.batch_sizes[:1].fill_(1)
    return GRU(packed)


def across_a_break(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    godynamo.graph_break()
    output, h = GRU(packed)
    godynamo.graph_break()
    return output, h, type(output) is PackedSequence, pad_packed_sequence(output)


def twice(x, lengths):
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    first, h = GRU(packed)
    second, _ = SECOND(first, h)
    return pad_packed_sequence(second, batch_first=True)


def of_a_list(x, lengths):
    packed = pack_sequence([x[0, : lengths[0]], x[1, : lengths[1]]])
    return pad_packed_sequence(GRU(packed)[0])


GRU, SECOND = torch.nn.GRU(3, 4), torch.nn.GRU(4, 4)
OTHERS = [reads_sizes, changes_the_counts, changes_a_view_of_the_counts, across_a_break, twice, of_a_list]


# AOTAutograd cannot trace pad_packed_sequence where nothing before it breaks the graph
BOTH = [(f, b) for f in OTHERS for b in ("eager", "aot_eager") if (f, b) != (reads_sizes, "aot_eager")]


@pytest.mark.parametrize(("f", "backend"), BOTH, ids=lambda p: getattr(p, "__name__", p))
def test_other_programs(f, backend):
    optimized = godynamo.optimize(f, backend=backend)
    for lengths in ([5, 3], [4, 4], [2, 1]):
        x = torch.randn(2, 5, 3)
        for given in (lengths, torch.tensor(lengths)):
            with torch.no_grad():
                assert outcome(optimized, x, given) == outcome(f, x, given)
