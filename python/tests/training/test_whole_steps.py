"""Training steps in one graph: zero_grad, forward, loss, backward and the optimizer's step."""

from __future__ import annotations

import collections.abc
import functools
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import godynamo
from harness.capture import counted
from training.test_optimizer_steps import ONE_GRAPH, OTHERS, same

pytestmark = pytest.mark.usefixtures("fresh")

STEPS = 8


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(8, 3))


class Training:
    def __init__(self, make: Callable[[Any], torch.optim.Optimizer]) -> None:
        self.model = network()
        self.optimizer = make(self.model.parameters())
        self.x, self.y = torch.randn(5, 4), torch.randint(0, 3, (5,))

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def seen(self) -> Any:
        grads = [p.grad for p in self.model.parameters()]
        return [self.model.state_dict(), self.optimizer.state_dict(), grads]


@pytest.mark.parametrize("name", [*ONE_GRAPH, *OTHERS])
def test_bits_are_eagers(name):
    make = {**ONE_GRAPH, **OTHERS}[name]
    a = Training(make)
    losses = [a.step() for _ in range(STEPS)]
    b = Training(make)
    step = godynamo.optimize(b.step)
    assert same([step() for _ in range(STEPS)], losses)
    assert same(a.seen(), b.seen())


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_one_graph_from_the_third_step_on(name):
    run = Training(ONE_GRAPH[name])
    step = godynamo.optimize(run.step)
    for _ in range(3):
        step()
    before, hits = counted("translations"), [entry.hits for entry in godynamo.cache_entries(step)]
    for _ in range(3):
        step()
    assert counted("translations") == before
    more = [entry.hits - n for entry, n in zip(godynamo.cache_entries(step), hits, strict=True)]
    assert sorted(more)[-2:] == [0, 3] or more == [3]  # one entry serves the whole call
    explained = godynamo.explain(run.step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


# ---- programs that do something else than the graph foresees: what is logged must be eager's, and its order ----------

Program = Callable[[list[Any]], Callable[..., Any]]


def accumulation(log):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        for part in range(2):
            model(torch.full((2, 4), float(i + part))).sum().backward()
        log.append([p.grad.clone() for p in model.parameters()])
        optimizer.step()
        optimizer.zero_grad()

    return step


def some_parameters_are_not_reached(log):
    used, idle = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))

    def step(i):
        used.grad = idle.grad = None
        y = used * 2 + idle.detach()
        z = used.expand_as(idle).sum() + torch.zeros_like(idle).sum()
        (y.sum() + z * i).backward()
        log.append((used.grad, idle.grad))

    return step


def a_gradient_that_the_graph_expects_and_does_not_come(log):
    p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))

    def step(i):
        q.grad = None
        torch.cat([p, q[:0]]).index_select(0, torch.arange(3)).sum().backward()
        y = torch.nextafter(p, q.detach() if i else q.detach())
        log.append((p.grad.clone(), None if q.grad is None else q.grad.clone(), y.requires_grad))

    return step


def hook_on_a_leaf(log):
    p, state = torch.nn.Parameter(torch.ones(3)), {"n": 0}

    def hook(g):
        state["n"] += 1
        log.append(("hook", g))
        return g * 2

    def step(i):
        if i == 2:
            state["handle"] = p.register_hook(hook)
        if i == 4:
            state["handle"].remove()
        p.grad = None
        (p * p).sum().backward()
        log.append((p.grad, state["n"]))

    return step


def hook_without_python_code(log):
    p, seen = torch.nn.Parameter(torch.ones(3)), []
    p.register_hook(seen.append)

    def step(i):
        p.grad = None
        (p * i).sum().backward()
        log.append((len(seen), p.grad))

    return step


def hook_after_accumulation(log):
    p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))

    def hook(t):
        log.append(t.grad)
        t.grad = None

    p.register_post_accumulate_grad_hook(hook)

    def step(i):
        (p * q * i).sum().backward()
        log.append((p.grad, q.grad))
        return p.grad is None

    return step


def hook_on_the_accumulating_node(log):
    p, state = torch.nn.Parameter(torch.ones(3)), {"n": 0}
    node = p.view_as(p).grad_fn.next_functions[0][0]

    def hook(*_):
        state["n"] += 1

    def step(i):
        if i == 2:
            node.register_hook(hook)
        (p * p).sum().backward()
        log.append((state["n"], p.grad.clone()))

    return step


