"""The cases of `make sizes`: functions and models whose inputs change their sizes from call to call.

A case's ``make`` returns the function or module to optimize, and a function that calls it with every input in turn and
yields the results. The process that runs the case seeds torch first, so that two calls of ``make`` return equal cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

Steps = Callable[[Any], Iterator[Any]]
Made = tuple[Any, Steps]


@dataclass(frozen=True)
class Case:
    """A case: its title, its maker, and when and how it is measured."""

    about: str
    make: Callable[[], Made]
    warm: bool = False  # whether the calls are timed again once everything is translated
    capture: bool = False  # whether the first call is also timed against a first call with constant sizes
    needs: str = ""  # a library outside the project's environment
    flag: str = ""  # the option that includes the case
    grad: bool = False  # whether the calls record gradients


def each(target: Any, inputs: list[tuple[Any, ...]]) -> Made:
    """Return a case that calls the target once with each tuple of arguments."""
    return target, lambda call: (call(*arguments) for arguments in inputs)


def batches(sizes: list[int], width: int = 16) -> list[tuple[Any, ...]]:
    return [(torch.randn(size, width),) for size in sizes]


TEN = [6, 9, 16, 4, 32, 5, 11, 8, 2, 64]
GROWING = [5, 8, 11, 14, 17, 20, 23, 26, 29, 32]


def mlp() -> torch.nn.Module:
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers)


def view() -> Made:
    def function(x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        y = x.view(b * t, c)
        y = y + 1 if t % 2 else y * 2
        return y.relu()

    # Every t is even, so that one graph is enough for all calls.
    sizes = [(2, 4), (2, 6), (3, 8), (5, 2), (4, 10), (7, 12), (6, 4), (9, 14), (8, 6), (3, 16)]
    return each(function, [(torch.randn(b, t, 8),) for b, t in sizes])


def ints() -> Made:
    def function(x: torch.Tensor, n: int, scale: float) -> torch.Tensor:
        return (x + n) * scale

    return each(function, [(torch.randn(8), n, 0.25 * n + 0.1) for n in TEN])


def item() -> Made:
    def function(n: torch.Tensor) -> torch.Tensor:
        k = n.item()
        return torch.ones(int(k)) * 2

    return each(function, [(torch.tensor(n),) for n in TEN])


def masks() -> Made:
    def function(x: torch.Tensor) -> Any:
        positive = x[x > 0]
        count = positive.size(0)
        return positive * count, x.nonzero().sum(0) + count

    return each(function, [(torch.randn(n),) for n in GROWING])


def tolist() -> Made:
    def function(x: torch.Tensor, lengths: torch.Tensor) -> Any:
        sizes = lengths.tolist()
        a, b, c = x.split(sizes)  # type: ignore[no-untyped-call]
        return a.sum(0) * 2, b.relu(), c + c.shape[0]

    inputs = [(torch.randn(3 * n + 3, 4), torch.tensor([n, n + 1, n + 2])) for n in GROWING]
    return each(function, inputs)


def gcn() -> Made:
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(16, 32), GCNConv(32, 4)

        def forward(self, x: torch.Tensor, edges: torch.Tensor) -> Any:
            return self.second(self.first(x, edges).relu(), edges)

    graphs = [(torch.randn(n, 16), torch.randint(0, n, (2, 3 * n + 1))) for n in GROWING]
    return each(Net().eval(), graphs)


def llama(layers: int = 2) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=100,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def lengths() -> Made:
    model = llama()
    ids = [torch.randint(3, 100, (1, length)) for length in GROWING]
    return model, lambda call: (call(input_ids=i, use_cache=False).logits for i in ids)


def layers24() -> Made:
    model, ids = llama(24), torch.randint(3, 100, (1, 8))
    return model, lambda call: (call(input_ids=i, use_cache=False).logits for i in [ids])


def decoding() -> Made:
    from transformers import DynamicCache

    model = llama()
    tokens = [torch.randint(3, 100, (1, length)) for length in [8] + [1] * 20]

    def steps(call: Any) -> Iterator[Any]:
        cache = DynamicCache(config=model.config)
        for ids in tokens:
            yield call(input_ids=ids, past_key_values=cache, use_cache=True).logits

    return model, steps


def rcnn() -> Made:
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    model = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=96, max_size=160
    ).eval()
    sizes = [(96, 128), (100, 120), (128, 96), (90, 150), (110, 110)]
    return model, lambda call: (call(images) for images in [[torch.rand(3, *size)] for size in sizes])


def equal() -> Made:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x.relu() * x.shape[0], y.relu() * y.shape[0]

    return each(function, [(torch.randn(a), torch.randn(b)) for a, b in [(6, 6), (7, 9), (8, 5), (9, 9)]])


def turns() -> Made:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0] * x.shape[1]) + x.shape[1]

    return each(function, [(torch.randn(*size),) for size in [(4, 6), (5, 6), (5, 7), (8, 9)]])


def slices() -> Made:
    def function(x: torch.Tensor, end: int) -> torch.Tensor:
        return x[:end] * 2

    x = torch.randn(64)
    return each(function, [(x, end) for end in (10, 20, 30, 5, 40, 7)])


def arange() -> Made:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.size(0))

    return each(function, [(torch.randn(n),) for n in (4, 6, 9, 12, 5)])


def branch() -> Made:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.shape[0] > 8 else x.cos()

    return each(function, [(torch.randn(n),) for n in (4, 12, 6, 20, 5, 9, 8)])


def counter() -> Made:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    x = torch.randn(8)
    return each(Counting(), [(x,)] * 10)


CASES: dict[str, Case] = {
    "mlp": Case("MLP, 10 batch sizes", lambda: each(mlp(), batches(TEN)), warm=True, grad=True),
    "batches": Case("MLP, batches 1 2 3 4 1 5 0 6", lambda: each(mlp(), batches([1, 2, 3, 4, 1, 5, 0, 6])), grad=True),
    "view": Case("view(b*t, c), branch on t % 2 (10)", view, warm=True),
    "ints": Case("int and float arguments (10)", ints),
    "item": Case("k = n.item(), ones(k) (10)", item),
    "masks": Case("x[x > 0], its size, nonzero (10)", masks),
    "tolist": Case("x.split(lens.tolist()) (10)", tolist),
    "gcn": Case("2 GCNConv, 10 graphs", gcn, needs="torch_geometric"),
    "llama": Case("Llama, 2 layers, 10 lengths", lengths, capture=True, needs="transformers"),
    "decoding": Case("decoding, prompt + 20 tokens", decoding, warm=True, needs="transformers"),
    "layers": Case("Llama, 24 layers, first call", layers24, needs="transformers"),
    "equal": Case("sizes equal at first (4)", equal),
    "turns": Case("two sizes changing in turn (4)", turns),
    "slice": Case("slice end (6)", slices),
    "arange": Case("arange(size) (5)", arange),
    "branch": Case("branch on a size (7)", branch),
    "counter": Case("a module's counter (10)", counter),
    "rcnn": Case("Faster R-CNN, 5 image sizes", rcnn, needs="torchvision", flag="heavy"),
    "inductor": Case("inductor: MLP, 10 batch sizes", lambda: each(mlp(), batches(TEN)), flag="inductor"),
}
