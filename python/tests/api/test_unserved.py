"""Pythons that are not served: one clear warning, plain execution, and doctor says why."""

import json
import os
import subprocess
import sys
import sysconfig
import types
from pathlib import Path

import pytest

from godynamo import _core

PACKAGE = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PLATFORM = sysconfig.get_config_var("EXT_SUFFIX").rpartition("-3")[2].partition("-")[2]  # x86_64-linux-gnu.so
AS = "import sys, types; sys.implementation = types.SimpleNamespace(**{**vars(sys.implementation), 'name': 'rusty'})"
JIT = "import sys, types; sys._jit = types.SimpleNamespace(is_enabled=lambda: True)"
FREE = "import sys, sysconfig; sysconfig.get_config_vars(); sys.abiflags = 't'"  # they cannot be computed afterwards

#: name → (files beside the package's Python files, code that runs before the import, the reason)
UNSERVED = {
    "not built": ([], "", "its C core has not been built"),
    "another version": (
        [f"_C.cpython-398-{PLATFORM}", f"_C.cpython-399-{PLATFORM}"],
        "",
        f"this is CPython {VERSION}, and it was built for 3.98, 3.99",
    ),
    "another platform": (
        [f"_C.cpython-{VERSION.replace('.', '')}-s390x-linux-gnu.so"],
        "",
        f"its C core was built for another platform than this CPython {VERSION}",
    ),
    "broken": ([f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"], "", "its C core cannot be loaded: "),
    "free-threaded": (None, FREE, f"this is a free-threaded build of CPython {VERSION}, which is not supported"),
    "JIT": (None, JIT, f"the experimental JIT of CPython {VERSION} is on, which is not supported"),
    "implementation": (None, AS, "this is rusty, and only CPython is supported"),
}

PROGRAM = """
import torch, godynamo

def f(x):
    if x.sum() > 0:
        x = x * 2
    return [n for n in (x + 1).tolist()]

class Counts(torch.nn.Module):
    def forward(self, x):
        return x.relu()

x, model = torch.ones(2), Counts()
print(godynamo.optimize(f)(x), godynamo.optimize(f, backend="inductor")(x), godynamo.compile(f, fullgraph=True)(x))
print(godynamo.optimize(model) is model, godynamo.run(f)(x), godynamo.disable(f)(x), godynamo.skip(f)(x))
with godynamo.optimize():
    print(f(x))
with godynamo.optimize().everywhere(), godynamo.config.patch(cache_size_limit=1):
    print(f(x))
with godynamo.set_stance("fail_on_recompile"):
    print(f(x))
print(godynamo.is_dynamo_supported(), godynamo.is_compiling())
print(godynamo.cache_stats(f), godynamo.guards(f), godynamo.cache_entries(f), godynamo.list_backends()[:0])
godynamo.mark_dynamic(x, 0), godynamo.graph_break(), godynamo.reset(), godynamo.reset_code_caches()
explained = godynamo.explain(f)(x)
print(str(explained).splitlines()[6])
assert "Nothing was captured" in explained.to_html()
for kwargs in {}, {"dynamic_shapes": None, "args": (x,)}:
    try:
        made = godynamo.export(f, **kwargs)
        made(x)
    except godynamo.exc.Unsupported as error:
        print(error)
"""


@pytest.fixture
def unserved(tmp_path, request):
    """Return environment variables for a process that is not served, for the reason that is the parameter."""
    files, prelude, _ = UNSERVED[request.param]
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(prelude + "\n")
    for path in (*PACKAGE.glob("godynamo*.py"), PACKAGE / "godynamo.egg-info"):
        (folder / path.name).symlink_to(path)
    (folder / "godynamo").mkdir()
    for path in (PACKAGE / "godynamo").iterdir():
        if files is None or not path.name.startswith(("_C.cpython", "libgodynamo")):
            (folder / "godynamo" / path.name).symlink_to(path)
    for name in files or ():
        (folder / "godynamo" / name).write_text("no library")
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("GODYNAMO_", "PYTHON"))}
    return {**ours, "PYTHONPATH": str(folder), "GODYNAMO_PYTHON": sys.executable}


def run(command, environment, cwd):
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment, cwd=cwd, check=False)


