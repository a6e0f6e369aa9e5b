"""Groups on small tensors run the C core's own kernels: with torch's bits, and only where nothing can tell."""

from __future__ import annotations

import gc
import itertools
import operator
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

import godynamo
from godynamo import _C
from godynamo._called import kernels

STEPS = (
    ("call_method", "mul_", (0, (0.9,)), ()),
    ("call_method", "lerp_", (1, 0, (0.1,)), ()),
    ("call_method", "addcmul_", (1, 0, 0, (0.3,)), ("value",)),
    ("call_method", "sqrt", (1,), ()),
    ("operator", "/", (~3, (1.5,)), ()),
    ("call_method", "add_", (~4, (1e-8,)), ()),
    ("call_method", "addcdiv_", (0, 1, ~5, (-0.01,)), ("value",)),
    ("call_method", "add_", (0, 1, (0.25,)), ("alpha",)),
)


pytestmark = pytest.mark.usefixtures("kernels_served")


def one_by_one(plan: tuple[Any, ...], values: list[Any]) -> None:
    """Run the steps of a plan with torch, unit after unit."""
    units, externals, steps = plan
    operators = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "+=": operator.iadd}
    for u in range(units):
        unit, results = values[u * externals : (u + 1) * externals], []
        for kind, name, operands, names in steps:
            args = [o[0] if isinstance(o, tuple) else unit[o] if o >= 0 else results[~o] for o in operands]
            positional = len(args) - len(names)
            call = operators[name] if kind == "operator" else getattr(type(args[0]), name)
            results.append(call(*args[:positional], **dict(zip(names, args[positional:], strict=True))))


def bits(v: Any) -> Any:
    if not isinstance(v, torch.Tensor):
        return repr(v)
    return v.detach().nan_to_num(nan=12345.0), v._version, v.isnan().tolist()


def same(a: list[Any], b: list[Any]) -> bool:
    return all(
        torch.equal(x[0], y[0]) and x[1:] == y[1:] if isinstance(x, tuple) else x == y
        for x, y in zip(map(bits, a), map(bits, b), strict=True)
    )


def compare(plan: tuple[Any, ...], make: Any, small: int) -> Any:
    """Run a plan on the values that ``make`` makes, by torch and as a group; return the group."""
    group = _C.Group(plan)
    for _ in range(2):
        want, got, errors = make(), make(), []
        with torch.no_grad():
            for run, values in ((lambda v: one_by_one(plan, v), want), (lambda v: group(*v), got)):
                try:
                    run(values)
                    errors.append("")
                except Exception as error:
                    errors.append(repr(error))
        assert errors[0] == errors[1] and same(want, got), plan
    assert group.small == small, plan
    return group


