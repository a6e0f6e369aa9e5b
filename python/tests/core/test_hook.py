"""The eval-frame hook for users: where it is installed, what it skips, its effect on reference counts."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import subprocess
import sys
import sysconfig
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import godynamo
from godynamo import _C
from harness.capture import assert_no_internal_errors, check, counted, nb, outcome, unsupported

PYTHON_FOLDER = Path(__file__).resolve().parents[2]


def eval_frame_address() -> int:
    """Return the address of the function that CPython now calls for a frame."""
    get = ctypes.pythonapi._PyInterpreterState_GetEvalFrameFunc
    get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
    interpreter = ctypes.pythonapi.PyInterpreterState_Get
    interpreter.restype = ctypes.c_void_p
    return get(interpreter())


def leaf(x):
    return x.sin() + 1


def calls_leaf(x):
    return unsupported(x) + 1


@pytest.mark.row("S002-17")
def test_the_previous_function_comes_back() -> None:
    before = eval_frame_address()
    inside: list[int] = []
    with godynamo.optimize(nb()):
        inside.append(eval_frame_address())
        with godynamo.optimize(nb()):
            inside.append(eval_frame_address())
        inside.append(eval_frame_address())
    assert len(set(inside)) == 1 and inside[0] != before
    assert eval_frame_address() == before and _C.hook_installed() == 0


@pytest.mark.row("S002-17")
def test_it_is_put_back_after_a_call_that_needed_it() -> None:
    before = eval_frame_address()
    seen: list[int] = []

    def look(x):
        seen.append(eval_frame_address())
        return x

    @godynamo.optimize(nb())
    def f(x):
        y = godynamo_disabled_look(x + 1)
        return y * 2

    godynamo_disabled_look = godynamo.disable(look)
    x = torch.randn(3)
    for _ in range(3):
        assert torch.equal(f(x), (x + 1) * 2)
    assert seen and eval_frame_address() == before and _C.hook_installed() == 0


@pytest.mark.row("S002-17")
def test_a_graph_without_breaks_never_installs_it() -> None:
    before = counted("hook_installs")
    check(lambda x: x.relu() + 1, torch.randn(3), calls=5)
    assert counted("hook_installs") == before


@pytest.mark.row("S002-18")
def test_torch_compile_and_godynamo_in_one_process() -> None:
    code = """
import torch, godynamo
torch.set_num_threads(1)
theirs_calls, ours_calls = [], []

def theirs_backend(gm, inputs):
    theirs_calls.append(gm)
    return gm.forward

def ours_backend(gm, example_inputs):
    ours_calls.append(gm)
    return gm.forward

@torch.compile(backend=theirs_backend)
def theirs(x):
    return x.cos() * 3

@godynamo.optimize(ours_backend)
def ours(x):
    return theirs(x + 1) - 1

@torch.compile(backend=theirs_backend)
def theirs_second(x):
    return x.tanh()

x = torch.randn(4)
for _ in range(3):
    assert torch.equal(ours(x), (x + 1).cos() * 3 - 1)
    assert torch.equal(theirs(x), x.cos() * 3)
with godynamo.optimize(ours_backend):
    for _ in range(2):
        assert torch.equal(theirs_second(x), x.tanh())
assert torch.equal(theirs_second(x + 1), (x + 1).tanh())
assert len(theirs_calls) >= 2, "torch's own hook was lost"
assert len(ours_calls) >= 1
assert godynamo._C.counters()["internal_errors"] == 0
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin", "HOME": "/tmp"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("done"), done.stderr[-3000:]


@pytest.mark.row("S002-18")
def test_torch_compile_around_godynamo_does_not_see_our_python() -> None:
    code = """
import torch, godynamo
torch.set_num_threads(1)
theirs_ops, ours_calls = [], []

def theirs_backend(gm, inputs):
    theirs_ops.extend(str(n.target) for n in gm.graph.nodes if n.op.startswith("call"))
    return gm.forward

def ours_backend(gm, example_inputs):
    ours_calls.append(gm)
    return gm.forward

@godynamo.optimize(ours_backend)
def ours(x):
    return x.cos() * 3

@torch.compile(backend=theirs_backend)
def theirs(x):
    return ours(x + 1) - 1

x = torch.randn(4)
for _ in range(3):
    assert torch.equal(theirs(x), (x + 1).cos() * 3 - 1)
assert len(ours_calls) == 1
users = {"add", "cos", "mul", "sub"}
assert set(op.split(" ")[-1].rstrip(">") for op in theirs_ops) <= users, theirs_ops
assert torch._C._dynamo.eval_frame.get_eval_frame_callback() is None
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PYTHON_FOLDER), "PATH": "/usr/bin:/bin", "HOME": "/tmp"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("done"), done.stderr[-3000:]
    assert "_translator/callables.py" not in done.stderr


@pytest.mark.row("S002-18")
def test_a_foreign_function_is_chained(tmp_path: Path) -> None:
    library = build_foreign_hook(tmp_path)
    library.install()
    foreign = eval_frame_address()
    try:
        with godynamo.optimize(nb()):
            assert eval_frame_address() != foreign
            library.reset()
            outcome(lambda: sum(i for i in range(3)), ())
            assert library.count() > 0, "frames passed on by our hook do not reach the previous one"
        assert eval_frame_address() == foreign
        library.reset()
        outcome(lambda: 1, ())
        assert library.count() > 0
    finally:
        library.uninstall()


def build_foreign_hook(folder: Path) -> Any:
    """Build an eval-frame function of another library that counts the frames that it runs."""
    source = folder / "foreign.c"
    source.write_text(
        """
