"""flex_attention and its masks: the operator of the graph whose functions are graphs, as under torch.compile."""

from __future__ import annotations

import warnings

import pytest
import torch

flex = pytest.importorskip("torch.nn.attention.flex_attention")

import godynamo  # noqa: E402
from godynamo.testing import CompileCounter  # noqa: E402
from harness.capture import translations  # noqa: E402
from harness.training import breaks, facts, whole  # noqa: E402

BACKENDS = pytest.mark.parametrize("backend", ["eager", whole, "aot_eager"], ids=["inline", "whole", "aot"])
LENGTH = 96
torch.manual_seed(0)
QUERY, KEY, VALUE = (torch.randn(2, 4, LENGTH, 16) for _ in range(3))
BIAS = torch.randn(4, LENGTH, requires_grad=True)
SLOPE = torch.tensor(0.5, requires_grad=True)
DOCUMENT = torch.arange(LENGTH) // 40


def causal(b, h, i, j):
    return i >= j


def of_one_document(b, h, i, j):
    return DOCUMENT[i] == DOCUMENT[j]


def block_mask(mask, length=LENGTH, heads=None):
    return flex.create_block_mask(mask, None, heads, length, length, device="cpu", BLOCK_SIZE=32)


CAUSAL, DOCUMENTS = block_mask(causal), block_mask(of_one_document)


def with_outputs(q, k, v):
    if hasattr(flex, "AuxRequest"):
        out, aux = flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True))
        return out, aux.lse, aux.lse.dtype, aux.lse.shape
    out, lse = flex.flex_attention(q, k, v, return_lse=True)
    return out, lse, lse.dtype, lse.shape


def masked_inside(q, k, v):
    mask = block_mask(flex.and_masks(causal, of_one_document), q.shape[2], heads=4)
    return flex.flex_attention(q, k, v, block_mask=mask) * 2


def masked_by_scores(q, k, v):
    mask = flex.create_mask(
        lambda score, b, h, i, j: torch.where(i >= j, score, -float("inf")), 1, 1, LENGTH, LENGTH, device="cpu"
    )
    return flex.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + mask[0, 0, i, j])


PROGRAMS = {
    "plain": lambda q, k, v: flex.flex_attention(q, k, v),
    "the function itself": flex.flex_attention,
    "a score_mod": lambda q, k, v: flex.flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * (i - j)),
    "a score_mod that reads tensors": lambda q, k, v: flex.flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s * SLOPE + BIAS[h, j]
    ),
    "a mask": lambda q, k, v: flex.flex_attention(q, k, v, block_mask=CAUSAL),
    "a mask that reads tensors": lambda q, k, v: flex.flex_attention(q, k, v, block_mask=DOCUMENTS),
    "a mask made inside": masked_inside,
    "a mask of scores made inside": masked_by_scores,
    "both": lambda q, k, v: flex.flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + BIAS[h, i] * BIAS[0, j], block_mask=CAUSAL, scale=0.3
    ),
    "grouped heads": lambda q, k, v: flex.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    "other outputs": with_outputs,
    "doubles": lambda q, k, v: with_outputs(q.double(), k.double(), v.double()),
    "under autocast": lambda q, k, v: autocast(flex.flex_attention, q, k, v),
}


def autocast(fn, *args):
    with torch.autocast("cpu", torch.bfloat16):
        return fn(*args)


