"""The examples do not start with torch's NumPy warning, even if NumPy is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.py"))


@pytest.fixture
def without_numpy(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n")
    package = Path(__file__).resolve().parents[3] / "python"
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{package}", "OMP_NUM_THREADS": "1"}


def imported(code, environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=240, check=True
    ).stderr


def test_torch_warns_of_it(without_numpy):
    assert "Failed to initialize NumPy" in imported("import torch", without_numpy)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_warning_of_numpys_comes_first(example, without_numpy):
    code = f"import runpy; runpy.run_path({str(example)!r}, run_name='example')"
    assert imported(code, without_numpy) == ""
