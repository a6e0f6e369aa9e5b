"""In programs that did not request compilation (run, the pytest plugin, IPython's magics), is_compiling() is False."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch._dynamo

import godynamo
from godynamo._tools import magics
from godynamo._user.optimize import transparent

pytest_plugins = ["pytester"]
PYTHON = str(Path(__file__).resolve().parents[2])
QUESTIONS = {
    "torch.compiler.is_compiling": torch.compiler.is_compiling,
    "torch.compiler.is_dynamo_compiling": torch.compiler.is_dynamo_compiling,
    "torch._dynamo.is_compiling": torch._dynamo.is_compiling,
    "torch._utils.is_compiling": torch._utils.is_compiling,
    "godynamo.is_compiling": godynamo.is_compiling,
    "godynamo.is_dynamo_compiling": godynamo.is_dynamo_compiling,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_program_is_told(question):
    def fn(x, ask=QUESTIONS[question]):
        return x + 1, ask()

    x = torch.ones(2)
    for _ in range(2):
        if "_utils" not in question:  # this one warns: CPython runs such a call while warnings are recorded
            assert godynamo.optimize(fn)(x)[1] is True
        assert transparent(godynamo.optimize())(fn)(x)[1] is False
        with transparent(godynamo.optimize()):
            served = fn(x)[1]
        assert served is False is fn(x)[1]


class Holder:
    @godynamo.optimize
    def method(self, x):
        return x + 1, torch.compiler.is_compiling()


def test_what_the_program_optimizes_itself_is_told_the_truth():
    optimized, x = godynamo.optimize(Holder.method.__wrapped__), torch.ones(2)
    plain = Holder.method.__wrapped__
    for fn in (lambda x: optimized(None, x), lambda x: Holder().method(x)):
        with transparent(godynamo.optimize()):
            assert fn(x)[1] is True
    with transparent(godynamo.optimize()):
        assert plain(None, x)[1] is False


def test_values_stay_where_a_library_asks():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
    x, mask = torch.randn(2, 4, 8), torch.tensor([[False, False, True, True], [False] * 4])
    with torch.no_grad():
        wanted = encoder(x, src_key_padding_mask=mask)
        with transparent(godynamo.optimize()):
            assert torch.equal(encoder(x, src_key_padding_mask=mask), wanted)


PROGRAM = """
import torch

def captured(x):
    return x + 1, torch.compiler.is_compiling()

def test_it():
    assert not captured(torch.ones(2))[1]

if __name__ == "__main__":
    test_it()
"""


@pytest.mark.parametrize("function", [[], ["--function", "captured"]], ids=["everything", "one function"])
def test_run(tmp_path, monkeypatch, function):
    monkeypatch.setenv("PYTHONPATH", PYTHON)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "godynamo._tools", "run", *function, str(tmp_path / "program.py")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_plugin(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PYTHON)
    pytester.makepyfile(test_it=PROGRAM)
    pytester.runpytest_subprocess("-p", "godynamo_pytest", "--godynamo=on").assert_outcomes(passed=1)


def test_the_magic():
    assert magics._options("")[0].options.transparent
