"""Inlined handlers: their results, effects and guards: S001-18, 19 and 21 to 27."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.capture import nb, no_translation
from torch_function_support import (
    LOG,
    Bare,
    Derived,
    Duck,
    Logged,
    Other,
    compare,
    of,
    plain,
)


@pytest.mark.row("S001-18")
@pytest.mark.parametrize("cls", [Bare, Logged, Derived, Other], ids=lambda c: c.__name__)
def test_results_keep_the_subclass(cls: Any) -> None:
    def f(a: Any) -> Any:
        r = a + 1
        top = a.max(0)
        parts = a.split(1)
        return (
            type(r),
            isinstance(r, type(a)),
            r,
            top,
            top.values,
            type(top.values),
            parts,
            parts[0] is parts[0],
            [t * 2 for t in a],
            a.shape,
            F.relu(a),
            a.detach(),
        )

    compare(f, lambda: [of(cls)]).one_graph("add", "max", "split")


@pytest.mark.row("S001-18")
def test_torch_tensors_own_handler_called_by_name() -> None:
    class Direct(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            plain_result = torch.Tensor.__torch_function__(func, types, args, kwargs or {})
            return (
                type(plain_result).__name__,
                plain_result,
                super().__torch_function__(func, types, args, kwargs or {}),
            )

    def f(a: Any) -> Any:
        return a.sin()

    compare(f, lambda: [of(Direct)])


@pytest.mark.row("S001-18")
def test_results_that_are_an_operand_stay_that_object() -> None:
    def f(a: Any) -> Any:
        return a.contiguous(), F.dropout(a, 0.0), a.detach(), a.to(torch.float32)

    for cls in (Bare, Logged):
        compare(f, lambda cls=cls: [of(cls)])

    class Unwrapped(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*args, **(kwargs or {}))
                return result, isinstance(result, torch.Tensor), isinstance(result, cls)

    compare(lambda a: (a.contiguous(), a * 2), lambda: [of(Unwrapped)])


def subclass_off(a: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        inside = a.sin(), type(a * 2)
    return inside, a.cos()


def all_off(a: Any) -> Any:
    with torch._C.DisableTorchFunction():
        inside = a.sin(), a.shape, torch._C._is_torch_function_enabled()
    return inside, a.cos(), torch._C._is_torch_function_enabled()


def split_inside(a: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        b = a.sin()
        godynamo.graph_break()
        c = b.cos() * a
    return c, a.cos()


@pytest.mark.row("S001-19")
@pytest.mark.parametrize("f", [subclass_off, all_off, split_inside])
def test_handlers_switched_off(f: Any) -> None:
    got = compare(f, lambda: [of(Logged)])
    assert [entry[1] for entry in LOG] == ["cos"]
    if f is not split_inside:
        got.one_graph("sin", "cos")
    assert torch._C._is_torch_function_enabled()


@pytest.mark.row("S001-19")
def test_handlers_switched_off_around() -> None:
    f = godynamo.optimize(lambda a: a * 2, backend="eager")
    a = of(Logged)
    for _ in range(2):
        assert type(f(a)) is Logged
        with torch._C.DisableTorchFunctionSubclass():
            assert type(f(a)) is torch.Tensor
        with torch._C.DisableTorchFunction():
            assert type(f(a)) is torch.Tensor


@pytest.mark.row("S001-19")
def test_a_class_that_has_switched_its_handler_off() -> None:
    class Disabled(Logged):
        __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    got = compare(lambda a, b: (a.sin(), type(a + b), a * 2), lambda: [of(Disabled), plain()])
    got.one_graph("sin", "add")
    assert LOG == []


def program(a: Any, b: Any) -> Any:
    y = torch.sin(a) + b
    z = F.layer_norm(y, (3,))
    for i in range(2):
        z = z * i + y.mean()
    return torch.cat([z, y]), z.shape[0], y[0]


@pytest.mark.row("S001-21")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "nb"])
def test_the_log_is_eagers(backend: str) -> None:
    LOG.clear()
    program(of(Logged), plain())
    expected = list(LOG)
    assert len(expected) > 10
    f = godynamo.optimize(program, backend=nb() if backend == "nb" else backend)
    a, b = of(Logged), plain()
    LOG.clear()
    f(a, b)  # the handlers run while translating
    assert LOG == expected
    with no_translation():
        for _ in range(3):  # the handlers run on hits
            LOG.clear()
            f(a, b)
            assert LOG == expected


@pytest.mark.row("S001-22")
def test_handlers_written_in_python_are_inlined() -> None:
    got = compare(lambda a: a.sin(), lambda: [of(Logged)])
    got.one_graph("sin")
    assert len(LOG) == 1
    got = compare(program, lambda: [of(Logged), plain()])
    got.one_graph("sin", "add", "layer_norm", "cat")


HANDLED: dict[Any, Any] = {}


class Table(torch.Tensor):
    """A table of implementations, as in torch's documentation."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in HANDLED or not all(issubclass(t, (torch.Tensor, Table)) for t in types):
            return super().__torch_function__(func, types, args, kwargs or {})
        return HANDLED[func](*args, **(kwargs or {}))


