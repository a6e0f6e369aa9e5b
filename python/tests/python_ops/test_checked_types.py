"""Annotations as checks of Python calls' results: python_ops="checked"."""

from __future__ import annotations

import re
import typing
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor

import godynamo
from harness.capture import nb
from python_ops_support import both_ways, kinds, make, same

torch.set_num_threads(1)


def annotated(x):
    res: str = open(__file__).readline()
    return x + 1, res


@pytest.mark.row("S000-18")
def test_an_annotated_assignment_checks_the_value():
    names = kinds(both_ways(annotated, torch.ones(1), python_ops="checked").graphs[0])
    assert names[-1] == "CastFromPython[types=str]" or "CastFromPython[types=str]" in names
    assert not any(n.startswith("Cast") for n in kinds(both_ways(annotated, torch.ones(1)).graphs[0]))


def returns_text(path: str) -> str:
    return open(path).readline()


@pytest.mark.row("S000-19")
def test_a_return_annotation_checks_what_is_returned():
    names = kinds(both_ways(returns_text, __file__, python_ops="checked").graphs[0])
    assert names == ["PyConstant", "^<PyObjectCall>()", "^getattr()", "^<PyObjectCall>()", "CastFromPython[types=str]"]


def wrong(x) -> str:
    return len(same([x])) + same(0)


@pytest.mark.row("S000-20")
@pytest.mark.parametrize("backend", ["inline", "whole"])
def test_a_value_of_another_type_is_a_valueerror(backend):
    options = {} if backend == "inline" else {"backend": nb()}
    compiled = godynamo.optimize(fn=wrong, python_ops="checked", **options)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=re.escape("cannot cast Python object of type int to TorchScript type str")
        ):
            compiled(torch.ones(1))


@pytest.mark.row("S000-20", "S000-21")
def test_unchecked_annotations_have_no_effect():
    def local(x):
        n: str = same(5)
        return x, n

    assert godynamo.optimize(fn=wrong, python_ops=True)(torch.ones(1)) == 1
    assert not any(n.startswith("Cast") for n in kinds(both_ways(wrong, torch.ones(1)).graphs[0]))
    both_ways(local, torch.ones(1))


TENSOR = torch.ones(2)

CASTS = [
    ("Tensor", "Tensor", TENSOR, 1),
    ("int", "int", 3, "3"),
    ("float", "float", 1.5, "1.5"),
    ("bool", "bool", True, 1),
    ("str", "str", "a", b"a"),
    ("None", "NoneType", None, 0),
    ("Optional[int]", "Optional[int]", None, "a"),
    ("int | None", "Optional[int]", 4, 1.5),
    ("List[int]", "List[int]", [1, 2], [1, "a"]),
    ("list[str]", "List[str]", ["a"], ("a",)),
    ("Dict[str, int]", "Dict[str, int]", {"a": 1}, {1: 1}),
    ("Dict[str, List[int]]", "Dict[str, List[int]]", {"a": [1]}, {"a": [None]}),
    ("Tuple[int, str]", "Tuple[int, str]", (1, "a"), (1, 2)),
    ("Tuple[int, Tensor]", "Tuple[int, Tensor]", (1, TENSOR), (1, TENSOR, 2)),
    ("Tuple[int, ...]", "Tuple[int, ...]", (1, 2, 3), (1, "a")),
]


def with_annotation(annotation):
    """Return a function from a source file of its own that contains the annotation."""
    import linecache

    text = f"def f(value, x):\n    v: {annotation} = same(value)\n    return v\n"
    name = f"<annotation {annotation}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {**vars(typing), "Tensor": Tensor, "same": same}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


@pytest.mark.row("S000-22")
@pytest.mark.parametrize("annotation, shown, good, bad", CASTS, ids=[c[0] for c in CASTS])
def test_each_type_takes_good_values_and_refuses_bad_ones(annotation, shown, good, bad):
    f = with_annotation(annotation)
    backend = nb()
    for options in ({}, {"backend": backend}):
        compiled = godynamo.optimize(fn=f, python_ops="checked", **options)
        assert compiled(good, TENSOR) is good
        with pytest.raises(ValueError, match=re.escape(f"to TorchScript type {shown}") + "$"):
            compiled(bad, TENSOR)
    assert f"CastFromPython[types={shown}]" in kinds(backend.graphs[0])


@pytest.mark.row("S000-23")
@pytest.mark.parametrize("annotation", ["Any", "object", "Opaque", "not_defined"])
def test_any_and_object_ask_for_nothing(annotation):
    f = with_annotation(annotation)
    backend = nb()
    marker = object()
    assert godynamo.optimize(fn=f, backend=backend, python_ops="checked")(marker, TENSOR) is marker
    assert not any(n.startswith("Cast") for n in kinds(backend.graphs[0]))


def pair(x) -> Tuple[int, Tensor]:
    a, b = same((1, x * 2))
    return a, b


@pytest.mark.row("S000-24")
def test_tuples_are_unpacked_and_checked_item_by_item():
    names = kinds(both_ways(pair, torch.ones(2), python_ops="checked").graphs[0])
    assert [n for n in names if n.startswith("Cast")] == ["CastFromPython[types=int]", "CastFromPython[types=Tensor]"]
    assert names.count("^unpack()") == 1 and names.count("^getitem()") == 2


@pytest.mark.row("S000-24")
@pytest.mark.parametrize("count", [1, 3, 4])
def test_unpacking_a_wrong_number_of_items_is_cpythons_error(count):
    def f(x, items):
        a, b = same(items)
        return x, a, b

    both_ways(f, torch.ones(1), tuple(range(count)))
    both_ways(f, torch.ones(1), 5)


def downstream(x):
    y: Tensor = same(x)
    z = torch.relu(y) if False else y.relu() + 1
    return z.view(-1) * x


@pytest.mark.row("S000-25", "S000-22")
def test_a_checked_tensor_is_a_graph_value_again():
    gm = both_ways(downstream, torch.ones(2, 2), python_ops="checked").graphs[0]
    assert kinds(gm)[-4:] == ["relu", "add", "view", "mul"]


@pytest.mark.row("S000-25")
def test_an_operator_on_an_unchecked_result_is_a_node_behind_the_call():
    def f(x):
        return same(x) + 1, make().value

    names = kinds(both_ways(f, torch.ones(2)).graphs[0])
    assert names.index("^add()") > names.index("^<PyObjectCall>()")


def parameter(x):
    p: Tensor = same(x)
    return isinstance(p, torch.nn.Parameter), type(p), p + 1


@pytest.mark.row("S000-22")
def test_the_class_of_a_checked_tensor_is_not_assumed():
    for value in (torch.ones(2), torch.nn.Parameter(torch.ones(2))):
        expected = parameter(value)
        actual = godynamo.optimize(fn=parameter, python_ops="checked")(value)
        assert actual[:2] == expected[:2] and torch.equal(actual[2], expected[2])


USED = (Any, Dict, List, Optional)
