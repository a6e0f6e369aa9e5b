"""Objects die when they would in CPython: finalizers, weak references and files show the moment.

Every function runs under CPython and translated, with a log of the observed order.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import _C, config
from godynamo._translator import callables
from godynamo.testing import CompileCounter

LOG: list[Any] = []


class Noisy:
    """Records its death."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        LOG.append(f"del {self.name}")


class Plain:
    """Can be weakly referenced."""


@godynamo.disable
def make(name: str) -> Noisy:
    return Noisy(name)


@godynamo.disable
def make_plain() -> Plain:
    return Plain()


@godynamo.disable
def note(what: Any) -> None:
    LOG.append(what)


def kept_though_never_read(x):
    """The variable is dead, but its object is still alive."""
    thing = make("a")
    note("mid")
    x = x + 1
    note("end")
    return x


def kept_for_a_weak_reference(x):
    thing = make_plain()
    ref = weakref.ref(thing)
    x = x + 1
    note("between")
    return ref() is not None


def made_here_for_a_weak_reference(x):
    thing, row = Plain(), [Plain()]
    ref, inner, proxy = weakref.ref(thing), weakref.ref(row[0]), weakref.proxy(thing)
    x = x + 1
    proxy.a = 1
    note("between")
    return ref() is not None, inner() is not None, proxy.a, x


def a_directory_is_there(x):
    directory = tempfile.TemporaryDirectory()
    path = directory.name
    x = x + 1
    note("between")
    return os.path.isdir(path), x


def kept_in_a_tuple(x):
    pair = (make("a"), make("b"))
    x = x + 1
    note("mid")
    return x


def deleted(x):
    thing = make("a")
    note("before")
    x = x + 1
    del thing
    note("after")
    return x


def rebound_before_an_effect(x):
    thing = make("a")
    note("before")
    thing = None
    LOG.append("after rebinding")
    note("end")
    return x + 1


def a_weak_reference_dies(x):
    thing = make_plain()
    ref = weakref.ref(thing)
    del thing
    return ref() is None, x + 1


def rebound_in_a_loop(x):
    for i in range(3):
        thing = make(f"turn {i}")
        x = x + 1
        note(i)
    return x


def a_temporary(x):
    LOG.append(make("a").name)
    LOG.append("after")
    return x + 1


def made_by_the_function(x):
    thing = Noisy("a")
    x = x + 1
    LOG.append("mid")
    return x


def made_by_the_function_and_deleted(x):
    thing = Noisy("a")
    x = x + 1
    note("before")
    del thing
    LOG.append("after")
    return x


def taken_out_of_a_list(x):
    things = [make("a"), make("b")]
    note("made")
    things.pop()
    LOG.append("popped")
    note("then")
    things.clear()
    LOG.append("cleared")
    return x + 1


def an_exception_lets_go(x):
    try:
        thing = make("a")
        raise ValueError(thing)
    except ValueError:
        note("handled")
    LOG.append("after")
    return x + 1


def an_exception_is_freed(x):
    try:
        thing = make_plain()
        ref = weakref.ref(thing)
        raise ValueError(thing)
    except ValueError:
        del thing
        note("handled")
    gone = ref() is None
    return gone, x + 1


DEAD: set[str] = set()


