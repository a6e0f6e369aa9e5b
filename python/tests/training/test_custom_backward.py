"""backward() through torch.autograd.Function: code of the program runs in it, which may have side effects."""

from __future__ import annotations

import itertools
import warnings

import pytest
import torch

import godynamo
from harness.capture import counted
from training.test_optimizer_steps import same
from training.test_whole_steps import Program, play

Function = torch.autograd.Function
STATE = {"scale": 2.0, "n": 0}
TOTAL = torch.zeros(3)
#: for names of operators, since each name can be registered once
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()
    STATE.update(scale=2.0, n=0)
    TOTAL.zero_()


def parameter(n: int = 3) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.arange(float(n)) + 1)


class Gelu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        return (0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t)) * g


class Scaled(Function):
    """It keeps values of several kinds, and looks at what needs gradients."""

    @staticmethod
    def forward(x, w, power, name):
        return x * w * power, w.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.power, ctx.name = inputs
        ctx.shape = x.shape
        ctx.save_for_backward(x, w, output[1])

    @staticmethod
    def backward(ctx, a, b):
        x, w, _ = ctx.saved_tensors
        gx = a * w * ctx.power if ctx.needs_input_grad[0] else None
        gw = (a * x * ctx.power if ctx.name == "plain" else a * 0) + b.expand(ctx.shape)
        return gx, gw, None, None


class Noisy(Function):
    @staticmethod
    def forward(ctx, x, rate):
        mask = (torch.rand(x.shape) > rate).float()
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0] + torch.rand(3) * 0, None


