"""Subclasses that define methods, operators and attributes, and their uses: S001-15, 16, 18, 22, 24."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import godynamo
from harness.capture import nb
from torch_function_support import LOG, Bare, Derived, Logged, Other, compare, of, plain


class Overrides(torch.Tensor):
    """Defines its own methods and operators, each of which calls the base class."""

    tag: Any

    @staticmethod
    def __new__(cls, data: Any, tag: Any = None) -> Any:
        return super().__new__(cls, data)  # type: ignore[misc]

    def __init__(self, data: Any, tag: Any = None) -> None:
        super().__init__()
        self.tag = tag

    def clone(self, *args: Any, **kwargs: Any) -> Any:
        return Overrides(super().clone(*args, **kwargs), (self.tag, "clone"))

    def to(self, *args: Any, **kwargs: Any) -> Any:
        LOG.append("to")
        return super().to(*args, **kwargs)

    def sin(self) -> Any:
        return super().sin() + 1

    def __add__(self, other: Any) -> Any:
        LOG.append("add")
        return super().__add__(other)

    def __neg__(self) -> Any:
        return "negated"

    def __getitem__(self, key: Any) -> Any:
        LOG.append(key)
        return super().__getitem__(key)

    @property
    def tagged(self) -> Any:
        return self.tag, self.shape

    @staticmethod
    def of(x: Any) -> Any:
        return Overrides(x * 2, "of")

    @classmethod
    def name(cls) -> str:
        return cls.__name__


class Missing(Logged):
    """Returns values for missing attributes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("magic"):
            return name
        raise AttributeError(name)


def own_methods(w: Any) -> Any:
    c = w.clone()
    return c, c.tag, w.to(torch.float64), w.sin(), w + 1, -w, w[0], w[1:], w.tagged, w.of(w).tag, w.name(), w.tag


def plain_attributes(a: Any) -> Any:
    a.extra = [1]
    a.extra.append(2)
    b = a.view(-1)
    b.mark = a.extra
    return a.extra, hasattr(b, "extra"), hasattr(a, "mark"), getattr(b, "nothing", 3), a * 2, a


def across_a_split(a: Any) -> Any:
    a.extra = 5
    godynamo.graph_break()
    return a.extra + 1, hasattr(a * 1, "extra")


def an_operand_or_not(a: Any) -> Any:
    b = a.contiguous()
    b.mark = 1
    return hasattr(a, "mark"), b is a


def missing_attributes(a: Any) -> Any:
    return a.magic1, hasattr(a, "nope"), getattr(a, "nope", 3), a * 2


def containers(a: Any) -> Any:
    d = {"x": a}
    d["y"] = d["x"] * 2
    x, y, z = a
    v, i = a.max(0)
    return d, {**d}, x + y, z, v, i, torch.stack([t + 1 for t in a]), torch.cat([t[None] for t in a.split(1)])


def types(a: Any) -> Any:
    return (
        type(a).__name__,
        a.__class__.__mro__[1].__name__,
        isinstance(a, (int, Logged)),
        a.__class__ is type(a),
        a is a,
    )


def functions(a: Any) -> Any:
    return F.mse_loss(a, a * 2), F.normalize(a, dim=0), F.pad(a, (1, 1)), F.cross_entropy(a[None], torch.tensor([1]))


def comparisons_with_others(a: Any) -> Any:
    return a == None, a != None, a in [a]  # noqa: E711


def keys(a: Any) -> Any:
    return {a: 1}[a], len({a, a})


def in_place(a: Any, p: Any) -> Any:
    p.add_(a)
    q = p * 1
    q.add_(a)
    a.mul_(2)
    return p, q, a


CASES = {
    "own methods": (own_methods, lambda: [Overrides(plain(), "t")], 1),
    "attributes of a subclass": (plain_attributes, lambda: [of(Logged)], 1),
    "attributes of a bare subclass": (plain_attributes, lambda: [of(Bare)], 1),
    "attributes of a tensor": (plain_attributes, lambda: [plain()], 1),
    "attributes across a split": (across_a_split, lambda: [of(Bare)], None),
    "an operand or not": (an_operand_or_not, lambda: [of(Logged)], None),
    "an operand or not, plain": (an_operand_or_not, lambda: [plain()], None),
    "missing attributes": (missing_attributes, lambda: [of(Missing)], 1),
    "containers": (containers, lambda: [of(Logged)], 1),
    "containers, bare": (containers, lambda: [of(Bare)], 1),
    "types": (types, lambda: [of(Derived)], 0),
    "functions": (functions, lambda: [of(Logged)], 1),
    "functions, bare": (functions, lambda: [of(Bare)], 1),
    "compared with others": (comparisons_with_others, lambda: [of(Logged)], None),
    "keys": (keys, lambda: [of(Logged)], None),
    "in place": (in_place, lambda: [of(Logged), plain()], None),
    "in place, bare": (in_place, lambda: [of(Bare), plain()], None),
    "unrelated classes": (
        lambda a, b: torch.add(a, 1) + torch.mul(b, 2)[0].item(),
        lambda: [of(Logged), of(Other)],
        None,
    ),
}


@pytest.mark.row("S001-15", "S001-16", "S001-18")
@pytest.mark.parametrize("name", CASES)
def test_programs(name: str) -> None:
    fn, make, graphs = CASES[name]
    got = compare(fn, make)
    if graphs is not None:
        assert not got.breaks, got.breaks
        assert len(got.backend) == graphs


