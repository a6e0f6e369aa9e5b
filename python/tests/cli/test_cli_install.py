"""pip install: the wheel contains the tool, and the tool finds the environment it was installed in."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from cli_support import ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the folder of a new virtual environment with the package installed from the checkout; torch comes from the
    current environment."""
    folder = tmp_path_factory.mktemp("install")
    wheels, venv = folder / "wheels", folder / "venv"
    # --no-build-isolation: setuptools is already installed, so pip needs no registry.
    subprocess.run(
        [*pip(sys.executable), "wheel", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT], check=True, cwd=folder
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = venv / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    (site / "torch_of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (wheel,) = wheels.iterdir()
    subprocess.run(
        [*pip(venv / "bin" / "python"), "install", "--no-deps", "--no-index", wheel],
        check=True, cwd=folder, env=bare(),
    )  # fmt: skip
    return venv


def pip(target):
    """Return the command of a pip that works on an environment: this one's, or another Python's where it has none."""
    runner = sys.executable if importlib.util.find_spec("pip") else "python3"
    return [runner, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", target]


def bare():
    """Return the environment without variables that lead to the checkout."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("GODYNAMO_", "PYTHON"))}


def run(installed, *arguments, cwd):
    return subprocess.run(
        [installed / "bin" / "godynamo", *map(str, arguments)],
        cwd=cwd, env=bare(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def test_the_tool_uses_the_environment_it_is_installed_in(installed, tmp_path):
    done = run(installed, "doctor", "--json", "doctor.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "doctor.json").read_text())
    text = next(f["text"] for f in told["findings"] if f["name"] == "python")
    assert str(installed / "bin" / "python") in text
    assert done.stderr == ""


def test_the_tool_knows_its_version(installed, tmp_path):
    import godynamo

    assert run(installed, "--version", cwd=tmp_path).stdout == f"godynamo {godynamo.__version__}\n"


def test_examples_run_far_from_the_checkout(installed, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import godynamo, torch\n"
        "def f(x):\n    return x.relu() + 1\n"
        "print(f(torch.ones(2)).tolist(), godynamo.__file__)\n"
    )
    done = run(installed, "run", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    numbers, file = done.stdout.split("] ")
    assert numbers == "[2.0, 2.0"
    assert Path(file.strip()).is_relative_to(installed)
    assert "1 graphs with 2 operations" in done.stderr


def test_bench_measures_far_from_the_checkout(installed, tmp_path):
    arguments = "--quick --only relu --processes 1 --rounds 1 --engine godynamo --html page.html --json".split()
    done = run(installed, "bench", *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (workload,) = json.loads(done.stdout)["workloads"]
    assert workload["engines"]["godynamo"]["graphs"] == 1
    assert "echarts" in (tmp_path / "page.html").read_text()


def test_what_is_installed_is_all_there(installed):
    package = next((installed / "lib").glob("python*/site-packages/godynamo"))
    assert {f"libgodynamo-{sys.version_info[0]}{sys.version_info[1]}.so", "godynamo-embed", "py.typed", "_tools"} <= {
        p.name for p in package.iterdir()
    }
    ours = {p.relative_to(ROOT / "python" / "godynamo") for p in (ROOT / "python" / "godynamo").rglob("*.py")}
    assert ours == {p.relative_to(package) for p in package.rglob("*.py")}
    (about,) = package.parent.glob("godynamo-*.dist-info")
    assert "the godynamo authors" in (about / "licenses" / "LICENSE").read_text()
    assert "Apache ECharts" in (about / "licenses" / "NOTICES").read_text()
