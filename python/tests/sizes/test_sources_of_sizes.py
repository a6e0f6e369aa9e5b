"""Settings that say which sizes and ints are symbols: the lists of sources, and torch's other settings of sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

import godynamo
from harness.capture import assert_no_internal_errors, entries

config = godynamo.config


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    yield
    config.reset_config()


def plus(x, n):
    return x * n + x.shape[0]


def translations(f: Any, calls: Any, **options: Any) -> int:
    """Compare calls with eager mode, and return the number of translations."""
    optimized = godynamo.optimize(f, **options)
    for args in calls:
        assert torch.equal(optimized(*args), f(*args))
    assert_no_internal_errors()
    return len(entries(optimized))


INTS = [(torch.ones(3, 2), n) for n in (2, 5, 7)]
SIZES = [(torch.ones(n, 2), 2) for n in (2, 5, 7)]


@pytest.mark.parametrize("source", ["L['n']", "n", r"L\['n'\]", ".*", "L['n']:0", " L['y'] , L['n'] "])
def test_a_listed_int_is_a_symbol_at_once(source: str) -> None:
    assert translations(plus, INTS) == 2
    config.dynamic_sources = source
    assert translations(plus, INTS) == 1
    config.static_sources = "L['n']"
    assert translations(plus, INTS) == 3


def test_listed_sources_with_dynamic_false() -> None:
    assert translations(plus, SIZES, dynamic=False) == 3
    for source, expected in (("L['x']", 1), ("x:0", 1), ("x:1", 3), ("L['z']", 3)):
        config.dynamic_sources = source
        assert translations(plus, SIZES, dynamic=False) == expected, source


def test_a_listed_static_size_is_a_constant() -> None:
    assert translations(plus, SIZES) == 1
    for source, expected in (("L['x']", 3), ("L['x']:0", 3), ("L['x']:1", 1)):
        config.static_sources = source
        assert translations(plus, SIZES) == expected, source
    config.static_sources = "L['x']"
    optimized = godynamo.optimize(plus)
    for x, n in SIZES:
        godynamo.mark_dynamic(marked := x.clone(), 0)
        optimized(marked, n)
    assert len(entries(optimized)) == 1  # mark_dynamic wins


def test_names_of_a_module_are_those_of_forward() -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = 2
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x, n, *, offset):
            return x * n * self.scale * self.weight + offset

    def count() -> int:
        module = Module()
        optimized = godynamo.optimize(module)
        for n, offset, scale in ((2, 3, 2), (4, 7, 3), (6, 5, 4), (9, 11, 6)):
            module.scale = scale
            x = torch.ones(n, 2)
            assert torch.equal(optimized(x, n, offset=offset), module(x, n, offset=offset))
        return len(godynamo.cache_entries(optimized))

    assert count() == 2
    config.dynamic_sources = "L['n'], L['offset'], L['self'].scale"
    assert count() == 1


def test_unbacked_sources() -> None:
    def branches(x):
        return x + 1 if x.shape[0] > 3 else x - 1

    config.unbacked_sources = "L['x']:0"
    with pytest.raises(godynamo.exc.Unsupported, match="branch on a tensor.s value"):
        godynamo.optimize(branches, nopython=True)(torch.ones(5, 2))
    assert translations(plus, SIZES, nopython=True) == 1


def test_lists_with_a_compiler() -> None:
    assert translations(plus, SIZES, backend="aot_eager") == 2
    config.dynamic_sources = "L['x']:0"
    assert translations(plus, SIZES, backend="aot_eager") == 1
    assert translations(plus, SIZES, backend="aot_eager", dynamic=False) == 1
    config.static_sources = "L['x']"
    assert translations(plus, SIZES, backend="aot_eager") == 3
    config.reset_config()
    config.automatic_dynamic_shapes = False
    assert translations(plus, SIZES, backend="aot_eager") == 3
    config.reset_config()
    config.dynamic_values = "2"
    assert translations(plus, SIZES, backend="aot_eager") == 1
    spec = pytest.importorskip("torch.fx.experimental.dynamic_spec")
    shapes = {"x": spec.TensorSpec([None, None])}
    optimized = godynamo.compile(plus, backend="aot_eager", dynamic_shapes=shapes)
    for args in SIZES:
        assert torch.equal(optimized(*args), plus(*args))
    assert len(entries(optimized)) == 3


def test_dynamic_values() -> None:
    config.dynamic_values = "1111, 2222"
    assert translations(plus, [(torch.ones(3, 2), n) for n in (1111, 2, 5)]) == 1
    with pytest.raises(ValueError, match="comma list of ints"):
        config.dynamic_values = "a"


def test_assume_static_by_default() -> None:
    config.assume_static_by_default = False
    assert translations(plus, INTS) == 1
    assert translations(plus, INTS, dynamic=False) == 3


def test_automatic_dynamic_shapes() -> None:
    config.automatic_dynamic_shapes = False
    assert translations(plus, INTS) == 3 and translations(plus, SIZES) == 3
    assert translations(plus, INTS, dynamic=True) == 1
    optimized = godynamo.optimize(plus)
    for x, n in SIZES:
        godynamo.maybe_mark_dynamic(marked := x.clone(), 0)
        optimized(marked, n)
    assert len(entries(optimized)) == 1


def test_sizes_of_parameters() -> None:
    def scaled(x, weight):
        return x * weight.sum() + weight.shape[0]

    calls = [(torch.ones(2), torch.nn.Parameter(torch.ones(n, 2))) for n in (2, 3, 5)]
    assert translations(scaled, calls) == 3
    config.dynamic_sources = "L['weight']"
    assert translations(scaled, calls) == 1
    config.dynamic_sources = ""
    config.force_parameter_static_shapes = False
    assert translations(scaled, calls) == 1


def test_sizes_of_a_modules_tensors() -> None:
    class Module(torch.nn.Module):
        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("cache", torch.ones(n, 2))

        def forward(self, x):
            return x + self.cache.sum() + self.cache.shape[0]

    def count() -> int:
        module = Module(2)
        optimized = godynamo.optimize(module)
        for n in (2, 3, 5, 7):
            module.cache = torch.ones(n, 2)
            assert torch.equal(optimized(torch.ones(2)), module(torch.ones(2)))
        assert_no_internal_errors()
        return len(godynamo.cache_entries(optimized))

    assert count() == 2  # a constant until the second size
    config.force_nn_module_property_static_shapes = False
    assert count() == 1
    config.force_nn_module_property_static_shapes = True
    config.dynamic_sources = r"L\['self'\]\.cache, .*cache.*"
    assert count() == 1


def loops(x):
    for _ in range(x.shape[0]):
        x = x + 1
    return x


def test_allow_ignore_mark_dynamic() -> None:
    godynamo.mark_dynamic(x := torch.ones(3, 2), 0)
    with pytest.raises(ConstraintViolationError):
        godynamo.optimize(loops)(x)
    config.allow_ignore_mark_dynamic = True
    assert torch.equal(godynamo.optimize(loops)(x), x + 3)


# ---- marks ----------------------------------------------------------------------------------------------------------


def test_marks_are_those_of_torch() -> None:
    def marks(mark: Any) -> dict[str, Any]:
        t = torch.ones(4, 4, 4, 4)
        mark.mark_unbacked(t, 2, shape_id="b", min=1, max=8)
        mark.mark_unbacked(t, 3, strict=True)
        mark.maybe_mark_dynamic(t, [0, 1], min=2)
        mark.mark_dynamic(t, 1, hint_override=8, max=9, specialize_on=[len])
        mark.maybe_mark_dynamic(t, 1)
        mark.mark_static(t, 0)
        found = dict(vars(t))
        found["_dynamo_dynamic_range"] = {(r.dim, r.min, r.max) for r in found["_dynamo_dynamic_range"]}
        return found

    ours, theirs = marks(godynamo), marks(torch._dynamo.decorators)
    theirs["_dynamo_dynamic_range"] |= {(2, 1, 8)}  # torch keeps the range of mark_unbacked in another attribute only
    theirs["_specialize_on"][3] = []
    assert ours == theirs


def test_torchs_own_range_is_read() -> None:
    optimized = godynamo.optimize(lambda x: x + x.shape[0])
    torch._dynamo.mark_dynamic(x := torch.ones(4), 0, min=2, max=8)
    for t in (x, torch.ones(8), torch.ones(9)):
        optimized(t)
    assert {"x.size()[0] >= 2", "x.size()[0] <= 8"} <= set(entries(optimized)[-1].parts)
    assert len(entries(optimized)) == 2


def test_a_range_of_an_unbacked_size_is_guarded() -> None:
    def f(x):
        return x + 1 if x.shape[0] > 1 else x

    godynamo.mark_unbacked(x := torch.ones(4), 0, min=2, max=8)
    optimized = godynamo.optimize(f, nopython=True)
    assert torch.equal(optimized(x), x + 1)
    assert torch.equal(optimized(torch.ones(1)), torch.ones(1))
    assert len(entries(optimized)) == 2


def test_sizes_with_a_shape_id_are_equal() -> None:
    def f(x, y):
        return (x + y) * y.shape[0] - x.shape[0]

    x, y = torch.ones(4), torch.ones(4)
    for t in (x, y):
        godynamo.mark_unbacked(t, 0, shape_id="batch")
    optimized = godynamo.optimize(f, nopython=True)
    assert torch.equal(optimized(x, y), f(x, y))
    assert "y.size()[0] == x.size()[0]" in str(entries(optimized)[0].parts).replace(
        "x.size()[0] == y", "y.size()[0] == x"
    )
    godynamo.mark_unbacked(z := torch.ones(1), 0, shape_id="batch")
    with pytest.raises(ConstraintViolationError, match="'batch' must be equal, but are [14] and [14]"):
        godynamo.optimize(f)(x, z)


def test_mark_dynamic_wins_over_mark_static() -> None:
    optimized = godynamo.optimize(lambda x: x + x.shape[0])
    for n in (2, 3, 4):
        x = torch.ones(n)
        godynamo.mark_static(x, 0)
        godynamo.mark_dynamic(x, 0)
        optimized(x)
    assert len(entries(optimized)) == 1


# ---- compile(dynamic_shapes=...) ------------------------------------------------------------------------------------


def test_dynamic_shapes_of_compile() -> None:
    spec = pytest.importorskip("torch.fx.experimental.dynamic_spec")
    batch = spec.ShapeVar("batch", min=2, max=64)
    shapes = {
        "x": spec.TensorSpec([batch, None]),
        "d": spec.DictSpec({"y": spec.TensorSpec([batch, 3])}),
        "n": spec.IntVar("n"),
    }

    def f(x, d, n):
        return x.sum() / x.shape[0] + d["y"].sum() / d["y"].shape[0] + n

    optimized = godynamo.compile(f, backend="eager", dynamic_shapes=shapes, fullgraph=True)
    for size, n in ((4, 2), (7, 3), (2, 9)):
        args = torch.ones(size, 5), {"y": torch.ones(size, 3)}, n
        assert torch.equal(optimized(*args), f(*args))
    assert len(entries(optimized)) == 1
    optimized(torch.ones(4, 6), {"y": torch.ones(4, 3)}, 2)  # a dimension that is not listed is a constant
    assert len(entries(optimized)) == 2
    with pytest.raises(ConstraintViolationError, match="'batch' must be equal"):
        optimized(torch.ones(4, 5), {"y": torch.ones(5, 3)}, 2)
    with pytest.raises(ConstraintViolationError, match=r"d\['y'\]\.size\(\)\[1\] is 4, not 3"):
        optimized(torch.ones(4, 5), {"y": torch.ones(4, 4)}, 2)
    with pytest.raises(ConstraintViolationError, match="not in the range"):
        optimized(torch.ones(70, 5), {"y": torch.ones(70, 3)}, 2)


def test_dynamic_shapes_of_items_and_attributes() -> None:
    spec = pytest.importorskip("torch.fx.experimental.dynamic_spec")

    class Pair:
        def __init__(self, x: torch.Tensor) -> None:
            self.x = x

    def f(pairs, *rest, **named):
        return pairs[0].x * pairs[0].x.shape[0] + named["z"].shape[0]

    tensor = spec.TensorSpec([spec.ShapeVar("b")])
    shapes = {
        "pairs": spec.SeqSpec([spec.ObjectSpec({"x": tensor})]),
        "**kwargs": {"z": spec.TensorSpec([spec.ShapeVar("z")])},
    }
    optimized = godynamo.compile(f, backend="eager", dynamic_shapes=shapes)
    for n in (2, 4, 6):
        args, named = ([Pair(torch.ones(n))],), {"z": torch.ones(n + 1)}
        assert torch.equal(optimized(*args, **named), f(*args, **named))
    assert len(entries(optimized)) == 1


def test_dynamic_shapes_of_a_module_and_errors() -> None:
    spec = pytest.importorskip("torch.fx.experimental.dynamic_spec")

    class Module(torch.nn.Module):
        @spec.dynamic_spec({"x": spec.TensorSpec([spec.ShapeVar("b"), None])})
        def forward(self, x):
            return x.relu() if x.shape[0] > 3 else x

    with pytest.raises(godynamo.exc.Unsupported, match="branch on a tensor.s value"):
        godynamo.compile(Module(), backend="eager", fullgraph=True)(torch.ones(4, 2))
    shapes = {"x": spec.TensorSpec([2 * spec.ShapeVar("b"), None])}
    with pytest.raises(NotImplementedError, match="computed from others"):
        godynamo.compile(lambda x: x, dynamic_shapes=shapes)
    with pytest.raises(ValueError, match="Both"):
        godynamo.compile(Module(), dynamic_shapes=shapes)
    with pytest.raises(ValueError, match="cannot both be set"):
        godynamo.compile(lambda x: x, dynamic=True, dynamic_shapes={"x": None})
    with pytest.raises(TypeError):
        godynamo.compile(lambda x: x, dynamic_shapes=3)
