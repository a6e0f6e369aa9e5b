"""GODYNAMO_LOGS and set_logs: selected artefacts are logged, nothing else is; users' handlers receive all records."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import godynamo
from godynamo._observe import logging as _logging

PACKAGE = Path(__file__).resolve().parents[2]
HERE = __file__


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.delenv("GODYNAMO_LOGS", raising=False)
    yield
    monkeypatch.delenv("GODYNAMO_LOGS", raising=False)
    godynamo.set_logs()


def scaled(x, n):
    return (x * n).relu()


def program(x, n, k=1):
    y = scaled(x, n) + k
    godynamo.graph_break()
    return y.sum()


def shown(caplog, **wanted):
    """Return the log messages of two translations of the program, by artefact."""
    godynamo.set_logs(**wanted)
    caplog.clear()
    f = godynamo.optimize(program)
    f(torch.ones(3), 2)
    f(torch.ones(3), 3, 2)
    out = {}
    for r in caplog.records:
        out.setdefault(r.name.removeprefix("godynamo.") if r.name != "godynamo" else "", []).append(r.getMessage())
    return out


FIRST = program.__code__.co_firstlineno
HEAD = f"'program' ({HERE}:{FIRST})\n"


def one(caplog, name):
    """Enable only this artefact and return its first message."""
    texts = shown(caplog, **{name: True})
    assert list(texts) == [name]
    return texts[name][0]


def test_nothing_is_shown_and_nothing_asked_where_nothing_is_wanted(caplog):
    assert _logging.wanted_bits() == 0
    assert shown(caplog) == {}


def test_graph_is_a_table(caplog):
    text = one(caplog, "graph")
    assert text.startswith(HEAD)
    assert ["call_function", "mul", "operator.mul", "(x,", "2)", "{}"] in [line.split() for line in text.splitlines()]


def test_graph_code_is_python(caplog):
    text = one(caplog, "graph_code")
    assert text == HEAD + "def forward(self, x):\n    mul = x * 2\n    relu = mul.relu()\n    add = relu + 1"


def test_graph_sizes(caplog):
    lines = one(caplog, "graph_sizes").splitlines()
    assert lines[1:3] == ["x: (s0,) float32 cpu", "mul: (s0,) float32 cpu"]
    assert lines[-1] == "s0 = x.size()[0], 3 in this call"


def sized(x, rows):
    found = x.nonzero()
    return x.new_ones(x.shape[0] * 2), torch.cat([*rows, x]), found.new_ones(len(found)), x[0].int().item() + found


def test_graph_sizes_say_what_each_symbol_represents(caplog):
    godynamo.set_logs(graph_sizes=True)
    caplog.clear()
    godynamo.optimize(sized)(torch.ones(3), [torch.ones(5)])
    lines = caplog.records[0].getMessage().splitlines()[1:]
    values = dict(line.split(": ") for line in lines if ": " in line)
    symbols = {
        said.split(", ")[0]: (name, said) for name, said in (line.split(" = ") for line in lines if " = " in line)
    }
    x, row, found, item = (symbols[k][0] for k in ("x.size()[0]", "rows[0].size()[0]", "nonzero.size()[0]", "item"))
    assert len({x, row, found, item}) == len(symbols) == 4
    assert values["x"] == f"({x},) float32 cpu" and values["cat"] in (
        f"({row} + {x},) float32 cpu",
        f"({x} + {row},) float32 cpu",
    )
    assert values["nonzero"] == f"({found}, 1) int64 cpu" and values["item"] == f"int {item}"
    assert values["new_ones"] == f"(2*{x},) float32 cpu" and values["new_ones_1"] == f"({found},) int64 cpu"
    assert symbols["rows[0].size()[0]"][1] == "rows[0].size()[0], 5 in this call"
    assert symbols["nonzero.size()[0]"][1] == "nonzero.size()[0], computed at run time"
    assert symbols["item"][1] == "item, computed at run time"


def test_guards_and_verbose_guards(caplog):
    text = one(caplog, "guards")
    assert text.startswith(HEAD + "___guarded_code.valid and ") and " and n == 2 and " in text
    rows = one(caplog, "verbose_guards").splitlines()
    at = scaled.__code__.co_firstlineno + 1
    assert f"    n == 2  # {HERE}:{at}  return (x * n).relu()" in rows


def test_graph_breaks(caplog):
    text = one(caplog, "graph_breaks")
    assert "GD0001" in text and "hint:" in text and "-> godynamo.graph_break()" in text


def test_recompiles_tell_the_first_guard_and_verbose_all_of_them(caplog):
    first, every = one(caplog, "recompiles"), one(caplog, "recompiles_verbose")
    assert "k: expected 1, seen 2" in first and "n == 2" not in first
    assert "k == 1: found 2, not 1" in every and f"n == 2 ({HERE}:{scaled.__code__.co_firstlineno + 1})" in every
    assert "entry 0:" in every and "entry 1:" not in every


def test_bytecode_has_both(caplog):
    before, after = one(caplog, "bytecode").split("TRANSFORMED BYTECODE")
    assert "ORIGINAL BYTECODE" in before and "scaled" in before
    assert "BINARY_OP" in after and "LOAD_GLOBAL" not in after


def test_trace_source_call_and_bytecode(caplog):
    assert one(caplog, "trace_source") == f"TRACE starts_line {HERE}:{FIRST} in program\n    def program(x, n, k=1):"
    lines = shown(caplog, trace_source=True)["trace_source"]
    at = scaled.__code__.co_firstlineno + 1
    assert f"TRACE starts_line {HERE}:{at} in scaled (inline depth: 1)\n    return (x * n).relu()" in lines
    call = one(caplog, "trace_call")
    assert call.startswith("TRACE FX call %mul") and call.endswith(
        f"from {HERE}:{at} in scaled\nreturn (x * n).relu()\n        ~~~~~"
    )
    steps = shown(caplog, trace_bytecode=True)["trace_bytecode"]
    assert steps[0] == "TRACE RESUME 0 []"
    assert any(s.startswith("TRACE BINARY_OP 5 (*) [") and s.endswith("] (inline depth: 1)") for s in steps)


def test_showing_changes_no_translation(caplog):
    def run(**wanted):
        godynamo.set_logs(**wanted)
        f = godynamo.optimize(program)
        f(torch.ones(3), 2)
        return [(e.parts, [op[0] for op in e.nodes()]) for e in godynamo.cache_entries(f)]

    assert [p for p, _ in run()] == [p for p, _ in run(**dict.fromkeys(_logging.ARTIFACTS, True))]


@pytest.mark.parametrize("name", _logging.ARTIFACTS)
def test_every_artefact_shows_under_its_own_logger_alone(caplog, name):
    assert one(caplog, name)


def test_a_component_s_debug_shows_all_that_are_not_off_by_default(caplog):
    names = set(shown(caplog, dynamo=logging.DEBUG))
    assert names - {""} == {n for n, (_, off) in _logging.ARTIFACTS.items() if not off}
    assert set(shown(caplog, dynamo=logging.INFO)) == set()


def test_logging_alone_switches_an_artefact_too(caplog):
    logger = logging.getLogger("godynamo.guards")
    logger.setLevel(logging.DEBUG)
    try:
        godynamo.optimize(program)(torch.ones(3), 2)
    finally:
        logger.setLevel(logging.NOTSET)
    assert {r.name for r in caplog.records} == {"godynamo.guards"}


def test_a_root_logger_at_debug_is_not_flooded(caplog):
    caplog.set_level(logging.DEBUG)
    godynamo.optimize(program)(torch.ones(3), 2)
    assert {r.name for r in caplog.records if r.name.startswith("godynamo")} <= {"godynamo"}


def test_set_logs_refuses_what_it_does_not_know(monkeypatch):
    for arguments, text in (
        ({"graph_break": True}, "near it: graph_breaks"),
        ({"output_code": True}, "TORCH_LOGS=output_code"),
        ({"inductor": logging.DEBUG}, "TORCH_LOGS=inductor"),
        ({"guards": 1}, "guards is True or False, not 1"),
        ({"dynamo": 17}, "dynamo is a level of logging's"),
        ({"modules": {"nothing of ours": True}}, "no artefact"),
    ):
        with pytest.raises(ValueError, match=text):
            godynamo.set_logs(**arguments)
    godynamo.set_logs(modules={"guards": True, "dynamo": logging.INFO})
    assert _logging._LOGGERS["guards"].level == logging.DEBUG


def test_the_variable_has_precedence(monkeypatch, caplog):
    monkeypatch.setenv("GODYNAMO_LOGS", "guards")
    godynamo.set_logs(graph=True)
    assert "has precedence" in caplog.text and _logging.wanted_bits() == 0


def run(program_text, **environment):
    return subprocess.run(
        [sys.executable, "-c", program_text],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **environment},
    )  # fmt: skip


SMALL = "import torch, godynamo; godynamo.optimize(lambda x: x + 1)(torch.ones(1))"


def test_a_file_gets_the_records_too_and_the_format_is_the_user_s(tmp_path):
    out = tmp_path / "log.txt"
    done = run(
        SMALL, GODYNAMO_LOGS="graph_code", GODYNAMO_LOGS_OUT=str(out), GODYNAMO_LOGS_FORMAT="%(name)s|%(message)s"
    )
    assert done.stderr == out.read_text() and done.stderr.startswith("godynamo.graph_code|'<lambda>'")
    done = run(SMALL, GODYNAMO_LOGS="graph_code", GODYNAMO_LOGS_OUT=str(tmp_path / "no" / "log.txt"))
    assert done.returncode == 0 and "cannot be written" in done.stderr and "add = x + 1" in done.stderr


def test_names_of_the_variable_that_are_not_known_are_told_and_help_lists_all():
    done = run("import godynamo", GODYNAMO_LOGS="guard,aot_graphs,help")
    assert "'guard' is no artefact; near it: guards" in done.stderr and "TORCH_LOGS=aot_graphs" in done.stderr
    assert all(name in done.stderr for name in _logging.ARTIFACTS)


def test_a_handler_that_raises_and_threads_do_no_harm(caplog):
    class Bad(logging.Handler):
        def emit(self, record):
            raise RuntimeError("handler")

        def handle(self, record):
            raise RuntimeError("handle")

    bad = Bad()
    logging.getLogger("godynamo").addHandler(bad)
    godynamo.set_logs(**dict.fromkeys(_logging.ARTIFACTS, True))
    try:
        results = []
        threads = [
            threading.Thread(target=lambda n=n: results.append(godynamo.optimize(program)(torch.ones(2), n).item()))
            for n in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        logging.getLogger("godynamo").removeHandler(bad)
    assert sorted(results) == [2 * n + 2.0 for n in range(4)]
