"""The short form of make fuzz-signals, and what its judge detects; all in children with their own signal handlers."""

from __future__ import annotations

import signal

import pytest
import torch

import harness.fuzz_children as children
import signals_judge as judging
from fuzz_signals_run import SIGNALS, programs
from signals_program import HEADER, PRELUDE

BODY = """
    LOG.append(1)
    with Own(1), LOCK, torch.no_grad():
        LOG.append("in")
        x = torch.ops.sig.tick(x)
        LOG.append(2)
    try:
        y = torch.ops.sig.pytick(y)
    finally:
        LOG.append(3)
    return x, y
"""


def text(
    kind="timeout",
    body=BODY,
    backend="eager",
    calls=(("hit", "tick", 0.0), ("hit", "tick", 0.5), ("first", "tick", 0.5)),
):
    case = {"kind": kind, "backend": backend, "through": "fn", "arrivals": list(calls)}
    return f"{PRELUDE}\nOUT = Out()\n\n{HEADER}{body}\n\nCASE = {case!r}\n"


def judged(program, kind=SIGNALS, timeout=60.0):
    return next(iter(children.in_child(kind, [("program", program, False)], timeout)))[1]


@pytest.fixture(params=["as they are", "ignored"])
def _dispositions(request):
    """Run the test also with SIGINT and SIGTERM ignored, as a shell's background commands do."""
    if request.param == "as they are":
        yield
        return
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_dispositions")
def test_random_programs_are_cpythons():
    found = [(seed, str(m)) for seed, m in children.mismatches(SIGNALS, list(range(6))) if m is not None]
    assert not found, "\n".join(f"fuzz_signals_run.py --count 1 --seed {seed}: {m}" for seed, m in found)


def test_no_memory_at_random_allocations():
    found = [
        (seed, str(m)) for seed, m in children.mismatches(programs(judging.judge_memory), [0, 1, 2]) if m is not None
    ]
    assert not found, "\n".join(f"fuzz_signals_run.py --nomemory --count 1 --seed {seed}: {m}" for seed, m in found)


def test_what_cpython_does_is_right(monkeypatch):
    monkeypatch.setattr(judging, "wrapped", lambda program: program.entry)
    assert [m for _, m in children.mismatches(SIGNALS, list(range(12))) if m is not None] == []


def test_a_seed_is_one_program_that_compiles():
    for seed in range(300):
        compile(SIGNALS.text(seed), "p", "exec")
    assert SIGNALS.text(7) == SIGNALS.text(7) != SIGNALS.text(8)


def test_the_programs_have_every_part():
    bodies = "\n".join(SIGNALS.text(seed).split("\ndef fn(", 1)[1] for seed in range(400))
    words = (
        "LOCK RLOCK Own( managed( no_grad() autocast( suppress( ExitStack() try: except~Timeout except~BaseException "
        "finally: "
        "else: for while turns( graph_break() print( callback( sig.tick sig.pytick Halved.apply Mortal( rand( add_( "
        "COUNT o.prop "
        "next( .close() def~f raise return 'interrupt' 'timeout' 'exit' 'sent' 'returns' 'forward' 'wrapper' "
        "'aot_eager' "
        "'calls' 'alloc' 'thread'"
    )
    for word in words.split():
        assert word.replace("~", " ") in bodies, word


DRAWS = """
    with torch.no_grad():
        try:
            x = x + torch.randint(0, 3, (3,))
            y = y + torch.rand(3)
        except Timeout as e:
            LOG.append(("caught", type(e).__name__))
    return x, y
"""
DIES = """
    for v in turns(x, 2):
        y = torch.relu(x)
    return x, y
"""
SPLIT = """
    try:
        for v in turns(x, 2):
            y = torch.bernoulli(torch.full((3,), 0.5))
            callback(6)
    except Timeout as e:
        LOG.append(("caught", type(e).__name__))
    return x, y
"""


EXIT = """
    with LOCK:
        try:
            raise Timeout("own")
        except Timeout as e:
            l.append(o.prop)
            raise
    return x, y
"""
STACK = """
    with contextlib.ExitStack() as stack, torch.no_grad():
        stack.callback(callback, 1)
        stack.enter_context(Own(5))
        d.pop("k", None)
        if x.sum() > 0:
            x = guarded(x, 7)
    return x, y
"""
WAITING = """
    print(8)
    with managed(2), torch.no_grad():
        x = guarded(x, 4)
        o.a = 3
    LOG.append(2)
    return x, y
"""
DRAWN_LATER = """
    print(2)
    x = rescued(x)
    l.append(8)
    x = x + torch.randint(0, 3, (3,))
    return x, y
"""
INNER_TRY = """
    try:
        y[0] = x[1]
        try:
            d.setdefault("s", []).append(6)
        finally:
            LOG.append("f1")
        x = x * 2
    finally:
        LOG.append("f4")
    return x, y
"""
IN_PLACE = """
    z = x * 2
    o.x = z
    z.add_(1)
    try:
        x[:1] += 1
        z = z + x
    finally:
        l[:] = [8]
        LOG.append(1)
    for v in turns(z, 2):
        print(8)
    return z, y
"""
FINALLY = """
    with Own(5):
        try:
            dead = Mortal(4)
            x.clamp_(-4, 4)
            dead = None
        finally:
            LOG.append("f4")
            x = rescued(x)
        godynamo.graph_break()
    return x, y
"""
STORED = """
    x = x * 2
    y[0] = x[1]
    o.x = x
    x = rescued(x.clamp(-8, 8))
    return x, y
"""
DRAWN_AND_CHANGED = """
    x[:1] += 1
    y = torch.bernoulli(torch.full((3,), 0.5))
    setattr(o, 'b', 6)
    return x, y
"""
MODES = """
    with torch.no_grad():
        x = x.clamp(-8, 8)
        x = -x
        dead = Mortal(5)
    return x, y
"""
BODIES = {
    "a draw": DRAWS,
    "a change before a store": STORED,
    "effects that wait": WAITING,
    "a draw behind effects": DRAWN_LATER,
    "an inner try": INNER_TRY,
    "changes in place": IN_PLACE,
    "a generator dies": DIES,
    "a generator in a split": SPLIT,
    "the exit of a raising block": EXIT,
    "an exit stack": STACK,
}


