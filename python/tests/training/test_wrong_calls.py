"""Wrong operator calls under backends that detect them while compiling: exception and line are as in eager mode."""

from __future__ import annotations

import traceback

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo import config, exc, utils

log: list[object] = []
norm = torch.nn.BatchNorm1d(6)
linear = torch.nn.Linear(5, 2)


def matmul(x):
    log.append(1)
    return x.sin() @ torch.ones(5, 5)


def behind_effects(x):
    drawn = torch.rand(3)
    log.append(2)
    y = x.clone().add_(1)
    return drawn + y.reshape(7)


def behind_a_buffer(x):
    y = norm(x)
    log.append(3)
    return linear(y)


def handled(x):
    try:
        return x.cos().view(5, 5)
    except RuntimeError as error:
        log.append(str(error))
        return x * 2


def in_a_block(x):
    with torch.no_grad():
        z = x.exp()
        return torch.cat([z, z[0]])


def inner_function(x):
    def inner(y):
        return y.transpose(0, 5)

    log.append("n")
    return inner(x.sin()) + 1


def a_leaf_in_place(x):
    w = torch.ones(3, requires_grad=True)
    log.append(5)
    w.add_(1)
    return w


PROGRAMS = [matmul, behind_effects, behind_a_buffer, handled, in_a_block, inner_function, a_leaf_in_place] + [
    lambda x: x.sin()[9],
    lambda x: x.sin().sum(5),
    lambda x: torch.softmax(x, dim=4),
    lambda x: F.conv2d(x, torch.ones(1, 2, 3, 3)),
    lambda x: F.cross_entropy(x, torch.tensor([0, 1])),
    lambda x: torch.einsum("ij,jk->ik", x, torch.ones(5, 5)),
    lambda x: torch.add(x.sin(), "a"),
    lambda x: x.cos().split([1, 1]),
]


def outcome(f, requires_grad):
    """Return the outcome of a call."""
    log.clear()
    torch.manual_seed(0)
    norm.reset_running_stats()
    x = torch.arange(24.0).reshape(4, 6).requires_grad_(requires_grad)
    try:
        result = f(x).tolist()
    except Exception as error:
        shown = traceback.extract_tb(error.__traceback__)
        lines = [(s.name, s.lineno) for s in shown if s.filename == __file__][1:]
        result = type(error), str(error), lines
    return result, list(log), torch.rand(1).item(), norm.running_mean.tolist(), norm.num_batches_tracked.item()


@pytest.mark.parametrize(("requires_grad", "suppressed"), [(False, False), (True, True)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f"{f.__name__}{f.__code__.co_firstlineno}")
def test_the_exception_is_eagers(program, requires_grad, suppressed, capfd):
    want = outcome(program, requires_grad)
    optimized = godynamo.optimize(program, backend="aot_eager")
    with config.patch(suppress_errors=suppressed):
        for _ in range(2):
            assert outcome(optimized, requires_grad) == want
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("program", [matmul, inner_function, PROGRAMS[9]], ids=["matmul", "inner", "softmax"])
def test_inductor(program):
    want = outcome(program, False)
    optimized = godynamo.optimize(program, backend="inductor")
    for _ in range(2):
        assert outcome(optimized, False) == want
    assert utils.counters["stats"]["graphs_that_raise"] or program is inner_function


def test_a_gradient_that_cannot_be_computed_is_the_programs_too():
    def f(x):
        y = x.exp()
        return torch.igamma(y, x.detach())

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(Exception) as want:
        f(x).sum().backward()
    g = godynamo.optimize(f, backend="aot_eager")
    assert torch.equal(g(x), f(x))
    with pytest.raises(want.type, match="igamma"):
        g(x).sum().backward()


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_backend_at_fault_is_named_still(requires_grad):
    def own(gm, example_inputs):
        raise ValueError("no")

    def f(x):
        x.add_(1)
        return norm(x).sin()

    norm.reset_running_stats()
    x = torch.ones(4, 6, requires_grad=requires_grad).clone()
    drawn = torch.get_rng_state()
    with pytest.raises(exc.BackendCompilerFailed, match="own"):
        godynamo.optimize(f, backend=own)(x)
    assert x.sum() == 24
    assert norm.num_batches_tracked == 0
    assert torch.equal(drawn, torch.get_rng_state())


def test_what_a_backend_logs_is_kept_where_it_is_at_fault(caplog):
    import logging

    torch_log = logging.getLogger("torch._subclasses.fake_tensor")

    def own(gm, example_inputs):
        torch_log.error("said")
        raise ValueError("no")

    torch_log.addHandler(caplog.handler)
    try:
        with pytest.raises(exc.BackendCompilerFailed):
            godynamo.optimize(lambda x: x.sin(), backend=own)(torch.ones(2))
    finally:
        torch_log.removeHandler(caplog.handler)
    assert [r.message for r in caplog.records].count("said") == 1
