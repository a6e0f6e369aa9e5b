"""allow_in_graph and substitute_in_graph: how the translator treats callables that users have registered."""

import operator
from collections import namedtuple

import pytest
import torch

import godynamo
from godynamo import utils
from godynamo._user import registry
from harness.capture import check, nb, no_translation

Pair = namedtuple("Pair", "first second")


@pytest.fixture
def registered():
    """Return a function that registers callables until the end of the test."""
    names = []
    yield lambda fn: names.append(fn) or fn
    for fn in names:
        registry.unregister(fn)


@pytest.fixture
def x():
    return torch.randn(3)


def captured(fn, *args, ops):
    backend = check(fn, *args)
    assert (len(backend), len(backend.all_ops())) == (1, ops), backend.all_ops()
    assert not utils.counters["graph_break"]
    return backend


# ---- allow_in_graph --------------------------------------------------------------------------------------------------


def one(x):
    return x.sin().cos()


def two(x):
    return x + 1, x - 1


def listed(x):
    return [x + 1, [x - 1, 3], None, "text"]


def named(x):
    return Pair(x + 1, 7)


def mapped(x):
    return {"a": x + 1, "b": (x - 1, 2.5)}


def shape_of(x):
    return x.shape[0] + 2


def nothing(x):
    return None


def looks_at_data(x):
    return (x + 1, x - 1) if x.sum() > 0 else (x * 2, x * 3)


@pytest.mark.row("S003-45")
@pytest.mark.parametrize(
    ("fn", "use", "ops"),
    [
        (one, lambda r: r + 1, 2),
        (two, lambda r: r[0] * r[1], 4),
        (listed, lambda r: (r[0] + r[1][1], r[1], r[2], r[3], len(r)), 5),
        (named, lambda r: (r[0] * r[1], r), 3),
        (mapped, lambda r: (r["a"] * r["b"][1] + r["b"][0], sorted(r)), 6),
        (shape_of, lambda r: r * 2, 1),
        (nothing, lambda r: r is None, 1),
        (looks_at_data, lambda r: r[0] * r[1], 4),
    ],
)
def test_a_function_allowed_in_graphs_is_one_node_whatever_it_returns(registered, x, fn, use, ops):
    godynamo.allow_in_graph(registered(fn))
    backend = captured(lambda x: use(fn(x)), x, ops=ops)
    assert backend.all_ops().count(fn.__name__) == 1


def test_the_result_of_an_allowed_function_can_be_changed_like_any_other(registered, x):
    godynamo.allow_in_graph(registered(listed))

    def f(x):
        r = listed(x)
        r.append(r[0] * 2)
        r[1][0] = r[1][0] + 1
        return r

    captured(f, x, ops=6)


def in_place(x):
    x.add_(1)
    return x.sum()


def test_an_allowed_function_may_change_its_tensors(registered, x):
    godynamo.allow_in_graph(registered(in_place))
    backend = check(lambda x: (in_place(x) + x, x), x)
    assert len(backend) >= 1


def a_number_of_the_data(x):
    return int(x.sum())


def test_a_number_that_depends_on_data_is_a_break(registered, x):
    godynamo.allow_in_graph(registered(a_number_of_the_data))
    backend = check(lambda x: x * a_number_of_the_data(x + 1), x)
    assert len(backend) == 3  # one graph is of a_number_of_the_data's own frame
    assert "torch function whose result kind is unknown" in " ".join(utils.counters["graph_break"])


def fails(x):
    raise RuntimeError("always")


def test_an_allowed_function_that_raises_raises_for_the_user(registered, x):
    godynamo.allow_in_graph(registered(fails))
    check(lambda x: fails(x + 1), x)


def test_an_allowed_function_sees_another_shape_anew(registered):
    godynamo.allow_in_graph(registered(shape_of))
    f = godynamo.optimize(lambda x: x * shape_of(x), backend=nb())
    for n in (2, 3, 2):
        x = torch.ones(n)
        assert torch.equal(f(x), x * (n + 2))
    with no_translation():
        f(torch.ones(3))


# ---- substitute_in_graph ---------------------------------------------------------------------------------------------


@pytest.mark.row("S003-45")
def test_a_c_function_is_captured_as_its_python_replacement(registered, x):
    registered(operator.length_hint)

    @godynamo.substitute_in_graph(operator.length_hint)
    def length_hint(obj, default=0, /):
        return len(obj)

    captured(lambda x, items: x * operator.length_hint(items), x, [1, 2, 3], ops=1)


def original(a, b=1, *, c=2):
    torch._C._get_tracing_state()
    raise AssertionError("called")


def test_a_python_function_is_captured_as_its_replacement(registered, x):
    registered(original)

    @godynamo.substitute_in_graph(original)
    def replacement(a, b=1, *, c=2):
        return a * b + c

    f = godynamo.optimize(lambda x: original(x, 3, c=x), backend=(backend := nb()))
    assert torch.equal(f(x), x * 3 + x)
    assert backend.all_ops() == ["mul", "add"]


def test_a_replacement_that_breaks_leaves_the_call_to_the_original(registered, x):
    registered(operator.countOf)

    @godynamo.substitute_in_graph(operator.countOf)
    def count_of(a, b, /):
        godynamo.graph_break()

    backend = check(lambda x: (x + 1) * operator.countOf([1, 2, 1], 1), x)
    assert len(backend) == 2


def test_a_list_of_originals_and_constants_folded(registered, x):
    calls = []

    def first(n):
        calls.append(n)
        return n + 1

    def second(n):
        calls.append(n)
        return n + 1

    registered(first), registered(second)

    @godynamo.substitute_in_graph([first, second], can_constant_fold_through=True)
    def replacement(n):
        return n * 100

    f = godynamo.optimize(lambda x: first(x) + second(2))
    assert torch.equal(f(x), x * 100 + 3)
    assert calls == [2]


def test_what_is_registered_is_checked(registered):
    def two_arguments(a, b):
        return a

    with pytest.raises(TypeError):
        godynamo.substitute_in_graph(two_arguments)(lambda a: a)
    with pytest.raises(TypeError):
        godynamo.substitute_in_graph(two_arguments)(3)
    assert registry.kind_of(two_arguments) == ""
    registered(two_arguments)
    loose = godynamo.substitute_in_graph(two_arguments, skip_signature_check=True)(lambda a: a)
    assert callable(loose)
    with pytest.raises(ValueError):
        godynamo.substitute_in_graph(two_arguments)(lambda a, b: b)


def test_a_method_of_text_is_captured_as_its_replacement(registered, x):
    registered(str.zfill)

    @godynamo.substitute_in_graph(str.zfill, skip_signature_check=True)
    def zfill(text, width):
        return len(text) + width

    f = godynamo.optimize(lambda x: x + "abc".zfill(2))
    assert torch.equal(f(x), x + 5)
    g = godynamo.optimize(lambda x: x + str.zfill("abc", 4))
    assert torch.equal(g(x), x + 7)