HANDLED[torch.add] = lambda a, b: torch.Tensor.sub(a, b)
HANDLED[F.relu] = lambda a, inplace=False: a.abs()


class WithData(torch.Tensor):
    """Carries additional data."""

    data_kept: Any

    def __new__(cls, data: Any, kept: Any = ()) -> Any:
        return torch.Tensor._make_subclass(cls, data)

    def __init__(self, data: Any, kept: Any = ()) -> None:
        self.data_kept = kept

    @property
    def count(self) -> int:
        return len(self.data_kept)

    def more(self, what: Any) -> Any:
        return WithData(self.as_subclass(torch.Tensor), (*self.data_kept, what))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kept = tuple(k for a in args if hasattr(a, "data_kept") for k in a.data_kept)
        args = [a.as_subclass(torch.Tensor) if isinstance(a, WithData) else a for a in args]
        result = func(*args, **(kwargs or {}))
        return WithData(result, (*kept, func.__name__)) if isinstance(result, torch.Tensor) else result


@pytest.mark.row("S001-22")
def test_a_table_of_implementations() -> None:
    compare(lambda a: (torch.add(a, 1), F.relu(a), a * 2), lambda: [of(Table)]).one_graph("sub", "abs", "mul")


@pytest.mark.row("S001-22")
def test_data_on_the_tensor_travels() -> None:
    def f(a: Any, p: Any) -> Any:
        b = (a * 2 + p).sin()
        c = b.more("by hand")
        made = WithData(p, ("new",)) + a
        return b, b.data_kept, b.count, c.data_kept, c.count, made, made.data_kept, hasattr(p, "data_kept")

    def make() -> Any:
        return [WithData(plain(), ("start",)), plain()]

    compare(f, make).one_graph("mul", "add", "sin")
    g = godynamo.optimize(f, backend="eager")
    kept = g(*make())[1]
    assert kept == ("start", "mul", "add", "sin")
    other = WithData(plain(), ("another",))
    assert g(other, plain())[1] == ("another", "mul", "add", "sin")


@pytest.mark.row("S001-23")
def test_effects_of_handlers_are_replayed_in_order() -> None:
    order: list[Any] = []
    counts = {"calls": 0}

    class Effects(torch.Tensor):
        made = 0

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(("before", func.__name__))
            counts["calls"] += 1
            cls.made += 1
            result = super().__torch_function__(func, types, args, kwargs or {})
            order.append(("after", func.__name__))
            print(func.__name__)
            return result

    def f(a: Any) -> Any:
        order.append("start")
        b = a.sin()
        order.append("between")
        return b.cos() + 1

    expected = None
    for backend in ("eager", nb()):
        g = godynamo.optimize(f, backend=backend)
        for run in (f, g, g, g):
            order.clear()
            counts["calls"] = Effects.made = 0
            run(of(Effects))
            expected = expected or list(order)
            assert order == expected and counts["calls"] == Effects.made == 3
    assert len(expected or ()) == 8


@pytest.mark.row("S001-24")
def test_another_handler_is_another_case() -> None:
    class Changing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    first = Changing.__dict__["__torch_function__"]
    f = godynamo.optimize(lambda a: a * 2, backend="eager")
    a = of(Changing)
    assert type(f(a)) is Changing
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "another")  # type: ignore
    assert f(a) == "another"
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "third")  # type: ignore
    assert f(a) == "third"
    Changing.__torch_function__ = first
    assert type(f(a)) is Changing
    del Changing.__torch_function__
    assert type(f(a)) is Changing  # torch.Tensor's handler
    Changing.__torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore
    assert type(f(a)) is torch.Tensor
    Changing.__torch_function__ = first
    assert type(f(a)) is Changing


