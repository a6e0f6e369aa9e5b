"""Stored translations that call numpy."""

from __future__ import annotations

import pytest

from stored_support import Programs

np = pytest.importorskip("numpy", "2")

ARRAYS = """
import warnings
import numpy as np, torch, godynamo

TABLE = np.arange(3, dtype=np.float32)

def quotient(a):
    return a / (a - a)

def f(a, t):
    b = np.sin(a) * 2 + a.sum(axis=0)
    c = quotient(a)
    c[0] = np.float64(3)
    n = np.linalg.norm(b)
    t = torch.from_numpy(b) + t + torch.as_tensor(TABLE) + torch.tensor(n)
    return t, a.dtype, np.zeros(3, dtype=a.dtype), float(n), np.asarray(t), TABLE * 2, c

def broken(a):
    x = a.mean()
    print(end="")
    return x + np.add(a, 1)

def main():
    g, h = map(godynamo.optimize, (f, broken))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        results = [repr(g(np.ones((2, n), t), torch.ones(2, n))) for n, t in ((3, "f4"), (3, "f8"), (1, "f4"))]
        return results, repr(h(np.ones(3))), [(str(w.message), w.filename, w.lineno) for w in seen]
"""


def test_arrays(programs: Programs) -> None:
    programs.write("arrays", ARRAYS)
    first, second = programs.run("arrays"), programs.run("arrays")
    assert first.result == second.result
    assert first.translated == second.loaded > 0 and second.translated == 0
    assert {line for *_, line in first.result[2] if "divide" in _[0]} == {8}
