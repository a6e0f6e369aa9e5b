"""Programs from torch's early years: Variable, torch.FloatTensor etc., types by name; isinstance of tensors."""

from __future__ import annotations

import typing

import numpy as np
import pytest
import torch
from torch.autograd import Variable

import godynamo
from harness.capture import break_reasons, nb

CAPTURED = {
    "Variable": lambda x: (Variable(x) * 2, Variable(torch.randn(x.size())) + x),
    "Variable that requires": lambda x: (
        Variable(x, requires_grad=True) * 2,
        Variable(x.data, requires_grad=False) + 1,
    ),
    "data": lambda x: torch.FloatTensor([1.0, 2.0, 3.0]) + x,
    "sizes": lambda x: (torch.FloatTensor(3).fill_(0) + x, torch.DoubleTensor(x.shape[0], 2).zero_(), x + 1),
    "a size": lambda x: torch.FloatTensor(x.size()).zero_() + x,
    "others": lambda x: (
        torch.LongTensor([1, 2]),
        torch.ByteTensor([1, 0]),
        torch.BoolTensor([[1], [0]]),
        torch.HalfTensor(),
        x + 1,
    ),
    "ranges": lambda x: (x[torch.LongTensor(range(x.shape[0]))], torch.FloatTensor(range(2)), torch.Tensor(range(0))),
    "converted": lambda x: (
        torch.LongTensor([1.5, 2]),
        torch.IntTensor((3, 4)),
        torch.FloatTensor([[1, 2], [3, 4]]),
        x + 1,
    ),
    "torch.Tensor": lambda x: (
        torch.Tensor([1.0, 2.0, 3.0]) + x,
        torch.Tensor(3).zero_() + x,
        torch.Tensor(2, 3).uniform_(),
    ),
    "torch.Tensor of a tensor": lambda x: (
        torch.Tensor(x) + 1,
        torch.Tensor(x * 2),
        torch.Tensor(x.long()) + 1,
    ),
    "type": lambda x: (
        x.type(torch.FloatTensor) + 1,
        x.type("torch.DoubleTensor") + 1,
        x.type(torch.float64),
        x.type(torch.LongTensor),
    ),
    "type's name": lambda x: (
        x.type(),
        (x > 0).type(),
        (x > 0).type(x.type()),
        (x * 2).double().type(),
        x.to_sparse().type(),
    ),
    "available": lambda x: x + 1 if torch.cuda.is_available() else x - 1,
}

SPLIT = {
    "itself": lambda x: (x.type(torch.FloatTensor) is x, x.type("torch.FloatTensor") is x, x + 1),
    "volatile": lambda x: Variable(x.data, volatile=True) * 2,
    "integers that require": lambda x: Variable(x.long(), requires_grad=True),
    "nothing": lambda x: (Variable().shape, x + 1),
    "a sparse tensor": lambda x: torch.Tensor(x.to_sparse()).layout,
    "a wrong one": lambda x: torch.LongTensor(x),
    "keywords": lambda x: torch.FloatTensor([1.0], device="cpu") + x,
    "a wrong keyword": lambda x: torch.FloatTensor([1.0], size=3) + x,
    "a negative size": lambda x: torch.FloatTensor(-1) + x,
    "text": lambda x: torch.FloatTensor("ab") + x,
    "an array without dimensions": lambda x: (torch.LongTensor(np.array(3)).shape, x + 1),
    "a number of numpy": lambda x: (torch.LongTensor(np.int64(3)).shape, x + 1),
    "an array of objects": lambda x: torch.Tensor(np.array([1, None])) + x,
    "a ragged list": lambda x: torch.FloatTensor([[1], [1, 2]]) + x,
    "an unknown type": lambda x: x.type("torch.NoTensor"),
}


def outcome(fn, x):
    torch.manual_seed(0)
    try:
        value = fn(x)
    except Exception as error:
        return type(error), str(error)
    values = value if isinstance(value, tuple) else (value,)
    return [(repr(v), type(v), getattr(v, "dtype", None), getattr(v, "requires_grad", None)) for v in values]


def checked(fn, graphs=None):
    for requires_grad in (False, True):
        backend = nb()
        optimized = godynamo.optimize(fn, backend=backend)
        x = torch.arange(3.0, requires_grad=requires_grad)
        want = outcome(fn, x)
        assert [outcome(optimized, x) for _ in range(2)] == [want] * 2
        if graphs is not None:
            assert not break_reasons() and len(backend) == graphs, break_reasons()


@pytest.mark.parametrize("name", CAPTURED)
def test_captured(name):
    checked(CAPTURED[name], graphs=1)


@pytest.mark.filterwarnings("ignore:volatile was removed")
@pytest.mark.parametrize("name", SPLIT)
def test_left_to_torch(name):
    checked(SPLIT[name])