def handlers(log):
    p = torch.nn.Parameter(torch.ones(3))

    def step(i):
        y = (p * i).sum()
        try:
            y.backward()
            log.append(p.grad.clone())
            if i % 2:
                y.backward()
        except RuntimeError as e:
            log.append(str(e)[:40])
        finally:
            log.append("end")
        return p.grad

    return step


def in_functions(log):
    p = torch.nn.Parameter(torch.ones(3))
    hooks = []

    def inner(y):
        y.backward(retain_graph=True)
        log.append(("inner", p.grad.clone()))
        return "done"

    def middle(y, i):
        try:
            return inner(y), i
        finally:
            log.append("middle")

    def step(i):
        if i == 3:
            hooks.append(p.register_hook(lambda g: g + 1))
        y = (p * p * i).sum()
        said = middle(y, i)
        y.backward(torch.tensor(2.0))
        log.append((said, p.grad.clone()))

    return step


def hooks_in_blocks_and_loops(log):
    p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))
    hooks = []

    class Block:
        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, *error):
            log.append(("exit", error[0]))
            return error[0] is ZeroDivisionError

    def inner(y, n):
        with torch.no_grad():
            z = p * 2
            with torch.enable_grad():
                for k, scale in enumerate([1.0, 2.0]):
                    with Block() as block:
                        (y * scale).sum().backward(retain_graph=True)
                        log.append((k, p.grad.clone(), torch.is_grad_enabled(), type(block).__name__))
                        if n == 5 and k:
                            1 / 0
            log.append((z, torch.is_grad_enabled()))
        return [n, z]

    def step(i):
        if i == 2:
            hooks.append(p.register_hook(lambda g: log.append("hook") or g + 1))
        if i == 6:
            hooks.append(q.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.clone())))
        p.grad = q.grad = None
        found = []
        for j in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found += inner(p * q * (i + j), i)
                log.append(torch.is_autocast_enabled("cpu"))
        log.append((p.grad, q.grad, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
        return found

    return step


def hooks_under_keywords(log):
    p = torch.nn.Parameter(torch.ones(3))

    def run(loss, *, then, **options):
        loss.backward(**options)
        return then(p.grad)

    def step(i):
        if i == 3:
            p.register_hook(lambda g: g * 3)
        p.grad = None
        log.append(run((p * i).sum(), then=lambda g: g.clone(), gradient=torch.tensor(2.0), retain_graph=None))
        return [run((p * k).sum(), then=torch.Tensor.clone) for k in range(2)]

    return step


def called_by_builtins(log):
    p = torch.nn.Parameter(torch.ones(3))

    def one(loss):
        loss.backward()

    def step(i):
        if i == 3:
            p.register_hook(lambda g: g + 1)
        out = []
        out.extend(map(torch.Tensor.backward, [(p * i).sum(), (p * 2).sum()]))
        out.extend(map(one, [(p * i).sum(), (p * 3).sum()]))
        log.append((out, p.grad.clone()))

    return step


def zero_grad_before_an_exception(log):
    model, table = network(), torch.arange(3.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    weight = model[0].weight

    def step(i, index):
        if i % 2:  # the code may run again, and must see the gradient again
            log.append((weight.grad is None, None if weight.grad is None else weight.grad.sum()))
        (model if i % 3 else optimizer).zero_grad()
        try:
            found = table.index_select(0, index)
        except IndexError:
            found = None
        model(torch.full((2, 4), float(i))).sum().backward()
        optimizer.step()
        log.append((found, weight.grad.clone()))

    step.arguments = lambda i: (torch.tensor([7 if i in (3, 4, 6) else 1]),)
    return step


def nested_gradients(log):
    p = torch.nn.Parameter(torch.ones(3))

    def step(i):
        p.grad = None
        (p**3).sum().backward(create_graph=True)
        log.append((p.grad, p.grad.requires_grad))
        p.grad = None

    return step


def sparse_gradients(log):
    table = torch.nn.Embedding(5, 2, sparse=True)
    with torch.no_grad():
        table.weight.fill_(1.0)

    def step(i):
        table.weight.grad = None
        table(torch.tensor([i % 5])).sum().backward()
        log.append((table.weight.grad.is_sparse, table.weight.grad.to_dense()))

    return step


def transposed_leaf(log):
    p = torch.ones(2, 3).t().requires_grad_()
    q = torch.ones(4, 3)[::2].requires_grad_()

    def step(i):
        p.grad = q.grad = None
        (p @ p.t()).sum().backward()
        (q * q).sum().backward()
        log.append((p.grad.stride(), q.grad.stride(), q.grad))

    return step


def history_from_outside(log):
    p = torch.nn.Parameter(torch.ones(3))

    def step(i, y=None):
        y = p * 2 if y is None else y
        y.sum().backward()
        log.append(p.grad.clone())

    step.arguments = lambda i: ((p * i).tanh(),)
    return step


def frozen_and_thawed(log):
    p, q = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))

    def step(i):
        p.requires_grad_(i % 2 == 0)
        p.grad = q.grad = None
        (p * q).sum().backward()
        log.append((p.grad, q.grad))

    return step


def wrong_gradient(log):
    p = torch.nn.Parameter(torch.ones(3))

    def step(i):
        try:
            p.grad = torch.ones(3 if i % 2 else 4)
        except RuntimeError as e:
            log.append(str(e))
        log.append(p.grad)

    return step


def gradients_given(log):
    p = torch.nn.Parameter(torch.ones(3))

    def step(i):
        g = torch.full((3,), float(i))
        p.grad = g
        g += 1
        log.append((p.grad is g, p.grad.clone()))
        (p * 2).sum().backward()
        log.append((p.grad is g, g.clone()))
        return p.grad

    return step


def own_backward(log):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append(("backward", g))
            return g * 2

    p = torch.nn.Parameter(torch.ones(3))

    def step(i):
        p.grad = None
        Twice.apply(p * i).sum().backward()
        log.append(p.grad)

    return step


def two_losses(log):
    g, d = network(), network()
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    down = torch.nn.Linear(3, 4)

    def step(i):
        x = torch.full((2, 4), float(i))
        fake = down(g(x))
        od.zero_grad()
        (d(fake.detach()).mean() - d(x).mean()).backward()
        od.step()
        og.zero_grad()
        loss = d(fake).mean()
        loss.backward()
        og.step()
        log.append((loss, [p.grad for m in (g, d, down) for p in m.parameters()]))

    return step


def clipping_and_averaging(log):
    model, average = network(), network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step(i):
        optimizer.zero_grad(set_to_none=i % 3 > 0)
        model(torch.full((2, 4), float(i))).square().sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters(), strict=True):
                a.lerp_(p, 0.1)
        log.append((norm, [p.grad.clone() for p in model.parameters()], list(average.parameters())))

    return step