@pytest.mark.row("S001-24")
def test_another_type_is_another_case() -> None:
    f = godynamo.optimize(lambda a: torch.sin(a), backend="eager")
    for _ in range(2):
        assert type(f(of(Logged))) is Logged
        assert type(f(of(Derived))) is Derived
        assert type(f(plain())) is torch.Tensor
        assert type(f(Duck(plain()))) is Duck
    with no_translation():
        f(of(Logged)), f(Duck(plain()))


@pytest.mark.row("S001-24")
def test_a_duck_that_gets_another_handler() -> None:
    class Ducky:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "first"

    f = godynamo.optimize(lambda d: torch.sin(d), backend="eager")
    d = Ducky()
    assert f(d) == "first"
    Ducky.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: "second")  # type: ignore
    assert f(d) == "second"
    d.__torch_function__ = lambda func, types, args=(), kwargs=None: "its own"  # type: ignore
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(d) == torch.sin(d)
    del Ducky.__torch_function__, d.__torch_function__
    with pytest.raises(TypeError, match="must be Tensor, not Ducky"):
        f(d)


@pytest.mark.row("S001-25")
def test_duck_types_are_captured() -> None:
    def f(d: Any, x: Any) -> Any:
        a = torch.add(d, 1)
        return (
            torch.sin(a).value,
            F.relu(a).value,
            (x + d).value,
            (x * a).value,
            torch.add(input=x, other=d).value if False else torch.mul(x, d).value,
            type(torch.matmul(d, x)),
            torch.overrides.has_torch_function((d, x)),
            torch.overrides.is_tensor_like(d),
        )

    got = compare(f, lambda: [Duck(plain()), plain()])
    assert "sin" in got.backend.all_ops() and "relu" in got.backend.all_ops()

    compare(lambda d, x: torch.sin(torch.add(d, x)).value, lambda: [Duck(plain()), plain()]).one_graph("add", "sin")


class Plainly:
    """A handler that is not a class method: torch accepts it, with a warning."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((self.name, func.__name__))
        return self.name


@pytest.mark.row("S001-26")
@pytest.mark.filterwarnings("ignore:Defining your")
def test_handlers_that_are_plain_methods() -> None:
    def f(d: Any, x: Any) -> Any:
        return x.sin(), torch.add(x, d), torch.sin(d)

    got = compare(f, lambda: [Plainly("it"), plain()])
    assert LOG == [("it", "add"), ("it", "sin")]
    assert got.backend.all_ops() == ["sin"]  # torch warns about such handlers, so CPython calls them

    class Static(torch.Tensor):
        @staticmethod
        def __torch_function__(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
            return func.__name__

    assert not compare(lambda a: a.sin(), lambda: [of(Static)]).breaks


class LoggedParameter(torch.nn.Parameter):
    """A parameter with a handler."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(("LoggedParameter", func.__name__))
        return super().__torch_function__(func, types, args, kwargs or {})


class Holder(torch.nn.Module):
    """A module with a weight of the given kind."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        if kind == "parameter subclass":
            self.w = LoggedParameter(plain())
        elif kind == "parameter that holds a subclass":
            self.w = torch.nn.Parameter(of(Logged))
        elif kind == "parameter that holds a bare subclass":
            self.w = torch.nn.Parameter(of(Bare))
        else:
            self.register_buffer("w", of(Logged))

    def forward(self, x: Any) -> Any:
        y = torch.mul(self.w, x)
        return y.sum(0), type(y), isinstance(self.w, torch.nn.Parameter), self.w.shape


KINDS = ["parameter subclass", "parameter that holds a subclass", "parameter that holds a bare subclass", "buffer"]


@pytest.mark.row("S001-27")
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_buffers(kind: str) -> None:
    module = Holder(kind)
    compare(lambda x: module(x), lambda: [plain()]).one_graph("mul", "sum")


@pytest.mark.row("S001-27")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "nb"])
@pytest.mark.parametrize("kind", KINDS[:3])
def test_gradients_reach_such_parameters(kind: str, backend: str) -> None:
    grads = []
    for compiled in (False, True):
        module = Holder(kind)
        fn: Any = module
        if compiled:
            fn = godynamo.optimize(module, backend=nb() if backend == "nb" else backend)
        for _ in range(2):
            fn(plain())[0].sum().backward()
        with torch._C.DisableTorchFunctionSubclass():
            grads.append((type(module.w.grad), module.w.grad.tolist()))
    assert grads[0] == grads[1]
