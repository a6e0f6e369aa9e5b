"""The callable W, which optimize(f) returns: its attributes, what it keeps alive, the outcomes of calls."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import types
import typing
import weakref
from typing import Any

import pytest

from godynamo import _C
from pyhook_support import (
    RUN_ORIGINAL,
    callback,
    config,
    counted,
    extent,
    give_slots,
    make_entry,
    slots_of,
    translator,
    type_guard,
)


def importable(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


plain_importable = importable
importable = _C.Callable(importable)  # type: ignore[assignment]


class Holder:
    def __init__(self, base: int = 100) -> None:
        self.base = base

    @_C.Callable
    def method(self, x: int) -> int:
        return self.base + x

    @staticmethod
    @_C.Callable
    def static(x: int) -> int:
        return x

    @classmethod
    @_C.Callable
    def make(cls, x: int) -> tuple[type, int]:
        return cls, x


class TestLooksLikeItsFunction:
    def test_attributes_are_the_functions(self) -> None:
        for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__kwdefaults__",
        "__annotations__",
                     "__code__", "__closure__", "__globals__"):  # fmt: skip
            assert getattr(importable, name) == getattr(plain_importable, name), name
        assert importable.__wrapped__ is plain_importable
        assert inspect.signature(importable) == inspect.signature(plain_importable)
        assert typing.get_type_hints(importable) == typing.get_type_hints(plain_importable)
        assert "importable" in repr(importable)
        assert callable(importable) and inspect.getsource(importable) == inspect.getsource(plain_importable)

    def test_names_set_on_it_stay_off_the_function(self) -> None:
        def f() -> None:
            """doc"""

        w = _C.Callable(f)
        w.__name__, w.__doc__ = "g", "other"
        w.note = 3
        assert (w.__name__, w.__doc__, w.note, f.__name__, f.__doc__) == ("g", "other", 3, "f", "doc")
        del w.__name__
        assert w.__name__ == "f" and not hasattr(f, "note")
        with pytest.raises(AttributeError):
            del w.__name__

    def test_fields_set_on_it_are_the_functions(self) -> None:
        def f(a: int) -> int:
            return a

        w = _C.Callable(f)
        w.__defaults__ = (5,)
        assert f() == w() == 5  # type: ignore[call-arg]

    def test_functools_wraps_works_on_it(self) -> None:
        def f() -> None: ...

        f.tag = "kept"  # type: ignore[attr-defined]
        w = _C.Callable(f)
        assert w.tag == "kept"

        @functools.wraps(w)
        def outer() -> None: ...

        assert outer.__wrapped__ is w and outer.__name__ == "f" and outer.tag == "kept"  # type: ignore[attr-defined]
        functools.update_wrapper(w, importable)
        assert w.__name__ == "importable" and w.__wrapped__ is importable and f.__name__ == "f"

    def test_wrapped_may_be_something_else(self) -> None:
        part = functools.partial(plain_importable, 1)

        def call_it(*args: Any) -> Any:
            return part(*args)

        w = _C.Callable(call_it, None, None, wrapped=part)
        assert w.__wrapped__ is part and inspect.signature(w) == inspect.signature(part)
        assert not hasattr(w, "__name__") and w(4) == 5

    def test_what_is_wrapped_may_be_replaced_while_it_is_asked(self) -> None:
        class Replaces:
            def __getattribute__(self, name: str) -> Any:
                if name == "__name__":
                    w.__wrapped__ = print
                    raise AttributeError(name)
                return object.__getattribute__(self, name)

            def __getattr__(self, name: str) -> str:
                return f"{type(self).__name__} has no {name}"  # now W has dropped the only reference

            def __repr__(self) -> str:
                w.__wrapped__ = print
                return f"{type(self).__name__}()"

        w = _C.Callable(plain_importable)
        w.__wrapped__ = Replaces()
        assert w.__name__ == "Replaces has no __name__"
        w.__wrapped__ = Replaces()
        assert repr(w) == "<optimized Replaces()>"

    def test_only_functions_are_wrapped(self) -> None:
        for wrong in (len, 3, None, Holder, Holder().method):
            with pytest.raises(TypeError):
                _C.Callable(wrong)


class TestMethods:
    def test_in_a_class_body(self) -> None:
        h = Holder()
        assert h.method(1) == 101 and Holder.method(h, 2) == 102 and Holder.static(3) == 3
        assert Holder.make(4) == (Holder, 4)
        bound = h.method
        assert type(bound) is types.MethodType and bound.__func__ is Holder.__dict__["method"]
        assert functools.partial(bound, 5)() == 105

    def test_bound_callable_is_not_bound_again(self) -> None:
        h = Holder(7)
        w = _C.Callable(plain_method, h)
        assert type(w) is _C.BoundCallable and isinstance(w, _C.Callable)
        assert w.__self__ is h and w.self_object is h and w.__wrapped__ == types.MethodType(plain_method, h)
        assert inspect.signature(w) == inspect.signature(types.MethodType(plain_method, h))

        class Other:
            stored = w

        assert Other().stored(1) == Other.stored(1) == 8
        with translator(give_slots):
            assert Other().stored(1) == (h, 1)
            assert Other().stored(x=2) == (h, 2)

    def test_as_a_types_call(self) -> None:
        h = Holder(7)

        class Handle:
            __call__ = _C.Callable(plain_method, h)

        assert Handle()(3) == 10

    def test_dunder_self_is_missing_on_a_plain_one(self) -> None:
        assert not hasattr(importable, "__self__")


def plain_method(self: Holder, x: int) -> int:
    return self.base + x


class TestCopies:
    def test_pickles_by_name(self) -> None:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(importable, protocol)) is importable
        assert copy.copy(importable) is importable and copy.deepcopy([importable])[0] is importable

    def test_what_cannot_be_imported_does_not_pickle(self) -> None:
        def local() -> None: ...

        for wrong in (_C.Callable(local), _C.Callable(plain_importable)):
            with pytest.raises((pickle.PicklingError, AttributeError)):
                pickle.dumps(wrong)


class TestLifetime:
    def test_weak_references(self) -> None:
        w = _C.Callable(lambda: 1)
        r = weakref.ref(w)
        cache, root = weakref.ref(w.cache), weakref.ref(w.root)
        del w
        assert r() is None and cache() is None and root() is None

    def test_cycles_are_collected(self) -> None:
        class Model:
            def forward(self, x: int) -> int:
                return x

        def through_self() -> Any:
            m = Model()
            m.forward = _C.Callable(Model.forward, m)  # type: ignore[method-assign]
            assert m.forward(1) == (m, 1)
            return m

        def through_closure() -> Any:
            def f(x: int) -> Any:
                return w if x else None

            w = _C.Callable(f)
            assert len(w(1)) == 2
            return w

        def through_entry() -> Any:
            def f(x: int) -> int:
                return x

            w = _C.Callable(f)

            def transformed(x: int) -> Any:
                return w

            with translator(lambda request: make_entry(transformed, 1)):
                assert w(1) is w
            return w

        def through_tuple() -> Any:
            t: list[Any] = []
            t.append(_C.Callable(plain_method, (t,)))  # type: ignore[arg-type]
            return t[0]

        def through_resume() -> Any:
            def f(x: int) -> int:
                return x

            w = _C.Callable(f)

            def transformed(x: int) -> Any:
                return resume

            resume = _C.resume_new(w, f)
            with translator(lambda request: make_entry(transformed, 1)):
                w(1)
            return w

        with translator(give_slots):
            for make in (through_self, through_closure, through_entry, through_tuple, through_resume):
                r = weakref.ref(make())
                gc.collect()
                assert r() is None, make.__name__

    def test_ten_thousand_made_and_dropped(self) -> None:
        def round_() -> None:
            def f(a: int, *rest: int, **kw: int) -> int:
                return a

            w = _C.Callable(f)
            w(1)
            w(1, 2, 3, b=4)
            w.extra = 1
            _C.resume_new(w, f)

        with translator(give_slots) as t:
            for _ in range(100):
                round_()
            t.requests.clear()
            gc.collect()
            before = sys.getallocatedblocks()
            for _ in range(10_000):
                round_()
                t.requests.clear()
            gc.collect()
            assert sys.getallocatedblocks() - before < 200

    def test_reference_counts_of_arguments(self) -> None:
        class Thing: ...

        x, y = Thing(), Thing()

        def f(a: Any, b: Any = y, *rest: Any, c: Any = None, **kw: Any) -> Any:
            return None

        def nothing(*slots: Any) -> None: ...

        def hits() -> Any:
            w = _C.Callable(f)
            with translator(lambda request: make_entry(nothing, 5)):
                w(x)
            assert w(x) is None
            return w

        for w in (hits(), _C.Callable(f), _C.Callable(f, x)):
            before = [sys.getrefcount(o) for o in (x, y, f, w, w.cache, w.root)]
            for _ in range(100):
                w(x)
                w(x, y, x, c=y, d=x)
                with pytest.raises(TypeError):
                    w(x, a=x)
            assert [sys.getrefcount(o) for o in (x, y, f, w, w.cache, w.root)] == before

    def test_entry_lives_while_it_runs(self) -> None:
        def f(x: int) -> int:
            return x

        w = _C.Callable(f)

        def clears(x: int) -> int:
            w.cache.clear()
            gc.collect()
            return x + 1

        with translator(lambda request: make_entry(clears, 1)):
            assert w(1) == 2
            assert w.cache.entries() == []
            assert w(2) == 3


class TestCalls:
    def test_miss_then_hits(self) -> None:
        with translator(give_slots) as t:
            w = _C.Callable(lambda a, b: a)
            assert [w(1, i) for i in range(4)] == [(1, i) for i in range(4)]
        assert len(t.requests) == 1 and t.requests[0]["kind"] == _C.FRAME_DIRECT
        assert w.cache.stats() == {"hits": 3, "misses": 1, "entries": 1, "skip": False, "warned": False}

    def test_no_library_no_translation_on_a_hit(self) -> None:
        w = _C.Callable(lambda a: a)
        with translator(give_slots):
            w(1)
        calls, translations = _C.golib_calls(), counted("translations")
        assert w(2) == (2,) and (_C.golib_calls(), counted("translations")) == (calls, translations)

    def test_entries_are_tried_in_order_and_move_to_the_front(self) -> None:
        def answer(request: dict[str, Any]) -> Any:
            kind = type(request["slots"][0])

            def transformed(x: Any) -> str:
                return kind.__name__

            return make_entry(transformed, 1, **type_guard(0, kind))

        w = _C.Callable(lambda x: "original")
        with translator(answer) as t:
            assert [w(v) for v in (1, "s", 2.0, 1, "s", 2.0)] == ["int", "str", "float"] * 2
        assert [r["nentries"] for r in t.requests] == [0, 1, 2]
        assert [len(r["failures"] or []) for r in t.requests] == [0, 1, 2]
        assert len(w.cache.failures) == 3 and all(isinstance(f, str) for f in w.cache.failures)
        first = w.cache.entries()[0]
        assert w(2.5) == "float" and w.cache.entries()[0] is first
        assert w(7) == "int" and w.cache.entries()[0] is not first

    def test_what_a_translation_may_answer(self) -> None:
        def f(x: int) -> str:
            return "original"

        w = _C.Callable(f)
        with translator(lambda request: None) as t:
            assert w(1) == w(1) == "original" and len(t.requests) == 2
        with translator(lambda request: 1 / 0), pytest.raises(ZeroDivisionError):
            w(1)
        with translator(lambda request: "skip") as t:
            assert w(1) == w(1) == "original" and len(t.requests) == 1
        assert w.cache.skip and _C.code_flags(f.__code__) & _C.CODE_SKIP
        _C.mark_skip(f.__code__, False)
        with translator(give_slots):
            assert w(1) == (1,)

    def test_an_entry_may_run_the_original(self) -> None:
        w = _C.Callable(lambda x, y=2: (x, y))
        with translator(lambda request: make_entry(None, 2, flags=RUN_ORIGINAL)) as t:
            assert w(1) == (1, 2) and w(x=5) == (5, 2) and w(1, 9) == (1, 9)
        assert len(t.requests) == 1 and w.cache.hits == 2

    def test_the_function_may_have_any_signature(self) -> None:
        kept = object()

        def exact(a: Any, b: Any) -> Any:
            c = (a, b)
            return c, [a for _ in range(2)], lambda: (a, c, kept)

        def default(a: Any, b: Any, c: Any = 3) -> Any:
            return a, b, c

        def rest(a: Any, *others: Any, k: Any = 4, **named: Any) -> Any:
            return a, others, k, named

        def generator(a: Any, b: Any) -> Any:
            yield a
            yield b

        def counts(function: Any) -> tuple[Any, Any]:
            a, b = object(), object()
            w = _C.Callable(lambda a, b: "original")
            with translator(lambda request: make_entry(function, 2)):
                before = sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(kept)
                for _ in range(4):
                    got, want = w(a, b), function(a, b)
                    if function is generator:
                        got, want = list(got), list(want)
                    elif function is exact:
                        got, want = (got[:2], got[2]()), (want[:2], want[2]())
                    assert got == want
                got = want = None
                after = sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(kept)
            return before, after

        for function in (exact, default, rest, generator):
            before, after = counts(function)
            assert before == after, function

    def test_code_of_the_function_may_be_replaced(self) -> None:
        def transformed(a: int) -> Any:
            return "first", a

        def other(a: int, *rest: int, k: int = 1) -> Any:
            return "second", a, rest, k

        w = _C.Callable(lambda a: a)
        with translator(lambda request: make_entry(transformed, 1)):
            assert w(1) == w(1) == ("first", 1)
            transformed.__code__ = other.__code__
            transformed.__kwdefaults__ = {"k": 1}
            assert w(2) == ("second", 2, (), 1)

    def test_exceptions_come_through(self) -> None:
        def raises(x: int) -> None:
            raise KeyError(x)

        w = _C.Callable(lambda x: x)
        with translator(lambda request: make_entry(raises, 1)):
            for i in range(3):
                with pytest.raises(KeyError) as e:
                    w(i)
                assert e.value.args == (i,)

    def test_replaced_code_is_another_frame(self) -> None:
        def f(x: int) -> Any:
            return "old"

        def g(x: int, y: int = 3) -> Any:
            return "new"

        w = _C.Callable(f)
        with translator(give_slots):
            assert w(1) == (1,)
        f.__code__ = g.__code__
        f.__defaults__ = g.__defaults__
        assert w(1) == "new"
        with translator(give_slots):
            assert w(1) == (1, 3)

    def test_reset_drops_everything(self) -> None:
        w = _C.Callable(lambda x: "original")
        with translator(give_slots) as t:
            w(1)
            (entry,) = w.cache.entries()
            _C.reset_caches()
            assert not entry.valid and w.cache.entries() == [] and w.cache.stats()["hits"] == 0
            assert w(1) == (1,) and len(t.requests) == 2

    def test_resume_functions(self) -> None:
        owner = _C.Callable(lambda: None, None, "the options")
        r = _C.resume_new(owner, slots_two)
        assert (r.kind, owner.kind) == (_C.FRAME_RESUME, _C.FRAME_DIRECT)
        assert r.root is owner.root and r.options == "the options" and r.cache is not owner.cache
        with pytest.raises(TypeError):
            _C.resume_new(3, slots_two)
        with pytest.raises(TypeError):
            r(1, b=2)

    def test_a_transformed_function_goes_on_in_its_resume_function(self) -> None:
        def f(a: int, b: int) -> Any:
            return "original"

        w = _C.Callable(f)
        resume = _C.resume_new(w, slots_two)

        def transformed(a: int, b: int) -> Any:
            return resume(a, b)

        def answer(request: dict[str, Any]) -> Any:
            return give_slots(request) if request["kind"] == _C.FRAME_RESUME else make_entry(transformed, 2)

        with translator(answer) as t:
            assert [w(1, i) for i in range(4)] == [(1, i) for i in range(4)]
            assert w(b=1, a=2) == (2, 1)
        assert [r["kind"] for r in t.requests] == [_C.FRAME_DIRECT, _C.FRAME_RESUME]
        with translator(lambda request: None):
            resume.cache.clear()
            assert w(1, 2) == (2, 1)  # CPython runs the rest

    def test_a_split_loop_does_not_nest(self) -> None:
        def f(n: int, total: int = 0) -> int:
            return sum(range(n + 1))

        def rest(n: int, total: int) -> Any:
            return total if n == 0 else resume(n - 1, total + n)

        w = _C.Callable(f)
        resume = _C.resume_new(w, rest)

        def transformed(n: int, total: int, *cells: Any) -> Any:
            return resume(n, total)

        def answer(request: dict[str, Any]) -> Any:
            nslots = len(request["slots"])
            return make_entry(None if request["kind"] == _C.FRAME_RESUME else transformed, nslots)

        with translator(answer):
            assert w(50_000) == f(50_000)
            before = sys.getrefcount(resume)
            assert w(1000) == f(1000) and sys.getrefcount(resume) == before


def slots_two(a: int, b: int) -> tuple[int, int]:
    return b, a


class TestLimit:
    def answer(self, request: dict[str, Any]) -> Any:
        (x,) = request["slots"]
        return make_entry(slots_of, 1, **type_guard(0, type(x)))

    def values(self, n: int) -> list[Any]:
        return [type(f"T{i}", (), {})() for i in range(n)]

    def test_new_cases_run_in_cpython_with_one_report(self) -> None:
        w = _C.Callable(lambda x: "original")
        reports: list[dict[str, Any]] = []
        a, b, c, d = self.values(4)
        with translator(self.answer), config(cache_size_limit=2), callback("limit_reached", reports.append):
            assert [w(v) for v in (a, b, c, d, c)] == [(a,), (b,), "original", "original", "original"]
            assert w(a) == (a,) and w(b) == (b,)
        assert len(reports) == 1
        info = reports[0]
        assert info["owner"] is w and info["code"] is w.__code__ and info["limit"] == 2 and len(info["failures"]) == 2

    def test_least_recently_used_goes(self) -> None:
        w = _C.Callable(lambda x: "original")
        a, b, c = self.values(3)
        with translator(self.answer) as t, config(cache_size_limit=2, cache_evict=1):
            assert [w(v) for v in (a, b, a, c, a)] == [(v,) for v in (a, b, a, c, a)]
            assert len(t.requests) == 3
            assert w(b) == (b,) and len(t.requests) == 4 and len(w.cache.entries()) == 2

    def test_a_family_may_have_its_own(self) -> None:
        w = _C.Callable(lambda x: "original", None, types.SimpleNamespace(cache_size_limit=1))
        a, b = self.values(2)
        with translator(self.answer), callback("limit_reached", lambda info: None):
            assert w(a) == (a,) and w(b) == "original"
            w.root.cache_size_limit = 2
            assert w(b) == (b,)

    def test_a_failing_report_does_not_reach_the_call(self, capsys: pytest.CaptureFixture[str]) -> None:
        w = _C.Callable(lambda x: "original")
        unraisable: list[Any] = []
        hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
        try:
            with config(cache_size_limit=0), callback("limit_reached", lambda info: 1 / 0):
                assert w(1) == "original"
        finally:
            sys.unraisablehook = hook
        assert len(unraisable) == 1 and unraisable[0].exc_type is ZeroDivisionError

    def test_reasons_are_bounded(self) -> None:
        w = _C.Callable(lambda x: "original")
        with translator(self.answer), config(cache_size_limit=1, cache_evict=1):
            for v in self.values(100):
                w(v)
        assert len(w.cache.failures) == 64


class TestModes:
    def test_run_only(self) -> None:
        w, fresh = _C.Callable(lambda x: "original"), _C.Callable(lambda x: "original")
        with translator(give_slots):
            w(1)
            before = _C.set_mode(_C.MODE_RUN_ONLY)
            try:
                assert w(2) == (2,) and fresh(2) == "original"
            finally:
                assert (before, _C.set_mode(before)) == (_C.MODE_NORMAL, _C.MODE_RUN_ONLY)
            assert fresh(2) == (2,)

    def test_disabled_on_this_thread_only(self) -> None:
        w = _C.Callable(lambda x: "original")
        seen: list[Any] = []
        with translator(give_slots):
            w(1)
            _C.set_mode(_C.MODE_DISABLED)
            try:
                assert w(2) == "original"
                other = threading.Thread(target=lambda: seen.append((w(3), _C.get_mode())))
                other.start()
                other.join()
            finally:
                _C.set_mode(_C.MODE_NORMAL)
            assert w(2) == (2,) and seen == [((3,), _C.MODE_NORMAL)]

    def test_switched_off_for_all(self) -> None:
        w = _C.Callable(lambda x: "original")
        with translator(give_slots):
            w(1)
            with config(enabled=0):
                assert w(2) == "original"
            assert w(2) == (2,)

    def test_settings_are_checked(self) -> None:
        with pytest.raises(AttributeError):
            _C.set_config(no_such_setting=1)
        with pytest.raises(ValueError):
            _C.set_config(cache_size_limit=5, enabled=7)
        with pytest.raises(TypeError):
            _C.set_config(enabled="yes")
        with pytest.raises(ValueError):
            _C.set_mode(9)
        assert _C.get_config()["cache_size_limit"] == 8

    def test_steps_aside_under_a_tracer(self) -> None:
        def f(x: int) -> str:
            return "original"

        w = _C.Callable(f)
        events: list[str] = []

        def tracer(frame: Any, event: str, arg: Any) -> Any:
            if frame.f_code is f.__code__:
                events.append(event)
            return tracer

        with translator(give_slots):
            w(1)
            old = sys.gettrace()
            sys.settrace(tracer)
            try:
                traced = w(2)
            finally:
                sys.settrace(old)
            if old is None:
                assert w(2) == (2,)
        assert traced == "original" and events == ["call", "line", "return"]


class TestTranslationsInside:
    def test_reentry_runs_cpython(self) -> None:
        w, inner = _C.Callable(lambda x: "original"), _C.Callable(lambda x: "inner")
        ready = _C.Callable(lambda x: "ready")
        seen: list[Any] = []

        def answer(request: dict[str, Any]) -> Any:
            if request["function"] is ready.function:
                return give_slots(request)
            assert _C.is_translating() and w.cache.in_progress
            seen.append((w(1), inner(1), ready(5)))
            return give_slots(request)

        with translator(answer):
            ready(1)
            assert w(1) == (1,)
        assert seen == [("original", "inner", (5,))]  # hits are served while translating; misses are not translated
        assert not _C.is_translating() and not w.cache.in_progress

    def test_a_second_thread_runs_cpython_meanwhile(self) -> None:
        w = _C.Callable(lambda x: "original")
        inside, go_on = threading.Event(), threading.Event()

        def answer(request: dict[str, Any]) -> Any:
            inside.set()
            assert go_on.wait(20)
            return give_slots(request)

        results: list[Any] = []
        with translator(answer) as t:
            first = threading.Thread(target=lambda: results.append(w(1)))
            first.start()
            assert inside.wait(20)
            assert w(2) == "original"
            go_on.set()
            first.join()
            assert results == [(1,)] and w(2) == (2,) and len(t.requests) == 1

    def test_eight_threads_at_once(self) -> None:
        w = _C.Callable(lambda x: (x,))
        barrier = threading.Barrier(8)
        results: list[Any] = []

        def work(i: int) -> None:
            barrier.wait()
            results.extend(w(i) == (i,) for _ in range(500))

        with translator(give_slots) as t:
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert results == [True] * 4000 and len(t.requests) == len(w.cache.entries()) == 1

    def test_the_list_changes_during_a_translation(self) -> None:
        w = _C.Callable(lambda x: "original")

        def answer(request: dict[str, Any]) -> Any:
            w.cache.clear()
            gc.collect()
            return give_slots(request)

        with translator(answer):
            assert w(1) == (1,) and w(2) == (2,)

    def test_an_internal_error_concerns_its_own_code(self) -> None:
        reports: list[dict[str, Any]] = []

        def wrong(request: dict[str, Any]) -> Any:
            return make_entry(slots_of, 7)  # the frame does not have this many slots

        with translator(wrong) as t, callback("internal_error", reports.append):
            codes = [_C.Callable(eval(f"lambda x: 'original {i}'")) for i in range(5)]
            for i, w in enumerate(codes):
                assert [w(k) for k in range(6)] == [f"original {i}"] * 6
            assert len(t.requests) == 5
            assert not any(r["disabled"] for r in reports)
            assert all(isinstance(r["error"], SystemError) for r in reports)
        with translator(give_slots):
            assert _C.Callable(lambda x: "original")(1) == (1,)

    def test_a_number_of_internal_errors_ends_translation_where_it_is_set(self) -> None:
        before = _C.get_config()["max_internal_errors"]
        _C.reset_counters()
        try:
            _C.set_config(max_internal_errors=2)
            with translator(give_slots), callback("internal_error", lambda info: None):
                assert [_C.report_internal_error("x") for _ in range(2)] == [False, True]
                assert _C.Callable(lambda x: "original")(1) == "original"
        finally:
            _C.set_config(max_internal_errors=before)
            _C.reset_counters()


class TestRecursion:
    def test_limit_raises_recursion_error(self) -> None:
        def f(n: int) -> int:
            return w(n + 1)

        def transformed(n: int, cell: Any) -> int:
            return w(n + 1)

        w = _C.Callable(f)
        with translator(lambda request: make_entry(transformed, 2)):
            for _ in range(3):
                with pytest.raises(RecursionError):
                    w(0)

    def test_raised_limit_does_not_run_off_the_stack(self) -> None:
        def f(n: int) -> int:
            return w(n + 1)

        def transformed(n: int, cell: Any) -> int:
            return w(n + 1)

        w = _C.Callable(f)
        outcomes: list[Any] = []

        def work() -> None:
            try:
                w(0)
            except RecursionError as error:
                outcomes.append(str(error))

        old = sys.getrecursionlimit()
        size = threading.stack_size(2 << 20)
        try:
            sys.setrecursionlimit(1_000_000)
            with translator(lambda request: make_entry(transformed, 2)):
                t = threading.Thread(target=work)
                t.start()
                t.join()
        finally:
            sys.setrecursionlimit(old)
            threading.stack_size(size)
        assert len(outcomes) == 1 and "C stack" in outcomes[0]


def test_extents_need_a_family() -> None:
    with pytest.raises(TypeError):
        _C.enter_extent(3)
    with extent(_C.Callable(lambda: 1)), extent(_C.Root()):
        assert _C.hook_installed() == 2
    with pytest.raises(ValueError):
        _C.exit_extent(10**6)
