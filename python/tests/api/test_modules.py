"""The result of optimize(module)."""

import abc
import copy
import gc
import inspect
import pickle
import weakref

import pytest
import torch
from torch import nn

import godynamo
from godynamo.testing import CompileCounter


class Scaled(nn.Module):
    made = []

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Scaled.made.append(cls)

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = 2

    def forward(self, x):
        """Doc."""
        return self.linear(x) * self.scale

    def who(self):
        return type(self)


@pytest.fixture
def x():
    return torch.randn(2, 4)


def test_it_is_the_module_in_all_but_its_calls(x):
    m = Scaled()
    h = godynamo.optimize(m)
    assert isinstance(h, Scaled)
    assert (type(h).__name__, type(h).__qualname__, type(h).__module__) == ("Scaled", "Scaled", __name__)
    assert h.__dict__ is m.__dict__
    assert list(h.state_dict()) == list(m.state_dict())
    assert [id(p) for p in h.parameters()] == [id(p) for p in m.parameters()]
    assert repr(h) == repr(m)
    assert torch.equal(h(x), m(x))
    assert inspect.signature(h) == inspect.signature(m)
    assert inspect.signature(type(h)) == inspect.signature(Scaled)
    h.scale = 3
    assert m.scale == 3
    assert torch.equal(h(x), m(x))
    assert h.train(False) is h
    assert m.training is False
    h.to(torch.float64)
    assert m.linear.weight.dtype is torch.float64
    assert torch.equal(h(x.double()), m(x.double()))


def test_the_module_runs_as_itself(x):
    class Asks(Scaled):
        def forward(self, x):
            seen.append((type(self), self))
            return super().forward(x)

    seen = []
    m = Asks()
    godynamo.optimize(m)(x)
    assert seen[-1][0] is Asks
    assert seen[-1][1] is m


def test_the_class_is_made_once_and_the_users_hooks_for_subclasses_do_not_run():
    before = list(Scaled.made)
    a, b = godynamo.optimize(Scaled()), godynamo.optimize(Scaled(), backend="aot_eager")
    assert type(a) is type(b)
    assert Scaled.made == before


def test_a_metaclass_of_the_users_is_not_run():
    ran = []

    class Meta(abc.ABCMeta):
        def __new__(mcs, name, bases, namespace):
            ran.append(name)
            return super().__new__(mcs, name, bases, namespace)

    class WithMeta(Scaled, metaclass=Meta):
        pass

    h = godynamo.optimize(WithMeta())
    assert isinstance(h, WithMeta)
    assert ran == ["WithMeta"]


def test_hooks_run(x):
    m = nn.Linear(4, 4)
    h = godynamo.optimize(m)
    seen = []
    handle = h.register_forward_hook(lambda module, args, out: seen.append(module) or out + 1)
    assert torch.equal(h(x), nn.functional.linear(x, m.weight, m.bias) + 1)
    assert seen == [m]
    handle.remove()
    assert torch.equal(h(x), nn.functional.linear(x, m.weight, m.bias))


def test_containers_index_and_iterate(x):
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    h = godynamo.optimize(m)
    assert len(h) == 2
    assert h[0] is m[0]
    assert list(h) == list(m)
    assert torch.equal(h(x), m(x))


def test_a_handle_is_a_good_child_of_another_module(x):
    child = Scaled()
    parent = nn.Sequential(godynamo.optimize(child), nn.ReLU())
    assert list(parent.state_dict()) == ["0.linear.weight", "0.linear.bias"]
    assert torch.equal(parent(x), child(x).relu())


def test_copies_are_optimized_copies(x):
    h = godynamo.optimize(Scaled(), backend="aot_eager", nopython=True)
    for c, shared in [(copy.deepcopy(h), False), (copy.copy(h), True), (pickle.loads(pickle.dumps(h)), False)]:
        assert type(c) is type(h)
        assert c is not h
        assert (c.linear is h.linear) is shared
        assert c.__call__.options.backend_name == "aot_eager"
        assert c.__call__.options.nopython is True
        assert torch.allclose(c(x), h(x))


