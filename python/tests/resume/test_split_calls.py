"""Methods of builtin types whose arguments break the frame: the method waits, and its effects remain known."""

from __future__ import annotations

import pytest
import torch

from harness.cases import Case, Cases, check

cases = Cases()


def split(value):
    """Break the caller's graph, and return the value."""
    torch._dynamo.graph_break()
    return value


class Row(list):
    """A list."""


@cases(breaks=2, graphs=2)
def appended(x):
    out = [x]
    out.append(split(x + 1))
    out.append(x + 2)
    return out, len(out)


@cases(args=lambda: ([], {}), breaks=4, graphs=2)
def of_the_caller(x, out, table):
    out.append(split(1))
    table.update(a=split(x + 1))
    return len(out), x + len(table)


@cases(breaks=7, graphs=2)
def of_many_kinds(x):
    y = x + 1
    table, seen, row = {}, set(), Row()
    table.setdefault("k", split(3))
    seen.add(split(4))
    row.append(split(5))
    text = "-".join(split(["a", "b"]))
    row.extend(split([6]))
    return table, seen, row, text, y, x + len(row)


@cases(breaks=3, graphs=2)
def called_with_a_star(x):
    out = []
    add = out.append
    add(*[split(x + 1)])
    return out, x + 2


@cases(args=lambda: (list.append, [1]))
def unbound(x, method, row):
    method(row, 3)
    return row, x + 1


@cases(breaks=3)
def wrong_number_of_arguments(x):
    out, y = [], x + 1
    out.append(split(1), 2)
    return out, y


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
def test_split_calls(case: Case) -> None:
    check(case)
