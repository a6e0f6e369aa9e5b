"""Operations on the fresh result of another run in its memory: with torch's bits, and only where nothing can tell."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import godynamo
from godynamo import _C

Fn = Callable[..., Any]


pytestmark = pytest.mark.usefixtures("kernels_served")


def epilogues(optimized: Any) -> list[_C.Epilogue]:
    """Return the epilogues in the code of a function's translations."""
    found = []
    for entry in godynamo.cache_entries(optimized):
        for value in (*entry.code.co_consts, *(c.cell_contents for c in entry.function.__closure__ or ())):
            if isinstance(value, _C.Epilogue):
                found.append(value)
    return found


def facts(v: Any) -> Any:
    """Return what a program can read of a value."""
    if not isinstance(v, torch.Tensor):
        return repr(v)
    with torch.no_grad():
        data = v.detach().contiguous().clone().reshape(-1)
        bits = data.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[v.element_size()]).tolist()
    return (
        [None if math.isnan(x) else b for x, b in zip(data.tolist(), bits, strict=True)],
        v.dtype,
        v.shape,
        v.stride(),
        v.storage_offset(),
        v.untyped_storage().nbytes(),
        v.requires_grad,
        v.is_leaf,
        v.is_inference(),
        v._base is None,
        None if v.is_inference() else v._version,
        type(v),
    )


def compare(f: Fn, *args: Any, small: int | None = None) -> Any:
    """Call f and the optimized f three times; return the latter. ``small``: whether the last call used the kernels."""
    optimized = godynamo.optimize(f)
    for _ in range(3):
        before = [facts(a) for a in args]
        want, got = f(*args), optimized(*args)
        assert torch.utils._pytree.tree_map(facts, got) == torch.utils._pytree.tree_map(facts, want)
        assert [facts(a) for a in args] == before
    if small is not None:
        found = epilogues(optimized)
        assert found
        assert {e.small for e in found} == {small}
    return optimized


def test_equal_operations_share_an_epilogue() -> None:
    def f(a: Any, b: Any) -> Any:
        for _ in range(20):
            a = (a + b).relu() * 2 - b
        return a

    assert len(epilogues(compare(f, torch.randn(4), torch.randn(4), small=True))) == 4  # of +, relu, * and -


def scaled(a: Any, b: Any) -> Any:
    return (a + b).relu() * 2


def functions(a: Any, b: Any) -> Any:
    return torch.abs(torch.relu(torch.sub(a, b)))


def activated(a: Any, b: Any) -> Any:
    return F.relu(a.reshape(-1) * b.reshape(-1))


def several_reads(a: Any, b: Any) -> Any:
    return (a - b).abs().sqrt().add(1e-3).reciprocal().neg() / 3


def with_itself(a: Any, b: Any) -> Any:
    x = a * b
    y = x.abs()
    return (y + y).mul(y.neg()) - 0.5


def number_first(a: Any, b: Any) -> Any:
    return 1.5 + 2 * (a / b)


def with_alpha(a: Any, b: Any) -> Any:
    return (a + b).add(b, alpha=0.3).addcmul(a, b, value=0.1).lerp(a, 0.75)


def with_others(a: Any, b: Any) -> Any:
    x = a * b
    y = a - x.relu()
    return b / (y * y + a)


FUNCTIONS = (scaled, functions, activated, several_reads, with_itself, number_first, with_alpha, with_others)
SPECIAL = torch.tensor([0.0, -0.0, math.inf, -math.inf, 1e-42, -1e-42, 3e38, -3e38, 1.0, -1.0])


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 5, 1), (7, 9), (127,), (1000,), (16384,)])
def test_small_tensors(f: Fn, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    compare(f, torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype), small=1)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_special_numbers(f: Fn) -> None:
    a, b = (t.contiguous() for t in torch.meshgrid(SPECIAL, SPECIAL.roll(3), indexing="ij"))
    compare(f, a, b)
    compare(f, a.double(), b.double())


