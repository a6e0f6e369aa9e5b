"""An entry's assumptions, and when it serves a call: values, tensors, global state, functions, classes, containers."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, utils
from godynamo._called import guard_env
from harness.capture import (
    assert_no_internal_errors,
    describe,
    entries,
    nb,
    no_translation,
    outcome,
    texts,
    translations,
)

NAN = float("nan")
GLOBAL_VALUE = 3
OTHER_VALUE = 4


def add(x, y):
    return x + y


# ---- values ----------------------------------------------------------------------------------------------------------

VALUES = {
    "int float bool": [2, 2.0, True, 1, 1.0, 2],
    "zeros": [0, 0.0, -0.0, False],
    "nan": [NAN, float("nan"), 1.0],
    "big": [2**62, 2**62 + 1, 2**70, -(2**70)],
}


@pytest.mark.row("S002-91")
@pytest.mark.parametrize("values", list(VALUES))
def test_values_that_compare_equal_are_told_apart(values: str) -> None:
    def f(x, y):
        return x + y, type(y).__name__, str(y)

    w = godynamo.optimize(f, backend=nb())
    x = torch.zeros(2, dtype=torch.float64)
    with godynamo.config.patch(cache_size_limit=64):
        for value in VALUES[values] * 2:
            if abs(value) < 2**63:
                assert describe(w(x, value)) == describe(f(x, value)), value
    assert_no_internal_errors()


@pytest.mark.row("S002-91")
def test_nan_is_equal_to_itself_in_guards() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.zeros(2)
    w(x, NAN)
    with no_translation():
        assert w(x, float("nan")).isnan().all()


@pytest.mark.row("S002-91")
def test_signed_zero_is_seen() -> None:
    def f(x, y):
        return torch.copysign(x, torch.full_like(x, y))

    w = godynamo.optimize(f, backend=nb())
    x = torch.ones(2)
    assert w(x, 0.0).tolist() == [1.0, 1.0] and w(x, -0.0).tolist() == [-1.0, -1.0]


NESTED = [
    [(1, 2), (1.0, 2), (True, 2), (1, (2,)), [1, 2]],
    [{"a": (1, {"b": 2})}, {"a": (1, {"b": 2.0})}, {"a": (True, {"b": 2})}],
    [("x", 0.0), ("x", -0.0), ("x", False)],
]


@pytest.mark.row("S002-91")
@pytest.mark.parametrize("values", NESTED, ids=range(len(NESTED)))
def test_nested_containers_are_compared_part_by_part(values: list[Any]) -> None:
    def f(x, v):
        return x + 1, repr_of(v)

    def repr_of(v):
        if isinstance(v, (tuple, list)):
            return [type(v).__name__, [repr_of(i) for i in v]]
        if isinstance(v, dict):
            return {k: repr_of(i) for k, i in v.items()}
        return type(v).__name__, str(v)

    w = godynamo.optimize(f, backend=nb())
    x = torch.zeros(1)
    for value in values * 2:
        assert describe(w(x, value)) == describe(f(x, value)), value


# ---- tensors ---------------------------------------------------------------------------------------------------------


def tensor_variants() -> dict[str, torch.Tensor]:
    base = torch.ones(2, 3)
    variants = {
        "dtype": torch.ones(2, 3, dtype=torch.float64),
        "shape": torch.ones(2, 4),
        "ndim": torch.ones(6),
        "stride": torch.ones(3, 2).t(),
        "requires_grad": torch.ones(2, 3, requires_grad=True),
        "type": torch.nn.Parameter(torch.ones(2, 3), requires_grad=False),
        "device": torch.ones(2, 3, device="meta"),
        "dispatch keys": torch.ones(2, 3, dtype=torch.complex64).conj().real.contiguous()
        if False
        else torch._neg_view(torch.ones(2, 3)),
    }
    if torch.cuda.is_available():
        variants["cuda"] = base.cuda()
    return variants


@pytest.mark.row("S002-94")
@pytest.mark.parametrize("what", list(tensor_variants()))
def test_each_part_of_the_metadata_alone_recompiles(what: str) -> None:
    w = godynamo.optimize(lambda x: x + 1, backend=nb())
    with godynamo.config.patch(tensor_guards="full"):
        base = torch.ones(2, 3)
        w(base)
        with no_translation():
            assert torch.equal(w(torch.randn(2, 3).abs() + 1) > 1, torch.ones(2, 3, dtype=torch.bool))
        [entry] = entries(w)
        other = tensor_variants()[what]
        assert not entry.check(other) and entry.check(base)
        with translations(1):
            result = w(other)
        assert (
            result.shape == other.shape
            and result.dtype == (other + 1).dtype
            and result.stride() == (other + 1).stride()
        )


@pytest.mark.row("S002-94")
def test_a_tensor_subclass_is_not_served() -> None:
    class Logged(torch.Tensor):
        pass

    w = godynamo.optimize(lambda x: x + 1, backend=nb())
    x = torch.ones(2)
    w(x)
    [entry] = entries(w)
    sub = x.as_subclass(Logged)
    assert not entry.check(sub)
    assert type(w(sub)) is Logged


@pytest.mark.row("S002-95")
def test_the_seeds_text_word_for_word() -> None:
    def f(y, x):
        return x + y

    with godynamo.config.patch(tensor_guards="full"):
        w = godynamo.optimize(f, backend=nb())
        w(2, torch.randn(3))
    [entry] = entries(w)
    parts = ("___guarded_code.valid", f"___check_type_id(y, {id(int)})", "y == 2", "___check_tensors(x)")
    assert entry.parts == parts
    assert entry.text == " and ".join(parts)
    assert str(godynamo.guards(w)[0]).splitlines()[0] == entry.text


@pytest.mark.row("S002-97")
def test_check_fn_is_a_callable_of_the_frames_locals() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(3)
    w(x, 2)
    [entry] = entries(w)
    assert entry.check_fn(x, 2) is True and entry.check_fn(x, 3) is False and entry.check_fn(3, 2) is False
    assert entry.check_fn(torch.randn(3), 2) is True


@pytest.mark.row("S002-97")
def test_the_text_can_be_dumped() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(3)
    w(x, 2)
    [shown] = godynamo.guards(w)
    assert shown.text == texts(w)[0] and "y == 2" in str(shown)
    assert all(where is None or where[0] == __file__ for _, where in shown.parts)
    assert any(where == (__file__, add.__code__.co_firstlineno + 1) for _, where in shown.parts)
    explained = godynamo.explain(add)(x, 2)
    assert explained.graph_count == 1 and any("y == 2" in text for text in explained.guards)


# ---- the text and the native evaluator -------------------------------------------------------------------------------


class Box:
    scale = 2

    def __init__(self, value: Any, **more: Any) -> None:
        self.value = value
        self.__dict__.update(more)


def uses_much(x, n, items, d, box, flag=None):
    total = x * n + items[0] + d["k"] + box.value + box.scale + GLOBAL_VALUE
    if flag is None:
        total = total + len(items)
    return total


class Generator:
    """Generates frames for uses_much in which some arguments are replaced."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def frame(self) -> tuple[Any, ...]:
        r = self.random
        pick = r.choice
        scalars: list[Any] = [0, 1, 2, 2.0, True, None, "s", -0.0, NAN, 2**70]
        tensors = [torch.ones(3), torch.ones(4), torch.ones(3, dtype=torch.float64), torch.ones(3, requires_grad=True)]
        x = pick(tensors) if r.random() < 0.3 else torch.ones(3)
        n = pick(scalars) if r.random() < 0.3 else 2
        items: Any = [1, 2] if r.random() < 0.7 else pick([[1], [1, 3], [2, 2], (1, 2), None, [1.0, 2], []])
        d: Any = (
            {"k": 3}
            if r.random() < 0.7
            else pick([{"k": 4}, {}, {"k": 3, "l": 1}, {"l": 1, "k": 3}, OrderedDict(k=3), None])
        )
        box: Any = Box(5) if r.random() < 0.7 else pick([Box(6), Box(5.0), None, object(), Box(None)])
        if isinstance(box, Box) and r.random() < 0.1:
            box.scale = pick([2, 3])
        flag = None if r.random() < 0.8 else pick(scalars)
        return x, n, items, d, box, flag


