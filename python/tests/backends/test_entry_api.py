"""optimize(): its forms, the backend protocol, the seed document's toy example, errors of backends, reset."""

from __future__ import annotations

import dis
import functools
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, exc
from harness.capture import (
    assert_no_internal_errors,
    check,
    counted,
    describe,
    entries,
    nb,
    no_translation,
    nodes_of,
    ops_of,
    translations,
    unsupported,
)

PYTHON_FOLDER = Path(__file__).resolve().parents[2]
GLOBAL_SCALE = 3.0

SEED = """
from typing import List
import torch
import godynamo as torchdynamo

def my_compiler(gm: torch.fx.GraphModule, example_inputs: List[torch.Tensor]):
    print("my_compiler() called with FX graph:")
    gm.graph.print_tabular()
    return gm.forward  # return a python callable

@torchdynamo.optimize(my_compiler)
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b

for _ in range(100):
    toy_example(torch.randn(10), torch.randn(10))
"""


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


# ---- forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-01")
def test_the_seeds_program_runs_word_for_word(tmp_path: Path) -> None:
    program = tmp_path / "seed.py"
    program.write_text(SEED)
    done = subprocess.run(
        [sys.executable, str(program)],
        env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("my_compiler() called with FX graph:") == 3
    assert "opcode" in done.stdout and "call_function" in done.stdout


@pytest.mark.row("S002-01")
def test_decorator_with_a_backend_captures() -> None:
    backend = nb()

    @godynamo.optimize(backend)
    def f(x):
        return x + 1

    x = torch.randn(3)
    assert torch.equal(f(x), x + 1) and backend.ops() == ["add"]


def documented(a, b: int = 2, *, c: str = "x") -> Any:
    """Says so."""
    return a * b


class Scaler:
    def __init__(self, k: float) -> None:
        self.k = k

    def scale(self, x):
        """Scales."""
        return x * self.k


@pytest.mark.row("S002-02")
def test_a_function_keeps_name_doc_and_signature() -> None:
    backend = nb()
    f = godynamo.optimize(documented, backend=backend)
    assert f.__name__ == "documented" and f.__doc__ == "Says so." and f.__wrapped__ is documented
    assert inspect.signature(f) == inspect.signature(documented)
    assert torch.equal(f(torch.ones(2), b=3), torch.full((2,), 3.0)) and len(backend) == 1


@pytest.mark.row("S002-02")
def test_a_bound_method() -> None:
    backend = nb()
    scaler = Scaler(2.0)
    f = godynamo.optimize(scaler.scale, backend=backend)
    assert f.__name__ == "scale" and f.__doc__ == "Scales." and f.__wrapped__ == scaler.scale
    assert inspect.signature(f) == inspect.signature(scaler.scale)
    x = torch.randn(3)
    assert torch.equal(f(x), x * 2.0) and len(backend) == 1


@pytest.mark.row("S002-02")
def test_a_lambda() -> None:
    f = lambda x, k=2: x - k  # noqa: E731
    backend = check(f, torch.randn(3))
    optimized = godynamo.optimize(f, backend=backend)
    assert optimized.__name__ == "<lambda>" and inspect.signature(optimized) == inspect.signature(f)
    assert backend.ops() == ["sub"]


@pytest.mark.row("S002-02")
def test_a_partial() -> None:
    backend = nb()
    part = functools.partial(documented, b=5)
    f = godynamo.optimize(part, backend=backend)
    assert inspect.signature(f) == inspect.signature(part) and f.__wrapped__ is part
    assert torch.equal(f(torch.ones(2)), torch.full((2,), 5.0))
    assert torch.equal(f(torch.ones(2), b=7), torch.full((2,), 7.0))
    assert len(backend) == 2


@pytest.mark.row("S002-02")
def test_a_module() -> None:
    backend = nb()
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    f = godynamo.optimize(module, backend=backend)
    x = torch.randn(2, 3)
    assert torch.equal(f(x), module(x)) and len(backend) == 1
    assert isinstance(f, torch.nn.Sequential) and f[0] is module[0]
    assert type(f).__name__ == "Sequential" and type(f).__doc__ == type(module).__doc__
    assert list(f.state_dict()) == list(module.state_dict())
    assert inspect.signature(f) == inspect.signature(module) and inspect.signature(f.forward) == inspect.signature(
        module.forward
    )


def context_target(x):
    return x.cos() + 1


@pytest.mark.row("S002-03")
def test_as_a_context_manager_it_compiles_inside_only() -> None:
    backend = nb()
    x = torch.randn(3)
    context_target(x)
    assert len(backend) == 0
    with godynamo.optimize(backend):
        inside = context_target(x)
        again = context_target(x)
    assert torch.equal(inside, x.cos() + 1) and torch.equal(again, inside)
    assert backend.all_ops() == ["cos", "add"]
    runs, captured = backend.runs, len(backend)
    context_target(torch.randn(5))
    assert (backend.runs, len(backend)) == (runs, captured)
    assert _C.hook_installed() == 0


@pytest.mark.row("S002-03")
def test_the_context_manager_can_be_entered_again_and_nested() -> None:
    backend, other = nb(), nb()
    context, inner = godynamo.optimize(backend), godynamo.optimize(other)
    x = torch.randn(3)
    for _ in range(2):
        with context:
            context_target(x)
            with inner:
                context_target(x)
            context_target(x)
    assert len(backend) == 1 and len(other) == 1
    assert backend.runs == 4 and other.runs == 2


@pytest.mark.row("S002-03")
def test_the_context_ends_when_its_body_raises() -> None:
    backend = nb()
    with pytest.raises(KeyError), godynamo.optimize(backend):
        raise KeyError("body")
    context_target(torch.randn(3))
    assert len(backend) == 0 and _C.hook_installed() == 0


# ---- the backend protocol --------------------------------------------------------------------------------------------


@pytest.mark.row("S002-04")
def test_the_backend_gets_a_graph_module_and_tensors_once_per_graph() -> None:
    backend = nb()

    @godynamo.optimize(backend)
    def f(x, y):
        z = x + y
        z = unsupported(z)
        return z.relu() * y

    for _ in range(5):
        f(torch.randn(4), torch.randn(4))
    assert len(backend) == 2 and backend.all_ops() == ["add", "relu", "mul"]
    for gm, inputs in zip(backend.graphs, backend.inputs, strict=True):
        assert isinstance(gm, torch.fx.GraphModule)
        assert isinstance(inputs, list) and inputs and all(isinstance(t, torch.Tensor) for t in inputs)
        assert len(inputs) == len(nodes_of(gm, "placeholder"))
    assert backend.runs == 10


@pytest.mark.row("S002-05")
def test_print_tabular_prints_the_nodes_in_execution_order(capsys: pytest.CaptureFixture[str]) -> None:
    backend = nb()
    f = godynamo.optimize(lambda a, b: torch.abs(a) + b.sum(), backend=backend)
    f(torch.randn(4), torch.randn(4))
    capsys.readouterr()
    backend.graphs[0].graph.print_tabular()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.strip() and not line.startswith("-")]
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    opcodes = [line.split()[0] for line in lines[1:]]
    assert opcodes == ["placeholder", "placeholder", "call_function", "call_method", "call_function", "output"]
    assert [node.op for node in backend.graphs[0].graph.nodes] == opcodes
    assert "abs" in lines[3] and "sum" in lines[4] and "add" in lines[5]


