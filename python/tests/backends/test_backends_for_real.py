"""Backends registered as torch's entry points; a faulty backend causes an error that names it, or CPython's result."""

from __future__ import annotations

import sys

import pytest
import torch

import godynamo
from godynamo import config, exc

X = torch.linspace(-1.0, 1.0, 6)


def f(x):
    return x.sin() + 1, x.cos()


def test_torch_compile_finds_godynamo_by_its_name():
    assert "godynamo" in torch._dynamo.list_backends()
    m = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.ReLU())
    compiled = torch.compile(m, backend="godynamo")
    for _ in range(2):
        assert torch.equal(compiled(X), m(X))
    compiled(X).sum().backward()
    assert m[0].weight.grad is not None


def test_a_backend_of_another_package_is_found(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(
        "calls = []\ndef compiler(gm, inputs):\n    calls.append(gm)\n    return gm.forward\n"
    )
    info = tmp_path / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch_dynamo_backends]\nfrom_elsewhere = elsewhere:compiler\n")
    monkeypatch.syspath_prepend(tmp_path)
    from godynamo._backends import named

    named._entry_points.cache_clear()
    try:
        assert "from_elsewhere" in godynamo.list_backends()
        assert torch.equal(godynamo.optimize(f, backend="from_elsewhere")(X)[0], f(X)[0])
        assert len(sys.modules["elsewhere"].calls) == 1
    finally:
        named._entry_points.cache_clear()
        sys.modules.pop("elsewhere", None)


def raises(gm, example_inputs):
    raise ValueError("no")


def no_callable(gm, example_inputs):
    return 3


def too_many(gm, example_inputs):
    return lambda *a: (1, 2, 3)


def too_few(gm, example_inputs):
    return lambda *a: gm.forward(*a)[:1]


def a_tensor(gm, example_inputs):
    return lambda *a: gm.forward(*a)[0]


def nothing(gm, example_inputs):
    return lambda *a: None


def edited(gm, example_inputs):
    (output,) = [n for n in gm.graph.nodes if n.op == "output"]
    output.args = (output.args[0][:1],)
    gm.recompile()
    return gm


WRONG = [raises, no_callable, too_many, too_few, a_tensor, nothing, edited]


@pytest.mark.parametrize("backend", WRONG, ids=lambda b: b.__name__)
def test_a_backend_at_fault_is_named(backend):
    with pytest.raises((exc.BackendCompilerFailed, exc.InvalidBackendResult), match=backend.__name__):
        godynamo.optimize(f, backend=backend)(X)


@pytest.mark.parametrize("backend", WRONG, ids=lambda b: b.__name__)
def test_suppressed_errors_leave_eagers_result(backend):
    with config.patch(suppress_errors=True):
        g = godynamo.optimize(f, backend=backend)
        for _ in range(2):
            assert all(torch.equal(a, b) for a, b in zip(g(X), f(X)))


def test_inside_try_the_backend_is_named_too():
    def fn(x):
        try:
            return f(x)
        except ZeroDivisionError:
            return None

    with pytest.raises(exc.InvalidBackendResult, match="too_many"):
        godynamo.optimize(fn, backend=too_many)(X)


def test_a_module_is_not_half_updated_by_a_backend_at_fault():
    m = torch.nn.BatchNorm1d(3)

    def step(x):
        y = m(x)
        m.counter = 1
        return y, x

    with pytest.raises(exc.BackendCompilerFailed):
        godynamo.optimize(step, backend=raises)(torch.ones(2, 3))
    assert m.num_batches_tracked.item() == 0
    assert not hasattr(m, "counter")


def test_a_backend_calls_optimized_code():
    inner = godynamo.optimize(lambda x: x.cos(), backend=lambda gm, example_inputs: gm.forward)

    def compiles_with_it(gm, example_inputs):
        inner(torch.ones(2))

        def run(*inputs):
            inner(torch.ones(3))
            return gm.forward(*inputs)

        return run

    g = godynamo.optimize(f, backend=compiles_with_it)
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(g(X), f(X)))


def test_a_backend_may_return_a_list():
    g = godynamo.optimize(f, backend=lambda gm, example_inputs: lambda *a: list(gm.forward(*a)))
    assert all(torch.equal(a, b) for a, b in zip(g(X), f(X)))