SUPPORTED = {torch.add, torch.Tensor.add, F.relu, torch.Tensor.shape.__get__}
FROZEN = frozenset({torch.mul, torch.Tensor.mul})


class Sets(torch.Tensor):
    """Looks functions up in sets; converts results as in torch's documentation."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SUPPORTED:
            return "supported"
        if func in FROZEN:
            return "in the frozenset", len(FROZEN)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
            if func in torch.overrides.get_default_nowrap_functions():
                return result
            return torch._tensor._convert(result, cls)


@pytest.mark.row("S001-22")
def test_sets_of_functions() -> None:
    def looks_up(a: Any) -> Any:
        return a.add(1), F.relu(a), a.shape, a.mul(1), a.sin(), a.max(0), a.split(1)

    compare(looks_up, lambda: [of(Sets)]).one_graph("sin")
    f = godynamo.optimize(lambda a: torch.neg(a), backend="eager")
    assert type(f(of(Sets))) is Sets
    SUPPORTED.add(torch.neg)
    try:
        assert f(of(Sets)) == "supported"
    finally:
        SUPPORTED.remove(torch.neg)
    assert type(f(of(Sets))) is Sets


@pytest.mark.row("S001-24")
def test_attributes_are_guarded() -> None:
    f = godynamo.optimize(lambda a: (getattr(a, "unit", None), a * 2), backend="eager")
    a, b = of(Logged), of(Logged)
    a.unit = "m"
    for _ in range(2):
        assert f(a)[0] == "m" and f(b)[0] is None
    a.unit = "km"
    b.unit = 3
    assert f(a)[0] == "km" and f(b)[0] == 3
    del a.unit
    assert f(a)[0] is None
    Logged.unit = "of the class"  # type: ignore[attr-defined]
    try:
        assert f(a)[0] == "of the class" and f(b)[0] == 3
    finally:
        del Logged.unit  # type: ignore[attr-defined]


@pytest.mark.row("S001-22")
def test_a_method_of_a_subclass_as_the_frame() -> None:
    class WithMethod(Logged):
        def twice(self) -> Any:
            return self * 2 + 1

    compare(WithMethod.twice, lambda: [of(WithMethod)]).one_graph("mul", "add")


@pytest.mark.row("S001-27")
def test_subclasses_are_copied() -> None:
    got = compare(lambda a: copy.copy(a * 1), lambda: [of(Bare)])
    assert got.backend.all_ops()[0] == "mul"


def transposes(x: Any) -> Any:
    return x, x.t_()


def new_leaf(x: Any) -> Any:
    y = (x * 2).detach().requires_grad_()
    return y, y.is_leaf


def asks_for_a_gradient(x: Any) -> Any:
    x.requires_grad_()
    return x


def squeezes(x: Any) -> Any:
    x.squeeze_()
    return x, x * 2


def resizes(x: Any) -> Any:
    x.resize_(6)
    return x


def doubles(x: Any) -> Any:
    x.mul_(2)
    x += 1
    x[0] = 3
    return x


def doubles_without_gradient(x: Any) -> Any:
    with torch.no_grad():
        x.mul_(2)
    return x


def changes_a_view(x: Any) -> Any:
    y = x.view(-1)
    y.add_(1)
    return x, y


def changes_what_is_detached(x: Any) -> Any:
    y = x.detach()
    y.add_(1)
    return x, y


def switches_gradients_on(x: Any) -> Any:
    with torch.enable_grad():
        y = x * 2
    return y, y.requires_grad, x * 3


CHANGES = [
    transposes,
    new_leaf,
    asks_for_a_gradient,
    squeezes,
    resizes,
    doubles,
    doubles_without_gradient,
    changes_a_view,
    changes_what_is_detached,
    switches_gradients_on,
]


def facts(values: Any) -> Any:
    """Return the properties of tensors that a program can see, including their values."""
    with torch._C.DisableTorchFunction():
        return [
            (type(t).__name__, t.is_leaf, t.requires_grad, tuple(t.shape), t.stride(), t._version, t.tolist())
            for t in values
            if isinstance(t, torch.Tensor)
        ]


@pytest.mark.row("S001-18", "S001-27")
@pytest.mark.parametrize("cls", [Bare, Other, torch.Tensor], ids=lambda c: c.__name__)
@pytest.mark.parametrize("fn", CHANGES, ids=lambda f: f.__name__)
def test_changes_in_place_are_the_tensors_own(fn: Any, cls: Any) -> None:
    def run(f: Any, grad: bool, around: Any) -> Any:
        x = torch.arange(6.0).reshape(2, 3).as_subclass(cls).detach().requires_grad_(grad)
        try:
            with around():
                result = f(x)
                result = result if isinstance(result, tuple) else (result,)
                seen = facts([*result, x])
        except RuntimeError as error:
            return str(error)
        if fn is switches_gradients_on and grad:
            result[0].sum().backward()
            with torch._C.DisableTorchFunction():
                return facts([*result, x, x.grad])
        return seen

    for grad in (False, True):
        for around in (torch.enable_grad, torch.no_grad):
            expected = run(fn, grad, around)
            for backend in ("eager", nb()):
                compiled = godynamo.optimize(fn, backend=backend)
                for _ in range(2):
                    assert run(compiled, grad, around) == expected, (grad, around, backend)