class OwnCall(nn.Module):
    def __call__(self, x, *, times=1):
        return super().__call__(x) * times

    def forward(self, x):
        return x + 1


def test_the_users_own_call_is_what_runs(x):
    h = godynamo.optimize(OwnCall())
    assert torch.equal(h(x, times=3), (x + 1) * 3)


class Slotted(nn.Module):
    __slots__ = ("extra",)

    def __init__(self):
        self.extra = 5
        super().__init__()

    def forward(self, x):
        return x * self.extra


def test_slots_of_the_users_get_a_proxy(x):
    m = Slotted()
    h = godynamo.optimize(m)
    assert isinstance(h, Slotted)
    assert torch.equal(h(x), x * 5)
    h.extra = 6
    assert m.extra == 6
    assert torch.equal(h(x), x * 6)
    assert list(h.state_dict()) == []
    del h.extra
    assert not hasattr(m, "extra")


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_script_modules_get_a_proxy(x):
    m = torch.jit.script(nn.Sequential(nn.Linear(4, 4)))
    h = godynamo.optimize(m)
    assert isinstance(h, torch.jit.ScriptModule)
    assert torch.equal(h(x), m(x))
    assert len(h) == 1


def test_disable_keeps_a_module_from_being_translated(x):
    m = Scaled()
    d = godynamo.disable(m)
    assert isinstance(d, Scaled)
    assert torch.equal(d(x), m(x))


def test_optimizing_a_handle_optimizes_its_module(x):
    m = Scaled()
    h = godynamo.optimize(godynamo.optimize(m), backend="aot_eager")
    assert h.__dict__ is m.__dict__
    assert h.__call__.options.backend_name == "aot_eager"
    assert h.__call__.self_object is m


def test_module_and_handle_die(x):
    m = Scaled()
    h = godynamo.optimize(m)
    with torch.no_grad():
        h(x)
    refs = [weakref.ref(m), weakref.ref(h), weakref.ref(m.linear.weight)]
    del m, h
    gc.collect()
    assert [r() for r in refs] == [None, None, None]


class OfDict(nn.Module, dict):  # dict's C fields leave no room for those of a handle
    def forward(self, x):
        return x + 1


class Keywords(nn.Module):
    def forward(self, *args, **kwargs):
        return args, kwargs


class Filled(nn.Module):
    def forward(self, x, **kwargs):
        kwargs["seen"] = x
        return kwargs


def test_a_class_with_a_layout_of_its_own_in_c_gets_a_proxy(x):
    h = godynamo.optimize(OfDict())
    assert isinstance(h, OfDict)
    for _ in range(3):
        assert torch.equal(h(x), x + 1)
    assert h.__call__.self_object is not h


@pytest.mark.parametrize("kind", [Keywords, Filled])
def test_each_call_has_arguments_of_its_own(x, kind):
    """Each call gets fresh arguments. Empty **kwargs come from a spare dict, which is not reused while it is
    referenced or has items."""
    m, h = kind(), godynamo.optimize(kind())
    kept = []
    for _ in range(4):
        kept.append(h(x))
        got, want = kept[-1], m(x)
        if kind is Keywords:
            got, want = {"args": got[0], **got[1]}, {"args": want[0], **want[1]}
        assert list(got) == list(want)
    dicts = [k if kind is Filled else k[1] for k in kept]
    assert len({id(d) for d in dicts}) == len(dicts)
    dicts[0]["more"] = 1
    assert "more" not in (h(x) if kind is Filled else h(x)[1])
    if kind is Keywords:
        assert h(x, y=1)[1] == {"y": 1}
        assert h()[0] == ()
        assert h(x, x)[0] == (x, x)


def test_a_call_set_on_the_handle_class_is_what_runs(x):
    class Own(Scaled):
        pass

    h = godynamo.optimize(Own())
    want = h(x)
    assert torch.equal(type(h).__call__.__get__(h)(x), want)
    call = type(h).__dict__["__call__"]
    type(h).__call__ = lambda _self, *args, **kwargs: (args, kwargs)
    assert h(x, k=1) == ((x,), {"k": 1})
    type(h).__call__ = call
    assert torch.equal(h(x), want)
    h._godynamo_call = lambda *args: args
    assert h(x) == (x,)
    del h._godynamo_call
    with pytest.raises((TypeError, AttributeError)):
        h(x)


