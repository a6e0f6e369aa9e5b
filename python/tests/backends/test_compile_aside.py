"""With config.compile_aside a graph runs as captured until another process has compiled it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import config
from godynamo._aside import aside, job, process, thread
from godynamo._aside.conditions import NotReadable, holding
from godynamo._backends import named

X = torch.linspace(-1.0, 1.0, 8).reshape(2, 4)


def counted(name: str) -> int:
    return godynamo.utils.counters["stats"][name]


@pytest.fixture(scope="module", autouse=True)
def no_process_afterwards() -> Iterator[None]:
    """End the thread and the process, since later tests fork."""
    yield
    aside._compiling.end()
    aside._compiling.drop()


@pytest.fixture(autouse=True)
def with_setting() -> Iterator[None]:
    with config.patch(compile_aside=True):
        yield
        godynamo.wait_for_compilation()


def changes(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1).mul(2)


def switches(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ x.T
    with torch.no_grad():
        z = y.float().sin()
    return z.softmax(-1) + y


def returns_several(x: torch.Tensor) -> Any:
    return x.max(1), x.shape[0], [x.cos(), x]


PROGRAMS: dict[str, Callable[[], Callable[..., Any]]] = {
    "a module in training": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)),
    "a change in place": lambda: changes,
    "modes": lambda: switches,
    "several results": lambda: returns_several,
}


def result(fn: Callable[..., Any], requires_grad: bool) -> Any:
    """Return what a call returns, its argument afterwards, its gradient and the module's state."""
    leaf = X.clone().requires_grad_(requires_grad)
    x = leaf.clone()
    out = fn(x)
    first = out if isinstance(out, torch.Tensor) else out[0].values
    if first.requires_grad:
        first.sum().backward()
    state = list(fn.state_dict().values()) if isinstance(fn, torch.nn.Module) else []
    return [out, x.detach(), leaf.grad, [t.clone() for t in state]]


def near(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a.float(), b.float(), atol=1e-5)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(near, a, b))
    return bool(a == b)


@pytest.mark.parametrize(
    ("name", "requires_grad"),
    [(name, grad) for name in PROGRAMS for grad in (False, True) if (name, grad) != ("a change in place", True)],
)
def test_captured_first_and_compiled_later(name: str, requires_grad: bool) -> None:
    eager, program = PROGRAMS[name](), PROGRAMS[name]()
    if isinstance(eager, torch.nn.Module):
        program.load_state_dict(eager.state_dict())
    before = counted("graphs_compiled_aside")
    optimized = godynamo.optimize(program, backend="inductor")
    assert godynamo.testing.same(result(optimized, requires_grad), result(eager, requires_grad))
    assert godynamo.wait_for_compilation()
    assert counted("graphs_compiled_aside") == before + 1
    for _ in range(2):
        assert near(result(optimized, requires_grad), result(eager, requires_grad))


def test_sizes_that_vary_are_compiled_once() -> None:
    linear = torch.nn.Linear(4, 6)

    def f(x: torch.Tensor, n: int) -> Any:
        y = linear(x) * n
        return y.view(-1, 2).sum(0) + x.shape[0], y

    optimized = godynamo.optimize(f, backend="inductor")
    for size, n, compiled in ((4, 2, 1), (6, 3, 2), (7, 3, 2), (1, 5, 2), (100, 0, 2)):
        x = torch.linspace(-1.0, 1.0, 4 * size).reshape(size, 4)
        for _ in range(2):
            assert near(optimized(x, n), f(x, n))
            assert godynamo.wait_for_compilation()
        assert counted("graphs_compiled_aside") == compiled
    assert len(godynamo.cache_entries(optimized)) == 2


def test_sizes_for_which_the_code_was_not_compiled_run_as_captured() -> None:
    made = types.SimpleNamespace(sizes=((), (), [((("s", 0),), (1,))], (), False, False))
    four: Any = [("eq", ("mod", ("s", 0), 4), 0)]
    run = thread._where(four, made, lambda x: "compiled", lambda x: "captured")  # type: ignore[arg-type]
    assert [run(torch.empty(n)) for n in (3, 4, 5, 8)] == ["captured", "compiled", "captured", "compiled"]


