"""Entries: their order, their owners, what they keep alive, threads, fork, exit."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, utils
from harness.capture import (
    assert_no_internal_errors,
    counted,
    entries,
    nb,
    no_translation,
    translations,
    unsupported,
)

PYTHON_FOLDER = Path(__file__).resolve().parents[2]


def add(x, n):
    return x + n


def graph_first(gm: Any, example_inputs: Any) -> Any:
    return gm.forward


def collect() -> None:
    for _ in range(3):
        gc.collect()


# ---- entries ---------------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-109")
def test_an_entry_is_code_and_check_fn_and_hangs_on_the_code_object() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(2)
    w(x, 1)
    w(x, 2)
    caches = _C.code_caches(add.__code__)
    mine = [cache for cache in caches if cache is w.cache]
    assert len(mine) == 1
    found = mine[0].entries()
    assert len(found) == 2 and found == entries(w) == godynamo.cache_entries(w)
    for entry in found:
        assert type(entry).__name__ == "GuardedCode" and type(entry.code) is type(add.__code__)
        assert callable(entry.check_fn) and entry.orig_code is add.__code__ and entry.valid
    assert [e.check_fn(x, 2) for e in found] == [True, False]


@pytest.mark.row("S002-109")
def test_what_is_unused_leaves_the_code_object() -> None:
    before = len(_C.code_caches(add.__code__))
    w = godynamo.optimize(add, backend=nb())
    w(torch.ones(1), 1)
    assert len(_C.code_caches(add.__code__)) == before + 1
    del w
    collect()
    assert len(_C.code_caches(add.__code__)) == before


@pytest.mark.row("S002-110")
def test_a_new_entry_is_first() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(2)
    for n in range(4):
        w(x, n)
    assert [next(p for p in e.parts if p.startswith("n == ")) for e in entries(w)] == [
        f"n == {n}" for n in (3, 2, 1, 0)
    ]


def make_function() -> Any:
    scope: dict[str, Any] = {"unsupported": unsupported}
    exec("def f(x):\n    y = x + 1\n    y = unsupported(y)\n    return y * 2\n", scope)
    return scope["f"]


@pytest.mark.row("S002-110")
def test_entries_die_with_the_callable() -> None:
    f = make_function()
    w = godynamo.optimize(f, backend=nb())
    w(torch.randn(2))
    dead = [weakref.ref(e) for e in godynamo.cache_entries(w)]
    codes = [weakref.ref(e.code) for e in godynamo.cache_entries(w)]
    assert len(dead) == 2
    del w
    collect()
    assert [r() for r in dead] == [None, None] and [r() for r in codes] == [None, None]
    assert torch.equal(f(torch.ones(1)), torch.full((1,), 4.0))


@pytest.mark.row("S002-110")
def test_code_and_function_die_after_the_callable() -> None:
    f = make_function()
    code, function = weakref.ref(f.__code__), weakref.ref(f)
    w = godynamo.optimize(f, backend=nb())
    del f
    w(torch.randn(2))
    assert code() is not None
    del w
    collect()
    assert function() is None and code() is None


@pytest.mark.row("S002-110")
def test_the_code_object_may_go_first() -> None:
    f = make_function()
    w = godynamo.optimize(f, backend=nb())
    w(torch.randn(2))
    entry = weakref.ref(entries(w)[0])
    f.__code__ = (lambda x: x).__code__
    x = torch.ones(1)
    assert w(x) is x
    del w, f
    collect()
    assert entry() is None


@pytest.mark.row("S002-110")
def test_a_callable_in_its_own_closure_is_collected() -> None:
    def make() -> weakref.ref[Any]:
        def f(x, n):
            if n == 0:
                return x + 1
            return w(x, 0) * n

        w = godynamo.optimize(f, backend=nb())
        assert torch.equal(w(torch.ones(1), 3), torch.full((1,), 6.0))
        return weakref.ref(w)

    ref = make()
    collect()
    assert ref() is None


@pytest.mark.row("S002-110")
def test_a_module_that_holds_its_own_optimized_forward_is_collected() -> None:
    def make() -> tuple[Any, ...]:
        module = torch.nn.Linear(2, 2)
        module.forward = godynamo.optimize(module.forward, backend=nb())  # type: ignore[method-assign]
        x = torch.randn(1, 2)
        module(x)
        module(x)
        weight = module.weight
        return weakref.ref(module), weakref.ref(weight)

    refs = make()
    collect()
    assert [r() for r in refs] == [None, None]


@pytest.mark.row("S002-111")
def test_a_hit_moves_to_the_front() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(2)

    def order() -> list[int]:
        return [next(n for n in range(3) if f"n == {n}" in e.parts) for e in entries(w)]

    for n in range(3):
        w(x, n)
    assert order() == [2, 1, 0]
    with no_translation():
        w(x, 0)
        assert order() == [0, 2, 1]
        w(x, 1)
        assert order() == [1, 0, 2]
        w(x, 1)
        assert order() == [1, 0, 2]
    stats = w.cache.stats()
    assert stats["hits"] == 3 and stats["misses"] == 3 and stats["entries"] == 3


@pytest.mark.row("S002-112")
def test_a_miss_compiles_prepends_and_runs() -> None:
    w = godynamo.optimize(add, backend=(backend := nb()))
    x = torch.randn(2)
    for n in range(3):
        misses = counted("misses")
        with translations(1):
            assert torch.equal(w(x, n), x + n)
        assert counted("misses") == misses + 1
        assert len(backend) == len(entries(w)) == n + 1 and backend.runs == n + 1
        assert f"n == {n}" in entries(w)[0].parts


@pytest.mark.row("S002-113")
def test_two_backends_on_one_function_do_not_mix() -> None:
    first, second = nb(), nb()
    a, b = godynamo.optimize(add, backend=first), godynamo.optimize(add, backend=second)
    x = torch.randn(2)
    for _ in range(2):
        a(x, 1)
    assert (len(first), first.runs, len(second)) == (1, 2, 0)
    for _ in range(3):
        b(x, 1)
    assert (len(first), first.runs, len(second), second.runs) == (1, 2, 1, 3)
    assert not set(map(id, entries(a))) & set(map(id, entries(b)))


@pytest.mark.row("S002-113")
def test_two_calls_with_one_backend_do_not_mix() -> None:
    backend = nb()
    a, b = godynamo.optimize(add, backend=backend), godynamo.optimize(add, backend=backend)
    x = torch.randn(2)
    a(x, 1)
    b(x, 1)
    assert len(backend) == 2 and len(entries(a)) == len(entries(b)) == 1


@pytest.mark.row("S002-113")
def test_two_contexts_with_different_backends_do_not_mix() -> None:
    def target(x):
        return x.sin()

    first, second = nb(), nb()
    one, two = godynamo.optimize(first), godynamo.optimize(second)
    for _ in range(2):
        with one:
            target(torch.ones(2))
        with two:
            target(torch.ones(2))
    assert (len(first), first.runs, len(second), second.runs) == (1, 2, 1, 2)


# ---- what entries hold -----------------------------------------------------------------------------------------------


class Scale(torch.nn.Module):
    def __init__(self, k: float) -> None:
        super().__init__()
        self.k = k
        self.weight = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight * self.k


def apply(module, x):
    return module(x)


def make_class(k: float) -> type[torch.nn.Module]:
    class Made(Scale):
        def forward(self, x):
            return x * self.weight * k

    return Made


@pytest.mark.row("S002-114")
def test_an_entry_ends_with_the_class_it_was_made_for() -> None:
    """Modules are guarded by class and contents; only the class is held weakly."""
    w = godynamo.optimize(apply, backend=nb())
    module, x = make_class(2.0)(1.0), torch.ones(2)
    assert w(module, x).tolist() == [2.0, 2.0]
    [entry] = entries(w)
    assert f"___check_type_id(module, {id(type(module))})" in entry.parts
    dead = weakref.ref(type(module))
    assert entry.valid and entry.check(module, x, globals=globals())
    del module
    collect()
    assert dead() is None, "the entry keeps the class alive"
    assert not entry.valid and not entry.check(make_class(2.0)(1.0), x, globals=globals())
    w(Scale(1.0), x)
    assert all(e is not entry for e in entries(w))


@pytest.mark.row("S002-114")
def test_an_entry_ends_with_the_object_it_was_made_for() -> None:
    """An enum member is guarded by identity."""
    import enum

    def use(x, e):
        return x + e.value

    w = godynamo.optimize(use, backend=nb())
    kind = enum.Enum("kind", {"A": 2})
    assert w(torch.ones(1), kind.A).item() == 3.0
    [entry] = entries(w)
    assert any(part.startswith("___check_obj_id(e, ") for part in entry.parts)
    dead = weakref.ref(kind.A)
    del kind
    collect()
    assert dead() is None and not entry.valid


@pytest.mark.row("S002-114")
def test_a_new_object_at_an_old_address_is_not_served() -> None:
    w = godynamo.optimize(apply, backend=nb())
    x = torch.ones(2)
    seen: set[int] = set()
    again = 0
    with godynamo.config.patch(cache_size_limit=1000):
        for i in range(200):
            module = make_class(float(i))(1.0)
            again += id(type(module)) in seen
            seen.add(id(type(module)))
            assert w(module, x).tolist() == [float(i)] * 2
            del module
            gc.collect()
    assert again > 0, "no address was used twice: the test shows nothing"
    assert_no_internal_errors()


@pytest.mark.row("S002-114")
def test_functions_made_again_at_an_old_address_are_not_served() -> None:
    def call(fn, x):
        return fn(x)

    w = godynamo.optimize(call, backend=nb())
    x = torch.ones(1)
    with godynamo.config.patch(cache_size_limit=1000):
        for i in range(100):
            scope: dict[str, Any] = {}
            exec(f"def fn(x):\n    return x * {i}", scope)
            fn = scope.pop("fn")
            assert w(fn, x).item() == i
            del fn, scope


def resident_kib() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.row("S002-115")
def test_entries_of_dead_modules_are_freed() -> None:
    w = godynamo.optimize(apply, backend=graph_first)
    x = torch.ones(2)
    with godynamo.config.patch(cache_size_limit=100_000):
        for i in range(400):
            w(make_class(float(i))(1.0), x)
            if i % 20 == 19:
                gc.collect()
                assert len(entries(w)) <= 20
            if i == 100:
                before = resident_kib()
    collect()
    w(Scale(1.0), x)
    assert len(entries(w)) == 1 and counted("invalidated") >= 390
    assert resident_kib() - before < 40_000
    assert_no_internal_errors()


@pytest.mark.row("S002-115")
def test_modules_made_and_dropped_share_one_entry() -> None:
    """torchdynamo#49: each module got an entry, and none was ever freed."""
    w = godynamo.optimize(apply, backend=(backend := nb()))
    x = torch.ones(2)
    for _ in range(1000):
        module = Scale(3.0)
        assert w(module, x).tolist() == [3.0, 3.0]
    assert len(entries(w)) == len(backend) == 1


