"""Repeated operations on different tensors run together (Groups) where nothing can tell: always eager's bits.

Each test runs with the C core's kernels and without them, as on a processor that does not serve them.
"""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import optim
from torch.utils._python_dispatch import TorchDispatchMode

import godynamo
from godynamo import _C

SHAPES = [(3, 4), (4,), (2, 2, 2), (1,), (), (5, 1), (7,), (0, 3)]


@pytest.fixture(autouse=True, params=["kernels", "torch"])
def kernels(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Return whether the kernels are used."""
    godynamo.reset()
    yield _C._kernels_use(request.param == "kernels")
    _C._kernels_use(True)
    godynamo.reset()


def groups(compiled: Any) -> list[_C.Group]:
    """Return the Groups of all entries."""
    cells = [cell.cell_contents for e in godynamo.cache_entries(compiled) for cell in e.function.__closure__ or ()]
    return [c for c in cells if isinstance(c, _C.Group)]


def together(compiled: Any) -> int:
    """Return how many units ran together in the last calls of all Groups, or in C."""
    return sum(g.grouped + g.small for g in groups(compiled))


def tensors(seed: int, n: int, **options: Any) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(SHAPES[i % len(SHAPES)], generator=generator).to(**options) for i in range(n)]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and torch.equal(a, b) and a._version == b._version
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


# ---- optimizers


OPTIMIZERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.05),
    "SGD with momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "SGD, Nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.5, nesterov=True),
    "Adagrad": lambda p: optim.Adagrad(p, weight_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adam": lambda p: optim.Adam(p, weight_decay=0.01),
    "AdamW": lambda p: optim.AdamW(p),
    "AdamW, maximize": lambda p: optim.AdamW(p, maximize=True),
    "Adamax": lambda p: optim.Adamax(p),
    "NAdam": lambda p: optim.NAdam(p),
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.5, centered=True),
}


def trained(make: Callable[[Any], optim.Optimizer], wrap: Callable[[Any], Any], params: list[torch.Tensor]) -> Any:
    """Return the parameters and the state after some steps, and the wrapped step."""
    optimizer = make(params)
    step = wrap(optimizer.step)
    for i in range(6):
        for p, g in zip(params, tensors(i, len(params)), strict=True):
            p.grad = g.to(p.dtype).reshape(p.shape)
        step()
    state = [[*optimizer.state[p].values()] for p in params]
    return [p.detach() for p in params], state, step


@pytest.mark.parametrize("name", ["mul_", "addcdiv_", "__iadd__", "lerp_"])
def test_methods_of_the_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of tensors that the program replaces after the translation is called."""
    params = [[t.requires_grad_() for t in tensors(100, 8)] for _ in range(2)]
    optimizers = [optim.AdamW(p) for p in params]
    calls: list[str] = []
    own = getattr(torch.Tensor, name)

    def replacement(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return own(self, *args, **kwargs)

    steps = [optimizers[0].step, godynamo.optimize(optimizers[1].step)]
    counts = []
    for step, own_params in zip(steps, params, strict=True):
        for i in range(6):
            for p, g in zip(own_params, tensors(i, len(own_params)), strict=True):
                p.grad = g.to(p.dtype).reshape(p.shape)
            if i == 4:
                monkeypatch.setattr(torch.Tensor, name, replacement)
            step()
        monkeypatch.undo()
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1]
    assert same([p.detach() for p in params[0]], [p.detach() for p in params[1]])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers(name: str) -> None:
    def params() -> list[torch.Tensor]:
        return [t.requires_grad_() for t in tensors(100, 8)]

    want = trained(OPTIMIZERS[name], lambda step: step, params())
    got = trained(OPTIMIZERS[name], godynamo.optimize, params())
    assert same(want[:2], got[:2])
    assert together(got[2]) >= (0 if name == "Adamax" else 8)  # Adamax calls torch.maximum with out=


def flat() -> list[torch.Tensor]:
    """Return parameters that share one storage without overlapping."""
    buffer = tensors(1, 1)[0].new_tensor([float(i) for i in range(48)])
    return [buffer[12 * i : 12 * i + 12].detach().requires_grad_() for i in range(4)]


def overlapping() -> list[torch.Tensor]:
    buffer = torch.arange(20.0)
    return [buffer[i : i + 12].detach().requires_grad_() for i in (0, 4, 8, 6)]


def large() -> list[torch.Tensor]:
    return [torch.ones(n).requires_grad_() for n in (3, 50_000, 3, 3, 50_000, 3)]


@pytest.mark.parametrize("params", [flat, overlapping, large])
def test_parameters_that_share_memory_or_are_large_keep_their_order(params: Callable[[], Any], kernels: bool) -> None:
    def adam(p: Any) -> optim.Optimizer:
        return optim.Adam(p, lr=0.5)

    def train(wrap: Callable[[Any], Any]) -> Any:
        own = params()
        optimizer = adam(own)
        step = wrap(optimizer.step)
        for i in range(5):
            for p in own:
                p.grad = torch.full_like(p, i + 0.5)
            step()
        return [p.detach() for p in own], [[*optimizer.state[p].values()] for p in own], step

    want, got = train(lambda step: step), train(godynamo.optimize)
    assert same(want[:2], got[:2])
    assert groups(got[2]) and together(got[2]) == ((4 if kernels else 2) if params is large else 0)


def test_gradients_that_are_parameters() -> None:
    def train(wrap: Callable[[Any], Any]) -> Any:
        own = [torch.full((4,), i + 1.0, requires_grad=True) for i in range(4)]
        optimizer = optim.SGD(own, lr=0.1)
        step = wrap(optimizer.step)
        for _ in range(4):
            for i, p in enumerate(own):
                p.grad = own[i - 1].detach()
            step()
        return [p.detach() for p in own]

    assert same(train(lambda step: step), train(godynamo.optimize))


def test_a_step_that_raises_leaves_what_eager_leaves() -> None:
    def train(wrap: Callable[[Any], Any]) -> Any:
        own = [torch.ones(4), torch.ones(4), torch.ones(4), torch.ones(4)]
        change = wrap(decay)
        others = [torch.ones(4) for _ in own]
        for _ in range(3):
            change(own, others)
        others[2] = torch.ones(3)
        with pytest.raises(RuntimeError) as raised:
            change(own, others)
        assert torch.is_grad_enabled()
        return own, str(raised.value)

    want, got = train(lambda f: f), train(lambda f: godynamo.optimize(f, dynamic=True))
    assert same(want, got)


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(4)


@pytest.mark.parametrize(
    ("change", "odd"),
    [
        (lambda x, y, n: x.mul_(y).add_(1), lambda: torch.ones(1).expand(4)),
        (lambda x, y, n: x.mul_(y).add_(1), inference),
        (lambda x, y, n: x.mul_(y).sub_(True), None),
        (lambda x, y, n: x.mul_(y).add_("a"), None),
        (lambda x, y, n: x.mul_(2).add_(y, alpha=n), 1e40),
        (lambda x, y, n: x.mul_(2).add_(y, alpha=n), 1 << 1030),
        (lambda x, y, n: x.mul_(y).add_(y, alpha=1e39), None),
        (lambda x, y, n: x.mul_(2).add_(y.add(1).mul_(n)), torch.ones(5)),
        (lambda x, y, n: x.mul_(2).addcmul_(y, n), 2.0),
        (lambda x, y, n: x.mul_(2).lerp_(y.neg(), n), torch.ones(4, dtype=torch.float64)),
    ],
)
def test_an_operation_that_raises_comes_before_later_units(change: Callable[..., Any], odd: Any) -> None:
    """torch refuses numbers that do not fit, tensors whose elements share memory, and inference tensors."""

    def f(xs: list[torch.Tensor], ys: list[torch.Tensor], ns: list[Any]) -> None:
        with torch.no_grad():
            for x, y, n in zip(xs, ys, ns, strict=True):
                change(x, y, n)

    def results(call: Callable[..., Any]) -> Any:
        seen = []
        for at in (None, None, 2, 0):
            lists: Any = [[torch.ones(4) + i for i in range(4)] for _ in range(2)]
            lists.append([torch.ones(4) if isinstance(odd, torch.Tensor) else 0.5] * 4)
            if at is not None and odd is not None:
                lists[0 if callable(odd) else 2][at] = odd() if callable(odd) else odd
            error = ""
            try:
                call(*lists)
            except (RuntimeError, TypeError, OverflowError) as raised:
                error = str(raised)
            seen.append([error, [(x.tolist(), None if x.is_inference() else x._version) for x in lists[0]]])
        return seen

    want, got = results(f), results(godynamo.optimize(f, dynamic=True))
    assert want == got
    assert any(error for error, _ in want)


# ---- programs


@torch.no_grad()
def decay(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> None:
    for x, y in zip(xs, ys, strict=True):
        x.mul_(0.9)
        x.add_(y, alpha=0.5)


def ema(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for x, y in zip(xs, ys, strict=True):
            x.mul_(0.99).add_(y, alpha=0.01)


def copied(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> Any:
    with torch.no_grad():
        for x, y in zip(xs, ys, strict=True):
            x.copy_(y.abs() * 2 - x)
            x /= 3
        return [x + 1 for x in xs]


def kept(xs: list[torch.Tensor], ys: list[torch.Tensor]) -> Any:
    """One result of a unit is read outside it."""
    results = []
    with torch.no_grad():
        for x, y in zip(xs, ys, strict=True):
            z = x.sqrt()
            x.addcdiv_(y, z.add_(1), value=0.5)
            results.append(z)
    return results


@pytest.mark.parametrize("f", [decay, ema, copied, kept])
def test_loops_of_programs(f: Callable[..., Any]) -> None:
    compiled = godynamo.optimize(f)
    for seed in range(4):
        want_xs, got_xs, ys = tensors(seed, 6), tensors(seed, 6), tensors(seed + 9, 6)
        want, got = f(want_xs, ys), compiled(got_xs, ys)
        assert torch.equal(
            torch.nan_to_num(torch.cat([t.flatten() for t in want_xs])),
            torch.nan_to_num(torch.cat([t.flatten() for t in got_xs])),
        )
        if want is not None:
            assert all(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in zip(want, got, strict=True))
    assert together(compiled) == (0 if f is kept else 6)


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_the_programs_operations() -> None:
    compiled = godynamo.optimize(decay)
    for _ in range(3):
        compiled(tensors(0, 5), tensors(1, 5))
    assert together(compiled) == 5
    xs, ys = tensors(0, 5), tensors(1, 5)
    with Names() as mode:
        compiled(xs, ys)
    assert mode.seen == ["aten.mul_.Tensor", "aten.add_.Tensor"] * 5


def test_other_tensors_in_later_calls() -> None:
    """Units run one by one for subclasses, other dtypes, overlaps; the entry's guards may not tell."""
    compiled = godynamo.optimize(decay)
    for _ in range(3):
        compiled(tensors(0, 5), tensors(1, 5))
    one = torch.arange(10.0)
    cases = [
        lambda: ([torch.ones(4)] * 5, [torch.ones(4)] * 5),
        lambda: (list(one.clone().unfold(0, 6, 1)), [torch.ones(6)] * 5),
        lambda: (tensors(2, 5), [t.double() for t in tensors(3, 5)]),
        lambda: (tensors(2, 5, dtype=torch.float16), tensors(3, 5, dtype=torch.float16)),
        lambda: ([torch.ones(4, dtype=torch.complex64) * 1j for _ in range(5)], [torch.ones(4)] * 5),
        lambda: ([torch.nn.Parameter(t) for t in tensors(2, 5)], tensors(3, 5)),
        lambda: ([torch.ones(4).conj_physical().to(torch.complex64).conj() for _ in range(5)], [torch.ones(4)] * 5),
        lambda: ([torch.ones(2, 2, 2, 2, 2, 2) for _ in range(5)], [torch.ones(2) for _ in range(5)]),
        lambda: ([torch.ones(3, 4).t() for _ in range(5)], [torch.ones(4, 3) for _ in range(5)]),
        lambda: ([torch.ones(3), torch.ones(3), torch.ones(3), torch.ones(2), torch.ones(3)], [torch.ones(3)] * 5),
    ]
    for case in cases:
        results = []
        for f in (decay, compiled):
            xs, ys = case()
            try:
                f(xs, ys)
                results.append(xs)
            except RuntimeError as error:
                results.append([*xs, str(error)])
        assert same(*results), results


@pytest.mark.parametrize("seed", range(40))
def test_random_sequences(seed: int) -> None:
    """Random units over tensors some of which share memory."""
    r = random.Random(seed)
    lines = []
    names = ["x", "y", "z"]
    for i in range(r.randint(2, 7)):
        target = r.choice(["x", "y"])
        other, third = r.choice(names), r.choice(names)
        lines.append(
            r.choice(
                [
                    f"{target}.mul_({r.choice([0.5, 2, -1.5])})",
                    f"{target}.add_({other}, alpha=0.5)",
                    f"{target} += {other}",
                    f"{target}.addcmul_({other}, {third}, value=0.25)",
                    f"{target}.lerp_({other}, 0.3)",
                    f"t{i} = {other}.abs().sqrt()",
                    f"t{i} = {other} / ({third}.abs() + 2)",
                    f"{target}.copy_({other} * 0.5 - {third})",
                    f"{target}.addcdiv_({other}, {third}.abs() + 1, value=-0.5)",
                    f"n{i} = s.item() ** 2; {target} *= n{i}",
                    f"s += 1; {target}.sub_(s.item() / 7)",
                ]
            )
        )
        names += [f"t{i}"] if lines[-1].startswith("t") else []
    body = "\n            ".join(lines)
    source = f"""
def f(xs, ys, zs, ss):
    with torch.no_grad():
        for x, y, z, s in zip(xs, ys, zs, ss):
            {body}
"""
    scope: dict[str, Any] = {"torch": torch}
    exec(source, scope)
    compiled = godynamo.optimize(scope["f"])
    for call in range(6):
        both = []
        for f in (scope["f"], compiled):
            own = random.Random(seed * 100 + call)
            pool = torch.arange(40.0).div(8)
            made = [pool[i : i + 4] for i in (0, 2, 4, 12, 16)] + [torch.arange(4.0) + i for i in range(12)]
            apart = call in (0, 1, 5)
            lists = [
                [
                    made[own.randrange(len(made))] if not apart else torch.rand(4, generator=None) * 0 + i + j
                    for i in range(4)
                ]
                for j in range(3)
            ]
            lists.append([torch.tensor(float(i)) for i in range(4)])
            error = ""
            try:
                f(*lists)
            except RuntimeError as raised:  # torch refuses some tensors that overlap
                error = str(raised)
            both.append([error, *(t.nan_to_num() for t in itertools.chain(*lists)), pool])
        assert same(*both), (source, call)


# ---- torch's functions

NUMBERS = [0.9, -0.3333333, 1e-8, 3]
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *((name, ()) for name in "sqrt neg abs sign reciprocal sqrt_ neg_ abs_ sign_ reciprocal_ zero_".split()),
    *((name, ("T",)) for name in "add sub mul div add_ sub_ mul_ div_ maximum minimum copy_".split()),
    *((name, (n,)) for name in "add sub mul div add_ sub_ mul_ div_".split() for n in NUMBERS),
    *((name, ("T", ("alpha", n))) for name in ("add", "sub", "add_", "sub_") for n in NUMBERS),
    *((name, ("T", n)) for name in ("lerp", "lerp_") for n in NUMBERS),
    *((name, ("T", "T", *value)) for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")
      for value in [(), *((("value", n),) for n in NUMBERS)]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_calls_of_groups_have_the_bits_of_the_methods(dtype: torch.dtype) -> None:
    for name, operands in CALLS:
        names = tuple(o[0] for o in operands if isinstance(o, tuple))
        rows: list[list[Any]] = []
        for i in range(4):
            generator = torch.Generator().manual_seed(i)
            row = [torch.randn(17 + i, generator=generator, dtype=dtype)]
            for o in operands:
                number = o[1] if isinstance(o, tuple) else o
                row.append(torch.randn(17 + i, generator=generator, dtype=dtype) if o == "T" else number)
            rows.append(row)
        for shared in (False, True):  # numbers that are constants of the plan, or differ between the units
            codes: list[Any] = []
            values: list[list[Any]] = [[] for _ in rows]
            for k, value in enumerate(rows[0]):
                if not isinstance(value, torch.Tensor) and shared:
                    codes.append((value,))
                    continue
                codes.append(len(values[0]))
                for u, row in enumerate(rows):
                    values[u].append(row[k].clone() if isinstance(value, torch.Tensor) else row[k] * (u + 1))
            group = _C.Group((4, len(values[0]), (("call_method", name, tuple(codes), names),
                                                  ("call_method", "add_", (0, -1), ()))))  # fmt: skip
            want = [[v.clone() if isinstance(v, torch.Tensor) else v for v in unit] for unit in values]
            with torch.no_grad():
                for unit in want:
                    args = [unit[c] if isinstance(c, int) else c[0] for c in codes]
                    keywords = dict(zip(names, args[len(args) - len(names) :], strict=True))
                    result = getattr(args[0], name)(*args[1 : len(args) - len(names)], **keywords)
                    unit[0].add_(result)
                group(*itertools.chain(*values))
            assert group.grouped + group.small == 4
            assert all(
                torch.equal(a[0].nan_to_num(), b[0].nan_to_num()) and a[0]._version == b[0]._version
                for a, b in zip(want, values, strict=True)
            ), (name, operands, shared)


# ---- plans


PLAN = (2, 2, (("call_method", "mul_", (0, (2.0,)), ()), ("operator", "+=", (0, 1), ())))


def test_a_plan() -> None:
    xs = [torch.ones(2), torch.ones(3)]
    group = _C.Group(PLAN)
    assert group.plan is PLAN
    with torch.no_grad():
        assert group(xs[0], torch.ones(2), xs[1], torch.ones(3)) is None
    assert group.grouped + group.small == 2 and [x.tolist() for x in xs] == [[3, 3], [3, 3, 3]]
    group(xs[0], torch.ones(2), xs[1], torch.ones(3))
    assert group.grouped + group.small == 0, "in grad mode the order can be told"
    with pytest.raises(TypeError, match="takes 4 values"):
        group(xs[0])
    with torch.no_grad():
        group(xs[0], 1, xs[1], 2.0)
        assert group.grouped + group.small == 2
        for other in (True, torch.ones(2).numpy(), torch.ones(3)[:2]):
            group(xs[0], other, xs[1], 1)
            assert group.grouped == (2 if isinstance(other, torch.Tensor) else 0)
    with pytest.raises(TypeError):
        group(xs[0], 1, xs[1], object())


def test_a_signal_stops_units_that_run_one_by_one() -> None:
    def stop(*_: Any) -> None:
        raise TimeoutError

    units = 3000
    x, last = torch.ones(4_000_000), torch.ones(50_000)
    group = _C.Group((units, 1, (("call_method", "mul_", (0, (1.0,)), ()),)))
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with torch.no_grad(), pytest.raises(TimeoutError):
            group(*[x] * (units - 1), last)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert x._version < units and last._version == 0


@pytest.mark.parametrize(
    "plan",
    [
        (),
        (0, 1, PLAN[2]),
        (1, 0, PLAN[2]),
        (1, 1000, PLAN[2]),
        (1, 1, ()),
        (1, 1, ("step",)),
        (1, 1, (("call_method", "mul_", (0, 1), ()),)),
        (1, 1, (("call_method", "mul_", (0, -1), ()),)),
        (1, 1, (("call_method", "mul_", (-9, 0), ()),)),
        (1, 1, (("call_method", "mul_", (), ()),)),
        (1, 1, (("call_method", "mul_", (0,) * 9, ()),)),
        (1, 1, (("call_method", "view", (0, (1,)), ()),)),
        (1, 1, (("call_method", 3, (0,), ()),)),
        (1, 1, (("operator", "@", (0, 0), ()),)),
        (1, 1, (("operator", "+", (0,), ()),)),
        (1, 1, (("other", "mul_", (0, 0), ()),)),
        (1, 1, (("call_method", "mul_", (0, "x"), ()),)),
        (1, 1, (("call_method", "mul_", (0,), ("a", "b")),)),
        (1, 1, (("call_method", "mul_", (0, 1 << 80), ()),)),
        (1, 1, (("call_method", "mul_", (0, 0), (3,)),)),
    ],
)
def test_malformed_plans_are_refused(plan: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        _C.Group(plan)
