"""set_stance in its three forms, its stances, and the callbacks of godynamo.callback."""

import sys
import threading

import pytest
import torch

import godynamo
from godynamo import _C, callback, exc, utils
from godynamo.testing import CompileCounter


@pytest.fixture
def x():
    return torch.randn(3)


@pytest.fixture(autouse=True)
def _default_stance():
    yield
    godynamo.set_stance("default")
    callback.callback_handler.clear()


def counted(**options):
    counter = CompileCounter()
    return counter, godynamo.optimize(lambda x, n=1: x + n, backend=counter, **options)


def test_force_eager_runs_cpython_and_default_translates_again(x):
    counter, f = counted()
    f(x)
    godynamo.set_stance("force_eager")
    assert torch.equal(f(x), x + 1)
    assert torch.equal(f(x, 5), x + 5)
    assert (counter.frame_count, godynamo.cache_stats(f)["hits"], godynamo.get_stance()) == (1, 0, "force_eager")
    godynamo.set_stance()
    f(x)
    f(x, 5)
    assert (counter.frame_count, godynamo.cache_stats(f)["hits"]) == (2, 1)


def test_force_eager_keeps_the_hook_from_serving(x):
    counter = CompileCounter()

    def inner(x):
        return x * 2

    with godynamo.optimize(backend=counter):
        with godynamo.set_stance("force_eager"):
            inner(x)
        assert counter.frame_count == 0
        inner(x)
    assert counter.frame_count == 1


def test_eager_on_recompile_serves_what_is_there(x):
    counter, f = counted()
    f(x)
    with godynamo.set_stance("eager_on_recompile"):
        assert torch.equal(f(x), x + 1)
        assert torch.equal(f(x, 2), x + 2)
    assert counter.frame_count == 1
    assert godynamo.cache_stats(f) == {"hits": 1, "misses": 2, "translations": 1}
    f(x, 2)
    assert counter.frame_count == 2


def test_fail_on_recompile_names_the_function_and_the_failed_guard(x):
    counter, f = counted()
    f(x)
    with godynamo.set_stance("fail_on_recompile"):
        assert torch.equal(f(x), x + 1)
        with pytest.raises(
            exc.RecompileError, match=r"'<lambda>' .*test_stance.py.*fail_on_recompile(.|\n)*n: expected 1, seen 2"
        ):
            f(x, 2)
        with pytest.raises(exc.RecompileError, match="no translation yet"):
            godynamo.optimize(lambda x: x - 1)(x)
    assert counter.frame_count == 1
    assert _C.counters()["refused"] == 2
    assert list(utils.guard_failures.values())
    assert torch.equal(f(x, 2), x + 2)


def test_eager_then_compile_translates_the_second_call(x):
    counter, f = counted()
    for stance in ("eager_then_compile", "aot_eager_then_compile"):
        with godynamo.set_stance(stance):
            before = counter.frame_count
            f(x)
            assert counter.frame_count == before
            f(x)
            f(x)
            assert counter.frame_count == before + 1
        counter, f = counted()


def test_eager_then_compile_translates_the_rest_of_a_split_frame_at_once(x):
    f = godynamo.optimize(lambda x: (x + 1, print(end=""), godynamo.graph_break(), x * 2)[3])
    with godynamo.set_stance("eager_then_compile"):
        f(x)
        assert torch.equal(f(x), x * 2)
        assert torch.equal(f(x), x * 2)
    assert utils.counters["stats"]["unique_graphs"] == 2


def test_as_a_decorator_it_holds_during_calls_only(x):
    counter, f = counted()

    @godynamo.set_stance("force_eager")
    def plain(x, fail=False):
        assert godynamo.get_stance() == "force_eager"
        if fail:
            raise KeyError
        return f(x)

    assert (plain.__name__, godynamo.get_stance()) == ("plain", "default")
    assert torch.equal(plain(x), x + 1)
    with pytest.raises(KeyError):
        plain(x, fail=True)
    assert (counter.frame_count, godynamo.get_stance()) == (0, "default")


def test_nested_blocks_give_back_the_stance_before(x):
    with godynamo.set_stance("force_eager"):
        with godynamo.set_stance("eager_on_recompile"):
            assert godynamo.get_stance() == "eager_on_recompile"
        assert godynamo.get_stance() == "force_eager"
    assert godynamo.get_stance() == "default"