class Counted:
    """Changes a global when it dies."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        DEAD.add(self.name)


@godynamo.disable
def make_counted(name: str) -> Counted:
    return Counted(name)


def a_finalizer_changes_what_is_read_next(x):
    DEAD.clear()
    seen_dead = []
    for name in ("a", "b"):
        thing = make_counted(name)
        x = x + 1
        seen_dead.append(len(DEAD))
    thing = None
    seen_dead.append(len(DEAD))
    cell = make_counted("c")

    def closure():
        return cell

    note(closure().name)
    cell = None
    return seen_dead, len(DEAD), x


class Looped:
    def __init__(self) -> None:
        self.loop = self


def cycles(x):
    pair = [Looped(), make("a")]
    note("split")
    pair = None
    note("after")
    return x + 1


def held_by_a_list_that_a_split_makes_real(x):
    things = [Plain() for _ in range(2)]
    refs = [weakref.ref(thing) for thing in things]
    note("split")
    alive = [ref() is not None for ref in refs]
    things = None
    note("split")
    return alive, [ref() is None for ref in refs], x + 1


def a_class_of_the_function(x):
    class Local:
        pass

    Local.itself = Local
    thing = Local()
    thing.itself = thing
    ref = weakref.ref(Local)
    note("split")
    del thing, Local
    gc.collect()
    return ref() is None, x + 1


def counted_by_the_collector(x):
    things = [Looped()]
    gc.collect()
    del things
    y = x + 1
    return gc.collect() > 0, sys.getrefcount(y), y


def opened_in_a_callee(x):
    def inner(y):
        thing = make("a")
        return y * 2

    y = inner(x)
    LOG.append("back")
    return y + 1


DEEP = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(80)))


def rebound_after_a_long_loop(x):
    """The loop visits more values than the translator visits in a frame when it searches for released objects."""
    thing = make("a")
    modules = list(DEEP.modules())
    thing = None
    return x + 1, len(LOG), len(modules)


def taken_out_of_a_list_after_a_long_loop(x):
    """As above, but no variable holds the object itself."""
    things = [make("a"), make("b")]
    note("made")
    modules = [list(DEEP.modules()) for _ in range(2)]
    things.pop()
    return x + 1, len(LOG), len(modules)


def take(things, x):
    y = x * 2
    things.pop()
    LOG.append("popped")
    return y


def taken_out_in_a_callee(x):
    things = [make("a"), make("b")]
    note("made")
    y = take(things, x)
    LOG.append("back")
    return y + 1


class Block:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        LOG.append("exit")

    def __del__(self):
        LOG.append("del block")


@godynamo.disable
def make_block() -> Block:
    return Block()


def a_block_around_a_long_loop(x):
    """Only the value stack holds the object, as its bound __exit__."""
    with make_block():
        modules = [list(DEEP.modules()) for _ in range(2)]
        x = x + 1
        note("inside")
        DEEP.train()
    LOG.append("after")
    return x + 1, len(LOG), len(modules)


def released_or_not_after_a_long_loop(x):
    """Only some calls release an object with a finalizer."""
    CALLS.append(1)
    thing = make_plain() if len(CALLS) % 3 else make("a")
    modules = list(DEEP.modules())
    LOG.append("listed")
    thing = None
    return x + 1, len(LOG), len(modules)


CALLS: list[int] = []

FUNCTIONS: list[Callable[..., Any]] = [
    kept_though_never_read, kept_for_a_weak_reference, made_here_for_a_weak_reference, a_directory_is_there,
    kept_in_a_tuple,
    deleted,
    rebound_before_an_effect, a_weak_reference_dies, rebound_in_a_loop, a_temporary, made_by_the_function,
    made_by_the_function_and_deleted, taken_out_of_a_list, an_exception_lets_go, an_exception_is_freed, cycles,
    held_by_a_list_that_a_split_makes_real, a_class_of_the_function,
    a_finalizer_changes_what_is_read_next,
    opened_in_a_callee,
    rebound_after_a_long_loop, taken_out_of_a_list_after_a_long_loop,
    taken_out_in_a_callee, a_block_around_a_long_loop, released_or_not_after_a_long_loop,
]  # fmt: skip


def seen(fn: Callable[..., Any]) -> tuple[Any, ...]:
    """Return a call's results and log."""
    LOG.clear()
    gc.disable()
    try:
        result = fn(torch.arange(4.0))
        LOG.append("returned")
    finally:
        gc.enable()
    gc.collect()
    values = result if isinstance(result, tuple) else (result,)
    return tuple(v.tolist() if isinstance(v, torch.Tensor) else v for v in values), list(LOG)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
def test_lifetimes(fn: Callable[..., Any], backend: str) -> None:
    CALLS.clear()
    expected = [seen(fn) for _ in range(3)]
    CALLS.clear()
    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=backend if backend == "eager" else counter)
    for call in range(3):
        assert seen(compiled) == expected[call], f"call {call}"
    assert backend == "eager" or counter.op_count > 0


def raised_after_an_operation(x):
    thing = make("a")
    y = x + 1
    raise KeyError(y)


def raised_with_a_cause(x):
    thing = make("a")
    y = x + 1
    print(len(LOG))
    raise KeyError(y) from ValueError(y)


@godynamo.disable
def make_error(value: Any) -> Exception:
    return KeyError(value)


def raised_from_a_call(x):
    thing = make("a")
    raise make_error(x + 1)


def raised_in_a_callee(x):
    def inner(y):
        raise KeyError(y + 1)

    thing = make("a")
    inner(x)


def raised_in_a_handler(x):
    thing = make("a")
    try:
        raise KeyError(x + 1)
    except KeyError as error:
        note("handled")
        raise ValueError(x) from error