class ByState(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if STATE["scale"] > 5:
            STATE["n"] += 1
        return g * STATE["scale"]


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        TOTAL.add_(g)
        return g * 2


class PerhapsNone(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if b is None:
            STATE["n"] += 1
            return a * 2
        return a * 2 + b * 3


class Raises(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no gradient")


def layers(log):
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        optimizer.zero_grad()
        x = torch.full((2, 3), float(i))
        for _ in range(3):
            x = Gelu.apply(model(x))
        loss = x.sum()
        loss.backward()
        optimizer.step()
        return loss, [p.grad.clone() for p in model.parameters()]

    return step


def values_kept(log):
    p, q = parameter(), parameter()

    def step(i):
        p.grad = q.grad = None
        y, s = Scaled.apply(p if i % 2 else p.detach(), q, i + 1, "plain" if i < 5 else "other")
        (y.sum() + s).backward()
        return p.grad, q.grad

    return step


def random_numbers(log):
    p = parameter()

    def step(i):
        p.grad = None
        y = Noisy.apply(p * 2, 0.5)
        z = torch.rand(3)
        y.sum().backward()
        return y, z, p.grad, torch.rand(2)

    return step


def random_numbers_before_an_exception(log):
    p, table = parameter(), torch.arange(3.0)

    def step(i, index):
        y = Noisy.apply(p * 2, 0.5)
        try:
            y = y + table.index_select(0, index)
        except IndexError as e:
            log.append(str(e)[:20])
        return y, torch.rand(2)

    step.arguments = lambda i: (torch.tensor([7 if i % 3 == 0 else 1]),)
    return step


def state_changes_between_calls(log):
    p = parameter()

    def step(i):
        p.grad = None
        ByState.apply(p).sum().backward()
        log.append((p.grad, STATE["n"]))
        return STATE["n"]

    def outer(i):
        STATE["scale"] = 9.0 if i in (3, 4) else float(i % 2)
        return compiled(i)

    compiled = godynamo.optimize(step)
    return outer


def state_changes_within_the_call(log):
    p = parameter()

    def step(i):
        p.grad = None
        before = STATE["n"]
        y = ByState.apply(p).sum()
        STATE["scale"] = 9.0
        y.backward()
        STATE["scale"] = 1.0
        log.append((p.grad, STATE["n"] - before))

    return step


def changes_a_tensor(log):
    p = parameter()

    def step(i):
        p.grad = None
        before = TOTAL.clone()
        InPlace.apply(p).sum().backward()
        return p.grad, TOTAL - before

    return step


def some_gradients_are_none(log):
    p = parameter()

    def step(i):
        p.grad = None
        before = STATE["n"]
        a, b = PerhapsNone.apply(p)
        (a.sum() + (b.sum() if i % 2 else 0)).backward()
        return p.grad, STATE["n"] - before

    return step


def raises(log):
    p = parameter()

    def step(i):
        try:
            Raises.apply(p).sum().backward()
        except ValueError as e:
            return str(e)
        return p.grad

    return step


def second_order(log):
    p = parameter()

    def step(i):
        (g,) = torch.autograd.grad(Gelu.apply(p * i).sum(), p, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), p)
        return g, h, g.requires_grad

    return step


def made_in_the_frame(log):
    p = parameter()

    def step(i):
        class Own(Function):
            @staticmethod
            def forward(ctx, x):
                return x * i

            @staticmethod
            def backward(ctx, g):
                log.append(("own", i))
                return g * i

        p.grad = None
        Own.apply(p).sum().backward()
        return p.grad

    return step


PROGRAMS: list[Program] = [
    layers,
    values_kept,
    random_numbers,
    random_numbers_before_an_exception,
    state_changes_between_calls,
    state_changes_within_the_call,
    changes_a_tensor,
    some_gradients_are_none,
    raises,
    second_order,
    made_in_the_frame,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_run_as_in_eager_mode(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = play(program, godynamo.optimize)
        STATE.update(scale=2.0, n=0)
        TOTAL.zero_()
        assert same(seen, play(program, lambda f: f))


ONE_GRAPH: list[Program] = [layers, values_kept, random_numbers, random_numbers_before_an_exception, second_order]


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda p: p.__name__)
def test_one_graph(program):
    torch.manual_seed(0)
    step = program([])
    more = getattr(step, "arguments", lambda i: ())
    step(1, *more(1))
    explained = godynamo.explain(step)(2, *more(2))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons
    compiled = godynamo.optimize(step)
    before = counted("translations")
    for i in (1, 2, 5):
        compiled(i, *more(i))
    assert counted("translations") - before == len(godynamo.cache_entries(compiled))


def test_side_effects_break_the_graph_at_backward():
    def f(x):
        y = InPlace.apply(x)
        y.sum().backward()
        return x.grad

    explained = godynamo.explain(f)(parameter())
    assert [b.code for b in explained.break_reasons] == ["GD0104"]


# ---- custom operators ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [3, 120])
def test_a_function_with_side_effects_is_called_often(calls):
    """The number of attempts does not depend on the number of calls. It was limited to 100 attempts."""
    runs = []

    class Logged(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            runs.append(g.sum())
            return g * 2

    w = parameter()

    def step(x):
        y = w * x
        for _ in range(calls):
            y = Logged.apply(y) / 2
        y.sum().backward()
        return y.detach()

    explained = godynamo.explain(step)(torch.ones(3))
    assert (explained.graph_count, explained.graph_break_count) == (2, 1)
    assert "side effects" in explained.break_reasons[0].reason
    assert len(runs) == calls
    assert w.grad.equal(torch.ones(3))


def operator(name: str):
    """Return a custom operator that squares, with a backward pass that counts its calls."""
    calls = []

    @torch.library.custom_op(f"godynamo_training::{name}", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() ** 2)

    @square.register_fake
    def _(x):
        return torch.empty_like(x)

    def backward(ctx, gradient):
        calls.append(len(calls))
        (x,) = ctx.saved_tensors
        return gradient * 2 * x

    square.register_autograd(backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]))
    return square, calls


def steps(prepare, between, wrap, x, calls):
    """Return what six training steps leave: losses, parameters, the number of calls of the backward pass."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = between(model(prepare(x))).mean()
        loss.backward()
        optimizer.step()
        return loss

    fn, before = wrap(step), len(calls)
    losses = [fn(x).item() for _ in range(6)]
    return (losses, [p.tolist() for p in model.parameters()], len(calls) - before), fn


def test_a_custom_operator_on_data_is_part_of_the_step():
    square, calls = operator("data")
    x = torch.randn(6, 4)
    for prepare in (square, lambda x: square(x * 2) + square(square(x))):
        want, _ = steps(prepare, lambda y: y, lambda f: f, x, calls)
        got, fn = steps(prepare, lambda y: y, godynamo.optimize, x, calls)
        assert got == want
        explained = godynamo.explain(fn)(x)
        assert (explained.graph_count, explained.graph_break_count) == (1, 0)


def test_a_custom_operator_whose_backward_pass_runs():
    square, calls = operator("hidden")
    x = torch.randn(6, 4)
    want, _ = steps(lambda x: x, square, lambda f: f, x, calls)
    got, _ = steps(lambda x: x, square, godynamo.optimize, x, calls)
    assert got == want
    assert got[2] == 6


def test_a_custom_operator_on_data_that_comes_to_require_gradients():
    square, calls = operator("later")

    def f(x, w):
        y = (square(x) * w).sum()
        y.backward()
        return y

    g = godynamo.optimize(f)
    for flag in (False, True, False, True):
        results = []
        for fn in (f, g):
            x = torch.ones(3, requires_grad=flag)
            w = torch.ones(3, requires_grad=True)
            before = len(calls)
            results.append((fn(x, w).item(), w.grad.tolist(), x.grad is not None, len(calls) - before))
        assert results[0] == results[1]


def test_a_custom_operator_on_memory_that_gets_a_history():
    square, _ = operator("memory")

    def f(x, w):
        y = torch.zeros(3)
        y[:2].copy_(w[:2])
        z = (square(y) * w).sum()
        z.backward()
        return z

    g = godynamo.optimize(f)
    for fn in (f, g, g):
        w = torch.full((3,), 2.0, requires_grad=True)
        assert fn(torch.ones(3), w).item() == 16.0
        assert w.grad.tolist() == [12.0, 12.0, 0.0]


def plain_operator(name: str, backward=None, setup_context=None):
    """Return a custom operator that squares, with a backward pass without side effects."""

    @torch.library.custom_op(f"godynamo_training::{name}", mutates_args=())
    def square(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return x * x * scale

    @square.register_fake
    def _(x, scale=2.0):
        return torch.empty_like(x)

    def saves(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    def differentiates(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x * ctx.scale, None

    square.register_autograd(backward or differentiates, setup_context=setup_context or saves)
    return square


@pytest.mark.parametrize(
    "call",
    [
        lambda name, op, y: op(y),
        lambda name, op, y: op(y, 3.0),
        lambda name, op, y: op(scale=3.0, x=y),
        lambda name, op, y: getattr(torch.ops.godynamo_training, name)(y),
        lambda name, op, y: getattr(torch.ops.godynamo_training, name).default(y, scale=0.5),
    ],
)
def test_a_custom_operator_without_side_effects_is_part_of_the_step(call):
    name = f"pure{next(NUMBERS)}"
    square = plain_operator(name)
    x = torch.randn(6, 4)
    want, _ = steps(lambda x: x, lambda y: call(name, square, y), lambda f: f, x, [])
    got, fn = steps(lambda x: x, lambda y: call(name, square, y), godynamo.optimize, x, [])
    assert got == want
    explained = godynamo.explain(fn)(x)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


def test_a_custom_operator_that_calls_another_one():
    inner = plain_operator("inner")

    def backward(ctx, gradient):
        return gradient * inner(ctx.saved_tensors[0]), None

    outer = plain_operator(
        "outer",
        backward,
        lambda ctx, inputs, output: ctx.save_for_backward(inputs[0] if ctx.needs_input_grad[0] else output),
    )
    x = torch.randn(6, 4)
    want, _ = steps(lambda x: x, outer, lambda f: f, x, [])
    got, fn = steps(lambda x: x, outer, godynamo.optimize, x, [])
    assert got == want
    explained = godynamo.explain(fn)(x)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


class Settings:
    """What a program changes between its forward and its backward pass, as transformers does."""

    quiet = None

    def __init__(self):
        self.handler = None


SETTINGS = Settings()
SEEN: list[int] = []


class Counts(Function):
    """Its backward pass has a side effect once the program has changed its state."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        if SETTINGS.quiet is False:
            SEEN.append(len(SEEN))
        return g * 2 * ctx.saved_tensors[0]


def counting_operator(inner: bool):
    """Return an operator with such a backward pass; the side effect may be one of another operator's kernel."""

    @torch.library.custom_op(f"godynamo_training::notes{next(NUMBERS)}", mutates_args=())
    def note(g: torch.Tensor) -> torch.Tensor:
        if SETTINGS.quiet is False:
            SEEN.append(len(SEEN))
        return g.clone()

    note.register_fake(lambda g: torch.empty_like(g))

    def backward(ctx, gradient):
        if inner:
            return note(gradient) * ctx.scale, None
        if SETTINGS.quiet is False:
            SEEN.append(len(SEEN))
        return gradient * ctx.scale, None

    def saves(ctx, inputs, output):
        ctx.scale = inputs[1]

    return plain_operator(f"counts{next(NUMBERS)}", backward, saves)


def stepped(op, change, wrap):
    """Return what three steps leave if the program changes its state before ``backward()``."""
    SEEN.clear()
    SETTINGS.quiet = SETTINGS.handler = None
    w = parameter()
    optimizer = torch.optim.SGD([w], lr=0.125)

    def step(x):
        optimizer.zero_grad()
        loss = op(w * x).sum()
        change(len(SEEN))
        loss.backward()
        SEEN.append(-1)
        optimizer.step()
        return loss, len(SEEN)

    fn = wrap(step)
    results = [fn(torch.ones(3)) for _ in range(3)]
    return [(loss.item(), n) for loss, n in results], w.tolist(), list(SEEN), fn


def set_text(_):
    SETTINGS.handler = "none"


def set_quiet(_):
    SETTINGS.quiet = False


def set_code(_):
    SETTINGS.handler = SEEN.append


@pytest.mark.parametrize("op", [Gelu.apply, Scaled.apply, "operator"])
@pytest.mark.parametrize(("change", "one"), [(set_text, True), (set_quiet, True), (set_code, False)])
def test_state_that_changes_before_a_backward_pass_that_reads_none(op, change, one):
    if op == "operator":
        op = plain_operator(f"steady{next(NUMBERS)}")
    if op == Scaled.apply:
        op = lambda y: Scaled.apply(y, y, 2, "plain")[0]  # noqa: E731
    want = stepped(op, change, lambda f: f)
    got = stepped(op, change, godynamo.optimize)
    assert got[:3] == want[:3]
    explained = godynamo.explain(got[3])(torch.ones(3))
    assert (explained.graph_count == 1) == one


@pytest.mark.parametrize("op", [Counts.apply, "operator", "inner"])
def test_a_backward_pass_with_side_effects_in_the_state_that_it_finds(op):
    if isinstance(op, str):
        op = counting_operator(op == "inner")
    want = stepped(op, set_quiet, lambda f: f)
    got = stepped(op, set_quiet, godynamo.optimize)
    assert got[:3] == want[:3]
    assert len(got[2]) > 3


def test_a_backward_pass_registered_later():
    square = plain_operator("again")
    seen = []

    def f(w):
        before = len(seen)
        y = square(w).sum()
        y.backward()
        return y, len(seen) - before

    def counted(ctx, gradient):
        seen.append(1)
        return gradient, None

    g = godynamo.optimize(f)
    for backward in (None, counted):
        if backward:
            square.register_autograd(backward)
        for fn in (f, g, g):
            w = torch.full((3,), 2.0, requires_grad=True)
            assert fn(w)[1] == (backward is not None)
            assert w.grad.tolist() == ([1.0] * 3 if backward else [8.0] * 3)


def test_a_custom_operator_whose_context_has_side_effects():
    noted = []

    def saves(ctx, inputs, output):
        noted.append(inputs[1])
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    square = plain_operator("noting", None, saves)

    def f(w):
        y = square(w).sum()
        y.backward()
        return len(noted)

    g = godynamo.optimize(f)
    for i, fn in enumerate((f, g, g, g)):
        w = torch.full((3,), 2.0, requires_grad=True)
        assert fn(w) == i + 1
        assert w.grad.tolist() == [8.0] * 3


def test_a_custom_operator_without_a_backward_pass():
    @torch.library.custom_op("godynamo_training::none", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    @square.register_fake
    def _(x):
        return torch.empty_like(x)

    def f(w):
        y = square(w).sum()
        y.backward()
        return y

    g = godynamo.optimize(f)
    for fn in (f, g, g):
        with pytest.raises(RuntimeError, match="no autograd formula"):
            fn(torch.ones(3, requires_grad=True))