@pytest.mark.row("S002-98")
@pytest.mark.parametrize("seed", range(4))
def test_the_text_gives_the_native_verdict(seed: int) -> None:
    frames = Generator(seed)
    w = godynamo.optimize(uses_much, backend=nb())
    w(torch.ones(3), 2, [1, 2], {"k": 3}, Box(5))
    [entry] = entries(w)
    verdicts = {True: 0, False: 0}
    for _ in range(2500):
        slots = frames.frame()
        native = entry.check(*slots, globals=globals())
        assert guard_env.eval_text(entry, slots, globals()) == native, (entry.text, slots)
        verdicts[native] += 1
    assert verdicts[True] > 50 and verdicts[False] > 500


@pytest.mark.row("S002-98")
def test_an_attribute_that_shadows_its_classs_reads_the_same_in_the_text() -> None:
    def f(x, o):
        return x * o.scale + o.value

    w = godynamo.optimize(f, backend=nb())
    o, x = Box(1, scale=2), torch.ones(1)  # the class attribute is 2 as well
    w(x, o)
    [entry] = entries(w)
    for attributes, holds in (
        ({"scale": 2, "value": 1}, True),
        ({"value": 1}, False),
        ({"scale": 3, "value": 1}, False),
    ):
        o.__dict__.clear()
        o.__dict__.update(attributes)
        assert entry.check(x, o, globals=globals()) is holds
        assert guard_env.eval_text(entry, (x, o), globals()) is holds


