""".ci/run with stand-ins for all programs: what it installs, what it runs, and what makes it fail."""

import shutil
import subprocess

import pytest

import project_support

ROOT = project_support.ROOT
REAL = "bash sh sed grep tr cut dirname cat timeout id true".split()
NATIVE = "SUPPORTED = ((3, 11), (3, 12), (3, 13))\nBUILDS = (*SUPPORTED,)\nDEFAULTS = ((3, 11),)\n"


class Machine:
    """A checkout and a PATH with stand-ins, each of which notes its calls."""

    def __init__(self, folder):
        self.folder, self.bin, self.calls = folder, folder / "bin", folder / "calls"
        for name in (".ci", "scripts", "build_backend", "venv/bin", "bin"):
            (folder / name).mkdir(parents=True)
        for name in (".ci/run", "scripts/find_python.sh"):
            shutil.copy(ROOT / name, folder / name)
        (folder / "build_backend" / "native.py").write_text(NATIVE)
        self.program(folder / "scripts" / "venv.sh", f"echo {folder}/venv")
        self.program(folder / "venv" / "bin" / "python")
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name in "gcc make pkg-config flock git go chromium apt-get apt-cache".split():
            self.program(self.bin / name)

    def program(self, path, text="exit 0"):
        path.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >>{self.calls}\n{text}\n')
        path.chmod(0o755)

    def python(self, version):
        """Add an interpreter. find_python.sh passes it a program and the versions that it may have."""
        path = self.bin / f"python{version}"
        path.write_text(f'#!/bin/sh\ncase " $3 " in *" {version} "*) echo {path}; exit 0 ;; esac\nexit 1\n')
        path.chmod(0o755)

    def run(self):
        done = subprocess.run(
            [self.bin / "bash", self.folder / ".ci" / "run"],
            env={"PATH": str(self.bin), "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr, self.calls.read_text().splitlines()


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    made.python("3.11")
    return made


SUITE = ["make venv PYTHON=3.11", "make -k lint PYTHON=3.11", "make test PYTHON=3.11"]


def ran(calls):
    return [call for call in calls if call.startswith(("make", "python"))]


def test_the_whole_suite_runs_on_one_python_and_the_sample_on_the_others(machine):
    machine.python("3.12")
    machine.python("3.13")
    code, _, calls = machine.run()
    assert code == 0
    assert ran(calls) == [*SUITE, "python scripts/test_sample.py --minutes 58 3.12 3.13"]
    assert not [call for call in calls if call.startswith("apt")]


def test_a_python_that_debian_has_is_installed(machine):
    machine.program(machine.bin / "apt-cache", '[ "$2" = python3.13 ]')
    machine.program(machine.bin / "id", "echo 0")
    code, err, calls = machine.run()
    assert code == 0
    assert "ci: Debian has no package of Python 3.12 here" in err
    assert calls.count("apt-get update -qq") == 1
    installs = [call for call in calls if call.startswith("apt-get install")]
    assert installs == ["apt-get install -y -qq --no-install-recommends python3.13 python3.13-dev python3.13-venv"]
    assert calls[-1] == "python scripts/test_sample.py --minutes 58 3.12 3.13"


def test_a_failure_to_install_another_python_is_a_line(machine):
    machine.program(machine.bin / "apt-get", "exit 100")
    machine.program(machine.bin / "id", "echo 0")
    code, err, calls = machine.run()
    assert code == 0
    assert err.count("ci: apt-get could not install Python 3.1") == 2
    assert set(SUITE) <= set(calls)
    (machine.bin / "apt-get").unlink()
    assert machine.run()[0] == 0


@pytest.mark.parametrize("works", [True, False])
def test_the_newest_python_is_unpacked_where_it_is_missing(machine, works):
    (machine.folder / "build_backend" / "native.py").write_text(NATIVE.replace("(3, 13))", "(3, 14))"))
    machine.python("3.12")
    machine.program(machine.bin / "apt-cache", "exit 1")
    machine.program(
        machine.folder / "venv" / "bin" / "python", f'[ "$*" != scripts/embedded_python.py ] || {str(works).lower()}'
    )
    code, err, calls = machine.run()
    assert code == 0
    assert ran(calls) == [
        SUITE[0],
        "python scripts/embedded_python.py",
        *SUITE[1:],
        "python scripts/test_sample.py --minutes 58 3.12 3.14",
    ]
    assert ("could not install Python 3.14" in err) is not works


@pytest.mark.parametrize("failing", ["make -k lint", "make test", "python scripts/test_sample.py"])
def test_a_failing_test_is_a_failure_and_the_rest_runs(machine, failing):
    program = machine.folder / "venv" / "bin" / "python" if failing.startswith("python") else machine.bin / "make"
    machine.program(program, f'case "${{0##*/}} $*" in "{failing}"*) exit 2 ;; esac')
    code, _, calls = machine.run()
    assert code == 1
    assert ran(calls) == [*SUITE, "python scripts/test_sample.py --minutes 58 3.12 3.13"]
