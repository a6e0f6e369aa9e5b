"""Runs a program of tensors and modules under CPython and under godynamo, and returns their first difference.

Compared in addition to what fuzz-language compares: every tensor's bits, strides, flags, version, gradient, base and
shared memory, the module with its state, torch's modes and the random generator afterwards, and the gradients of a
backward pass outside the program.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.device import DEVICE, moved, random_state
from harness.fuzz_compare import FILENAME, Mismatch, Observed, Plain, compare, frames_in, text_of

# torch imports torch._inductor here, so that the time limit cannot interrupt the import.
torch.use_deterministic_algorithms(False)

# With the first forward derivative, torch scripts its formulas. That leaves the frames of its callers in cyclic
# garbage, so objects of a program would die at another time in the plain run, which comes first.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.func.hessian(torch.sum)(torch.ones(1))

ROUNDS = 2
WIDTH = 4


class TorchPlain(Plain):
    """Values as plain data, with every property of a tensor that a program can see."""

    def __init__(self) -> None:
        super().__init__()
        self._storages: dict[int, int] = {}

    def _content(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.nn.Module):
            return self._module(value)
        if isinstance(value, (torch.dtype, torch.device)):
            return str(value)
        if type(value).__module__ == "numpy":
            return ("numpy", repr(value))
        if callable(value):
            return ("callable", getattr(value, "__qualname__", ""))
        return super()._content(value)

    def _module(self, m: torch.nn.Module) -> Any:
        parts = [(k, self(v)) for group in (m._parameters, m._buffers, m._modules) for k, v in group.items()]
        own = {k: v for k, v in vars(m).items() if not k.startswith("_")}
        return (type(m).__name__, parts, self(own), [len(x._forward_hooks) for x in m.modules()])

    def _tensor(self, t: torch.Tensor) -> Any:
        try:
            return self._facts(t)
        except RuntimeError as error:  # an invalidated view does not even return its grad_fn
            return ("invalid", str(error))

    def _facts(self, t: torch.Tensor) -> Any:
        inference = t.is_inference()
        known: list[Any] = [
            type(t).__name__,
            str(t.dtype),
            str(t.device),
            t.requires_grad,
            t.is_leaf,
            type(t.grad_fn).__name__,
            inference,
        ]
        with torch.inference_mode(False), torch.no_grad():
            if t.layout is not torch.strided:
                return (*known, str(t.to_dense().tolist()))
            known += [tuple(t.shape), t.stride(), t.storage_offset(), None if inference else t._version]
            storage = t.untyped_storage()
            memory = storage.data_ptr() or storage._cdata
            known.append(self._storages.setdefault(memory, len(self._storages)))
            self._kept.append(storage)
            known.append(bits(t))
        known.append(self(None if t._base is None else t._base))
        known.append(self(t.grad) if t.is_leaf or t.retains_grad else None)
        return tuple(known)


def bits(t: torch.Tensor) -> Any:
    """Return a tensor's exact values: up to 16 elements as text, where all NaNs are equal; else a hash of its bytes."""
    flat = t.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if t.numel() <= 16:
        return str(flat.tolist()), str(flat.sign().tolist()) if flat.is_floating_point() else ""
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def _modes() -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled(DEVICE),
        str(torch.get_autocast_dtype(DEVICE)),
        str(torch.get_default_dtype()),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(),
    )


@contextlib.contextmanager
def _usual_modes() -> Iterator[None]:
    try:
        yield
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        torch.set_autocast_enabled(DEVICE, False)


def arguments(ns: dict[str, Any], case: dict[str, Any], m: Any) -> tuple[Any, ...]:
    """Return the arguments of one call; ``m`` is the program's module, the same in all calls."""
    rows, dtype = case["rows"], getattr(torch, case["dtype"])
    others = case.get("yrows", rows)
    base = (torch.arange(float(rows * WIDTH)).reshape(rows, WIDTH) * 0.37 - 1.0) * case["factor"]
    x = base.to(DEVICE, dtype)
    if case["xgrad"] and dtype.is_floating_point:
        x.requires_grad_()
        if case["inner"]:  # a tensor that can be changed in place
            x = x * 1
    # torch updates a view's grad_fn when it is read, and translating reads it. Suppose that a tensor without gradient
    # has a view, and that an in-place operation gives it a gradient. Then an earlier read decides whether a later
    # in-place operation on the view raises. Such views are few.
    y = {
        "none": lambda: torch.linspace(-2.0, 1.5, others * WIDTH, device=DEVICE).reshape(others, WIDTH).clone(),
        "same": lambda: x,
        "view": lambda: x.view(WIDTH, rows).t() if rows else x,
        "row": lambda: x[0] if rows else x,
        "weight": lambda: m.lin.weight,
        "twin": lambda: x.detach(),
    }[case["alias"]]()
    w = torch.nn.Parameter(torch.eye(WIDTH, device=DEVICE) * 0.5, requires_grad=case["wgrad"])
    m.train(case["training"])
    n = case["n"]
    return x, y, n, [1, 2], {"k": 2}, ns["Thing"](n, torch.ones(WIDTH, device=DEVICE)), m, w


def outcome(call: Callable[[], Any], plain: Plain) -> tuple[dict[str, Any], Any]:
    """Make a call. Return its result or exception, output, torch's modes and generator as data, and the result."""
    out = io.StringIO()
    result: dict[str, Any] = {"exception": None, "modes": None, "value": None}
    value = None
    with _usual_modes(), contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = call()
        except Exception as error:
            result["exception"] = (plain.error(error, {}), frames_in(error, FILENAME))
        result["modes"] = _modes()
    result["random state"] = random_state()
    result["value"] = plain(value)
    result["output"] = text_of(out.getvalue())
    return result, value


def observe(ns: dict[str, Any], fn: Callable[..., Any], case: dict[str, Any], m: Any) -> dict[str, Any]:
    """Describe one call: its outcome, arguments, module, backward pass."""
    args, plain = arguments(ns, case, m), TorchPlain()
    result, value = outcome(lambda: fn(*args), plain)
    result["effects"] = [plain(args), plain(ns["LOG"]), plain(ns["COUNT"])]
    result["backward"] = _backward(value, args)
    del ns["LOG"][:]
    return result


def _backward(value: Any, args: tuple[Any, ...]) -> Any:
    """Return the gradients of the result, or the exception of the backward pass."""
    tensors = [t for t in (value if isinstance(value, tuple) else ()) if isinstance(t, torch.Tensor)]
    outputs = [t for t in tensors if t.requires_grad and not t.is_complex()]
    if not outputs:
        return None
    x, y, *_, m, w = args
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sum((t.float().sum() for t in outputs), torch.zeros((), device=DEVICE)).backward()
    except Exception as error:
        return (type(error).__name__, str(error))
    finally:
        grads = [t.grad for t in (x, y, w, *m.parameters()) if t.is_leaf]
        m.zero_grad()
    return [None if g is None else (str(g.dtype), bits(g)) for g in grads]


def run(codes: list[Any], wrap: Callable[[Any], Any]) -> Observed:
    """Make all calls of a program."""
    ns: dict[str, Any] = {"__name__": "program"}
    for code in codes:
        exec(code, ns)
    fn = wrap(ns["fn"])
    torch.manual_seed(0)
    m = moved(ns["Net"](WIDTH, 0.5))
    return [observe(ns, fn, case, m) for _ in range(ROUNDS) for case in ns["CASES"]]


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first difference between a program's two runs."""
    return compare(text, run, whole)