@pytest.mark.row("S002-06")
def test_what_the_backend_returns_is_what_runs() -> None:
    seen = []

    def my_backend(gm, example_inputs):
        def run(*args):
            seen.append(len(args))
            return tuple(out + 100 for out in gm.forward(*args))

        return run

    f = godynamo.optimize(lambda x: x * 2, backend=my_backend)
    x = torch.randn(3)
    for _ in range(3):
        assert torch.equal(f(x), x * 2 + 100)
    assert seen == [1, 1, 1]


@pytest.mark.row("S002-06")
@pytest.mark.parametrize("kind", ["partial", "object", "builtin", "module"])
def test_any_callable_will_do(kind: str) -> None:
    class Runner:
        def __init__(self, gm):
            self.gm = gm

        def __call__(self, *args):
            return self.gm(*args)

    def my_backend(gm, example_inputs):
        return {
            "partial": lambda: functools.partial(gm.forward),
            "object": lambda: Runner(gm),
            "builtin": lambda: functools.partial(map, lambda x: x + 1),
            "module": lambda: gm,
        }[kind]()

    f = godynamo.optimize(lambda x: x + 1, backend=my_backend)
    x = torch.randn(3)
    expected = x + 1
    assert torch.equal(f(x), expected) and torch.equal(f(x), expected)
    assert_no_internal_errors()


