"""make wheels, test-all and test-sample: scripts that visit several Pythons, found or not."""

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import native
import project_support
import pythons
import test_all
import test_sample
import wheels

ROOT = project_support.ROOT
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
ABSENT = pythons.Python("3.99", None)


@pytest.fixture
def here(monkeypatch):
    """This interpreter, as one whose environment exists."""
    real = pythons.Python.environment
    monkeypatch.setattr(pythons.Python, "environment", lambda self, limit=None: self.path or real(self, limit))
    return pythons.Python(VERSION, Path(sys.executable))


def test_every_version_is_visited_found_or_not():
    assert [p.version for p in pythons.find()] == [f"{a}.{b}" for a, b in native.BUILDS]
    (this,) = pythons.find([VERSION])
    assert this.version == VERSION
    assert this.supported is (sys.version_info[:2] in native.SUPPORTED)
    with pytest.raises(ValueError, match=r"3\.99: choose from 3\.11"):
        pythons.find([VERSION, "3.99"])


def test_an_environment_that_cannot_be_made_says_so(monkeypatch, tmp_path):
    with pytest.raises(pythons.NotTested, match=r"no CPython 3\.99 found"):
        ABSENT.environment()
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "venv.sh"
    monkeypatch.setattr(pythons, "ROOT", tmp_path)
    for text, reason in (("exit 1", "could not be made"), ("sleep 60 & wait", "took too long to make")):
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)
        with pytest.raises(pythons.NotTested, match=reason):
            pythons.Python("3.99", Path("python")).environment(0.5)


