"""optimize(): how it distinguishes its arguments, what it accepts and what it rejects."""

import functools
import inspect
import pickle
import weakref

import pytest
import torch

import godynamo
from godynamo import exc
from godynamo._user.optimize import looks_like_backend
from godynamo.testing import CompileCounter, CompileCounterWithBackend


def my_compiler(gm: torch.fx.GraphModule, example_inputs):
    return gm.forward


def annotated(a: "torch.fx.GraphModule", b):
    return a.forward


def some_backend(m, inputs):
    return m.forward


class CallableBackend:
    def __call__(self, gm, example_inputs):
        return gm.forward


class Model(torch.nn.Module):
    def forward(self, gm, example_inputs):
        return gm + example_inputs


def train_step(model, inputs):
    return model(inputs)


def two(x, y):
    return x + y


@pytest.mark.parametrize(
    "backend",
    [
        my_compiler,
        annotated,
        some_backend,
        CallableBackend(),
        lambda gm, ex: gm.forward,
        lambda m, example_inputs, **options: m.forward,
        functools.partial(lambda option, gm, inputs: gm.forward, 3),
        CompileCounter(),
        CompileCounterWithBackend("eager"),
    ],
)
def test_what_is_taken_for_a_backend(backend):
    assert looks_like_backend(backend)
    f = godynamo.optimize(backend)(two)
    assert f.options.backend is backend
    assert torch.equal(f(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.parametrize(
    "fn",
    [
        two,
        train_step,
        Model(),
        lambda x: x,
        lambda gm: gm,
        lambda gm, b, c: gm,
        lambda gm, b=1: gm,
        lambda gm, b, *, c: gm,
        lambda *gm: gm,
        len,
        torch.relu,
        Model,
    ],
)
def test_what_is_taken_for_a_function(fn):
    assert not looks_like_backend(fn)


def test_keywords_are_never_ambiguous():
    f = godynamo.optimize(fn=my_compiler)
    assert f.__wrapped__ is my_compiler
    g = godynamo.optimize(backend=two)
    assert g.options.backend is two
    h = godynamo.optimize(my_compiler, backend="eager")
    assert h.__wrapped__ is my_compiler
    k = godynamo.optimize(two, fn=my_compiler)
    assert (k.options.backend, k.__wrapped__) == (two, my_compiler)


def test_a_registered_backend_is_known_whatever_its_parameters():
    @godynamo.register_backend(name="test_forms_registered")
    def odd(a, b):
        return a.forward

    assert looks_like_backend(odd)
    assert godynamo.lookup_backend("test_forms_registered") is odd
    assert godynamo.optimize("test_forms_registered")(two).options.backend_name == "test_forms_registered"


def test_torch_compiles_keywords():
    counter = CompileCounter()
    f = godynamo.optimize(
        two, backend=counter, fullgraph=True, dynamic=False, mode="default", options=None, disable=False
    )
    assert f.options.nopython is True
    assert f.options.dynamic is False
    assert godynamo.optimize(two, disable=True) is two
    assert godynamo.optimize(None, backend="eager")(two)(1, 2) == 3
    assert godynamo.optimize_assert(counter)(two).options.nopython is True
    with pytest.raises(ValueError, match="mode or options"):
        godynamo.optimize(two, backend="inductor", mode="default", options={"max_autotune": True})


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: godynamo.optimize(3), TypeError, "not 3"),
        (lambda: godynamo.optimize()(3), TypeError, "not 3"),
        (lambda: godynamo.optimize(fn=3), TypeError, "not 3"),
        (lambda: godynamo.optimize(backend=3), TypeError, "not 3"),
        (lambda: godynamo.optimize(bool), TypeError, "builtin type .bool"),
        (lambda: godynamo.optimize(two, fn=two, backend="eager"), TypeError, "two"),
        (lambda: godynamo.optimize("eager", backend="eager"), TypeError, "two backends"),
        (lambda: godynamo.optimize("aot_eagr"), ValueError, "aot_eager"),
        (lambda: godynamo.optimize(backend="no such thing at all"), ValueError, "list_backends"),
        (lambda: godynamo.register_backend(3), TypeError, "not 3"),
        (lambda: godynamo.register_backend(two, name="eager"), ValueError, "built-in"),
        (lambda: godynamo.skip(3), TypeError, "not 3"),
        (lambda: godynamo.disable(3), TypeError, "not 3"),
        (lambda: godynamo.allow_in_graph(3), TypeError, "not 3"),
    ],
)
def test_what_is_refused_is_refused_at_once(call, error, text):
    with pytest.raises(error, match=text):
        call()


