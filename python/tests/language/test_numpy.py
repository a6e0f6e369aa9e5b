"""numpy's scalars in captured code, with their exact types; arrays and operations that warn run in CPython."""

from __future__ import annotations

import math
import traceback
import warnings

import numpy as np
import pytest
import torch

import godynamo
from harness.capture import break_reasons, describe, nb

SCALARS = {
    "float32": np.float32(1.5),
    "float64": np.float64(0.1),
    "float16": np.float16(2.5),
    "int64": np.int64(3),
    "int8": np.int8(-3),
    "uint8": np.uint8(7),
    "bool": np.bool_(True),
    "nan": np.float32("nan"),
    "negative zero": np.float64(-0.0),
    "infinity": np.float32("inf"),
}


def told(value):
    """Return a value as data, with the types of its parts."""
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tobytes()
    return describe(value)


CAPTURED = {
    "arithmetic": lambda x, v: (x + 1, v + 1, 1 + v, v * 2.5, v - v, v + np.float32(1)),
    "comparison": lambda x, v: (x + 1, v == 1.5, v < 2, v != v, 3 > v, v in (1.5, 3)),
    "truth": lambda x, v: x * (2 if v else 3),
    "conversion": lambda x, v: (
        x + 1,
        float(v),
        bool(v),
        str(v),
        repr(v),
        f"{v}",
        v.item(),
        isinstance(v, float),
        type(v),
    ),
    "beside a tensor": lambda x, v: (x * v, x + v, x / 2 - v, x < v, x * np.float64(2)),
    "made inside": lambda x, v: (
        x + 1,
        np.float32(2.5) * 2,
        np.int64(3) // np.int64(2),
        np.float64("1e3"),
        np.bool_(False),
    ),
    "functions": lambda x, v: (x + 1, abs(v), math.isnan(v), round(np.float64(2.567), 2), max(v, v), sum([np.int8(1)])),
    "in containers": lambda x, v: (
        x + 1,
        [v, v],
        {"a": v},
        {np.int64(3): 1}[3],
        sorted([np.float32(2), np.float32(1)]),
    ),
    "returned": lambda x, v: (x + 1, v),
}

SPLIT = {
    "numpy first": lambda x, v: (x + 1, v * x, v + x),
    "overflow": lambda x, v: (x + 1, np.int8(127) + np.int8(1)),
    "division by zero": lambda x, v: (x + 1, np.float32(1) / np.float32(0)),
    "types": lambda x, v: (x + 1, torch.tensor(v), torch.full((2,), 3.0) * x.sum(), torch.as_tensor(np.float64(3))),
    "array": lambda x, v: (x + 1, np.ones(3) * v, x * 2),
    "from an array": lambda x, v: torch.from_numpy(np.arange(3.0)) * 2 + x.sum() + 1,
    "to an array": lambda x, v: ((x * 2).numpy() + 1, x + 1),
    "shared memory": lambda x, v: shared(x * 2),
    "array of the caller's": lambda x, v: (x + torch.from_numpy(ARRAY).sum(), ARRAY.sum(), len(ARRAY)),
    "complex": lambda x, v: (x + 1, np.complex64(1) + 1),
}

ARRAY = np.arange(4.0)


def shared(y):
    array = y.numpy()
    array += 1
    return y, array, y * 2


def run(fn, value, backend):
    x = torch.arange(1.0, 4.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = told(fn(x, value))
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in seen]


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("name", CAPTURED)
def test_captured(name: str, scalar: str) -> None:
    fn, value = CAPTURED[name], SCALARS[scalar]
    backend = nb()
    compiled = godynamo.optimize(fn, backend=backend)
    expected = run(fn, value, None)
    for _ in range(2):
        assert run(compiled, value, None) == expected
    if (
        isinstance(expected[0], list) and not expected[1] and (name, scalar) != ("beside a tensor", "bool")
    ):  # a float of torch
        assert not break_reasons() and len(backend) == 1, break_reasons()


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("name", SPLIT)
def test_split(name: str, scalar: str) -> None:
    fn, value = SPLIT[name], SCALARS[scalar]
    backend = nb()
    compiled = godynamo.optimize(fn, backend=backend)
    expected = run(fn, value, None)
    for _ in range(2):
        assert run(compiled, value, None) == expected
    assert len(backend) >= (0 if "array" in name or name == "shared memory" else 1)


LIMITS = {
    "class": lambda x: x.masked_fill(x > 0, np.finfo(np.float32).min),
    "dtype of an array": lambda x: x + float(np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).max),
    "text": lambda x: (x + 1, np.finfo("float16").eps, np.finfo(np.float64) is np.finfo(float), np.finfo(2.0).bits),
    "object": lambda x: (x + 1, np.finfo(np.float32)),
    "integers": lambda x: x.clamp(max=np.iinfo(np.int32).max),
}
WRONG_LIMITS = {
    "an integer": lambda x: np.finfo(np.int32),
    "no dtype": lambda x: np.finfo("float33"),
    "nothing": lambda x: np.finfo(),
    "caught": lambda x: caught(lambda: np.finfo(np.int32), x),
}


def caught(fn, x):
    try:
        fn()
    except ValueError as error:
        return str(error), [frame.name for frame in traceback.extract_tb(error.__traceback__)], x + 1


@pytest.mark.parametrize("name", [*LIMITS, *WRONG_LIMITS])
@pytest.mark.parametrize("backend", ["eager", "whole"])
def test_limits(name: str, backend: str) -> None:
    fn = {**LIMITS, **WRONG_LIMITS}[name]
    optimized = godynamo.optimize(fn, backend=nb() if backend == "whole" else backend)
    x = torch.arange(3.0)
    assert [outcome(optimized, x) for _ in range(2)] == [outcome(fn, x)] * 2
    kept = name == "dtype of an array" and backend == "whole"  # such a backend takes no arrays
    assert name in WRONG_LIMITS or kept or not break_reasons()


def outcome(fn, x):
    try:
        return told(fn(x))
    except Exception as error:
        return type(error), str(error)


class Float(np.finfo):
    pass


def test_a_class_derived_from_finfo() -> None:
    def f(x):
        return x + 1, type(Float(np.float32))

    assert godynamo.optimize(f)(torch.ones(2))[1] is f(torch.ones(2))[1]


def test_values_are_told_apart() -> None:
    f = godynamo.optimize(lambda x, v: (x + 1, v + 1, 1 / v if v else None), backend="eager")
    x = torch.ones(1)
    for v in (
        np.float32(1),
        np.float64(1),
        1.0,
        np.int64(1),
        1,
        True,
        np.bool_(True),
        np.float64(0.0),
        np.float64(-0.0),
    ):
        assert told(f(x, v)[1:]) == told((v + 1, 1 / v if v else None))