def in_blocks(log):
    model = network()

    def step(i):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.full((2, 4), float(i))).sum()
            with torch.autograd.profiler.record_function("pass"):
                loss.backward()
        log.append([p.grad.clone() for p in model.parameters()])

    return step


def saved_tensor_hooks(log):
    p = torch.nn.Parameter(torch.ones(3))

    def pack(t):
        log.append("pack")
        return t

    def unpack(t):
        log.append("unpack")
        return t

    def step(i):
        p.grad = None
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (p * p).sum()
            log.append("between")
            y.backward()
        log.append(p.grad)

    def outside(i):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            return plain(i)

    @godynamo.optimize
    def plain(i):
        p.grad = None
        (p * p * i).sum().backward()
        log.append(p.grad)

    return lambda i: (step(i), outside(i))


PROGRAMS: list[Program] = [
    accumulation,
    some_parameters_are_not_reached,
    a_gradient_that_the_graph_expects_and_does_not_come,
    hook_on_a_leaf,
    hook_without_python_code,
    hook_after_accumulation,
    hook_on_the_accumulating_node,
    handlers,
    in_functions,
    hooks_in_blocks_and_loops,
    hooks_under_keywords,
    called_by_builtins,
    zero_grad_before_an_exception,
    nested_gradients,
    sparse_gradients,
    transposed_leaf,
    history_from_outside,
    frozen_and_thawed,
    wrong_gradient,
    gradients_given,
    own_backward,
    two_losses,
    clipping_and_averaging,
    in_blocks,
    saved_tensor_hooks,
]


def play(program: Program, wrap: Callable[[Any], Any]) -> list[Any]:
    """Return what the program logs in eight calls; tensors are copied as they are at that time."""
    torch.manual_seed(0)
    log: list[Any] = []
    plain = program(log)
    step, more = wrap(plain), getattr(plain, "arguments", lambda i: ())
    out: list[Any] = []
    for i in range(STEPS):
        torch.manual_seed(i)
        out.append(step(i, *more(i)))
        out.extend(copied(log))
        log.clear()
    return copied(out)


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(), type(value), value.requires_grad
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    return value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_run_as_in_eager_mode(program):
    assert same(play(program, godynamo.optimize), play(program, lambda f: f))


