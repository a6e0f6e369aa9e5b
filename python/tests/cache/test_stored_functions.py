"""Stored translations of operations that take functions: another process makes their graphs again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stored_support import Programs

OPERATIONS = """
import torch, godynamo
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.scan import scan
from torch.utils.checkpoint import checkpoint

def vmap(x):
    w = x[0]
    return torch.vmap(lambda row: (torch.sort(row)[0] * w).sum())(x)

def vmap_nested(x):
    return torch.vmap(torch.vmap(lambda a, b: torch.outer(a, b).cumsum(0), in_dims=(0, None)), in_dims=(0, None))(
        x.reshape(1, 3, 3), x[0]
    )

def grad(x):
    return torch.func.grad(lambda t, k: (t**3).sum() * k)(x, 2.0)

def grad_and_value(x):
    return torch.func.grad_and_value(lambda t: ((t**2).sum(), {"t": t * 2, "u": [t]}), has_aux=True)(x)

def hessian(x):
    return torch.func.hessian(lambda t: (t**3).sum())(x[0])

def vjp(x):
    y, f = torch.func.vjp(lambda t: (t.sin(), t.cos()), x)
    return y, f((x, x))

def jvp(x):
    return torch.func.jvp(lambda t: t.sin(), (x,), (x,))

def cond(x):
    return [torch.cond(y.sum() > 0, lambda v: v.sin() + x, lambda v: v - 1, (y,)) for y in (x, -x)]

def scanned(x):
    return scan(lambda carry, v: (carry + v, carry * v), torch.zeros(3), x)

def scanned_in_pairs(x):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")

def checkpointed(x):
    def inner(t, k, *, bias):
        return torch.relu(t) * k, {"t": t.exp() + bias, "k": (k, None)}

    y, more = checkpoint(inner, x, 3, bias=x[0], use_reentrant=False)
    return y, more

FUNCTIONS = {f.__name__: f for f in (vmap, vmap_nested, grad, grad_and_value, hessian, vjp, jvp, cond, scanned,
                                     scanned_in_pairs, checkpointed)}

def tensors(value):
    return [t for t in torch.utils._pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]

def run(f, requires_grad):
    torch.manual_seed(0)
    x = torch.randn(3, 3, requires_grad=requires_grad)
    result = f(x)
    ends = tensors(result)
    if requires_grad:
        sum(t.sum() for t in ends if t.requires_grad).backward()
        ends.append(x.grad)
    spec = torch.utils._pytree.tree_map(lambda v: None if isinstance(v, torch.Tensor) else v, result)
    return repr(spec), [t.tolist() for t in ends]

def main(name, backend):
    f = FUNCTIONS[name]
    train = name == "checkpointed"
    got = run(godynamo.optimize(f, backend=backend), train)
    return got == run(f, train), sum(godynamo.utils.counters["graph_break"].values())
"""

NAMES = [
    "vmap", "vmap_nested", "grad", "grad_and_value", "hessian", "vjp", "jvp", "cond", "scanned", "scanned_in_pairs",
    "checkpointed",
]  # fmt: skip


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
@pytest.mark.parametrize("name", NAMES)
def test_a_second_process_makes_the_graphs_again(programs: Programs, name: str, backend: str | None) -> None:
    programs.write("operations", OPERATIONS)
    first, second = programs.run("operations", name, backend), programs.run("operations", name, backend)
    assert first.result == second.result == (True, 0)
    assert first.loaded == 0 and (second.translated, second.loaded) == (0, first.translated)


CHANGES = """
import torch, godynamo
from torch.utils.checkpoint import checkpoint

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.scale, self.ran = torch.nn.Linear(3, 3), 2.0, []

    def inner(self, x):
        if torch.is_grad_enabled() and self.scale > 2:
            self.ran.append(self.scale)
        return torch.tanh(self.linear(x)) * self.scale

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)

def gradients(optimized):
    torch.manual_seed(0)
    model = Model()
    f = godynamo.optimize(model) if optimized else model
    x = torch.ones(2, 3, requires_grad=True)
    y = f(x).sum()
    model.scale = 3.0  # the second run, in backward, sees it
    y.backward()
    return model.ran, x.grad.tolist(), model.linear.weight.grad.tolist()

def main():
    got = gradients(True)
    return got == gradients(False), len(got[0])
"""


def test_a_checkpoint_runs_the_programs_function_again(programs: Programs) -> None:
    programs.write("changes", CHANGES)
    for again in (False, True):
        ran = programs.run("changes")
        assert ran.result == (True, 1) and (ran.loaded > 0) == again and (ran.translated == 0) == again


RAISES = """
import traceback
import torch, godynamo

def inner(row):
    return torch.mm(row, row)

def vmapped(x):
    return torch.vmap(inner)(x.unsqueeze(0)) if x.dim() else x

def plain(x):
    y = x + 1
    return torch.mm(y, y)

def main(name, backend):
    f = {"vmapped": vmapped, "plain": plain}[name]
    g = godynamo.optimize(f, backend=backend, dynamic=True)
    g(torch.ones(2, 2))
    texts = []
    for run in (f, g):
        try:
            run(torch.ones(2, 3))
        except RuntimeError as error:
            own = [s for s in traceback.extract_tb(error.__traceback__) if s.filename == __file__]
            texts.append([(s.filename, s.lineno, s.name) for s in own if s.name != "main"])
    return texts, __file__
"""


@pytest.mark.parametrize("name", ["vmapped", "plain"])
def test_tracebacks_name_sources_that_have_moved(programs: Programs, tmp_path: Path, name: str) -> None:
    programs.write("raises", RAISES)
    programs.run("raises", name, "eager")
    (tmp_path / "other").mkdir()
    moved = Programs(tmp_path / "other")
    moved.write("raises", RAISES)
    shutil.copytree(programs.files, moved.files)
    ran = moved.run("raises", name, "eager")
    (plain, captured), file = ran.result
    assert ran.loaded and file == str(moved.sources / "raises.py")
    assert captured == plain and len(plain) == (2 if name == "vmapped" else 1)