@pytest.mark.row("S002-99")
def test_the_first_part_that_fails_is_reported() -> None:
    def f(x, a, b, c):
        return x + a + b + c

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    w(x, 1, 2, 3)
    [entry] = entries(w)
    positions = [entry.parts.index(f"{name} == {value}") for name, value in (("a", 1), ("b", 2), ("c", 3))]
    assert positions == sorted(positions)
    assert entry.parts[0] == "___guarded_code.valid" and entry.parts[-1].startswith("___check_tensors")
    holds, part = _C.guard_check(entry, (x, 1, 9, 9), globals())
    assert not holds and entry.parts[part] == "b == 2"
    w(x, 1, 9, 9)
    reason = utils.guard_failures[f.__code__][-1]
    assert reason.startswith("b == 2")
    w(x, 1, 2, 9)
    assert any("c == 3" in r for r in utils.guard_failures[f.__code__])


@pytest.mark.row("S002-99")
def test_order_is_the_texts_order_whatever_fails() -> None:
    """If all guards fail, the first one in the text is reported."""
    w = godynamo.optimize(uses_much, backend=nb())
    good = (torch.ones(3), 2, [1, 2], {"k": 3}, Box(5), None)
    w(*good)
    [entry] = entries(w)
    bad = (3, 7, [], {}, None, 1)
    holds, first = _C.guard_check(entry, bad, globals())
    assert not holds
    for i in range(len(good)):
        slots = tuple(bad[j] if j == i else good[j] for j in range(len(good)))
        holds, part = _C.guard_check(entry, slots, globals())
        assert not holds and part >= first


# ---- modules and global state ----------------------------------------------------------------------------------------


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 2
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x) * self.scale