class Counter:
    """Has methods of every kind."""

    def __init__(self):
        self.n = 2

    def method(self, x):
        """Doc of method."""
        return x * self.n

    @godynamo.optimize
    def decorated(self, x):
        return x * self.n + 1

    @godynamo.optimize
    @staticmethod
    def static(x):
        return x + 1

    @godynamo.optimize
    @classmethod
    def cls(cls, x):
        return x + 2

    def __call__(self, x):
        return x - self.n


def test_everything_callable_can_be_optimized():
    x = torch.randn(3)
    c = Counter()
    cases = [
        (c.method, x * 2),
        (c, x - 2),
        (lambda x: x + 5, x + 5),
        (functools.partial(two, y=3), x + 3),
        (torch.relu, x.relu()),
    ]
    for fn, expected in cases:
        w = godynamo.optimize(fn)
        assert torch.equal(w(x), expected)
        assert inspect.signature(w) == inspect.signature(fn) if fn is not torch.relu else True
        assert w.__wrapped__ == fn
    assert torch.equal(c.decorated(x), x * 2 + 1)
    assert torch.equal(Counter.static(x), x + 1)
    assert torch.equal(c.static(x), x + 1)
    assert torch.equal(Counter.cls(x), x + 2)


def test_names_of_what_is_wrapped_are_kept():
    w = godynamo.optimize(Counter().method)
    assert (w.__name__, w.__qualname__, w.__doc__) == ("method", "Counter.method", "Doc of method.")
    assert godynamo.optimize(two).__module__ == two.__module__


def test_optimizing_again_replaces_the_first_optimize():
    counter = CompileCounter()
    f = godynamo.optimize(godynamo.optimize(two), backend=counter)
    assert f.__wrapped__ is two
    f(torch.ones(1), torch.ones(1))
    assert counter.frame_count == 1


def test_wrong_calls_get_cpythons_message():
    for args, kwargs in [((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"z": 3}), ((1, 2), {"x": 3})]:
        with pytest.raises(TypeError) as plain:
            two(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            godynamo.optimize(two)(*args, **kwargs)
        assert str(ours.value) == str(plain.value)


module_level = godynamo.optimize(two)


def test_the_optimizer_pickles_with_a_named_backend():
    o = pickle.loads(pickle.dumps(godynamo.optimize(backend="aot_eager", nopython=True)))
    assert (o.options.backend_name, o.options.nopython) == ("aot_eager", True)


def test_an_optimized_callable_takes_weak_references_and_dies():
    f = godynamo.optimize(lambda x: x + 1)
    f(torch.ones(1))
    ref = weakref.ref(f)
    del f
    assert ref() is None


def test_nopython_raises_where_a_break_is_with_reason_and_line():
    @godynamo.optimize(nopython=True)
    def f(x):
        x = x + 1
        godynamo.graph_break()
        return x

    with pytest.raises(exc.Unsupported, match="graph_break") as caught:
        f(torch.ones(1))
    assert caught.value.code == "GD0001"
    name, file, line = caught.value.stack[0]
    assert name.endswith("f")
    assert file == __file__
    assert line == inspect.getsourcelines(f.__wrapped__)[1] + 3
