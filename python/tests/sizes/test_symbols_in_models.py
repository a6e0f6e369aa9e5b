"""Sizes that change in modules: layers that are repeated, attention, images in windows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import godynamo
from test_symbols import assert_serves


class Chunked(nn.Module):
    """A block whose code counts the parts of a tensor."""

    def __init__(self, by):
        super().__init__()
        self.linear, self.by = nn.Linear(6, 6), by

    def forward(self, x):
        a, b, *_ = x.unbind(0) if self.by == "unbind" else x.chunk(2, -1)
        y = torch.relu(a) + b.sin() * 2 - a.cos()
        return self.linear(torch.stack([y, y]) if self.by == "unbind" else torch.cat([y, y], -1))


@pytest.mark.parametrize("by", ["chunk", "unbind"])
def test_equal_layers_that_split_a_tensor_keep_symbols(by):
    torch.manual_seed(0)
    net = nn.Sequential(*(Chunked(by) for _ in range(6)))
    calls = [(torch.randn(2, n, 6),) for n in (4, 7, 1, 12)]

    def f(x):
        return net(x)

    assert_serves(f, calls, 1)
    compiled = godynamo.optimize(f)
    compiled(calls[0][0])
    (entry,) = godynamo.cache_entries(compiled)
    assert entry.info["reused_layers"] > 0


def windows(x, size):
    """Cut an image into windows as Swin does: pad it to a multiple, then view and permute."""
    b, h, w, c = x.shape
    x = F.pad(x, (0, 0, 0, (size - w % size) % size, 0, (size - h % size) % size))
    _, h, w, _ = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(b * (h // size) * (w // size), size * size, c)


def merged(x):
    """Halve an image, as patch merging does."""
    h, w = x.shape[1:3]
    x = F.pad(x, (0, 0, 0, w % 2, 0, h % 2))
    return torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)


def test_products_that_are_too_large_for_one_expression():
    def f(x):
        out = []
        for _ in range(3):
            out.append(windows(x, 7).sum(1))
            x = merged(x)
        return out

    shapes = [(2, 32, 32, 3), (3, 48, 32, 3), (1, 33, 50, 3), (4, 64, 48, 3)]
    assert_serves(f, [(torch.arange(float(torch.Size(s).numel())).reshape(s),) for s in shapes], 2)


class Windowed(nn.Module):
    """A block whose graph computes ints from sizes."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = windows(x, 4)
        y = torch.relu(self.linear(y)) + y.sin() * 2 - y.cos()
        return F.pad(x, (0, 1))[..., :3] + y.view(-1, 3).mean(0) * y.shape[0]


def test_equal_layers_share_the_ints_of_a_whole_graph():
    torch.manual_seed(0)
    net = nn.Sequential(*(Windowed() for _ in range(5)))
    shapes = [(2, 8, 9, 3), (3, 12, 10, 3), (1, 13, 8, 3), (4, 15, 11, 3)]
    assert_serves(lambda x: net(x), [(torch.randn(s),) for s in shapes], 1)


def test_an_elementwise_function_that_is_mapped():
    def f(x, y):
        return torch.vmap(lambda a, b: a * 2 + b.sin())(x, y), x.shape

    assert_serves(f, [(torch.randn(s), torch.randn(s)) for s in [(4, 3), (5, 3), (2, 7), (1, 2)]], 1)


def test_a_scan_serves_lengths_with_equal_steps():
    from torch._higher_order_ops.associative_scan import associative_scan

    def f(x):
        return associative_scan(lambda a, b: a + b * 2, x, 0, combine_mode="generic")

    # Each step halves the length. An entry serves lengths whose halves have equal parities; 9 and 11 differ in one.
    assert_serves(f, [(torch.randn(n, k),) for n, k in ((8, 3), (8, 5), (9, 2), (9, 3), (8, 2))], 2)


def test_the_fast_path_of_attention():
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 3, enable_nested_tensor=False)
    layer.eval()

    def f(x):
        return layer(x)

    with torch.no_grad():
        assert_serves(f, [(torch.randn(b, t, 8),) for b, t in ((2, 4), (3, 7), (5, 4))], 1)


