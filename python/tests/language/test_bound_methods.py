"""Methods written in C that are bound to a constant and kept in a variable."""

from __future__ import annotations

import keyword
from typing import Any

import torch

import godynamo
from harness.cases import check_calls

CALLS = [lambda k=k: (torch.ones(3), k) for k in (1, 1, 2)]


JOIN, KNOWN = ", ".join, frozenset({"relu", "tanh"})


def test_bound_methods_of_constants() -> None:
    names = [keyword.iskeyword, JOIN, KNOWN.__contains__, (3).bit_length, "tanh".startswith]

    def f(x: torch.Tensor, k: int) -> Any:
        iskeyword, join, known, bits, starts = names
        return x + bits(), iskeyword("if"), iskeyword("x"), join(["a", "b"]), known("relu"), starts("ta"), join is JOIN

    check_calls(lambda: f, CALLS, graphs=1, translations=[1, 0, 0])
    compiled = godynamo.optimize(lambda x: x * names[3](), backend="eager")
    assert compiled(torch.ones(1)).item() == 2
    names[3] = (30).bit_length
    assert compiled(torch.ones(1)).item() == 5
