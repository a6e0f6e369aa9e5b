"""`godynamo report`: a real program's trace as a page, opened in a browser."""

from __future__ import annotations

import functools
import html
import json
import re
import subprocess

import pytest

from browser import SCREENSHOTS, dom, open_page
from cli_support import environment, tool
from harness import forked

PROGRAM = """
import os, threading, torch, godynamo

def scaled(x, n):
    y = x * n
    return y.relu()

@godynamo.optimize(dynamic=False)
def step(x, n, tag="<script>alert(1)</script>"):
    y = scaled(x, n)
    godynamo.graph_break()
    z = y + 1
    if z.sum() > 0:
        z = z - 1
    return z.sin()

def main():
    for n in (2, 3):
        step(torch.ones(4), n)
    step(torch.ones(4, dtype=torch.float64), 2)
    worker = threading.Thread(target=step, args=(torch.ones(4), 4), name="worker")
    worker.start()
    worker.join()
    if (child := os.fork()) == 0:
        step(torch.ones(4), 5)
        os._exit(0)
    os.waitpid(child, 0)

main()
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """Return a directory with the program's trace in it."""
    directory = tmp_path_factory.mktemp("report")
    (directory / "program.py").write_text(PROGRAM)
    subprocess.run(
        [forked.python(), "program.py"], cwd=directory, env=environment(GODYNAMO_TRACE="trace"), timeout=240, check=True
    )
    return directory


@pytest.fixture(scope="module")
def page(traced):
    done = tool("report", "trace", "-o", "page.html", cwd=traced)
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(
        r"page\.html: processes: 2, translations: \d+, graph breaks: \d+, recompiles: \d+\n", done.stderr
    )
    return traced / "page.html"


@pytest.fixture(scope="module")
def summary(traced):
    done = tool("report", "trace", "--json", cwd=traced)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@functools.cache
def shown(page, fragment=""):
    """Return the HTML of a view of the page; the browser reads each view only once."""
    return dom(page, fragment=fragment)


def texts(source):
    """Return the visible text of some HTML, without tags."""
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", source)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_the_summary_has_the_breaks_and_both_values(summary):
    assert summary["format"] == "godynamo-report" and summary["problems"] == []
    assert (
        summary["totals"]["processes"] == 2
        and summary["totals"]["by_status"]["ok"] == summary["totals"]["translations"]
    )
    lines = {b["source"]: b for b in summary["breaks"]}
    assert set(lines) == {"godynamo.graph_break()", "if z.sum() > 0:"}
    assert all(b["code"].startswith("GD") and b["function"] == "step" for b in lines.values())
    values = [pair for r in summary["recompiles"] if r["guard"].startswith("n == ") for pair in r["values"]]
    assert ["2", "3"] in values and ["2", "5"] in values and ["4", "5"] in values
    assert [r["source"] for r in summary["recompiles"] if r["guard"].startswith("n == ")][0] == "y = x * n"
    forked = next(p for p in summary["processes"] if p["forked_from"])
    assert forked["parent"] == 0
    times = {f["name"]: f for f in summary["functions"]}
    assert times["scaled"]["inlined"] > 0 and times["step"]["cumulative_us"] >= times["step"]["self_us"] > 0


def test_the_page_opens_in_light_and_dark_without_a_word_on_the_console(page):
    assert open_page(page, SCREENSHOTS / "report.png") == []
    assert open_page(page, SCREENSHOTS / "report-dark.png", dark=True, size=(1400, 1700)) == []
    for tab in ("breaks", "recompiles", "functions", "events", "processes"):
        assert open_page(page, SCREENSHOTS / f"report-{tab}.png", fragment=tab) == []


def test_a_translation_shows_graph_guards_both_bytecodes_and_its_break(page, summary):
    at = next(i for i, t in enumerate(summary["translations"]) if t.get("breaks") and not t.get("failures"))
    seen = texts(shown(page, f"c{at}"))
    for text in (
        "Graph breaks",
        "GD0",
        "godynamo.graph_break()",
        "call_function[target=operator.mul]",
        "BINARY_OP",
        "transformed",
        "n == 2",
        "y = x * n",
        "step(torch.ones(4), n)",
        "translate",
        "MainThread",
    ):
        # fmt: skip
        assert text in seen, text
    assert re.search(r'class="marked"><span class="no">\d+</span> *godynamo.graph_break\(\)', shown(page, f"c{at}"))


def test_a_recompile_shows_the_guard_and_both_values(page, summary):
    at = next(i for i, t in enumerate(summary["translations"]) if t.get("failures"))
    row = re.search(r'<table class="failures">.*?</table>', shown(page, f"c{at}"))
    seen = texts(row.group())
    assert "n == 2 2 3" in seen and "y = x * n" in seen
    seen = texts(shown(page, "recompiles"))
    assert "2 → 3" in seen and "translated again" in seen


def test_the_tree_has_the_callers_and_the_search_narrows_it(page):
    seen = texts(shown(page))
    assert "step(torch.ones(4), n)" in seen and "process" in seen and "worker" not in seen
    narrow = "const s = document.querySelector('#search'); s.value = '%s'; s.dispatchEvent(new Event('input'))"
    everything = len(re.findall("data-compile", shown(page)))
    some = dom(page, script=narrow % "float64")
    assert 0 < len(re.findall("data-compile", some)) < everything
    assert "Nothing matches." in dom(page, script=narrow % "no such thing")


