"""torch's modes, random numbers and shapes if a frame breaks or runs again: cases found by make fuzz-torch."""

from __future__ import annotations

import pytest
import torch

import godynamo


def whole(gm, example_inputs):
    return gm.forward


BACKENDS = pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])


def raised(fn, *args):
    """Return the type and text of a call's exception, and a random number drawn afterwards."""
    torch.manual_seed(0)
    text = None
    try:
        fn(*args)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return text, torch.rand(()).item()


@BACKENDS
def test_a_piece_without_operations_switches_the_mode(backend):
    def fn(m, w):
        with torch.enable_grad():
            m.float()
            with torch.no_grad():
                w.exponential_()
        return w

    w = torch.nn.Parameter(torch.ones(3))
    assert godynamo.optimize(fn, backend=backend)(torch.nn.Linear(2, 2), w) is w
    assert torch.is_grad_enabled()


@BACKENDS
def test_a_mode_that_is_entered_without_operations_is_left_behind_an_exception(backend):
    def fn(x):
        with torch.inference_mode():

            def inner(z):
                pass

            return None + x

    assert raised(godynamo.optimize(fn, backend=backend), torch.ones(2)) == raised(fn, torch.ones(2))
    assert not torch.is_inference_mode_enabled()


@BACKENDS
def test_a_module_loads_its_state_after_an_operation(backend):
    def fn(m, x):
        x = m(x)
        m.load_state_dict(m.state_dict())
        return x

    m, x = torch.nn.Linear(4, 4), torch.ones(2, 4)
    assert torch.equal(godynamo.optimize(fn, backend=backend)(m, x), m(x))


@BACKENDS
def test_iterating_a_tensor_rests_on_its_length(backend):
    def fn(x, y):
        for _ in y:
            x.add_(2)
        return x

    f = godynamo.optimize(fn, backend=backend)
    for rows in (2, 3, 1, 2):
        x = torch.zeros(rows, 2)
        assert f(x, x)[0, 0].item() == 2 * rows


def test_an_instance_of_a_typed_tensor_class_rests_on_the_dtype():
    def fn(x):
        return x + 1, isinstance(x, torch.FloatTensor), isinstance(x, (int, torch.DoubleTensor))

    f = godynamo.optimize(fn)
    for x in (torch.ones(2), torch.ones(2).double(), torch.ones(2)):
        assert f(x)[1:] == fn(x)[1:]


@BACKENDS
def test_random_numbers_stay_drawn_where_an_operation_outside_of_try_raises(backend):
    layer = torch.nn.Linear(4, 4)

    def fn(x):
        noise = torch.bernoulli(x.sigmoid())
        y = layer(x)
        try:
            noise = torch.zeros(4) + noise
        except RuntimeError:
            pass
        return y + noise

    f = godynamo.optimize(fn, backend=backend)
    for x in (torch.ones(2, 4), torch.ones(2, 4).double(), torch.ones(2, 4)):
        assert raised(f, x) == raised(fn, x)


@BACKENDS
def test_the_exit_of_a_manager_of_an_earlier_piece_holds_when_the_graph_raises(backend):
    class Thing:
        pass

    def fn(x, y):
        with torch.no_grad():

            class Other(Thing):
                pass

        with torch.enable_grad():
            z = torch.nn.functional.alpha_dropout(y, 0.3, True)
            return z, x @ x

    f = godynamo.optimize(fn, backend=backend)
    for x in (torch.ones(2, 2), torch.ones(2, 4), torch.ones(2, 2)):
        for call in (fn, f):
            raised(call, x, torch.ones(2, 4))
            assert torch.is_grad_enabled()
        assert raised(f, x, torch.ones(2, 4)) == raised(fn, x, torch.ones(2, 4))


@BACKENDS
def test_an_operation_that_draws_and_raises_inside_of_try_draws_once(backend):
    def fn(x):
        try:
            return torch.nn.functional.dropout(x, 0.5)
        finally:
            pass

    f = godynamo.optimize(fn, backend=backend)
    for x in (torch.ones(4), torch.ones(4, dtype=torch.int64), torch.ones(4)):
        assert raised(f, x) == raised(fn, x)


@BACKENDS
def test_a_change_in_place_that_draws_and_raises_inside_of_try_draws_once(backend):
    def fn(x):
        try:
            x.normal_()
        except RuntimeError as error:
            return str(error), torch.rand(1)
        return x, torch.rand(1)

    with torch.inference_mode():
        inference = torch.ones(4)
    f = godynamo.optimize(fn, backend=backend)
    for make in (lambda: torch.ones(4), lambda: inference, lambda: torch.ones(4)):
        results = []
        for call in (fn, f):
            torch.manual_seed(0)
            x = make()
            results.append((repr(call(x)), repr(x)))
        assert results[0] == results[1]
