"""Rows S003-01 to S003-28: every class of torch.nn, in all its forms, in training and evaluation, against eager.

Outputs, gradients, parameters, buffers, arguments and random numbers are compared bit by bit, with inlined and with
whole graphs, for a miss and a hit; a G row requires one graph and no break. The forms are those of ``make modules``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from modules_support import LIBRARY

sys.path.insert(0, str(LIBRARY))

import module_table  # noqa: E402
from library_run import run_units  # noqa: E402

DIMS = "1d 2d 3d"


def _family(names: str, dims: str = DIMS) -> str:
    return " ".join(f"{name}{d}" for name in names.split() for d in dims.split())


#: the classes that each row names
ROWS = {
    "S003-01": "Linear Bilinear Identity LazyLinear",
    "S003-02": _family("Conv ConvTranspose LazyConv LazyConvTranspose"),
    "S003-03": "Unfold Fold",
    "S003-04": _family("MaxPool MaxUnpool") + " FractionalMaxPool2d FractionalMaxPool3d",
    "S003-05": _family("AvgPool LPPool"),
    "S003-06": _family("AdaptiveMaxPool AdaptiveAvgPool"),
    "S003-07": _family("ReflectionPad ReplicationPad ZeroPad ConstantPad CircularPad"),
    "S003-08": "ReLU ReLU6 ELU SELU CELU GELU Sigmoid Tanh Hardtanh Hardsigmoid Hardswish SiLU Mish LeakyReLU "
    "LogSigmoid "
    "PReLU RReLU Softplus Softshrink Hardshrink Softsign Tanhshrink Threshold GLU",
    "S003-09": "Softmin Softmax Softmax2d LogSoftmax",
    "S003-10": "AdaptiveLogSoftmaxWithLoss",
    "S003-11": _family("BatchNorm LazyBatchNorm"),
    "S003-12": "GroupNorm LayerNorm RMSNorm LocalResponseNorm",
    "S003-13": _family("InstanceNorm LazyInstanceNorm"),
    "S003-14": "CrossMapLRN2d",
    "S003-15": "SyncBatchNorm",
    "S003-16": "RNN LSTM GRU",
    "S003-17": "RNNCell LSTMCell GRUCell",
    "S003-18": "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer "
    "MultiheadAttention",
    "S003-19": "Embedding EmbeddingBag",
    "S003-20": _family("Dropout") + " Dropout AlphaDropout FeatureAlphaDropout",
    "S003-21": "CosineSimilarity PairwiseDistance",
    "S003-22": "L1Loss MSELoss SmoothL1Loss HuberLoss KLDivLoss BCELoss BCEWithLogitsLoss",
    "S003-23": "CrossEntropyLoss LinearCrossEntropyLoss NLLLoss NLLLoss2d PoissonNLLLoss",
    "S003-24": "GaussianNLLLoss",
    "S003-25": "CTCLoss",
    "S003-26": "HingeEmbeddingLoss MarginRankingLoss CosineEmbeddingLoss MultiMarginLoss MultiLabelMarginLoss "
    "MultiLabelSoftMarginLoss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "S003-27": "PixelShuffle PixelUnshuffle ChannelShuffle Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    "S003-28": "Flatten Unflatten",
    "S003-29": "Sequential",
    "S003-30": "DataParallel",
}
#: forms that break the graph, with the reason; all others are one graph
SPLIT = {
    # an autograd.Function that fills its own memory by `out=` and resizes it
    "CrossMapLRN2d": "store that cannot be replayed: a side effect before an operation that changes tensors in place",
}


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Return the verdicts on all requested classes, by name; a child process computes them, so a crash does not
    end this one."""
    names = [item.callspec.params["name"] for item in request.session.items if item.originalname == "test_class"]
    yield {row["unit"]: row for row in run_units("modules", names, samples=3)}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        pytest.param(row, name, marks=pytest.mark.row(row), id=f"{row}-{name}")
        for row in ROWS
        for name in ROWS[row].split()
    ],
)
def test_class(row: str, name: str, rows: dict[str, Any]) -> None:
    found = rows[name]
    assert found["ran"]
    assert found["right"] == found["cases"], found["wrong"]
    if name in SPLIT:
        assert found["one"] < found["counted"], "one graph by now"
        assert SPLIT[name] in found["breaks"]
    else:
        assert found["one"] == found["counted"], (found["split"], found["breaks"])


def test_every_class_is_in_a_row() -> None:
    assert {name for names in ROWS.values() for name in names.split()} == set(module_table.names())