@pytest.mark.row("S002-100")
def test_a_module_attribute_recompiles_when_modules_are_guarded() -> None:
    module = Scale()
    w = godynamo.optimize(module, backend=(backend := nb()))
    x = torch.randn(3)
    assert torch.equal(w(x), module(x))
    module.scale = 3
    assert torch.equal(w(x), module(x)) and len(backend) == 2
    module.linear = torch.nn.Linear(3, 3)
    assert torch.equal(w(x), module(x))
    module.eval()
    assert torch.equal(w(x), module(x))


@pytest.mark.row("S002-100")
def test_without_guard_nn_modules_it_does_not() -> None:
    module = Scale()
    x = torch.randn(3)
    with godynamo.config.patch(guard_nn_modules=False):
        w = godynamo.optimize(module, backend=(backend := nb()))
        before = w(x)
        module.scale = 3
        assert torch.equal(w(x), before) and len(backend) == 1, "the seed's `continue`: stale by request"
    assert not any("scale" in e.text for e in godynamo.cache_entries(w))


STATES: dict[str, Any] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "default dtype": lambda: default_dtype(torch.float64),
    "deterministic": lambda: deterministic(),
}


class default_dtype:
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __enter__(self) -> None:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self.before)


class deterministic:
    def __enter__(self) -> None:
        self.before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(self.before)


@pytest.mark.row("S002-101")
@pytest.mark.parametrize("state", list(STATES))
def test_global_state_is_guarded(state: str) -> None:
    def f(x, w):
        y = x @ w + torch.ones(2, 2)
        return y, torch.is_grad_enabled(), y.dtype, torch.arange(0, 1, 0.5).dtype

    w = godynamo.optimize(f, backend=(backend := nb()))
    args = (torch.randn(2, 2), torch.randn(2, 2, requires_grad=True))

    def compare() -> None:
        ours, theirs = w(*args), f(*args)
        assert describe(ours) == describe(theirs)
        assert (ours[0].grad_fn is None) == (theirs[0].grad_fn is None)

    compare()
    with STATES[state]():
        with translations(1):
            compare()
        with no_translation():
            compare()
    with no_translation():
        compare()
    assert len(backend) == 2


def triple(x):
    return x * 3


def times_threads(x):
    return x * torch.get_num_threads()


@pytest.mark.parametrize("f, compiled, translated", [(triple, False, 0), (triple, True, 1), (times_threads, False, 1)])
def test_the_number_of_threads_is_guarded_where_code_depends_on_it(f: Any, compiled: bool, translated: int) -> None:
    w, x = godynamo.optimize(f, backend=nb() if compiled else "eager"), torch.ones(2)
    assert torch.equal(w(x), f(x))
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with translations(translated):
            assert torch.equal(w(x), f(x))
    finally:
        torch.set_num_threads(threads)
    with no_translation():
        assert torch.equal(w(x), f(x))


@pytest.mark.row("S002-101")
def test_the_training_flag_is_guarded() -> None:
    module = torch.nn.Dropout(0.5)
    w = godynamo.optimize(module, backend=(backend := nb()))
    x = torch.ones(100)
    torch.manual_seed(1)
    ours = w(x)
    torch.manual_seed(1)
    assert torch.equal(ours, module(x))
    module.eval()
    assert torch.equal(w(x), x)
    module.train()
    torch.manual_seed(1)
    assert torch.equal(w(x), ours)
    assert len(backend) >= 1
    assert_no_internal_errors()


@pytest.mark.row("S002-102")
def test_globals_read_are_guarded_others_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        return x + GLOBAL_VALUE

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    assert torch.equal(w(x), x + 3)
    assert "GLOBAL_VALUE" in texts(w)[0] and "OTHER_VALUE" not in texts(w)[0]
    monkeypatch.setitem(globals(), "OTHER_VALUE", 99)
    monkeypatch.setitem(globals(), "A_NEW_GLOBAL", 1)
    with no_translation():
        w(x)
    monkeypatch.setitem(globals(), "GLOBAL_VALUE", 30)
    with translations(1):
        assert torch.equal(w(x), x + 30)


