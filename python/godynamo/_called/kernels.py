"""Finds which variant of a kernel of ``pyhook/core/torch/kernels.h`` has the bits of torch's operation.

torch's loops are compiled for several processors, with and without fused multiplication and addition. The C core calls
:func:`search` once in a process for each kernel that a group needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from godynamo import _C

__all__ = ["search"]

# The operation that a kernel stands for. In place, torch runs the same loops.
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "ADD_SCALED": lambda a, b, _, s: a.add(b, alpha=s),
    "ADD_NUMBER": lambda a, _, __, s: a.add(s),
    "MUL": lambda a, b, _, __: a.mul(b),
    "MUL_NUMBER": lambda a, _, __, s: a.mul(s),
    "DIV": lambda a, b, _, __: a.div(b),
    "DIV_NUMBER": lambda a, _, __, s: a.div(s),
    "ADDCMUL": lambda a, b, c, s: a.addcmul(b, c, value=s),
    "ADDCDIV": lambda a, b, c, s: a.addcdiv(b, c, value=s),
    "LERP_NEAR": lambda a, b, _, s: a.lerp(b, s),
    "LERP_FAR": lambda a, b, _, s: a.lerp(b, s),
    "SQRT": lambda a, *_: a.sqrt(),
    "NEG": lambda a, *_: a.neg(),
    "ABS": lambda a, *_: a.abs(),
    "RECIPROCAL": lambda a, *_: a.reciprocal(),
    "RELU": lambda a, *_: a.relu(),
    "COPY": lambda a, *_: a.clone(),
}

# Kernels with several variants: they add a product, or call a library.
_ROUNDED = {"ADD_SCALED", "ADDCMUL", "LERP_NEAR", "LERP_FAR", "SQRT"}

_NUMBERS = {"LERP_NEAR": (0.1, 0.0009999871, -0.3), "LERP_FAR": (0.9, 0.5, 1.7)}
_OTHER_NUMBERS = (0.9, -0.0013, 1e-8, 0.31622776, -7.5)

# Lengths around the blocks of torch's vectorized loops; most variants differ from torch at the first one.
_LENGTHS = (1031, 263, 128, 127, 67, 64, 63, 33, 31, 17, 15, 9, 7, 5, 3, 2, 1)


def _samples(torch: Any, double: bool, seed: int) -> Any:
    """Return ``_LENGTHS[0]`` floats on the CPU, without drawing random numbers.

    Half of them have any bits (NaN, infinities and subnormal numbers too). The others are between -8 and 8, where
    rounding once or twice makes a difference.
    """
    n = _LENGTHS[0]
    bits = (torch.arange(1, n + 1, dtype=torch.int64, device="cpu") + seed * n) * -7046029254386353131
    bits = bits.bitwise_xor(bits.bitwise_right_shift(29)) * -4658895280553007687
    any_bits = bits.view(torch.float64) if double else bits.bitwise_right_shift(32).to(torch.int32).view(torch.float32)
    near = bits.bitwise_right_shift(11).to(torch.float64).div(2.0**49).to(any_bits.dtype)
    return torch.where(bits.bitwise_and(64) == 0, near, any_bits)


def _cases(torch: Any, name: str, double: bool, one: bool) -> Iterator[tuple[Any, Any, Any, float, Any]]:
    """Yield operands and torch's result."""
    whole = [_samples(torch, double, seed) for seed in range(3)]
    numbers = (1.0,) if one else _NUMBERS.get(name, _OTHER_NUMBERS)
    for n in _LENGTHS:
        for s in numbers if n in _LENGTHS[:2] else numbers[:1]:
            a, b, c = (t[-n:].clone() for t in whole)
            yield a, b, c, s, _OPERATIONS[name](a, b, c, s)
    # Zeros of both signs, infinities and other numbers with each other: in vectorized blocks, from both ends, and after
    # them.
    few = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), 1.0, -2.0], dtype=whole[0].dtype, device="cpu")
    each = few.repeat(36), few.repeat_interleave(6).repeat(6), few.repeat_interleave(36)
    for special in (each, [t.flip(0) for t in each], *zip(*(t.split(3) for t in each), strict=True)):
        a, b, c = (t.clone() for t in special)
        yield a, b, c, numbers[0], _OPERATIONS[name](a, b, c, numbers[0])
    a, b, c = (t[5].clone() for t in whole)  # no dimension
    yield a, b, c, numbers[0], _OPERATIONS[name](a, b, c, numbers[0])


def search(name: str, double: bool, one: bool, variants: int) -> int:
    """Return the first variant of the kernel that has the bits of torch's operation on samples, or -1.

    ``one``: the number is 1. Runs torch's operation in the thread's present state: the caller has made sure that no
    mode is active and gradients are off.
    """
    import torch

    left = list(range(variants)) if name in _ROUNDED else [0]
    for a, b, c, s, want in _cases(torch, name, bool(double), bool(one)):
        places = [t.data_ptr() for t in (a, b, c)]
        left = [v for v in left if _C.kernel_agrees(name, v, double, want.numel(), *places, s, want.data_ptr())]
        if not left:
            return -1
    return left[0]
