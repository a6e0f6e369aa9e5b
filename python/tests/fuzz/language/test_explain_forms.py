"""Explanations of random programs can be written in all forms, and each form is well-formed."""

import json
import random
import xml.etree.ElementTree
from html.parser import HTMLParser

import pytest
import torch

from fuzz_judge import observe
from fuzz_program import program, source
from godynamo._explain import explain
from harness.fuzz_compare import FILENAME, codes_of, limited

SEEDS = random.Random(11).sample(range(10_000), 25)
VOID = {"meta", "link", "br"}


class Balanced(HTMLParser):
    """Checks that every opened element is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Accept a self-closing element of the SVG picture."""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("seed", SEEDS)
def test_every_form_of_a_random_program(seed):
    made = []

    def explained(fn):
        def run(*args):
            explanation, error = explain.explain_call(fn, args, {})
            made.append(explanation)
            if error is not None:
                raise error
            return explanation.result

        return run

    def fresh():
        ns = {"__name__": "program"}
        for code in codes_of(source(program(seed))):
            exec(code, ns)
        torch.manual_seed(0)
        return ns

    for call in range(3):
        plain, ns = fresh(), fresh()
        with limited(30.0):
            expected = observe(plain, plain["fn"], call, FILENAME)
        did = observe(ns, explained(ns["fn"]), call, FILENAME)
        assert did == expected
    for e in made:
        text = str(e)
        assert f"Graph break count: {len(e.break_reasons)}" in text
        data = json.loads(e.to_json())
        assert len(data["pieces"]) == len(e.pieces) and sum(p.ops for p in e.pieces) <= e.op_count
        xml.etree.ElementTree.fromstring(e.to_svg())
        assert e.to_dot().count("subgraph") == len(e.pieces)
        for html in (e.to_html(), e._repr_html_()):
            parser = Balanced()
            parser.feed(html)
            assert parser.open == []
        for entry in e.guard_entries:
            assert {g.text for g in entry.guards} == {part for part, _ in entry.parts}
            assert str(entry.tree()).count("\n") >= len(entry.guards) - 1
        for piece in e.pieces:
            assert all(0 <= j < len(e.pieces) for j in (*piece.goes_on, *piece.calls))
            assert piece.split is None or piece.split < len(e.break_reasons)