@pytest.mark.row("S002-115")
def test_invalidated_entries_are_unlinked() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.ones(1)
    for n in range(3):
        w(x, n)
    middle = entries(w)[1]
    ref = weakref.ref(middle)
    middle.invalidate()
    del middle
    w(x, 0)
    assert len(entries(w)) == 2
    collect()
    assert ref() is None
    with translations(1):
        assert w(x, 1).item() == 2.0


@pytest.mark.row("S002-116")
@pytest.mark.parametrize("backend", ["eager", "recording"])
def test_inputs_and_modules_are_not_kept_alive(backend: str) -> None:
    w = godynamo.optimize(apply, backend="eager" if backend == "eager" else graph_first)
    module, x = Scale(2.0), torch.ones(2)
    out = w(module, x)
    out = w(module, x)
    refs = [weakref.ref(t) for t in (module, module.weight, x, out)]
    del module, x, out
    collect()
    assert [r() for r in refs] == [None] * 4


@pytest.mark.row("S002-116")
def test_an_optimized_modules_parameters_go_with_it() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    w = godynamo.optimize(module, backend=graph_first)
    x = torch.ones(1, 2)
    w(x).sum().backward()
    refs = [weakref.ref(module), weakref.ref(module[0].weight), weakref.ref(x)]
    del module, w, x
    collect()
    assert [r() for r in refs] == [None] * 3