def test_an_exception_after_a_hook_has_run_has_the_users_traceback():
    def outcomes(wrap):
        p, table = torch.nn.Parameter(torch.ones(3)), torch.arange(3.0)

        def inner(y, a):
            y.backward()
            return table.index_select(0, a)

        def middle(y, a, b):
            found = inner(y, a)
            return found + table.index_select(0, b)

        @wrap
        def step(a, b, c):
            y = (p * 2).sum()
            found = middle(y, a, b)
            return found + table.index_select(0, c)

        good, bad = torch.tensor([1]), torch.tensor([7])
        out = []
        for i in range(8):
            if i == 4:
                p.register_hook(lambda g: g * 2)
            p.grad = None
            try:
                out.append(step(*[bad if i % 4 == k else good for k in (1, 2, 3)]).tolist())
            except IndexError as e:
                out.append([(frame.name, frame.line) for frame in traceback.extract_tb(e.__traceback__)][1:])
            out.append(p.grad.tolist())
        return out

    assert outcomes(godynamo.optimize) == outcomes(lambda f: f)


@pytest.mark.parametrize("program", [accumulation, two_losses, in_functions, gradients_given], ids=lambda p: p.__name__)
def test_programs_without_hooks_are_one_graph(program):
    torch.manual_seed(0)
    step = program([])
    if program is not in_functions:
        for i in range(2):
            step(i)
    explained = godynamo.explain(step)(1)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