@pytest.mark.parametrize(
    ("conditions", "shape", "n", "holds"),
    [
        ([("ge", ("s", 0), 2)], (3, 4), 1, True),
        ([("ge", ("s", 0), 2), ("eq", ("mod", ("s", 1), ("s", 0)), 0)], (3, 4), 4, False),
        ([("lt", ("max", ("mul", ("s", 0), 2), ("add", ("s", 1), 1)), 7)], (3, 4), 5, True),
        ([("ne", ("floordiv", ("sub", ("s", 1), 1), 2), ("min", ("s", 0), 9))], (3, 4), 7, False),
    ],
)
def test_conditions_are_read_from_the_inputs(conditions: Any, shape: Any, n: int, holds: bool) -> None:
    inputs = [None, ((("mul", ("s", 0), 2), ("s", 0)), (4, 1)), ("s", 1)]
    check = holding(conditions, inputs)
    assert check is not None
    assert check([None, torch.empty(2 * shape[0], shape[0]), n]) == holds
    assert holding([], inputs) is None
    with pytest.raises(NotReadable):
        holding([("eq", ("s", 2), 0)], inputs)


def test_the_programs_random_numbers_are_its_own() -> None:
    def numbers() -> list[float]:
        torch.manual_seed(3)
        drawn = []
        while len(drawn) < 200 or not aside._compiling.wait(0):
            drawn.append(torch.rand(()).item())
        return drawn

    def f(x: torch.Tensor) -> torch.Tensor:
        return x.exp() * 3

    optimized = godynamo.optimize(f, backend="inductor")
    optimized(X)
    got = numbers()
    torch.manual_seed(3)
    assert got == [torch.rand(()).item() for _ in got]
    assert counted("graphs_compiled_aside") == 1


REFUSED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "made in inference mode": (lambda x: x + 1, "inference", "inference mode"),
    "a view that is changed": (lambda x: x.add_(1), X.clone()[0], "changes a view"),
    "a computed tensor that is changed": (lambda x: x.add_(1), X.clone().requires_grad_(), "or a computed tensor"),
    "a function with a graph": (lambda x: torch.cond(x.sum() > -9, torch.sin, torch.cos, (x,)), X, "another graph"),
}


def copy(x: torch.Tensor) -> torch.Tensor:
    """Return a copy that is a view if x is one, and that requires gradients if x does."""
    return x.clone() if x._base is None else x._base.clone()[0]


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_this_process_can_compile_is_compiled_by_it(name: str, caplog: Any) -> None:
    fn, x, why = REFUSED[name]
    if isinstance(x, str):
        with torch.inference_mode():
            x = X + 1
    before = counted("graphs_not_compiled_aside")
    with caplog.at_level(logging.INFO, "godynamo"), torch.inference_mode(x.is_inference()):
        got = godynamo.optimize(fn, backend="inductor")(copy(x))
    assert near(torch.Tensor(got), torch.Tensor(fn(copy(x))))
    assert counted("graphs_not_compiled_aside") == before + 1
    assert f"test_compile_aside.py:{fn.__code__.co_firstlineno}" in caplog.text
    assert why in caplog.text


def test_other_backends_compile_at_once() -> None:
    calls = []

    def backend(gm: Any, inputs: Any) -> Any:
        calls.append(gm)
        return gm.forward

    godynamo.optimize(lambda x: x + 1, backend=backend)(X)
    assert len(calls) == 1


@pytest.mark.parametrize("here_too", (False, True))
def test_the_next_call_compiles_what_the_process_refuses(here_too: bool, monkeypatch: Any, caplog: Any) -> None:
    real = job.described

    def with_another_state(*args: Any) -> job.Job:
        made = real(*args)
        object.__setattr__(made, "guarded", "another state")
        return made

    monkeypatch.setattr(job, "described", with_another_state)

    def refused(x: torch.Tensor) -> torch.Tensor:
        return x.tan() + int(here_too)

    calls: list[Any] = []
    compiler: Any = named.lookup_backend("inductor")

    def inductor(gm: Any, inputs: Any, **options: Any) -> Any:
        calls.append(gm)
        if here_too:
            raise ValueError("nothing compiles")
        return compiler(gm, inputs, **options)

    f = godynamo.optimize(refused, backend="inductor")
    monkeypatch.setattr(f.options.backend, "_resolved", inductor)
    before = counted("graphs_failed_aside")
    with caplog.at_level(logging.INFO, "godynamo"):
        f(X)
        assert godynamo.wait_for_compilation()
        assert counted("graphs_failed_aside") == before + 1
        assert "the graph from refused (" in caplog.text
        assert "another state" in caplog.text
        assert not calls
        for _ in range(3):
            assert near(f(X), refused(X))
    assert len(calls) == 1
    assert ("nothing compiles" in caplog.text) == here_too


