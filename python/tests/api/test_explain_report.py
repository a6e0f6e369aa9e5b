"""explain of a function with three breaks and a recompile, in each of its forms, and opened in a browser."""

import json
import re
import sys
import textwrap
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest
import torch

import godynamo
from godynamo._explain import layout, source_lines
from godynamo._explain import svg as _explain_svg
from godynamo._explain import text as _explain_text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from browser import SCREENSHOTS, dom, open_page  # noqa: E402

PROGRAM = """
    import os
    import torch

    def scaled(x, n):
        return x * (x.sum().tolist() + n)

    def step(x, n):
        y = x.sin() + 1
        if y.sum() > 0:
            y = y * 2
        y = y * os.getpid() ** 0
        return scaled(y, n)
"""
#: line, code and a part of the hint of each break, in order of occurrence
BREAKS = [
    (10, "GD0101", "torch.where"),
    (12, "GD0201", "allow_in_graph"),
    (6, "GD0102", "keep the value a tensor"),
]
MARKED = {10: "y.sum() > 0", 12: "os.getpid()", 6: "x.sum().tolist()"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    namespace = {"__name__": "explained"}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    return path, namespace


@pytest.fixture(scope="module")
def explanation(program):
    _, namespace = program
    optimized = godynamo.optimize(namespace["step"])
    optimized(torch.ones(3), 2)
    optimized(torch.ones(3), 3)
    return godynamo.explain(optimized)(torch.ones(3), 2)


def test_three_breaks_with_line_code_hint_and_stack(explanation, program):
    path, _ = program
    found = [(r.line, r.code) for r in explanation.break_reasons]
    assert found == [(line, code) for line, code, _ in BREAKS]
    assert explanation.graph_break_count == 3
    for reason, (line, _, hint) in zip(explanation.break_reasons, BREAKS, strict=True):
        assert hint in reason.hint and reason.file == str(path)
        excerpt = reason.excerpt()
        marked = excerpt.lines[excerpt.marked - excerpt.first]
        assert marked[excerpt.column : excerpt.column + excerpt.width] == MARKED[line]
    inner = explanation.break_reasons[2]
    assert [f[0] for f in inner.user_stack] == ["scaled", "step"]
    assert inner.user_stack[1][2] == 13
    assert inner.count >= 2  # the break is counted for this function and for its caller


def test_the_text_names_the_lines_codes_and_hints(explanation, program):
    path, _ = program
    text = str(explanation)
    assert "Graph break count: 3" in text
    for line, code, hint in BREAKS:
        assert f'File "{path}", line {line}' in text
        assert re.search(rf"{code}: .*\n    hint: .*{hint}", text)
        carets = "^" * len(MARKED[line])
        assert re.search(rf"-> +{line} \|  .*{re.escape(MARKED[line])}.*\n +{re.escape(carets)}\n", text)


def test_a_recompile_shows_the_guard_with_both_values(explanation):
    [history] = [r for r in explanation.recompiles if r.function == "scaled"]
    [failure] = [f for f in history.failures if f.guard == "n == 2"]
    assert (failure.old, failure.new, failure.line) == ("2", "3", 6)
    assert history.before
    text = str(explanation)
    assert "n: expected 2, seen 3; use a tensor instead of a number" in text
    assert re.search(r"was: 2\n +now: 3\n +File .*program.py\", line 6: return x \*", text)
    data = json.loads(explanation.to_json())
    assert {"guard": "n == 2", "old": "2", "new": "3"}.items() <= data["recompiles"][-1]["failures"][0].items()
    html = explanation.to_html()
    assert re.search(
        r"n: expected 2, seen 3.*?<summary>the guard</summary><code>n == 2</code>.*?class=\"old\"><code>2</code>.*?"
        r"class=\"new\"><code>3</code>",
        html,
    )


def test_a_recompile_of_the_explained_call_itself():
    def inner(x, n):
        return x * n

    @godynamo.skip
    def twice(x):
        return inner(x, 4), inner(x, 5)

    e = godynamo.explain(lambda x: twice(x))(torch.ones(2))
    [recompile] = e.recompiles
    assert not recompile.before
    assert (recompile.failures[0].old, recompile.failures[0].new) == ("4", "5")


def test_the_json_is_whole_and_stable(explanation):
    data = json.loads(explanation.to_json())
    assert [(b["line"], b["code"]) for b in data["break_reasons"]] == [(line, code) for line, code, _ in BREAKS]
    assert all(hint in b["hint"] for b, (_, _, hint) in zip(data["break_reasons"], BREAKS, strict=True))
    assert data["break_reasons"][0]["source"] == "if y.sum() > 0:"
    documented = (Path(__file__).resolve().parents[3] / "docs" / "explain.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", documented, re.MULTILINE))
    assert set(data) <= rows, set(data) - rows
    pieces = data["pieces"]
    assert [p["split"] for p in pieces if p["function"] == "step"] == [0, 1, 2, None]
    assert pieces[0]["goes_on"] == [1] and pieces[0]["not_run"] == 1
    assert {n["op"] for n in pieces[0]["nodes"]} == {"placeholder", "call_function", "call_method"}
    assert pieces[0]["nodes"][-1]["user_stack"][0][2] == 10


