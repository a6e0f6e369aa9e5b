"""One binary, several versions of torch: run by ``make old-torch`` in an environment with an older one.

    <old venv>/bin/python python/tests/processes/old_torch_smoke.py [expected version]

This is a script, not a pytest file: that environment has only torch and its dependencies. Each check is a function; the
exit status is the number of checks that failed.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with warnings.catch_warnings():
    # An unidentified tensor layout causes a warning. It is a failure on a version that this binary claims to support.
    warnings.simplefilter("error", RuntimeWarning)
    import torch

    import godynamo
    from godynamo import _C


class Full:
    """A backend that runs graphs unchanged: graph inputs that are passed to it are guarded by the full tensor check."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        gm.graph.lint()
        self.graphs.append(gm)
        return gm.forward


def translated(fn, *args):
    """Return how many translations a call takes, and its result."""
    before = _C.counters()["translations"]
    result = fn(*args)
    return _C.counters()["translations"] - before, result


def relu_sum(a, b):
    return (a + b).relu() * 2


def layout_probe_passes():
    layout = _C.tensor_layout()
    assert layout["known"] == 1, layout
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16):
        for shape in ((), (0,), (7,), (3, 5), (2, 3, 4), (2, 1, 3, 5), (1, 2, 3, 4, 5)):
            plain = torch.randint(0, 2, shape, generator=generator).to(dtype)
            views = [plain, plain.t() if plain.ndim == 2 else plain, plain[..., ::2] if plain.ndim else plain]
            if dtype.is_floating_point:
                leaf = plain.clone().requires_grad_()
                views += [leaf, leaf * 1]
            for tensor in views:
                sizes, strides, *_, requires_grad, leaf = _C.tensor_view(tensor)
                assert tuple(sizes) == tuple(tensor.shape), (tensor.shape, sizes)
                assert tuple(strides) == tensor.stride(), (tensor.stride(), strides)
                assert bool(requires_grad) == tensor.requires_grad
                assert bool(leaf) == tensor.is_leaf


def a_function_gives_eagers_result_and_then_hits():
    fn = godynamo.optimize(relu_sum)
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    count, result = translated(fn, a, b)
    assert count == 1
    assert torch.equal(result, relu_sum(a, b))
    count, result = translated(fn, b, a)
    assert count == 0
    assert torch.equal(result, relu_sum(b, a))


def guards_reject_another_dtype_shape_stride_device_and_requires_grad():
    backend = Full()
    fn = godynamo.optimize(relu_sum, backend=backend, dynamic=False)
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    others = {
        "dtype": a.double(),
        "shape": torch.randn(1, 4),
        "rank": torch.randn(4),
        "stride": a.t(),
        "requires_grad": a.clone().requires_grad_(),
        "parameter": torch.nn.Parameter(a.clone()),
    }
    assert translated(fn, a, b)[0] == 1
    for name, other in others.items():
        count, result = translated(fn, other, b)
        assert count == 1, f"{name}: {count} translations"
        assert torch.equal(result, relu_sum(other, b)), name
        assert translated(fn, other, b)[0] == 0, f"{name}: translated again"
    assert translated(fn, a.to("meta"), b.to("meta"))[0] == 1
    assert translated(fn, a.clone(), b.clone())[0] == 0
    assert len(backend.graphs) == len(others) + 2


def global_state_is_guarded():
    fn = godynamo.optimize(relu_sum, backend=Full())
    a, b = torch.randn(3, requires_grad=True), torch.randn(3)
    assert translated(fn, a, b)[0] == 1
    states = {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        "deterministic": Deterministic,
    }
    for name, state in states.items():
        with state():
            count, result = translated(fn, a, b)
            assert count == 1, f"{name}: {count} translations"
            assert torch.equal(result, relu_sum(a, b)), name
            assert result.requires_grad == relu_sum(a, b).requires_grad, name
            assert translated(fn, a, b)[0] == 0, f"{name}: translated again"
        count, result = translated(fn, a, b)
        assert count == 0, f"after {name}"
        assert result.requires_grad


