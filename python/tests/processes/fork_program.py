"""Optimized functions in forked processes: one scenario per run, `python fork_program.py SCENARIO`.

A failure here may be a process that hangs forever, so every wait has a limit, and test_fork.py kills the whole session
if the limit is exceeded. A child reports by its exit status and, if it fails, its traceback.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback

import torch
from torch.utils.data import DataLoader, Dataset

import godynamo
from godynamo import _C

CHILD_SECONDS = 20


def plain(x):
    """The parent has called this function: a call in a child is a hit."""
    return (x + 1).relu() * 2


def other(x, scale=3):
    """The parent has not called this function: a call in a child is a miss."""
    t = x.sin() * scale
    return [t, t.sum()]


@godynamo.disable
def opaque(x):
    return x - 1


def breaks(x):
    """Needs a resume function."""
    y = opaque(x * 2)
    return y.relu() if y.sum() > 0 else y


class Model(torch.nn.Module):
    """A miss whose guards traverse a module."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x).relu()


class Graphs:
    """A custom backend: graphs are also built in the child."""

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        return gm.forward


fast = godynamo.optimize(plain)
fast_other = godynamo.optimize(other)
fast_breaks = godynamo.optimize(breaks)
model = Model()
fast_model = godynamo.optimize(model)


def new_function(k):
    """Return a function that has not been translated yet."""

    def made(x):
        return (x * k).tanh() + k

    return made


def exercise(k=1.0):
    """Run hits, then misses of every kind; return the changes of the counters."""
    before = _C.counters()
    hits()
    assert _C.counters()["translations"] == before["translations"], "a hit was none"
    misses(k)
    after = _C.counters()
    assert after["internal_errors"] == 0
    return {name: after[name] - before[name] for name in after}


def hits():
    """Call what the parent has translated."""
    x = torch.randn(4)
    for _ in range(3):
        assert torch.equal(fast(x), plain(x))


def misses(k):
    """Call functions of several kinds that are new, at least in this process."""
    x = torch.randn(4)
    for _ in range(2):
        result, expected = fast_other(x), other(x)
        assert torch.equal(result[0], expected[0])
        assert torch.equal(result[1], expected[1])
        assert torch.equal(fast_breaks(x), breaks(x))
        assert torch.equal(fast_model(x), model(x))
    for backend in ("eager", Graphs()):
        made = new_function(k)
        optimized = godynamo.optimize(made, backend=backend)
        for _ in range(2):
            assert torch.equal(optimized(x), made(x))
    churn()
    assert torch.equal(godynamo.optimize(new_function(k + 1))(x), new_function(k + 1)(x))


def churn():
    """Translate enough that Go collects garbage; an old copy of the library would hang there."""
    x = torch.randn(3)
    for i in range(100):
        namespace = {}
        exec(f"def f(x):\n    t = x + {i}\n    return [t.relu(), t * {i}, {{'k': t.sum()}}]\n", namespace)
        optimized = godynamo.optimize(namespace["f"])
        assert torch.equal(optimized(x)[1], namespace["f"](x)[1])
    gc.collect()


def warm_up():
    """Translate and run in the parent: its Go library is loaded, its collector has run."""
    fast(torch.randn(4))
    churn()
    assert _C.golib_loaded()


def in_child(body):
    """Fork and return the child's pid; the child runs body() and exits with status 0, or 1 after an exception."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        body()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait_for(pid, seconds=CHILD_SECONDS):
    """Wait for the child to end in time; one that hangs is killed and reported."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"child: {os.waitstatus_to_exitcode(status)}"
            return
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"the child hung for {seconds} s")


# ---- scenarios ----


def a_loop_of_forks():
    """Fork in a loop; each child has hits and misses, and the parent translates in between."""
    warm_up()
    for turn in range(15):
        wait_for(in_child(lambda: exercise(float(turn))))
        fresh = new_function(turn + 0.5)
        x = torch.randn(4)
        assert torch.equal(godynamo.optimize(fresh)(x), fresh(x))
    exercise()


def many_children_at_once():
    """Eight children have misses at the same time."""
    warm_up()
    for _ in range(2):
        for pid in [in_child(lambda k=k: exercise(float(k))) for k in range(8)]:
            wait_for(pid, 2 * CHILD_SECONDS)


def the_parent_never_translated():
    """The library is loaded for the first time in the child."""
    assert not _C.golib_loaded()

    def body():
        x = torch.randn(4)
        assert torch.equal(fast(x), plain(x))
        exercise()

    for _ in range(5):
        wait_for(in_child(body))
    assert not _C.golib_loaded()


