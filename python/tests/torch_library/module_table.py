"""Constructors and inputs of the torch.nn modules that are missing in torch's own table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from module_inputs import Row, floats, packed, pooled, quietly, whole
from module_variants import variants

#: modules without a forward of their own; their contents or subclasses are called instead
NOT_CALLED = frozenset("Container Module ModuleDict ModuleList ParameterDict ParameterList RNNBase RNNCellBase".split())


def _rows() -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}

    def add(make: Callable[[], nn.Module], *inputs: Callable[[], Any]) -> None:
        row = Row(make, lambda: tuple(i() for i in inputs))
        rows.setdefault(type(make()).__name__, []).append(row)

    def shaped(*shape: int) -> Callable[[], torch.Tensor]:
        return lambda: floats(*shape)

    add(lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]), shaped(6, 8), lambda: whole(20, 6))
    for name in "AlphaDropout Dropout FeatureAlphaDropout".split():
        add(lambda name=name: getattr(nn, name)(0.4), shaped(4, 6, 5))
        add(lambda name=name: getattr(nn, name)(0.4, inplace=True), lambda: torch.randn(4, 6, 5))
    for dims in (1, 2, 3):
        add(lambda dims=dims: getattr(nn, f"Dropout{dims}d")(0.4), shaped(2, 3, *(4,) * dims))
        add(lambda dims=dims: getattr(nn, f"LazyBatchNorm{dims}d")(), shaped(2, 3, *(4,) * dims))
        add(lambda dims=dims: getattr(nn, f"LazyInstanceNorm{dims}d")(affine=True), shaped(2, 3, *(4,) * dims))
        add(
            lambda dims=dims: getattr(nn, f"MaxUnpool{dims}d")(2),
            lambda d=dims: pooled(d)[0],
            lambda d=dims: pooled(d)[1],
        )
    add(lambda: nn.ChannelShuffle(2), shaped(1, 4, 3, 3))
    add(lambda: nn.CosineSimilarity(dim=1), shaped(3, 5), shaped(3, 5))
    add(lambda: nn.CrossMapLRN2d(3), shaped(1, 4, 3, 3))
    add(lambda: nn.DataParallel(nn.Linear(3, 4)), shaped(2, 3))
    for mode in ("mean", "sum", "max"):
        add(lambda mode=mode: nn.EmbeddingBag(10, 4, mode=mode), lambda: whole(10, 3, 5))
    add(lambda: nn.EmbeddingBag(10, 4), lambda: whole(10, 7), lambda: torch.tensor([0, 2, 2, 5]))
    add(lambda: nn.EmbeddingBag(10, 4, mode="sum", padding_idx=2), lambda: whole(10, 3, 5), lambda: None, shaped(3, 5))
    add(lambda: nn.Flatten(), shaped(2, 3, 4))
    add(lambda: nn.Flatten(0, 1), shaped(2, 3, 4))
    add(lambda: nn.Unflatten(1, (2, 3)), shaped(2, 6))
    add(lambda: nn.Fold((4, 5), 2), shaped(1, 12, 12))
    add(lambda: nn.Unfold(2), shaped(1, 3, 4, 5))
    add(lambda: nn.Hardsigmoid(), shaped(4, 5))
    add(lambda: nn.Identity(1, unused=2), shaped(4, 5))
    add(lambda: nn.LazyLinear(4), shaped(2, 3))
    add(lambda: quietly(nn.NLLLoss2d), shaped(2, 3, 4, 4), lambda: whole(3, 2, 4, 4))
    add(lambda: nn.PairwiseDistance(), shaped(3, 5), shaped(3, 5))
    add(lambda: nn.PixelShuffle(2), shaped(1, 8, 3, 3))
    add(lambda: nn.PixelUnshuffle(2), shaped(1, 2, 4, 6))
    add(lambda: nn.RReLU(), shaped(4, 5))
    add(lambda: nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.3), nn.Linear(5, 2)), shaped(3, 4))
    add(lambda: nn.Sequential(), shaped(3, 4))
    add(lambda: nn.SyncBatchNorm(3), shaped(2, 3, 4))
    add(
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2),
        shaped(2, 4, 8),
        shaped(2, 5, 8),
    )
    add(lambda: nn.TripletMarginLoss(), shaped(3, 5), shaped(3, 5), shaped(3, 5))
    add(lambda: nn.TripletMarginWithDistanceLoss(), shaped(3, 5), shaped(3, 5), shaped(3, 5))
    add(lambda: nn.TripletMarginWithDistanceLoss(swap=True), shaped(3, 5), shaped(3, 5), shaped(3, 5))
    add(lambda: nn.Upsample(scale_factor=2), shaped(1, 2, 3, 3))
    add(lambda: nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), shaped(1, 2, 3, 3))
    add(lambda: nn.UpsamplingBilinear2d(scale_factor=2), shaped(1, 2, 3, 3))
    add(lambda: nn.UpsamplingNearest2d(size=(5, 6)), shaped(1, 2, 3, 3))
    # These are in torch's table, but not in these forms.
    for name in ("RNN", "LSTM", "GRU"):
        kinds: list[dict[str, Any]] = [
            {"num_layers": 2, "dropout": 0.3, "bidirectional": True},
            {"batch_first": True, "bias": False},
        ]
        for kind in kinds:
            add(lambda name=name, kind=kind: getattr(nn, name)(3, 4, **kind), shaped(5, 2, 3))
        add(lambda name=name: getattr(nn, name)(3, 4), packed)
    add(lambda: nn.BatchNorm1d(3, momentum=None), shaped(2, 3, 4))
    add(lambda: nn.BatchNorm1d(3, track_running_stats=False), shaped(2, 3, 4))
    add(
        lambda: nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True),
        shaped(2, 4, 8),
        shaped(2, 4, 8),
        shaped(2, 4, 8),
    )
    add(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2), shaped(2, 4, 8))
    return rows


ROWS: dict[str, list[Row]] = _rows()
for _name, _more in variants().items():
    ROWS.setdefault(_name, []).extend(_more)


def names() -> list[str]:
    """Return the names of the modules of torch.nn that can be created and called."""
    found = [n for n in dir(nn) if isinstance(getattr(nn, n), type) and issubclass(getattr(nn, n), nn.Module)]
    return [n for n in found if n not in NOT_CALLED]
