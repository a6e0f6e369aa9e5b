"""Optimized models in other training code: modes, checkpointing, offloading, torch.func, hooks, in-place changes."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import godynamo
from godynamo import _C
from harness.models import CASES, LIGHT, close, make_backend


class Dispatched(TorchDispatchMode):
    """Records every aten operation."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    """Records every torch function and every attribute of a tensor."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(getattr(func, "__qualname__", str(func)))
        return func(*args, **(kwargs or {}))


def prepared(case, backend, training=True):
    """Return a model, its handle, and its input."""
    torch.manual_seed(0)
    model, (x,), _ = CASES[case]()
    model.train(training)
    return model, godynamo.optimize(model, backend=make_backend(backend)), x


def first_of(outputs):
    return outputs[0] if isinstance(outputs, tuple) else outputs


def step(call, parameters, x):
    """Return the output and the gradients of one forward and backward pass, with a fixed seed."""
    for p in parameters:
        p.grad = None
    torch.manual_seed(3)
    out = first_of(call(x))
    out.float().square().sum().backward()
    return out, [None if p.grad is None else p.grad.clone() for p in parameters]


def assert_same_step(model, optimized, x, backend, around=lambda call: call):
    parameters = list(model.parameters())
    expected = step(around(model), parameters, x)
    actual = step(around(optimized), parameters, x)
    close(actual[0], expected[0], backend)
    close(actual[1], expected[1], backend, grads=True)
    assert _C.counters()["internal_errors"] == 0


@pytest.mark.parametrize("mode", [Dispatched, Functions])
@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_a_users_mode_sees_what_it_sees_in_eager_code(case, backend, mode):
    """On a cache miss and on hits, the mode sees eager mode's operations, and none that only the translator runs."""
    model, optimized, x = prepared(case, backend, training=False)
    for _ in range(3):
        with mode() as expected:
            model(x)
        with mode() as actual:
            optimized(x)
        assert actual.seen == expected.seen
        close(first_of(optimized(x)), first_of(model(x)), backend)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_activation_checkpointing(case, backend, reentrant):
    """The first call translates in the checkpointed region. An exception may end the recomputation early."""
    model, optimized, x = prepared(case, backend)
    x.requires_grad_()
    for _ in range(2):
        assert_same_step(
            model, optimized, x, backend, lambda call: lambda z: checkpoint(call, z, use_reentrant=reentrant)
        )


@pytest.mark.parametrize("backend", ["eager", "custom"])
@pytest.mark.parametrize("case", CASES)
def test_saved_tensor_hooks_see_eagers_tensors(case, backend):
    model, optimized, x = prepared(case, backend)

    def packed(call):
        seen = []

        def pack(t):
            seen.append((tuple(t.shape), t.dtype))
            return t

        torch.manual_seed(1)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            first_of(call(x)).sum().backward()
        return seen

    for _ in range(2):
        assert packed(optimized) == packed(model)
    with torch.autograd.graph.save_on_cpu():
        assert_same_step(model, optimized, x, backend)


def test_effects_are_not_doubled_where_a_hook_ends_the_graph():
    """An exception of the user's hook propagates out of the graph; the code before the graph does not run again."""

    class Stop(Exception):
        pass

    def fn(x, log):
        log.append("in")
        y = x.sin().cos()
        log.append("out")
        return y

    optimized = godynamo.optimize(fn, backend=make_backend("custom"))
    for _ in range(2):
        packed = []

        def pack(t):
            packed.append(1)
            if len(packed) == 2:
                raise Stop
            return t

        x = torch.randn(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), pytest.raises(Stop):
            optimized(x, [])
        assert len(packed) == 2


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_under_transforms_of_torch_func(case, backend):
    model, optimized, x = prepared(case, backend, training=False)
    parameters = {name: p.detach() + 0.5 for name, p in model.named_parameters()}

    def loss(call):
        return lambda p: first_of(torch.func.functional_call(call, p, (x,))).square().sum()

    for _ in range(2):
        close(
            torch.func.grad(loss(optimized))(parameters), torch.func.grad(loss(model))(parameters), backend, grads=True
        )
        close(optimized(x), model(x), backend)
        batch = torch.stack([x, x + 1])
        close(
            torch.vmap(lambda z: first_of(optimized(z)))(batch), torch.vmap(lambda z: first_of(model(z)))(batch), "vmap"
        )


@pytest.mark.parametrize("backend", ["eager", "custom"])
@pytest.mark.parametrize("case", CASES)
def test_changes_of_the_model_between_calls(case, backend):
    """Users make each of these changes in training scripts; the next call must follow it."""
    model, optimized, x = prepared(case, backend)
    linear = next(m for m in model.modules() if isinstance(m, nn.Linear))
    seen = []

    def hook(module, args, output):
        seen.append(1)
        return output * 2

    handles = []

    def changes():
        yield lambda: None
        yield lambda: linear.weight.requires_grad_(False)
        yield lambda: linear.weight.requires_grad_(True)
        yield lambda: model.load_state_dict({k: torch.randn_like(v) * 0.1 for k, v in model.state_dict().items()})
        yield lambda: model.load_state_dict({k: v + 0.1 for k, v in model.state_dict().items()}, assign=True)
        yield lambda: setattr(linear, "weight", nn.Parameter(torch.randn_like(linear.weight)))
        yield lambda: setattr(linear.weight, "data", torch.randn_like(linear.weight))
        yield lambda: setattr(linear, "bias", None)
        yield lambda: handles.append(linear.register_forward_hook(hook))
        yield lambda: handles.pop().remove()
        yield lambda: handles.append(linear.register_full_backward_hook(lambda *_: seen.append(2)))
        yield lambda: handles.pop().remove()
        yield lambda: setattr(linear, "forward", lambda z, inner=linear.forward: inner(z) * 3)
        yield lambda: delattr(linear, "forward")
        yield lambda: nn.utils.parametrize.register_parametrization(linear, "weight", nn.Tanh())
        yield lambda: nn.utils.parametrize.remove_parametrizations(linear, "weight")
        yield lambda: model.double()
        yield lambda: optimized.float()
        yield lambda: optimized.eval()

    for change in changes():
        change()
        before = len(seen)
        for _ in range(2):
            dtype = next(model.parameters()).dtype
            assert_same_step(model, optimized, x.to(dtype), backend)
        assert (len(seen) - before) in (0, 4), "a hook ran on one side only"


@pytest.mark.parametrize("case", CASES)
def test_copies_and_files_of_a_handle(case):
    model, optimized, x = prepared(case, "eager", training=False)
    optimized(x)
    copied = copy.deepcopy(optimized)
    for p in copied.parameters():
        p.data.add_(1)
    assert not torch.equal(first_of(copied(x)), first_of(optimized(x)))
    close(first_of(optimized(x)), first_of(model(x)), "eager")
    file = io.BytesIO()
    torch.save(optimized, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    close(first_of(loaded(x)), first_of(model(x)), "eager")


@pytest.mark.parametrize("backend", LIGHT)
@pytest.mark.parametrize("case", CASES)
def test_autocast(case, backend):
    model, optimized, x = prepared(case, backend, training=False)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            actual, expected = first_of(optimized(x)), first_of(model(x))
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)
        close(first_of(optimized(x)), first_of(model(x)), backend)
