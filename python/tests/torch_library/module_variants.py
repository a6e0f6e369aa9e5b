"""Variants of modules that torch's own table lacks: every mode, padding, reduction and direction of each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from module_inputs import Row, floats, packed, pooled, whole

Variant = tuple[Callable[[], nn.Module], Callable[[], tuple[Any, ...]]]


def variants() -> dict[str, list[Row]]:
    """Return the rows by class."""
    rows: dict[str, list[Row]] = {}
    for part in (_linear, _pads, _pools, _activations, _norms, _recurrent, _attention, _embeddings, _losses, _layouts):
        for make, inputs in part():
            rows.setdefault(type(make()).__name__, []).append(Row(make, inputs))
    return rows


def _made(name: str, *args: Any, **kwargs: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(nn, name)(*args, **kwargs)


def _shaped(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(floats(*shape) for shape in shapes)


def _linear() -> Iterator[Variant]:
    yield _made("Linear", 4, 3), _shaped((4,))
    yield _made("Linear", 4, 3, bias=False), _shaped((2, 5, 4))
    yield _made("Bilinear", 3, 4, 5, bias=False), _shaped((2, 3), (2, 4))
    for dims in (1, 2, 3):
        space = (6,) * dims
        for mode in ("zeros", "reflect", "replicate", "circular"):
            yield _made(f"Conv{dims}d", 2, 3, 3, padding=1, padding_mode=mode), _shaped((1, 2, *space))
        yield _made(f"Conv{dims}d", 2, 4, 3, padding="same", dilation=2), _shaped((1, 2, *space))
        yield _made(f"Conv{dims}d", 2, 4, 3, padding="valid", stride=2, groups=2, bias=False), _shaped((1, 2, *space))
        yield _made(f"Conv{dims}d", 2, 3, 2), _shaped((2, *space))
        kind = f"ConvTranspose{dims}d"
        yield _made(kind, 2, 4, 3, stride=2, output_padding=1, groups=2, dilation=2), _shaped((1, 2, *(3,) * dims))
        yield (
            _made(kind, 2, 3, 3, stride=2, padding=1),
            lambda d=dims: (floats(1, 2, *(3,) * d), [6] * d),
        )
    yield _made("Unfold", 2, dilation=2, padding=1, stride=2), _shaped((1, 3, 6, 6))
    yield _made("Fold", (4, 5), (2, 2), stride=1), _shaped((1, 12, 12))


def _pads() -> Iterator[Variant]:
    for dims in (1, 2, 3):
        space = (4,) * dims
        for kind in ("ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"):
            yield _made(f"{kind}{dims}d", 1), _shaped((1, 2, *space))
            yield _made(f"{kind}{dims}d", (1, 2) * dims), _shaped((1, 2, *space))
        yield _made(f"ConstantPad{dims}d", 2, 3.5), _shaped((1, 2, *space))
        yield _made(f"ConstantPad{dims}d", (1, -1) * dims, 0), _shaped((1, 2, *space))


def _pools() -> Iterator[Variant]:
    for dims in (1, 2, 3):
        space = (6,) * dims
        x = _shaped((1, 2, *space))
        yield _made(f"MaxPool{dims}d", 2, return_indices=True), x
        yield _made(f"MaxPool{dims}d", 3, stride=2, padding=1, ceil_mode=True), x
        yield _made(f"AvgPool{dims}d", 3, stride=2, padding=1, count_include_pad=False), x
        yield _made(f"LPPool{dims}d", 2, 2, stride=1), x
        yield _made(f"AdaptiveMaxPool{dims}d", 3, return_indices=True), x
        yield _made(f"AdaptiveMaxPool{dims}d", 2), x
        yield _made(f"AdaptiveAvgPool{dims}d", 1), x
        yield _made(f"MaxUnpool{dims}d", 2, stride=2), lambda d=dims: (*pooled(d), (1, 2, *(4,) * d))
    for dims in (2, 3):
        x = _shaped((1, 2, *(8,) * dims))
        yield _made(f"FractionalMaxPool{dims}d", 2, output_size=3), x
        yield _made(f"FractionalMaxPool{dims}d", 2, output_ratio=0.5, return_indices=True), x
        yield _made(f"AdaptiveAvgPool{dims}d", (None, *(3,) * (dims - 1))), x


def _activations() -> Iterator[Variant]:
    names = "ReLU ReLU6 ELU SELU CELU GELU Sigmoid Tanh Hardtanh Hardsigmoid Hardswish SiLU Mish LeakyReLU LogSigmoid "
    names += "PReLU RReLU Softplus Softshrink Hardshrink Softsign Tanhshrink"
    for name in names.split():
        yield _made(name), _shaped((3, 4))
    for name in "ReLU ReLU6 ELU SELU CELU Hardtanh Hardsigmoid Hardswish SiLU Mish LeakyReLU RReLU".split():
        yield _made(name, inplace=True), lambda: (torch.randn(3, 4),)
    yield _made("GELU", approximate="tanh"), _shaped((3, 4))
    yield _made("PReLU", 3), _shaped((2, 3, 4))
    yield _made("Threshold", 0.1, 20), _shaped((3, 4))
    yield _made("Threshold", 0.1, 20, inplace=True), lambda: (torch.randn(3, 4),)
    yield _made("GLU", dim=1), _shaped((3, 4))
    for name in ("Softmin", "Softmax", "LogSoftmax"):
        yield _made(name, dim=0), _shaped((3, 4))
        yield _made(name), _shaped((3, 4))
    yield _made("Softmax2d"), _shaped((2, 3, 4, 4))
    yield _made("Softmax2d"), _shaped((3, 4, 4))


def _norms() -> Iterator[Variant]:
    for dims in (1, 2, 3):
        x = _shaped((3, 2, *(4,) * dims))
        for kind in ("BatchNorm", "InstanceNorm"):
            yield _made(f"{kind}{dims}d", 2, affine=False), x
            yield _made(f"{kind}{dims}d", 2, affine=True, track_running_stats=True, momentum=0.3), x
            yield _made(f"{kind}{dims}d", 2, track_running_stats=False), x
    yield _made("GroupNorm", 2, 4, affine=False), _shaped((2, 4, 3))
    yield _made("LayerNorm", (3, 4), bias=False), _shaped((2, 3, 4))
    yield _made("LayerNorm", 4, elementwise_affine=False), _shaped((2, 3, 4))
    yield _made("RMSNorm", 4, eps=1e-3), _shaped((2, 3, 4))
    yield _made("RMSNorm", (3, 4), elementwise_affine=False), _shaped((2, 3, 4))
    yield _made("LocalResponseNorm", 3), _shaped((2, 4, 5))
    yield _made("LocalResponseNorm", 2), _shaped((2, 4, 5, 5))
    for inplace in (False, True):
        yield _made("AlphaDropout", 0.3, inplace=inplace), lambda: (torch.randn(4, 6),)
        yield _made("Dropout2d", 0.3, inplace=inplace), lambda: (torch.randn(4, 6, 2, 2),)
    yield _made("Dropout", 0.0), _shaped((4, 6))
    yield _made("Dropout", 1.0), _shaped((4, 6))


def _recurrent() -> Iterator[Variant]:
    def state(name: str, layers: int, width: int = 4) -> Any:
        h = floats(layers, 2, width)
        return (h, floats(layers, 2, 4)) if name == "LSTM" else h

    for name in ("RNN", "LSTM", "GRU"):
        yield _made(name, 3, 4), lambda name=name: (floats(5, 2, 3), state(name, 1))
        yield _made(name, 3, 4), _shaped((5, 3))
        yield _made(name, 3, 4, num_layers=2, bidirectional=True, dropout=0.5), lambda: (packed(),)
        yield _made(name, 3, 4, bidirectional=True), lambda: (packed(sort=False),)
        yield _made(name, 3, 4, batch_first=True, num_layers=2), _shaped((2, 5, 3))
        cell = f"{name}Cell"
        yield _made(cell, 3, 4), _shaped((2, 3))
        yield _made(cell, 3, 4, bias=False), _shaped((3,))
        given = (lambda: (floats(2, 3), (floats(2, 4), floats(2, 4)))) if name == "LSTM" else _shaped((2, 3), (2, 4))
        yield _made(cell, 3, 4), given
    yield _made("RNN", 3, 4, nonlinearity="relu"), _shaped((5, 2, 3))
    yield _made("RNNCell", 3, 4, nonlinearity="relu"), _shaped((2, 3))
    for bidirectional in (False, True):
        yield _made("LSTM", 3, 4, proj_size=2, bidirectional=bidirectional), _shaped((5, 2, 3))
    yield _made("LSTM", 3, 4, proj_size=2), lambda: (packed(),)
    yield _made("LSTM", 3, 4, proj_size=2), lambda: (floats(5, 2, 3), (floats(1, 2, 2), floats(1, 2, 4)))


def _causal(size: int) -> torch.Tensor:
    return nn.Transformer.generate_square_subsequent_mask(size)


def _attention() -> Iterator[Variant]:
    same = _shaped((2, 4, 8), (2, 4, 8), (2, 4, 8))
    yield _made("MultiheadAttention", 8, 2), same
    yield _made("MultiheadAttention", 8, 2, bias=False, add_bias_kv=False, add_zero_attn=True), same
    yield _made("MultiheadAttention", 8, 2, add_bias_kv=True, batch_first=True), same
    yield _made("MultiheadAttention", 8, 2, kdim=3, vdim=5), _shaped((4, 2, 8), (6, 2, 3), (6, 2, 5))

    def masked() -> tuple[Any, ...]:
        x = floats(4, 2, 8)
        return x, x, x, torch.tensor([[False, False, False, True], [False] * 4]), True, _causal(4)

    def unweighted() -> tuple[Any, ...]:
        x = floats(4, 2, 8)
        return x, x, x, None, False

    yield _made("MultiheadAttention", 8, 2, dropout=0.1), masked
    yield _made("MultiheadAttention", 8, 2), unweighted
    layer = _made("TransformerEncoderLayer", 8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
    yield layer, lambda: (floats(2, 4, 8), _causal(4))
    yield layer, _shaped((2, 4, 8))
    yield _made("TransformerDecoderLayer", 8, 2, 16), _shaped((4, 2, 8), (5, 2, 8))
    yield (
        _made("TransformerDecoderLayer", 8, 2, 16, norm_first=True, bias=False),
        lambda: (floats(4, 2, 8), floats(5, 2, 8), _causal(4)),
    )
    for first in (False, True):

        def encoder(first: bool = first) -> nn.Module:
            inner = nn.TransformerEncoderLayer(8, 2, 16, batch_first=first)
            return nn.TransformerEncoder(inner, 2, norm=nn.LayerNorm(8))

        yield encoder, lambda: (floats(4, 4, 8), _causal(4))
        yield encoder, lambda: (floats(4, 4, 8), torch.zeros(4, 4))
    yield (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
        lambda: (floats(4, 2, 8), floats(5, 2, 8), _causal(4)),
    )
    whole_model = _made("Transformer", 8, 2, 1, 1, 16, batch_first=True)
    yield whole_model, _shaped((2, 5, 8), (2, 4, 8))
    yield whole_model, lambda: (floats(2, 5, 8), floats(2, 4, 8), None, _causal(4))


def _embeddings() -> Iterator[Variant]:
    yield _made("Embedding", 10, 4, padding_idx=2), lambda: (torch.tensor([[1, 2], [3, 9]]),)
    yield _made("Embedding", 10, 4, max_norm=0.5), lambda: (torch.tensor([[1, 2], [3, 9]]),)
    yield _made("Embedding", 10, 4, scale_grad_by_freq=True), lambda: (torch.tensor([1, 1, 3]),)
    yield lambda: nn.Embedding.from_pretrained(torch.arange(12.0).view(3, 4)), lambda: (whole(3, 2, 2),)
    for mode in ("sum", "mean", "max"):
        yield _made("EmbeddingBag", 10, 4, mode=mode), lambda: (whole(10, 7), torch.tensor([0, 3, 3]))
        yield (
            _made("EmbeddingBag", 10, 4, mode=mode, include_last_offset=True),
            lambda: (whole(10, 7), torch.tensor([0, 3, 7])),
        )
    yield _made("EmbeddingBag", 10, 4, mode="sum", max_norm=0.5), lambda: (whole(10, 2, 3),)


REDUCTIONS = ("none", "mean", "sum")


def _losses() -> Iterator[Variant]:
    def ones(*shape: int) -> torch.Tensor:
        return torch.randint(0, 2, shape).float() * 2 - 1

    def probability() -> tuple[Any, ...]:
        return torch.rand(3, 4, requires_grad=True), torch.rand(3, 4)

    def classes() -> tuple[Any, ...]:
        return floats(3, 5), torch.tensor([1, 0, 4])

    for reduction in REDUCTIONS:
        for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss"):
            yield _made(name, reduction=reduction), _shaped((3, 4), (3, 4))
        yield _made("BCELoss", reduction=reduction), probability
        yield _made("BCEWithLogitsLoss", reduction=reduction), probability
        yield _made("KLDivLoss", reduction=reduction, log_target=True), _shaped((3, 4), (3, 4))
        yield _made("CrossEntropyLoss", reduction=reduction, ignore_index=0, label_smoothing=0.1), classes
        yield _made("NLLLoss", reduction=reduction, ignore_index=0), classes
        yield _made("PoissonNLLLoss", reduction=reduction, full=True, log_input=False), probability
        yield _made("MultiMarginLoss", reduction=reduction, p=2), classes
        yield _made("MultiLabelMarginLoss", reduction=reduction), lambda: (floats(1, 4), torch.tensor([[3, 0, -1, 1]]))
        yield _made("MultiLabelSoftMarginLoss", reduction=reduction), probability
        yield _made("HingeEmbeddingLoss", reduction=reduction), lambda: (floats(3, 4), ones(3, 4))
        yield (
            _made("CosineEmbeddingLoss", margin=0.1, reduction=reduction),
            lambda: (floats(3, 4), floats(3, 4), ones(3)),
        )
        yield _made("MarginRankingLoss", margin=0.1, reduction=reduction), lambda: (floats(3), floats(3), ones(3))
        yield _made("TripletMarginLoss", swap=True, reduction=reduction), _shaped((3, 4), (3, 4), (3, 4))
        yield _made("GaussianNLLLoss", reduction=reduction), lambda: (floats(3, 4), floats(3, 4), torch.rand(3, 4))
        yield (
            _made("CTCLoss", reduction=reduction),
            lambda: (floats(8, 2, 5).log_softmax(2), whole(4, 2, 3) + 1, torch.tensor([8, 8]), torch.tensor([3, 2])),
        )
    weight = torch.tensor([0.5, 1, 2, 1, 1])
    yield _made("CrossEntropyLoss", weight=weight), classes
    yield _made("CrossEntropyLoss"), lambda: (floats(3, 5), torch.rand(3, 5).softmax(1))
    yield _made("CrossEntropyLoss"), lambda: (floats(2, 5, 3), whole(5, 2, 3))
    yield _made("NLLLoss", weight=weight), classes
    yield _made("BCEWithLogitsLoss", pos_weight=torch.tensor([1.0, 2, 3, 4])), probability
    yield (
        lambda: nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(), swap=True),
        _shaped((3, 4), (3, 4), (3, 4)),
    )
    yield _made("CTCLoss", zero_infinity=True), lambda: (floats(4, 5).log_softmax(1), torch.tensor([1, 2]), 4, 2)
    yield _made("PairwiseDistance", p=1, keepdim=True), _shaped((3, 4), (3, 4))
    yield _made("CosineSimilarity", dim=0, eps=1e-3), _shaped((3, 4), (3, 4))


def _layouts() -> Iterator[Variant]:
    image = _shaped((1, 2, 3, 4))
    for mode in ("nearest", "nearest-exact", "area", "bilinear", "bicubic"):
        yield _made("Upsample", scale_factor=2, mode=mode), image
    yield _made("Upsample", size=5, mode="linear", align_corners=True), _shaped((1, 2, 3))
    yield _made("Upsample", scale_factor=(1, 2, 1.5), mode="trilinear"), _shaped((1, 1, 2, 3, 4))
    yield _made("Upsample", scale_factor=1.5, mode="nearest", recompute_scale_factor=True), image
    yield _made("UpsamplingNearest2d", scale_factor=3), image
    yield _made("UpsamplingBilinear2d", size=(4, 5)), image
    yield _made("ChannelShuffle", 3), _shaped((1, 6, 2, 2))
    yield _made("Flatten", 1, -2), _shaped((2, 3, 4, 5))
    yield _made("Unflatten", -1, (2, -1)), _shaped((2, 6))
    yield _made("Unflatten", 1, torch.Size([3, 2])), _shaped((2, 6))