@pytest.mark.parametrize("f", FUNCTIONS)
def test_nans(f: Fn) -> None:
    a = torch.tensor([math.nan, 1.0, -1.0, 0.0] * 9)
    compare(f, a, a.flip(0), small=0)


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: (torch.arange(6), torch.ones(6, dtype=torch.int64)),
        lambda: (torch.ones(3, dtype=torch.float16), torch.ones(3, dtype=torch.float16)),
        lambda: (torch.ones(3, dtype=torch.bfloat16), torch.ones(3)),
        lambda: (torch.randn(16385), torch.randn(16385)),
        lambda: (torch.randn(3, 1), torch.randn(4)),
        lambda: (torch.randn(0, 4), torch.randn(0, 4)),
        lambda: (torch.randn(3, 4).t(), torch.randn(3, 4).t()),
        lambda: (torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), torch.randn(2, 3, 4, 5)),
        lambda: (torch.randn(4, 1).t().expand(1, 4), torch.randn(1, 4)),
        lambda: (torch.empty_strided((2, 1, 3), (3, 7, 1)).fill_(2.0), torch.ones(2, 1, 3)),
        lambda: (torch.randn(3), 2.5),
        lambda: (torch.randn(3), torch.tensor(2.5)),
        lambda: (torch.nn.Parameter(torch.randn(3)), torch.randn(3)),
    ],
)
def test_other_tensors(f: Fn, make: Callable[[], tuple[Any, Any]]) -> None:
    a, b = make()
    if f is activated and not isinstance(b, torch.Tensor):
        b = torch.tensor(b)
    try:
        f(a, b)
    except (RuntimeError, TypeError) as error:
        for _ in range(2):
            with pytest.raises(type(error)) as raised:
                godynamo.optimize(f)(a, b)
            assert str(raised.value) == str(error)
        return
    compare(f, a, b)


def test_gradients() -> None:
    optimized = godynamo.optimize(scaled)
    a, b = torch.randn(5), torch.randn(5)
    p = torch.randn(5, requires_grad=True)
    for args in ((a, b), (p, b), (a, p), (p, p), (a, b)):
        for _ in range(2):
            want, got = scaled(*args), optimized(*args)
            assert facts(got) == facts(want)
            if want.requires_grad:
                assert type(got.grad_fn) is type(want.grad_fn)
                expected = torch.autograd.grad(want.sum(), p)
                assert torch.equal(*expected, *torch.autograd.grad(got.sum(), p))
    with torch.no_grad():
        compare(scaled, p, b, small=1)
    with torch.inference_mode():
        compare(scaled, p, b)


def test_grad_mode_switched_inside() -> None:
    p = torch.randn(5, requires_grad=True)

    def f(x: Any) -> Any:
        with torch.no_grad():
            y = (x + 1).relu() * 2
        return y, (x + 1).relu() * 2

    compare(f, p)


def test_inference_mode_switched_inside() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        z = x * 2
        with torch.inference_mode():
            u = y.relu() * 2
            with torch.inference_mode(False):
                v = z.neg() - 1
        return u, v

    compare(f, torch.arange(-3.0, 4))


def test_results_that_torch_has_changed() -> None:
    """A vector times a matrix is squeezed in place, so its version is 1."""

    def f(x: Any, m: Any) -> Any:
        return (x @ m).relu() * 2, F.linear(x, m).neg()

    compare(f, torch.arange(-3.0, 3), torch.ones(6, 6))


def test_the_tensor_is_read_elsewhere() -> None:
    kept: list[Any] = []

    def returned(x: Any) -> Any:
        y = x + 1
        return y, y.relu() * 2

    def viewed(x: Any) -> Any:
        y = x + 1
        v = y[0]
        return y.relu() * 2, v

    def stored(x: Any) -> Any:
        y = x + 1
        kept.append(y)
        return y.relu() * 2

    def after_a_break(x: Any) -> Any:
        y = x + 1
        z = y.relu() * 2
        godynamo.graph_break()
        return z, y

    def referenced(x: Any) -> Any:
        y = x + 1
        r = weakref.ref(y)
        z = y.relu() * 2
        return z, r() is y

    def twice(x: Any) -> Any:
        y = x + 1
        return y.relu() * 2, y.relu() * 3

    for f in (returned, viewed, stored, after_a_break, referenced, twice):
        compare(f, torch.arange(-3.0, 4))
    assert {tuple(t.tolist()) for t in kept} == {tuple((torch.arange(-3.0, 4) + 1).tolist())}


def test_results_that_may_be_the_argument() -> None:
    """An operation that returns its argument, or a view of it, makes nothing new."""

    def f(x: Any) -> Any:
        a = x.contiguous().relu() * 2
        b = x.to(torch.float32).relu() * 2
        c = x.reshape(2, 3).relu() * 2
        d = F.dropout(x, training=False).relu() * 2
        e = x[1:].relu() * 2
        return a, b, c, d, e, torch.relu(x)

    compare(f, torch.arange(-3.0, 3))