def test_the_table_of_times_can_be_sorted(page):
    names = re.compile(r"<tr><td><b>([^<]*)</b>")
    by_time = names.findall(shown(page, "functions"))
    click = "document.querySelectorAll('#function-table th button')[0].click()"
    by_name = names.findall(dom(page, fragment="functions", script=click))
    assert by_time[0] == "step" and by_name == sorted(by_time) and set(by_time) == {"step", "scaled"}


def test_a_program_s_text_is_never_html(tmp_path):
    odd = "<script>document.title='hit'</script><img src=x onerror=alert(1)>"
    (tmp_path / "t").mkdir()
    place, stack, around = {"name": odd, "file": odd, "line": 1}, [[odd, odd, 1, odd]], {"first": 1, "lines": [odd]}
    guard = {"text": odd, "guard": odd, "was": odd, "found": odd, "file": odd, "line": 1, "source": odd}
    split = {"code": odd, "reason": odd, "hint": odd, "stack": stack, "around": around}
    head = {
        "event": "process",
        "format": "godynamo-trace",
        "version": 1,
        "pid": 1,
        "started": 1,
        "part": 0,
        "argv": [odd],
    }
    made = {
        **{"event": "translation", "id": 1, "parent": None, "time": 2, "kind": "call", "status": odd, "reason": odd},
        **{"graph": odd, "function": place, "stack": stack, "times": {"translate": 1.0}, "failures": [guard]},
        **{"breaks": [split], "bytecode": {"original": odd, "transformed": odd}},
        "calls": [[-1, odd, odd, 1, 1, 1.0], [0, odd, odd, 1, 1, 1.0]],
    }
    rows = [head, made]
    (tmp_path / "t" / "a.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    assert tool("report", "t", cwd=tmp_path).returncode == 0
    for tab in ("c0", "breaks", "recompiles", "functions"):
        assert open_page(tmp_path / "report.html", fragment=tab) == []
        seen = dom(tmp_path / "report.html", fragment=tab)
        assert "<img" not in seen and "<title>hit" not in seen


def test_thousands_of_translations_open_quickly(tmp_path):
    (tmp_path / "t").mkdir()
    listing = "\n".join(f"  {i:6} LOAD_FAST  0 (x)" for i in range(150))
    with open(tmp_path / "t" / "a.jsonl", "w") as out:
        out.write('{"event":"process","format":"godynamo-trace","version":1,"pid":1,"started":1,"part":0}\n')
        for i in range(5000):
            stack = [
                [f"g{i % 1500}", "m.py", i % 1500, "g()"],
                [f"h{i % 30}", "m.py", 3, "h()"],
                ["main", "m.py", 9, "main()"],
            ]
            row = {
                **{"event": "translation", "id": i + 1, "parent": i or None, "time": i, "kind": "call", "status": "ok"},
                "function": {"name": f"f{i % 700}", "file": f"m{i % 40}.py", "line": i % 700},
                **{"ops": i, "stack": stack, "times": {"translate": 5.0}},
                "bytecode": {"original": listing, "transformed": listing},
            }
            out.write(json.dumps(row) + "\n")
    assert tool("report", "t", cwd=tmp_path).returncode == 0
    page = tmp_path / "report.html"
    assert page.stat().st_size < 8 << 20
    assert open_page(page, SCREENSHOTS / "report-thousands.png") == []
    seen = dom(page, fragment="c4321")
    assert "LOAD_FAST" in seen and seen.count('class="node"') < 2000


# ---- bad input ----


def test_missing_and_empty_directories_and_bad_use_are_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "a.jsonl").write_text("{}\n")
    for arguments, text in (
        (["report"], "report needs the directory"),
        (["report", "missing"], "missing: no such directory; run the program with GODYNAMO_TRACE=missing"),
        (["report", "empty"], "empty holds no trace: run the program with GODYNAMO_TRACE=empty"),
        (["report", "a", "b"], "report needs the directory"),
        (["report", "--opne", "a"], "did you mean --open?"),
    ):
        done = tool(*arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("godynamo: ") and text in done.stderr, (
            done.stderr
        )
    done = tool("report", "trace", cwd=tmp_path)
    assert done.returncode == 2 and "a.jsonl: no trace of godynamo's" in done.stderr


def test_torn_and_foreign_files_are_named_and_the_rest_is_reported(traced, tmp_path):
    (source,) = [p for p in (traced / "trace").iterdir() if '"forked_from":null' in p.read_text()[:4000]]
    (tmp_path / "t").mkdir()
    *whole, last = source.read_bytes().splitlines(keepends=True)
    (tmp_path / "t" / source.name).write_bytes(b"".join(whole) + last[: len(last) // 2])
    (tmp_path / "t" / "other.jsonl").write_text("not ours\n")
    done = tool("report", "t", "-o", "page.html", "--json=out.json", cwd=tmp_path)
    assert done.returncode == 0
    assert (
        f"godynamo: {source.name}: the last line is torn" in done.stderr
        and "godynamo: other.jsonl: no trace" in done.stderr
    )
    assert len(json.loads((tmp_path / "out.json").read_text())["problems"]) == 2
    assert "the last line is torn" in texts(dom(tmp_path / "page.html"))
    assert open_page(tmp_path / "page.html", SCREENSHOTS / "report-problems.png") == []


def test_an_output_that_cannot_be_written_is_one_line(traced):
    done = tool("report", "trace", "-o", "no/such/page.html", cwd=traced)
    assert (
        done.returncode == 2 and done.stderr.count("\n") == 1 and "no/such/page.html cannot be written" in done.stderr
    )


def test_a_device_stays_one(traced, tmp_path):
    (tmp_path / "page.html").symlink_to("/dev/null")
    done = tool("report", traced / "trace", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "page.html").is_symlink(), "a new file has taken its place"
