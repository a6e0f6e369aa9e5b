"""Shared by all tests: the ``row`` marker, one torch thread, a reset of godynamo, the record of rows.

``build/rows-py3.11.json`` (with the Python's version) gets the outcome of every test that names rows of
docs/conformance.md, for ``make conformance``.
Under pytest-xdist only the controller writes the file: workers send the rows with their test reports.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import inspect
import json
import os
import signal
import sys
import threading
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS_FILE = Path(os.environ.get("GODYNAMO_ROWS_FILE", ROOT / "build" / "rows-py{}.{}.json".format(*sys.version_info)))

# Tests check what the translator does, so nothing is loaded that an earlier run has stored.
os.environ.setdefault("GODYNAMO_CACHE_DIR", "0")
if str(ROOT / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "python"))


#: seconds until a test that does not return from C ends its process and prints all threads' stacks; includes fixtures
WATCHDOG = 1200


def pytest_configure(config):
    # A shell makes its background commands ignore Ctrl-C (SIGINT), and their child processes inherit this. Here
    # the default handler is restored.
    if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers", "serial: needs the machine to itself; scripts/pytest.sh runs it after the others"
    )
    config.addinivalue_line("markers", "row(*ids): rows of docs/conformance.md that this test proves")
    config.pluginmanager.register(RowRecorder(config), "godynamo-rows")


def pytest_addoption(parser):
    parser.addoption("--sample", type=int, default=1, metavar="N", help="run every Nth test, chosen by its name")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect all but a sample. The choice depends on names alone, so all workers make the same one."""
    n = config.getoption("--sample")
    if n > 1:
        others = [item for item in items if zlib.crc32(item.nodeid.encode()) % n]
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


def rows_of(item) -> list[str]:
    """Return the rows that an item names, without duplicates, in order of appearance."""
    return list(dict.fromkeys(row for mark in item.iter_markers("row") for row in mark.args))


class RowRecorder:
    """Collects the outcome of every test with rows and writes them when the session ends."""

    def __init__(self, config):
        self.config = config
        self.tests = {}
        self.worker = hasattr(config, "workerinput")

    def pytest_collection_modifyitems(self, items):
        for item in items:
            rows = rows_of(item)
            if rows:
                item.user_properties.append(("rows", rows))

    def pytest_collection_finish(self, session):
        if self.config.option.collectonly:
            self.tests = {
                item.nodeid: {"rows": rows_of(item), "outcome": None} for item in session.items if rows_of(item)
            }

    def pytest_runtest_logreport(self, report):
        rows = dict(report.user_properties).get("rows")
        if self.worker or not rows:
            return
        test = self.tests.setdefault(report.nodeid, {"rows": list(rows), "outcome": "passed"})
        if hasattr(report, "wasxfail"):
            test["outcome"] = "xfailed"  # an expected failure is an unmet row, even if the test passed
        elif report.failed:
            test["outcome"] = "failed"
        elif report.skipped and test["outcome"] == "passed":
            test["outcome"] = "skipped"

    def pytest_sessionfinish(self, session):
        if self.worker:
            return
        if self.config.option.collectonly:
            target = os.environ.get("GODYNAMO_ROWS_COLLECT")
            if target:
                Path(target).write_text(json.dumps(self.tests))
            return
        if not self.tests:
            return
        known = json.loads(ROWS_FILE.read_text()) if ROWS_FILE.exists() else {}
        known.update(self.tests)
        ROWS_FILE.parent.mkdir(parents=True, exist_ok=True)
        temporary = ROWS_FILE.with_name(f".{ROWS_FILE.name}.{os.getpid()}")
        temporary.write_text(json.dumps(known, indent=1, sort_keys=True))
        os.replace(temporary, ROWS_FILE)


SETTLED = {"modules": 0, "tests": 0}


def settle():
    """Hide imported objects from the collector: otherwise each gc.collect() of a test would visit a million of them."""
    gc.collect()
    gc.freeze()
    SETTLED.update(modules=len(sys.modules), tests=0)


