"""torch's operations on lists of tensors."""

from __future__ import annotations

import pytest
import torch

import godynamo

UNARY = ["abs", "neg", "sqrt", "exp", "sigmoid", "sign", "reciprocal", "norm", "round", "log1p"]
CALLS = {
    **{name: lambda f, a, b: f(a) for name in UNARY},
    "add": lambda f, a, b: f(a, b, alpha=2),
    "mul": lambda f, a, b: f(a, 0.5),
    "div": lambda f, a, b: f(a, [2.0, 3.0]),
    "maximum": lambda f, a, b: f(a, b),
    "pow": lambda f, a, b: f(a, 2),
    "addcmul": lambda f, a, b: f(a, b, b, value=0.5),
    "addcdiv": lambda f, a, b: f(a, b, b, [1.0, 2.0]),
    "lerp": lambda f, a, b: f(a, b, 0.25),
}


@pytest.fixture(autouse=True)
def fresh():
    godynamo.reset()


def tensors():
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(3, generator=generator) + 0.1, torch.rand(2, 2, generator=generator) + 0.1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", CALLS)
def test_results_are_eagers(name, kind, backend):
    function = getattr(torch, "_foreach_" + name)

    def f(a, b):
        out = CALLS[name](function, a, b)
        return type(out), len(out), [x * 2 for x in out]

    run = godynamo.optimize(backend)(f)
    for _ in range(2):
        a, b = kind(tensors()), kind(tensors())
        got, want = run(a, b), f(a, b)
        assert got[:2] == want[:2]
        torch.testing.assert_close(got[2], want[2], rtol=0, atol=0)
    assert godynamo.explain(f)(kind(tensors()), kind(tensors())).graph_break_count == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [n for n in CALLS if n != "norm"])
def test_changes_in_place_are_eagers(name, backend):
    function = getattr(torch, "_foreach_" + name + "_")

    def f(a, b):
        CALLS[name](function, a, b)
        return [x + y for x, y in zip(a, b, strict=True)]

    run = godynamo.optimize(backend)(f)
    for _ in range(2):
        a, wanted = tensors(), tensors()
        torch.testing.assert_close(run(a, tensors()), f(wanted, tensors()), rtol=0, atol=0)
        torch.testing.assert_close(a, wanted, rtol=0, atol=0)


def test_an_in_place_operation_returns_what_torch_returns():
    def f(a):
        return torch._foreach_mul_(a, 2) is a

    assert godynamo.optimize(f)(tensors()) == f(tensors())


def test_wrong_lists_raise_as_in_eager_mode():
    def f(a, b):
        return torch._foreach_add(a, b)

    a = tensors()
    for wrong in (a[:1], [torch.ones(3), torch.ones(7)]):
        with pytest.raises(RuntimeError) as eager:
            f(a, wrong)
        with pytest.raises(RuntimeError) as ours:
            godynamo.optimize(f)(a, wrong)
        assert str(ours.value) == str(eager.value)


@pytest.mark.parametrize("second", [torch.float32, torch.float64], ids=["one group", "two groups"])
def test_grouping_is_torchs(second):
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

    def f(a, b):
        groups = _group_tensors_by_device_and_dtype([a, [], b], with_indices=True)
        return [
            (key, [[None if t is None else t + 1 for t in ts] for ts in lists], at)
            for key, (lists, at) in groups.items()
        ]

    a = [torch.ones(2), torch.ones(3, dtype=second)]
    got, want = godynamo.optimize(f)(a, [None, a[1]]), f(a, [None, a[1]])
    assert repr(got) == repr(want)
