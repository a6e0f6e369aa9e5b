"""requires_grad of computed tensors is read without making sizes constants."""

from __future__ import annotations

import pytest
import torch

import godynamo
from harness.capture import assert_no_internal_errors

SIZES = (4, 5, 2, 7)


def once_for_all(f, make, **settings) -> None:
    """Assert that one translation has eager mode's results at all sizes."""
    optimized = godynamo.optimize(f, **settings)
    for n in SIZES:
        torch.testing.assert_close(optimized(make(n)), f(make(n)), rtol=0, atol=0)
    assert godynamo.cache_stats(optimized)["translations"] == 1
    assert_no_internal_errors()


LINEAR = torch.nn.Linear(3, 3)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_of_a_result(backend, grad) -> None:
    def f(x):
        y = LINEAR(x)
        z = torch.cat([x.new_zeros(1, 3).expand(x.shape[0], 3), x], 1)
        if y.requires_grad:
            y = y * 2
        return y, z if z.requires_grad else z + 1

    with torch.set_grad_enabled(grad):
        once_for_all(f, lambda n: torch.ones(n, 3), backend=backend, dynamic=True)


def test_then_of_what_depends_on_sizes() -> None:
    """Strides that a later line reads are those of each call, though FakeTensor ran at the first call's sizes."""

    def f(x):
        rows = x.shape[0]
        y = LINEAR(x).expand(rows, rows, 3)
        flag = y.requires_grad
        return y.stride(), y.sum(0), y.is_contiguous(), flag, rows * 2

    optimized = godynamo.optimize(f)
    for n in (*SIZES, *SIZES):
        torch.testing.assert_close(optimized(torch.ones(n, 3)), f(torch.ones(n, 3)), rtol=0, atol=0)
    assert_no_internal_errors()


def test_after_an_in_place_change() -> None:
    def f(x, w):
        y = x * 2
        before = y.requires_grad
        y.mul_(w)
        return before, y.requires_grad, y

    optimized = godynamo.optimize(f)
    for n in SIZES:
        for leaf in (True, False):
            w = torch.ones(n, requires_grad=leaf)
            assert optimized(torch.ones(n), w)[:2] == (False, leaf)
    assert_no_internal_errors()


def test_flag_of_the_input_is_guarded() -> None:
    def f(x):
        return (x.reshape(x.shape[0] * 3) + 1).requires_grad

    optimized = godynamo.optimize(f)
    for n in SIZES:
        for leaf in (True, False):
            assert optimized(torch.ones(n, 3, requires_grad=leaf)) is leaf
    assert godynamo.cache_stats(optimized)["translations"] == 2


def test_equal_layers() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            y = self.linear(x)
            return y + 1 if y.requires_grad and x.requires_grad else y * 2

    model = torch.nn.Sequential(*[Layer() for _ in range(6)])
    once_for_all(model, lambda n: torch.ones(n, 3))
    once_for_all(model, lambda n: torch.ones(n, 3, requires_grad=True))


def test_attention_in_evaluation() -> None:
    """MultiheadAttention asks whether its query requires gradients, to choose a kernel."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), layer, torch.nn.LayerNorm(8)).eval()
    once_for_all(model, lambda n: torch.arange(n * 40.0).reshape(n, 5, 8) / 99)


def test_kinds_that_depend_on_dtype_and_device() -> None:
    def f(x):
        y = x + 1
        return y.type() == "torch.FloatTensor", isinstance(y, torch.FloatTensor), y

    once_for_all(f, lambda n: torch.ones(n))
