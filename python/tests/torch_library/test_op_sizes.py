"""The short form of `make opinfo OPINFO_ARGS=--sizes`, and its harness: it detects wrong results at other sizes."""

from __future__ import annotations

import pytest
import torch

import godynamo
import library_run
import op_sizes
from op_cases import units

OPS = """
    add matmul softmax sum unsqueeze cat index_select where cumsum split nn.functional.linear
    nn.functional.conv2d nn.functional.layer_norm nn.functional.embedding einsum stack permute
""".split()


def test_a_choice_of_operators_is_right_at_the_sizes_of_other_samples():
    rows = library_run.run_units("sizes", [n for n in units() if n in OPS], samples=2)
    assert len(rows) == len(OPS)
    assert not [(r["unit"], r["wrong"], r["error"]) for r in rows if r["wrong"] or r["error"]]
    assert [r["unit"] for r in rows if not r["general"]] == []
    text = op_sizes.summary(rows)
    assert f"{len(OPS)} of {len(OPS)} operators right; {len(OPS)} of {len(OPS)} have an entry that served" in text


def row_of(name, monkeypatch, optimize):
    monkeypatch.setattr(op_sizes.godynamo, "optimize", optimize)
    return op_sizes.row(units()[name], 2)


def test_a_size_of_the_first_sample_is_seen(monkeypatch):
    def optimize(fn, dynamic=None):
        compiled = real(fn, dynamic=dynamic)

        def call(*args, **kwargs):
            value, sizes = compiled(*args, **kwargs)
            first.append(sizes)
            return value, first[0]

        monkeypatch.setattr(op_sizes.godynamo, "cache_entries", lambda _: entries(compiled))
        first = []
        return call

    real, entries = godynamo.optimize, godynamo.cache_entries
    wrong = row_of("neg", monkeypatch, optimize)["wrong"]
    assert wrong and all("value" in text for text in wrong)


def test_constant_sizes_are_told(monkeypatch):
    real = godynamo.optimize
    row = row_of("neg", monkeypatch, lambda fn, dynamic=None: real(fn, dynamic=False))
    assert (row["constant"] > 0, row["general"], row["wrong"]) == (True, 0, [])


@pytest.mark.parametrize("shape", [(0, 3), (5,), (2, 2, 2)])
def test_a_resized_tensor_repeats_the_values(shape):
    t = op_sizes.with_shape(torch.tensor([[1.0, 2.0, 3.0]]), shape)
    assert tuple(t.shape) == shape
    assert set(t.flatten().tolist()) <= {1.0, 2.0, 3.0}