def test_a_subclass_of_a_handle_class_calls_as_it_says(x):
    h = godynamo.optimize(Scaled())

    class Sub(type(h)):
        def __call__(self, x):
            return x

    s = object.__new__(Sub)
    assert s(x) is x
    bare = object.__new__(type(h))
    with pytest.raises((TypeError, AttributeError)):
        bare(x)


def test_wrong_arity_gets_cpythons_message(x):
    class One(nn.Module):
        def forward(self, x):
            return x

    m = One()
    h = godynamo.optimize(m)
    for args in [(), (x, x)]:
        with pytest.raises(TypeError) as want:
            m(*args)
        with pytest.raises(TypeError) as got:
            h(*args)
        assert str(got.value) == str(want.value)


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = godynamo.optimize(torch.nn.Linear(3, 3))
        self.part = torch.nn.Sequential(godynamo.optimize(torch.nn.ReLU()), godynamo.optimize(Slotted()))

    def forward(self, x):
        return self.part(self.inner(x)) + self.inner._orig_mod.weight.sum() + self.inner.forward(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_handles_in_captured_code_are_their_modules(backend):
    holder = Holder()
    expected, outside = holder(torch.ones(3)), holder.inner

    def f(x):
        return holder(x) + outside(x), outside.forward

    compiled = godynamo.optimize(f, backend=backend)
    for _ in range(2):
        got, forward = compiled(torch.ones(3))
        assert torch.equal(got, expected + outside(torch.ones(3)))
        assert forward is outside.forward
    assert godynamo.explain(f)(torch.ones(3)).graph_break_count == 0


def test_hooks_of_a_handles_module_run_in_captured_code():
    handle, seen = godynamo.optimize(torch.nn.Linear(3, 3)), []
    handle.register_forward_hook(lambda module, args, output: seen.append(type(module)) or output * 2)

    def f(x):
        return handle(x) - handle.forward(x)

    for compiled in (f, godynamo.optimize(f)):
        assert torch.equal(compiled(torch.ones(3)), handle.forward(torch.ones(3)))
    assert seen == [torch.nn.Linear] * 2


@pytest.mark.parametrize("cls", [torch.nn.ReLU, Slotted])
def test_forward_of_a_handle_is_optimized(cls):
    counter, module = CompileCounter(), cls()
    handle = godynamo.optimize(module, backend=counter)
    for _ in range(2):
        assert torch.equal(handle.forward(torch.ones(3)), module.forward(torch.ones(3)))
    assert counter.frame_count == 1
    assert handle.forward is handle.forward
    assert handle.forward.__self__ is module
    assert inspect.signature(handle.forward) == inspect.signature(module.forward)


def test_a_replaced_forward_is_that_of_the_handle(monkeypatch):
    module = torch.nn.ReLU()
    handle = godynamo.optimize(module)

    def f(x):
        return handle.forward(x)

    compiled = godynamo.optimize(f)
    assert torch.equal(compiled(-torch.ones(3)), torch.zeros(3))
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.ReLU, "forward", lambda self, x: x * 5)
        assert torch.equal(handle.forward(torch.ones(3)), torch.full((3,), 5.0))
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 5.0))
    module.forward = lambda x: x * 7
    assert torch.equal(handle.forward(torch.ones(3)), torch.full((3,), 7.0))
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 7.0))
    with pytest.raises(NotImplementedError, match="missing the required"):
        godynamo.optimize(torch.nn.Module()).forward(1)


@pytest.mark.parametrize("mode", [godynamo.disable, godynamo.run], ids=lambda m: m.__name__)
def test_forward_of_a_handle_that_is_not_optimized(mode):
    handle = mode(torch.nn.ReLU())
    assert torch.equal(handle.forward(-torch.ones(3)), torch.zeros(3))
    assert torch.equal(handle(-torch.ones(3)), torch.zeros(3))
