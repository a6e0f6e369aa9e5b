"""What programs do with devices. Runs on the CPU, and on the device that GODYNAMO_DEVICE names (`make gpu`)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo.testing import CompileCounter
from harness.device import DEVICE, random_state

BACKENDS = ["eager", "aot_eager"]


def drawn(*shape: int, grad: bool = False) -> torch.Tensor:
    """Return a tensor on the device, the same at each call."""
    made = torch.linspace(-1.0, 2.0, max(1, torch.Size(shape).numel())).reshape(shape).to(DEVICE)
    return made.requires_grad_(grad)


def equal(fn: Callable[..., Any], *args: Any, backend: Any = "eager", calls: int = 2) -> None:
    """Check results, their devices and the generators' states against eager."""
    godynamo.reset()
    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(calls):
        torch.manual_seed(7)
        expected, state = fn(*args), random_state()
        torch.manual_seed(7)
        got, after = compiled(*args), random_state()
        assert described(got) == described(expected)
        torch.testing.assert_close(tensors(got), tensors(expected), rtol=0 if backend == "eager" else 1e-5, atol=0)
        assert after == state


def described(value: Any) -> Any:
    """Return the devices and dtypes of the tensors of a result."""
    if isinstance(value, torch.Tensor):
        return str(value.device), value.dtype
    return [described(v) for v in value] if isinstance(value, (tuple, list)) else value


def tensors(value: Any) -> list[Any]:
    """Return the tensors of a result."""
    return [v for v in value if isinstance(v, torch.Tensor)]


def moves(x: Any) -> Any:
    return x.to("cpu") + 1, x.cpu().to(DEVICE) * 2, x.to(x.device, torch.float64), x.to("meta").shape


def makes_tensors_there(x: Any) -> Any:
    a = torch.zeros(3, device=x.device) + torch.arange(3, device=x.device)
    return a, x.new_ones(2), torch.full_like(x, 2.0), torch.tensor([1.0, 2.0], device=x.device.type)


def asks_for_the_device(x: Any) -> Any:
    if x.device.type == DEVICE and x.is_cpu == (DEVICE == "cpu"):
        return x + 1, str(x.device), x.get_device()
    return x - 1, str(x.device), -5


def under_a_device(x: Any) -> Any:
    with torch.device(DEVICE):
        a = torch.ones(3)
    return x[:3] + a, torch.ones(2)


def under_autocast(x: Any) -> Any:
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        y = x[None] @ x[:, None]
    return y, x + 1


def draws(x: Any) -> Any:
    return torch.rand(3, device=x.device), torch.randn_like(x), nn.functional.dropout(x, 0.5)


def draws_from_a_generator(x: Any) -> Any:
    generator = torch.Generator(device=DEVICE).manual_seed(3)
    return torch.rand(3, generator=generator, device=DEVICE), x + 1


def reads_values(x: Any) -> Any:
    n = int((x > 0).sum())
    return x[:n] * n, x.sum().item() * 2, x[x > 0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fn",
    [
        moves,
        makes_tensors_there,
        asks_for_the_device,
        under_a_device,
        under_autocast,
        draws,
        draws_from_a_generator,
        reads_values,
    ],
)
def test_equals_eager(fn: Callable[..., Any], backend: str) -> None:
    equal(fn, drawn(6), backend=backend)


def test_another_device_is_another_translation() -> None:
    godynamo.reset()
    counter = CompileCounter()
    compiled = godynamo.optimize(asks_for_the_device, backend=counter)
    for where in (DEVICE, "meta", DEVICE, "meta"):
        x = drawn(4).to(where)
        got, expected = compiled(x), asks_for_the_device(x)
        assert described(got) == described(expected)
        if where != "meta":
            torch.testing.assert_close(got[0], expected[0])
    assert counter.frame_count == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_module_that_is_moved(backend: str) -> None:
    godynamo.reset()
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    other = copy.deepcopy(module)
    compiled = godynamo.optimize(module, backend=backend)
    for where in ("cpu", DEVICE, "cpu"):
        module.to(where)
        other.to(where)
        x = drawn(3, 4).to(where)
        torch.testing.assert_close(compiled(x), other(x))


def test_a_module_that_moves_itself() -> None:
    class Moves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            self.to(x.device)
            return self.lin(x)

    godynamo.reset()
    torch.manual_seed(0)
    module = Moves()
    other = copy.deepcopy(module)
    compiled = godynamo.optimize(module)
    for _ in range(2):
        torch.testing.assert_close(compiled(drawn(2, 4)), other(drawn(2, 4)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_and_hooks(backend: str) -> None:
    def fn(x: Any, w: Any) -> Any:
        y = (x @ w).relu()
        y.register_hook(lambda grad: grad * 2)
        return y.sum() + (w * w).sum()

    godynamo.reset()
    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(2):
        found = []
        for call in (fn, compiled):
            x, w = drawn(3, 4, grad=True), drawn(4, 5, grad=True)
            call(x, w).backward()
            found.append((x.grad, w.grad))
        torch.testing.assert_close(found[1], found[0])


def test_training_steps() -> None:
    godynamo.reset()
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(DEVICE)
    plain = copy.deepcopy(ours)

    def step(module: Any, optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    sides = []
    for module, wrap in ((plain, lambda f: f), (ours, godynamo.optimize)):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        run = wrap(step)
        sides.append([run(module, optimizer, drawn(5, 4)) for _ in range(10)])
    assert torch.equal(torch.stack(sides[0]), torch.stack(sides[1]))


def indexed_cpus(x: Any) -> Any:
    """Tensors on the CPU and on meta have no index, whatever the program says."""
    y = x.to("cpu:0")
    made = torch.zeros(2, device=torch.device("cpu", 0)), torch.full((2,), 1.0, device="cpu:1")
    there = [str(t.device) for t in (y, *made, x.new_ones(1, device="cpu:0"))]
    meta = [str(x.to(name).device) for name in ("meta", "meta:0")]
    return y + 1, there, meta, str(torch.empty(1, device=torch.device("meta", 1)).device)


def test_the_index_is_captured() -> None:
    godynamo.reset()
    counter = CompileCounter()
    compiled = godynamo.optimize(lambda x: (x + 1).relu() + x.get_device() + (x * 2).get_device(), backend=counter)
    x = drawn(3)
    assert torch.equal(compiled(x), (x + 1).relu() + 2 * x.get_device())
    assert (counter.frame_count, counter.op_count) == (1, 5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_devices_without_an_index(backend: str) -> None:
    equal(indexed_cpus, drawn(3), backend=backend)


@pytest.mark.parametrize("backend", ["eager", CompileCounter()])
def test_the_current_device_is_guarded(backend: Any) -> None:
    """FakeTensor knows CUDA's devices where there are none, so the translation can be seen, if not run."""

    def made(x: Any) -> Any:
        return x + torch.zeros(3, device="cuda").device.index

    def moved(x: Any) -> Any:
        return x + x.cuda().device.index

    def moved_by_name(x: Any) -> Any:
        return x + x.to("cuda").device.index

    for fn in (made, moved, moved_by_name):
        godynamo.reset()
        compiled = godynamo.optimize(fn, backend=backend)
        try:
            compiled(drawn(3))
        except RuntimeError:
            assert not torch.cuda.is_available()
        (entry,) = godynamo.cache_entries(compiled)
        index = torch.cuda.current_device() if torch.cuda.is_initialized() else 0
        assert any(f"the current cuda device is {index}" in part for part in entry.parts), entry.parts