class Deterministic:
    """Sets torch.use_deterministic_algorithms in a block."""

    def __enter__(self):
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_):
        torch.use_deterministic_algorithms(False)


def no_grad_flips():
    fn = godynamo.optimize(relu_sum)
    a, b = torch.randn(3, requires_grad=True), torch.randn(3)
    for _ in range(3):
        assert fn(a, b).requires_grad
        with torch.no_grad():
            assert not fn(a, b).requires_grad
    assert fn.cache.misses == 2, fn.cache.stats()


def a_linear_module_forward_and_backward():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x = torch.randn(5, 4)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    for backend in ("eager", Full()):
        optimized = godynamo.optimize(model, backend=backend)
        for _ in range(2):
            model.zero_grad()
            result = optimized(x)
            assert torch.equal(result, model(x))
            result.sum().backward()
            for parameter, grad in zip(model.parameters(), expected, strict=True):
                assert torch.equal(parameter.grad, grad)
        count, _ = translated(optimized, x)
        assert count == 0


def a_changed_module_is_seen():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    optimized = godynamo.optimize(model)
    x = torch.randn(2, 4)
    assert torch.equal(optimized(x), model(x))
    model[0] = torch.nn.Linear(4, 3)
    assert torch.equal(optimized(x), model(x))
    model[0].weight = torch.nn.Parameter(torch.randn(3, 4))
    assert torch.equal(optimized(x), model(x))
    seen = []
    handle = model[0].register_forward_hook(lambda *_: seen.append(1))
    optimized(x)
    assert seen == [1]
    handle.remove()
    assert torch.equal(optimized(x), model(x))
    assert seen == [1]


def a_graph_break_resumes():
    @godynamo.disable
    def opaque(x):
        return x * 3

    def fn(x):
        y = opaque(x + 1)
        return y.relu() - x

    backend = Full()
    optimized = godynamo.optimize(fn, backend=backend)
    x = torch.randn(4)
    for _ in range(3):
        assert torch.equal(optimized(x), fn(x))
    assert len(backend.graphs) == 2


class Handles(torch.nn.Module):
    """Batch norm in training mode, inside a try whose handler is reached."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x, other):
        try:
            return self.norm(x) @ other
        except RuntimeError:
            return x * 2


def statistics_are_put_back():
    plain, optimized = Handles(), Handles()
    compiled = godynamo.optimize(optimized)
    x = torch.randn(3, 4)
    for other in (torch.eye(4), torch.eye(3), torch.eye(4), torch.eye(3)):
        assert torch.equal(compiled(x, other), plain(x, other))
        for got, want in zip(optimized.buffers(), plain.buffers(), strict=True):
            assert torch.equal(got, want) and got._version == want._version


CHECKS = [
    layout_probe_passes,
    a_function_gives_eagers_result_and_then_hits,
    guards_reject_another_dtype_shape_stride_device_and_requires_grad,
    global_state_is_guarded,
    no_grad_flips,
    a_linear_module_forward_and_backward,
    a_changed_module_is_seen,
    a_graph_break_resumes,
    statistics_are_put_back,
]


def main() -> int:
    """Run all checks."""
    torch.set_num_threads(1)
    print(f"torch {torch.__version__} from {Path(torch.__file__).parent}; core {_C.__file__}")
    if len(sys.argv) > 1 and torch.__version__.partition("+")[0] != sys.argv[1]:
        print(f"torch {sys.argv[1]} was expected")
        return 1
    failed = 0
    for check in CHECKS:
        godynamo.reset()
        try:
            check()
            assert _C.counters()["internal_errors"] == 0, "an internal error was hidden by the fallback"
        except Exception:
            failed += 1
            print(f"FAILED  {check.__name__}")
            traceback.print_exc(file=sys.stdout)
        else:
            print(f"passed  {check.__name__}")
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
