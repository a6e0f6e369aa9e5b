"""Cases of torch's operators: the samples of op_db, by function, method and operator, in place, and in wrong calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db

from harness.device import DEVICE
from library_judge import Case, caller_of, copies

#: the second dtype of an operator is the first of these that it supports
SECOND = (torch.int64, torch.complex64, torch.bool, torch.float64, torch.bfloat16)
#: these return uninitialized memory
UNINITIALIZED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "resize_")
#: number of samples from which some are chosen
MOST_SAMPLES = 300
#: samples per form other than the function
FORM_SAMPLES = 2
ERRORS = 4
#: reference inputs per operator and dtype
REFERENCES = 4


def _unseeded(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


# The judge seeds each call itself; the table's wrapper would also seed inside the call.
common_methods_invocations.wrapper_set_seed = _unseeded


def units() -> dict[str, Any]:
    """Return the operators by name; variants with the same name are separate."""
    return {op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""): op for op in op_db}


def dtypes_of(op: Any) -> list[torch.dtype]:
    """Return float32 or, if unsupported, the first supported dtype, and one more."""
    taken = op.supported_dtypes(DEVICE)
    first = [d for d in (torch.float32, *SECOND) if d in taken][:1]
    return first + [d for d in SECOND if d in taken and d not in first][:1] or sorted(taken, key=str)[:1]


def spread(found: list[Any], most: int) -> list[Any]:
    """Choose at most this many items, spread evenly over the list."""
    if len(found) <= most:
        return found
    return [found[i * (len(found) - 1) // (most - 1)] for i in range(most)]


def cases(op: Any, most: int) -> Iterator[Case]:
    """Yield all cases of an operator."""
    valued = not op.name.removeprefix("_refs.").startswith(UNINITIALIZED)
    for dtype in dtypes_of(op):
        with_grad = op.supports_autograd and dtype in op.supported_backward_dtypes(DEVICE)
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs(DEVICE, dtype, requires_grad=with_grad), MOST_SAMPLES))
        kind = str(dtype).removeprefix("torch.")
        for number, sample in enumerate(spread(samples, most)):
            args = (sample.input, *sample.args)
            yield _case(f"{kind} {number}", op.op, args, sample.kwargs, valued)
            if number < FORM_SAMPLES and isinstance(sample.input, torch.Tensor):
                for form, fn in _forms(op):
                    yield _case(f"{kind} {number} {form}", fn, args, sample.kwargs, valued)
            if number < FORM_SAMPLES and op.supports_out and "out" not in sample.kwargs:
                for form, out in _outs(op, args, sample.kwargs):
                    given = copies((args, {**sample.kwargs, "out": out}), detached=True)
                    yield _case(f"{kind} {number} {form}", op.op, *given, valued)
        yield from _further(op, dtype, with_grad, valued)
    if op.error_inputs_func is not None:
        for number, error in enumerate(spread(list(op.error_inputs(DEVICE)), ERRORS)):
            sample = error.sample_input
            args = (sample.input, *sample.args)
            # An out= that was resized before the error has uninitialized memory.
            kept = valued and "out" not in sample.kwargs
            yield _case(f"error {number}", op.op, args, sample.kwargs, kept, counted=False)


def _further(op: Any, dtype: torch.dtype, with_grad: bool, valued: bool) -> Iterator[Case]:
    """Yield reference inputs (more shapes, broadcasting, extreme values), and sparse samples, which may run in
    CPython."""
    kind = str(dtype).removeprefix("torch.")
    torch.manual_seed(0)
    for number, sample in enumerate(spread(_samples(op, "reference_inputs", dtype, with_grad), REFERENCES)):
        yield _case(f"{kind} reference {number}", op.op, (sample.input, *sample.args), sample.kwargs, valued)
    for layout in ("sparse_coo", "sparse_csr"):
        found = _samples(op, "sample_inputs_" + layout, dtype, False) if dtype.is_floating_point else []
        for number, sample in enumerate(spread(found, FORM_SAMPLES)):
            args = (sample.input, *sample.args)
            yield _case(f"{layout} {number}", op.op, args, sample.kwargs, valued, counted=False)


def _samples(op: Any, kind: str, dtype: torch.dtype, with_grad: bool) -> list[Any]:
    """Return the samples of one of the table's functions; [] if the operator has none, or making them fails."""
    if getattr(op, kind + "_func", None) is None:
        return []
    try:
        return list(itertools.islice(getattr(op, kind)(DEVICE, dtype, requires_grad=with_grad), MOST_SAMPLES))
    except (NotImplementedError, ValueError):
        return _samples(op, kind, dtype, False) if with_grad else []


def _outs(op: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """Yield possible values for out=: of the right size, in another memory order, and empty."""
    torch.manual_seed(0)
    with torch.no_grad():
        found = op.op(*copies(args), **copies(kwargs))
    results = found if isinstance(found, (list, tuple)) else (found,)
    if not all(isinstance(t, torch.Tensor) and t.layout is torch.strided for t in results):
        return
    one = (lambda ts: ts[0]) if results is not found else tuple
    yield "out", one([torch.zeros_like(t) for t in results])
    yield (
        "out transposed",
        one([torch.zeros_like(t.mT.contiguous()).mT if t.ndim > 1 else torch.zeros_like(t) for t in results]),
    )
    yield "out resized", one([t.new_empty(0) for t in results])


def _case(name: str, fn: Callable[..., Any], args: Any, kwargs: Any, valued: bool, counted: bool = True) -> Case:
    def make() -> Any:
        return caller_of(fn)

    return Case(name, make, tuple(args), dict(kwargs), valued=valued, counted=counted)


def _forms(op: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if op.get_method() is not None:
        yield "method", op.get_method()
    if op.get_operator() is not None:
        yield "operator", op.get_operator()
    for name, fn in (("in place", op.get_inplace()), ("operator in place", op.get_inplace_operator())):
        if fn is not None:
            yield name, on_a_clone(fn)


def on_a_clone(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Apply fn to a clone: autograd rejects in-place operations on a leaf."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        y = x.clone()
        return y, fn(y, *args, **kwargs)

    return call
