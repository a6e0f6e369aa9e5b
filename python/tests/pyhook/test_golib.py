"""Loading the library after a miss, and the effect of fork. A small C library takes the place of the Go library."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from godynamo import _C
from pyhook_support import BARE

CORE = Path(__file__).resolve().parents[3] / "pyhook" / "core"

# Counts its calls in a static variable: a fresh copy starts from 0.
LIBRARY = r"""
#include "golib.h"
#include <stdio.h>
#include <string.h>
static const gd_core_api *core;
static int calls;
static int translate(const gd_request *q, gd_reply *r) {
    calls++;
    printf("translate %d slots=%u nargs=%u kind=%d entries=%d\n", calls, q->nslots, q->nargs, q->kind, q->nentries);
    fflush(stdout);
    gd_code_view v;
    if (q->nslots == 3) { r->status = 77; return 0; }                 /* no such status */
    if (q->nslots == 4) { r->status = GD_OK; r->entry = 0; return 0; } /* no entry */
    if (q->nslots == 5) { r->status = GD_RAISE; return 0; }           /* no exception */
    if (q->nslots == 6) return -1;
    PyObject *self = 0;
    if (core->callable_function(q->owner, &self) != q->function) return -1;
    r->status = q->nslots == 2 ? GD_SKIP : GD_PASS;
    return 0;
}
static int64_t archive(const char *folder, int64_t limit, const char *file, int store, char *error, size_t size) {
    if (store) return snprintf(error, size, "%s cannot be stored in %s of %d bytes", file, folder, (int)limit), -1;
    return 7;
}
int gdInit(const gd_core_api *c, gd_golib_api *out) {
    if (c->abi != GD_ABI_VERSION || c->size != sizeof *c) return -1;
    core = c;
    calls = 0;
    out->abi = GD_ABI_VERSION ABI_SHIFT;
    out->size = sizeof *out;
    out->translate = translate;
    out->archive = archive;
    return 0;
}
"""


def build(where: Path, name: str, shift: str = "") -> Path:
    source, target = where / f"{name}.c", where / f"{name}.so"
    source.write_text(LIBRARY.replace("ABI_SHIFT", shift))
    command = ["cc", "-shared", "-fPIC", f"-I{CORE}", str(source), "-o", str(target)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no C compiler: {error}")
    return target


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("golib"), "standin")


def run(program: str, library: Path | str, *options: str) -> subprocess.CompletedProcess[str]:
    prelude = """
        import os, sys, warnings
        from godynamo import _C
        errors = []
        _C.set_callback("internal_error", lambda info: errors.append((info["where"], info["disabled"])))
        def child(work):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    work()
                    status = 0
                except BaseException:
                    import traceback
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        w = _C.Callable(lambda x: ("original", x))
    """
    environment = {**os.environ, "GODYNAMO_GOLIB": str(library)}
    done = subprocess.run(
        [sys.executable, *options, "-c", BARE + textwrap.dedent(prelude) + textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_opened_at_the_first_miss_and_asked_at_each(library: Path) -> None:
    done = run(
        """
        assert not _C.golib_loaded() and _C.golib_calls() == 0
        assert w(1) == ("original", 1) and _C.golib_loaded()
        assert w(2) == ("original", 2) and _C.golib_calls() == 2 and _C.counters()["golib_loads"] == 1
        """,
        library,
    )
    expected = "translate 1 slots=1 nargs=1 kind=0 entries=0\ntranslate 2 slots=1 nargs=1 kind=0 entries=0\n"
    assert done.stdout == expected and done.stderr == ""


def test_skip_is_final(library: Path) -> None:
    done = run("s = _C.Callable(lambda a, b: a)\nassert s(1, 2) == s(3, b=2) - 2 == 1 and s.cache.skip", library)
    assert done.stdout.count("translate") == 1


def test_wrong_answers_are_internal_errors(library: Path) -> None:
    run(
        """
        three = _C.Callable(lambda a, b, c: "original")
        assert three(1, 2, 3) == "original" and errors == []  # an unknown status: pass
        for n in (4, 5, 6):
            names = ", ".join(f"p{i}" for i in range(n))
            f = _C.Callable(eval(f"lambda {names}: 'original'"))
            assert f(*range(n)) == "original"
            calls = _C.golib_calls()
            assert f(*range(n)) == "original" and _C.golib_calls() == calls  # no further attempts for this one
        assert [disabled for _, disabled in errors] == [False, False, False], errors
        before = _C.golib_calls()
        assert w(1) == ("original", 1) and _C.golib_calls() == before + 1  # others are translated
        """,
        library,
    )


def test_archives(library: Path, tmp_path: Path) -> None:
    program = """
        assert _C.archive("folder", 5, "file", False) == 7 and _C.golib_loaded()
        try:
            _C.archive("folder", 5, b"file" + b"x" * 600, True)
        except ValueError as error:
            assert str(error).startswith("godynamo: filexx") and len(str(error)) == len("godynamo: ") + 511
        else:
            assert False
        for arguments in (("folder", 5, "f\\0", False), ("folder", 5), (1, 5, "file", False)):
            try:
                _C.archive(*arguments)
            except (TypeError, ValueError):
                continue
            assert False, arguments
    """
    run(program, library)
    run(
        """
        try:
            _C.archive("folder", 5, "file", False)
        except RuntimeError as error:
            assert "cannot be loaded" in str(error)
        """,
        tmp_path / "none.so",
    )


@pytest.mark.parametrize("options", [(), ("-W", "error")])
def test_without_a_library_all_runs_with_one_warning(options: tuple[str, ...], tmp_path: Path) -> None:
    done = run("assert [w(i) for i in range(3)] == [('original', i) for i in range(3)]", tmp_path / "none.so", *options)
    assert done.stderr.count("godynamo: cannot load") == 1 and "RuntimeWarning" in done.stderr


def test_a_library_of_another_version_is_refused(tmp_path: Path) -> None:
    done = run("assert w(1) == ('original', 1) and not _C.golib_loaded()", build(tmp_path, "other", "+ 1"))
    assert done.stderr.count("another version") == 1


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.so").write_text("no library")
    assert run("assert w(1) == ('original', 1)", tmp_path / "x.so").stderr.count("cannot load") == 1


def test_child_of_a_process_that_never_loaded(library: Path) -> None:
    done = run("child(lambda: w(1))\nassert not _C.golib_loaded()\nw(1)", library)
    assert done.stdout.count("translate 1 ") == 2


def test_child_and_grandchild_get_fresh_copies(library: Path) -> None:
    done = run(
        """
        def grandchild():
            assert _C.fork_generation() == 2 and not _C.golib_loaded()
            w(1); w(1)
        def work():
            assert _C.fork_generation() == 1 and not _C.golib_loaded()
            w(1)
            assert _C.golib_loaded()
            child(grandchild)
            w(1)
        w(1); w(1); w(1)
        for _ in range(3):
            child(work)
        assert _C.fork_generation() == 0 and _C.golib_loaded()
        w(1)
        """,
        library,
    )
    numbers = [line.split()[1] for line in done.stdout.splitlines()]
    assert numbers == ["1", "2", "3"] + ["1", "1", "2", "2"] * 3 + ["4"]


def test_child_without_reload_runs_cpython(library: Path) -> None:
    done = run(
        """
        _C.set_config(fork_reload=0)
        def work():
            assert w(1) == ("original", 1) and not _C.golib_loaded()
            _C.set_config(fork_reload=1)
            w(1)
            assert _C.golib_loaded()
        w(1)
        child(work)
        """,
        library,
    )
    assert done.stdout.count("translate 1 ") == 2


def test_hits_and_marks_in_a_child(library: Path) -> None:
    run(
        """
        import threading
        def give(request):
            return _C.make_entry(dict(function=slots_of, nslots=1, nregs=3, ncaches=0, nodes=[("VALID", 0, 0, 0, 0, 0,
            0)],
                                      consts=[], tensors=[], extra=[], flags=0, parts=("valid",)))
        def slots_of(*slots):
            return slots
        busy = _C.Callable(lambda x: "original")
        inside, go_on = threading.Event(), threading.Event()
        def answer(request):
            if request["function"] is busy.function:
                inside.set()
                go_on.wait(30)
            return give(request)
        _C.set_translate_callback(answer)
        assert w(1) == (1,)
        thread = threading.Thread(target=busy, args=(1,))
        thread.start()
        inside.wait(30)
        assert busy.cache.in_progress
        def work():
            assert w(2) == (2,)               # a hit
            assert not busy.cache.in_progress  # that thread is not here
            _C.set_translate_callback(give)
            assert busy(3) == (3,)
            assert busy.cache.stats()["entries"] == 1
        child(work)
        assert busy(2) == "original"
        go_on.set()
        thread.join()
        assert busy(4) == (4,)
        """,
        library,
    )


def test_extents_and_modes_of_threads_that_a_child_lacks(library: Path) -> None:
    run(
        """
        import threading
        _C.set_callback("skip_code", lambda code: True)
        inside, go_on = threading.Event(), threading.Event()
        def other():
            token = _C.enter_extent(_C.Root())
            _C.set_mode(_C.MODE_DISABLED)
            inside.set()
            go_on.wait(30)
            _C.set_mode(_C.MODE_NORMAL)
            _C.exit_extent(token)
        def call():
            return None
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(30)
        assert _C.hook_installed() == 1 and _C.current_eval_frame_is_ours()
        def work():
            call()  # a frame that finds nobody takes the hook out
            assert _C.hook_installed() == 0 and not _C.current_eval_frame_is_ours()
            token = _C.enter_extent(_C.Root())
            assert _C.hook_installed() == 1
            _C.exit_extent(token)
            assert not _C.current_eval_frame_is_ours()
            assert w(1) == ("original", 1)
            _C.set_mode(_C.MODE_DISABLED)
            assert w(1) == ("original", 1)
            _C.set_mode(_C.MODE_NORMAL)
        child(work)
        assert _C.hook_installed() == 1
        go_on.set()
        thread.join()
        assert _C.hook_installed() == 0
        call()
        assert not _C.current_eval_frame_is_ours()
        """,
        library,
    )


def test_capsule_and_path() -> None:
    assert "godynamo._C._core_api" in repr(_C._core_api)
    assert _C.golib_path().endswith(".so") and isinstance(_C.ABI_VERSION, int)


def test_not_in_subinterpreters() -> None:
    code = BARE + textwrap.dedent(
        """
        try:
            import godynamo._C
        except ImportError as error:
            print(error)
        """
    )
    done = run(f"import _testcapi\nassert _testcapi.run_in_subinterp({code!r}) == 0", "")
    assert "subinterpreters are not supported" in done.stdout
