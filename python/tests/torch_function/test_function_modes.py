"""TorchFunctionModes inside and around captured code: S001-20."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import godynamo
from harness.capture import nb
from torch_function_support import LOG, Duck, Logged, compare, name_of, of, outcome, plain


class Times(TorchFunctionMode):
    """Multiplies the result of sin; logs every call."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(
            (f"Times {self.factor}", name_of(func), [t.__name__ for t in types], len(args), sorted(kwargs or {}))
        )
        result = func(*args, **(kwargs or {}))
        return result * self.factor if func in (torch.sin, torch.Tensor.sin) else result


class Plus(TorchFunctionMode):
    """Adds to the result of sin."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Plus", name_of(func)))
        result = func(*args, **(kwargs or {}))
        return result + 1 if func in (torch.sin, torch.Tensor.sin) else result


class Passes(TorchFunctionMode):
    """Leaves everything to the handlers of the types."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("Passes", func.__name__))
        return NotImplemented


class Constants(TorchFunctionMode):
    """Returns the name of the function."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__


def inside(x: Any) -> Any:
    y = x.cos()
    with Times(2):
        z = torch.sin(y) + 1
    return z, torch.sin(z)


def nested(x: Any) -> Any:
    with Times(2), Plus():
        y = torch.sin(x)
        with Times(3):
            z = x.sin()
    with Plus(), Times(2):
        return y, z, torch.sin(x)


def given(x: Any, mode: Any) -> Any:
    with mode:
        return torch.sin(x) * x


def functions(x: Any) -> Any:
    with Times(2):
        return F.relu(x), F.linear(x, torch.ones(2, 3)), x[0], x.shape, x.dtype, len(x), x.sum(), [t * 2 for t in x], -x


def constants(x: Any) -> Any:
    with Constants():
        return torch.sin(x), x.cos(), x + 1, torch.zeros(3), x.shape, F.relu(x)


def off_inside(x: Any) -> Any:
    with Times(2):
        with torch._C.DisableTorchFunctionSubclass():
            y = torch.sin(x)
        with torch._C.DisableTorchFunction():
            z = torch.sin(x)
    return y, z


def split(x: Any) -> Any:
    with Times(2):
        y = torch.sin(x)
        godynamo.graph_break()
        y = torch.sin(y)
    return torch.sin(y)


def raised(x: Any) -> Any:
    try:
        with Times(2):
            y = torch.sin(x)
            raise ValueError("inside")
    except ValueError:
        return torch.sin(x), y


def by_hand(x: Any) -> Any:
    mode = Times(2)
    mode.__enter__()
    y = torch.sin(x)
    mode.__exit__(None, None, None)
    return y, torch.sin(x)


def returned_inside(x: Any) -> Any:
    with Times(2):
        for i in range(2):
            if i:
                return torch.sin(x) * i


def stack(x: Any) -> Any:
    with Times(2), Plus() as top:
        modes = torch.overrides._get_current_function_mode_stack()
        return len(modes), modes[-1] is top, torch.overrides._get_current_function_mode() is top, torch.sin(x)


def no_grad_inside(x: Any) -> Any:
    with Times(2):
        with torch.no_grad():
            y = torch.sin(x)
    return y, y.requires_grad


def shown(x: Any) -> Any:
    with Times(2):
        y = torch.sin(x)
        print(y)
    return y


def left_entered(x: Any) -> Any:
    mode = Times(2)
    mode.__enter__()
    try:
        return torch.sin(x), mode
    finally:
        if x.dim() == 1:
            mode.__exit__(None, None, None)


#: each with the graph's operations, or None if the graph breaks
PROGRAMS = {
    inside: "cos sin mul add sin",
    nested: "sin mul add sin mul add mul sin add mul",
    functions: "relu ones linear getitem sum unbind getitem getitem getitem mul mul mul neg",
    constants: "",
    off_inside: "enter_functions_off sin mul leave_entered enter_all_functions_off sin leave_entered",
    raised: "sin mul sin",
    by_hand: "sin mul sin",
    returned_inside: "sin mul mul",
    stack: "sin mul add",
    split: None,
    no_grad_inside: None,
    shown: None,
    left_entered: "sin mul",
}


@pytest.mark.row("S001-20")
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("cls", [torch.Tensor, Logged], ids=lambda c: c.__name__)
def test_inside(fn: Any, cls: Any) -> None:
    got = compare(fn, lambda: [of(cls) if cls is Logged else plain()])
    assert torch._C._len_torch_function_stack() == 0
    expected = PROGRAMS[fn]
    if expected is None:
        assert got.breaks
    else:
        assert not got.breaks, got.breaks
        if cls is torch.Tensor:
            assert got.backend.all_ops() == expected.split()


@pytest.mark.row("S001-20")
@pytest.mark.parametrize("mode", [Times(2), Plus(), Passes(), Constants()], ids=lambda m: type(m).__name__)
def test_a_mode_that_is_given(mode: Any) -> None:
    def passing(x: Any, mode: Any) -> Any:
        with mode:
            return torch.add(x, 1)

    compare(passing, lambda: [of(Logged), mode])
    compare(passing, lambda: [Duck(plain()), mode])
    if not isinstance(mode, Constants):
        compare(given, lambda: [plain(), mode])


class Dispatched(torch.utils._python_dispatch.TorchDispatchMode):
    """Logs calls at the dispatcher, below the operations."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(str(func))
        return func(*args, **(kwargs or {}))


def dispatch_mode(x: Any) -> Any:
    y = x.cos()
    with Dispatched():
        z = F.relu(y) + x.shape[0]
    return z.sin()


def both_modes(x: Any) -> Any:
    with Dispatched(), Times(2):
        y = torch.sin(x)
    with Times(3), Dispatched():
        return torch.sin(x), y


@pytest.mark.row("S001-20")
@pytest.mark.parametrize("fn", [dispatch_mode, both_modes], ids=lambda f: f.__name__)
def test_dispatch_modes_are_left_to_cpython(fn: Any) -> None:
    got = compare(fn, lambda: [plain()])
    assert got.breaks and any(entry in ("aten.sin.default", "aten.relu.default") for entry in LOG)
    compiled = godynamo.optimize(lambda x: F.relu(x) + 1, backend="eager")
    for _ in range(2):
        LOG.clear()
        with Dispatched():
            compiled(plain())
        assert LOG[-2:] == ["aten.relu.default", "aten.add.Tensor"]
        compiled(plain())


@pytest.mark.row("S001-20")
@pytest.mark.parametrize("backend", ["eager", "nb"])
@pytest.mark.parametrize("fn", [lambda x: torch.sin(x) + 1, inside, functions, split, off_inside, raised])
def test_around(fn: Any, backend: str) -> None:
    compiled = godynamo.optimize(fn, backend=nb() if backend == "nb" else backend)
    for cls in (torch.Tensor, Logged):
        for _ in range(2):
            for modes in ([], [Times(2)], [Times(2), Plus()], [Plus(), Times(2)], [Plus(), Times(5)]):
                seen = []
                for run in (fn, compiled):
                    x = [of(cls) if cls is Logged else plain()]
                    for mode in modes:
                        mode.__enter__()
                    try:
                        with torch._C.DisableTorchFunction():
                            LOG.clear()
                        seen.append(outcome(run, x))
                    finally:
                        for mode in reversed(modes):
                            mode.__exit__(None, None, None)
                assert seen[0] == seen[1], (cls, [type(m).__name__ for m in modes])
    assert torch._C._len_torch_function_stack() == 0