#include <Python.h>
static long frames;
static _PyFrameEvalFunction previous;
static PyObject *counting(PyThreadState *t, struct _PyInterpreterFrame *f, int throwing) {
    frames++;
    return previous(t, f, throwing);
}
void install(void) {
    PyInterpreterState *interp = PyInterpreterState_Get();
    previous = _PyInterpreterState_GetEvalFrameFunc(interp);
    _PyInterpreterState_SetEvalFrameFunc(interp, counting);
}
void uninstall(void) { _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), previous); }
long count(void) { return frames; }
void reset(void) { frames = 0; }
"""
    )
    target = folder / "foreign.so"
    include = sysconfig.get_path("include")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(target)], check=True)
    return ctypes.PyDLL(str(target))


@pytest.mark.row("S002-19")
def test_a_thread_outside_runs_its_frames_untouched() -> None:
    backend = nb()
    inside, done = threading.Event(), threading.Event()
    results: list[torch.Tensor] = []

    def other() -> None:
        inside.wait(20)
        for _ in range(5):
            results.append(leaf(torch.ones(3)))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with godynamo.optimize(backend):
        inside.set()
        assert done.wait(20)
        assert len(backend) == 0, "the other thread's frame was converted"
        leaf(torch.ones(3))
    thread.join()
    assert len(backend) == 1 and backend.runs == 1 and len(results) == 5


class Talkative:
    """Creates every attribute on demand; reads while translating must not be visible."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.scale = 2.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copy reads these before __init__ has run
        self.asked.append(name)
        if name == "made":
            return 3.0
        raise AttributeError(name)


@pytest.mark.row("S002-20")
def test_frames_run_while_translating_are_not_converted() -> None:
    def f(obj, x):
        return x * obj.scale + obj.made

    backend = check(f, Talkative(), torch.randn(3))
    assert "mul" in backend.all_ops()


@pytest.mark.row("S002-20")
def test_a_backend_that_runs_python_is_not_entered_again() -> None:
    translated: list[str] = []

    def helper(x):
        return x.cos() + 2

    def nosy_backend(gm, example_inputs):
        translated.append(str(gm.graph))
        helper(torch.ones(2))  # elsewhere in the `with` block, the hook would serve this frame
        f(torch.ones(2))  # the function that is being translated
        return gm.forward

    def plain(x):
        return x + 1

    f = godynamo.optimize(plain, backend=nosy_backend)
    with godynamo.optimize(nosy_backend):
        x = torch.randn(3)
        assert torch.equal(f(x), x + 1)
    assert len(translated) == 1
    assert_no_internal_errors()


@pytest.mark.row("S002-21")
def test_throwing_into_a_generator_goes_straight_to_cpython() -> None:
    def catching():
        try:
            yield 1
        except ValueError as error:
            yield str(error)

    def throws(x):
        generator = catching()
        next(generator)
        return generator.throw(ValueError("thrown")), x + 1

    expected = throws(torch.ones(2))
    before = counted("hook_throw")
    with godynamo.optimize(nb()):
        generator = catching()
        assert next(generator) == 1
        assert generator.throw(ValueError("thrown")) == "thrown"
        actual = throws(torch.ones(2))
    assert actual[0] == expected[0] and torch.equal(actual[1], expected[1])
    assert counted("hook_throw") > before
    check(throws, torch.ones(2))


class Deep(Exception):
    pass


def raises_third(x):
    raise Deep(f"at {tuple(x.shape)}")


def raises_second(x):
    y = x + 1
    raises_third(y)
    return y


def raises_first(x):
    y = x * 2
    raises_second(y)
    return y


@pytest.mark.row("S002-22")
def test_an_exception_through_three_frames_is_not_swallowed() -> None:
    check(raises_first, torch.randn(3))
    with godynamo.optimize(nb()):
        for _ in range(3):
            result = outcome(raises_first, (torch.randn(3),))
            assert result["how"][1:3] == ("Deep", "at (3,)")
            assert [name for name, _ in result["how"][3]] == ["raises_first", "raises_second", "raises_third"]
    assert_no_internal_errors()


@pytest.mark.row("S002-22")
def test_a_call_while_an_exception_is_handled_keeps_it() -> None:
    f = godynamo.optimize(lambda x: x + 1, backend=nb())
    try:
        raise KeyError("handled")
    except KeyError as error:
        f(torch.randn(3))  # a miss
        f(torch.randn(3))  # a hit
        assert sys.exc_info()[1] is error
    with pytest.raises(RuntimeError) as caught:
        try:
            raise KeyError("first")
        except KeyError:
            godynamo.optimize(lambda x: x @ x, backend=nb())(torch.randn(2, 3))
    assert isinstance(caught.value.__context__, KeyError)