@pytest.mark.row("S002-116")
def test_values_across_a_break_are_not_kept_alive() -> None:
    def f(x, items):
        y = unsupported(x + 1)
        items.append(y)
        return y * 2

    w = godynamo.optimize(f, backend=graph_first)
    x, items = torch.ones(2), []
    w(x, items)
    refs = [weakref.ref(x), weakref.ref(items[0])]
    del x, items
    collect()
    assert [r() for r in refs] == [None, None]


# ---- recompiles ------------------------------------------------------------------------------------------------------


@pytest.mark.row("S002-117")
def test_a_failed_guard_makes_a_second_entry() -> None:
    w = godynamo.optimize(add, backend=(backend := nb()))
    x = torch.randn(2)
    assert torch.equal(w(x, 2), x + 2) and torch.equal(w(x, 3), x + 3)
    assert len(backend) == 2 and len(entries(w)) == 2
    with no_translation():
        for n in (2, 3, 3, 2):
            assert torch.equal(w(x, n), x + n)


@pytest.mark.row("S002-118")
def test_the_guard_that_failed_is_told() -> None:
    w = godynamo.optimize(add, backend=nb())
    x = torch.randn(2)
    w(x, 2)
    assert add.__code__ not in utils.guard_failures
    w(x, 3)
    assert "n == 2" in utils.guard_failures[add.__code__][-1]
    w(x, 2.5)
    failures = utils.guard_failures[add.__code__]
    assert len(failures) == 3, "one for each entry that did not serve"
    assert "___check_type_id(n" in failures[-1]


