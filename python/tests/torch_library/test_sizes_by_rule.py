"""Sizes, dtypes and devices by rule (fxgraph/shapes), compared with torch on the samples of its op_db."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import godynamo
import op_cases
from godynamo._translator import fake

DTYPES = (torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.uint8)
#: operators of op_db for which rules determine at least one result; a test fails if the rules no longer do
BY_RULE = """
    norm square nn.functional.unfold nn.functional.interpolate.nearest nn.functional.interpolate.bilinear
    nn.functional.interpolate.linear nn.functional.interpolate.trilinear nn.functional.interpolate.bicubic
    T __getitem__ abs add addmm all amax any arange argmax baddbmm bfloat16 bitwise_and bitwise_not bmm bool
    cat chunk clamp clone contiguous cumsum div.floor_rounding div.no_rounding_mode einsum empty_like eq exp
    expand expand_as flatten flip float floor full full_like gather index_select int isnan
    log_softmax.with_dtype logical_not logsumexp long mT masked_fill matmul max.binary max.reduction_no_dim
    mean mm mul narrow neg new_full new_ones nn.functional.adaptive_avg_pool2d nn.functional.avg_pool1d
    nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.batch_norm nn.functional.conv1d
    nn.functional.conv2d nn.functional.conv3d nn.functional.dropout nn.functional.embedding nn.functional.gelu
    nn.functional.group_norm nn.functional.layer_norm nn.functional.linear nn.functional.max_pool1d
    nn.functional.max_pool2d nn.functional.max_pool3d nn.functional.pad.circular nn.functional.pad.constant
    nn.functional.relu nn.functional.rms_norm nn.functional.scaled_dot_product_attention nn.functional.silu
    nn.functional.softplus ones ones_like permute pow repeat repeat_interleave reshape reshape_as roll rsqrt
    select sigmoid sin softmax softmax.with_dtype sqrt squeeze squeeze.multiple stack sub sum t to transpose
    tril true_divide unflatten unsqueeze view view_as where zeros zeros_like
""".split()
#: these change the sizes of their argument
RESIZING = ("as_strided", "resize_", "squeeze", "sort", "topk", "squeeze.multiple", "t", "transpose", "unsqueeze")


def describe(y: Any) -> Any:
    """Return everything that rules know about a tensor; called in captured code and with the real tensor."""
    if isinstance(y, torch.Tensor):
        return (
            y.shape,
            y.ndim,
            y.dtype,
            y.device,
            y.layout,
            y.is_floating_point(),
            y.is_complex(),
            y.element_size(),
            y.is_cpu,
            y.is_cuda,
            y.is_sparse,
            y.numel(),
        )
    if isinstance(y, (tuple, list)):
        return [describe(item) for item in y]
    return None


class Fakes:
    """Counts the operations that FakeTensor runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        run = fake.Session.run

        def counted(session: Any, index: int, row: Any) -> None:
            self.count += 1
            run(session, index, row)

        monkeypatch.setattr(fake.Session, "run", counted)


@pytest.fixture
def fakes(monkeypatch):
    return Fakes(monkeypatch)


def by_rule(fn: Any, args: Any, kwargs: Any, fakes: Fakes) -> bool:
    """Return whether rules alone, without FakeTensor, determined the result of a captured operation. Checks that the
    metadata is right."""

    def f(*args: Any, **kwargs: Any) -> Any:
        y = fn(*args, **kwargs)
        return y, describe(y)

    fakes.count = 0
    compiled = godynamo.optimize(f)
    y, told = compiled(*args, **kwargs)
    assert told == describe(y), (fn, args, kwargs)
    return len(godynamo.cache_entries(compiled)) == 1 and fakes.count == 0