def raised_in_a_block(x):
    thing = make("a")
    with torch.no_grad():
        raise KeyError(x + 1)


@pytest.mark.parametrize(
    "fn",
    [raised_after_an_operation, raised_with_a_cause, raised_from_a_call, raised_in_a_callee, raised_in_a_handler,
     raised_in_a_block],
    ids=lambda f: f.__name__,
)  # fmt: skip
@pytest.mark.parametrize("backend", ["eager", "whole graphs"])
def test_an_exception_that_leaves_the_frame_is_freed(fn: Callable[..., Any], backend: str) -> None:
    """The traceback holds the frame, but the frame does not hold the exception. It is freed without the collector."""

    def caught(run: Callable[..., Any]) -> tuple[Any, ...]:
        def call(x):
            try:
                return run(x)
            except Exception as error:
                return type(error).__name__, type(error.__cause__).__name__

        return seen(call)

    expected = caught(fn)
    assert "del a" in expected[1][: expected[1].index("returned")], "CPython frees the object at once"
    compiled = godynamo.optimize(fn, backend=backend if backend == "eager" else CompileCounter())
    for _ in range(3):
        assert caught(compiled) == expected


def test_the_collector_s_counts() -> None:
    """CPython runs the whole frame of code that counts objects: a frame in pieces would have other objects."""
    expected = seen(counted_by_the_collector)
    compiled = godynamo.optimize(counted_by_the_collector)
    for _ in range(2):
        assert seen(compiled) == expected


def test_frames_that_cannot_be_translated_are_not_tried_for_ever() -> None:
    """Sixteen attempts, then none: CPython runs the frame."""
    plain = [0]

    def left_alone(x):
        plain[0] += 1
        return x

    attempts = []
    before = _C.set_translate_callback(lambda request: attempts.append(request["nentries"]))
    try:
        compiled = godynamo.optimize(left_alone)
        for i in range(50):
            assert compiled(i) == i
    finally:
        _C.set_translate_callback(before)
    assert plain == [50]
    assert len(attempts) == 16
    assert _C.counters()["given_up"] >= 34


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda f: f.__name__)
def test_lifetimes_when_the_cache_is_full(fn: Callable[..., Any]) -> None:
    """Frames left to CPython, including those of resume functions, own their variables too."""
    CALLS.clear()
    expected = [seen(fn), seen(fn)]
    CALLS.clear()
    compiled = godynamo.optimize(fn)
    with godynamo.config.patch(cache_size_limit=0):
        assert seen(compiled) == expected[0]
    assert seen(compiled) == expected[1]


def test_a_large_tensor_is_freed_when_it_is_rebound() -> None:
    """The peak of a chain of operations is two tensors, also in the pieces of a broken graph."""

    def chain(x):
        x = x * 2
        note("split")
        first = weakref.ref(x)
        x = x + 1
        note("split")
        return first() is None, x + 1

    gone, _ = godynamo.optimize(chain)(torch.zeros(8))
    assert gone == chain(torch.zeros(8))[0]


def decorated(x: Any) -> Any:
    it = Noisy("it")

    @torch.no_grad()
    def inner(z: Any) -> Any:
        return z + len(it.name)

    return inner(x)


def decorated_otherwise(x: Any) -> Any:
    it = Noisy("it")

    @torch.autocast("cpu", enabled=False)
    def inner(z: Any) -> Any:
        return z + len(it.name)

    return inner(x) + torch.vmap(lambda a: a * len(it.name))(x)


@pytest.mark.parametrize("fn", [decorated, decorated_otherwise], ids=lambda f: f.__name__)
def test_what_a_callable_was_found_to_be_keeps_nothing_alive(fn: Callable[..., Any]) -> None:
    optimized = godynamo.optimize(fn)
    for call in (fn, optimized, optimized, optimized):
        LOG.clear()
        call(torch.ones(2))
        assert LOG == ["del it"], call


def test_a_method_that_c_has_bound_does_not_outlive_its_object() -> None:
    LOG.clear()
    assert not callables.classify(Noisy("it").__eq__)
    assert LOG == ["del it"]


def raises_after_a_split(x: Any) -> None:
    thing = make("kept")  # noqa: F841
    x = x + 1
    raise ValueError(x.shape)


def raises_what_it_forgot(x: Any) -> None:
    thing = make("forgotten")
    godynamo.graph_break()
    thing = None  # noqa: F841
    raise ValueError(x.shape)


def raises_again_in_finally(x: Any) -> None:
    thing = make("kept")  # noqa: F841
    try:
        raise ValueError(x.shape)
    finally:
        print(end="")