@pytest.mark.row("S002-102")
def test_closures_read_are_guarded_others_not() -> None:
    read, unread = 1, 1

    def f(x, flag):
        return x + read if flag else x + unread

    w = godynamo.optimize(f, backend=nb())
    x = torch.randn(2)
    w(x, True)
    unread = 50
    with no_translation():
        assert torch.equal(w(x, True), x + 1)
    read = 7
    with translations(1):
        assert torch.equal(w(x, True), x + 7)
    assert torch.equal(w(x, False), x + 50)


@pytest.mark.row("S002-102")
def test_a_global_that_shadows_a_builtin_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x, items):
        return x + len(items)

    w = godynamo.optimize(f, backend=nb())
    x = torch.zeros(1)
    assert w(x, [1, 2]).item() == 2
    monkeypatch.setitem(globals(), "len", lambda items: 100)
    assert w(x, [1, 2]).item() == 100
    monkeypatch.undo()
    assert w(x, [1, 2]).item() == 2


# ---- functions and classes -------------------------------------------------------------------------------------------


def g(x):
    return x * 2


def replacement(x):
    return x * 9


class Holder:
    factor = 2

    def method(self, x):
        return x * self.factor


@pytest.mark.row("S002-103")
def test_a_replaced_code_recompiles() -> None:
    def callee(x):
        return x * 2

    def f(x):
        return callee(x) + 1

    w = godynamo.optimize(f, backend=nb())
    x = torch.full((1,), 4.0)
    assert w(x).item() == 9.0
    callee.__code__ = replacement.__code__
    assert w(x).item() == 37.0, "pytorch#197860"


@pytest.mark.row("S002-103")
def test_a_rebound_global_function_recompiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        return g(x) + 1

    w = godynamo.optimize(f, backend=nb())
    x = torch.full((1,), 4.0)
    assert w(x).item() == 9.0
    monkeypatch.setitem(globals(), "g", replacement)
    with translations(1):
        assert w(x).item() == 37.0


@pytest.mark.row("S002-103")
def test_replaced_defaults_and_the_optimized_functions_own_code() -> None:
    def callee(x, k=2):
        return x * k

    def f(x):
        return callee(x)

    w = godynamo.optimize(f, backend=nb())
    x = torch.ones(1)
    assert w(x).item() == 2.0
    callee.__defaults__ = (5,)
    assert w(x).item() == 5.0
    f.__code__ = (lambda x: x - 1).__code__ if not f.__code__.co_freevars else f.__code__
    callee.__kwdefaults__ = None
    assert w(x).item() == f(x).item()


