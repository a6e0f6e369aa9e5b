"""Ints computed from sizes that a graph break passes on inside containers: symbols in the code that gets them."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

import godynamo
from godynamo import utils
from harness.capture import assert_no_internal_errors
from sizes.test_symbols import assert_same

SHAPES = [(4, 6), (7, 3), (3, 7), (1, 5), (5, 1), (0, 2), (4, 4), (6, 4)]


def graphs() -> int:
    return int(utils.counters["stats"]["unique_graphs"])


def assert_no_new_graphs(f: Callable[..., Any], shapes: list[tuple[int, int]] = SHAPES) -> None:
    """Compare each call with eager mode; the first call's graphs must serve all of them."""
    optimized = godynamo.optimize(f)
    start, first = graphs(), 0
    for shape in shapes:
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        assert_same(optimized(x), f(x))
        first = first or graphs()
    assert_no_internal_errors()
    assert first > start
    assert graphs() == first, godynamo.explain(f)(x)


def stop() -> None:
    torch._dynamo.graph_break()


@dataclasses.dataclass
class Images:
    tensor: torch.Tensor
    sizes: list[tuple[int, int]]


class Slotted:
    __slots__ = ("sizes",)

    def __init__(self, sizes: Any) -> None:
        self.sizes = sizes


Pair = collections.namedtuple("Pair", "height width")


def in_a_list(x):
    sizes = [(x.shape[0] + 1, x.shape[1] * 2)]
    stop()
    return x.new_ones(sizes[0]), x + sizes[0][1]


def in_a_dict(x):
    sizes = {"rows": x.shape[0], 2: [x.shape[1]]}
    stop()
    return x.new_ones(sizes["rows"], sizes[2][0]), x * sizes["rows"]


def in_an_object(x):
    images = Images(x, [(x.shape[0], x.shape[1])])
    stop()
    return images.tensor.new_ones(images.sizes[0])


def in_a_slot(x):
    holder = Slotted(Pair(x.shape[0], x.shape[1] + 3))
    stop()
    return x.new_ones(holder.sizes.width), x * holder.sizes.height


def in_a_cell(x):
    rows = [x.shape[0]]

    def uses():
        return x.new_ones(rows[0] + 1)

    stop()
    return uses()


def passed_twice(x):
    sizes = [x.shape[0] * 3]
    stop()
    y = x + 1
    stop()
    return y.new_ones(sizes[0])


def of_size_changed_list(x):
    sizes = [1]
    sizes.append(x.shape[0])
    stop()
    y = x * sizes[1]
    sizes.append(x.shape[1])
    stop()
    return y + sizes[2], sizes


@pytest.mark.parametrize(
    "f",
    [in_a_list, in_a_dict, in_an_object, in_a_slot, in_a_cell, passed_twice, of_size_changed_list],
    ids=lambda f: f.__name__,
)
def test_the_resume_function(f) -> None:
    assert_no_new_graphs(f)


def callee(x, sizes, *rest, scale=(1,), **options):
    y = x.new_ones(sizes[0][0], sizes[0][1]) * scale[0]
    stop()
    return y * options.get("by", [2])[0] + len(rest), [r[0] + 1 for r in rest]


def positional(x):
    return callee(x, [(x.shape[0], x.shape[1])])


def by_keyword(x):
    return callee(x, sizes=[(x.shape[0], 2)], scale=[x.shape[1]], by=[x.shape[0]])


def starred(x):
    args = ([(x.shape[0], x.shape[1])], [x.shape[0] * 2])
    return callee(x, *args, **{"by": (x.shape[1],)})


def through(*args, **kwargs):
    return callee(*args, **kwargs)


def passed_through(x):
    return through(x, [[x.shape[1], x.shape[0]]], [x.shape[1]], by=[x.shape[0]])


class Layer(torch.nn.Module):
    def forward(self, x, images):
        return callee(x, images.sizes, images.sizes[0])


layer = Layer()


def of_a_module(x):
    return layer(x, Images(x, [(x.shape[0] + 1, x.shape[1])]))


def of_a_closure(x):
    columns = (x.shape[1],)

    def inner(sizes):
        y = x.new_ones(sizes[0], columns[0])
        stop()
        return y + 1

    return inner([x.shape[0]])


@pytest.mark.parametrize(
    "f",
    [positional, by_keyword, starred, passed_through, of_a_module, of_a_closure],
    ids=lambda f: f.__name__,
)
def test_the_callee_of_a_broken_call(f) -> None:
    assert_no_new_graphs(f)


def measures(x):
    sizes = {"all": [x.shape[0], x.shape[1] + 1]}
    stop()
    return x + 1, sizes


def uses_result(x):
    y, sizes = measures(x)
    return y.new_ones(sizes["all"])


def forwards(*args):
    return measures(*args)


def uses_forwarded_result(x):
    y, sizes = forwards(x)
    return y.new_ones(sizes["all"][1]) * sizes["all"][0]


@pytest.mark.parametrize("f", [uses_result, uses_forwarded_result], ids=lambda f: f.__name__)
def test_the_result_of_a_broken_call(f) -> None:
    assert_no_new_graphs(f)


def loops(x, sizes):
    stop()
    y = x
    for i in range(sizes[0]):
        y = y + i
    if sizes[1] > 4:
        y = y * 2
    return y


def needs_values(x):
    return loops(x, [x.shape[0], x.shape[1]])


def test_values_that_the_callee_needs_are_guarded() -> None:
    optimized = godynamo.optimize(needs_values)
    for shape in [*SHAPES, *reversed(SHAPES)]:
        x = torch.ones(shape)
        assert_same(optimized(x), needs_values(x))
    assert_no_internal_errors()


def permutes(x, dims):
    y = x.permute(dims)
    stop()
    return y + 1


def passes_constants(x):
    return permutes(x, [1, 0])


def test_other_ints_are_constants() -> None:
    assert_no_new_graphs(passes_constants)
    assert "dims[0] == 1" in str(godynamo.explain(passes_constants)(torch.ones(2, 3)))


def stores_other_values(x, kept):
    y = x.new_ones(kept[0])
    stop()
    return y + 1


def alternates(x):
    kept = [x.shape[0] if x.shape[0] > 3 else 2]
    return stores_other_values(x, kept)


def test_a_place_with_a_size_or_a_constant() -> None:
    optimized = godynamo.optimize(alternates)
    for shape in [(2, 2), (3, 3), (4, 4), (9, 9), (2, 2), (5, 5)]:
        x = torch.ones(shape)
        assert_same(optimized(x), alternates(x))
    assert_no_internal_errors()


def branches_on_a_text(x):
    if f"{x.shape[0]} rows" == "0 rows":  # constant sizes would decide this branch, but not move the next break
        return x
    godynamo.graph_break()
    return x + 1


def calls_it(x):
    text = f"{x.shape[1]} columns"
    return branches_on_a_text(x * 2), text


def test_constants_that_only_move_a_break_within_the_callee() -> None:
    optimized = godynamo.optimize(calls_it)
    for shape in SHAPES:
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
        assert_same(optimized(x), calls_it(x))
    assert_no_internal_errors()
    assert len(optimized.cache.entries()) == 1