def test_it_holds_for_all_threads(x):
    counter, f = counted()
    with godynamo.set_stance("force_eager"):
        thread = threading.Thread(target=f, args=(x,))
        thread.start()
        thread.join()
    assert counter.frame_count == 0


def test_inside_of_an_optimized_function_it_is_as_in_cpython(x):
    seen = []

    @godynamo.optimize
    def f(x):
        y = x + 1
        with godynamo.set_stance("force_eager"):
            seen.append(godynamo.get_stance())
            y = y * 2
        return y - 1

    for _ in range(3):
        assert torch.equal(f(x), (x + 1) * 2 - 1)
    assert seen == ["force_eager"] * 3
    assert godynamo.get_stance() == "default"

    inner = CompileCounter()
    g = godynamo.optimize(lambda x: x * 3, backend=inner)

    @godynamo.set_stance("force_eager")
    def plain(x):
        return g(x)

    h = godynamo.optimize(lambda x: plain(x + 1) - 1)
    assert torch.equal(h(x), (x + 1) * 3 - 1)
    assert torch.equal(h(x), (x + 1) * 3 - 1)
    assert inner.frame_count == 0


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: godynamo.set_stance("force_eger"), ValueError, "near it: 'force_eager'"),
        (lambda: godynamo.set_stance(3), TypeError, "a name, not 3"),
        (lambda: godynamo.set_stance("force_eager", force_backend="eager"), RuntimeError, "not with 'force_eager'"),
        (lambda: godynamo.set_stance(force_backend="eager"), NotImplementedError, "give optimize"),
        (lambda: godynamo.set_stance("force_eager")(3), TypeError, "decorates a function"),
        (lambda: callback.on_compile_start(3), TypeError, "one argument, not 3"),
        (lambda: callback.callback_handler.remove_end_callback(print), ValueError, "not registered"),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_guards_are_evaluated_all_the_same(x):
    _, f = counted()
    f(x)
    with godynamo.set_stance(skip_guard_eval_unsafe=True):
        assert torch.equal(f(x, 2), x + 2)


# ---- callbacks ----


def test_callbacks_are_told_of_each_translation(x):
    told = []
    start = callback.on_compile_start(lambda args: told.append(("start", args)))
    callback.on_compile_end(lambda args: told.append(("end", args)))
    _, f = counted(dynamic=False)
    f(x)
    f(x)
    f(x, 2)
    assert [what for what, _ in told] == ["start", "end", "start", "end"]
    first, second = told[0][1], told[2][1]
    assert first.callback_trigger is callback.CallbackTrigger.DYNAMO
    assert first.code is f.__code__
    assert (first.compile_id.split("/")[1], second.compile_id.split("/")[1]) == ("0", "1")
    callback.callback_handler.remove_start_callback(start)
    f(x, 3)
    assert [what for what, _ in told][4:] == ["end"]
    callback.callback_handler.clear()
    f(x, 4)
    assert len(told) == 5
    assert _C.get_config()["tells"] == 0


def test_a_callback_that_raises_is_reported_and_the_call_goes_on(x, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda info: reported.append(info.exc_value))
    callback.on_compile_start(lambda args: 1 / 0)
    callback.on_compile_end(lambda args: {}["missing"])
    _, f = counted()
    assert torch.equal(f(x), x + 1)
    assert [type(e) for e in reported] == [ZeroDivisionError, KeyError]


def test_a_frame_that_may_not_break_still_raises_its_own_error_with_callbacks(x):
    callback.on_compile_end(lambda args: None)
    with pytest.raises(exc.Unsupported):
        godynamo.optimize(lambda x: (x + 1, godynamo.graph_break()), nopython=True)(x)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("at", ["start", "end"])
def test_an_interrupt_in_a_callback_reaches_the_caller(x, at, kind):
    def interrupted(args):
        callback.callback_handler.clear()
        raise kind

    getattr(callback, f"on_compile_{at}")(interrupted)
    _, f = counted()
    with pytest.raises(kind):
        f(x)
    assert torch.equal(f(x), x + 1)
