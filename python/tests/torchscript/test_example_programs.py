"""The seed document's sixteen example programs, without scripting: they print the document's text (row S004-235)."""

from __future__ import annotations

import contextlib
import enum
import io
from collections import namedtuple
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import nn

import godynamo
from harness.graph_counts import nb

row = pytest.mark.row


def go(obj: Any) -> Any:
    """Optimize a function; takes the place of torch.jit.script in the seed document."""
    return godynamo.optimize(obj, backend=nb())


def any_parameter() -> None:
    def inc_first_element(x: Tuple[int, Any]) -> Any:
        return (x[0] + 1, x[1])

    m = go(inc_first_element)
    print(m((1, 2.0)))
    print(m((1, (100, 200))))


def any_isinstance() -> None:
    def f(a: Any) -> Any:
        print(a)
        return isinstance(a, torch.Tensor)

    print(go(f)(torch.ones([2])))


class MyTuple(NamedTuple):
    first: int
    second: int


def typed_named_tuple() -> None:
    def inc(x: MyTuple) -> Tuple[int, int]:
        return (x.first + 1, x.second + 1)

    print("TorchScript:", go(inc)(MyTuple(first=1, second=2)))


def untyped_named_tuple() -> None:
    unannotated = namedtuple("_NamedTupleAnnotated", ["first", "second"])

    def inc(x: Any) -> Tuple[int, int]:
        return (x.first + 1, x.second + 1)

    print(go(inc)(unannotated(1, 2)))


def class_with_device() -> None:
    class A:
        def __init__(self) -> None:
            self.x = torch.ones(3)

        def f(self, y: torch.device) -> Any:
            return self.x.to(device=y)

    def g() -> Any:
        a = A()
        return a.f(torch.device("cpu"))

    print(go(g)())


def custom_class() -> None:
    class MyClass:
        name = "MyClass"

        def __init__(self, x: int) -> None:
            self.x = x

        def inc(self, val: int) -> None:
            self.x += val

    def fn(a: MyClass) -> Any:
        a.inc(2)
        return a.name, a.x

    print(go(fn)(MyClass(3)))


def assign_outside_init() -> None:
    class foo:
        def __init__(self) -> None:
            self.y = 1

        def assign_x(self) -> None:
            self.x = torch.ones(2, 3)

    def f(o: foo) -> Any:
        o.assign_x()
        return o.x

    print(go(f)(foo()))


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class BaseColor(enum.Enum):
    def foo(self) -> None:
        pass


class SubColor(BaseColor):
    RED = 1
    GREEN = 2


def enums() -> None:
    for cls in (Color, SubColor):

        def enum_fn(x: Any, y: Any, cls: Any = cls) -> bool:
            if x == cls.RED:
                return True
            return bool(x == y)

        print("Eager: ", go(enum_fn)(cls.RED, cls.GREEN), go(enum_fn)(cls.GREEN, cls.RED))


class TestModule(nn.Module):
    __test__ = False

    def __init__(self, v: Any) -> None:
        super().__init__()
        self.x = v

    def forward(self, inc: int) -> Any:
        return self.x + inc


def module_instances() -> None:
    m = go(TestModule(1))
    print(f"First instance: {m(3)}")
    m = go(TestModule(torch.ones([5])))
    print(f"Second instance: {m(3)}")


def module_constructed_inside() -> None:
    class MyModel:
        def __init__(self, v: int) -> None:
            self.val = v

        def doSomething(self, val: int) -> int:
            myModel = TestModule(self.val)
            return myModel(val)  # type: ignore[no-any-return]

    print(go(MyModel(2).doSomething)(5))


def signatures() -> None:
    def f(a, b: int):  # type: ignore[no-untyped-def]
        return a + b

    def g(a, b):  # type: ignore[no-untyped-def]
        # type: (torch.Tensor, int) -> torch.Tensor
        return a + b

    print("TorchScript:", go(f)(torch.ones([6]), 100))
    print("TorchScript:", go(g)(torch.ones([6]), 100))


def local_annotation() -> None:
    def f(a, setVal: bool):  # type: ignore[no-untyped-def]
        value: Optional[torch.Tensor] = None
        if setVal:
            value = a
        return value

    ones = torch.ones([6])
    m = go(f)
    print("TorchScript:", m(ones, True), m(ones, False))


def annotate() -> None:
    def g(l: List[int], val: int) -> List[int]:
        l.append(val)
        return l

    def f(val: int) -> List[int]:
        return g(torch.jit.annotate(List[int], []), val)

    print("Eager:", go(f)(3))


def if_statement() -> None:
    def fn(x: torch.Tensor) -> bool:
        if x:
            return True
        return False

    print(go(fn)(torch.rand(1) + 0.1))


def for_over_tuple() -> None:
    def fn() -> None:
        tup = (3, torch.ones(4))
        for x in tup:
            print(x)

    go(fn)()


def zips() -> None:
    def f(a: Any, b: Any) -> Any:
        return list(zip(a, b))

    m = go(f)
    print(m([1, 2], [2, 3, 4]))
    print(m((1, 2), [2, 3, 4]))
    print(m([1.3, 2.4], [2, 3, 4]))


EXAMPLES: Dict[Any, str] = {
    any_parameter: "(2, 2.0)\n(2, (100, 200))\n",
    any_isinstance: "tensor([1., 1.])\nTrue\n",
    typed_named_tuple: "TorchScript: (2, 3)\n",
    untyped_named_tuple: "(2, 3)\n",
    class_with_device: "tensor([1., 1., 1.])\n",
    custom_class: "('MyClass', 5)\n",
    assign_outside_init: "tensor([[1., 1., 1.],\n        [1., 1., 1.]])\n",
    enums: "Eager:  True False\n" * 2,
    module_instances: "First instance: 4\nSecond instance: tensor([4., 4., 4., 4., 4.])\n",
    module_constructed_inside: "7\n",
    signatures: "TorchScript: tensor([101., 101., 101., 101., 101., 101.])\n" * 2,
    local_annotation: "TorchScript: tensor([1., 1., 1., 1., 1., 1.]) None\n",
    annotate: "Eager: [3]\n",
    if_statement: "True\n",
    for_over_tuple: "3\ntensor([1., 1., 1., 1.])\n",
    zips: "[(1, 2), (2, 3)]\n[(1, 2), (2, 3)]\n[(1.3, 2), (2.4, 3)]\n",
}


@row("S004-235")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.__name__)
def test_example(example: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        example()
    assert out.getvalue() == EXAMPLES[example]
    assert godynamo._C.counters()["internal_errors"] == 0
