"""`make models MODELS_ARGS=--sizes`: the calls, the verdicts and the table."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import project_support  # noqa: F401 the paths
import sizes_of_models


def figures(by_call=(1, 1), **changed):
    found = {"graphs": by_call[-1], "by_call": list(by_call), "breaks": 0, "limit": False, "verdict": "right"}
    return found | {"reasons": []} | changed


def row(callable_=(1, 1), inline=(1, 1), torch_=(1, 2), **changed):
    counts = zip(sizes_of_models.ENGINES, (torch_, callable_, inline), strict=True)
    return {"name": "m", "calls": 2} | {engine: figures(count) for engine, count in counts} | changed


def test_words_and_images_get_other_sizes_and_one_input_stays_one():
    ids = torch.randint(3, 99, (1, 8))
    call = (torch.randn(2, 3, 64, 64),), {"input_ids": ids, "decoder_input_ids": ids, "mask": torch.ones_like(ids)}
    (image,), kwargs = sizes_of_models.with_sizes(call, 4, True)
    assert image.shape == (4, 3, 96, 96)
    assert kwargs["input_ids"] is kwargs["decoder_input_ids"]
    assert kwargs["input_ids"].shape == kwargs["mask"].shape == (4, 12)
    assert torch.equal(kwargs["mask"], torch.ones(4, 12, dtype=torch.int64))
    assert sizes_of_models.with_sizes(call, 3, False)[0][0].shape == (3, 3, 64, 64)


@pytest.mark.parametrize(
    ("found", "short", "failed"),
    [
        (row(), "", False),
        (row(inline=(1, 2)), "no single capture", False),
        (row(callable_=(1, 3)), "more than torch.compile", True),
        (row(torch=figures((1, 1), error="raises")), "", False),
        (row(inline=(1, 2), torch_=(1, 1)), "more than torch.compile", True),
        (row(godynamo=figures(verdict="WRONG call 2 by 1")), "WRONG call 2 by 1", True),
        (row(godynamo={"error": "TypeError: x"}), "TypeError: x", True),
    ],
)
def test_what_is_short(found, short, failed):
    assert sizes_of_models.short(found) == short
    assert sizes_of_models.failed(found) == failed
    assert short in sizes_of_models.line(found)
    assert len(sizes_of_models.line(found)) <= 120


def test_the_summary_counts_models():
    text = sizes_of_models.summary([row(), row(inline=(1, 2)), {"name": "n", "error": "needs timm"}])
    assert text == "3 models: 1 with one capture for all sizes, 1 no single capture, 1 failed"


def test_results_are_compared():
    want = [[torch.ones(2)], [torch.ones(3)]]
    assert sizes_of_models.judged(want, [[torch.ones(2)], [torch.ones(3)]]) == "right"
    assert sizes_of_models.judged(want, [[torch.ones(2)], [torch.ones(3) + 1e-7]]) == "close"
    assert sizes_of_models.judged(want, [[torch.ones(2)], [torch.ones(3) * 2]]).startswith("WRONG call 2 by ")
    assert sizes_of_models.judged(want, [[torch.ones(2)], [torch.ones(4)]]) == "WRONG call 2: other shapes"
    assert sizes_of_models.judged(want, [[], [torch.ones(3)]]) == "WRONG call 1: other shapes"


def test_a_module_is_measured(monkeypatch):
    class Net(nn.Module):
        def forward(self, x):
            return x.reshape(-1) * x.shape[0] if x.shape[1] < 8 else x + 1

    calls = [((torch.ones(n, t),), {}) for n, t in ((2, 3), (4, 5), (2, 9))]
    monkeypatch.setitem(sizes_of_models.OTHERS, "a.net", lambda: (Net(), calls))
    found = sizes_of_models.measure("a.net", sizes_of_models.ENGINES[1:])
    assert found["inline"]["by_call"] == [1, 1, 2]
    assert found["inline"]["verdict"] == found["godynamo"]["verdict"] == "right"
    assert any("size()[N]" in reason for reason in found["inline"]["reasons"])
    assert sizes_of_models.line(found).endswith("no single capture")
