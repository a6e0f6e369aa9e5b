"""Parameters and buffers are static inputs for compilers that make CUDA graphs. What that does needs a GPU
(tests/device/test_cuda.py); here the compiler's own metadata is read."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import godynamo


class Kept(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.register_buffer("sum", torch.zeros(2))
        self.plain = torch.ones(2)

    def forward(self, x: Any, given: Any) -> Any:
        self.sum.add_(1)
        return self.lin(x) + self.sum + self.plain + given


def static_inputs(monkeypatch: pytest.MonkeyPatch, *calls: tuple[Any, ...], **how: Any) -> list[list[str]]:
    """Compile Kept; return the names of the inputs that AOTAutograd calls static, for each compilation."""
    from torch._functorch import aot_autograd

    original: Any = aot_autograd._try_get_metadata_from_dynamo  # type: ignore[attr-defined]
    found = []

    def read(gm: Any, *rest: Any) -> Any:
        result = original(gm, *rest)
        names = [node.name for node in gm.graph.find_nodes(op="placeholder")]
        found.append([names[i] for i in result[1]])
        return result

    monkeypatch.setattr(aot_autograd, "_try_get_metadata_from_dynamo", read)
    godynamo.reset()
    module, plain = Kept(), Kept()
    plain.load_state_dict(module.state_dict())
    compiled = godynamo.compile(module, **how)
    for args in calls:
        torch.testing.assert_close(compiled(*args), plain(*args))
    return found


OF_MODULE = {"l_self__buffers_sum", "l_self__modules_lin__parameters_weight", "l_self__modules_lin__parameters_bias"}


def test_parameters_and_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = (torch.ones(3, 2), torch.ones(2)), (torch.ones(4, 2), torch.ones(2))
    found = static_inputs(monkeypatch, *calls, mode="reduce-overhead")
    assert [set(names) for names in found] == [OF_MODULE, OF_MODULE]  # constant sizes, then symbols


def test_a_tensor_that_the_user_has_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    given = torch.ones(2)
    godynamo.mark_static_address(given)
    (names,) = static_inputs(monkeypatch, (torch.ones(3, 2), given), options={"triton.cudagraphs": True})
    assert set(names) - OF_MODULE == {"l_args_1"}


@pytest.mark.parametrize("options", [{}, {"triton.cudagraphs": True, "freezing": True}])
def test_none_without_cuda_graphs(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    """With "freezing", static inputs would become constants."""
    assert static_inputs(monkeypatch, (torch.ones(3, 2), torch.ones(2)), options=options) == [[]]