@pytest.mark.row("S002-103")
@pytest.mark.parametrize("how", ["class", "instance", "code"])
def test_replaced_methods_recompile(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Local(Holder):
        def method(self, x):
            return x * self.factor

    def f(h, x):
        return h.method(x)

    w = godynamo.optimize(f, backend=nb())
    h, x = Local(), torch.ones(1)
    assert w(h, x).item() == 2.0
    if how == "class":
        Local.method = lambda self, x: x * 10  # type: ignore[method-assign]
    elif how == "instance":
        h.method = lambda x: x * 10  # type: ignore[method-assign]
    else:
        Local.method.__code__ = (lambda self, x: x * 10).__code__
    assert w(h, x).item() == 10.0


@pytest.mark.row("S002-103")
def test_a_bound_method_as_argument() -> None:
    class Local:
        k = 2

        def method(self, x):
            return x * self.k

    def f(m, x):
        return m(x)

    w = godynamo.optimize(f, backend=nb())
    a, b = Local(), Local()
    b.k = 7
    x = torch.ones(1)
    assert w(a.method, x).item() == 2.0 and w(b.method, x).item() == 7.0
    Local.method.__code__ = (lambda self, x: x * self.k * 100).__code__
    assert w(a.method, x).item() == 200.0


@pytest.mark.row("S002-104")
def test_a_class_attribute_is_guarded() -> None:
    class Base:
        factor = 2

    class Derived(Base):
        pass

    def f(h, x):
        return x * h.factor

    w = godynamo.optimize(f, backend=nb())
    h, x = Derived(), torch.ones(1)
    assert w(h, x).item() == 2.0
    Base.factor = 3
    assert w(h, x).item() == 3.0, "pytorch#176851"
    Derived.factor = 4
    assert w(h, x).item() == 4.0, "a class earlier in the MRO has it now"
    h.factor = 5
    assert w(h, x).item() == 5.0, "the instance has it now"
    del h.factor, Derived.factor
    assert w(h, x).item() == 3.0
    Derived.factor = property(lambda self: 6)  # type: ignore[assignment]
    assert w(h, x).item() == 6.0, "a data descriptor"


@pytest.mark.row("S002-104")
def test_a_class_attribute_read_from_the_class_is_guarded() -> None:
    class Config:
        size = 2

    def f(x):
        return x * Config.size

    w = godynamo.optimize(f, backend=nb())
    assert w(torch.ones(1)).item() == 2.0
    Config.size = 5
    assert w(torch.ones(1)).item() == 5.0


PRESENT: dict[str, tuple[Any, Any, Any]] = {
    "hasattr": (lambda x, o: x + 1 if hasattr(o, "w") else x, lambda: Box(1, w=1), lambda: Box(1)),
    "attribute not used": (lambda x, o: (o.w, x + 1)[1], lambda: Box(1, w=1), lambda: Box(1)),
    "attribute passed on": (lambda x, o: (o.w, x + 1), lambda: Box(1, w=1), lambda: Box(1)),
    "getattr with default": (lambda x, o: (getattr(o, "w", 5), x + 1), lambda: Box(1, w=1), lambda: Box(1)),
    "slot": (lambda x, o: (o.slotted, x + 1)[1], lambda: Slotted(1), lambda: Slotted()),
    "parameter": (
        lambda x, o: (o.weight, x + 1)[1],
        lambda: torch.nn.Linear(1, 1),
        lambda: without(torch.nn.Linear(1, 1)),
    ),
    "submodule": (lambda x, o: x + 1 if hasattr(o, "linear") else x, Scale, lambda: without(Scale(), "linear")),
    "item": (lambda x, o: (o["k"], x + 1)[1], lambda: {"k": 1}, dict),
    "list item": (lambda x, o: (o[1], x + 1)[1], lambda: [1, 2], lambda: [1]),
}


class Slotted:
    __slots__ = ("slotted",)

    def __init__(self, *value: Any) -> None:
        if value:
            (self.slotted,) = value


def without(module: torch.nn.Module, name: str = "weight") -> torch.nn.Module:
    delattr(module, name)
    return module


@pytest.mark.row("S002-102")
@pytest.mark.parametrize("order", ["there first", "missing first"])
@pytest.mark.parametrize("what", list(PRESENT))
def test_that_a_place_can_be_read_is_guarded(what: str, order: str) -> None:
    """A guard checks that the value can be read, even if it is never used."""
    fn, there, missing = PRESENT[what]
    w = godynamo.optimize(fn, backend="eager")
    x = torch.ones(1)
    makers = (there, missing) if order == "there first" else (missing, there)
    for make in makers * 2:
        o = make()
        expected, actual = outcome(fn, (x, o)), outcome(w, (x, o))
        assert (actual["how"][:3], actual["value"]) == (expected["how"][:3], expected["value"])
    assert_no_internal_errors()


@pytest.mark.row("S002-102", "S002-104")
def test_names_that_come_and_go_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Local:
        pass

    def from_class(x, o):
        return x + 1 if hasattr(o, "late") else x

    def from_global(x, o):
        A_NAME_THAT_COMES_LATE  # noqa: F821
        return x + 1

    o, x = Local(), torch.ones(1)
    for fn, name in ((from_class, "late"), (from_global, "A_NAME_THAT_COMES_LATE")):
        w = godynamo.optimize(fn, backend="eager")
        for present in (False, True, False, True):
            with monkeypatch.context() as patched:
                if present and fn is from_class:
                    patched.setattr(Local, name, 1, raising=False)
                elif present:
                    patched.setitem(globals(), name, 1)
                expected, actual = outcome(fn, (x, o)), outcome(w, (x, o))
                assert (actual["how"][:3], actual["value"]) == (expected["how"][:3], expected["value"]), (name, present)


# ---- containers ------------------------------------------------------------------------------------------------------


def dict_sum(x, d):
    for key, value in d.items():
        x = x * 10 + value + len(key)
    return x


def list_sum(x, items):
    for item in items:
        x = x * 10 + item
    return x


def set_sum(x, s):
    for item in (1, 2, 3):
        if item in s:
            x = x * 10 + item
    return x + len(s)


CONTAINERS: dict[str, tuple[Any, list[Any]]] = {
    "dict": (dict_sum, [
        {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "bb": 2}, {"a": 1, "b": 3}, {},
    ]),
    "OrderedDict": (dict_sum, [OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), OrderedDict(a=1), OrderedDict(a=1, b=5)]),
    "list": (list_sum, [[1, 2], [1], [1, 2, 3], [2, 1], [], [1.0, 2]]),
    "tuple": (list_sum, [(1, 2), (1,), (1, 2, 3), (2, 1), ()]),
    "set": (set_sum, [{1, 2}, {1}, {1, 2, 3}, {2, 3}, set()]),
    "mixed": (list_sum, [[1, 2], (1, 2), range(1, 3)]),
}  # fmt: skip