@pytest.mark.parametrize("name", ["is_cuda", "is_nested", "is_sparse", "is_quantized", "itemsize", "is_meta"])
def test_flags_of_an_input_leave_its_sizes_symbols(name):
    def f(x):
        return (x * 2 if not getattr(x, name) else x * 3), x.shape[0] * 2

    calls = [(torch.ones(n, 3),) for n in (4, 2, 9)]
    assert_serves(f, calls, 1)
    other = {"is_sparse": torch.ones(2, 3).to_sparse(), "is_meta": torch.ones(2, 3, device="meta")}.get(name)
    if other is not None:
        compiled = godynamo.optimize(f)
        compiled(*calls[0])
        assert compiled(other)[0].layout == other.layout
        assert godynamo.cache_stats(compiled)["misses"] == 2


def aggregated(x, index, n):
    """Aggregate rows as graph neural networks do."""
    at = index[:, None].expand_as(x)
    most = x.new_zeros(n, x.shape[1]).scatter_reduce_(0, at, x, reduce="amax", include_self=False)
    return most, x.new_zeros(n, x.shape[1]).index_put_((index,), x, accumulate=True), most.shape


def test_operations_in_place_that_have_no_row_keep_sizes():
    def f(x, index, nodes):
        out = aggregated(x, index, nodes.shape[0])
        return (*out, out[0].numel() // out[0].shape[1])

    calls = [(torch.randn(e, 4), torch.randint(0, n, (e,)), torch.randn(n, 4)) for e, n in ((12, 4), (30, 7), (9, 9))]
    assert_serves(f, calls, 1)


def test_a_branch_on_a_count_of_the_data_and_a_size_that_is_not_empty():
    def f(edges, x):
        loops = torch.arange(x.shape[0])
        index = torch.cat([edges[edges != 2], loops])
        if index.numel() == 0:
            return x - 1
        return x + index.sum()

    calls = [(torch.arange(e), torch.ones(n, 2)) for e, n in ((5, 4), (9, 3), (0, 7))]
    assert_serves(f, calls, 1)
    none = torch.arange(0), torch.ones(0, 2)
    assert_serves(f, [*calls, none, calls[0]], 2)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.reshape(x.shape[0] * 2, -1) * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad * 2).reshape(x.shape)


@pytest.mark.parametrize("grad", [False, True])
def test_the_result_of_a_functions_forward_has_symbols(grad):
    def f(x):
        y = Doubled.apply(x)
        return y.sin(), y.shape, y.reshape(-1).cumsum(0), y.dtype

    calls = [(torch.arange(n * 4.0).reshape(n, 4).requires_grad_(grad),) for n in (4, 7, 1)]
    assert_serves(f, calls, 1)
    for (x,) in calls if grad else ():
        found = [torch.autograd.grad(g(x)[2].sum(), x)[0] for g in (f, godynamo.optimize(f))]
        assert torch.equal(*found)


def test_a_function_whose_forward_has_a_result_of_unknown_size():
    class Positive(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[x > 1]

    def f(x):
        y = Positive.apply(x)
        return y * 2, y.shape[0] + 1

    assert_serves(f, [(torch.arange(float(n)),) for n in (4, 7, 1)], 3)


@torch.jit.script_if_tracing
def kept_boxes(boxes: torch.Tensor, least: float) -> torch.Tensor:
    return boxes[torch.where(boxes[:, 2] - boxes[:, 0] >= least)[0]]


def test_boxes_that_are_kept_need_no_break():
    """Boxes are filtered as in torchvision's detectors: their number is known at run time only."""

    def f(boxes, mean):
        kept = kept_boxes(boxes - torch.as_tensor(mean)[None], 0.5)
        ids = torch.full_like(kept[:, :1], 1, layout=torch.strided)
        return torch.cat([ids, kept], 1), ids.shape[0]

    torch.manual_seed(0)
    mean = [0.1, 0.2, 0.3, 0.4]
    assert_serves(f, [(torch.rand(n, 4), mean) for n in (9, 4, 30)], 1)
