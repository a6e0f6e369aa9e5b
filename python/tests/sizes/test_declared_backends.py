"""Backends that are declared to take symbols: register_backend(supports_dynamic_shapes=True), or the attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import godynamo
from harness.capture import entries
from test_unbacked import assert_serves


def closure(gm: Any, example_inputs: Any) -> Any:
    return lambda *inputs: gm.forward(*inputs)


class WithAttribute:
    supports_dynamic_shapes = True

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        return closure(gm, example_inputs)


@pytest.fixture
def registered() -> Iterator[str]:
    from godynamo._backends import named

    @godynamo.register_backend(name="takes_symbols", supports_dynamic_shapes=True)
    def backend(gm, example_inputs):
        return closure(gm, example_inputs)

    yield "takes_symbols"
    named._own.pop("takes_symbols")
    named._dynamic.discard("takes_symbols")


def both(x: Any, s: Any, m: Any) -> Any:
    return x * s + x.shape[0], x[m].shape[0]


def test_a_backend_may_be_declared_to_take_symbols(registered) -> None:
    calls = [(torch.randn(n, 2), float(n), torch.arange(n) % 2 > 0) for n in (3, 4, 5, 9)]
    assert_serves(both, calls, 2, WithAttribute())
    assert_serves(both, calls, 2, registered)
    assert_serves(both, calls, 2, godynamo._backends.named.lookup_backend(registered))
    assert len(entries(assert_serves(both, calls, 5, closure))) == 4


def test_what_a_declared_backend_assumes_is_guarded() -> None:
    class Even(WithAttribute):
        def __call__(self, gm: Any, example_inputs: Any) -> Any:
            even = bool(example_inputs[0].shape[0] % 2 == 0)
            return lambda x, *inputs: (gm.forward(x, *inputs)[0] + (1 if even else -1),)

    optimized = godynamo.optimize(lambda x: x * 2, backend=Even(), dynamic=True)
    for n in (4, 6, 3, 5, 8):
        assert torch.equal(optimized(torch.zeros(n)), torch.full((n,), 1.0 if n % 2 == 0 else -1.0))
    assert len(entries(optimized)) == 2