def test_no_environment_is_begun_without_room_on_the_disk(tmp_path):
    (tmp_path / "bin").mkdir()
    df = tmp_path / "bin" / "df"
    df.write_text("#!/bin/sh\necho Filesystem 1024-blocks Used Available\necho /dev/x 9 9 5000000 9 /\n")
    df.chmod(0o755)
    path = f"{df.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "scripts" / "venv.sh"],
        env={**os.environ, "PATH": path, "GODYNAMO_VENV": str(tmp_path / "venv"), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"no room for the virtual environment {tmp_path}/venv: it needs 7 GB, and 4 GB are free\n"


def test_a_table_may_have_short_rows():
    assert pythons.table(("a", "bb"), [["1", "2"], ["333"]]) == "a    bb\n1    2\n333"


SUMMARIES = """\
go test: 829 passed, 1 failed, 2 skipped
=========== 3 failed, 10472 passed, 48 skipped, 2 warnings, 1 error in 812.61s (0:13:32) ===========
12 passed, 5 deselected in 3.21s
48 passed in 3.21s of something else
go test: 45 passed, 0 failed, 0 skipped
"""


def test_the_runners_summaries_are_added_up():
    totals = test_all.count(SUMMARIES.splitlines(keepends=True))
    assert totals == {
        "go": Counter(passed=874, failed=1, skipped=2),
        "pytest": Counter(passed=10484, failed=4, skipped=48),
    }
    assert test_all.told(totals["pytest"]) == "10484 passed, 4 failed, 48 skipped"
    assert test_all.told(Counter()) == "none"


@pytest.mark.parametrize("code", [0, 1])
def test_test_all_runs_make_test_and_names_what_is_not_there(monkeypatch, tmp_path, capfd, here, code):
    (tmp_path / "Makefile").write_text(f"test:\n\t@echo '== 5 passed in 1.00s =='; echo for $(PYTHON); exit {code}\n")
    monkeypatch.setattr(test_all, "ROOT", tmp_path)
    monkeypatch.setattr(pythons, "find", lambda versions: [here, ABSENT])
    assert test_all.main([VERSION, "3.99"]) == code
    out = capfd.readouterr().out
    assert f"for {VERSION}\n" in out
    *_, head, first, second = out.splitlines()
    assert head.split() == [*test_all.HEAD]
    assert first.split() == [VERSION, ["passed", "FAILED"][code], "none", "5", "passed", "0"]
    assert second == "3.99    not tested: not found"
    assert f"for {VERSION}" in (tmp_path / "build" / f"test-py{VERSION}.log").read_text()


def steps(*commands, limit=60):
    names = ("build", "demo", "core", "conformance", "language")
    made = [test_sample.Step(n, ("sh", "-c", c), limit) for n, c in zip(names, commands, strict=False)]
    return lambda python, version: made


def test_a_sample_names_what_it_did_not_test(monkeypatch, capfd, here):
    monkeypatch.setattr(pythons, "find", lambda versions: [ABSENT, here])
    monkeypatch.setattr(test_sample, "steps", steps("true", "true", "echo 5 passed in 1.00s"))
    assert test_sample.main(["3.99", VERSION]) == 0
    out = capfd.readouterr().out.splitlines()
    assert "3.99    not tested: no CPython 3.99 found" in out
    assert [line.split()[:5] for line in out if line.startswith(f"{VERSION} ")] == [
        [VERSION, "passed", "passed", "5", "passed"]
    ]
    assert out[-1] == "others: 5 passed, 0 failed, 0 skipped"
    assert test_sample.main(["3.99", VERSION, "--minutes", "1"]) == 0
    out = capfd.readouterr().out
    assert out.count("not tested: no time left") == 2
    assert "others" not in out, "no test ran"


def test_a_failure_in_the_sample_is_a_failure_and_the_rest_goes_on(monkeypatch, here):
    far = time.monotonic() + 3600
    monkeypatch.setattr(test_sample, "steps", steps("true", "true", "echo 1 failed, 2 passed in 1.00s; exit 1", "true"))
    outcome = test_sample.sample(here, far)
    assert outcome.failed
    assert outcome.row[1:5] == ["FAILED: core", "passed", "2 passed, 1 failed", "passed"]
    monkeypatch.setattr(test_sample, "steps", steps("exit 2", "true"))
    assert test_sample.sample(here, far).row[1:3] == ["FAILED: build", ""]


def test_a_hanging_step_is_ended(monkeypatch, here):
    monkeypatch.setattr(test_sample, "steps", steps("true", "sleep 600 & wait", limit=1))
    begun = time.monotonic()
    outcome = test_sample.sample(here, begun + 3600)
    assert outcome.failed
    assert outcome.row[1] == "FAILED: demo took too long"
    monkeypatch.setattr(test_sample, "AT_LEAST", 0)
    monkeypatch.setattr(test_sample, "steps", steps("true", "sleep 600 & wait"))
    outcome = test_sample.sample(here, time.monotonic() + 1)
    assert not outcome.failed
    assert outcome.row[1] == "not to the end: no time left"
    assert time.monotonic() - begun < 60


def test_only_some_tests_are_in_a_sample(pytester_project):
    source = """
        import pytest

        @pytest.mark.row("S000-01")
        @pytest.mark.parametrize("n", range(40))
        def test_it(n):
            pass
    """
    chosen = pytester_project(source, extra=("--sample", "4"))
    assert 2 <= len(chosen) <= 25
    assert pytester_project(source, extra=("--sample", "4")) == chosen


# ---- wheels ----


def test_a_python_that_is_not_there_gets_no_wheel_but_a_row(monkeypatch, capfd, tmp_path):
    monkeypatch.setattr(pythons, "find", lambda versions: [ABSENT])
    assert wheels.main(["3.99", "--out", str(tmp_path)]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "3.99    not tested: no CPython 3.99 found"
    monkeypatch.setattr(pythons, "find", lambda versions: [pythons.Python("3.99", Path("/no/python"))])
    monkeypatch.setattr(pythons.Python, "environment", lambda self: no_environment())
    assert wheels.main(["3.99"]) == 1


def no_environment():
    raise pythons.NotTested("its environment could not be made")


WHEEL = Path("godynamo-0.1.0-cp312-cp312-manylinux_2_34_x86_64.whl")
SHOWN = 'x.whl is\nconsistent with the following platform tag:\n"manylinux_2_{}_x86_64".\n'


@pytest.mark.parametrize(
    ("wheel", "said", "want"),
    [
        (WHEEL, SHOWN.format(34), "audited"),
        (WHEEL, SHOWN.format(17), "audited"),
        (WHEEL, SHOWN.format(35), wheels.Failure),
        (WHEEL, 'x.whl is consistent with the following platform tag: "linux_x86_64".', wheels.Failure),
        (WHEEL, "no answer", wheels.Failure),
        (WHEEL, None, "not audited"),
        (Path("godynamo-0.1.0-cp312-cp312-manylinux_2_38_x86_64.whl"), SHOWN.format(38), wheels.Failure),
        (Path("godynamo-0.1.0-cp312-cp312-linux_x86_64.whl"), SHOWN.format(34), wheels.Failure),
    ],
)
def test_auditwheel_must_accept_the_tag(monkeypatch, wheel, said, want):
    def run(command, what, timeout=0, **options):
        if said is None:
            raise wheels.Failure("failed")
        return said if "show" in command else ""

    monkeypatch.setattr(wheels, "run", run)
    if want is wheels.Failure:
        with pytest.raises(wheels.Failure):
            wheels.check_tag(wheel, Path(sys.executable))
    else:
        assert wheels.check_tag(wheel, Path(sys.executable)) == want


def test_torchs_requirements_are_followed_with_their_extras(tmp_path):
    dists = {
        "torch": (
            ["cuda-tools[rt,fft]==13; sys_platform == 'linux'", "Sympy>=1", "optree; extra == 'optree'"],
            "torch",
        ),
        "cuda_tools": (["cuda-rt; extra == 'rt'", 'cuda-blas; extra == "blas"'], "cuda_tools"),
        "cuda-rt": ([], "cuda"),
        "cuda-blas": ([], "blas"),
        "sympy": ([], "sympy"),
        "optree": ([], "optree"),
    }
    for name, (requires, top) in dists.items():
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
        )
        info.joinpath("RECORD").write_text(f"{top}/__init__.py,,\n../../bin/{top},,\n{name}-1.dist-info/METADATA,,\n")
        tmp_path.joinpath(top).mkdir()  # since Python 3.12, files that are missing are not listed
        tmp_path.joinpath(top, "__init__.py").touch()
    names = {n for n in wheels.needed_by_torch(tmp_path) if not n.endswith(".dist-info")}
    assert names == {"torch", "cuda_tools", "cuda", "sympy"}


def test_the_empty_environment_has_torch_and_no_godynamo(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = wheels.empty_environment(Path(sys.executable), tmp_path / "environment")
    ask = "from importlib.util import find_spec as f; print([n for n in ('torch', 'sympy', 'pytest', 'ruff') if f(n)])"
    done = subprocess.run(
        [python, "-c", ask], env=wheels.bare(tmp_path / "environment"), capture_output=True, text=True, check=True
    )
    assert done.stdout == "['torch', 'sympy']\n"
