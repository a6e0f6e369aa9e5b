"""godynamo's IPython magics, in a new shell."""

import atexit
import sys

import pytest
import torch

import godynamo

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    # the shell replaces __main__ with its own module, of which multiprocessing can make no process
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    shell.run_cell("%load_ext godynamo")
    yield shell
    shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)


CELL = """%%godynamo
import time, torch

def f(x):
    y = x * 2
    time.sleep(0)
    return y + 1

z = f(torch.ones(2))
z.tolist()
"""


def ok(shell, source):
    result = shell.run_cell(source)
    result.raise_error()
    return result.result


def error_of(shell, source, capsys):
    capsys.readouterr()
    result = shell.run_cell(source)
    assert not result.success
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_a_cell_runs_optimized_and_gives_its_last_value(shell, capsys):
    assert ok(shell, CELL) == [3.0, 3.0]
    out = capsys.readouterr().out
    assert "godynamo: 2 frames translated, 2 graphs with 2 operations, 1 breaks" in out
    assert "GD0201" in out
    assert ":5, in f)" in out and "IPython" not in out
    assert torch.equal(shell.user_ns["z"], torch.full((2,), 3.0))
    assert not isinstance(shell.user_ns["f"], type(godynamo.optimize(lambda x: x)))


def test_its_options(shell, capsys):
    assert ok(shell, CELL.replace("%%godynamo", "%%godynamo --quiet --backend aot_eager")) == [3.0, 3.0]
    assert "godynamo:" not in capsys.readouterr().out
    assert "Unsupported" in error_of(shell, CELL.replace("%%godynamo", "%%godynamo --nopython"), capsys)


def test_a_line_and_a_semicolon(shell, capsys):
    ok(shell, "import torch\ndef g(x): return x + 1")
    assert ok(shell, "%godynamo -- g(torch.zeros(1)).item()") == 1.0
    assert "1 frames translated" in capsys.readouterr().out
    assert ok(shell, "%%godynamo -q\ng(torch.zeros(1)).item();") is None


def test_a_cell_that_raises_keeps_its_traceback_and_leaves_nothing_behind(shell, capsys):
    from godynamo import _C
    from godynamo._called import runtime

    text = error_of(shell, "%%godynamo\ndef h(x):\n    return x + {}['no']\nh(1)", capsys)
    assert "KeyError: 'no'" in text
    assert "return x + {}['no']" in text
    assert runtime.listeners == []
    assert _C.hook_installed() == 0


def test_explain_shows_the_call(shell, capsys):
    ok(shell, CELL)
    capsys.readouterr()
    assert ok(shell, "%explain f(torch.ones(3))") is None
    out = capsys.readouterr().out
    assert "Graph count: 2" in out
    assert "time.sleep(0)" in out
    explanation = ok(shell, "e = %explain -o f(torch.ones(3))\ne")
    assert explanation.graph_break_count == 1
    assert torch.equal(explanation.result, torch.full((3,), 3.0))


def test_stats_of_the_process_and_of_a_callable(shell, capsys):
    ok(shell, "import torch, godynamo\nk = godynamo.optimize(lambda x: x + 1)\n_ = k(torch.ones(1)), k(torch.ones(1))")
    capsys.readouterr()
    ok(shell, "%godynamo_stats")
    out = capsys.readouterr().out
    assert "frames: 1 of 1 translated; 1 graphs with 1 operations" in out
    assert "translate" in out
    ok(shell, "%godynamo_stats k")
    out = capsys.readouterr().out
    assert "hits: 1, misses: 1, translations: 1" in out
    assert "entry 1, 2 hits: " in out or "entry 1, 1 hits: " in out


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("%%godynamo --backend inductr\n1", "near it: 'inductor'"),
        ("%%godynamo --bakend eager\n1", "'--bakend' is no option: %%godynamo [--backend NAME]"),
        ("%%godynamo --backend 'eager\n1", "No closing quotation"),
        ("%godynamo", "with code in the lines below"),
        ("%explain f", "%explain takes a call, as in %explain f(x), not 'f'"),
        ("%explain f(", "%explain: "),
        ("%explain (3)(4)", "is of type int, which cannot be called"),
        ("%godynamo_stats nosuch", "NameError: name 'nosuch' is not defined"),
        ("%godynamo_stats len", "an optimized callable is needed"),
    ],
)
def test_bad_input_is_one_line(shell, capsys, source, text):
    got = error_of(shell, source, capsys)
    assert "UsageError: " in got
    assert text in got
    assert len(got.strip().splitlines()) == 1


def test_unloading_takes_them_away(shell, capsys):
    ok(shell, "%unload_ext godynamo")
    assert "UsageError" in error_of(shell, "%explain f(x)", capsys)


def test_importing_godynamo_imports_no_ipython():
    import os
    import subprocess
    import sys
    from pathlib import Path

    check = "import sys, godynamo; assert not [m for m in sys.modules if m.split('.')[0] == 'IPython']"
    environment = {**os.environ, "PYTHONPATH": str(Path(godynamo.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", check], env=environment, check=True)