# ---- the toy example -------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-07", "S002-08", "S002-10")
def test_toy_example_100_calls() -> None:
    torch.manual_seed(0)
    backend = nb()
    f = godynamo.optimize(toy_example, backend=backend)
    arms: set[bool] = set()
    for _ in range(100):
        a, b = torch.randn(10), torch.randn(10)
        before = len(backend)
        expected = toy_example(a.clone(), b.clone())
        assert torch.equal(f(a, b), expected)
        if len(arms) == 2:
            assert len(backend) == before, "compiled again although both arms are known"
        arms.add(bool(b.sum() < 0))
    assert arms == {True, False} and len(backend) == 3
    assert_no_internal_errors()


@pytest.mark.row("S002-08")
def test_toy_examples_graphs() -> None:
    backend = nb()
    f = godynamo.optimize(toy_example, backend=backend)
    f(torch.randn(10), -torch.ones(10))
    f(torch.randn(10), torch.ones(10))
    prefix, negative, positive = (ops_of(gm) for gm in backend.graphs)
    assert sorted(prefix) == ["abs", "add", "lt", "sum", "truediv"]
    assert negative == ["mul", "mul"] and positive == ["mul"]
    first = next(n for n in backend.graphs[1].graph.nodes if n.op == "call_function")
    assert first.args[1] == -1


@pytest.mark.row("S002-09")
def test_toy_examples_branch_runs_on_the_real_tensor() -> None:
    backend = nb()
    f = godynamo.optimize(toy_example, backend=backend)
    a = torch.randn(10)
    for b in (torch.ones(10), -torch.ones(10), torch.ones(10), -torch.ones(10)):
        assert torch.equal(f(a, b), toy_example(a, b))
    assert len(backend) == 3
    [entry] = entries(f)
    branch = toy_example.__code__.co_firstlineno + 2
    assert entry.info["resumes"] == (f"resume_in_toy_example_at_{branch}",) * 2, "one for each arm"
    assert len({resume.function.__code__ for resume in f.root.resumes.values()}) == 2
    [reason] = {row[1] for row in entry.info["breaks"]}
    assert "branch on a tensor's value" in reason


@pytest.mark.row("S002-10")
def test_no_translation_once_both_arms_are_known() -> None:
    backend = nb()
    f = godynamo.optimize(toy_example, backend=backend)
    f(torch.randn(10), torch.ones(10))
    f(torch.randn(10), -torch.ones(10))
    captured = len(backend)
    with no_translation():
        for i in range(20):
            f(torch.randn(10), torch.full((10,), float(i % 2 * 2 - 1)))
    assert len(backend) == captured == 3


# ---- what a frame can hold -------------------------------------------------------------------------------------------


def make_everything(free: float):
    def everything(a, b=2.0, *rest, k=3.0, **more):
        total = a * b + k * free + GLOBAL_SCALE
        for r in rest:
            total = total + r
        for key in sorted(more):
            total = total * more[key]
        return total

    return everything


