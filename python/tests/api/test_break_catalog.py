"""Each code of docs/graph_breaks.md: a program that causes it, and explain's text for it, with the line."""

import contextlib
import gc
import os
import re
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch

import godynamo
from godynamo import config
from godynamo._called import runtime
from godynamo._explain.break_codes_gen import BREAK_CODES
from godynamo._translator import bisect

PAGE = Path(__file__).resolve().parents[3] / "docs" / "graph_breaks.md"


class OtherMeta(type(torch.Tensor)):
    pass


class Plain(torch.Tensor, metaclass=OtherMeta):
    pass


class Dying:
    def __del__(self):
        pass


class Key:
    value = 1

    def __hash__(self):
        return self.value

    def __eq__(self, other):
        return self is other


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


LAYERS = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Tanh())


LAZY = torch.nn.LazyLinear(2)


@godynamo.allow_in_graph
def gives_an_object(x):
    return object()


@godynamo.disable
def disabled(x):
    return x


@godynamo.skip
def from_outside(fn, *args):
    """Call fn from a frame that CPython runs, so that the hook serves fn."""
    return fn(*args)


def one_more(x):
    return x + 1


async def coroutine(x):
    return x


def deep(x, n):
    return x + 1 if n == 0 else deep(x, n - 1)


# ---- programs; the comment marks the line that explain is to name ----


def explicit(x):
    y = x + 1
    godynamo.graph_break()  # here
    return y * 2


def calls_disabled(x):
    return disabled(x + 1) * 2  # here


def branches(x):
    if x.sum() > 0:  # here
        return x + 1
    return x - 1


def needs_a_number(x):
    y = x.sum()
    return x * y.tolist()  # here


def takes_a_subclass(x):
    return x.as_subclass(Plain) + 1  # here


def unknown_result(x):
    gives_an_object(x)  # here
    return x + 1


def unknown_size(x):
    return x[x > 1].stride(0) + x  # here


def unsupported_call(x):
    y = x + 1
    os.getpid()  # here
    return y * 2


def unreadable_attribute(x):
    return (torch.ones(2, requires_grad=True) + x)._base is None, x + 1  # here


def unmodelled_object(x, view=memoryview(b"abc")):
    return x + view[1]  # here


def identity_of_scalars(x, a=np.float32(1), b=np.float32(2)):
    return x + (a is b)  # here


def slice_of_a_slice(x, layers=LAYERS):
    part = layers[0:2]
    return part[0:1](x)  # here


def stores_on_a_function(x):
    one_more.__name__ = "mark"  # here
    return x + 1


def iterator_of_others(x, kept):
    it = iter([1, 2, 3])
    kept.append(it)
    return x + next(it)  # here


def deletes_a_global(x):
    global SCRATCH
    SCRATCH = 1
    y = x + 1
    del SCRATCH  # here
    return y


def makes_a_coroutine(x):
    coroutine(x).close()  # here
    return x + 1


def operation_after_a_change(x, l):
    try:
        x.add_(x.cos())  # this change cannot be undone, unlike `x.add_(1)`
        y = x.sin()  # here
    except ValueError:
        y = x
    return y


def raises_and_keeps(x):
    y = x + 1
    try:
        raise ValueError(1)  # here
    except ValueError as e:
        return y, e


def recurses(x):
    return deep(x, 10)


def great_number(x):
    return x + 10**100000 % 7  # here


def lets_an_object_die(x):
    o = Dying()
    y = x + 1
    print("effect")
    o = None  # here
    return y if o is None else x


class NothingIsAllowed:
    def allowed(self, code):
        return code.co_name != one_more.__name__


@contextlib.contextmanager
def bisecting():
    """Behave as with GODYNAMO_BISECT set, which is read only when the process starts."""
    runtime._bisecting, bisect._state = True, NothingIsAllowed()
    try:
        yield
    finally:
        runtime._bisecting, bisect._state = False, None


def calls_what_is_left_out(x):
    return one_more(x) * 2  # here


CONTEXTS = {"GD0003": bisecting}
BREAKS = {
    "GD0003": calls_what_is_left_out,
    "GD0001": explicit,
    "GD0002": calls_disabled,
    "GD0101": branches,
    "GD0102": needs_a_number,
    "GD0103": takes_a_subclass,
    "GD0104": unknown_result,
    "GD0105": unknown_size,
    "GD0201": unsupported_call,
    "GD0202": unreadable_attribute,
    "GD0203": unmodelled_object,
    "GD0207": identity_of_scalars,
    "GD0208": slice_of_a_slice,
    "GD0209": stores_on_a_function,
    "GD0210": iterator_of_others,
    "GD0301": deletes_a_global,
    "GD0302": makes_a_coroutine,
    "GD0304": operation_after_a_change,
    "GD0401": raises_and_keeps,
    "GD0501": recurses,
    "GD0502": great_number,
    "GD0602": lets_an_object_die,
}
SETTINGS = {"GD0501": {"inline_depth_limit": 5}}


def marked(fn):
    """Return the line of fn that has the comment, or None."""
    first = fn.__code__.co_firstlineno
    lines = Path(__file__).read_text().splitlines()[first - 1 :]
    end = next((i for i, text in enumerate(lines[1:], 1) if text and not text.startswith(" ")), len(lines))
    return next((first + i for i, text in enumerate(lines[:end]) if text.endswith("# here")), None)


def arguments(fn):
    return (
        (torch.tensor([1.0, 2.0]), [])
        if fn.__code__.co_argcount == 2 and not fn.__defaults__
        else (torch.tensor([1.0, 2.0]),)
    )


