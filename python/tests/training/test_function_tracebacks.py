"""An exception in a function that an operation calls shows the function's own frames, inside torch's."""

from __future__ import annotations

import traceback

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch.utils.checkpoint import checkpoint

import godynamo
from harness.training import breaks, whole

GOOD, BAD = torch.tensor([0, 5, 1]), torch.tensor([0, 99, 1])


def inner(a, index):
    b = a * 2
    return (b.sin(), b.view(-1)[index])[1] + b.view(-1)[index.clamp(max=1)]


def f(a, index):
    return inner(a, index) + 1


class Net(torch.nn.Module):
    def forward(self, x, index):
        return f(x, index).cos()


NET = Net()


def checkpointed(x, index):
    x.add_(1)
    return checkpoint(f, x, index, use_reentrant=False) + 1


def checkpointed_module(x, index):
    x.add_(1)
    return checkpoint(NET, x, index, use_reentrant=False)


def twice_on_a_line(x, index):
    x.add_(1)
    return checkpoint(f, x, GOOD, use_reentrant=False) + (checkpoint(f, x * 2, index, use_reentrant=False)).cos()


def in_a_helper(x, index):
    return checkpointed(x, index) * 2


def gradient(x, index):
    x.add_(1)
    return torch.func.grad(lambda a: f(a, index).sum())(x)


def jacobian(x, index):
    x.add_(1)
    return torch.func.jacrev(lambda a: f(a, index))(x)


def product(x, index):
    x.add_(1)
    out, pull = torch.func.vjp(lambda a: f(a, index), x)
    return pull(out)


def forward_mode(x, index):
    x.add_(1)
    return torch.func.jvp(lambda a: f(a, index), (x,), (x,))


def batched(x, index):
    x.add_(1)
    return torch.vmap(lambda a: f(a, index))(x)


def gradients_of_rows(x, index):
    x.add_(1)
    return torch.vmap(torch.func.grad(lambda a: f(a, index).sum()))(x)


def a_transform_in_a_function(x, index):
    x.add_(1)
    return torch.vmap(lambda row: row + torch.func.grad(lambda a: f(a, index).sum())(row))(x)


def the_operation_itself(x, index):
    x.add_(1)
    y = torch.vmap(torch.sin)(x)
    return y.view(-1)[index]


PROGRAMS = [
    checkpointed,
    checkpointed_module,
    twice_on_a_line,
    in_a_helper,
    gradient,
    jacobian,
    product,
    forward_mode,
    batched,
    gradients_of_rows,
    a_transform_in_a_function,
    the_operation_itself,
]


def raised(program, index=BAD):
    x = torch.linspace(0, 1, 12).reshape(2, 6)
    with pytest.raises(IndexError) as info:
        program(x, index)
    tb = info.value.__traceback__.tb_next
    shown = [(s.filename, s.lineno, s.name, s.colno, s.end_colno) for s in traceback.extract_tb(tb)]
    while tb is not None:
        assert tb.tb_frame.f_locals is not None
        tb = tb.tb_next
    return str(info.value), x.tolist(), shown


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
def test_frames_of_a_function_given_to_an_operation(program, backend):
    expected = raised(program)
    godynamo.reset()
    optimized = godynamo.optimize(program, backend=backend)
    optimized(torch.linspace(0, 1, 12).reshape(2, 6), GOOD)
    for _ in range(2):
        assert raised(optimized) == expected
    assert breaks() == {}


def mapped(x, index):
    x.add_(1)
    return torch_map(lambda row: f(row, index), x)


@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
def test_eager_shows_graphs_of_torch_compile_for_a_map_and_we_show_the_function(backend):
    got = raised(godynamo.optimize(mapped, backend=backend))
    ours = [(lineno, name) for file, lineno, name, *_ in got[2] if file == __file__]
    first = mapped.__code__.co_firstlineno
    lines = {fn.__name__: fn.__code__.co_firstlineno for fn in (f, inner)}
    assert ours == [
        (first + 2, "mapped"),
        (first + 2, "<lambda>"),
        (lines["f"] + 1, "f"),
        (lines["inner"] + 2, "inner"),
    ]
    assert not [name for _, _, name, *_ in got[2] if name in ("forward", "_wrapped_call_impl", "_call_impl")]
