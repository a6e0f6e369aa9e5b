"""Importing godynamo is cheap and loads nothing heavy; the environment's switches work."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2]


def run(program, **environment):
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PYTHONPATH": str(PACKAGE), "PATH": "/usr/bin:/bin", "HOME": "/tmp", **environment},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_import_is_cheap_and_leaves_torchs_heavy_parts_alone():
    out, _ = run(
        "import torch, sys, time; before = set(sys.modules); t = time.perf_counter(); import godynamo;"
        "print(time.perf_counter() - t);"
        "print([m for m in set(sys.modules) - before if m.startswith(('torch._dynamo', 'torch.fx', 'sympy'))])"
    )
    seconds, heavy = out.splitlines()
    assert heavy == "[]"
    # 10 ms when measured. The limit leaves room for a busy machine, but not for a heavy import, which takes 1 s.
    assert float(seconds) < 0.2


def test_optimizing_and_calling_does_not_import_dynamo_or_sympy_either():
    out, _ = run(
        "import torch, sys; heavy = lambda: {m for m in sys.modules if m.startswith(('torch._dynamo', 'sympy'))};"
        "before = heavy(); import godynamo; f = godynamo.optimize(lambda x: x + 1); f(torch.ones(2));"
        "print(godynamo.cache_stats(f)['translations'], heavy() - before)"
    )
    assert out == "1 set()\n"


def test_every_public_name_is_there_and_an_unknown_one_is_not():
    out, _ = run(
        "import godynamo; print([n for n in godynamo.__all__ if getattr(godynamo, n, None) is None]);"
        "print(set(godynamo.__all__) <= set(dir(godynamo))); print(hasattr(godynamo, 'nonsense'))"
    )
    assert out == "[]\nTrue\nFalse\n"


@pytest.mark.parametrize(("value", "translations"), [("1", 0), ("0", 1), ("", 1)])
def test_godynamo_disable_switches_all_off(value, translations):
    out, _ = run(
        "import torch, godynamo; f = godynamo.optimize(lambda x: x + 1); print(f(torch.ones(1)).item());"
        "print(godynamo.cache_stats(f)['translations'])",
        GODYNAMO_DISABLE=value,
    )
    assert out == f"2.0\n{translations}\n"


def test_without_a_core_everything_runs_eagerly_with_one_warning():
    out, err = run(
        "import sys\nsys.modules['godynamo._C'] = None\nimport torch, godynamo\n"
        "f = lambda x: x + 1\nprint(godynamo.optimize(f) is f, godynamo.optimize(f)(torch.ones(1)).item())\n"
        "m = torch.nn.Identity(); print(godynamo.optimize(m) is m)\n"
        "with godynamo.optimize(): print(f(torch.ones(1)).item())\n"
        "print(godynamo.disable(f)(torch.ones(1)).item()); godynamo.reset(); print(godynamo.is_compiling())"
    )
    assert out == "True 2.0\nTrue\n2.0\n2.0\nFalse\n"
    assert err.count("RuntimeWarning") == 1
    assert "everything runs eagerly" in err


def test_logs_show_what_they_are_asked_for():
    program = "import torch, godynamo; godynamo.optimize(lambda x: x + 1)(torch.ones(1))"
    _, quiet = run(program)
    _, loud = run(program, GODYNAMO_LOGS="guards,graph_code")
    assert quiet == ""
    assert "godynamo.guards" in loud
    assert "___guarded_code.valid" in loud
    assert "add = x + 1" in loud


def test_logs_name_near_artefacts_of_an_unknown_one():
    _, err = run("import godynamo", GODYNAMO_LOGS="guard")
    assert "'guard' is no artefact" in err
    assert "guards" in err
