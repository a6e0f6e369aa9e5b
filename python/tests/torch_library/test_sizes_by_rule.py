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
#: the same; fewer of their samples are compared
ALSO_BY_RULE = """
    H __radd__ __rand__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rxor__ acos acosh
    addbmm addcdiv addcmul addmm.decomposed addmv addr alias_copy amin aminmax angle argmin argsort argwhere
    as_strided as_strided.partial_views as_strided_copy as_strided_scatter asin asinh atan atan2 atanh
    atleast_1d atleast_2d atleast_3d bernoulli bincount bitwise_left_shift bitwise_or bitwise_right_shift
    bitwise_xor block_diag bmm.triton_optimized broadcast_shapes broadcast_tensors broadcast_to bucketize byte
    cdist cdouble ceil cfloat chalf char cholesky_inverse cholesky_solve clamp_max clamp_min column_stack
    complex conj conj_physical constant_pad_nd copysign corrcoef cos cosh count_nonzero cov cross cummax cummin
    cumprod cumulative_trapezoid deg2rad diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter diff
    digamma dist div.trunc_rounding dot double dsplit dstack empty empty_strided erf erfc erfinv exp2
    expand_copy expm1 eye fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ifft2
    fft.ifftn fft.ifftshift fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2
    fft.rfftn fill fliplr flipud float_power floor_divide fmax fmin fmod frac frexp gcd ge grid_sampler_2d
    grid_sampler_3d gt half heaviside histc hsplit hstack hypot i0 igamma igammac index_add index_copy
    index_fill index_put index_reduce.amax index_reduce.amin index_reduce.mean index_reduce.prod inner isclose
    isfinite isin isinf isneginf isposinf isreal item kron kthvalue lcm ldexp le lerp lgamma linalg.cholesky
    linalg.cholesky_ex linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lu linalg.lu_factor
    linalg.lu_factor_ex linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_rank.hermitian
    linalg.multi_dot linalg.norm linalg.norm.subgradients_at_zero linalg.pinv linalg.pinv.hermitian
    linalg.pinv.singular linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals
    linalg.vecdot linalg.vector_norm linspace linspace.tensor_overload log log10 log1p log2 log_softmax
    logaddexp logaddexp2 logcumsumexp logdet logical_and logical_or logical_xor logit logspace lt mH masked.amax
    masked.amin masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax masked.logaddexp
    masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax
    masked.softmin masked.std masked.sum masked.var masked_scatter masked_select matrix_exp
    max.reduction_with_dim maximum median meshgrid.list_of_tensors meshgrid.variadic_tensors min.binary
    min.reduction_no_dim min.reduction_with_dim minimum mode movedim msort multinomial mv mvlgamma.mvlgamma_p_1
    mvlgamma.mvlgamma_p_3 mvlgamma.mvlgamma_p_5 nan_to_num nanmean nanmedian nanquantile nansum narrow_copy
    native_layer_norm ne new_empty new_empty_strided new_zeros nextafter nn.functional.adaptive_avg_pool1d
    nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d
    nn.functional.adaptive_max_pool3d nn.functional.alpha_dropout nn.functional.bilinear
    nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits nn.functional.celu
    nn.functional.channel_shuffle nn.functional.conv_transpose1d nn.functional.conv_transpose2d
    nn.functional.conv_transpose3d nn.functional.cosine_embedding_loss nn.functional.cosine_similarity
    nn.functional.cross_entropy nn.functional.ctc_loss nn.functional.dropout2d nn.functional.dropout3d
    nn.functional.elu nn.functional.feature_alpha_dropout.with_train
    nn.functional.feature_alpha_dropout.without_train nn.functional.gaussian_nll_loss nn.functional.glu
    nn.functional.grid_sample nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
    nn.functional.hardtanh nn.functional.hinge_embedding_loss nn.functional.huber_loss
    nn.functional.instance_norm nn.functional.interpolate.area nn.functional.interpolate.nearest-exact
    nn.functional.kl_div nn.functional.l1_loss nn.functional.leaky_relu nn.functional.linear_cross_entropy
    nn.functional.local_response_norm nn.functional.logsigmoid nn.functional.margin_ranking_loss
    nn.functional.mish nn.functional.mse_loss nn.functional.multi_head_attention_forward
    nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
    nn.functional.multilabel_soft_margin_loss nn.functional.nll_loss nn.functional.normalize
    nn.functional.one_hot nn.functional.pad.reflect nn.functional.pad.replicate
    nn.functional.pad.replicate_negative nn.functional.pairwise_distance nn.functional.pixel_shuffle
    nn.functional.pixel_unshuffle nn.functional.poisson_nll_loss nn.functional.prelu nn.functional.relu6
    nn.functional.rrelu nn.functional.selu nn.functional.smooth_l1_loss nn.functional.soft_margin_loss
    nn.functional.softmin nn.functional.softmin.with_dtype nn.functional.softshrink nn.functional.softsign
    nn.functional.tanhshrink nn.functional.threshold nn.functional.triplet_margin_loss
    nn.functional.triplet_margin_with_distance_loss nonzero norm.fro norm.inf norm.nuc normal normal.number_mean
    outer pca_lowrank permute_copy pinverse polar polygamma.polygamma_n_0 polygamma.polygamma_n_1
    polygamma.polygamma_n_2 polygamma.polygamma_n_3 polygamma.polygamma_n_4 positive prod put quantile rad2deg
    rand_like randint randint_like randn randn_like ravel real reciprocal remainder renorm resolve_conj
    resolve_neg rot90 round round.decimals_0 round.decimals_3 round.decimals_neg_3 rsub scalar_tensor scatter
    scatter_add scatter_reduce.amax scatter_reduce.amin scatter_reduce.mean scatter_reduce.prod
    scatter_reduce.sum searchsorted select_scatter sgn short sign signbit sinc sinh slice_scatter sort
    special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1
    special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
    special.chebyshev_polynomial_w special.entr special.erfcx special.hermite_polynomial_h
    special.hermite_polynomial_he special.i0e special.i1 special.i1e special.laguerre_polynomial_l
    special.legendre_polynomial_p special.log_ndtr special.modified_bessel_i0 special.modified_bessel_i1
    special.modified_bessel_k0 special.modified_bessel_k1 special.ndtr special.ndtri
    special.polygamma.special_polygamma_n_0 special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
    special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
    special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w special.spherical_bessel_j0
    special.xlog1py special.zeta split split.list_args split_with_sizes split_with_sizes_copy squeeze_copy std
    std.unbiased std_mean std_mean.unbiased sum_to_size svd svd_lowrank t_copy take take_along_dim tan tanh
    tensordot tile topk torch.ops.aten._safe_softmax.default trace transpose_copy trapezoid trapz
    triu trunc unbind unbind_copy unfold unfold_copy unique unravel_index unsafe_chunk unsafe_split
    unsqueeze_copy var var.unbiased var_mean var_mean.unbiased vdot view_as_complex view_copy vsplit vstack
    xlogy zero_
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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALSO_BY_RULE)
def test_what_rules_tell_of_some_samples_is_so(name, fakes):
    samples = itertools.islice(samples_of(op_cases.units()[name], 3), 3)
    assert any([by_rule(fn, args, kwargs, fakes) for fn, args, kwargs in samples])


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
    """changesInPlace of fxgraph/shapes assumes that an operation whose name ends in "_" keeps its operand's sizes."""
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
