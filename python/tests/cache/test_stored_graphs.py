"""Stored translations with a backend that takes whole graphs: each process passes it the graph again."""

from __future__ import annotations

from stored_support import Programs

GRAPHS = """
import torch, godynamo

calls = []

def main(backend, sizes=(3,)):
    def unchanged(gm, inputs):
        calls.append(len(inputs))
        return gm.forward

    def fixed(gm, inputs):  # what compilers do: the code is right for the sizes of the examples only
        calls.append(len(inputs))
        shapes = [tuple(t.shape) for t in inputs]

        def run(*args):
            assert [tuple(t.shape) for t in args] == shapes
            return gm.forward(*args)

        return run

    def compiler(gm, inputs):
        return (unchanged if backend == "unchanged" else fixed)(gm, inputs)

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4))
    f = godynamo.optimize(backend if backend.startswith("aot") else compiler)(model)
    results = [f(torch.ones(n, 4) * n).sum().item() for n in sizes]
    return results, calls
"""


def test_graphs_of_backends_are_compiled_again(programs: Programs) -> None:
    programs.write("graphs", GRAPHS)
    for backend in ("unchanged", "fixed", "aot_eager"):
        first, second = programs.run("graphs", backend), programs.run("graphs", backend)
        assert first.result[0] == second.result[0]
        assert second.translated == 0 and second.loaded == 1


def test_graphs_with_symbols_are_compiled_again(programs: Programs) -> None:
    programs.write("graphs", GRAPHS)
    assert programs.run("graphs", "aot_eager", (3, 5, 6)).translated == 2
    others = (7, 4, 9)
    want = programs.run("graphs", "unchanged", others).result[0]
    second = programs.run("graphs", "aot_eager", others)
    assert second.result[0] == want
    assert (second.translated, second.loaded) == (0, 1)  # the one with symbols


ASSUMES = """
import torch, godynamo
from godynamo._backends import symbolic

def f(x):
    return x * 2 + x.shape[0]

def main(most):
    assumed = symbolic.Sizes.assumed

    def more(self):  # a compiler whose code is right for small sizes
        conditions, constants = assumed(self)
        return [*conditions, ("le", ("s", 0), most)], constants

    symbolic.Sizes.assumed = more
    g = godynamo.optimize(f, backend="aot_eager", dynamic=True)
    return [g(torch.ones(n)).sum().item() for n in (3, 5)]
"""


def test_code_that_assumes_something_else_is_not_used(programs: Programs) -> None:
    programs.write("assumes", ASSUMES)
    assert programs.run("assumes", 8) == ([15, 35], 1, 0, 0)
    assert programs.run("assumes", 8) == ([15, 35], 0, 1, 0)
    assert programs.run("assumes", 4) == ([15, 35], 2, 0, 0)


NUMBERS = """
import torch, godynamo

def f(x, n):
    return x * n

def main():
    g = godynamo.optimize(f, backend="aot_eager")
    return [g(torch.ones(2), n).sum().item() for n in (3, 5, 7)]
"""


def test_graphs_whose_symbols_are_numbers_are_made_again(programs: Programs) -> None:
    programs.write("ints", NUMBERS)
    first, second = programs.run("ints"), programs.run("ints")
    assert first.result == second.result == [6, 10, 14]
    assert (second.translated, second.loaded) == (1, 1)


def test_a_backend_that_has_become_another_one(programs: Programs) -> None:
    programs.write("graphs", GRAPHS)
    sizes = (3, 5, 4)
    want = programs.run("graphs", "unchanged", sizes).result[0]
    for backend in ("fixed", "unchanged", "fixed"):
        ran = programs.run("graphs", backend, sizes)
        assert ran.result[0] == want
