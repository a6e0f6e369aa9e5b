"""The handlers that an operation calls, with their arguments and in order: S001-01 to 17."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from torch_function_support import (
    LOG,
    Answers,
    Bare,
    Derived,
    Duck,
    Logged,
    Refuses,
    compare,
    of,
    plain,
)


@pytest.mark.row("S001-01")
def test_a_type_with_a_handler_gets_the_call() -> None:
    compare(lambda d: torch.mean(d).value, lambda: [Duck(plain())]).one_graph("mean")
    got = compare(lambda d: torch.mean(d), lambda: [Answers()])
    assert not got.breaks and len(got.backend) == 0  # no torch code ran


@pytest.mark.row("S001-02")
def test_subclasses_without_a_handler_of_their_own_have_plain_graphs() -> None:
    def f(x: Any) -> Any:
        y = torch.add(x.sin(), 1) * x
        return F.relu(y), y.max(), torch.cat([y, y]), y.shape

    for_plain = compare(f, lambda: [plain()])
    for_bare = compare(f, lambda: [of(Bare)])
    for_plain.one_graph("sin", "add", "mul", "cat")
    assert not for_bare.breaks and len(for_bare.backend) == 1
    here = [op for op in for_bare.backend.ops() if op not in ("enter_functions_off", "leave_entered", "alias.default")]
    assert here == for_plain.backend.ops()

    def without_wrappers(x: Any) -> Any:
        return torch.add(x.sin(), 1) * x

    assert (
        compare(without_wrappers, lambda: [of(Bare)]).backend.ops()
        == compare(without_wrappers, lambda: [plain()]).backend.ops()
        == ["sin", "add", "mul"]
    )


@pytest.mark.row("S001-03")
def test_no_overloaded_argument_calls_the_implementation() -> None:
    got = compare(lambda x, p: torch.add(x, p), lambda: [plain(), torch.nn.Parameter(plain())])
    got.one_graph("add")
    assert got.backend.ops() == ["add"]


@pytest.mark.row("S001-04")
def test_the_handler_is_told_the_public_function() -> None:
    class Same(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (
                func is torch.add,
                func in {torch.add: 1},
                func == torch.Tensor.add,
                func is torch.Tensor.add,
                func is F.relu,
                type(args),
                kwargs,
            )

    def f(x: Any) -> Any:
        return torch.add(x, 1), x.add(1), F.relu(x), torch.add(x, 1, alpha=2)

    assert not compare(f, lambda: [of(Same)]).breaks


@pytest.mark.row("S001-05")
def test_types_are_distinct_and_only_those_that_override() -> None:
    def f(x: Any, y: Any, p: Any, w: Any) -> Any:
        return torch.where(p > 0, x, y), torch.stack([p, x, w, x])

    compare(f, lambda: [of(Logged), of(Logged), plain(), torch.nn.Parameter(plain())]).one_graph("where", "stack")
    assert [entry[2] for entry in LOG] == [["Logged"], ["Logged"]]


@pytest.mark.row("S001-06")
def test_left_to_right_and_subclasses_first() -> None:
    for make in (lambda: [of(Logged), of(Derived)], lambda: [of(Derived), of(Logged)]):
        compare(lambda x, y: torch.add(x, y), make).one_graph("add")
        assert LOG == [("Derived", "add", LOG[0][2], 2, [])] and sorted(LOG[0][2]) == ["Derived", "Logged"]
    got = compare(lambda x, d: torch.add(x, d), lambda: [of(Refuses), Answers()])
    assert not got.breaks and LOG == [("Refuses", "add")]


@pytest.mark.row("S001-07")
def test_equal_types_are_asked_once() -> None:
    got = compare(lambda x, y, z: torch.stack([x, y, z]), lambda: [of(Refuses), of(Refuses), Answers()])
    assert not got.breaks and LOG == [("Refuses", "stack")]


@pytest.mark.row("S001-08")
def test_the_first_result_that_is_not_notimplemented_wins() -> None:
    def f(x: Any, d: Any) -> Any:
        return torch.add(x, d), torch.add(d, x), x + d

    got = compare(f, lambda: [of(Refuses), Answers()])
    assert not got.breaks
    assert LOG == [("Refuses", "add"), ("Refuses", "add")]  # in the second call, Answers comes first


@pytest.mark.row("S001-09")
def test_all_notimplemented_is_torchs_type_error() -> None:
    def f(x: Any) -> Any:
        y = plain().sin()
        return y + torch.add(x, 1)

    got = compare(f, lambda: [of(Refuses)])
    assert got.backend.all_ops() == ["tensor", "sin"]
    with pytest.raises(
        TypeError, match="Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned"
    ):
        godynamo.optimize(f, backend="eager")(of(Refuses))


@pytest.mark.row("S001-10")
def test_notimplementederror_is_an_exception_like_any_other() -> None:
    class Raises(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            LOG.append("called")
            raise NotImplementedError("not here")  # as the row requires: raised, not returned

    compare(lambda x, d: torch.add(x, d), lambda: [of(Raises), Duck(plain())])
    assert LOG == ["called"]

    def caught(x: Any) -> Any:
        try:
            return torch.add(x, 1)
        except NotImplementedError as error:
            return str(error), plain().sin()

    compare(caught, lambda: [of(Raises)]).one_graph("sin")


@pytest.mark.row("S001-11")
def test_exceptions_in_a_handler_propagate() -> None:
    class Custom(Exception):
        pass

    class Raises(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise Custom(func.__name__, 7)

    compare(lambda x: x.sin(), lambda: [of(Raises)])
    with pytest.raises(Custom) as info:
        godynamo.optimize(lambda x: x.sin(), backend="eager")(of(Raises))
    assert info.value.args == ("sin", 7)
    assert [f.name for f in info.traceback][-2:] == ["<lambda>", "__torch_function__"]


@pytest.mark.row("S001-12")
def test_a_handler_may_return_anything() -> None:
    class Anything(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return {"sin": "text", "cos": (1, [2.5]), "tan": None, "exp": {"a": func}}[func.__name__]

    def f(x: Any) -> Any:
        return x.sin().upper(), x.cos()[1], x.tan(), x.exp()["a"] is torch.Tensor.exp, plain() * x.cos()[0]

    compare(f, lambda: [of(Anything)]).one_graph("mul")


def out_argument(x: Any, y: Any) -> Any:
    return torch.add(y, y, out=x)


@pytest.mark.row("S001-13")
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: torch.where(y > 0, y, x),
        lambda x, y: torch.cat([y, x]),
        lambda x, y: torch.add(y, other=x),
        out_argument,  # the argument with a handler is out=
    ],
    ids=["second position", "in a list", "keyword", "out"],
)
def test_overloaded_arguments_are_found_everywhere(f: Any) -> None:
    got = compare(f, lambda: [of(Logged), plain()])
    assert len(LOG) == 1 and len(got.backend) == 1 and not got.breaks


@pytest.mark.row("S001-14")
def test_methods_dispatch_as_tensors() -> None:
    compare(lambda x: x.sin().add(1).sum(0), lambda: [of(Logged)]).one_graph("sin", "add", "sum")
    assert [entry[1] for entry in LOG] == ["sin", "add", "sum"]
    compare(lambda p, x: p.add(x), lambda: [plain(), of(Logged)]).one_graph("add")

    class Identity(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func is torch.Tensor.sin, func is torch.sin

    assert not compare(lambda x: (x.sin(), torch.sin(x)), lambda: [of(Identity)]).breaks


OPERATORS = [
    lambda a, p: (a + 1, a - 1, a * 2, a / 2, a // 2, a % 2, a**2, a @ a),
    lambda a, p: (1 + a, 1 - a, 2 * a, 2 / a, 2 // a, 2 % a, 2**a),
    lambda a, p: (p + a, p - a, p * a, p / a, p @ a),
    lambda a, p: (-a, +a, abs(a), ~(a > 0)),
    lambda a, p: (a[0], a[1:], a[None], a[p > 0]),
    lambda a, p: (a == p, a != 1, a < p, a <= 1, a > p, a >= 1, p < a),
    lambda a, p: ((a > 0) & (a < 3), (a > 0) | (a < 3), (a > 0) ^ (a < 3)),
]


@pytest.mark.row("S001-15")
@pytest.mark.parametrize("f", OPERATORS)
def test_operators_dispatch_under_cpythons_names(f: Any) -> None:
    got = compare(f, lambda: [of(Logged), plain()])
    assert not got.breaks and len(got.backend) == 1
    assert len(LOG) >= 3


def in_place(a: Any) -> Any:
    b = a * 1
    b += 1
    b[0] = 7
    return b


@pytest.mark.row("S001-15")
def test_operators_in_place() -> None:
    compare(in_place, lambda: [of(Logged)])
    assert [entry[1] for entry in LOG] == ["mul", "add_" if "add_" in str(LOG) else "__iadd__", "__setitem__"]


@pytest.mark.row("S001-16")
def test_attribute_reads_dispatch_get() -> None:
    def f(a: Any) -> Any:
        return a.shape, a.dtype, a.ndim, a.device, a.requires_grad, a.is_cuda, a.layout, (a * 2).shape, a.data, a.real

    compare(f, lambda: [of(Logged)]).one_graph("mul")
    assert [entry[1] for entry in LOG][:3] == ["shape.__get__", "dtype.__get__", "ndim.__get__"]
    compare(lambda a: (a.grad, a.sin()), lambda: [of(Logged)])
    compare(
        lambda a: (len(a), a.size(), a.dim(), a.numel(), torch.numel(a), torch.is_floating_point(a)),
        lambda: [of(Logged)],
    )

    class Compares(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func == torch.Tensor.shape.__get__:
                return "its shape"
            return super().__torch_function__(func, types, args, kwargs or {})

    got = compare(lambda a: (a.shape, a.ndim), lambda: [of(Compares)])
    assert not got.breaks


def write(a: Any) -> Any:
    b = a * 2
    b.requires_grad = True
    return b, b.sin()


@pytest.mark.row("S001-16")
def test_attribute_writes_dispatch_set() -> None:
    got = compare(write, lambda: [of(Logged)])
    assert [entry[1] for entry in LOG] == ["mul", "requires_grad.__set__", "sin"]
    assert got.backend.all_ops().count("mul") == 1 and "sin" in got.backend.all_ops()


@pytest.mark.row("S001-17")
def test_functions_written_in_python_dispatch_once() -> None:
    def f(a: Any, w: Any) -> Any:
        return (
            F.relu(a),
            F.linear(a, w),
            F.softmax(a, 0),
            F.dropout(a, 0.5, training=False),
            F.gelu(a),
            torch.split(a, 1),
            torch.norm(a),
            torch.einsum("i,i->", a, a),
            a.split(2),
            a.norm(),
        )

    got = compare(f, lambda: [of(Logged), torch.ones(2, 3)])
    assert len(LOG) == 10
    got.one_graph("relu", "linear", "softmax")