def test_pieces_say_what_was_called_inside_of_a_break(explanation):
    pieces = explanation.pieces
    last = next(p for p in pieces if p.function == "step" and p.split == 2)
    assert [pieces[i].function for i in last.calls] == ["scaled"]
    assert [pieces[i].behind for i in last.goes_on] == [13]


def test_dot_has_a_cluster_for_each_piece_and_a_note_for_each_break(explanation):
    dot = explanation.to_dot()
    assert dot.count("subgraph cluster_") == len(explanation.pieces)
    for line, code, _ in BREAKS:
        assert code in dot and f"line {line}" in dot
    assert dot.count("{") == dot.count("}") and dot.count('"') % 2 == 0
    assert "break_0 -> start_1 [lhead=cluster_1];" in dot
    assert explanation.pieces[0].to_dot().startswith("digraph")


def test_svg_is_well_formed_and_shows_the_breaks(explanation):
    root = xml.etree.ElementTree.fromstring(explanation.to_svg())
    texts = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    for line, code, _ in BREAKS:
        assert any(code in t for t in texts) and any(f"line {line}" in t for t in texts)
    assert any("did not run" in t for t in texts)
    assert xml.etree.ElementTree.fromstring(explanation.pieces[0].to_svg()) is not None
    assert "nothing was captured" in godynamo.explain(lambda: 3)().to_svg()


def test_a_notebook_gets_all_of_it_without_loading_anything(explanation):
    html = explanation._repr_html_()
    for line, code, hint in BREAKS:
        assert code in html and hint in html and f"program.py:{line}" in html
    assert "<svg" in html and "<script" not in html
    for scheme in ("src=", "@import", "url(http"):
        assert scheme not in html


def test_the_page_opens_in_a_browser_without_a_word_on_the_console(explanation, tmp_path):
    page = tmp_path / "explain.html"
    page.write_text(explanation.to_html())
    assert open_page(page, SCREENSHOTS / "explain.png", size=(1280, 2200)) == []
    assert open_page(page, SCREENSHOTS / "explain-dark.png", size=(1280, 2200), dark=True) == []
    shown = dom(page)
    for _, code, hint in BREAKS:
        assert code in shown and hint in shown


class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(n, n), torch.nn.LayerNorm(n)

    def forward(self, x, mask):
        return self.norm(torch.relu(self.first(x)) * mask + x)


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(8) for _ in range(150)])

    def forward(self, x, mask):
        for block in self.blocks:
            x = block(x, mask)
        return x


def test_a_graph_of_600_operations_is_drawn_soon_and_narrow(tmp_path):
    e = godynamo.explain(Deep())(torch.ones(2, 8), torch.ones(8))
    assert e.op_count >= 600
    assert e.pieces[0].function == "Deep.forward"  # not torch's Module.__call__
    begun = time.perf_counter()
    svg = e.to_svg()
    assert time.perf_counter() - begun < 5
    width = float(re.search(r'width="(\d+)"', svg)[1])
    assert width < 4000
    assert "blocks.149.first.weight" in svg
    assert len(e._repr_html_()) < len(e.to_html())  # a notebook does not draw a graph of this size
    path = tmp_path / "deep.svg"
    path.write_text(svg)
    assert open_page(path, SCREENSHOTS / "explain-600.png", size=(1400, 1400)) == []
    assert "lines more" in str(e)


def test_a_break_inside_of_torchs_wrappers_is_told_once():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + x.sum().tolist()

    e = godynamo.explain(Net())(torch.ones(2))
    [reason] = e.break_reasons
    assert reason.count == 3 and reason.function == "forward"
    text = "\n".join(_explain_text.break_lines(reason))
    assert "(2 frames of torch)" in text and "module.py" not in text
    assert [p.function.rpartition(".")[2] for p in e.pieces] == ["forward", "forward"]


