"""A traceback's frames look like the user's: code, variables, callers; the same objects stay alive as in CPython."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import pytest
import torch

import godynamo
from godynamo import _C
from godynamo.testing import CompileCounter


class Held:
    pass


@godynamo.disable
def opaque():
    return 3


def number(text):
    return int(text)


def raises_with_a_constant(x):
    a = 4
    b = x + a
    return number("x") + b


def raises_behind_a_split(x):
    n = opaque()
    b = x * n
    return opaque(1) + b


def raises_before_anything_is_captured(x):
    n = opaque()
    return int("x") + n + x


def raises_inside_try(x):
    n = 2
    try:
        y = x + n
        return opaque(1) + y
    finally:
        opaque()


def raises_in_a_callee(x):
    def callee(z):
        k = 5
        return z.reshape(k, k)

    return callee(x + 1)


def raises_with_a_cell(x):
    n = 7

    def inner():
        return n

    y = x + inner()
    return opaque(1) + y


def frames_of(fn, *args):
    """Return (name, line, code is fn's, variables) of fn's frame and the frames below it that are in this file."""
    try:
        fn(*args)
    except Exception as e:
        tb = e.__traceback__.tb_next
    out = []
    while tb is not None:
        frame = tb.tb_frame
        if frame.f_code.co_filename == __file__:
            out.append((frame.f_code, frame.f_code.co_name, tb.tb_lineno, dict(frame.f_locals)))
        tb = tb.tb_next
    return out


CASES = [
    raises_with_a_constant,
    raises_behind_a_split,
    raises_before_anything_is_captured,
    raises_inside_try,
    raises_in_a_callee,
    raises_with_a_cell,
]


@pytest.mark.parametrize("backend", ["eager", CompileCounter()], ids=["inline", "whole"])
@pytest.mark.parametrize("fn", CASES)
def test_frames_are_the_users(fn, backend):
    x = torch.ones(3)
    plain = frames_of(fn, x)
    compiled = godynamo.optimize(fn, backend=backend)
    for _ in range(2):
        translated = frames_of(compiled, x)
        assert [f[:3] for f in translated] == [f[:3] for f in plain]
        assert translated[0][0] is fn.__code__
        for theirs, ours in zip(plain, translated, strict=True):
            for name, value in ours[3].items():  # only variables of the user's code, each with its value
                same = theirs[3][name]
                assert type(value) is type(same)
                assert torch.equal(value, same) if isinstance(value, torch.Tensor) else True
                assert value == same if isinstance(value, (int, str)) else True
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize(("fn", "names"), [(raises_with_a_constant, {"a", "b", "x"}), (raises_behind_a_split, {"b"})])
def test_variables_that_are_in_use_are_shown(fn, names):
    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert set(frames_of(compiled, torch.ones(3))[0][3]) >= names


def test_a_frame_that_raises_first_shows_all():
    def fn(x):
        noise = "n"
        blech = x
        return bluch, noise, blech  # noqa: F821

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        (frame,) = frames_of(compiled, torch.ones(2))
        assert set(frame[3]) == {"noise", "blech", "x"}


def test_the_frame_of_a_caught_exception_is_the_users():
    def fn(x):
        y = x + 1
        try:
            opaque(1)
        except TypeError as e:
            error = e
        return y * 2, error

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        _, error = compiled(torch.ones(2))
        assert error.__traceback__.tb_frame.f_code is fn.__code__
        assert error.__traceback__.tb_lineno == fn.__code__.co_firstlineno + 3


def test_a_traceback_holds_what_its_frames_hold():
    def fn(x):
        held = Held()
        seen.append(weakref.ref(held))
        opaque(1)
        return x + 1

    seen = []
    for run in (fn, godynamo.optimize(fn)):
        for _ in range(2):
            seen.clear()
            try:
                run(torch.ones(1))
            except TypeError:
                assert seen[0]() is not None
            gc.collect()
            assert seen[0]() is None


def test_a_frame_that_went_on_holds_nothing():
    def fails(x, **kwargs):
        try:
            opaque(1)
        except TypeError as e:
            return e

    def fn(x):
        y = x + 1
        held = Held()
        ref = weakref.ref(held)
        error = fails(x, held=held)
        del held
        clear(error.__traceback__)
        return y * 2, ref() is None

    compiled = godynamo.optimize(fn)
    for run in (fn, compiled, compiled):
        assert run(torch.ones(1))[1]


@godynamo.disable
def clear(tb):
    while tb is not None:
        tb.tb_frame.clear()
        tb = tb.tb_next


def test_a_variable_holds_what_the_split_made_real():
    def fn(x):
        held = Held()
        ref = weakref.ref(held)
        y = x + 1
        opaque()
        return y * 2, ref() is None

    compiled = godynamo.optimize(fn)
    for run in (fn, compiled, compiled):
        assert run(torch.ones(1))[1] is False


def test_generators_know_their_state():
    def fn(x):
        def numbers():
            yield 1
            yield 2

        g = numbers()
        states = [g.gi_running, g.gi_suspended]
        next(g)
        states += [g.gi_running, g.gi_suspended]
        list(g)
        return x + 1, [*states, g.gi_running, g.gi_suspended]

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    for _ in range(2):
        assert compiled(torch.ones(1))[1] == [False, False, False, True, False, False]
    assert counter.frame_count == 1


def test_frames_that_are_looked_at_are_left_whole():
    def fn(x):
        y = x + 1
        try:
            opaque(1)
        except TypeError as e:
            frame = e.__traceback__.tb_frame
        mark = 5
        return y, frame.f_locals["mark"], frame is sys._getframe(), isinstance(frame, types.FrameType), mark

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert compiled(torch.ones(1))[1:] == (5, True, True, 5)


def test_a_frame_that_a_callee_keeps_tells_its_last_line():
    kept = {}

    def keep():
        kept["frame"] = sys._getframe(1)

    def fn(x):
        y = x + 1
        keep()
        if y.ndim:
            y = y * 2
        return y

    lines = []
    compiled = godynamo.optimize(fn)
    for run in (fn, compiled, compiled):
        assert run(torch.ones(1)) == 4
        lines.append(kept.pop("frame").f_lineno)
    assert lines == [fn.__code__.co_firstlineno + 5] * 3


def test_the_exception_that_is_handled():
    def fn(x):
        seen = [sys.exception()]
        y = x + 1
        try:
            raise KeyError("k")
        except KeyError as e:
            seen.append(sys.exception() is e)
            y = y * len(sys.exception().args)
        seen.append(sys.exception())
        return y, seen

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    for _ in range(2):
        assert compiled(torch.ones(1))[1] == [None, True, None]
    assert counter.frame_count == 1


def test_the_exception_that_a_native_call_raised():
    def fn(x):
        y = x + 1
        try:
            opaque(1)
        except TypeError as e:
            y = y * 2
            same = sys.exception() is e
            y = y.cos()
        return y, same, sys.exception()

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    for _ in range(2):
        assert compiled(torch.ones(1))[1:] == (True, None)
    assert counter.frame_count == 2


def test_a_caller_that_handles_an_exception():
    def fn(x):
        return x + 1, sys.exception()

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert compiled(torch.ones(1))[1] is None
        try:
            raise KeyError
        except KeyError as e:
            assert compiled(torch.ones(1))[1] is e


def test_a_returned_exception_is_raised_in_a_split_frame():
    def fn(x):
        y = x + 1
        try:
            raise ValueError(1)
        except ValueError as e:
            kept = e
        return y * 2, kept

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    for _ in range(2):
        _, kept = compiled(torch.ones(1))
        assert kept.args == (1,) and kept.__traceback__.tb_frame.f_code is fn.__code__
    assert counter.frame_count == 2


def test_free_variables_without_a_value():
    def fn(x):
        def reads(z):
            opaque()
            return z, late

        try:
            reads(x)
        except NameError as e:
            told = str(e), e.name
        late = 1
        return x + late, told

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert compiled(torch.ones(1))[1] == fn(torch.ones(1))[1]


@godynamo.disable
def fails(*args):
    try:
        raise KeyError("first")
    except KeyError as e:
        raise ValueError(*args) from e


def test_fields_of_an_exception_that_came_with_the_frame():
    def fn(x, *args):
        y = x + 1
        try:
            fails(*args)
        except ValueError as e:
            y = y * len(e.args)
            first = e.args[0]
            cause, context, tb = e.__cause__, e.__context__, e.__traceback__
            deeper = cause.__cause__
            y = y.cos()
        return y, first, cause is context, cause.args, deeper, type(tb).__name__

    counter = CompileCounter()
    compiled = godynamo.optimize(fn, backend=counter)
    for args in (("a", 2), ("a", 2), ("b", 3), ("c",)):
        expected, actual = fn(torch.ones(2), *args), compiled(torch.ones(2), *args)
        assert torch.equal(actual[0], expected[0])
        assert actual[1:] == expected[1:]
    assert counter.frame_count == 3  # one graph before the break and two after it: for two arguments and for one


def test_fields_that_a_class_overrides_are_its_own():
    class Odd(ValueError):
        args = "mine"

    def fn(x, e):
        return x + 1, e.args, e.__cause__

    compiled = godynamo.optimize(fn)
    for _ in range(2):
        assert compiled(torch.ones(1), Odd(1))[1:] == ("mine", None)
        assert compiled(torch.ones(1), ValueError(2))[1:] == ((2,), None)
