"""Attributes of functions and code objects: reads are guarded, since all but the closure can be assigned."""

from __future__ import annotations

import contextlib
import functools
import sys
from unittest import mock

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()
NEW = sys.version_info >= (3, 12)  # functions have type parameters


def wrapped(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    return wrapper


@wrapped
def one(x, use_cache=None, *, k=3):
    """Adds one."""
    return x + 1


def args():
    return (one,)


def shadowed():
    """Its __dict__ has names of attributes that a function keeps elsewhere."""


shadowed.__dict__.update({"__name__": 5, "__doc__": 6, "__module__": 7, "other": 8})


@cases(args=lambda: (shadowed,))
def names_that_the_dict_does_not_answer(x, fn):
    return fn.__name__, fn.__doc__, fn.__module__, fn.other, x + 1


@cases(breaks=None)
def copies_of_the_attributes_of_a_class(x):
    def wrapper():
        pass

    functools.update_wrapper(wrapper, type, assigned=("__name__", "__module__"))
    return wrapper.__name__, wrapper.__module__, x + 1


@cases(args=args)
def names(x, fn):
    return fn(x), fn.__name__, fn.__qualname__, fn.__doc__, fn.__module__, fn.__wrapped__.__name__


@cases(args=args)
def code_of_it(x, fn):
    code = fn.__wrapped__.__code__
    place = code.co_varnames.index("use_cache") if "use_cache" in code.co_varnames else None
    return (
        x + place,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_name,
        code.co_flags,
        code.co_consts,
        code.co_freevars,
    )


@cases(args=args)
def defaults(x, fn):
    inner = fn.__wrapped__
    return x + inner.__kwdefaults__["k"], inner.__defaults__, inner.__closure__, len(fn.__closure__)


@cases(args=args)
def same_code(x, fn):
    return x + 1 if fn.__code__ is one.__code__ and fn.__code__ == one.__code__ else x


@cases
def the_interpreter(x):
    if sys.version_info >= (3, 8) and sys.version_info[0] == 3 and sys.version_info.major == 3:
        x = x + 1
    return x, sys.version_info, sys.flags.optimize, tuple(sys.version_info), isinstance(sys.version_info, tuple)


@cases(args=args)
def missing(x, fn):
    return x + 1, getattr(fn, "nothing", 3), hasattr(fn.__wrapped__, "nothing")


def annotated(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


annotated.tag = 5


@cases
def wraps_a_function_of_the_module(x):
    @functools.wraps(annotated)
    def inner(*args):
        return annotated(*args) + 1

    names = inner.__name__, inner.__qualname__, inner.__doc__, inner.__module__
    return inner(x), names, inner.tag, inner.__wrapped__ is annotated, inner.__type_params__ if NEW else ()


@cases(breaks=0 if sys.version_info < (3, 14) else None)
def shares_the_annotations(x):
    @functools.wraps(annotated)
    def inner(*args):
        return annotated(*args) + 1

    return inner(x), inner.__annotations__, inner.__annotations__ is annotated.__annotations__


@cases
def wraps_a_function_of_the_frame(x):
    def decorator(fn):
        @functools.wraps(fn)
        def inner(*args):
            return fn(*args) * 2

        inner.calls = 0
        return inner

    @decorator
    def plus(a, b=1):
        """Adds one."""
        return a + b

    plus.calls += 1
    return plus(x), plus.__name__, plus.__doc__, plus.__qualname__, plus.__module__, plus.calls, sorted(plus.__dict__)


@cases
def context_manager_of_the_frame(x):
    @contextlib.contextmanager
    def scaled(by):
        """Scales."""
        yield x * by

    manager = scaled(2)
    with manager as y:
        y = y + 1

    @scaled(3)
    def decorated(a):
        return a - 1

    return y, decorated(x), manager.__doc__, scaled.__name__, decorated.__name__


@cases
def fields_of_a_new_function(x):
    def fn(a, b=1, *, c=2):
        return a

    def other(a):
        """Says something."""

    before = fn.__name__, fn.__doc__, fn.__module__, fn.__defaults__, fn.__kwdefaults__, fn.__code__.co_name
    fn.__name__, fn.__qualname__, fn.__doc__, fn.__module__ = "n", "q", "d", None
    try:
        fn()
    except TypeError as error:
        return x + 1, before, fn.__name__, fn.__doc__, fn.__module__, str(error), other.__doc__, other.__defaults__


@cases
def assigned_defaults(x):
    def fn(a, b=1, *, c=2):
        return a * b + c

    first = fn(x)
    fn.__defaults__ = (5,)
    fn.__kwdefaults__["c"] = 7
    second = fn(x)
    fn.__defaults__, fn.__kwdefaults__ = (x, 3), {"c": x}
    third = fn()
    fn.__defaults__ = None
    try:
        fn()
    except TypeError as error:
        return first, second, third, str(error)


@cases
def assigned_code(x):
    """Twice."""
    scale = x * 2

    def fn(a, b=1):
        """First."""
        return a * b + scale

    def other(a, b=1):
        """Second."""
        return a - b - scale

    def renamed(a):
        return a + 1

    renamed.__code__ = renamed.__code__.replace(co_name="n")
    first, code = fn(x), fn.__code__
    fn.__code__ = other.__code__
    second = fn(x, 3)
    same = fn.__code__ is other.__code__, fn.__doc__, fn.__name__, fn.__code__.co_name
    fn.__code__ = code
    return first, second, fn(x), same, renamed(x), renamed.__code__.co_name, renamed.__name__


@cases
def assigned_code_of_a_function_that_is_returned(x):
    def fn(a):
        return a + x

    def other(a):
        return a - x

    y = x + 1
    fn.__code__ = other.__code__
    return y, fn(y), (fn, other).__len__(), [fn][0](x), fn.__code__ is other.__code__


@cases
def a_method_of_torchs_decorator(x):
    def fn(a):
        return a * 2, torch.is_grad_enabled()

    off = torch.no_grad()(fn)
    return x + 1, off(x), off.__name__, off.__wrapped__ is fn, off.__code__.co_name


@cases(breaks=None)
def code_with_other_free_variables(x):
    def fn(a):
        return a + x

    def other(a):
        return a

    y = x + 1
    try:
        fn.__code__ = other.__code__
    except ValueError as error:
        return y, str(error), fn(x)


@cases(breaks=None)
def a_name_that_is_no_text(x):
    def fn(a):
        return a

    fn.tag = x + 1
    try:
        fn.__name__ = 3
    except TypeError as error:
        return str(error), fn.tag, fn.__name__


@cases(breaks=None)
def a_field_that_cannot_be_assigned(x):
    def fn(a):
        return a

    try:
        fn.__closure__ = ()
    except AttributeError as error:
        return str(error), x + 1


@cases
def own_dict(x):
    def fn(a):
        return a

    names = fn.__dict__
    fn.one = x + 1
    names["two"] = x + 2
    del fn.one
    return fn.two + 1, names, names is fn.__dict__, hasattr(fn, "one"), getattr(fn, "three", 3)


@cases
def leaves_with_its_attributes(x):
    log = []

    def fn(a: int, b=1):
        return a

    fn.one = x + 1
    log.append(fn)
    fn.__name__ = "renamed"
    fn.__annotations__ if sys.version_info < (3, 14) else None
    return x + 2, [(f.__name__, f.__annotations__ if sys.version_info < (3, 14) else 0, f.__dict__) for f in log]


@cases(graphs=2, breaks=1)
def crosses_a_break_with_its_attributes(x):
    def fn(a: int, b=1):
        return a + b

    fn.one, keep = x + 1, fn.__dict__
    fn.__name__, fn.__defaults__ = "renamed", (4,)
    godynamo.graph_break()
    return fn(x), fn.__name__, fn.one, fn.__dict__ is keep, fn.__defaults__, fn.__module__


def fresh_function():
    def fn(a):
        return a + 1

    fn.calls = 1
    return (fn,)


@cases(args=fresh_function, calls=4)
def counts_calls(x, fn):
    fn.calls += 1
    alias = fn
    alias.last = x
    fn.__dict__["third"] = 3
    return fn(x) * fn.calls, fn.last, alias.third, vars_of(fn)


def vars_of(fn):
    return sorted(fn.__dict__)


SUM = functools.partial(torch.add, torch.ones(2), alpha=2)


class Named(functools.partial):
    """A subclass of partial."""


PRODUCT = Named(torch.mul, torch.ones(2))


@cases
def parts_of_partials(x):
    made = functools.partial(torch.sub, alpha=3)
    own = made.func is torch.sub, made.func(x, x)
    return own, SUM.func is torch.add, SUM.args[0] + x[:2], SUM.args is SUM.args, PRODUCT.func(x, x), PRODUCT.args


@cases(breaks=None)
def a_partial_of_a_partial(x):
    made = functools.partial(torch.sub, alpha=3)
    return functools.partial(made, x).func is torch.sub, functools.partial(SUM, x).func is torch.add, x + 1


@cases(graphs=2, breaks=None)
def changed_keywords_of_a_partial(x):
    made = functools.partial(torch.sub, x, alpha=3)
    made.keywords["alpha"] = 2
    args = made.args
    godynamo.graph_break()
    return made(x), made.keywords, made.args is args


@pytest.mark.parametrize("case", cases, ids=cases.names())
def test_function_attributes(case: Case):
    check(case)


def tell(x, fn):
    return fn(x), fn.__name__, fn.__qualname__, fn.__doc__, fn.__module__, fn.__defaults__, fn.__code__.co_name


def test_assigned_after_translation():
    def f(x, y=2):
        return x + y

    def other(x, y=2):
        return x - y

    x, compiled = torch.ones(2), godynamo.optimize(tell)
    changes = {
        "__name__": "n",
        "__qualname__": "q",
        "__doc__": "d",
        "__module__": "m",
        "__defaults__": (5,),
        "__code__": other.__code__,
    }
    for name, value in changes.items():
        compiled(x, f)
        setattr(f, name, value)
        got, want = compiled(x, f), tell(x, f)
        assert got[1:] == want[1:] and torch.equal(got[0], want[0]), name


@pytest.mark.parametrize("change", [{"__defaults__": (5, 6)}, {"__kwdefaults__": {"only": 7}}])
@pytest.mark.parametrize("first", [{}, {"__defaults__": (1,)}, {"__kwdefaults__": {"other": 1}}])
def test_a_parameter_that_gets_a_default(first, change):
    def called(a, b, *, only=0, other=0):
        return a, b, only, other

    called.__kwdefaults__ = None
    for name, value in first.items():
        setattr(called, name, value)

    def fn(x):
        said = []
        for call in (lambda: called(), lambda: called(1, 2), lambda: called(1, only=2, other=3)):
            try:
                said.append(call())
            except TypeError as error:
                said.append(str(error))
        return x + 1, said

    fast, x = godynamo.optimize("eager")(fn), torch.ones(2)
    assert str(fast(x)) == str(fn(x))
    for name, value in change.items():
        setattr(called, name, value)
    assert str(fast(x)) == str(fn(x))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PyFunction_SetVectorcall is new in 3.12")
def test_a_call_runs_what_an_extension_put_in_the_code_s_place():
    """CPython runs the C function instead, also in calls that are translated already."""
    testcapi = pytest.importorskip("_testcapi", reason="this CPython has no test modules")

    def helper(x):
        return x + 1

    class Has:
        def __getattribute__(self, name):
            return name

    has = Has()

    def calls(x):
        return x * 2, helper(x), has.attribute

    x, counter = torch.ones(2), godynamo.testing.CompileCounter()
    optimized = godynamo.optimize(calls, backend=counter)
    assert [optimized(x)[1].equal(x + 1) for _ in range(3)] == [True] * 3 and counter.frame_count == 1
    testcapi.function_setvectorcall(Has.__getattribute__)
    assert [optimized(x)[2] for _ in range(3)] == ["overridden"] * 3
    testcapi.function_setvectorcall(helper)
    assert [optimized(x)[1:] for _ in range(3)] == [("overridden", "overridden")] * 3
    assert optimized(x)[0].equal(x * 2) and counter.frame_count > 1


def test_two_functions_that_may_be_one():
    def make():
        return lambda a: a

    def fn(p, q, x):
        p.mark = 10
        return x + (q.mark if hasattr(q, "mark") else 0)

    fast, x, same = godynamo.optimize(fn), torch.ones(2), make()
    assert fast(make(), make(), x).equal(x)
    assert fast(same, same, x).equal(x + 10)
    assert fast(make(), make(), x).equal(x)


def test_a_returned_function_has_its_attributes():
    def fn(x):
        def inner(a: int, b=[1], *, c=2):  # noqa: B006
            return a

        inner.__defaults__[0].append(2)
        inner.__kwdefaults__["c"] = 3
        inner.__doc__, inner.self_name = "d", inner.__name__
        inner.held = x + 1
        inner.__annotations__["b"] = list
        return inner

    got, want = godynamo.optimize(fn)(torch.ones(2)), fn(torch.ones(2))
    for name in (
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
    ):
        assert getattr(got, name) == getattr(want, name), name
    assert got.held.equal(want.held) and list(got.__dict__) == list(want.__dict__)


def test_a_returned_function_runs_its_assigned_code():
    def f(x):
        def fn(a):
            return a + x

        def other(a):
            return a - x

        y = x + 1
        fn.__code__ = other.__code__
        return y, fn, other

    for fn in (f, godynamo.optimize(f), godynamo.optimize(f)):
        y, made, other = fn(torch.ones(2))
        assert torch.equal(made(y), torch.ones(2))
        assert made.__code__ is other.__code__
        assert made.__name__ == "fn" and made.__closure__ is not other.__closure__


def test_a_decorated_function_that_outlives_the_frame():
    def f(x):
        @torch.no_grad()
        def fn(a):
            return a * x, torch.is_grad_enabled()

        return x + 1, fn

    p = torch.nn.Parameter(torch.ones(2))
    for fn in (f, godynamo.optimize(f), godynamo.optimize(f)):
        y, made = fn(p)
        value, enabled = made(y)
        assert not enabled and not value.requires_grad
        assert (made.__name__, made.__code__.co_name) == (made.__wrapped__.__name__, "no_grad")


def test_a_new_functions_names_are_the_objects_of_its_code():
    def made(x):
        def f():
            """doc"""

        @functools.wraps(f)
        def wrapper():
            return x

        return wrapper, f, x + 1

    wrapper, f, _ = godynamo.optimize(made)(torch.ones(2))
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        assert getattr(wrapper, name) is getattr(f, name)
    assert f.__qualname__ is f.__code__.co_qualname


def test_a_replaced_builtin_sees_no_call_of_the_translators():
    seen = []

    def noted(value):
        seen.append(value)
        return real(value)

    def size(x, text):
        return x + len(text)

    real, optimized = len, godynamo.optimize(size)
    with mock.patch("builtins.len", noted):
        for text in ("a", "bc", "bc"):
            assert optimized(torch.zeros(1), text).item() == real(text)
    assert seen == ["a", "bc", "bc"]
    assert optimized(torch.zeros(1), "abc").item() == 3
    assert seen == ["a", "bc", "bc"]