@pytest.mark.parametrize("code", BREAKS)
def test_a_break_is_named_with_its_code_and_line(code):
    fn = BREAKS[code]
    with config.patch(**SETTINGS.get(code, {})), CONTEXTS.get(code, contextlib.nullcontext)():
        e = godynamo.explain(fn)(*arguments(fn))
    found = [r for r in e.break_reasons if r.code == code]
    assert found, e.break_reasons
    reason, hint = BREAK_CODES[code]
    assert found[0].reason.startswith(reason) and found[0].hint == hint
    if marked(fn):
        assert {r.line for r in found} == {marked(fn)}
        # a callee that is left out with the same break code has its own row
        assert {r.line for r in e.kept_out if r.code == code and r.function == fn.__name__} <= {marked(fn)}
        assert found[0].source in str(e)
    expected, got = fn(*arguments(fn)), e.result
    assert repr(got) == repr(expected) or torch.is_tensor(got) and torch.equal(got, expected)


# ---- whole frames ----


def plain_number(x):
    return from_outside(int.__add__, 1, 2) + from_outside(only_numbers, 3) + x


def only_numbers(n):
    return n + 1


def many_cases(x):
    y = x
    for n in range(6):
        y = y + from_outside(times, x, [n] * n)
    return y


def times(x, rows):
    return x * len(rows)


def skipped_itself(x):
    return from_outside(one_more, x)


def profiled(x):
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    y = from_outside(one_more, x)
    sys.setprofile(before)
    return y


def class_body(x):
    return x + with_a_class()


@godynamo.skip
def with_a_class():
    class Local:
        value = 1 + len([2])

    return Local.value


def under_a_mode(x):
    return from_outside(with_mode, x)


@godynamo.skip
def with_mode(x):
    with Mode():
        return one_more(x)


def under_run(x):
    return from_outside(godynamo.run(one_more), x)


class Base:
    def without_parameters(*args):
        try:
            super().__init__()
        except RuntimeError:
            return args[0] + 1


def super_without_arguments(x):
    return from_outside(Base.without_parameters, x)


def in_vain(x):
    return [from_outside(Base.without_parameters, x) for _ in range(20)][-1]


@godynamo.skip
def down(fn, x, left):
    return fn(x) if left == 0 else down(fn, x, left - 1)


def deep_down(x):
    depth = 0
    frame = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return down(one_more, x, sys.getrecursionlimit() - depth - 60)


def makes_parameters(x):
    return from_outside(through_a_lazy_module, x, LAZY)


def through_a_lazy_module(x, module):
    return module(x[None])


def without_hex(x):
    return from_outside(another_hex, x)


@godynamo.skip
def another_hex(x):
    with mock.patch("builtins.hex"):  # explain itself uses the likes of len
        return one_more(x)


def counts_objects(x):
    return from_outside(counting, x)


def counting(x):
    before = gc.get_count()
    y = one_more(x)
    return y if before else x


def hash_that_changes(x):
    return from_outside(changed_key, x)


def changed_key(x):
    k = Key()
    d = {k: 1}
    k.value = 2
    return x + 1, len(d), d


def long_loop(x):
    for _ in range(1000):
        x = x + 1
    return x


FRAMES = {
    "GD0302": (lambda x: from_outside(lambda c: c.close(), coroutine(x)) or list(numbers(x)), None),
    "GD0502": (long_loop, long_loop),
    "GD0601": (hash_that_changes, changed_key),
    "GD0701": (super_without_arguments, Base.without_parameters),
    "GD0702": (plain_number, only_numbers),
    "GD0703": (many_cases, times),
    "GD0704": (skipped_itself, from_outside),
    "GD0706": (profiled, one_more),
    "GD0707": (class_body, None),
    "GD0708": (under_a_mode, one_more),
    "GD0709": (under_run, one_more),
    "GD0710": (in_vain, Base.without_parameters),
    "GD0711": (deep_down, one_more),
    "GD0712": (counts_objects, one_more),
    "GD0713": (makes_parameters, through_a_lazy_module),
    "GD0714": (without_hex, one_more),
}
FRAME_SETTINGS = {"GD0703": {"cache_size_limit": 2}, "GD0502": {"max_translated_instructions": 100}}


def numbers(x):
    yield x + 1


@pytest.mark.parametrize("code", FRAMES)
def test_a_frame_that_is_cpythons_is_named_with_its_code(code):
    fn, left = FRAMES[code]
    x = torch.tensor([1.0, 2.0])
    with config.patch(**FRAME_SETTINGS.get(code, {})):
        e = godynamo.explain(fn)(x)
    rows = [r for r in e.kept_out if r.code == code]
    assert rows, [(r.code, r.reason, r.callee) for r in e.kept_out]
    reason, hint = BREAK_CODES[code]
    assert all(r.reason.startswith(reason) and r.hint == hint and r.count > 0 for r in rows)
    # no instruction of a coroutine runs if nothing awaits it
    assert all(r.bytecodes > 0 or r.callee == r.function for r in rows)
    if left is not None:
        wanted = getattr(left, "__wrapped__", left).__code__
        assert (wanted.co_qualname, wanted.co_filename, wanted.co_firstlineno) in {
            (r.callee, r.callee_file, r.callee_line) for r in rows
        }


def test_every_code_of_the_catalog_has_a_program():
    assert set(BREAKS) | set(FRAMES) == set(BREAK_CODES)


def test_the_page_lists_every_code_with_a_reason_and_a_hint():
    rows = re.findall(r"^\| (GD\d{4}) \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {code: (reason, hint) for code, reason, hint in rows} == BREAK_CODES
    assert len(rows) == len(BREAK_CODES) and all(reason.strip() and hint.strip() for _, reason, hint in rows)