def test_modules() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    image = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()).eval()
    with torch.no_grad():
        compare(model, torch.randn(3, 4), small=1)
        compare(model, torch.randn(2, 3, 4))
        compare(image, torch.randn(1, 2, 6, 6), small=1)
        compare(image, torch.randn(1, 2, 6, 6).contiguous(memory_format=torch.channels_last))
    compare(model, torch.randn(3, 4))


def test_sizes_that_vary() -> None:
    optimized = godynamo.optimize(scaled)
    for n in (3, 5, 20000, 7, 0, 1, 5):
        x = torch.arange(-2.0, n - 2)
        assert facts(optimized(x, x)) == facts(scaled(x, x))


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Functions, Operators])
def test_modes_see_the_operations(mode: Any) -> None:
    x = torch.arange(-3.0, 4)
    optimized = compare(scaled, x, x, small=1)
    seen = []
    for f in (scaled, optimized):
        with mode() as active:
            f(x, x)
        seen.append(active.names)
    assert len(seen[0]) == 3
    assert seen[0] == seen[1]


def test_profilers_see_the_operations() -> None:
    x = torch.arange(-3.0, 4)
    optimized = compare(scaled, x, x, small=1)
    names = []
    for f in (scaled, optimized):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            f(x, x)
        names.append(sorted(e.key for e in profile.key_averages() if e.key.startswith("aten::")))
    assert names[0] == names[1]
    assert "aten::relu" in names[0]


def test_transforms() -> None:
    x = torch.arange(-3.0, 4)
    optimized = compare(scaled, x, x, small=1)
    for transform in (
        lambda f: torch.vmap(f)(x, x),
        lambda f: torch.func.grad(lambda y: f(y, y).sum())(x),
        lambda f: torch.func.jvp(lambda y: f(y, y), (x,), (torch.ones(7),)),
        lambda f: torch.func.functionalize(f)(x, x),
    ):
        assert torch.utils._pytree.tree_map(facts, transform(optimized)) == torch.utils._pytree.tree_map(
            facts, transform(scaled)
        )
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(7))
        want, got = (forward_ad.unpack_dual(f(dual, x)).tangent for f in (scaled, optimized))
        assert torch.equal(got, want)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(optimized, (x, x), check_trace=False)
    assert torch.equal(traced(x + 1, x), scaled(x + 1, x))


@pytest.mark.parametrize("operator", ["relu", "mul.Tensor"])
def test_kernels_of_the_program(operator: str) -> None:
    """A kernel that the program registers for torch's own operator is called, and torch's again once it is gone."""
    program = f"""
import warnings
warnings.simplefilter("ignore")
import torch, godynamo
from godynamo import _C
_C._epilogues_wait(0)
f = lambda a, b: (a + b).relu() * 2
g = godynamo.optimize(f)
x = torch.arange(-3.0, 4)
want = f(x, x)
for _ in range(3):
    assert torch.equal(g(x, x), want)
for _ in range(3):
    library = torch.library.Library("aten", "IMPL")
    library.impl({operator!r}, lambda *args: torch.full((7,), 5.0), "CPU")
    changed = f(x, x)
    assert not torch.equal(changed, want)
    assert torch.equal(g(x, x), changed), g(x, x)
    library._destroy()
    assert torch.equal(f(x, x), want)
    assert torch.equal(g(x, x), want)
for _ in range(3):  # torch's set of kernels has as many as before, at places that others have left
    other = torch.library.Library("aten", "IMPL")
    other.impl("sin", lambda x: x, "CPU")
    assert torch.equal(g(x, x), want)
    other._destroy()
    library = torch.library.Library("aten", "IMPL")
    library.impl({operator!r}, lambda *args: torch.full((7,), 5.0), "CPU")
    assert torch.equal(g(x, x), f(x, x)), g(x, x)
    library._destroy()
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=env)
    assert run.returncode == 0, run.stderr


def test_methods_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.arange(-3.0, 4)
    optimized = compare(scaled, x, x, small=1)
    for name in ("relu", "__mul__", "__rmul__"):
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, name, lambda self, *_: self - 100)
            assert torch.equal(optimized(x, x), scaled(x, x))
            patch.setattr(torch.Tensor, name, torch.Tensor.neg if name == "relu" else torch.Tensor.__add__)
            assert torch.equal(optimized(x, x), scaled(x, x))
        assert torch.equal(optimized(x, x), scaled(x, x))


def test_other_calls_of_an_epilogue() -> None:
    relu = ("call_method", "relu", (0,), ())
    epilogue = _C.Epilogue((1, (relu,)))
    assert repr(epilogue) == "<epilogue: relu>"
    assert epilogue(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    with pytest.raises(TypeError, match="this epilogue takes 1 values"):
        epilogue()
    with pytest.raises(AttributeError):
        epilogue(object())
    for plan in ((1, ()), (1, (("call_method", "relu_", (0,), ()),)), (1, (("call_method", "relu", (1,), ()),)),
                 (0, (relu,)), (1, (relu, relu))):  # fmt: skip
        with pytest.raises(ValueError, match="malformed plan"):
            _C.Epilogue(plan)


def test_a_tensor_whose_memory_is_shared() -> None:
    """What the translator never passes: the core still refuses memory that is not the tensor's own."""
    epilogue = _C.Epilogue((1, (("call_method", "relu", (0,), ()),)))
    base = torch.arange(-3.0, 3)
    for view in (base[1:], base.view(2, 3), torch.from_numpy(base.numpy())):
        epilogue(view)
        assert base.tolist() == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]