@pytest.mark.row("S002-119")
def test_code_marked_skip_is_left_alone_by_a_look_at_the_mark() -> None:
    def target(x):
        return x + 1

    godynamo.skip(target)
    assert _C.code_flags(target.__code__) & _C.CODE_SKIP
    backend = nb()
    x = torch.ones(1)
    with godynamo.optimize(backend):
        before = _C.counters()
        for _ in range(100):
            target(x)
        after = _C.counters()
    assert after["hook_skip"] - before["hook_skip"] == 100
    assert after["golib_calls"] == before["golib_calls"] and after["translations"] == before["translations"]
    assert len(backend) == 0


@pytest.mark.row("S002-119")
def test_a_skipped_function_under_its_own_callable_calls_no_go() -> None:
    def generator(x):
        yield x + 1

    w = godynamo.optimize(generator, backend=nb())
    list(w(torch.ones(1)))
    assert w.cache.skip
    before = _C.counters()
    for _ in range(50):
        assert next(iter(w(torch.ones(1)))).item() == 2.0
    after = _C.counters()
    assert {k: after[k] - before[k] for k in after if after[k] != before[k]} in ({}, {"skipped": 50})


# ---- threads, fork, exit ---------------------------------------------------------------------------------------------


@pytest.mark.row("S002-120")
def test_eight_threads_first_calling_one_function() -> None:
    for round_ in range(5):
        backend = nb()

        def f(x, n):
            y = x * n + 1
            y = unsupported(y)
            return y - n

        w = godynamo.optimize(f, backend=backend)
        barrier = threading.Barrier(8)
        results: dict[int, Any] = {}

        def work(i: int) -> None:
            x = torch.full((3,), float(i))
            barrier.wait()
            results[i] = [w(x, n) for n in (2, 3, 2)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert sorted(results) == list(range(8))
        for i, values in results.items():
            for n, value in zip((2, 3, 2), values, strict=True):
                assert value.tolist() == [i * n + 1.0 - n] * 3
        found = [e.text for e in entries(w)]
        assert len(found) == len(set(found)) <= 2, "at most one entry for each set of guards"
        assert len(backend) <= 4
    assert_no_internal_errors()


def run_python(code: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


FORK = """
import gc, os, signal, torch, godynamo
torch.set_num_threads(1)
calls = []
def nb(gm, example_inputs):
    calls.append(gm)
    return gm.forward
@godynamo.optimize(nb)
def f(x, n):
    return x + n
x = torch.ones(2)
f(x, 1)
pid = os.fork()
if pid == 0:
    signal.alarm(40)
    translations = godynamo._C.counters()["translations"]
    assert f(x, 1).tolist() == [2.0, 2.0]
    assert godynamo._C.counters()["translations"] == translations, "a hit needs no Go"
    assert len(calls) == 1
    assert f(x, 2).tolist() == [3.0, 3.0]
    assert len(calls) == 2, "the child cannot compile"
    assert f(x, 2).tolist() == [3.0, 3.0] and len(calls) == 2
    gc.collect()
    os._exit(7)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
assert f(x, 3).tolist() == [4.0, 4.0] and len(calls) == 2
print("done")
"""


@pytest.mark.row("S002-121")
def test_a_forked_child_serves_and_compiles() -> None:
    done = run_python(FORK)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr[-2000:]


@pytest.mark.row("S002-121")
def test_without_reloading_a_child_runs_new_cases_in_cpython() -> None:
    program = FORK.replace("calls = []", "calls = []\ngodynamo.config.fork_reload = False", 1).replace(
        'assert len(calls) == 2, "the child cannot compile"', "assert len(calls) == 1"
    )
    program = program.replace("assert f(x, 2).tolist() == [3.0, 3.0] and len(calls) == 2\n    gc", "gc")
    done = run_python(program)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr[-2000:]


def child_work(n: int) -> list[float]:
    return OPTIMIZED_FOR_POOL(torch.ones(2), n).tolist()


OPTIMIZED_FOR_POOL = godynamo.optimize(add)


@pytest.mark.row("S002-121")
def test_multiprocessing_by_fork() -> None:
    OPTIMIZED_FOR_POOL(torch.ones(2), 1)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(child_work, [1, 2, 3, 4]).get(60) == [[1.0 + n] * 2 for n in (1, 2, 3, 4)]


EXIT = """
import atexit, threading, time, torch, godynamo
torch.set_num_threads(1)
@godynamo.optimize(lambda gm, example_inputs: gm.forward)
def f(x, n):
    return x + n
x = torch.ones(2)
f(x, 0)
def at_exit():
    assert f(x, 0).tolist() == [1.0, 1.0]
    assert f(x, 1).tolist() == [2.0, 2.0]
atexit.register(at_exit)
def forever():
    n = 0
    while True:
        passes(x, n % 5)
        n += 1
# No operation of torch's in there: a daemon thread that comes back from one at exit ends the process without godynamo
# too.
@godynamo.optimize(lambda gm, example_inputs: gm.forward)
def passes(x, n):
    return x, n
threading.Thread(target=forever, daemon=True).start()
class Late:
    def __del__(self, f=f, x=x): # globals may be None by then, in plain Python too
        f(x, 0)
        f(x, 7)
late = Late()
context = godynamo.optimize(lambda gm, example_inputs: gm.forward)
context.__enter__()
time.sleep(0.02)
"""


@pytest.mark.row("S002-122")
def test_exit_with_atexit_daemon_threads_and_an_open_context() -> None:
    for _ in range(5):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", EXIT],
                env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors[-2000:]
            assert errors == ""
