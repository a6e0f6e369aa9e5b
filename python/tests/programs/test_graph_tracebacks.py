"""Whole graphs that change tensors in place or draw random numbers, then raise: the traceback equals CPython's."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from godynamo.testing import CompileCounterWithBackend


def straight(x: Any, bad: Any) -> Any:
    x.add_(1)
    y = x * 2
    z = y @ bad
    return z + 1


def several_on_a_line(x: Any, bad: Any) -> Any:
    return (x.mul_(2) + 1, (x @ bad.sin()).cos() + (x * 2) @ bad)


def inner(a: Any, bad: Any) -> Any:
    a += 1
    return (a @ bad).sin(), a


def middle(a: Any, bad: Any) -> Any:
    b, _ = inner(a, bad)
    return b * 2


def inlined(x: Any, bad: Any) -> Any:
    y = x + 1
    z = middle(y, bad)
    return z + 1


def iadd(x: Any, bad: Any) -> Any:
    y = x.clone()
    y[0] = 1
    y += x
    y += bad.sum(1)
    return y


def setitem(x: Any, bad: Any) -> Any:
    y = x * 2
    y[0] = 1
    y[:, 1:] = bad
    return y


def in_place_method(x: Any, bad: Any) -> Any:
    y = x.clone()
    y.mul_(2)
    y.mul_(bad)
    return y


def looped(x: Any, bad: Any) -> Any:
    y = x.clone()
    for k in range(4):
        y.add_(k)
        if k == 2:
            y = y @ bad
    return y


def drops(x: Any, bad: Any) -> Any:
    y = F.dropout(x, 0.5, True)
    return F.linear(y, bad)


def library_frames(x: Any, bad: Any) -> Any:
    y = F.dropout(x, 0.5, True)
    z = F.softmax(y, -1)
    return F.layer_norm(z, (77,)) + F.linear(z, bad)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.last = torch.nn.Linear(77, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.norm(x))


net = Net()


def module(x: Any, bad: Any) -> Any:
    return net(x) @ bad


def later_call(x: Any, bad: Any) -> Any:
    """Raise in the second graph, after a break."""
    x.add_(1)
    print("here")
    x.mul_(2)
    return torch.cat([x, bad], dim=0) @ bad


IN_PLACE = [straight, several_on_a_line, inlined, iadd, setitem, in_place_method, looped, later_call]
PROGRAMS = [*IN_PLACE, drops, library_frames, module]


def forward(gm: Any, _example_inputs: Any) -> Any:
    return gm.forward


def itself(gm: Any, _example_inputs: Any) -> Any:
    return gm


def wrapped(gm: Any, _example_inputs: Any) -> Any:
    return lambda *inputs: gm(*inputs)


def retraced(gm: Any, _example_inputs: Any) -> Any:
    """Keep only the nodes' names."""
    new = torch.fx.Transformer(gm).transform()
    for node in new.graph.nodes:
        node.meta.pop("stack_trace", None)
    return new


def renamed(gm: Any, _example_inputs: Any) -> Any:
    """Keep only the nodes' user stacks."""
    new = copy.deepcopy(gm)
    for k, node in enumerate(new.graph.nodes):
        node.name = f"node{k}"
    new.recompile()
    return new


def interpreted(gm: Any, _example_inputs: Any) -> Any:
    return torch.fx.Interpreter(gm, garbage_collect_values=False).run


def raised(f: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    x, bad = torch.randn(2, 3), torch.randn(5, 7)
    with pytest.raises((RuntimeError, IndexError, ValueError)) as info:
        f(x, bad)
    error = info.value
    shown = traceback.extract_tb(error.__traceback__)[1:]
    return [type(error), [(s.filename, s.lineno, s.name, s.colno, s.end_colno) for s in shown], x.tolist(), str(error)]


@pytest.mark.parametrize("backend", [forward, itself, wrapped, retraced])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_traceback_is_that_of_the_program(
    program: Callable[..., Any], backend: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = raised(program), capfd.readouterr()
    counter = CompileCounterWithBackend(backend)
    optimized = godynamo.optimize(program, backend=counter)
    for _ in range(3):
        assert (raised(optimized), capfd.readouterr()) == expected
    assert counter.op_count > 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_renamed_node_is_known_by_its_line(program: Callable[..., Any]) -> None:
    lines = lambda shown: [s[:3] for s in shown]  # noqa: E731
    expected = raised(program)
    got = raised(godynamo.optimize(program, backend=renamed))
    assert got[0] == expected[0]
    assert lines(got[1]) == lines(expected[1])
    assert got[2:] == expected[2:]


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_interpreted_graph(program: Callable[..., Any]) -> None:
    expected = raised(program)
    got = raised(godynamo.optimize(program, backend=interpreted))
    assert got[:3] == expected[:3]  # FX appends to the message


def out_of_range(x: Any, index: Any) -> Any:
    x.add_(1)
    y = x * 2
    z = y[index]
    return z + 1


def test_a_graph_in_atens_operations_names_the_users_line() -> None:
    optimized = godynamo.optimize(out_of_range, backend="aot_eager")
    x = torch.randn(3, 2)
    assert torch.equal(optimized(x.clone(), torch.tensor([0, 2])), out_of_range(x.clone(), torch.tensor([0, 2])))
    with pytest.raises(IndexError) as info:
        optimized(x, torch.tensor([0, 7]))
    shown = [(s.name, s.lineno) for s in traceback.extract_tb(info.value.__traceback__)[1:]]
    assert shown[0] == ("out_of_range", out_of_range.__code__.co_firstlineno + 3)
    assert "forward" not in [name for name, _ in shown]


def test_a_callable_that_is_no_graph_leaves_the_backends_frames() -> None:
    def own(*inputs: Any) -> Any:
        raise RuntimeError("backend")

    optimized = godynamo.optimize(straight, backend=lambda gm, example_inputs: own)
    with pytest.raises(RuntimeError, match="backend") as info:
        optimized(torch.ones(2, 3), torch.ones(3, 3))
    shown = [s.name for s in traceback.extract_tb(info.value.__traceback__)]
    assert shown[1] == "straight"
    assert shown[-1] == "own"


def block_before_a_loop(x: Any, bad: Any) -> Any:
    with torch.enable_grad():
        x.add_(bad)
        for row in torch.ones(2):
            y = torch.randperm(4)[:4].float() * row
        z = torch.randperm(4)[:4].float()
    return y, z


def test_inline_code_with_many_calls_in_a_block() -> None:
    """Code written for 3.13 has a NOP before each call that has another handler than the code before it."""
    compiled = godynamo.optimize(block_before_a_loop)
    expected = raised(block_before_a_loop)
    assert [raised(compiled), raised(compiled)] == [expected, expected]
