"""Stored translations of functions that call eval()."""

from __future__ import annotations

from stored_support import Programs

PROGRAM = """
import torch, godynamo

def f(x, text):
    return x + eval(text)

def main(text):
    x = torch.ones(3)
    return torch.equal(godynamo.optimize(f)(x, text), f(x, text))
"""


def test_other_processes_are_right(programs: Programs) -> None:
    programs.write("evaluated", PROGRAM)
    for text in ("x * 2", "x * 2", "x * 3"):
        ran = programs.run("evaluated", text)
        assert ran.result is True and ran.internal_errors == 0