def grandchildren():
    """A child that has loaded its own copy of the library forks again."""
    warm_up()

    def body():
        exercise(1.0)
        wait_for(in_child(lambda: exercise(2.0)))
        wait_for(in_child(lambda: wait_for(in_child(lambda: exercise(3.0)))))
        exercise(4.0)

    for _ in range(4):
        wait_for(in_child(body), 3 * CHILD_SECONDS)


def without_a_fresh_copy():
    """With config.fork_reload = False, new cases run in CPython, and hits still work."""
    warm_up()
    godynamo.config.fork_reload = False

    def body():
        assert exercise(1.0)["translated"] == 0
        assert not _C.golib_loaded()

    for _ in range(5):
        wait_for(in_child(body))


def fork_during_a_translation():
    """Fork while another thread is inside a backend: in the child, no thread owns that translation's mark and lock."""
    warm_up()
    inside, leave = threading.Event(), threading.Event()

    class Waiting:
        def __call__(self, gm, example_inputs):
            inside.set()
            if os.getpid() == parent:
                leave.wait(30)
            return gm.forward

    parent = os.getpid()
    made = new_function(5.0)
    optimized = godynamo.optimize(made, backend=Waiting())
    x = torch.randn(4)
    results = []
    thread = threading.Thread(target=lambda: results.append(optimized(x)))
    thread.start()
    assert inside.wait(30)

    def body():
        for _ in range(3):
            assert torch.equal(optimized(x), made(x))
        assert len(optimized.cache.entries()) == 1, "the case was never translated in the child"
        exercise()

    for _ in range(3):
        wait_for(in_child(body))
    leave.set()
    thread.join(30)
    assert torch.equal(results[0], made(x))


def fork_inside_a_backend():
    """A backend forks workers, as compilers do; they run Python and exit."""
    warm_up()

    class Forking:
        def __call__(self, gm, example_inputs):
            wait_for(in_child(lambda: (plain(torch.randn(3)), fast(torch.randn(4)), gc.collect())))
            return gm.forward

    x = torch.randn(4)
    for k in range(10):
        made = new_function(float(k))
        assert torch.equal(godynamo.optimize(made, backend=Forking())(x), made(x))
    churn()
    exercise()


class Leaving:
    """A backend that forks; the child returns from it, or raises, and continues on the parent's stack."""

    def __init__(self, ending=None):
        self.ending = ending
        self.parent = os.getpid()

    def __call__(self, gm, example_inputs):
        sys.stdout.flush()
        pid = os.fork()
        if pid:
            wait_for(pid, 2 * CHILD_SECONDS)
        elif self.ending is not None:
            raise self.ending
        return gm.forward

    def in_child(self):
        """Return whether this is the child, which must then finish by itself."""
        return os.getpid() != self.parent


def leave(body):
    """Run body() and exit, as in in_child."""
    try:
        body()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def a_child_returns_out_of_a_backend():
    """A child forked inside a translation continues: this call runs in CPython, later ones are translated."""
    warm_up()
    x = torch.randn(4)
    for k in range(8):
        backend = Leaving()
        made = new_function(float(k))
        optimized = godynamo.optimize(made, backend=backend)
        result = optimized(x)
        if backend.in_child():

            def body():
                assert torch.equal(result, made(x))
                assert _C.counters()["forked_inside"] == 1
                assert len(optimized.cache.entries()) == 0
                assert torch.equal(godynamo.optimize(made)(x), made(x))
                exercise(float(k))

            leave(body)
        assert torch.equal(result, made(x))
        assert len(optimized.cache.entries()) == 1
    churn()
    exercise()


def a_child_raises_out_of_a_backend():
    """sys.exit, or a backend that fails, ends the child's call as it would end the parent's."""
    warm_up()
    x = torch.randn(4)
    for ending, expected in (
        (SystemExit(3), SystemExit),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (ValueError("no"), godynamo.exc.BackendCompilerFailed),
    ):
        for _ in range(2):
            backend = Leaving(ending)
            try:
                godynamo.optimize(new_function(1.0), backend=backend)(x)
                error = None
            except BaseException as e:
                error = e
            if backend.in_child():

                def body():
                    assert isinstance(error, expected), error
                    exercise()

                leave(body)
            assert error is None
    exercise()