@pytest.mark.parametrize("backend", ["eager", "forward"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_arrivals_at_every_allocation_of_a_hit(body, backend):
    calls = [("hit", "alloc", k / 24) for k in range(24)]
    found = judged(text("timeout", body, backend, calls))
    assert found is None, str(found)


@pytest.mark.parametrize(("kind", "body"), [("sent", MODES), ("timeout", DRAWN_AND_CHANGED)], ids=["modes", "changes"])
def test_arrivals_in_a_graph_that_aotautograd_compiles(kind, body):
    """AOTAutograd drops mode switches, and moves in-place changes to the end of the graph."""
    found = judged(text(kind, body, "aot_eager", [("hit", "alloc", k / 96) for k in range(96)]))
    assert found is None, str(found)


@pytest.mark.parametrize("body", [FINALLY, INNER_TRY], ids=["finally", "an inner try"])
def test_arrivals_in_a_translation(body):
    calls = [("first", "alloc", 0.01 + k / 40) for k in range(36)]
    found = judged(text("sent", body, "wrapper", calls))
    assert found is None, str(found)


def failing(effect):
    """Return a wrapper that makes a program's function wrong: it applies ``effect`` to each exception."""

    def wrap(program):
        def call(*args):
            try:
                return program.entry(*args)
            except BaseException as error:
                return effect(program, error, args)

        return call

    return wrap


def reraised(effect):
    def then(program, error, args):
        effect(program.ns)
        raise error

    return failing(then)


def again(program, error, args):
    del program.ns["LOG"][:]
    program.ns["LOG"].append("HANDLER")
    if program.ns["LOCK"].locked():
        program.ns["LOCK"].release()
    return program.entry(*args)


def converted(program, error, args):
    raise RuntimeError("BackendCompilerFailed: Timeout") from error


def broken_afterwards(program):
    """Return a wrong form that can no longer be called after its first exception."""
    left = [program.entry]

    def call(*args):
        try:
            return left[0](*args)
        except BaseException:
            left[0] = None
            raise

    return call


@pytest.mark.parametrize(
    ("wrap", "kind"),
    [
        (failing(again), "lost"),
        (failing(converted), "wrapped"),
        (reraised(lambda ns: ns["LOCK"].acquire(False)), "not CPython's: locks"),
        (reraised(lambda ns: torch.set_grad_enabled(False)), "not CPython's: modes"),
        (reraised(lambda ns: ns["LOG"].pop()), "not CPython's: effects"),
        (reraised(lambda ns: ns["LOG"].append(3)), "not CPython's: effects"),
        (reraised(lambda ns: signal.raise_signal(signal.SIGUSR1)), "handled twice"),
        (broken_afterwards, "afterwards: end, effects"),
        (lambda program: lambda *args: (None, program.entry(*args))[0], "without an arrival: end"),
    ],
)
def test_what_goes_wrong_is_seen(monkeypatch, wrap, kind):
    monkeypatch.setattr(judging, "wrapped", wrap)
    assert judged(text()).kind == kind


@pytest.mark.parametrize("kind", ["interrupt", "timeout", "exit", "sent", "returns"])
def test_each_kind_of_arrival_arrives(monkeypatch, kind):
    seen = []

    def wrap(program):
        def call(*args):
            try:
                return program.entry(*args)
            except BaseException:
                seen.append(1)
                raise

        return call

    monkeypatch.setattr(judging, "wrapped", wrap)
    shown = children.Mismatch("seen", 0)
    monkeypatch.setattr(judging, "verdict", lambda program, expected, found, index: shown if seen else None)
    found = judged(text(kind))
    assert found is None if kind == "returns" else found.kind == "seen"


def test_a_crash_and_a_hang_are_reported():
    assert "Fatal Python error" in judged(text(body="\n    import os\n    os.abort()\n")).got
    forever = text(body="\n    import time\n    time.sleep(1000 * (threading.active_count() > 0))\n")
    judging.PLAIN_LIMIT, before = 1000.0, judging.PLAIN_LIMIT
    try:
        assert judged(forever, timeout=2.0).kind == "hang"
    finally:
        judging.PLAIN_LIMIT = before


REBOUND = """
    for i in range(3):
        try:
            g = turns(x, 3)
            x = next(g).clamp(-8, 8)
            LOG.append("in")
            sys.stdout.flush()
        finally:
            LOG.append("f")
            continue
    return x, y
"""


def test_a_frame_that_cpython_goes_on_with_owns_its_variables():
    """After an arrival CPython runs the next iteration, which rebinds `g` and thereby closes the earlier generator."""
    arrivals = tuple(("hit", "alloc", i / 150) for i in range(150))
    assert judged(text(body=REBOUND, calls=arrivals)) is None