def test_two_breaks_of_a_line_are_two():
    def f(x):
        return x.sum().tolist() + x.max().tolist()

    e = godynamo.explain(f)(torch.ones(2))
    assert [r.code for r in e.break_reasons] == ["GD0102", "GD0102"]
    marks = [r.excerpt().lines[0][r.excerpt(around=0).column :] for r in e.break_reasons]
    assert [r.excerpt(around=0).column for r in e.break_reasons][0] != [
        r.excerpt(around=0).column for r in e.break_reasons
    ][1], marks


# ---- the parts ----


def write(tmp_path, text):
    path = tmp_path / "lines.py"
    path.write_text(text)
    return str(path)


def test_an_excerpt_marks_characters_and_not_bytes(tmp_path):
    file = write(tmp_path, "def f(x):\n    größe = 'ä'; n = x.item()\n    return n\n")
    text = "    größe = 'ä'; n = x.item()"
    start, end = (len(text[: text.index(part)].encode()) for part in ("x.item", ")"))
    found = source_lines.excerpt(file, 2, (2, start, end + 1))
    line = found.lines[found.marked - found.first]
    assert line[found.column : found.column + found.width] == "x.item()"
    assert found.to_text()[2].index("^") == found.to_text()[1].index("x.item")


def test_a_mark_over_all_of_a_line_is_left_out_as_in_tracebacks(tmp_path):
    file = write(tmp_path, "def f(x):\n    x.item()\n")
    assert source_lines.excerpt(file, 2, (2, 4, 12)).marks == ""
    assert source_lines.excerpt(file, 2, None).marks == ""


def test_an_excerpt_ends_at_the_line_where_the_text_goes_on_below(tmp_path):
    file = write(tmp_path, "def f(x):\n    y = g(x,\n          x)\n")
    found = source_lines.excerpt(file, 2, (3, 8, 12))
    assert found.marks.count("^") == len("g(x,")


def test_an_excerpt_keeps_to_its_function(tmp_path):
    file = write(tmp_path, "a = 1\ndef f(x):\n    return x\ndef g(x):\n    return x\n")
    assert source_lines.excerpt(file, 3).lines == ("def f(x):", "    return x")


def test_a_file_that_is_gone_has_no_excerpt():
    assert source_lines.excerpt("/nowhere/at/all.py", 3).lines == ()
    assert source_lines.excerpt("/nowhere/at/all.py", 3).to_text() == []


def test_a_drawing_has_no_two_boxes_in_one_place():
    edges = [(i, j) for j in range(1, 60) for i in {j - 1, j // 2, max(j - 13, 0)} if i < j]
    drawing = layout.layered([(30 + 7 * (i % 5), 20) for i in range(60)], edges)
    boxes = drawing.boxes
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
            assert apart, (a, b)
    for a, b in drawing.paths:
        assert boxes[a].y < boxes[b].y
    assert set(drawing.paths) | set(drawing.stubs) == set(edges)
    assert drawing.stubs and all(b - a > layout.LONGEST for a, b in drawing.stubs)
    assert layout.layered([], []).width == 0
    assert _explain_svg.picture([], []).startswith("<svg")


def test_later_translations_of_a_piece_are_told_from_the_first():
    def f(x):
        for i in range(3):
            x = x + i
            godynamo.graph_break()
            x = x * i
        return x

    e = godynamo.explain(f)(torch.ones(2))
    [reason] = [r for r in e.break_reasons if r.code == "GD0001"]
    again = [p for p in e.pieces if p.again is not None]
    assert reason.count == sum(p.split == e.break_reasons.index(reason) for p in e.pieces) > 1
    assert again
    for piece in again:
        first = e.pieces[piece.again]
        assert first.again is None and first.behind == piece.behind and "translated again" in piece.title
    drawn = e.to_svg()
    assert drawn.count('class="flow"') <= sum(len(p.goes_on) for p in e.pieces if p.again is None)


def test_a_function_that_calls_itself_is_told_by_the_frame_of_each_piece():
    def f(x, n):
        return x if n == 0 else f(x * x.sum().tolist(), n - 1)

    e = godynamo.explain(f)(torch.ones(2), 2)
    assert e.pieces[0].split_frame == 0
    assert len(e.pieces[0].nodes) == 2
    assert all(j < len(e.pieces) for p in e.pieces for j in (*p.goes_on, *p.calls))
    e.to_svg(), e.to_dot()


def test_only_what_can_be_called_is_explained():
    with pytest.raises(TypeError, match=r"explain\(\) needs a function, method, module or callable object, not 3"):
        godynamo.explain(3)