@pytest.mark.row("S002-23")
def test_reference_counts_stay() -> None:
    marker = object()

    def inner(a, b):
        return a

    def loop(n):
        for _ in range(n):
            inner(marker, n)

    code = inner.__code__
    with godynamo.optimize(nb()):
        loop(1000)
        gc.collect()
        before = (sys.getrefcount(marker), sys.getrefcount(code), sys.getrefcount(inner))
        frames = counted("hook_frames")
        tracemalloc.start()
        base = tracemalloc.get_traced_memory()[0]
        loop(100_000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - base
        tracemalloc.stop()
        passed = counted("hook_frames") - frames
        after = (sys.getrefcount(marker), sys.getrefcount(code), sys.getrefcount(inner))
    assert passed >= 100_000
    assert before == after
    assert grown < 20_000


def recursive(x, n):
    if n == 0:
        return x
    return recursive(unsupported(x) + 1, n - 1)


def endless(x):
    return endless(unsupported(x + 1))


@pytest.mark.row("S002-24")
def test_deep_recursion_gives_cpythons_result() -> None:
    f = godynamo.optimize(recursive, backend=nb())
    x = torch.zeros(2)
    assert torch.equal(f(x, 60), recursive(x, 60))
    with godynamo.optimize(nb()):
        assert torch.equal(recursive(x, 60), x + 60)


@pytest.mark.row("S002-24")
def test_recursion_error_is_cpythons() -> None:
    expected = outcome(endless, (torch.zeros(1),))["how"]
    assert expected[1] == "RecursionError"
    f = godynamo.optimize(endless, backend=nb())
    for _ in range(2):
        actual = outcome(f, (torch.zeros(1),))["how"]
        assert actual[1] == "RecursionError" and actual[2].startswith("maximum recursion depth exceeded")
    with godynamo.optimize(nb()):
        assert outcome(endless, (torch.zeros(1),))["how"][1] == "RecursionError"
    # afterwards everything works
    assert torch.equal(f.__wrapped__ and recursive(torch.zeros(1), 2), torch.full((1,), 2.0))
    assert sys.getrecursionlimit() == 1000 or sys.getrecursionlimit() > 0


def deepest(n, nested):
    """Call torch below n frames, and then repr of an object that is nested too deep for C code."""
    if n:
        return deepest(unsupported(n) - 1, nested)
    return torch.zeros(1) + len(repr(nested))


@pytest.fixture
def usual_recursion_limit():
    """Set CPython's default limit: other tests, and torch's compilers, raise it for the rest of the process."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(limit)


def test_served_frames_give_c_code_no_more_room_for_recursion(usual_recursion_limit) -> None:
    nested: dict[int, Any] = {}
    # 3.11 allows the limit, 3.12 1,500, 3.13 10,000, 3.14 what the C stack has room for
    for _ in range({11: 1501, 12: 1501, 13: 10_001}.get(sys.version_info[1], 200_000)):
        nested = {1: nested}
    f = godynamo.optimize(deepest, backend=nb())
    for call in (deepest, f, f):
        with pytest.raises(RecursionError):
            call(50, nested)
    with godynamo.optimize(nb()):
        for _ in range(2):
            with pytest.raises(RecursionError):
                deepest(50, nested)


class Matcher(dict):
    def __getitem__(self, key):
        return key == "a"


def test_code_with_builtins_of_its_own_needs_no_import(monkeypatch):
    code = compile("a and not b", "<expression>", "eval")
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with godynamo.optimize():
        assert eval(code, {"__builtins__": {}}, Matcher()) is True
    assert unraisable == []


def test_what_an_import_runs_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "imported_below.py").write_text("import torch\ndef f(x):\n    return x + 1\nvalue = f(torch.ones(2))\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def imports():
        import imported_below

        return imported_below

    with godynamo.optimize():
        module = imports()
        assert _C.code_caches(module.f.__code__) == []
        module.f(torch.ones(2))
        assert len(_C.code_caches(module.f.__code__)) == 1


def test_making_a_module_is_left_alone_and_calling_it_is_not():
    with godynamo.optimize():
        module = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        module(torch.ones(2))
        for made in (nn.Linear.__init__, nn.Module.__setattr__, nn.Module.register_parameter, nn.Sequential.__init__):
            assert _C.code_caches(made.__code__) == []
        assert _C.code_caches(nn.Module._wrapped_call_impl.__code__) != []


def test_a_full_cache_without_anything_to_capture_is_no_matter_for_a_warning(caplog):
    def number(n):
        return n + 1

    def tensor(x, n):
        return x + len(range(n))

    with godynamo.optimize(cache_size_limit=2):
        for value in (1, "a", 2.0, b"", None, 1j):
            with contextlib.suppress(TypeError):
                number(value)
        assert caplog.records == []
        for value in range(4):
            tensor(torch.ones(2), value)
    assert "cache_size_limit (2)" in caplog.text
    assert "number (" not in caplog.text