def settle_again():
    """Settle again once tests have imported more modules or left more objects in caches."""
    SETTLED["tests"] += 1
    if len(sys.modules) > SETTLED["modules"] + 20 or SETTLED["tests"] >= 100:
        settle()


def pytest_collection_finish():
    settle()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End the process if a test hangs in C, where no signal handler runs; pytest-xdist replaces the worker."""
    copy = getattr(sys, "__stderr__", None)
    armed = copy is not None and "PYTEST_CURRENT_TEST" not in os.environ
    if armed:
        faulthandler.dump_traceback_later(WATCHDOG, exit=True, file=copy)
    try:
        return (yield)
    finally:
        if armed:
            faulthandler.cancel_dump_traceback_later()
            settle_again()


@pytest.fixture
def unpatched_torch(monkeypatch):
    """Undo what torch.compile, once called, changes in torch for the rest of the process.

    It switches the checks of distributions off and leaves the steps of some optimizers to CPython.
    """
    import torch

    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)
    step = torch.optim.LBFGS.step
    monkeypatch.setattr(torch.optim.LBFGS, "step", getattr(step, "_torchdynamo_orig_callable", step))


@pytest.fixture(scope="session", autouse=True)
def _kernels_at_once():
    """Have epilogues use their kernels from the first call on, since few tests make more (``calls/epilogue.h``)."""
    if (core := sys.modules.get("godynamo._C")) is not None:
        core._epilogues_wait(0)


@pytest.fixture(scope="session")
def compilers():
    """Compile one function with inductor, so that its imports, C++ headers and the compiler's files are cached.

    On a cold, busy machine this takes minutes, which should not count as any test's time.
    """
    import torch

    f = torch.compile(lambda x: (x + 1).relu().sum(), backend="inductor", fullgraph=True)
    x = torch.ones(8, requires_grad=True)
    try:
        f(x).backward()
    except Exception as error:  # no C++ compiler: the tests report it themselves
        print(f"inductor does not compile here: {error}", file=sys.stderr)
    torch._dynamo.reset()
    settle()


@pytest.fixture(autouse=True)
def _warm_compilers(request):
    """Warm up inductor before a test that names it."""
    item = request.node
    function = getattr(item, "function", None)
    try:
        named = "inductor" in item.nodeid or (function is not None and "inductor" in inspect.getsource(function))
    except (OSError, TypeError):
        named = False
    if named:
        request.getfixturevalue("compilers")


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread():
    """Use one torch thread: results and timings must not depend on the number of cores."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_hook_left():
    """Remove an eval-frame hook that a test has left: torch's stays installed once torch.cond has rejected a branch.

    While any hook is installed, CPython specializes no calls, and ours sees each frame if torch's is above it.
    """
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
    interpreter = ctypes.c_void_p(api.PyInterpreterState_Get())
    before = api._PyInterpreterState_GetEvalFrameFunc(interpreter)
    yield
    if api._PyInterpreterState_GetEvalFrameFunc(interpreter) != before:
        api._PyInterpreterState_SetEvalFrameFunc(interpreter, ctypes.c_void_p(before))


def torch_state():
    """Return torch's state that guards compare, of this thread and of a new one; None before godynamo is imported."""
    core = sys.modules.get("godynamo._C")
    if core is None or "torch" not in sys.modules:
        return None
    seen = [core.torch_state()]
    thread = threading.Thread(target=lambda: seen.append(core.torch_state()))
    thread.start()
    thread.join()
    return [{name: value for name, (value, _) in state.items()} for state in seen]


@pytest.fixture(autouse=True)
def _no_state_left():
    """Fail a test that leaves torch's state changed: later tests, also those of other threads, would differ."""
    before = torch_state()
    yield
    if before is not None:
        assert torch_state() == before


@pytest.fixture(autouse=True)
def _fresh_godynamo():
    """Isolate tests from each other's translations, counters and settings. Does nothing until godynamo is imported."""
    module = sys.modules.get("godynamo")
    if module is not None and hasattr(module, "reset"):
        module.reset()
    yield
    module = sys.modules.get("godynamo")
    if module is not None and hasattr(module, "reset"):
        module.reset()