def a_thread_forks_inside_a_backend():
    """A child returns out of a backend in a separate thread, while another thread translates."""
    warm_up()
    x = torch.randn(4)
    errors = []

    def work(k):
        try:
            backend = Leaving()
            made = new_function(float(k))
            result = godynamo.optimize(made, backend=backend)(x)
            if backend.in_child():
                leave(lambda: exercise(float(k)))
            assert torch.equal(result, made(x))
        except BaseException as e:
            errors.append(e)

    def translate():
        try:
            churn()
        except BaseException as e:
            errors.append(e)

    for k in range(4):
        threads = [threading.Thread(target=work, args=(k,)), threading.Thread(target=translate)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(3 * CHILD_SECONDS)
            assert not thread.is_alive()
    assert not errors


def threads_in_the_child():
    """Several threads of a child have misses at once."""
    warm_up()

    def body():
        results = []

        def work(k):
            hits()
            misses(float(k))
            results.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(CHILD_SECONDS)
        assert sorted(results) == list(range(4))
        assert _C.counters()["internal_errors"] == 0

    for _ in range(5):
        wait_for(in_child(body), 2 * CHILD_SECONDS)


def fork_while_threads_call():
    """Threads of the parent translate all the time; forked children do their own translations."""
    warm_up()
    stop = threading.Event()
    errors = []

    def caller(k):
        try:
            while not stop.is_set():
                churn()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=caller, args=(k,), daemon=True) for k in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(6):
            wait_for(in_child(lambda: exercise(float(turn))), 2 * CHILD_SECONDS)
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert not errors


class Samples(Dataset):
    """Each sample comes from optimized functions; workers meet new shapes and new functions."""

    def __init__(self, count):
        self.count = count
        self.late = {}

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        x = torch.arange(4.0) + i
        y = fast_other(x)[0] if i % 2 else fast_breaks(x)
        z = fast(torch.arange(float(i % 5 + 1)))
        late = self.late.setdefault(i % 3, godynamo.optimize(new_function(float(i % 3))))
        counters = _C.counters()
        return fast(x), y, z.sum(), late(x), os.getpid(), counters["translated"], counters["internal_errors"]


def expected_sample(i):
    x = torch.arange(4.0) + i
    y = other(x)[0] if i % 2 else breaks(x)
    return plain(x), y, plain(torch.arange(float(i % 5 + 1))).sum(), new_function(float(i % 3))(x)


def collate(samples):
    """Runs in the worker, too."""
    stacked = [fast(torch.stack(column)) for column in list(zip(*samples, strict=True))[:4]]
    return stacked, [sample[4:] for sample in samples]


def data_loader():
    """Two fork workers, for a few epochs, with and without persistence; the parent trains on their samples."""
    warm_up()
    fast_model(torch.randn(4))
    for persistent in (False, True):
        loader = DataLoader(
            Samples(24),
            batch_size=4,
            num_workers=2,
            collate_fn=collate,
            multiprocessing_context="fork",
            persistent_workers=persistent,
            timeout=CHILD_SECONDS,
        )
        for _ in range(3):
            workers, batches = set(), 0
            for b, (columns, reports) in enumerate(loader):
                expected = [
                    plain(torch.stack(c)) for c in zip(*map(expected_sample, range(4 * b, 4 * b + 4)), strict=True)
                ]
                for actual, want in zip(columns, expected, strict=True):
                    assert torch.equal(actual, want)
                fast_model(columns[0]).sum().backward()
                workers |= {pid for pid, *_ in reports}
                assert all(translated > 0 and errors == 0 for _, translated, errors in reports)
                batches += 1
            assert batches == 6
            assert len(workers) == 2
            assert os.getpid() not in workers
        del loader


def pool_task(k):
    """The task of a pool's worker."""
    done = exercise(float(k))
    return os.getpid(), done["translated"]


def fork_pool():
    """A multiprocessing pool that replaces its workers after a few tasks."""
    warm_up()
    context = multiprocessing.get_context("fork")
    with context.Pool(2, maxtasksperchild=3) as pool:
        results = pool.map_async(pool_task, range(12), chunksize=1).get(timeout=6 * CHILD_SECONDS)
    workers = {pid for pid, _ in results}
    assert len(workers) >= 3
    assert os.getpid() not in workers
    assert all(translated > 0 for _, translated in results)
    exercise()


@godynamo.optimize
def decorated(x):
    """Pickle finds this function by its name."""
    return (x * 3).relu() + opaque(x)


def send_functions():
    """Optimized functions are pickled by reference, so they can be sent to workers."""
    warm_up()
    inputs = [torch.arange(4.0) + i for i in range(6)]
    expected = [decorated.__wrapped__(x) for x in inputs]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = pool.map_async(decorated, inputs).get(timeout=CHILD_SECONDS)
    assert all(map(torch.equal, results, expected))
    assert all(map(torch.equal, map(decorated, inputs), expected))


SCENARIOS = [
    a_loop_of_forks,
    many_children_at_once,
    the_parent_never_translated,
    grandchildren,
    without_a_fresh_copy,
    fork_during_a_translation,
    fork_inside_a_backend,
    a_child_returns_out_of_a_backend,
    a_child_raises_out_of_a_backend,
    a_thread_forks_inside_a_backend,
    threads_in_the_child,
    fork_while_threads_call,
    data_loader,
    fork_pool,
    send_functions,
]

if __name__ == "__main__":
    torch.set_num_threads(1)
    {scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[1]]()
    print("done")
