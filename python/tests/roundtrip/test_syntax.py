"""The generator of make roundtrip uses every kind of statement, expression and pattern; the seed determines it."""

from __future__ import annotations

import ast
import warnings

import pytest

import syntax


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        yield


def test_every_kind_of_node_occurs():
    seen = {type(node) for seed in range(25) for node in ast.walk(ast.parse(syntax.source(seed)))}
    kinds = [kind for family in (ast.stmt, ast.expr, ast.pattern) for kind in family.__subclasses__()]
    assert not [kind.__name__ for kind in kinds if kind not in seen]


def test_a_seed_is_one_program():
    assert syntax.source(3) == syntax.source(3) != syntax.source(4)
