"""The eval-frame hook: active only in extents (blocks that install it), chained; each skipped frame has a reason."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import sysconfig
import textwrap
import threading
import traceback
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from godynamo import _C
from pyhook_support import (
    BARE,
    NEEDS_HOOK,
    RUN_ORIGINAL,
    callback,
    config,
    counted,
    extent,
    give_slots,
    make_entry,
    marked,
    slots_of,
    translator,
    type_guard,
)


def leaf(x: Any) -> Any:
    return ("leaf", x)


def middle(x: Any) -> Any:
    return ("middle", leaf(x))


def outer(x: Any) -> Any:
    return ("outer", middle(x))


def entry_for(request: dict[str, Any]) -> Any:
    """Replace leaf frames; all others run unchanged."""
    if request["function"] is leaf:

        def transformed(x: Any) -> Any:
            return ("replaced", x)

        return make_entry(marked(transformed), 1)
    return make_entry(None, len(request["slots"]), flags=RUN_ORIGINAL | NEEDS_HOOK)


class TestExtents:
    def test_no_hook_without_one(self) -> None:
        assert _C.hook_installed() == 0 and not _C.current_eval_frame_is_ours()
        w = _C.Callable(leaf)
        before = counted("hook_installs")
        with translator(give_slots):
            w(1)
            assert w(2) == (2,)
        assert counted("hook_installs") == before

    def test_installed_and_taken_out(self) -> None:
        root = _C.Root()
        with extent(root):
            assert _C.hook_installed() == 1 and _C.current_eval_frame_is_ours()
            with extent(root):
                assert _C.hook_installed() == 2
            assert _C.current_eval_frame_is_ours()
        assert _C.hook_installed() == 0 and not _C.current_eval_frame_is_ours()

    def test_frames_inside_are_served_outside_not(self) -> None:
        root = _C.Root("opts")
        with translator(entry_for) as t:
            assert outer(1) == ("outer", ("middle", ("leaf", 1)))
            for _ in range(3):
                with extent(root, (leaf, middle, outer)):
                    assert outer(1) == ("outer", ("middle", ("replaced", 1)))
                    assert leaf(x=3) == ("replaced", 3)
            assert leaf(1) == ("leaf", 1)
        assert t.names == ["outer", "middle", "leaf"]
        assert {r["kind"] for r in t.requests} == {_C.FRAME_HOOK}
        assert {c.code for c in root.inner} == {f.__code__ for f in (outer, middle, leaf)}
        assert {c.code for c in _C.code_caches(leaf.__code__) if c in root.inner} == {leaf.__code__}
        root.clear()
        assert root.inner == []

    def test_an_entry_that_needs_the_hook_brings_it(self) -> None:
        def transformed(x: Any) -> Any:
            return ("transformed", middle(x), _C.hook_installed())

        w = _C.Callable(outer)

        def answer(request: dict[str, Any]) -> Any:
            if request["function"] is outer:
                return make_entry(marked(transformed), 1, flags=NEEDS_HOOK)
            return entry_for(request)

        _C.mark_skip(outer.__code__, False)
        with translator(answer) as t, config():
            _C.set_callback("skip_code", lambda code: code not in (leaf.__code__, middle.__code__))
            try:
                for _ in range(3):
                    assert w(5) == ("transformed", ("middle", ("replaced", 5)), 1)
                    assert _C.hook_installed() == 0
            finally:
                _C.set_callback("skip_code", None)
        assert t.names == ["outer", "middle", "leaf"]

    def test_the_original_with_the_hook_is_not_served_itself(self) -> None:
        w = _C.Callable(outer)
        with translator(entry_for) as t:
            _C.set_callback("skip_code", lambda code: code not in (leaf.__code__, middle.__code__, outer.__code__))
            try:
                for _ in range(3):
                    assert w(5) == ("outer", ("middle", ("replaced", 5)))
            finally:
                _C.set_callback("skip_code", None)
        assert t.names == ["outer", "middle", "leaf"] and t.requests[0]["kind"] == _C.FRAME_DIRECT

    def test_a_finalizer_on_the_way_to_the_original_is_another_frame(self) -> None:
        def rest(*args: Any) -> Any:
            return middle(args[0])

        class Cycle:
            def __init__(self) -> None:
                self.me = self

            def __del__(self) -> None:
                ends.append(1)
                if len(ends) < 1000:
                    Cycle()  # so that the next collection finds one, too

        ends: list[int] = []
        w = _C.Callable(rest)
        served = (leaf.__code__, middle.__code__, rest.__code__)
        threshold = gc.get_threshold()
        with translator(entry_for) as t, callback("skip_code", lambda code: code not in served):
            try:
                for n in range(30):
                    Cycle()
                    gc.set_threshold(
                        1 + n % 5
                    )  # so that creating a tuple of *args starts a collection, also if it is the frame's own tuple
                    result = w(5, *range(30))  # larger than the tuples that CPython keeps for reuse
                    gc.set_threshold(*threshold)
                    assert result == ("middle", ("replaced", 5))
            finally:
                gc.set_threshold(*threshold)
        assert ends and t.names == ["rest", "middle", "leaf"]

    def test_left_by_an_exception(self) -> None:
        def fails(x: Any) -> None:
            raise KeyError(x)

        w = _C.Callable(outer)
        with translator(lambda request: make_entry(marked(fails), 1, flags=NEEDS_HOOK)), extent(_C.Root()):
            with pytest.raises(KeyError):
                w(1)
            assert _C.hook_installed() == 1

    def test_left_in_another_order(self) -> None:
        first, second = _C.Root("first"), _C.Root("second")
        a, b = _C.enter_extent(first), _C.enter_extent(second)
        _C.exit_extent(a)
        assert _C.hook_installed() == 1 and _C.current_eval_frame_is_ours()
        with pytest.raises(ValueError):
            _C.exit_extent(a)
        _C.exit_extent(b)

    def test_each_family_has_its_own_entries(self) -> None:
        one, two = _C.Root(1), _C.Root(2)

        def answer(request: dict[str, Any]) -> Any:
            options = request["options"]

            def transformed(x: Any) -> Any:
                return options

            return make_entry(marked(transformed), 1)

        with translator(answer):
            for root in (one, two, one, two):
                with extent(root, leaf):
                    assert leaf(0) == root.options

    def test_other_threads_run_untouched(self) -> None:
        seen: list[Any] = []
        with translator(entry_for), extent(_C.Root(), leaf):
            thread = threading.Thread(target=lambda: seen.append(leaf(1)))
            thread.start()
            thread.join()
            assert seen == [("leaf", 1)] and leaf(1) == ("replaced", 1)
            with pytest.raises(ValueError):
                token = _C.enter_extent(_C.Root())
                try:
                    self.in_thread(lambda: _C.exit_extent(token))
                finally:
                    _C.exit_extent(token)

    def in_thread(self, work: Any) -> None:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                work()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    def test_interleaved_threads_keep_the_hook(self) -> None:
        a_in, b_in, a_out, done = (threading.Event() for _ in range(4))
        seen: list[Any] = []

        def b() -> None:
            assert a_in.wait(20)
            token = _C.enter_extent(_C.Root())
            b_in.set()
            assert a_out.wait(20)
            seen.append((_C.hook_installed(), _C.current_eval_frame_is_ours()))
            _C.exit_extent(token)
            done.set()

        thread = threading.Thread(target=b)
        thread.start()
        token = _C.enter_extent(_C.Root())
        a_in.set()
        assert b_in.wait(20)
        _C.exit_extent(token)
        a_out.set()
        assert done.wait(20)
        thread.join()
        assert seen == [(1, True)]


class TestEarlyExits:
    """Each reason for leaving a frame to CPython occurs and is counted."""

    def left(self, reason: str, run: Any, traced: Any = ()) -> Any:
        before = counted(reason)
        with translator(lambda request: 1 / 0), extent(_C.Root(), traced):
            result = run()
        assert counted(reason) > before, reason
        return result

    def test_generators_and_coroutines(self) -> None:
        def generator(n: int) -> Any:
            yield from range(n)

        async def coroutine() -> int:
            await asyncio.sleep(0)
            return 4

        async def collect() -> list[int]:
            async def agen() -> Any:
                for i in range(3):
                    yield i

            return [i async for i in agen()] + [await coroutine()]

        assert self.left("hook_generator", lambda: list(generator(3)), generator) == [0, 1, 2]
        loop = asyncio.new_event_loop()
        try:
            assert self.left("hook_generator", lambda: loop.run_until_complete(collect())) == [0, 1, 2, 4]
        finally:
            loop.close()

    def test_thrown_into(self) -> None:
        def generator() -> Any:
            try:
                yield 1
            except KeyError as error:
                yield error.args

        def run() -> Any:
            g = generator()
            return next(g), g.throw(KeyError(5))

        assert self.left("hook_throw", run, generator) == (1, (5,))

    def test_module_and_class_bodies(self) -> None:
        def run() -> Any:
            space: dict[str, Any] = {}
            exec("class K:\n  a = 3\nb = K.a", space)
            return space["b"]

        assert self.left("hook_not_function", run) == 3

    def test_globals_that_are_no_plain_dict_are_not_kept(self) -> None:
        class Globals(dict[str, Any]):
            def __missing__(self, name: str) -> str:
                return "the missing " + name

        def run() -> Any:
            return FunctionType(code, Globals(__builtins__={}))()

        code = compile("def f(): return anything", "f", "exec").co_consts[0]
        traced = FunctionType(code, {})
        assert self.left("hook_not_function", run, traced) == "the missing anything"
        gc.collect()
        assert not [o for o in gc.get_objects() if type(o) is Globals]

    def test_marked_code(self) -> None:
        def ours() -> int:
            return 1

        def skipped() -> int:
            return 2

        _C.mark_ours(ours.__code__)
        _C.mark_skip(skipped.__code__)
        assert self.left("hook_ours", ours, ours) == 1
        assert self.left("hook_skip", skipped, skipped) == 2

    def test_the_trace_rules_are_asked_once_per_code(self) -> None:
        def f() -> int:
            return 1

        asked: list[Any] = []
        with translator(give_slots):
            _C.set_callback("skip_code", lambda code: asked.append(code) or True)
            token = _C.enter_extent(_C.Root())
            f()
            f()
            _C.exit_extent(token)
            _C.set_callback("skip_code", None)
        assert asked.count(f.__code__) == 1
        assert _C.code_flags(f.__code__) == _C.CODE_FOREIGN | _C.CODE_ASKED

    def test_modes(self) -> None:
        def run() -> Any:
            before = _C.set_mode(_C.MODE_DISABLED)
            try:
                return leaf(1)
            finally:
                _C.set_mode(before)

        assert self.left("hook_mode", run, leaf) == ("leaf", 1)
        with config(enabled=0):
            assert self.left("hook_mode", lambda: leaf(1), leaf) == ("leaf", 1)

    def test_tracing(self) -> None:
        if sys.gettrace() is not None:
            pytest.skip("something traces already")

        def run() -> Any:
            sys.settrace(lambda *a: None)
            try:
                return leaf(1)
            finally:
                sys.settrace(None)

        assert self.left("hook_traced", run, leaf) == ("leaf", 1)

    def test_a_full_family(self) -> None:
        with config(inner_limit=0):
            assert self.left("hook_inner_limit", lambda: leaf(1), leaf) == ("leaf", 1)

    def test_frames_of_the_translator(self) -> None:
        root = _C.Root()

        def answer(request: dict[str, Any]) -> Any:
            assert leaf("inside") == ("leaf", "inside")
            return entry_for(request)

        with translator(answer) as t, extent(root, leaf):
            assert leaf(1) == ("replaced", 1)
        assert t.names == ["leaf"]


class TestReplacedFrames:
    def test_cells_are_the_functions_own(self) -> None:
        total = 0

        def add(x: int, *rest: int, **kw: int) -> int:
            nonlocal total
            total += x
            return total

        def transformed(x: int, rest: Any, kw: Any, cell: Any) -> Any:
            cell.cell_contents += 10 * x
            return rest, kw, cell.cell_contents

        with translator(lambda request: make_entry(marked(transformed), 4)), extent(_C.Root(), add):
            assert add(1) == ((), {}, 10)
            assert add(2, 3, k=4) == ((3,), {"k": 4}, 30)
        assert total == 30 and add(1) == 31

    def test_arguments_that_are_cells_come_bare(self) -> None:
        def f(x: int) -> Any:
            return lambda: x

        with translator(give_slots), extent(_C.Root(), f):
            assert f(5) == (5,)
        assert f(5)() == 5

    def test_one_code_with_many_closures(self) -> None:
        def make(n: int) -> Any:
            def inner(x: int) -> int:
                return n + x

            return inner

        def transformed(x: int, cell: Any) -> int:
            return 1000 + cell.cell_contents + x

        functions = [make(i) for i in range(5)]
        with translator(lambda request: make_entry(marked(transformed), 2)) as t, extent(_C.Root(), functions[0]):
            assert [f(1) for f in functions] == [1001 + i for i in range(5)]
        assert len(t.requests) == 1

    def test_one_code_with_two_globals(self) -> None:
        source = "def f(x):\n    return NAME, x"
        one: dict[str, Any] = {"NAME": "one"}
        two: dict[str, Any] = {"NAME": "two"}
        exec(source, one)
        g = type(one["f"])(one["f"].__code__, two)
        with translator(lambda request: make_entry(marked(lambda x, globals_: globals_["NAME"]), 1, extra=[1])) as t:
            with extent(_C.Root(), one["f"]):
                assert (one["f"](1), g(1), one["f"](1), g(1)) == ("one", "two", "one", "two")
        assert len(t.requests) == 2

    def test_guards_choose(self) -> None:
        def f(x: Any) -> str:
            return "original"

        def answer(request: dict[str, Any]) -> Any:
            kind = type(request["slots"][0])
            return make_entry(marked(lambda x: kind.__name__), 1, **type_guard(0, kind))

        with translator(answer), config(cache_size_limit=2), extent(_C.Root(), f):
            assert [f(v) for v in (1, "s", 2, "t", 3.0)] == ["int", "str", "int", "str", "original"]

    def test_exceptions_and_tracebacks(self) -> None:
        def f(x: int) -> int:
            return 1 // x

        def transformed(x: int) -> int:
            return 2 // x

        with translator(lambda request: make_entry(marked(transformed), 1)), extent(_C.Root(), f):
            assert f(2) == 1
            with pytest.raises(ZeroDivisionError) as e:
                f(0)
        assert [s.name for s in traceback.extract_tb(e.value.__traceback__)][-1] == "transformed"

    def test_a_raising_translation_raises_in_the_frame(self) -> None:
        def f(x: int) -> int:
            return x

        def answer(request: dict[str, Any]) -> Any:
            raise LookupError("no graph break wanted")

        with translator(answer), extent(_C.Root(), f), pytest.raises(LookupError):
            f(1)

    def test_reference_counts(self) -> None:
        class Thing: ...

        x = Thing()

        def f(a: Any, *rest: Any, **kw: Any) -> Any:
            return None

        root = _C.Root()
        with translator(lambda request: make_entry(marked(lambda *slots: None), 3)), extent(root, f):
            f(x)
            before = [sys.getrefcount(o) for o in (x, f, f.__code__, f.__globals__, root, root.inner[0])]
            for _ in range(100_000):
                f(x, x, k=x)
            assert [sys.getrefcount(o) for o in (x, f, f.__code__, f.__globals__, root, root.inner[0])] == before

    def test_many_arguments(self) -> None:
        names = [f"p{i}" for i in range(150)]
        space: dict[str, Any] = {}
        exec(f"def f({', '.join(names)}): return 0", space)
        with translator(lambda request: make_entry(marked(slots_of), 150)), extent(_C.Root(), space["f"]):
            assert space["f"](*range(150)) == space["f"](*range(150)) == tuple(range(150))

    def test_the_family_dies_with_its_frames(self) -> None:
        import weakref

        def f(x: Any) -> Any:
            return x

        root = _C.Root()
        with translator(give_slots), extent(root, f):
            f(1)
        cache, r = weakref.ref(root.inner[0]), weakref.ref(root)
        del root
        gc.collect()
        assert cache() is None and r() is None and _C.code_caches(f.__code__) == []


class TestDepth:
    def test_recursion_error_as_in_cpython(self) -> None:
        def f(n: int) -> int:
            return f(n + 1)

        with extent(_C.Root(), ()), pytest.raises(RecursionError):
            f(0)

    def test_short_of_stack_the_hook_steps_out(self) -> None:
        # 60,000 frames: with a hook, each uses C stack, and they overflow 8 MiB; without one they do not.
        program = """
            import sys
            from godynamo import _C
            sys.setrecursionlimit(100_000)
            _C.set_callback("skip_code", lambda code: True)
            def f(n):
                return n if n == 0 else f(n - 1)
            token = _C.enter_extent(_C.Root())
            assert f(60_000) == 0
            assert _C.current_eval_frame_is_ours() and _C.hook_installed() == 1  # it is put back afterwards
            assert _C.counters()["hook_no_headroom"] == 1
            _C.exit_extent(token)
            token = _C.enter_extent(_C.Root())
            assert _C.current_eval_frame_is_ours()
            _C.exit_extent(token)
            assert not _C.current_eval_frame_is_ours()
        """
        subprocess.run([sys.executable, "-c", BARE + textwrap.dedent(program)], check=True, timeout=60)


FOREIGN = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
static _PyFrameEvalFunction before;
static long seen;
static PyObject *foreign(PyThreadState *ts, struct _PyInterpreterFrame *f, int thrown) {
    seen++;
    return before(ts, f, thrown);
}
static PyObject *set(PyObject *m, PyObject *on) {
    PyInterpreterState *i = PyInterpreterState_Get();
    int in = PyObject_IsTrue(on);
    if (in) before = _PyInterpreterState_GetEvalFrameFunc(i);
    _PyInterpreterState_SetEvalFrameFunc(i, in ? foreign : before);
    Py_RETURN_NONE;
}
static PyObject *count(PyObject *m, PyObject *x) { long n = seen; seen = 0; return PyLong_FromLong(n); }
static PyObject *is_in(PyObject *m, PyObject *x) {
    return PyBool_FromLong(_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == foreign);
}
static PyMethodDef ms[] = {{"set", set, METH_O, 0}, {"count", count, METH_NOARGS, 0}, {"is_in", is_in, METH_NOARGS, 0},
{0}};
static struct PyModuleDef d = {PyModuleDef_HEAD_INIT, "foreign_hook", 0, -1, ms};
PyMODINIT_FUNC PyInit_foreign_hook(void) { return PyModule_Create(&d); }
"""


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Load a foreign hook that calls the previous one, as debuggers and torch do."""
    where: Path = tmp_path_factory.mktemp("foreign")
    (where / "f.c").write_text(FOREIGN)
    target = where / "foreign_hook.so"
    flags = ["-shared", "-fPIC", "-O1", f"-I{sysconfig.get_path('include')}"]
    command = ["cc", *flags, str(where / "f.c"), "-o", str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no C compiler")
    from importlib.machinery import ExtensionFileLoader
    from importlib.util import module_from_spec, spec_from_loader

    loader = ExtensionFileLoader("foreign_hook", str(target))
    spec = spec_from_loader("foreign_hook", loader)
    assert spec is not None
    return module_from_spec(spec)


class TestForeignHooks:
    def test_one_that_was_there_first_is_kept_and_restored(self, foreign: Any) -> None:
        foreign.set(True)
        try:
            with translator(entry_for), extent(_C.Root(), leaf):
                foreign.count()
                assert middle(1) == ("middle", ("replaced", 1))
                assert foreign.count() > 0  # middle's frame passed through it
            assert foreign.is_in()
        finally:
            foreign.set(False)

    def test_one_that_comes_in_between_is_not_thrown_out(self, foreign: Any) -> None:
        with translator(entry_for):
            token = _C.enter_extent(_C.Root())
            foreign.set(True)
            _C.exit_extent(token)
            assert foreign.is_in() and _C.hook_installed() == 0
            assert middle(1) == ("middle", ("leaf", 1))  # through the foreign hook and ours, which serves nothing
            foreign.set(False)  # this restores ours
            assert _C.current_eval_frame_is_ours()
            assert leaf(1) == ("leaf", 1)  # our hook uninstalls itself when it is first called
            assert not _C.current_eval_frame_is_ours()

    def test_ours_over_theirs_over_ours(self, foreign: Any) -> None:
        one, two = _C.Root(), _C.Root()
        with translator(entry_for):
            with extent(one, (leaf, middle)):
                foreign.set(True)
                with extent(two, (leaf, middle)):
                    assert _C.current_eval_frame_is_ours()
                    assert middle(1) == ("middle", ("replaced", 1))
                assert foreign.is_in()
                assert middle(1) == ("middle", ("replaced", 1))
                foreign.set(False)
                assert _C.current_eval_frame_is_ours()
        assert not _C.current_eval_frame_is_ours()

    def test_they_chain_without_end_neither(self, foreign: Any) -> None:
        def deep(n: int) -> int:
            return 0 if n == 0 else 1 + deep(n - 1)

        with translator(entry_for), extent(_C.Root(), leaf):
            foreign.set(True)
            with extent(_C.Root(), leaf):
                assert deep(200) == 200 and list(i for i in range(3)) == [0, 1, 2]
            foreign.set(False)
