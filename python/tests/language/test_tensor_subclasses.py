"""Tensor subclasses in ``config.traceable_tensor_subclasses``: their handler is called as in torch, and captured."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import godynamo
from harness.capture import RecordingBackend, break_reasons, check, nb

x3 = [1.5, -2.0, 3.25]


class Sub(torch.Tensor):
    def __deepcopy__(self, memo: Any) -> Any:
        return self.detach().as_subclass(torch.Tensor).clone().as_subclass(type(self))

    def doubled(self) -> Any:
        return self * 2

    @property
    def tripled(self) -> Any:
        return self * 3


class Handled(Sub):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class Changing(Sub):
    """Its addition subtracts, relu returns a text, and other results are plain tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.add:
            func = torch.Tensor.sub
        if func is torch.Tensor.relu:
            return "relu of " + ", ".join(t.__name__ for t in types)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


SUBCLASSES = frozenset({Sub, Handled, Changing})

PROGRAMS = {
    "operators": lambda x: (x + 1).abs() * 2,
    "methods": lambda x: x.relu(),
    "functions": lambda x: torch.sin(x) + torch.nn.functional.gelu(x),
    "in a list": lambda x: torch.cat([x, x]).sum(0, keepdim=True),
    "beside a plain tensor": lambda x: (torch.ones(3) - x, x * torch.ones(3), torch.add(x, torch.ones(3), alpha=2)),
    "other operators": lambda x: (-x, x[0], x == 1, x @ x, x > 0),
    "in place": lambda x: x.add_(1) is x,
    "an operation that gives its operand": lambda x: torch.nn.functional.dropout(x, 0.0),
    "type and class": lambda x: (x * 2, type(x) is type(x), isinstance(x, Sub), isinstance(x * 2, Sub), x.__class__),
    "a method of the class": lambda x: x.doubled(),
    "a property of the class": lambda x: x.tripled,
    "stored": lambda x: {"a": [x, x * 2]},
}


def captured(fn: Any, cls: Any) -> RecordingBackend:
    with godynamo.config.patch(traceable_tensor_subclasses=SUBCLASSES):
        godynamo.reset()
        return check(fn, torch.tensor(x3).as_subclass(cls))


@pytest.mark.row("S004-24")
@pytest.mark.parametrize("cls", sorted(SUBCLASSES, key=lambda c: c.__name__), ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(cls: Any, name: str) -> None:
    recorder = captured(PROGRAMS[name], cls)
    assert not break_reasons()
    assert len(recorder) == (0 if (cls, name) == (Changing, "methods") else 1)


@pytest.mark.row("S004-24")
@pytest.mark.parametrize("cls", sorted(SUBCLASSES, key=lambda c: c.__name__), ids=lambda c: c.__name__)
def test_what_is_not_captured_is_right(cls: Any) -> None:
    captured(lambda x: [t * 2 for t in (x * 2).split(1)], cls)
    captured(lambda x: (1 - x, x * 2, x.shape, x.requires_grad), cls)
    captured(lambda x: (x * 2).max(0), cls)
    captured(lambda x: (x * 2).mul_(3).mT if x.dim() > 1 else x * 3, cls)
    captured(lambda x: str(x * 2), cls)


@pytest.mark.row("S001-22")
def test_the_handler_is_told_what_eager_tells_it() -> None:
    log: list[Any] = []

    class Logging(Sub):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func.__name__, [t.__name__ for t in types], len(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x: torch.Tensor) -> Any:
        y = x.sin() + 1
        z = torch.cat([y, torch.ones(3)], dim=0)
        return torch.nn.functional.softmax(z, dim=0), y.sum(0, keepdim=True)

    x = torch.tensor(x3).as_subclass(Logging)
    expected = f(x)
    told, log[:] = list(log), []
    with godynamo.config.patch(traceable_tensor_subclasses=frozenset({Logging})):
        backend = nb()
        got = godynamo.optimize(f, backend=backend)(x)
    assert log == told
    assert len(backend) == 1 and "sin" in backend.ops()
    for a, b in zip(expected, got, strict=True):
        assert type(a) is type(b) and torch.equal(a.as_subclass(torch.Tensor), b.as_subclass(torch.Tensor))


def test_another_handler_is_another_case() -> None:
    class Other(Sub):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    def later(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "later"

    with godynamo.config.patch(traceable_tensor_subclasses=frozenset({Other})):
        f = godynamo.optimize(lambda x: x * 2, backend="eager")
        x = torch.tensor(x3).as_subclass(Other)
        assert type(f(x)) is Other
        Other.__torch_function__ = classmethod(later)  # type: ignore[method-assign]
        assert f(x) == "later"
        assert type(f(torch.tensor(x3))) is torch.Tensor


def test_switched_off_by_the_caller() -> None:
    f = godynamo.optimize(lambda x: x * 2, backend="eager")
    x = torch.tensor(x3).as_subclass(Handled)
    with godynamo.config.patch(traceable_tensor_subclasses=SUBCLASSES):
        for _ in range(2):
            assert type(f(x)) is Handled
            with torch._C.DisableTorchFunctionSubclass():
                assert type(f(x)) is torch.Tensor


class Dispatching(torch.Tensor):
    """Runs in CPython: torch dispatches below the operations that a graph contains."""

    @staticmethod
    def __new__(cls, data: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

    def __init__(self, data: torch.Tensor) -> None:
        self.data_inside = data

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [a.data_inside if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})))


def test_classes_with_torch_dispatch_run_in_cpython() -> None:
    x = Dispatching(torch.tensor(x3))
    for named in (frozenset(), frozenset({Dispatching})):
        with godynamo.config.patch(traceable_tensor_subclasses=named):
            recorder = nb()
            got = godynamo.optimize(lambda x: x * 2, backend=recorder)(x)
            assert type(got) is Dispatching and len(recorder) == 0
            assert torch.equal(got.data_inside, torch.tensor(x3) * 2)


def test_classes_need_not_be_named() -> None:
    recorder = nb()
    got = godynamo.optimize(lambda x: x * 2, backend=recorder)(torch.tensor(x3).as_subclass(Handled))
    assert type(got) is Handled and len(recorder) == 1
