"""`godynamo report` of a model translated often: the reason first, in the user's names, all text inside its box."""

from __future__ import annotations

import html
import json
import re
import subprocess

import pytest

from browser import SCREENSHOTS, dom, open_page
from cli_support import environment, tool
from harness import forked

PROGRAM = """
import torch, godynamo

class AttentionWithAVeryLongNameThatFitsNoColumn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.projections = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))
        self.mask_of_the_tokens_that_are_left_out = 0

    def forward(self, tokens_of_the_batch, mask=None):
        y = tokens_of_the_batch + self.mask_of_the_tokens_that_are_left_out
        for token in tokens_of_the_batch:  # makes the first size a constant
            y = y + token
        for projection in self.projections:
            y = projection(y).view(tokens_of_the_batch.shape[0], -1, 8).relu()
        return y

model = AttentionWithAVeryLongNameThatFitsNoColumn()
served = godynamo.optimize(model)
for n in range(2, 7):
    with godynamo.config.patch(cache_size_limit=3):
        served(torch.ones(n, 3, 8))
model.mask_of_the_tokens_that_are_left_out = 1
served(torch.ones(2, 3, 8))
"""

# Lists elements that are wider than the page, or than a box that does not scroll.
OUTSIDE = """
const wide = [];
if (document.documentElement.scrollWidth > innerWidth) wide.push("the page: " + document.documentElement.scrollWidth);
for (const e of document.querySelectorAll("#view *")) {
  const box = e.getBoundingClientRect();
  for (let p = e.parentElement; box.width && p && p.id !== "view"; p = p.parentElement) {
    if (getComputedStyle(p).overflowX !== "visible") break;
    if (box.right <= p.getBoundingClientRect().right + 1.5) continue;
    wide.push(e.tagName + "." + e.className + " in " + p.className + ": " + e.textContent.slice(0, 60));
    break;
  }
}
for (const t of document.querySelectorAll("svg.flame text")) {
  const room = +t.parentNode.querySelector("rect").getAttribute("width") - 4;
  if (t.getComputedTextLength() > room) wide.push("bar: " + t.textContent);
}
document.title = JSON.stringify(wide);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    (directory / "program.py").write_text(PROGRAM)
    run = [forked.python(), "program.py"]
    done = subprocess.run(
        run, cwd=directory, env=environment(GODYNAMO_TRACE="trace"), timeout=240, check=True, capture_output=True
    )
    assert len(done.stderr) < 2000
    assert tool("report", "trace", "-o", "page.html", cwd=directory).returncode == 0
    return directory / "page.html"


@pytest.fixture(scope="module")
def summary(page):
    return json.loads(tool("report", "trace", "--json", cwd=page.parent).stdout)


def seen(page, fragment=""):
    source = dom(page, fragment=fragment)
    body = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", source)
    return source, " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_translations_are_named_after_forward_and_reasons_after_its_parameters(summary):
    assert {t["function"]["name"].rpartition(".")[2] for t in summary["translations"]} == {"forward"}
    reasons = [f["reason"] for t in summary["translations"] for f in t.get("failures", ())]
    assert "tokens_of_the_batch: sizes expected (2, 3, 8), seen (3, 3, 8); pad to few sizes" in reasons
    limit = next(e for e in summary["events"] if e["event"] == "limit")
    assert all(len(line) <= 120 and "tokens_of_the_batch" in line for line in limit["failures"])


def test_the_reason_stands_first_and_guards_are_words_with_the_text_folded(page, summary):
    at = next(i for i, t in enumerate(summary["translations"]) if t.get("failures"))
    source, text = seen(page, f"c{at}")
    first = re.search(r'<table class="failures">.*?<tbody>.*?<td[^>]*>(.*?)</td>', source, re.DOTALL)
    assert first is not None and first[1].startswith("tokens_of_the_batch: sizes expected")
    assert "<details><summary" in first[1]
    assert source.index("<h3>Why it was translated again") < source.index("<h3>Graph</h3>")
    guards = re.search(r'<table class="guards">(.*?)</table>', source, re.DOTALL)
    assert guards is not None and "___check" not in guards[1]
    assert "as executable Python" in text


def test_the_graph_has_sizes_and_dtypes(page):
    source, text = seen(page, "c0")
    assert re.search(r"linear.*?# \(2, s1, 8\) float32 cpu", source)
    assert "# s1 = tokens_of_the_batch.size()[1], 3 in this call" in text and "# s0 =" not in text


def test_cards_and_tabs_count_the_same(page, summary):
    source, _ = seen(page)
    cards = {title: int(n) for n, title in re.findall(r"<b>(\d+)</b><span>([a-z ]+)</span>", source)}
    tabs = dict(re.findall(r'id="tab-(\w+)"[^>]*>[^<]*<span class="count">(\d+)</span>', source))
    for card, tab in (("translations", "compiles"), ("graph breaks", "breaks"), ("recompiles", "recompiles")):
        assert cards[card] == int(tabs[tab]), card


@pytest.mark.parametrize("width", [1400, 950])
@pytest.mark.parametrize("view", ["c0", "c2", "recompiles", "breaks", "events", "functions", "processes"])
def test_lines_stay_inside_their_boxes(page, view, width):
    source = dom(page, fragment=view, script="setTimeout(() => {" + OUTSIDE + "}, 300)", size=(width, 900))
    title = re.search(r"<title>(.*?)</title>", source, re.DOTALL)
    assert title is not None and html.unescape(title[1]) == "[]"


def test_the_page_has_no_fault(page):
    assert open_page(page, SCREENSHOTS / "report-models.png", fragment="c2") == []
