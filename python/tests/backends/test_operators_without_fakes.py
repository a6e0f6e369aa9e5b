"""Operators that FakeTensors cannot run break the graph under a backend that traces with them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import godynamo

LIBRARY = torch.library.Library("godynamo_no_fakes", "DEF")
LIBRARY.define("thrice(Tensor x) -> Tensor")
LIBRARY.impl("thrice", lambda x: x * 3, "CPU")


@torch.library.custom_op("godynamo_no_fakes::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def of_a_library(x: Any) -> Any:
    return torch.ops.godynamo_no_fakes.thrice(x.sin()).cos() + 1


def custom(x: Any) -> Any:
    return twice(x.sin()).cos() + 1


def both(x: Any) -> Any:
    y = twice(x.sin())
    z = torch.ops.godynamo_no_fakes.thrice(y.cos())
    return z.sin() + y


def inlined(x: Any) -> Any:
    return custom(x) * 2 + of_a_library(x)


def of_torch(x: Any) -> Any:
    return x.sin() + torch.quasirandom.SobolEngine(3).draw(2).sum()


@pytest.mark.parametrize("program", [of_a_library, custom, both, inlined, of_torch], ids=lambda p: p.__name__)
def test_results_are_eagers(program: Any) -> None:
    x = torch.linspace(0, 1, 5)
    optimized = godynamo.optimize("aot_eager")(program)
    for _ in range(2):
        assert torch.equal(optimized(x), program(x))


def test_the_rest_is_compiled() -> None:
    from functorch.compile import aot_module_simplified, nop

    compiled = []

    def compiler(gm: Any, inputs: Any) -> Any:
        run = aot_module_simplified(gm, inputs, fw_compiler=nop)
        compiled.append([node.name for node in gm.graph.nodes if node.op.startswith("call_")])
        return run

    godynamo.utils.counters.clear()
    godynamo.optimize(compiler)(both)(torch.ones(3))
    assert compiled == [["sin"], ["cos"], ["mul"], ["sin", "add"]]  # "mul" is the kernel of thrice
    reasons = list(godynamo.utils.counters["graph_break"])
    assert len(reasons) == 2 and "twice" in reasons[0] and "thrice" in reasons[1]


def test_with_one_graph_the_operator_is_named() -> None:
    with pytest.raises(godynamo.exc.Unsupported, match=r"thrice.* cannot run on FakeTensors \(torch.library.reg"):
        godynamo.optimize("aot_eager", nopython=True)(of_a_library)(torch.ones(3))


def test_a_backend_that_fails_by_itself_raises() -> None:
    def failing(gm: Any, inputs: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(godynamo.exc.BackendCompilerFailed, match="mine"):
        godynamo.optimize(failing)(lambda x: x.sin() + 1)(torch.ones(3))