def test_a_gradient_with_other_strides_in_a_dimension_of_size_one():
    """A class token's gradient, summed over the batch, has them. Whoever asks for them sees eager's."""

    def made():
        torch.manual_seed(0)
        token, other = torch.nn.Parameter(torch.rand(1, 1, 4)), torch.nn.Parameter(torch.rand(1, 4, 1, 1))

        def step(x, asks):
            token.grad = other.grad = None
            y = torch.cat([token.expand(3, -1, -1), x], dim=1)
            z = (y.transpose(1, 2).unsqueeze(-1) * other.expand(3, -1, -1, -1)).square()
            z.sum().backward()
            strides = [g.stride() for g in (token.grad, other.grad)] if asks else None
            with torch.no_grad():
                token.sub_(token.grad, alpha=0.1)
                other.sub_(other.grad, alpha=0.1)
            return z, strides, token.clone(), other.clone()

        return step

    step, compiled = made(), godynamo.optimize(made())
    for i in range(6):
        x = torch.rand(3, 2, 4)
        assert same(compiled(x, i % 3 == 2), step(x, i % 3 == 2))
    explained = godynamo.explain(step)(x, False)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_mixed_precision():
    """FakeTensor computes the dtypes inside the block; the rules for sizes apply again after it."""

    def made():
        run = Training(ONE_GRAPH["AdamW"])

        def step():
            run.optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(run.model(run.x), run.y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
            run.optimizer.step()
            return loss

        return run, step

    a, eager = made()
    losses = [eager() for _ in range(STEPS)]
    b, step = made()
    compiled = godynamo.optimize(step)
    assert same([compiled() for _ in range(STEPS)], losses) and same(a.seen(), b.seen())
    explained = godynamo.explain(step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


# ---- closures: step() calls the closure inside torch.enable_grad() ---------------------------------------------------


def with_a_closure(run):
    table = torch.arange(3.0)

    def step(i):
        def closure():
            run.optimizer.zero_grad()
            loss = F.cross_entropy(run.model(run.x), run.y)
            loss.backward()
            return loss + table.index_select(0, i)

        return run.optimizer.step(closure)

    return step


@pytest.mark.parametrize("hook", [False, True], ids=["", "with a hook"])
def test_a_closure(hook):
    """A hook that comes later, and exceptions after it: all frames go on in CPython, and have eager's tracebacks."""

    def outcomes(wrap):
        run, log, out = Training(ONE_GRAPH["AdamW"]), [], []
        step = wrap(with_a_closure(run))
        for i in range(9):
            if hook and i == 4:
                run.model[0].weight.register_hook(lambda g: log.append(i) or g * 2)
            try:
                out.append(step(torch.tensor([7 if i % 3 == 2 else 1])).tolist())
            except IndexError as e:
                frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == __file__]
                out.append([(f.name, f.line) for f in frames][1:])
            out.append(torch.is_grad_enabled())
        return out, log, run

    out, log, run = outcomes(lambda step: step)
    own_out, own_log, own = outcomes(godynamo.optimize)
    assert (own_out, own_log) == (out, log) and same(own.seen(), run.seen())
    if not hook:
        explained = godynamo.explain(with_a_closure(run))(torch.tensor([1]))
        assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


# ---- schedulers: they replace optimizer.step by a function that has a weak reference to the optimizer ----------------


def as_an_attribute(run):
    return run.step


def as_an_argument(run):
    return functools.partial(with_arguments, run.model, run.optimizer, run.x, run.y)


def with_arguments(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def in_a_cell(run):
    model, optimizer, x, y = run.model, run.optimizer, run.x, run.y

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def as_a_global(run):
    space = {"run_model": run.model, "run_optimizer": run.optimizer, "x": run.x, "y": run.y, "F": F}
    exec(
        "def step():\n    run_optimizer.zero_grad()\n    loss = F.cross_entropy(run_model(x), y)\n"
        "    loss.backward()\n    run_optimizer.step()\n    return loss\n",
        space,
    )
    return space["step"]


@pytest.mark.parametrize("place", [as_an_attribute, as_an_argument, in_a_cell, as_a_global], ids=lambda p: p.__name__)
def test_a_step_with_a_scheduler_is_one_graph(place):
    def trained(wrap):
        run = Training(ONE_GRAPH["AdamW"])
        scheduler = torch.optim.lr_scheduler.ExponentialLR(run.optimizer, 0.5)
        step = place(run)
        call = functools.partial(wrap(step.func), *step.args) if place is as_an_argument else wrap(step)
        losses = []
        for _ in range(STEPS):
            losses.append(call())
            scheduler.step()
        return losses, run.seen(), step

    losses, seen, _ = trained(lambda step: step)
    own_losses, own_seen, step = trained(godynamo.optimize)
    assert same(own_losses, losses) and same(own_seen, seen)
    explained = godynamo.explain(step)()
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


class Referent:
    n = 0


@pytest.mark.parametrize("ends", ["del", "store", "nothing"])
def test_a_weak_reference_to_an_object_that_the_step_replaces(ends):
    """After a store, a weak reference is read in the graph only if a place that is not stored to holds the object."""

    def outcomes(wrap):
        out = []
        for _ in range(4):
            holder = types.SimpleNamespace(held=Referent())
            found = weakref.ref(holder.held)

            @wrap
            def step(x, holder=holder, found=found):
                holder.held.n += 1
                if ends == "del":
                    del holder.held
                elif ends == "store":
                    holder.held = None
                return x + 1, found() is None

            out.append(step(torch.ones(2))[1])
        return out

    assert outcomes(godynamo.optimize) == outcomes(lambda step: step) == [ends != "nothing"] * 4


# ---- generators that are dropped inside a block before backward() ----------------------------------------------------


def test_a_dropped_generator_and_backward_are_one_graph():
    class Numbers(collections.abc.Sequence[int]):
        """Its iterator is a generator that stops inside `try`, left by zip."""

        def __len__(self):
            return 5

        def __getitem__(self, i):
            if i < 5:
                return i
            raise IndexError

    numbers, x = Numbers(), torch.randn(3)

    def made():
        p = torch.nn.Parameter(torch.ones(3))

        def step(x):
            y = x
            for n, _ in zip(numbers, range(3), strict=False):
                y = y * p + n
            y.sum().backward()
            return y, p.grad.clone()

        return step

    step = made()
    optimized = godynamo.optimize(made())
    for _ in range(4):
        assert same(optimized(x), step(x))
    explained = godynamo.explain(step)(x)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0), explained.break_reasons


def test_a_held_generator_goes_on_after_backward():
    def count(log):
        try:
            yield 1
            yield 2
        finally:
            log.append("end")

    def outcomes(wrap):
        p, log = torch.nn.Parameter(torch.ones(3)), []

        @wrap
        def step(x):
            p.grad = None
            holders = [enumerate(count(log)), {"a": map(abs, count(log))}, functools.partial(next, count(log))]
            y = x * p * next(holders[0])[1] * next(holders[1]["a"]) * holders[2]()
            y.sum().backward()
            return y.tolist(), p.grad.tolist(), next(holders[0]), next(holders[1]["a"]), holders[2](), list(log)

        return [(step(torch.ones(3)), list(log)) for _ in range(3)]

    assert outcomes(godynamo.optimize) == outcomes(lambda step: step)