def outcome(fn, *args):
    """Return the outcome of a call, with the gradients of the tensors that score functions read."""
    BIAS.grad = SLOPE.grad = None
    try:
        value = fn(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    if isinstance(value, torch.Tensor) and value.requires_grad:
        value.pow(2).sum().backward()
    return facts(value), facts(BIAS.grad), facts(SLOPE.grad)


@BACKENDS
@pytest.mark.parametrize("name", PROGRAMS)
def test_attention_is_one_graph(name, backend):
    fn = PROGRAMS[name]
    counter = CompileCounter() if backend is whole else backend
    f = godynamo.optimize(fn, backend=counter, fullgraph=True)
    for q in (QUERY, QUERY * 2):
        assert outcome(f, q, KEY, VALUE) == outcome(fn, q, KEY, VALUE)
    assert not breaks()
    assert backend is not whole or counter.frame_count == 1


@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
def test_a_call_without_the_compiler_warns_and_captured_ones_do_not(backend, monkeypatch):
    monkeypatch.setattr(flex, "_WARNINGS_SHOWN", set(), raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        godynamo.optimize(PROGRAMS["both"], backend=backend)(QUERY, KEY, VALUE)


@BACKENDS
def test_sizes_may_change(backend):
    def fn(q, mask):
        length = q.shape[2]
        return flex.flex_attention(
            q, q, q, block_mask=mask, score_mod=lambda s, b, h, i, j: s + (length - i) * 0.1
        ).transpose(1, 2)

    f = godynamo.optimize(fn, backend=backend, fullgraph=True)
    with translations(2):
        for length in (96, 64, 128, 160, 224, 256):
            q = torch.randn(1, 2, length, 8)
            mask = block_mask(causal, length)
            assert outcome(f, q, mask) == outcome(fn, q, mask)


@BACKENDS
def test_masks_made_for_each_batch_share_a_graph(backend):
    def mask_of(document):
        return block_mask(lambda b, h, i, j: document[i] == document[j])

    def fn(q, mask):
        return flex.flex_attention(q, q, q, block_mask=mask)

    f = godynamo.optimize(fn, backend=backend, fullgraph=True)
    with translations(1):
        for size in (30, 40, 50):
            mask = mask_of(torch.arange(LENGTH) // size)
            assert outcome(f, QUERY, mask) == outcome(fn, QUERY, mask)


REFUSED = {
    "gradients on the CPU": lambda q: flex.flex_attention(q.clone().requires_grad_(), q, q),
    "heads that differ": lambda q: flex.flex_attention(q, q[:, :2], q[:, :2]),
    "a mask of another length": lambda q: flex.flex_attention(q, q, q, block_mask=block_mask(causal, 64)),
    "a sliced mask": lambda q: flex.flex_attention(q, q, q, block_mask=CAUSAL[:, :, :1]),
}


@BACKENDS
@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_mode_refuses(name, backend):
    fn = REFUSED[name]
    assert outcome(godynamo.optimize(fn, backend=backend), QUERY) == outcome(fn, QUERY)


def raises(score, b, h, i, j):
    raise ValueError("no score")


def draws(score, b, h, i, j):
    return score + torch.rand(())


def with_effect(score, b, h, i, j):
    SEEN.append(1)
    return score


SEEN: list[int] = []


@pytest.mark.parametrize("backend", ["eager", whole], ids=["inline", "whole"])
@pytest.mark.parametrize("score_mod", [raises, draws, with_effect])
def test_score_functions_that_torch_compile_refuses(score_mod, backend):
    def fn(q):
        return flex.flex_attention(q, q, q, score_mod=score_mod)

    def kind(f):
        result = outcome(f, QUERY)
        return result if isinstance(result[0], list) else result[0]

    assert kind(godynamo.optimize(fn, backend=backend)) == kind(fn)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(32, 96)
        self.slopes = torch.nn.Parameter(torch.randn(4))

    def forward(self, x, mask):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4)

        def score_mod(score, b, h, i, j):
            return score + self.slopes[h] * (i - j)

        return flex.flex_attention(q, k, v, score_mod, mask).transpose(1, 2).flatten(2)


@BACKENDS
def test_gradients(backend, monkeypatch):
    """torch refuses gradients on the CPU before it reaches the operator, whose backward pass runs there."""
    monkeypatch.setattr(flex, "_validate_device", lambda *_: None)
    f = godynamo.optimize(PROGRAMS["both"], backend=backend, fullgraph=True)

    def gradients(fn):
        leaves = [t.clone().requires_grad_() for t in (QUERY, KEY, VALUE)]
        return outcome(fn, *leaves), [facts(t.grad) for t in leaves]

    assert gradients(f) == gradients(PROGRAMS["both"])


def test_inductor_gets_the_operator():
    model = Attention().requires_grad_(False)
    x = torch.randn(2, LENGTH, 32)
    expected = torch.compile(model, backend="inductor", fullgraph=True)(x, CAUSAL)
    found = godynamo.optimize(model, backend="inductor", fullgraph=True)(x, CAUSAL)
    assert torch.equal(expected, found)


def test_vmap_under_other_modes_runs_in_cpython():
    class Names(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    def fn(x):
        with Names():
            return torch.vmap(lambda row: row.sum())(x)

    seen: list[str] = []
    expected, names = fn(QUERY[0, 0]), list(seen)
    seen.clear()
    assert torch.equal(godynamo.optimize(fn)(QUERY[0, 0]), expected)
    assert seen == names


def annotated(x):
    with torch.fx.traceback.annotate({"stage": 1}):
        y = x + 1
    return y * 2


def annotated_around_a_break(x):
    with torch.fx.traceback.annotate({"stage": 1}):
        y = x + 1
        godynamo.graph_break()
        found = dict(torch.fx.traceback.current_meta.get("custom", {}))
    return y * 2, found, dict(torch.fx.traceback.current_meta)


@BACKENDS
def test_annotations(backend):
    assert outcome(godynamo.optimize(annotated, backend=backend, fullgraph=True), QUERY) == outcome(annotated, QUERY)
    fn = annotated_around_a_break
    assert outcome(godynamo.optimize(fn, backend=backend), QUERY) == outcome(fn, QUERY)


def test_mark_static_makes_a_size_constant():
    def fn(x, static):
        if static:
            torch._dynamo.mark_static(x, 0)
        return x.sum() * x.shape[0]

    f = godynamo.optimize(fn, fullgraph=True)
    for static, expected in ((False, 1), (True, 4)):
        with translations(expected):
            for n in (2, 3, 4, 5):
                assert torch.equal(f(torch.ones(n), static), fn(torch.ones(n), False))