@pytest.mark.row("S002-11")
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((5.0,), {}),
        ((5.0, 1.0, 2.0), {}),
        ((), {"k": 7.0}),
        ((), {"b": 4.0, "k": 7.0}),
        ((5.0, 1.0), {"k": 1.0, "m": 2.0, "n": 3.0}),
    ],
)
def test_every_way_to_reach_a_value_is_seen(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    backend = check(make_everything(0.5), torch.randn(4), *args, **kwargs)
    assert len(backend) == 1 and "mul" in backend.ops()


@pytest.mark.row("S002-11")
def test_closure_default_and_global_changes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    free = 1.0

    def f(x, k=2.0):
        return x * k + free + GLOBAL_SCALE

    optimized = godynamo.optimize(f, backend=nb())
    x = torch.randn(3)
    assert torch.equal(optimized(x), f(x))
    free = 5.0
    assert torch.equal(optimized(x), f(x))
    monkeypatch.setitem(globals(), "GLOBAL_SCALE", 11.0)
    assert torch.equal(optimized(x), x * 2.0 + 5.0 + 11.0)
    f.__defaults__ = (9.0,)
    assert torch.equal(optimized(x), x * 9.0 + 5.0 + 11.0)


# ---- time, by its cause ----------------------------------------------------------------------------------------------


@pytest.mark.row("S002-12")
def test_a_served_module_call_has_nothing_between_guards_and_operations() -> None:
    layers = [layer for _ in range(20) for layer in (torch.nn.Linear(8, 8), torch.nn.ReLU())]
    module = torch.nn.Sequential(*layers)
    f = godynamo.optimize(module)
    x = torch.randn(1, 8)
    with torch.no_grad():
        expected = module(x)
        assert torch.equal(f(x), expected)
        hits = godynamo.cache_entries(f)[0].hits
        before = _C.counters()
        with no_translation():
            for _ in range(3):
                assert torch.equal(f(x), expected)
        after = _C.counters()
    assert {k: after[k] for k in after if after[k] != before[k]} == {}, "no hook, no Go call, no miss"
    [entry] = godynamo.cache_entries(f)
    assert entry.hits == hits + 3 and not entry.flags
    names = [i.argval for i in dis.get_instructions(entry.code) if i.opname in ("LOAD_GLOBAL", "LOAD_METHOD")]
    assert "forward" not in names and "_call_impl" not in names, "layers are called instead of inlined"
    called = [i for i in dis.get_instructions(entry.code) if i.opname in ("CALL", "CALL_FUNCTION_EX")]
    assert len(called) == 40, "one call per operation"


def purepy(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


@pytest.mark.row("S002-13")
@pytest.mark.parametrize("backend", ["eager", "recording"])
def test_plain_python_runs_the_users_own_code(backend: str) -> None:
    recorder = nb()
    f = godynamo.optimize(purepy, backend="eager" if backend == "eager" else recorder)
    assert f(100) == purepy(100)
    before = _C.counters()
    with no_translation():
        for n in (100, 5, 0, 1000):
            assert f(n) == purepy(n)
    after = _C.counters()
    assert {k: after[k] for k in after if after[k] != before[k]} == {}, "no hook, no miss, no Go call"
    [entry] = entries(f)
    assert entry.function is None and entry.flags & 1, "the user's own code runs"
    assert len(recorder) == 0


# ---- backends that go wrong ------------------------------------------------------------------------------------------


def failing_backend(gm, example_inputs):
    raise ValueError("no such machine")


@pytest.mark.row("S002-14")
def test_a_backend_that_raises_is_named_and_its_error_kept() -> None:
    f = godynamo.optimize(lambda x: x + 1, backend=failing_backend)
    for _ in range(2):  # the second call tries the backend again
        with pytest.raises(exc.BackendCompilerFailed, match="failing_backend") as caught:
            f(torch.randn(3))
        assert isinstance(caught.value.__cause__, ValueError) and str(caught.value.__cause__) == "no such machine"
        assert "ValueError: no such machine" in str(caught.value)
    assert_no_internal_errors()


@pytest.mark.row("S002-14")
def test_with_suppress_errors_eager_runs() -> None:
    f = godynamo.optimize(lambda x: x + 1, backend=failing_backend)
    x = torch.randn(3)
    with godynamo.config.patch(suppress_errors=True):
        assert torch.equal(f(x), x + 1) and torch.equal(f(x), x + 1)


@pytest.mark.row("S002-15")
@pytest.mark.parametrize("wrong", [3, None, (1, 2)])
def test_a_backend_must_return_a_callable(wrong: Any) -> None:
    f = godynamo.optimize(lambda x: x + 1, backend=lambda gm, example_inputs: wrong)
    with pytest.raises((TypeError, exc.BackendCompilerFailed)) as caught:
        f(torch.randn(3))
    error: BaseException = caught.value
    cause = error if isinstance(error, TypeError) else error.__cause__
    assert isinstance(cause, TypeError) and "callable" in str(cause) and repr(wrong) in str(cause)
    assert entries(f) == [], "nothing was installed: the error is the compile's"


@pytest.mark.row("S002-16")
def test_reset_drops_everything() -> None:
    backend = nb()
    f = godynamo.optimize(toy_example, backend=backend)
    for b in (torch.ones(10), -torch.ones(10)):
        f(torch.randn(10), b)
    first = len(backend)
    godynamo.reset()
    assert entries(f) == [] and godynamo.utils.counters["frames"]["total"] == 0
    for b in (torch.ones(10), -torch.ones(10)):
        a = torch.randn(10)
        assert describe(f(a, b)) == describe(toy_example(a, b))
    assert len(backend) == 2 * first == 6


@pytest.mark.row("S002-16")
def test_reset_reaches_frames_served_by_the_hook() -> None:
    backend = nb()
    context = godynamo.optimize(backend)
    for round_ in (1, 2):
        with context:
            context_target(torch.randn(3))
            context_target(torch.randn(3))
        assert len(backend) == round_
        godynamo.reset()
    with translations(1), context:
        context_target(torch.randn(3))
    assert counted("internal_errors") == 0