def test_the_other_operand() -> None:
    """Only the fresh tensor's memory is written, and what autograd records is torch's."""

    def f(a: Any, b: Any, c: Any) -> Any:
        return (a + b) * c, c - (a * b)

    x = torch.arange(1.0, 7)
    others = (x, x.clone(), x[2:3], x.double(), x.flip(0), torch.ones(2, 6), torch.nn.Parameter(x), 2.5, 3)
    for other in others:
        compare(f, x, x + 1, other)
    p = torch.nn.Parameter(torch.ones(6))
    optimized = godynamo.optimize(f)
    for c in (x, p, x):
        for want, got in zip(f(x, x, c), optimized(x, x, c), strict=True):
            assert facts(want) == facts(got)
            assert type(want.grad_fn) is type(got.grad_fn)
            if c is p:
                assert torch.equal(*torch.autograd.grad(want.sum(), p), *torch.autograd.grad(got.sum(), p))
    with pytest.raises(RuntimeError, match="must match") as raised:
        optimized(x, x, torch.ones(5))
    assert raised.traceback[-1].name == "f"
    with torch.no_grad():
        compare(f, x, x + 1, p, small=1)


def test_functions_of_numbers() -> None:
    """torch.add and its kin take a number of run time in place of the first tensor."""

    def f(x: Any, n: Any) -> Any:
        m = x.sum().item()
        return torch.add(n, x * 2), torch.mul(m, x + 1), torch.sub(x.shape[0], x - 1), torch.div(x + 1, m + n)

    optimized = godynamo.optimize(f)
    for n in (2, 3, 5, 0.5, 0.25):
        x = torch.arange(1.0, n + 4)
        assert [facts(v) for v in optimized(x, n)] == [facts(v) for v in f(x, n)]


def test_functions_are_no_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.relu does not call a method relu, which the program may have replaced."""
    original = torch.relu

    def f(a: Any, b: Any) -> Any:
        return torch.abs(original(torch.sub(a, b)))

    x = torch.arange(-3.0, 4)
    optimized = [(plain, compare(plain, x, x + 1, small=1)) for plain in (functions, f)]
    for where, name in ((torch.Tensor, "relu"), (torch, "relu"), (torch, "abs")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, lambda v: v - 100)
            for plain, fast in optimized:
                assert torch.equal(fast(x, x + 1), plain(x, x + 1))


def test_waits_before_it_looks_for_kernels() -> None:
    before = _C._epilogues_wait(3)
    try:
        f = godynamo.optimize(scaled)
        x = torch.arange(-3.0, 4)
        used = []
        for _ in range(6):
            f(x, x)
            used.append([e.small for e in epilogues(f)])
        assert used == [[0, 0]] * 3 + [[1, 1]] * 3
    finally:
        _C._epilogues_wait(before)
    for bad in (-1, 1 << 20):
        with pytest.raises(ValueError, match="not from 0"):
            _C._epilogues_wait(bad)


def test_random_sequences() -> None:
    torch.manual_seed(1)
    unary = ("relu", "abs", "neg", "reciprocal")
    for k, (one, two, op) in enumerate(itertools.product(unary, unary, "+-*/")):
        number = (0.1, 3, -2.5, 1)[k % 4]
        scope: dict[str, Any] = {"torch": torch}
        exec(f"def f(a, b):\n    return (a @ (b + 1).{one}() {op} {number}).{two}() - 0.5\n", scope)
        compare(scope["f"], torch.randn(3, 4), torch.randn(4, 5), small=1)
