"""Batch norm in training after an effect, and inside `try` and `with`: its statistics are copied first.

The copies are restored if an operation raises and the user's own code runs instead. If all effects are before the
first operation, they run before the graph and nothing is copied. Values, buffers, versions, gradients and exceptions
are the same as in eager mode, and nothing breaks the graph.
"""

from __future__ import annotations

import contextlib
import copy
import traceback

import pytest
import torch
from torch import nn

import godynamo
from godynamo import utils


def whole(gm, example_inputs):
    return gm.forward


BACKENDS = pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["eager", "whole", "aot_eager"])


class Counts(nn.Module):
    """An effect before batch norm; `how` names the method that runs after it."""

    def __init__(self, how):
        super().__init__()
        self.norm, self.again = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
        self.linear = nn.Linear(4, 4)
        self.calls, self.how, self.log = 0, how, []

    def forward(self, x, y):
        self.calls += 1
        h = getattr(self, self.how)(self.norm(self.linear(x)), y)
        self.log.append("after")
        return h

    def plain(self, h, y):
        return self.again(h) + y

    def between(self, h, y):
        self.log.append("between")
        return self.again(h) + y

    def tries(self, h, y):
        try:
            return self.again(h) @ y
        except RuntimeError as error:
            self.log.append(type(error).__name__)
            return self.again(h) * 2

    def enters(self, h, y):
        with contextlib.suppress(RuntimeError):
            h = self.again(h) @ y
            self.log.append("inside")
        return h.relu()

    def both(self, h, y):
        try:
            h = self.again(nn.functional.dropout(h, 0.5))
            h = torch.rand(4) + h @ y
        finally:
            self.log.append("finally")
        return h


def state(module, exact):
    def value(t):
        return None if t is None else t.tolist() if exact else (t.detach() * 1e3).round().tolist()

    rows = [(name, value(t), exact and t._version) for name, t in module.state_dict(keep_vars=True).items()]
    return rows, [value(p.grad) for p in module.parameters()], module.calls, module.log


def outcome(module, backend, f, *args):
    """Return the results of a call and its backward pass. With AOTAutograd, gradients come from other formulas, and
    version counts differ."""
    exact = backend != "aot_eager"
    torch.manual_seed(1)
    try:
        result = f(*args)
        result.sum().backward()
    except RuntimeError as error:
        return type(error), str(error), state(module, exact), torch.rand(2).tolist()
    return result.tolist(), state(module, exact), torch.rand(2).tolist()


@BACKENDS
@pytest.mark.parametrize("how", ["plain", "between", "tries", "enters", "both"])
def test_what_raises_and_what_does_not(how, backend):
    torch.manual_seed(0)
    module = Counts(how)
    plain, module = copy.deepcopy(module), copy.deepcopy(module)  # copies have equal version counters
    optimized = godynamo.optimize(module, backend=backend)
    utils.counters.clear()
    fits, fails = torch.randn(4), torch.randn(7)
    for y in (fits, fits, fails, fits, fails, fails):
        x = torch.randn(5, 4)
        assert outcome(module, backend, optimized, x, y) == outcome(plain, backend, plain, x, y)
    assert not utils.counters["graph_break"]


@BACKENDS
def test_a_graph_that_raises_leaves_versions_as_they_were(backend):
    """The version counter is the same as in eager mode, so a backward pass detects that its saved tensor changed."""

    def f(x, total, y, log):
        try:
            total.add_(1)
            return x @ y
        except RuntimeError:
            log.append(total.tolist())
            raise

    def run(f):
        total, x, log = torch.ones(3), torch.ones(3, requires_grad=True), []
        saved = (x * total).sum()
        for y in (torch.ones(7), torch.ones(3)):
            with contextlib.suppress(RuntimeError):
                f(x, total, y, log)
        version = total._version
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            saved.backward()
        return total.tolist(), log, version

    got, wanted = run(godynamo.optimize(f, backend=backend)), run(f)
    assert got[:2] == wanted[:2] == ([3.0] * 3, [[2.0] * 3])
    assert got[2] == wanted[2] or backend == "aot_eager"


@BACKENDS
def test_before_the_change(backend):
    """Eager mode raises before the first change. The graph changes the buffers first, so the changes are undone."""

    class Effect(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.calls, self.log = nn.BatchNorm1d(3), 0, []

        def forward(self, x, y):
            self.calls += 1
            h = x @ y
            self.calls += 1
            return self.norm(h)

    module = Effect()
    plain, module = copy.deepcopy(module), copy.deepcopy(module)
    optimized = godynamo.optimize(module, backend=backend)
    good = torch.randn(3, 3)
    for y in (good, torch.randn(7, 3), torch.randn(3, 3, 3), good):
        assert outcome(module, backend, optimized, torch.randn(2, 3).fill_(2), y) == outcome(
            plain, backend, plain, torch.randn(2, 3).fill_(2), y
        )


@BACKENDS
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(1 << 15),
        lambda: torch.zeros(8)[::2],
        lambda: torch.zeros(1, 4).expand(4, 4)[0].requires_grad_(False),
        lambda: nn.Parameter(torch.zeros(4)),
        lambda: nn.Parameter(torch.zeros(4), requires_grad=False),
        lambda: torch.zeros(4, dtype=torch.int64),
    ],
    ids=["large", "strided", "expanded", "parameter", "frozen", "counts"],
)
def test_other_tensors(make, backend):
    def f(total, x, y, log):
        log.append(1)
        with torch.no_grad():
            total.add_(1)
        return x @ y

    optimized = godynamo.optimize(f, backend=backend)
    for call in (f, optimized):
        total, log = make(), []
        for y in (torch.ones(3), torch.ones(7), torch.ones(3)):
            with contextlib.suppress(RuntimeError):
                call(total, torch.ones(3), y, log)
        assert torch.equal(total, torch.full_like(total, 3)) and log == [1] * 3
        assert total._version - make()._version == 3 or backend == "aot_eager"


@pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
def test_copies_are_taken_only_where_they_may_be_needed(backend, monkeypatch):
    from godynamo._called import copies

    taken = []

    class Copies(copies.Copies):
        def read(self, *tensors):
            taken.append(len(tensors))
            return super().read(*tensors)

    monkeypatch.setattr(copies, "Copies", Copies)

    class Plain(Counts):
        def forward(self, x, y):
            h = self.norm(self.linear(x))
            self.calls += 1
            return h

    for cls, how, inline, graph in (
        (Plain, "", [], []),
        (Counts, "plain", [], []),
        (Counts, "between", [], [6]),
        (Counts, "tries", [6], [6]),
    ):
        del taken[:]
        godynamo.optimize(cls(how), backend=backend)(torch.randn(5, 4), torch.randn(4))
        assert taken == (inline if backend == "eager" else graph), how


@BACKENDS
def test_effects_in_front_of_the_first_operation(backend):
    """Effects before the operation that raises happen exactly once; an effect that raises shows its own line."""

    class Checked:
        def __init__(self):
            self.seen = []

        @property
        def value(self):
            return self.seen

        @value.setter
        def value(self, v):
            self.seen.append(v)

    def f(x, y, total, box, log, n):
        box.value = n
        log[n] = "begun"
        log.pop("gone")
        total.add_(x.sum())
        r = total @ y
        log["done"] = n
        return r

    def run(f):
        rows, box, total = [], Checked(), torch.zeros(3)
        for n, (size, extra) in enumerate(((3, "gone"), (7, "gone"), (3, "other"), (3, "gone"))):
            log = {extra: 1}
            try:
                rows.append(f(torch.ones(2), torch.ones(size), total, box, log, n).tolist())
            except (RuntimeError, KeyError) as error:
                lines = [row.lineno - f0 for row in traceback.extract_tb(error.__traceback__) if row.name == "f"]
                rows.append((type(error), str(error), lines))
            rows.append((dict(log), total.tolist(), list(box.seen)))
        return rows

    f0 = f.__code__.co_firstlineno
    assert run(godynamo.optimize(f, backend=backend)) == run(f)


class Spectral(Counts):
    """torch's spectral norm writes into its buffers by out=, then stores the weight, layer by layer."""

    def __init__(self):
        super().__init__("plain")
        self.layers = nn.Sequential(*(nn.utils.spectral_norm(nn.Linear(4, 4)) for _ in range(3)))

    def forward(self, x, y):
        return self.layers(x) @ y


@pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
def test_spectral_norm(backend):
    torch.manual_seed(0)
    module = Spectral()
    plain, module = copy.deepcopy(module), copy.deepcopy(module)
    optimized = godynamo.optimize(module, backend=backend)
    utils.counters.clear()
    for y in (torch.ones(4), torch.ones(7), torch.ones(4), torch.ones(7)):
        x = torch.randn(5, 4)
        assert outcome(module, backend, optimized, x, y) == outcome(plain, backend, plain, x, y)
    assert not utils.counters["graph_break"]


def resized(total, x, y, log):
    torch.add(x, 1, out=total)
    log.append(total.tolist())
    total.mul_(2)
    return x @ y


def own(total, x, y, log):
    noise = x.new(3).normal_()
    log.append("own")
    more = torch.Tensor(2, 3).fill_(1)
    total.resize_(0) if y is None else log.append("more")
    return (noise + more).mul_(x) @ y


def shared(total, x, y, log):
    same = x.new(total)
    log.append("shared")
    same.zero_()
    return x @ y


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("backend", ["eager", whole], ids=["eager", "whole"])
@pytest.mark.parametrize("f", [resized, own, shared], ids=lambda f: f.__name__)
def test_memory_of_the_frame_and_of_others(f, backend):
    """out= may change sizes, which are put back. Memory that the frame has made needs no copy."""
    optimized = godynamo.optimize(f, backend=backend)
    utils.counters.clear()
    for y in (torch.ones(3), torch.ones(7), torch.ones(3), torch.ones(7)):
        runs = []
        for call in (f, optimized):
            torch.manual_seed(1)
            total, x, log = torch.ones(2), torch.rand(3), []
            try:
                result = call(total, x, y, log).tolist()
            except RuntimeError as error:
                result = str(error)
            runs.append((result, total.tolist(), total._version, log, torch.rand(2).tolist()))
        assert runs[0] == runs[1]
    assert f is shared or f is resized or not utils.counters["graph_break"]
