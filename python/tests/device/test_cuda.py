"""What only CUDA has: streams, events, graphs, pinned memory, several devices. Needs a GPU (`make gpu`)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo

# CI has no GPU: `make gpu` runs these tests where there is one. Two need a machine with two.
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")


def drawn(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.0, 2.0, torch.Size(shape).numel()).reshape(shape).cuda()


def on_a_stream(x: Any) -> Any:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
    torch.cuda.current_stream().wait_stream(stream)
    return y + 1


def on_a_given_stream(x: Any, stream: Any) -> Any:
    with torch.cuda.stream(stream):
        y = x.relu() + 1
        same = torch.cuda.current_stream() == stream
    stream.synchronize()
    return y, same


def with_events(x: Any) -> Any:
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begun.record()
    y = x @ x
    ended.record()
    ended.synchronize()
    return y, begun.elapsed_time(ended) >= 0


def under_a_device(x: Any) -> Any:
    with torch.cuda.device(0):
        return torch.ones(3, device="cuda") + x[0, :3], torch.cuda.current_device()


def synchronizes(x: Any) -> Any:
    y = x * 3
    torch.cuda.synchronize()
    return y - 1


def under_autocast(x: Any) -> Any:
    with torch.autocast("cuda", dtype=torch.float16):
        y = x @ x
    return y, x + 1


def draws(x: Any) -> Any:
    torch.cuda.manual_seed(3)
    return torch.rand(3, device="cuda"), torch.cuda.initial_seed(), x + 1


def pins(x: Any) -> Any:
    host = torch.empty(x.shape, pin_memory=True)
    host.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    return host.is_pinned(), host.to("cuda", non_blocking=True) + x


def asks(x: Any) -> Any:
    major, _minor = torch.cuda.get_device_capability()
    return x + major, torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.memory_allocated() > 0


@pytest.mark.parametrize(
    "fn", [on_a_stream, with_events, under_a_device, synchronizes, under_autocast, draws, pins, asks]
)
def test_equals_eager(fn: Callable[..., Any]) -> None:
    godynamo.reset()
    x = drawn(4, 4)
    compiled = godynamo.optimize(fn)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), fn(x), rtol=0, atol=0)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_given_stream() -> None:
    godynamo.reset()
    compiled = godynamo.optimize(on_a_given_stream)
    for _ in range(2):
        stream = torch.cuda.Stream()
        torch.testing.assert_close(compiled(drawn(4), stream), on_a_given_stream(drawn(4), stream))


def test_a_captured_function_runs_on_the_callers_stream() -> None:
    godynamo.reset()
    compiled = godynamo.optimize(lambda x: (x * 2).relu() + 1)
    x = drawn(1 << 20)
    expected = compiled(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x.mul_(2)
        got = compiled(x)
    stream.synchronize()
    torch.testing.assert_close(got, ((expected - 1) * 2).relu() + 1)


def test_cuda_graph_of_an_optimized_function() -> None:
    godynamo.reset()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)).cuda().eval()
    compiled = godynamo.optimize(module)
    static = drawn(4, 8)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                compiled(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = compiled(static)
        for scale in (1.0, 3.0):
            static.copy_(drawn(4, 8) * scale)
            graph.replay()
            torch.testing.assert_close(out, module(static))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_inductor(mode: str) -> None:
    godynamo.reset()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 8)).cuda()
    compiled = godynamo.compile(module, mode=mode)
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        x = drawn(4, 8)
        got = compiled(x)
        got.sum().backward()
        grads = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        module(x).sum().backward()
        torch.testing.assert_close(got, module(x), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(grads, [p.grad for p in module.parameters()], rtol=1e-3, atol=1e-4)
        module.zero_grad()


class Cache(nn.Module):
    """Keeps the sum of what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("kept", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        self.kept.add_(x)
        return self.lin(self.kept)


def test_cuda_graphs_change_buffers_where_they_are() -> None:
    from torch._dynamo.utils import counters

    godynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    module = Cache().cuda()
    plain = copy.deepcopy(module)
    compiled = godynamo.compile(module, mode="reduce-overhead")
    with torch.no_grad():
        for turn in range(8):
            if turn == 5:  # memory that moves: the CUDA graph is recorded again
                module.kept, plain.kept = module.kept.clone(), plain.kept.clone()
                module.lin.weight.data = module.lin.weight.data * 2
                plain.lin.weight.data = plain.lin.weight.data * 2
            torch.testing.assert_close(compiled(drawn(4)), plain(drawn(4)))
            torch.testing.assert_close(module.kept, plain.kept, rtol=0, atol=0)
    assert counters["inductor"]["cudagraph_skips"] == 0
    assert counters["inductor"]["cudagraph_recorded_non_static_inputs"] <= 2


def test_no_synchronization_on_a_hit() -> None:
    godynamo.reset()
    module = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).cuda().eval()
    compiled = godynamo.optimize(module)
    x = drawn(2, 5, 16)
    with torch.no_grad():
        expected = [compiled(x) for _ in range(2)][0]
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            got = compiled(x)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(got, expected)


def test_guards_tell_cpu_from_cuda() -> None:
    godynamo.reset()
    compiled = godynamo.optimize(lambda x: x + torch.ones(3, device=x.device))
    for x in (drawn(3), drawn(3).cpu(), drawn(3)):
        assert compiled(x).device == x.device


@two
def test_current_device() -> None:
    godynamo.reset()

    def fn(x: Any) -> Any:
        return torch.ones(3, device="cuda"), x + 1, torch.cuda.current_device()

    compiled = godynamo.optimize(fn)
    for index in (0, 1, 0):
        with torch.cuda.device(index):
            x = drawn(3)
            got = compiled(x)
            assert got[0].device.index == got[1].device.index == got[2] == index


@two
def test_data_parallel() -> None:
    godynamo.reset()
    torch.manual_seed(0)
    module = nn.DataParallel(nn.Linear(4, 4).cuda())
    compiled = godynamo.optimize(module)
    for _ in range(2):
        torch.testing.assert_close(compiled(drawn(6, 4)), module(drawn(6, 4)))
