"""`make gpu` where there is no GPU: its steps, and what it says when something is missing."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

gpu: Any = importlib.import_module("gpu")


def test_unknown_step() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "gpu.py"), "tests", "speeed"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no step speeed: the steps are build, tests, opinfo" in done.stderr


def test_programs_of_the_steps_exist() -> None:
    for step in gpu.STEPS.values():
        if isinstance(step, tuple):
            program = next(part for part in step if part.startswith(("python/", "bench/")))
            assert (ROOT / program).exists(), program


def test_without_go_the_library_must_be_brought(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(gpu.native, "PACKAGE", tmp_path)
    assert gpu.build() == 1
    told = capsys.readouterr().out
    assert "no Go, and no" in told and "run `make build PYTHON=" in told and gpu.native.GO_LIBRARY in told


def test_without_go_the_core_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "go" else found(name))
    monkeypatch.setattr(gpu.native, "PACKAGE", tmp_path)
    (tmp_path / gpu.native.GO_LIBRARY).touch()
    asked: list[Path] = []
    monkeypatch.setattr(gpu, "compile_core", lambda output: asked.append(output) or 0)
    assert gpu.build() == 0
    assert [path.name.split(".")[0] for path in asked] == ["_C"]


def test_a_step_that_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpu.STEPS, "tests", ("-c", "import time; print('begun', flush=True); time.sleep(60)"))
    found = gpu.run("tests", 2)
    assert not found["ok"]
    assert found["output"][0] == "begun" and "ended after 2 s" in found["output"][-1]