def samples_of(op: Any, most: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (function, args, kwargs) for each sample and each form of the operator: function, method, in-place."""
    for dtype in [d for d in DTYPES if d in op.supported_dtypes("cpu")]:
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype), op_cases.MOST_SAMPLES))
        for sample in op_cases.spread(samples, most):
            operator = op.get_operator() if not sample.kwargs else None
            forms = [op.op, op.get_method(), operator, op.get_inplace() if op.name in RESIZING else None]
            for fn in forms if isinstance(sample.input, torch.Tensor) else forms[:1]:
                if fn is not None:
                    yield fn, (sample.input, *sample.args), sample.kwargs


@pytest.mark.filterwarnings("ignore")  # torch's deprecation warnings
@pytest.mark.parametrize("name", [*BY_RULE, *(n for n in RESIZING if n not in BY_RULE)])
def test_what_rules_tell_is_so(name, fakes):
    op = op_cases.units()[name]
    answered = [by_rule(fn, args, kwargs, fakes) for fn, args, kwargs in samples_of(op, 4)]
    assert answered
    assert any(answered) or name not in BY_RULE


def test_no_rule_holds_after_sizes_were_changed_in_place(fakes):
    def f(x):
        x = x + 1
        before = x.shape
        y = x.unsqueeze_(0)
        return y, before, y.shape, x.shape, x.transpose_(0, 1).shape

    _, *shapes = godynamo.optimize(f)(torch.ones(2, 3))
    assert [tuple(s) for s in shapes] == [(2, 3), (1, 2, 3), (1, 2, 3), (2, 1, 3)]
    assert fakes.count > 0


def test_no_rule_holds_under_autocast(fakes):
    def f(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ w
            return y, y.dtype

    def g(x, w):
        y = x @ w
        return y, y.dtype

    for fn, around in ((f, contextlib.nullcontext()), (g, torch.autocast("cpu", torch.bfloat16))):
        with around:
            y, dtype = godynamo.optimize(fn)(torch.ones(2, 3), torch.ones(3, 2))
        assert y.dtype == dtype == torch.bfloat16
    y, dtype = godynamo.optimize(g)(torch.ones(2, 3), torch.ones(3, 2))
    assert y.dtype == dtype == torch.float32


def test_other_sizes_are_another_translation_and_other_strides_are_not():
    def f(x):
        return (x + 1).reshape(-1) if (x * 2).shape[0] == 2 else x - 1

    compiled = godynamo.optimize(f)
    x = torch.ones(2, 3)
    for t in (x, torch.ones(3, 2).t(), torch.ones(2, 3, requires_grad=True)):
        assert torch.equal(compiled(t), f(t))
    assert godynamo.cache_stats(compiled)["translations"] == 1
    assert torch.equal(compiled(torch.ones(3, 3)), f(torch.ones(3, 3)))
    assert godynamo.cache_stats(compiled)["translations"] == 2


def test_operations_in_place_keep_sizes_and_dtype_except_those_that_are_listed():
    """Whether a name that ends in "_" keeps its operand's sizes is what changesInPlace of fxgraph/shapes assumes."""
    text = (Path(__file__).parents[3] / "fxgraph" / "shapes" / "table.go").read_text()
    resizing = set(re.findall(r'"(\w+_)": true', text.split("var resizing", 1)[1].split("}", 1)[0]))
    changed, ran = set(), 0
    for op in op_cases.op_db:
        inplace = op.get_inplace()
        if inplace is None or op.name.startswith("_refs."):
            continue
        dtype = op_cases.dtypes_of(op)[0]
        for sample in op_cases.spread(list(itertools.islice(op.sample_inputs("cpu", dtype), 30)), 6):
            x = sample.input.clone()
            before = x.shape, x.dtype, x.device
            with contextlib.suppress(RuntimeError, ValueError, TypeError, IndexError):
                assert inplace(x, *sample.args, **sample.kwargs) is x
                ran += 1
            if (x.shape, x.dtype, x.device) != before:
                changed.add(inplace.__name__)
    assert ran > 300
    assert changed <= resizing
    assert resizing <= set(dir(torch.Tensor))
