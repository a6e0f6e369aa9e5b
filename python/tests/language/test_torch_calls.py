"""Torch functions that query a tensor, and several ways to call torch functions: no graph breaks."""

import operator
import weakref

import pytest
import torch
import torch.fx.experimental.symbolic_shapes  # torch._check imports it when it is first called
import torch.utils._pytree as pytree

import godynamo
from godynamo import utils
from godynamo.testing import CompileCounter, same


def dtype_of_a_computed_tensor(x):
    y = (x > 0).to(torch.float64)
    return (
        torch.is_floating_point(y),
        y.is_complex(),
        torch.is_signed(y),
        y.is_signed(),
        torch.is_floating_point(x > 0),
        y.is_contiguous(),
        y * 2,
    )


def queried_by_keyword(x):
    sizes = x.size(dim=0), x.size(dim=-1), x.stride(dim=1)
    return sizes, torch.is_floating_point(input=x), torch.is_complex(input=x), x + sizes[0]


def of_dtypes(x):
    wider = torch.promote_types(torch.int32, torch.float32), torch.promote_types(torch.uint8, torch.int8)
    return (
        wider,
        torch.can_cast(torch.float32, torch.int32),
        torch.can_cast(from_=torch.int8, to=x.dtype),
        x.to(wider[0]),
    )


def classes_as_dtypes(x):
    kind = int if x.dim() else bool
    return (
        torch.zeros(3, dtype=float) + x.to(int),
        x[~torch.eye(*x.shape, dtype=bool)],
        torch.arange(3, dtype=kind),
        torch.tensor([1, 2], dtype=float),
        x.sum(dtype=float),
        x.new_ones(2, dtype=bool),
        x.to(dtype=int),
    )


def compared_with_texts(x):
    """torch's operator returns NotImplemented, so CPython compares identities."""
    y = x * 2 if x == "source" else x
    return y, x + 1 != "target", "a" == y, x == None, None != x  # noqa: E711


def mapped_by_type(x):
    return pytree.tree_map_only(torch.Tensor, lambda t: t + 1, {"a": x, "b": [x, 3]})


@torch.compiler.nested_compile_region
def region(x, scale=1):
    return torch.relu(x) * scale + 1


def of_marked_regions(x):
    for i in range(3):
        x = region(x, scale=i)
    return x, region(x)


def maximum_of_two_and_along_a_dimension(x):
    values, at = x.max(0)
    return x.max(x * -1), values + x.max(), at, x.min(dim=1, keepdim=True).values


def own_axis(x):
    return torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 1]), axis=0)


def hidden_function(x):
    return torch._C._VariableFunctions.rsub(x, 1), torch.ops.aten.add.Tensor(x, 1), torch.block_diag(x, x)


def checked(x):
    torch._check(x.dim() == 2, lambda: "two dimensions")
    return x + 1


def absolute(x):
    return operator.abs(x), operator.__abs__(x)


def other_object(x):
    y, z = torch.nn.functional.linear(x, x), x.transpose(0, 1)
    return y is x, z is x, z is y, y + z.sum()


def masked(x):
    from torch import masked

    ints = (x * 10).to(torch.int64)
    return (
        masked.sum(x, 1, mask=x > 0),
        masked.amax(ints, 1, mask=x < 5),
        masked.softmax(x, -1),
        masked.mean(x, mask=x > 0),
    )


@pytest.mark.parametrize(
    "f",
    [
        dtype_of_a_computed_tensor,
        queried_by_keyword,
        of_dtypes,
        classes_as_dtypes,
        compared_with_texts,
        mapped_by_type,
        of_marked_regions,
        maximum_of_two_and_along_a_dimension,
        own_axis,
        hidden_function,
        checked,
        absolute,
        other_object,
        masked,
    ],
)
def test_one_graph_and_the_result_of_eager(f):
    utils.counters.clear()
    counter = CompileCounter()
    ours = godynamo.optimize(f, backend=counter)
    x = torch.randn(2, 3)
    for _ in range(2):
        assert same(ours(x), f(x), tol=0)
    assert (counter.frame_count, dict(utils.counters["graph_break"])) == (1, {})