def raises_again_in_finally_that_computes(x: Any) -> None:
    thing = make("kept")  # noqa: F841
    x = x + 1
    try:
        godynamo.graph_break()
        raise ValueError(x.shape)
    finally:
        x = x + 1


def raises_again_in_a_handler(x: Any) -> None:
    thing = make("kept")  # noqa: F841
    try:
        raise ValueError(x.shape)
    except ValueError:
        print(end="")
        godynamo.graph_break()
        raise


def raises_again_what_a_closure_holds(x: Any) -> None:
    thing = make("kept")
    try:
        raise ValueError(len([lambda: thing]))
    finally:
        print(end="")


def raises_again_at_the_end_of_with(x: Any) -> None:
    with contextlib.ExitStack():
        thing = make("kept")  # noqa: F841
        godynamo.graph_break()
        raise ValueError(x.shape)


RAISING = [
    raises_after_a_split,
    raises_what_it_forgot,
    raises_again_in_finally,
    raises_again_in_finally_that_computes,
    raises_again_in_a_handler,
    raises_again_what_a_closure_holds,
    raises_again_at_the_end_of_with,
]


@pytest.mark.parametrize("fn", RAISING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", lambda gm, inputs: gm.forward])
def test_an_exception_keeps_the_variables_of_its_frames(fn: Callable[..., Any], backend: Any) -> None:
    def caller(x: Any) -> Any:
        try:
            fn(x)
        except ValueError:
            note("caught")
        note("after")
        return x * 2

    seen = []
    for call in (caller, *[godynamo.optimize(backend=backend)(caller)] * 2):
        LOG.clear()
        call(torch.ones(2))
        seen.append(list(LOG))
    assert seen[1] == seen[0] and seen[2] == seen[0]


def dies_second(x: Any) -> Any:
    second: Any = None
    first = make("first")  # noqa: F841
    second = make("second")  # noqa: F841
    return x + 1


def dies_second_behind_a_split(x: Any) -> Any:
    second: Any = None
    first = make("first")  # noqa: F841
    godynamo.graph_break()
    second = Noisy("second")  # noqa: F841
    return x + 1


def dies_second_without_a_split(x: Any) -> Any:
    second: Any = None
    first = Noisy("first")  # noqa: F841
    second = Noisy("second")  # noqa: F841
    LOG.append("made")
    return x + 1


def dies_with_its_last_variable(x: Any) -> Any:
    other: Any = None
    first = make("first")
    second = make("second")  # noqa: F841
    other = first  # noqa: F841
    third = first  # noqa: F841
    return x + 1


def closes_a_generator_second(x: Any) -> Any:
    def turns() -> Any:
        try:
            yield x
            yield x + 1
        finally:
            LOG.append("closed")

    second: Any = None
    first = turns()
    y = next(first)
    second = Noisy("second")  # noqa: F841
    return y


TOGETHER = [
    dies_second,
    dies_second_behind_a_split,
    dies_second_without_a_split,
    dies_with_its_last_variable,
    closes_a_generator_second,
]


@pytest.mark.parametrize("fn", TOGETHER)
def test_variables_end_in_cpythons_order(fn: Callable[..., Any]) -> None:
    seen = []
    for call in (fn, *[godynamo.optimize(fn)] * 3):
        LOG.clear()
        call(torch.ones(2))
        seen.append(list(LOG))
    assert len(seen[0]) > 1 and seen[1:] == seen[:1] * 3


def test_earlier_attempts_keep_no_object_alive_in_a_guard(monkeypatch):
    """The translation is tried with an int that varies, then with a constant.

    Its guards keep no objects of the first try.
    """
    monkeypatch.setattr(config, "translate_everything", True)

    class Key:
        def __init__(self, number):
            self.number = number

    class Checks:
        def equal(self, a, b):
            if type(a) is type(b) and a != b:
                raise AssertionError(f"{a} is not {b}")

        def run(self):
            keys = [Key(i) for i in range(10)]
            numbers = weakref.WeakKeyDictionary((key, key.number) for key in keys)
            references, rest = numbers.keyrefs(), list(keys)
            for reference in references:
                key = reference()
                self.equal(key in numbers, True)
                self.equal(key.number, numbers[key])
                rest.remove(key)
            return len(rest), len(numbers)

    optimized = godynamo.optimize(Checks.run)
    assert [optimized(Checks()) for _ in range(3)] == [(0, 10)] * 3
    assert _C.counters()["internal_errors"] == 0
