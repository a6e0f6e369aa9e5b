"""Creates, optimizes, calls and drops many objects of one kind; fails if memory grows or an object stays alive.

python leak_program.py KIND COUNT BACKEND

The measure is the resident set size after a full collection. The first tenth is the warm-up.
"""

from __future__ import annotations

import gc
import sys
import weakref

import torch

import godynamo
from godynamo import _C

LIMIT_MIB = 5.0
ROUNDS = 10
X = torch.randn(8)


class Pass:
    """A custom backend that keeps nothing."""

    def __call__(self, gm, example_inputs):
        return gm.forward


@godynamo.disable
def opaque(fn, z):
    """A call that is never captured."""
    return fn(z)


def hidden(fn, z):
    """CPython runs this function, and the hook serves the frame of `fn`."""
    sys._getframe()
    return fn(z)


PLAIN = """
def f(a, b=2, *, c=(1, 2)):
    t = (a + b).relu() * K
    out = [t, {"x": t}]
    return out, t.sum() + c[0] + G
"""

BROKEN = """
def inner(y):
    return y * 2 if y.sum() > 0 else y - 1

def f(a, b=2):
    t = (a + b).relu()
    acc = []
    for i in range(2):
        u = call(lambda z: z + t, t)
        acc.append(inner(u))
    with no_grad():
        v = call(abs, t)
    return acc, v, [g for g in acc]
"""


def define(source, i, **names):
    """Return a function with its own code object and globals."""
    namespace = {"G": i, "K": float(i), "no_grad": torch.no_grad, **names}
    exec(compile(source, f"generated_{i}.py", "exec"), namespace)
    return namespace["f"]


class Module(torch.nn.Module):
    """A module with parameters in two kinds of layers."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.linear(x)).relu()


class OwnForward(Module):
    """A cycle of W (the optimized callable), bound self and attribute. Entries owned by code would keep it alive."""

    def __init__(self):
        super().__init__()
        self.forward = godynamo.optimize(self.forward)


def function(i, backend, source=PLAIN, **names):
    """Optimize and call a function; return weak references that must die."""
    fn = define(source, i, **names)
    optimized = godynamo.optimize(fn, backend=backend)
    optimized(X)
    optimized(X)
    return [weakref.ref(o) for o in (fn, fn.__code__, optimized)]


def closure(i, backend):
    """Optimize one of many functions that share a code object; its free variable holds a tensor."""
    held = X + i

    def fn(x):
        return (x + held).relu() * 2

    optimized = godynamo.optimize(fn, backend=backend)
    optimized(X)
    optimized(X)
    return [weakref.ref(o) for o in (fn, held, optimized)]


def broken(i, backend):
    """Create resume functions, with one W each."""
    return function(i, backend, BROKEN, call=opaque)


def hooked(i, backend):
    """Run frames that the hook serves."""
    return function(i, backend, BROKEN, call=hidden)


def extent(i, backend):
    """Translate inside a context manager: the entries belong to the manager's Root."""
    fn = define(BROKEN, i, call=opaque)
    manager = godynamo.optimize(backend=backend)
    with manager:
        fn(X)
        fn(X)
    return [weakref.ref(o) for o in (fn, fn.__code__)]


def full_cache(i, backend):
    """Reach the cache limit and exceed it."""
    fn = define(PLAIN, i)
    optimized = godynamo.optimize(fn, backend=backend)
    for n in range(1, 7):
        optimized(torch.randn(n))
        optimized(torch.randn(n, n))
    return [weakref.ref(o) for o in (fn, fn.__code__, optimized)]


def module(i, backend):
    """Run forward, backward, train and eval."""
    model = Module()
    optimized = godynamo.optimize(model, backend=backend)
    optimized(X).sum().backward()
    optimized.eval()
    optimized(X)
    return [weakref.ref(o) for o in (model, optimized, model.linear.weight, model.norm)]


def own_forward(i, backend):
    """Create a module that references the W of its own method."""
    model = OwnForward()
    model(X)
    model(X)
    return [weakref.ref(o) for o in (model, model.linear.weight, model.forward)]


KINDS = {kind.__name__: kind for kind in (function, closure, broken, hooked, extent, full_cache, module, own_forward)}


def resident_mib():
    """Return the resident set size of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 2**20


def main():
    """Run the program for one kind."""
    torch.set_num_threads(1)
    kind, count, backend = KINDS[sys.argv[1]], int(sys.argv[2]), sys.argv[3]
    backend = Pass() if backend == "custom" else backend
    sizes = []
    for _ in range(ROUNDS):
        references = []
        for i in range(count // ROUNDS):
            references += kind(i, backend)
        gc.collect()
        alive = [r() for r in references if r() is not None]
        assert not alive, f"{len(alive)} of {len(references)} alive, such as {alive[:3]}"
        sizes.append(resident_mib())
    counters = _C.counters()
    print(f"{kind.__name__} {count}: MiB {' '.join(f'{size:.1f}' for size in sizes)}")
    assert counters["translated"] >= count, counters
    assert counters["internal_errors"] == 0
    growth = sizes[-1] - sizes[0]
    assert growth < LIMIT_MIB, f"{growth:.1f} MiB more after {count}"


if __name__ == "__main__":
    main()
