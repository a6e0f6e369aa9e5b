"""The trace: its contents, and one series of files per process. Tracing never disturbs the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest
import torch

import godynamo
from godynamo._observe import trace as _trace
from godynamo._observe import trace_file

PACKAGE = Path(__file__).resolve().parents[2]


def events(directory):
    """Return the events of each file, by file name; check that every line is an event."""
    return {p.name: [json.loads(line) for line in p.read_text().splitlines()] for p in sorted(directory.iterdir())}


def translations(rows):
    return [row for row in rows if row["event"] == "translation"]


@pytest.fixture
def traced(tmp_path):
    directory = tmp_path / "trace"
    with godynamo.config.patch(trace_dir=str(directory)):
        yield directory
    if _trace._state.files is not None:
        _trace._state.files.close()


def run(program, directory, **environment):
    script = directory / "program.py"
    script.write_text(textwrap.dedent(program))
    trace = directory / "trace"
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "GODYNAMO_TRACE": str(trace), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done, events(trace) if trace.is_dir() else {}


def scaled(x, n):
    return (x * n).relu()


def breaks_once(x, n):
    y = scaled(x, n)
    godynamo.graph_break()
    return y + 1


def inner(x):
    return x.sin()


def outer(x):
    godynamo.graph_break()
    y = x + 1
    exec("inner(y)")
    return y * 2


def test_a_translation_says_all_there_is_to_know(traced):
    f = godynamo.optimize(breaks_once)
    f(torch.ones(2), 2)
    f(torch.ones(2), 3)
    (rows,) = events(traced).values()
    head = rows[0]
    assert (head["event"], head["format"], head["version"], head["pid"]) == (
        "process",
        "godynamo-trace",
        1,
        os.getpid(),
    )
    assert head["argv"] and head["torch"] == torch.__version__ and head["config"]["trace_dir"] == str(traced)
    first, rest, again, *_ = translations(rows)
    lines = breaks_once.__code__.co_firstlineno
    assert first["function"] == {"name": "breaks_once", "file": __file__, "line": lines}
    assert (first["status"], first["kind"], first["parent"], first["ops"]) == ("ok", "call", None, 2)
    assert (rest["kind"], rest["parent"], rest["resumes_at"]) == ("resume", first["id"], lines + 3)
    assert first["stack"][0][0] == "test_a_translation_says_all_there_is_to_know"
    assert first["stack"][0][3] == "f(torch.ones(2), 2)"
    (split,) = first["breaks"]
    assert split["code"].startswith("GD") and split["reason"]
    assert split["stack"][0] == ["breaks_once", __file__, lines + 2, "godynamo.graph_break()"]
    assert "godynamo.graph_break()" in split["around"]["lines"][lines + 2 - split["around"]["first"]]
    assert "call_function[target=operator.mul]" in first["graph"]
    assert ["n == 2", __file__, scaled.__code__.co_firstlineno + 1, "return (x * n).relu()"] in first["guards"]["parts"]
    assert " and ".join(p[0] for p in first["guards"]["parts"]) == first["guards"]["text"]
    assert "LOAD_GLOBAL" in first["bytecode"]["original"] and "BINARY_OP" in first["bytecode"]["transformed"]
    assert set(first["times"]) == {"decode", "translate", "guards", "backend", "lower", "install"}
    own, inlined = first["calls"]
    assert own[:4] == [-1, "breaks_once", __file__, lines] and inlined[:2] == [0, "scaled"]
    assert own[4] == inlined[4] == first["attempts"] == 2 and own[5] > 0 and inlined[5] > 0
    assert own[5] + inlined[5] <= first["times"]["translate"] + 1
    (why,) = again["failures"]
    assert (why["text"], why["guard"], why["found"], why["was"]) == ("n == 2: found 3, not 2", "n == 2", "3", "2")
    assert (why["file"], why["line"]) == (__file__, scaled.__code__.co_firstlineno + 1)
    assert why["source"] == "return (x * n).relu()"


def test_what_an_inner_call_needs_hangs_below_the_one_that_made_it(traced):
    godynamo.optimize(outer)(torch.ones(2))
    (rows,) = events(traced).values()
    by_id = {t["id"]: t for t in translations(rows)}
    below = [(t["kind"], t["function"]["name"], by_id[t["parent"]]["kind"]) for t in by_id.values() if t["parent"]]
    assert below == [
        ("resume", "outer", "call"),  # after the break
        ("resume", "outer", "resume"),  # the exec, which CPython runs
        ("inner", "inner", "resume"),
        ("resume", "outer", "resume"),
    ]
    (served,) = [t for t in by_id.values() if t["kind"] == "inner"]
    assert by_id[served["parent"]]["status"] == "ok" and not by_id[served["parent"]]["bytecode"]["transformed"]


def test_backends_that_fail_and_full_caches_are_events(traced, caplog):
    def fails(gm, inputs):
        raise ValueError("not today")

    with pytest.raises(godynamo.exc.BackendCompilerFailed):
        godynamo.optimize(fails)(scaled)(torch.ones(2), 2)
    f = godynamo.optimize(scaled, dynamic=False)
    with godynamo.config.patch(cache_size_limit=2):
        for n in range(4):
            f(torch.ones(2), n)
    (rows,) = events(traced).values()
    failed = next(r for r in rows if r["event"] == "backend_failed")
    raised = translations(rows)[0]
    assert failed["backend"] == "fails" and "not today" in failed["error"] and failed["translation"] == raised["id"]
    assert raised["status"] == "raised" and "not today" in raised["reason"] and raised["times"]["backend"] > 0
    full = next(r for r in rows if r["event"] == "limit")
    assert full["limit"] == 2 and full["function"]["name"] == "scaled"
    assert [r for r in full["failures"] if "expected 1, seen 2" in r]
    assert full["stack"][0][3] == "f(torch.ones(2), n)"


def test_a_forked_child_and_a_spawned_one_write_their_own(tmp_path):
    done, files = run(
        """
        import multiprocessing, os, torch, godynamo

        @godynamo.optimize
        def f(x, n):
            return x * n

        def work(n):
            assert f(torch.ones(2), n).sum() == 2 * n

        if __name__ == "__main__":
            work(1)
            for way in ("fork", "spawn"):
                child = multiprocessing.get_context(way).Process(target=work, args=(2,))
                child.start()
                child.join()
                assert child.exitcode == 0
            work(3)
        """,
        tmp_path,
    )
    assert done.stderr == ""
    assert len(files) == 3
    heads = {rows[0]["pid"]: rows for rows in files.values()}
    assert all(str(pid) in name for pid, name in zip(heads, files))
    parent = next(rows for rows in files.values() if len(translations(rows)) == 2)
    (forked,) = [rows for rows in files.values() if rows[0]["forked_from"]]
    assert forked[0]["forked_from"] == {"pid": parent[0]["pid"], "last": 1}
    assert [t["id"] for t in translations(forked)] == [2]
    assert translations(forked)[0]["failures"][0]["text"] == "n == 1: found 2, not 1"
    assert parent[-1]["event"] == "end" and parent[-1]["counters"]["translated"] == 2


def test_a_directory_that_cannot_be_written_is_told_once_and_the_program_goes_on(tmp_path):
    (tmp_path / "trace").write_text("a file")
    done, _ = run(
        """
        import torch, godynamo
        f = godynamo.optimize(lambda x, n: x * n, dynamic=False)
        print([f(torch.ones(1), n).item() for n in (1, 2, 3)])
        print(godynamo.cache_stats(f)["translations"])
        """,
        tmp_path,
    )
    assert done.stdout == "[1.0, 2.0, 3.0]\n3\n"
    assert done.stderr.count("no trace is written") == 1
    assert str(tmp_path / "trace") in done.stderr and "Traceback" not in done.stderr


def test_another_directory_is_another_trace(tmp_path, caplog):
    taken = tmp_path / "taken"
    taken.write_text("")
    f = godynamo.optimize(lambda x, n: x * n, dynamic=False)
    with godynamo.config.patch(trace_dir=str(taken)):
        f(torch.ones(1), 1)
        f(torch.ones(1), 2)
    assert sum("no trace is written" in r.message for r in caplog.records) == 1
    for name in ("one", "two"):
        with godynamo.config.patch(trace_dir=str(tmp_path / name)):
            f(torch.ones(1), len(name) + ord(name[0]))
        (rows,) = events(tmp_path / name).values()
        assert [r["event"] for r in rows] == ["process", "translation"]


def test_nothing_is_made_where_nothing_is_traced():
    done = subprocess.run(
        [sys.executable, "-c", "import torch, godynamo, sys; f = godynamo.optimize(lambda x: x + 1); f(torch.ones(1));"
         "print([m for m in sys.modules if 'godynamo._observe.trace' in m and 'rules' not in m])"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(PACKAGE), "GODYNAMO_TRACE": ""},
    )  # fmt: skip
    assert done.stdout == "[]\n", done.stderr


# ---- the files themselves ----


def header(part):
    return {"event": "process", "part": part}


def test_files_are_rotated_and_the_oldest_go(tmp_path):
    files = trace_file.TraceFiles(str(tmp_path / "made" / "for it"), 1000, 3, header)
    for i in range(100):
        files.write({"event": "row", "i": i, "text": "x" * 80})
    files.close()
    kept = events(tmp_path / "made" / "for it")
    assert len(kept) == 3
    assert all(rows[0]["event"] == "process" for rows in kept.values())
    assert all(os.path.getsize(tmp_path / "made" / "for it" / name) <= 1000 for name in kept)
    left = [row["i"] for rows in kept.values() for row in rows[1:]]
    assert sorted(left) == list(range(100 - len(left), 100))


def test_a_line_longer_than_a_file_still_gets_one(tmp_path):
    files = trace_file.TraceFiles(str(tmp_path), 100, 8, header)
    for i in range(3):
        files.write({"event": "row", "text": "y" * 500})
    assert [len(rows) for rows in events(tmp_path).values()] == [2, 2, 2]


def test_threads_write_whole_lines(tmp_path):
    files = trace_file.TraceFiles(str(tmp_path), 20_000, 100, header)

    def write(k):
        for i in range(200):
            files.write({"event": "row", "key": [k, i], "text": "z" * 50})

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    keys = [tuple(row["key"]) for rows in events(tmp_path).values() for row in rows[1:]]
    assert sorted(keys) == [(k, i) for k in range(8) for i in range(200)]


def test_texts_that_are_no_text_and_texts_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "LINE_LIMIT", 16_000)
    files = trace_file.TraceFiles(str(tmp_path), 1 << 20, 8, header)
    files.write({"event": "row", "file": "\udcff\n\u2028", "odd": object(), "long": "w" * 100_000})
    (rows,) = events(tmp_path).values()
    assert rows[1]["file"] == "\udcff\n\u2028" and rows[1]["odd"] == "<object>"
    assert rows[1]["long"].startswith("www") and "99000 characters more, left out of the trace" in rows[1]["long"]


def test_a_full_disk_ends_the_trace_and_nothing_else(traced, caplog, monkeypatch):
    f = godynamo.optimize(lambda x, n: x * n)
    f(torch.ones(1), 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_file.os, "write", full)
    assert f(torch.ones(1), 2).item() == 2 and f(torch.ones(1), 3).item() == 3
    assert sum("No space left" in r.message for r in caplog.records) == 1


def test_internal_errors_and_graphs_that_raise_are_events(traced, monkeypatch):
    class Unsound:
        """A backend whose graph raises where the program does not."""

        def __call__(self, gm, inputs):
            def run(*_):
                raise ZeroDivisionError("of the backend's")

            return run

    godynamo.optimize(Unsound())(scaled)(torch.ones(2), 2)
    godynamo._C.report_internal_error("somewhere", scaled, godynamo.exc.InternalTorchDynamoError("a bug"))
    (rows,) = events(traced).values()
    failed = next(r for r in rows if r["event"] == "graph_failed")
    assert failed["function"]["name"] == "scaled" and "of the backend's" in failed["error"]
    bug = next(r for r in rows if r["event"] == "internal_error")
    assert (bug["where"], bug["error"], bug["count"], bug["disabled"]) == ("somewhere", "a bug", 1, False)
    assert bug["function"]["name"] == "scaled" and bug["translation"] is None


def test_ctrl_c_while_an_event_is_written_reaches_the_program(traced, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_trace, "_listing", interrupted)
    with pytest.raises(KeyboardInterrupt):
        godynamo.optimize(scaled)(torch.ones(2), 2)
        for _ in range(1000):  # CPython checks for signals here
            pass