@pytest.mark.row("S002-105")
@pytest.mark.parametrize("kind", list(CONTAINERS))
def test_contents_of_containers_are_guarded(kind: str) -> None:
    fn, values = CONTAINERS[kind]
    w = godynamo.optimize(fn, backend=nb())
    x = torch.ones(1)
    with godynamo.config.patch(cache_size_limit=64):
        for value in values:
            with translations(1):
                assert torch.equal(w(x, value), fn(x, value)), value
        with no_translation():
            for value in values:
                assert torch.equal(w(x, value), fn(x, value)), value
    assert_no_internal_errors()


@pytest.mark.row("S002-105")
def test_an_ordered_dicts_own_order_counts() -> None:
    d = OrderedDict(a=1, b=2)
    w = godynamo.optimize(dict_sum, backend=nb())
    x = torch.ones(1)
    assert torch.equal(w(x, d), dict_sum(x, d))
    d.move_to_end("a")
    assert torch.equal(w(x, d), dict_sum(x, d))


@pytest.mark.row("S002-105")
def test_a_mutated_container_is_seen() -> None:
    w = godynamo.optimize(list_sum, backend=nb())
    x, items = torch.ones(1), [1, 2]
    for change in (
        lambda: items.append(3),
        lambda: items.pop(0),
        lambda: items.reverse(),
        lambda: items.__setitem__(0, 9),
    ):
        assert torch.equal(w(x, items), list_sum(x, items))
        change()
        assert torch.equal(w(x, items), list_sum(x, items))


def test_is_compares_functions_of_different_code_by_code():
    def made(n):
        return lambda x: x * n

    def fn(x, g):
        return x + 1 if g is of_another_code else g(x)

    def of_another_code(x):
        return x

    f = godynamo.optimize(fn)
    with translations(2):  # the second makes a symbol of n
        for n in range(3, 8):
            assert torch.equal(f(torch.ones(3), made(n)), fn(torch.ones(3), made(n)))
    assert torch.equal(f(torch.ones(3), of_another_code), torch.ones(3) + 1)