def two(n: int, dtype: torch.dtype = torch.float32, units: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    return [torch.randn(n, generator=generator, dtype=dtype) for _ in range(2 * units)]


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("name", kernels._OPERATIONS)
def test_each_kernel_has_a_variant(name: str, double: bool) -> None:
    variants = 15
    with torch.no_grad():
        assert kernels.search(name, double, False, variants) >= 0


def test_a_kernel_with_other_bits_is_not_used() -> None:
    a, b, c = (kernels._samples(torch, False, i) for i in range(3))
    want = a.mul(b)
    places = [t.data_ptr() for t in (a, b, c)]
    assert _C.kernel_agrees("MUL", 0, False, 1031, *places, 0.0, want.data_ptr())
    assert not _C.kernel_agrees("DIV", 0, False, 1031, *places, 0.0, want.data_ptr())
    want = a.add(b, alpha=0.3)
    agree = [_C.kernel_agrees("ADD_SCALED", v, False, 1031, *places, 0.3, want.data_ptr()) for v in range(2)]
    assert agree.count(True) == 1, "rounding once or twice is told apart"
    with pytest.raises(ValueError, match="no such kernel"):
        _C.kernel_agrees("POW", 0, False, 1, *places, 0.0, want.data_ptr())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_of_all_lengths(dtype: torch.dtype) -> None:
    for n in [*range(70), 127, 128, 129, 1000, 4097, 16384]:
        compare((3, 2, STEPS), lambda n=n: two(n, dtype), 3)
    compare((3, 2, STEPS), lambda: two(16385, dtype), 0)  # torch may compute it in several threads


def test_values_at_the_limits() -> None:
    values = [0.0, -0.0, float("inf"), -float("inf"), 1e-45, -1e-40, 1.17549435e-38, 3.4e38, 1.0, -1.0]
    pairs = list(itertools.product(values, values))

    def make() -> list[torch.Tensor]:
        x, y = (torch.tensor([p[i] for p in pairs]) for i in (0, 1))
        return [x, y, y.clone(), x.clone(), x.clone(), x.clone()]

    # The kernels are found first. Looking for one looks at the tensors again, and some hold NaN by then.
    compare((3, 2, STEPS), lambda: [t.abs() for t in two(len(pairs))], 3)
    compare((3, 2, STEPS), make, 3)
    torch.set_flush_denormal(True)
    try:
        compare((3, 2, STEPS), make, 3)
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize(
    "step",
    [
        ("call_method", "sub_", (0, 1, (0,)), ("alpha",)),
        ("call_method", "sub_", (0, 1, (0.0,)), ("alpha",)),
        ("call_method", "sub_", (0, (0,)), ()),
        ("call_method", "add_", (0, 1, (0,)), ("alpha",)),
        ("call_method", "lerp_", (0, 1, (1,)), ()),
        ("call_method", "lerp_", (0, 1, (1 + 1e-10,)), ()),
        ("call_method", "lerp_", (0, 1, (0.0,)), ()),
        ("call_method", "addcmul_", (0, 1, 1, (0,)), ("value",)),
        ("call_method", "addcdiv_", (0, 1, 1, (1,)), ("value",)),
    ],
)
def test_the_sign_of_zero(step: Any) -> None:
    """torch negates an int without making it a float, and has several formulas for one operation."""
    pairs = list(itertools.product([0.0, -0.0, 1.0, -2.0], repeat=2))
    for n in (3, len(pairs), 5 * len(pairs) + 3):
        values = [(pairs * 6)[:n], (pairs * 6)[-n:]]
        want, got = ([torch.tensor([p[i] for p in v]) for v in values for i in (0, 1)] for _ in range(2))
        with torch.no_grad():
            one_by_one((2, 2, (step,)), want)
            _C.Group((2, 2, (step,)))(*got)
        assert [v.view(torch.int32).tolist() for v in want] == [v.view(torch.int32).tolist() for v in got]


@pytest.mark.parametrize("name", ["add_", "mul_", "div_"])
def test_the_bits_of_nan(name: str) -> None:
    """Which of two NaNs is the result depends on the order of the operands in torch's compiled loop."""
    nans = [torch.tensor([n] * 9, dtype=torch.int32).view(torch.float32) for n in (0x7FC00001, -0x00400000 + 2)]
    plan = (2, 2, (("call_method", name, (0, 1), ()), ("operator", "+=", (1, 0), ())))

    def of_bits(values: list[torch.Tensor]) -> list[Any]:
        return [v.view(torch.int32).tolist() for v in values]

    for a, b in itertools.product([*nans, torch.ones(9)], repeat=2):
        want, got = ([t.clone() for t in (a, b, b, a)] for _ in range(2))
        with torch.no_grad():
            one_by_one(plan, want)
            _C.Group(plan)(*got)
        assert of_bits(want) == of_bits(got)


def test_the_sign_of_nan_after_abs_and_neg() -> None:
    """The unit makes a NaN, changes its sign, and adds the two."""
    for change in ("abs", "neg"):
        steps = (
            ("operator", "-", (0, 0), ()),
            ("call_method", change, (~0,), ()),
            ("operator", "+", (~0, ~1), ()),
            ("operator", "+", (~1, ~0), ()),
            ("call_method", "copy_", (0, ~2), ()),
            ("call_method", "copy_", (1, ~3), ()),
        )
        want, got = ([torch.full((9,), float("inf")) for _ in range(4)] for _ in range(2))
        with torch.no_grad():
            one_by_one((2, 2, steps), want)
            _C.Group((2, 2, steps))(*got)
        assert [v.view(torch.int32).tolist() for v in want] == [v.view(torch.int32).tolist() for v in got]


@pytest.mark.parametrize("number", [1, 0, -3, 2**24, 2**24 + 1, 2**70, 1e40, -1e40, float("inf"), float("nan"), True])
def test_numbers(number: Any) -> None:
    for step in (
        ("call_method", "mul_", (0, 2), ()),
        ("call_method", "div_", (0, 2), ()),
        ("call_method", "add_", (0, 2), ()),
        ("call_method", "add_", (0, 1, 2), ("alpha",)),
        ("call_method", "sub_", (0, 1, 2), ("alpha",)),
        ("call_method", "addcmul_", (0, 0, 1, 2), ("value",)),
        ("call_method", "addcdiv_", (0, 0, 1, 2), ("value",)),
        ("call_method", "lerp_", (0, 1, 2), ()),
    ):
        group = _C.Group((2, 3, (step,)))
        want, got = ([*two(5, units=1), number, *two(5, units=1), number] for _ in range(2))
        errors: list[str] = []
        with torch.no_grad():
            for run in (lambda w=want, s=step: one_by_one((2, 3, (s,)), w), lambda g=got, f=group: f(*g)):
                try:
                    run()
                    errors.append("")
                except (RuntimeError, OverflowError) as error:
                    errors.append(str(error))
        assert errors[0] == errors[1], step
        if not errors[0]:
            assert same(want, got), (step, number)


def test_a_step_without_a_kernel_in_the_middle() -> None:
    """The results so far become tensors, and what torch's operation leaves is read by the next kernels."""
    steps = (
        ("operator", "*", (0, (2.0,)), ()),
        ("call_method", "abs", (~0,), ()),
        ("call_method", "add_", (~1, 1), ()),  # external 1 has another shape: no kernel
        ("call_method", "mul_", (~2, (0.5,)), ()),
        ("call_method", "copy_", (0, ~1), ()),
    )
    compare((2, 2, steps), lambda: [torch.ones(3), torch.ones(1) * 2, torch.ones(3), torch.ones(1)], 0)
    with torch.no_grad():
        fresh = _C.Group((2, 2, steps))
        xs = [torch.ones(3), torch.ones(1) * 2, torch.ones(3), torch.ones(1)]
        fresh(*xs)
    assert fresh.small == 1, "the first unit ran until the others were known to have no kernels"
    assert xs[0].tolist() == [2.0, 2.0, 2.0] and xs[2].tolist() == [1.5, 1.5, 1.5]


def test_numbers_of_tensors() -> None:
    steps = (
        ("operator", "+=", (1, (1,)), ()),
        ("call_method", "item", (1,), ()),
        ("operator", "/", (~1, (7.0,)), ()),
        ("call_method", "mul_", (0, ~2), ()),
    )
    compare((2, 2, steps), lambda: [torch.ones(3), torch.tensor(3.0), torch.ones(3), torch.tensor(4.0).double()], 2)
    compare((2, 2, steps), lambda: [torch.ones(3), torch.tensor(3), torch.ones(3), torch.tensor(4)], 0)


def test_item_of_several_elements_raises() -> None:
    steps = (("call_method", "mul_", (0, (2.0,)), ()), ("call_method", "item", (0,), ()))
    compare((2, 1, steps), lambda: [torch.ones(1), torch.ones(3)], 1)


NOT_SMALL = {
    "a part of a storage": lambda: torch.ones(8)[:4],
    "a transposed tensor": lambda: torch.ones(2, 2).t(),
    "an expanded tensor": lambda: torch.ones(1).expand(4),
    "numpy's memory": lambda: torch.from_numpy(torch.ones(4).numpy()),
    "a lazy copy": lambda: torch._lazy_clone(torch.ones(4)),
    "half precision": lambda: torch.ones(4, dtype=torch.float16),
    "a conjugate": lambda: torch.ones(4, dtype=torch.complex64).conj(),
    "six dimensions": lambda: torch.ones(1, 1, 1, 1, 1, 4),
}


@pytest.mark.parametrize("kind", NOT_SMALL)
def test_tensors_of_other_kinds(kind: str) -> None:
    steps = (("call_method", "mul_", (0, (3.0,)), ()), ("call_method", "add_", (0, (1.0,)), ()))
    if kind == "an expanded tensor":
        steps = (("operator", "*", (0, (3.0,)), ()), ("operator", "+", (~0, (1.0,)), ()))
    compare((2, 1, steps), lambda: [NOT_SMALL[kind]() for _ in range(2)], 0)


def test_a_lazy_copys_source_stays() -> None:
    source = torch.ones(4)
    group = _C.Group((1, 1, (("call_method", "mul_", (0, (3.0,)), ()),)))
    with torch.no_grad():
        copy = torch._lazy_clone(source)
        group(copy)
    assert source.tolist() == [1.0] * 4 and copy.tolist() == [3.0] * 4


def test_inference_tensors_and_subclasses() -> None:
    class Sub(torch.Tensor):
        pass

    steps = (("call_method", "mul_", (0, (3.0,)), ()),)
    group = _C.Group((2, 1, steps))
    with torch.inference_mode():
        xs = [torch.ones(4), torch.ones(4)]
        group(*xs)
        assert group.small == 0 and xs[1].tolist() == [3.0] * 4
    with torch.no_grad(), pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        group(*xs)
    subs = [torch.ones(4).as_subclass(Sub), torch.ones(4).as_subclass(Sub)]
    with torch.no_grad():
        group(*subs)
    assert group.small == 0 and subs[0].tolist() == [3.0] * 4


def test_tangents_are_computed() -> None:
    group = _C.Group((1, 1, (("call_method", "mul_", (0, (3.0,)), ()),)))
    with forward_ad.dual_level(), torch.no_grad():
        x = torch.ones(4)
        dual = forward_ad.make_dual(x.clone(), torch.ones(4))
        group(dual)
        assert group.small == 0 and forward_ad.unpack_dual(dual).tangent.tolist() == [3.0] * 4


def test_a_profiler_sees_the_operations() -> None:
    group = _C.Group((2, 1, (("call_method", "mul_", (0, (3.0,)), ()),)))
    with torch.no_grad():
        group(torch.ones(4), torch.ones(4))
        assert group.small == 2
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            group(torch.ones(4), torch.ones(4))
    assert group.small == 0 and any("mul_" in event.key for event in profile.key_averages())


def test_a_saved_tensor_that_a_kernel_changes_is_seen() -> None:
    w = torch.ones(4, requires_grad=True)
    x = torch.ones(4)
    y = (w * x).sum()
    group = _C.Group((1, 1, (("call_method", "mul_", (0, (3.0,)), ()),)))
    with torch.no_grad():
        group(x)
    assert group.small == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_memory_that_changes_during_a_unit() -> None:
    """While torch runs a step, other code may give a tensor other memory: here, a finalizer that a collection runs."""
    x, count = torch.ones(4), 0

    class Swap:
        def __init__(self) -> None:
            self.cycle = self

        def __del__(self) -> None:
            nonlocal count
            count += 1
            x.data = torch.full((4,), 10.0)

    steps = (
        ("operator", "*", (0, (2.0,)), ()),
        ("call_method", "maximum", (~0, 1), ()),
        ("call_method", "add_", (0, (1.0,)), ()),
    )
    before = gc.get_threshold()
    gc.disable()
    try:
        for _ in range(3):
            x, start = torch.ones(4), count
            Swap()
            group = _C.Group((1, 2, steps))
            with torch.no_grad():
                gc.set_threshold(1)
                gc.enable()
                group(x, torch.zeros(4))
                gc.disable()
            assert x.tolist() == ([11.0] * 4 if count > start else [2.0] * 4)
            gc.collect()
    finally:
        gc.set_threshold(*before)
        gc.enable()


def test_a_signal_handler_runs_after_a_unit() -> None:
    seen: list[float] = []
    x = torch.zeros(4)
    group = _C.Group((20000, 1, (("call_method", "add_", (0, (1.0,)), ()),)))

    def stop(*_: Any) -> None:
        seen.append(x[0].item())
        group(*[torch.ones(4)] * 20000)  # the same group, while it runs
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with torch.no_grad():
            for _ in range(200):
                signal.setitimer(signal.ITIMER_REAL, 1e-4)
                try:
                    group(*[x] * 20000)
                except TimeoutError:
                    break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and x.tolist() == seen * 4 and x._version == seen[0]


PROGRAM = """
import torch, godynamo
from godynamo import _C
torch.set_num_threads(1)
def train(wrap):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(13, 37), torch.nn.LayerNorm(37), torch.nn.Linear(37, 5))
    sgd = torch.optim.SGD(model.parameters(), lr=.1, momentum=.9, nesterov=True)
    optimizers = [torch.optim.AdamW(model.parameters()), sgd]
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    steps = [wrap(o.step) for o in optimizers]
    for _ in range(5):
        for step in steps:
            step()
    return list(model.parameters()), steps
want, got = train(lambda f: f)[0], train(godynamo.optimize)
assert all(map(torch.equal, want, got[0]))
cells = [c.cell_contents for s in got[1] for e in godynamo.cache_entries(s) for c in e.function.__closure__ or ()]
print(torch.backends.cpu.get_cpu_capability(), sum(c.small for c in cells if isinstance(c, _C.Group)))
"""


@pytest.mark.parametrize("capability", ["default", "avx2", "avx512"])
def test_torchs_loops_for_other_processors(capability: str) -> None:
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "GODYNAMO_CACHE_DIR": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found, small = run.stdout.split()
    assert int(small) == 12 or found == "NO", run.stdout


def test_an_optimizers_step_runs_on_memory() -> None:
    godynamo.reset()
    parameters = [torch.randn(3, 4, requires_grad=True) for _ in range(4)]
    optimizer = torch.optim.AdamW(parameters)
    step = godynamo.optimize(optimizer.step)
    for _ in range(3):
        for p in parameters:
            p.grad = torch.ones_like(p)
        step()
    cells = [c.cell_contents for e in godynamo.cache_entries(step) for c in e.function.__closure__ or ()]
    assert sum(c.small for c in cells if isinstance(c, _C.Group)) == 4