def test_variable_shares_memory_and_has_no_history():
    def f(x):
        y = Variable(x * 2)
        y.add_(1)
        z = Variable(x)
        z.mul_(3)
        return y, z.requires_grad, y.grad_fn, x

    a, b = (torch.ones(2) for _ in range(2))
    got, want = godynamo.optimize(f)(a), f(b)
    assert torch.equal(got[0], want[0]) and got[1:3] == want[1:3] and torch.equal(a, b)


def test_a_tensor_of_a_tensor_is_a_view():
    def f(x):
        y = torch.Tensor(x)
        y.add_(1)
        return y, y is x, y._base is x, y.data_ptr() == x.data_ptr()

    a, b = (torch.ones(2) for _ in range(2))
    for backend in ("eager", nb()):
        got, want = godynamo.optimize(f, backend=backend)(a), f(b)
        assert torch.equal(got[0], want[0]) and got[1:] == want[1:] and torch.equal(a, b)
    leaf = torch.ones(2, requires_grad=True)
    (godynamo.optimize(lambda x: torch.Tensor(x) * 3)(leaf)).sum().backward()
    assert leaf.grad.tolist() == [3, 3]


def arrays(x):
    return (
        torch.Tensor(np.array([1.0, 2.0, 3.0])) + x,
        torch.Tensor(np.arange(6).reshape(2, 3)),
        x[torch.LongTensor(np.array([0, 2]))],
        torch.FloatTensor(np.ones((2, 0), dtype=np.int8)),
        torch.BoolTensor(np.array([1, 0, 1])),
        torch.Tensor(np.array(range(4))),
        torch.from_numpy(np.arange(6)[range(1, 3)]),
    )


def test_arrays():
    optimized = godynamo.optimize(arrays)
    x = torch.arange(3.0)
    assert [outcome(optimized, x) for _ in range(2)] == [outcome(arrays, x)] * 2
    assert not break_reasons(), break_reasons()


@pytest.mark.parametrize("backend", ["eager", "whole"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tensor_of_an_array_shares_memory_where_torch_does(dtype, backend):
    """It does if the array has the tensor's dtype."""

    def f(array, x):
        made = torch.zeros(3, dtype=torch.float32).numpy().astype(dtype)
        first, second = torch.FloatTensor(made), torch.FloatTensor(array)
        made[0] = 5
        second.add_(x)
        return first, made, second

    optimized = godynamo.optimize(f, backend=nb() if backend == "whole" else backend)
    for _ in range(2):
        given, own = np.ones(3, dtype), np.ones(3, dtype)
        x = torch.arange(3.0)
        assert [v.tolist() for v in (*optimized(given, x), given)] == [v.tolist() for v in (*f(own, x), own)]


class Meta(type):
    asked = 0

    def __instancecheck__(cls, other):
        Meta.asked += 1
        return True


class Everything(metaclass=Meta):
    pass


KINDS = {
    "Variable": lambda x: (isinstance(x, Variable), isinstance(x * 2, Variable), isinstance(3, Variable)),
    "types": lambda x: [isinstance(t, torch.FloatTensor) for t in (x, x * 2, x > 0, x.double(), 3)],
    "tuples": lambda x: [
        isinstance(x * 2, (torch.LongTensor, t)) for t in (torch.FloatTensor, torch.DoubleTensor, int, Variable)
    ],
    "unions": lambda x: (
        isinstance(x * 2, torch.Tensor | int),
        isinstance(x, int | None),
        isinstance(x * 2, typing.Union[str, torch.Tensor]),
    ),
    "cuda": lambda x: (isinstance(x, torch.cuda.FloatTensor), isinstance(x * 2, torch.cuda.FloatTensor)),
    "parameters": lambda x: (
        isinstance(x * 2, torch.nn.Parameter),
        isinstance(x, torch.nn.Parameter),
        isinstance(x * 2, torch.nn.Buffer),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_instances(name):
    fn = KINDS[name]
    backend = nb()
    optimized = godynamo.optimize(lambda x: (fn(x), x + 1), backend=backend)
    for dtype in (torch.float32, torch.float64, torch.float32):
        x = torch.arange(3).to(dtype)
        assert optimized(x)[0] == fn(x)
    assert not break_reasons()


def test_a_class_that_decides_for_itself_is_asked_each_time():
    optimized = godynamo.optimize(lambda x: (isinstance(x, Everything), isinstance(x * 2, Everything), x + 1))
    for n in range(1, 4):
        assert optimized(torch.ones(2))[:2] == (True, True)
        assert Meta.asked == 2 * n


def test_a_metaclass_without_a_module():
    """A metaclass's __module__ may be anything: here it is a property."""

    class Odd(type):
        __module__ = property(lambda cls: 1 / 0)

    class Thing(metaclass=Odd):
        pass

    def f(x):
        return x + 1, type(Thing())

    assert godynamo.optimize(f)(torch.ones(2))[1] is Thing