def test_the_process_may_be_killed(caplog: Any) -> None:
    f = godynamo.optimize(lambda x: x.tan() + 5, backend="inductor")
    real = process.Process.ask

    def ask(it: Any, *work: Any) -> None:
        real(it, *work)
        it.kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process.Process, "ask", ask)
        f(X)
        assert godynamo.wait_for_compilation()
    assert torch.equal(f(X), X.tan() + 5)
    assert "ended with status -9" in caplog.text
    before = counted("graphs_compiled_aside")
    other = godynamo.optimize(lambda x: x.tan() + 6, backend="inductor")  # dropped graphs are not compiled
    other(X)
    godynamo.wait_for_compilation()
    assert counted("graphs_compiled_aside") == before + 1


def test_an_answer_that_was_not_read_is_not_taken_for_the_next(monkeypatch: Any, caplog: Any) -> None:
    f = godynamo.optimize(lambda x: x.tan() + 12, backend="inductor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread, "_import_compiler", lambda: 1 / 0)
        f(X)
        assert godynamo.wait_for_compilation()
    assert "division by zero" in caplog.text
    assert torch.equal(f(X), X.tan() + 12)
    other = godynamo.optimize(lambda x: x.cos() + 13, backend="inductor")
    other(X)
    assert godynamo.wait_for_compilation()
    assert counted("graphs_compiled_aside") == 1
    assert near(other(X), X.cos() + 13)


def test_without_a_thread_it_is_compiled_in_the_call(monkeypatch: Any) -> None:
    real = threading.Thread.start

    def start(it: threading.Thread) -> None:
        if it.name == "godynamo compiles aside":
            raise RuntimeError("can't start new thread")
        real(it)

    aside._compiling.end()
    aside._compiling.drop()
    monkeypatch.setattr(threading.Thread, "start", start)
    f = godynamo.optimize(lambda x: x.tan() + 9, backend="inductor")
    assert near(f(X), X.tan() + 9)
    assert counted("graphs_not_compiled_aside") == 1
    assert godynamo.wait_for_compilation()


def test_what_the_program_has_dropped_is_not_loaded() -> None:
    before = counted("graphs_compiled_aside")
    f = godynamo.optimize(lambda x: x.tan() + 7, backend="inductor")
    f(X)
    godynamo.reset()
    assert godynamo.wait_for_compilation()
    assert counted("graphs_compiled_aside") == before


def test_warming_up_waits() -> None:
    f = godynamo.optimize(lambda x: x.tan() + 10, backend="inductor")
    assert godynamo.warm_up(f, [X]).graphs == 1
    assert counted("graphs_compiled_aside") == 1


def test_waiting_has_a_limit() -> None:
    f = godynamo.optimize(lambda x: x.tan() + 8, backend="inductor")
    f(X)
    assert not godynamo.wait_for_compilation(0)
    assert godynamo.wait_for_compilation()


def test_the_compilers_settings_are_handed_over() -> None:
    import torch._inductor.config as inductor

    with inductor.patch(max_fusion_size=7):
        assert "max_fusion_size = 7" in job.settings()
    assert "max_fusion_size = 7" not in job.settings()
    with inductor.patch(post_grad_custom_pre_pass=lambda graph: None), pytest.raises(job.NotHandedOver, match="pass"):
        job.settings()


ENDS = """
import os, sys, time, torch, godynamo
torch.set_num_threads(1)
godynamo.config.compile_aside = True
x = torch.ones(3)
f = godynamo.optimize(lambda x: x.sin() + 11, backend="inductor")
f(x)
from godynamo._aside import aside
while aside._compiling._process is None:
    time.sleep(0.01)
print(aside._compiling._process._popen.pid, flush=True)
if sys.argv[1] == "fork":
    child = os.fork()
    if not child:
        assert godynamo.wait_for_compilation()  # nothing waits in a child
        assert torch.equal(f(x), x.sin() + 11)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert godynamo.wait_for_compilation()
    assert godynamo.utils.counters["stats"]["graphs_compiled_aside"] == 1
elif sys.argv[1] == "hard":
    os._exit(0)
elif sys.argv[1] == "raise":
    raise SystemExit(5)
"""


@pytest.mark.parametrize(("how", "status"), (("end", 0), ("hard", 0), ("raise", 5), ("fork", 0)))
def test_the_process_ends_with_the_program(how: str, status: int) -> None:
    place = {**os.environ, "PYTHONPATH": str(Path(godynamo.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", ENDS, how], capture_output=True, text=True, timeout=600, env=place
    )
    assert done.returncode == status
    assert "subprocess" not in done.stderr  # a ResourceWarning
    pid = int(done.stdout)
    for _ in range(3000):
        if not _runs(pid):
            break
        threading.Event().wait(0.01)
    else:
        pytest.fail("the process that compiles goes on")


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