class Text(str):
    def __eq__(self, other):
        return "own"

    __hash__ = str.__hash__


class Own(torch.Tensor):
    def __eq__(self, other):
        return "own"

    __hash__ = torch.Tensor.__hash__


def test_texts_and_tensors_with_comparisons_of_their_own():
    def f(x):
        return x == Text("a"), x.as_subclass(Own) == "a", x + 1

    x = torch.ones(2)
    assert godynamo.optimize(f)(x)[:2] == f(x)[:2] == ("own", "own")


def numbers_in_lists(x):
    data = [x.sum().item(), 2.0, x.max().item()]
    pairs = torch.tensor([[x.sum().item(), 1.0], [0.0, x.min().item()]], dtype=torch.float64)
    return torch.tensor(data), pairs, torch.as_tensor((x.mean().item(), 1)), torch.tensor([x.sum().item() > 0, True])


def formatted(x):
    text = f"loss {x.sum():.3f} at {x.argmax()}, {x.min():>10.2e}, {x.mean()}"
    return text, "{:.1f} {}".format(x.mean(), x.max()), format(x.sum(), "+.2f"), x + 1  # noqa: UP032


@pytest.mark.parametrize("f", [numbers_in_lists, formatted])
def test_numbers_of_the_data(f):
    ours = godynamo.optimize(f, nopython=True)
    for x in torch.randn(2, 3), torch.full((2, 3), float("nan")), torch.randn(2, 3, requires_grad=True):
        assert repr(ours(x)) == repr(f(x))


def test_a_format_that_the_number_rejects():
    def f(x):
        return f"{x.sum():d}"

    for x in torch.ones(2), torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.complex64):
        expected = error_of(f, x)
        assert error_of(godynamo.optimize(f), x) == expected


def error_of(f, x):
    try:
        return f(x)
    except Exception as e:
        return type(e), str(e)


def test_a_check_that_fails_raises_torchs_exception():
    with pytest.raises(RuntimeError, match="two dimensions"):
        godynamo.optimize(checked)(torch.ones(3))


def test_a_weak_reference_is_read_behind_a_store_into_a_fresh_cell():
    def f(ref, x):
        y = x + 1

        def inner():
            return y

        return inner() if ref() is x else None

    utils.counters.clear()
    x = torch.ones(2)
    assert torch.equal(godynamo.optimize(f, backend=CompileCounter())(weakref.ref(x), x), x + 1)
    assert not utils.counters["graph_break"]


def test_a_weak_reference_whose_object_ends_by_a_second_store_is_dead():
    class Thing:
        pass

    def f(holder, x):
        kept = holder.pop()
        ref = weakref.ref(kept)

        def inner():
            return kept

        kept = None
        return ref() is None, inner(), x + 1

    dead, value, y = godynamo.optimize(f)([Thing()], torch.ones(2))
    assert (dead, value) == (True, None)
    assert torch.equal(y, torch.ones(2) + 1)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_masked_tensors_are_left_to_torch():
    data, mask = torch.randn(2, 3), torch.tensor([[True, False, True], [False, False, True]])

    def f(data, mask):
        return torch.masked.sum(torch.masked.masked_tensor(data, mask), 1)

    assert torch.equal(godynamo.optimize(f)(data, mask), f(data, mask))
    with pytest.raises(AttributeError) as plain:
        torch.masked.sum(data, 1, mask="no")
    with pytest.raises(AttributeError) as ours:
        godynamo.optimize(torch.masked.sum)(data, 1, mask="no")
    assert str(plain.value) == str(ours.value)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_recurrent_module_is_one_graph(name):
    utils.counters.clear()
    module = getattr(torch.nn, name)(3, 4, num_layers=2)
    counter = CompileCounter()
    ours = godynamo.optimize(module, backend=counter)
    x = torch.randn(5, 2, 3)
    assert same(ours(x), module(x), tol=0)
    assert (counter.frame_count, dict(utils.counters["graph_break"])) == (1, {})
    module.weight_ih_l0 = torch.nn.Parameter(torch.randn_like(module.weight_ih_l0))
    assert same(ours(x), module(x), tol=0)
