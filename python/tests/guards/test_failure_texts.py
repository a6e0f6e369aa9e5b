"""Texts of failed guards: the condition, the value found and the expected one, for every kind of guard."""

import gc

import pytest
import torch

import godynamo
from godynamo import config
from godynamo._called import guard_env


@pytest.fixture
def x():
    return torch.ones(3)


def second_call(fn, first, second):
    """Return the guard failures that the second call causes."""
    w = godynamo.optimize(fn)
    for args in (first, second):
        w(*args() if callable(args) else args)
    return w.cache.failures


class Holder:
    def __init__(self, **attrs):
        self.__dict__.update(attrs)


class Net(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = torch.nn.Linear(3, size)


def by_value(x, n):
    return x * n


def by_length(x, items):
    return x * len(items) if items else x


def by_keys(x, d):
    for key in d:
        x = x * len(key)
    return x


def by_attribute(x, h):
    return x + 1 if hasattr(h, "extra") else x


def by_key(x, d):
    return x + 1 if "a" in d else x


def by_type(x, t):
    return x * 2 if type(t) is Holder else x


def by_identity(x, cls):
    return x * 2 if cls is Holder else x


def in_grad_mode(x):
    return x * 2 if torch.is_grad_enabled() else x


def without_grad_mode(x):
    with torch.no_grad():
        return in_grad_mode(x)


LONG = "q" * 5000
CASES = {
    "a number": (by_value, 2, 3, "3", "2"),
    "a text": (by_type, "abc", "abd", None, None),
    "a type": (by_value, 2, 2.5, "float", "int"),
    "a class": (by_type, Holder(), 3, "int", "Holder"),
    "a length": (by_length, [1, 2], [1, 2, 3], "3", "2"),
    "keys": (by_keys, {"a": 1}, {"a": 1, "bcd": 2}, "('a', 'bcd')", "('a',)"),
    "an attribute that came": (by_attribute, Holder(), Holder(extra=1), "there", "missing"),
    "an attribute that went": (by_attribute, Holder(extra=1), Holder(), "missing", "there"),
    "a key that came": (by_key, {}, {"a": 1}, None, None),
    "an identity": (by_identity, Holder, Net, "Net", "Holder"),
    "a long text": (lambda x, s: x * (s == LONG), LONG, "r" + LONG, None, None),
}


@pytest.mark.parametrize("name", CASES)
def test_both_values_are_told(name, x):
    fn, before, after, found, was = CASES[name]
    failures = second_call(fn, (x, before), (x, after))
    if found is None:  # any of several guards may be the one that is reported
        assert all((f.found is None) == (f.was is None) for f in failures)
        return
    [failure] = failures
    assert (failure.found, failure.was) == (found, was)
    assert isinstance(failure, str) and failure.startswith(f"{failure.part}: {failure.reason}")
    if failure.part.startswith("___loads("):  # a value passed to the transformed function, without a guard of its own
        return
    file, line = failure.line
    assert failure.endswith(f"({file}:{line})") and file == __file__
    assert fn.__code__.co_firstlineno < line <= fn.__code__.co_firstlineno + 2
    assert found in failure.reason and was in failure.reason


TENSORS = {
    "dtype": (lambda: torch.ones(3).double(), "float64", "float32"),
    "sizes": (lambda: torch.ones(4), "(4,)", "(3,)"),
    "number of dimensions": (lambda: torch.ones(3, 1), "2", "1"),
    "strides": (lambda: torch.ones(6)[::2], "(2,)", "(1,)"),
    "requires_grad": (lambda: torch.ones(3).requires_grad_(), "True", "False"),
    "type": (lambda: torch.nn.Parameter(torch.ones(3), requires_grad=False), "Parameter", "Tensor"),
    "device": (lambda: torch.ones(3, device="meta"), "meta", "cpu"),
}


@pytest.mark.parametrize("field", TENSORS)
def test_a_tensor_is_named_with_both_values(field, x):
    other, found, was = TENSORS[field]
    with config.patch(tensor_guards="full"):
        [failure] = second_call(lambda y, z: y + z[0], (1, [x]), (1, [other()]))
    if field == "device":  # its dispatch keys also differ
        assert "dispatch keys" in failure and "Meta" in failure.found and "CPU" in failure.was
        return
    assert (failure.found, failure.was) == (found, was)
    assert "tensor z[0]: " + field in failure.reason


@pytest.mark.filterwarnings("ignore")
def test_numbers_of_torchs_have_names():
    for dtype in {v for v in vars(torch).values() if isinstance(v, torch.dtype)}:
        try:
            view = godynamo._C.tensor_view(torch.empty(0, dtype=dtype))
        except (RuntimeError, NotImplementedError):
            continue
        if view is not None and view[3] < len(guard_env._DTYPES):
            assert "torch." + guard_env.field_text(guard_env.DTYPE, view[3]) == str(dtype)
    assert guard_env.field_text(guard_env.DEVICE, 0x0001) == "cuda:0"


def test_a_mode_is_told_with_both_values(x):
    w = godynamo.optimize(in_grad_mode)
    w(x)
    with torch.no_grad():
        w(x)
    [failure] = w.cache.failures
    assert (failure.found, failure.was) == ("off", "on")


MODES = {
    "inference mode": (torch.inference_mode, "on", "off"),
    "autocast on the CPU": (lambda: torch.autocast("cpu"), None, None),
    "default dtype": (None, "float64", "float32"),
}


@pytest.mark.parametrize("mode", MODES)
def test_torchs_state_is_told_in_words(mode, x):
    enter, found, was = MODES[mode]
    w = godynamo.optimize(by_value)
    with config.patch(tensor_guards="full"):
        w(x, 2)
        if enter is None:
            torch.set_default_dtype(torch.float64)
            try:
                w(x, 2)
            finally:
                torch.set_default_dtype(torch.float32)
        else:
            with enter():
                w(x, 2)
    for failure in w.cache.failures:
        assert failure.found and failure.was
        if found is not None:
            assert (failure.found, failure.was, mode in failure) == (found, was, True)


def test_values_are_shown_short_and_run_nothing_of_the_users(x):
    class Loud(list):
        def __repr__(self):
            raise AssertionError("shown")

        __iter__ = __len__ = __repr__

    def f(x, s):
        return x * 2 if s == LONG else x

    for value in (LONG + "x", "short", b"b" * 10_000, 10**5000, Loud(), [Loud()], {1: {2: [3]}}, [1] * 100):
        for failure in second_call(f, (x, LONG), (x, value)):
            assert len(failure.found) < 300 and len(failure.was) < 300


def test_failures_leave_nothing_behind(x):
    entry_of = godynamo.optimize(by_value)
    entry_of(x, 2)
    [entry] = entry_of.cache.entries()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        assert entry.failure((x, 3)).found == "3"
    gc.collect()
    assert len(gc.get_objects()) - before < 20