@pytest.mark.parametrize(
    ("unserved", "reason"), [(name, row[2]) for name, row in UNSERVED.items()], indirect=["unserved"], ids=[*UNSERVED]
)
def test_everything_runs_eagerly_and_the_reason_is_said_once(unserved, reason, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run([sys.executable, program], unserved, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[3.0, 3.0]") == 9
    assert done.stderr.count("RuntimeWarning") == 1
    assert f"program.py:2: RuntimeWarning: godynamo: {reason}" in done.stderr
    assert "; everything runs eagerly" in done.stderr
    assert f"Nothing was captured or counted: {reason}" in done.stdout
    assert done.stdout.count(f"export: nothing can be captured: {reason}") == 2


@pytest.mark.parametrize("unserved", ["another version", "free-threaded", "JIT"], indirect=True)
def test_the_tool_says_why(unserved, tmp_path, request):
    reason = UNSERVED[request.node.callspec.params["unserved"]][2]
    script = tmp_path / "script.py"
    script.write_text("import torch\ndef f(x):\n    return x + 1\nprint(f(torch.ones(1)).item())\n")
    tool = str(PACKAGE.parent / "build" / "bin" / "godynamo")

    done = run([tool, "doctor", "--json"], unserved, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (finding,) = [f for f in json.loads(done.stdout)["findings"] if f["state"] == "wrong"]
    assert finding["name"] == "python"
    assert finding["text"].endswith(f"{reason}; everything runs eagerly")
    jit = request.node.callspec.params["unserved"] == "JIT"
    assert finding["advice"] == "set PYTHON_JIT=0" if jit else "install godynamo with CPython 3.11" in finding["advice"]

    done = run([tool, "run", script], unserved, tmp_path)
    assert (done.returncode, done.stdout) == (0, "2.0\n")
    assert f"nothing was captured: {reason}" in done.stderr

    bench = ["bench", "--quick", "--only", "relu", "--processes", "1", "--rounds", "1"]
    for command in (["dis", f"{script}:f"], ["explain", f"{script}:f"], bench):
        done = run([tool, *command], unserved, tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), (command, done.stderr)
        assert done.stderr.splitlines()[-1] == f"godynamo: nothing can be translated: {reason}"


@pytest.mark.parametrize("unserved", ["not built"], indirect=True)
def test_the_pytest_plugin_says_why(unserved, tmp_path):
    (tmp_path / "test_made.py").write_text("def test_it():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "godynamo_pytest", "--godynamo=on", "-p", "no:cacheprovider"]
    done = run([*command, "test_made.py"], unserved, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything ran eagerly: its C core has not been built" in done.stdout


def test_a_sub_interpreter_runs_eagerly(tmp_path):
    """torch itself cannot be imported twice in a process, so the sub-interpreter gets an empty torch."""
    pytest.importorskip("_testcapi")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("class nn:\n    class Module:\n        pass\n")
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(PACKAGE)!r}]\n"
        "import godynamo\n"
        "f = lambda x: x + 1\n"
        "print(godynamo._core.refusal, '|', godynamo._core.remedy, '|', godynamo.optimize(f) is f, f(1), flush=True)\n"
    )
    run_it = f"import _testcapi; assert _testcapi.run_in_subinterp({code!r}) == 0; print('main goes on')"
    done = run([sys.executable, "-W", "ignore", "-c", run_it], {**os.environ}, tmp_path)
    assert done.returncode == 0, done.stderr
    said = "sub-interpreters are not supported | import godynamo in the main interpreter | True 2"
    assert done.stdout == f"{said}\nmain goes on\n"


@pytest.mark.parametrize(
    ("configured", "asked", "on"),
    [
        ("'--enable-shared'", "1", False),
        ("'--enable-shared' '--enable-experimental-jit'", None, True),
        ("'--enable-experimental-jit=yes' '--with-lto'", None, True),
        ("'--enable-experimental-jit=yes' '--with-lto'", "0", False),
        ("'--enable-experimental-jit=no'", "1", False),
        ("'--enable-experimental-jit=yes-off'", None, False),
        ("'--enable-experimental-jit=yes-off'", "1", True),
        ("'--enable-experimental-jit=interpreter'", "", True),
        (None, "1", False),
    ],
)
def test_whether_the_jit_of_3_13_is_on(monkeypatch, configured, asked, on):
    monkeypatch.setattr(_core, "sys", types.SimpleNamespace(version_info=(3, 13, 0), flags=sys.flags))
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: configured)
    monkeypatch.delenv("PYTHON_JIT", raising=False)
    if asked is not None:
        monkeypatch.setenv("PYTHON_JIT", asked)
    assert _core._jit_is_on() is on


def test_whether_the_jit_of_3_14_is_on(monkeypatch):
    for on in (True, False):
        jit = types.SimpleNamespace(is_enabled=lambda on=on: on)
        monkeypatch.setattr(_core, "sys", types.SimpleNamespace(version_info=(3, 14, 0), _jit=jit))
        assert _core._jit_is_on() is on


def test_this_interpreter_is_served():
    assert (_core.available, _core.refusal, _core.remedy) == (True, "", "")
