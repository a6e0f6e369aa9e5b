"""What numpy's operations in the graph return: types, dtypes, shapes and strides, found by calling numpy on samples.

A sample is an array or a scalar of numpy with the type, dtype, shape, strides and flags that a value has at run time.
Its contents are not the value's. So an operation is captured only if the type, dtype, shape and strides of its result
do not depend on the contents of its operands. ``FUNCTIONS`` and ``METHODS`` list these operations. Each has a number:
how many of its leading arguments may be known only at run time. The other arguments are constants.
"""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import _C
from . import recipes, warned

try:
    import numpy as np
except ImportError:  # torch works without numpy
    np = None  # type: ignore[assignment]

#: the number of operations whose arguments may all be known only at run time
ALL = 99

#: Before version 2, the dtype of a result depends on the values of scalars.
CAPTURED = np is not None and int(np.__version__.split(".")[0]) >= 2

#: the class of universal functions
UFUNC: type | None = np.ufunc if np is not None else None

#: the qualified name of functions that ``placed`` makes; core/calls/traceback.c has it too
PLACED = "<a call of numpy>"

#: keyword arguments that may be known only at run time
_DATA = frozenset("out where initial weights".split())

#: the largest sample, in bytes
_LARGEST = 1 << 26

_FUNCTIONS = {
    0: """arange bartlett blackman broadcast_shapes can_cast diag_indices empty eye fft.fftfreq fft.rfftfreq hamming
        hanning identity indices kaiser ones promote_types tri tril_indices triu_indices zeros""",
    1: """all amax amin angle any argmax argmin argpartition argsort around array array_split asanyarray asarray
        ascontiguousarray asfortranarray broadcast_to column_stack concat concatenate copy corrcoef cumprod cumsum
        cumulative_prod cumulative_sum diag diagflat diagonal diff dsplit dstack ediff1d empty_like expand_dims
        fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft
        fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn fix flip fliplr flipud gradient hsplit hstack i0 imag
        iscomplex iscomplexobj isneginf isposinf isreal isrealobj linalg.cholesky linalg.cond linalg.det
        linalg.eigvalsh linalg.inv linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.norm linalg.pinv
        linalg.svdvals linalg.trace linalg.vector_norm matrix_transpose max mean median min moveaxis nan_to_num
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ndim
        ones_like partition permute_dims prod ptp ravel real repeat reshape resize roll rollaxis rot90 round shape sinc
        size sort sort_complex split squeeze stack std sum swapaxes tile trace transpose tril triu unstack unwrap
        vander var vsplit vstack zeros_like""",
    2: """allclose append array_equal array_equiv average convolve correlate cov cross digitize dot full_like geomspace
        in1d inner isclose isin kron linalg.cross linalg.matmul linalg.outer linalg.solve linalg.tensordot
        linalg.vecdot linspace logspace nanpercentile nanquantile outer percentile polyval quantile searchsorted take
        take_along_axis tensordot trapezoid trapz vdot""",
    3: "clip interp where",
    ALL: "atleast_1d atleast_2d atleast_3d broadcast_arrays einsum meshgrid result_type",
}

#: functions that change their first argument, or may change it
_IN_PLACE = {2: "copyto fill_diagonal", 3: "place put putmask"}

#: Functions that draw from numpy's global generator. On samples, they draw from another one.
_RANDOM = {
    0: "rand randn random random_sample ranf sample seed standard_cauchy standard_exponential standard_normal",
    1: """chisquare choice exponential geometric logseries pareto permutation poisson power rayleigh standard_gamma
        standard_t weibull zipf""",
    2: """beta binomial f gamma gumbel laplace logistic lognormal negative_binomial noncentral_chisquare normal randint
        uniform vonmises wald""",
    3: "hypergeometric noncentral_f triangular",
}

#: functions whose results depend on types and shapes only
_CONSTANT = "broadcast_shapes can_cast iscomplexobj isrealobj ndim promote_types result_type shape size"

#: the methods of arrays and scalars
METHODS = {
    name: data
    for data, names in {
        0: """__copy__ all any argmax argmin argpartition argsort astype conj conjugate copy cumprod cumsum diagonal
            flatten max mean min prod ravel repeat reshape round squeeze std sum swapaxes trace transpose var view""",
        1: "dot searchsorted take",
        2: "clip",
    }.items()
    for name in names.split()
}

#: the methods that change an array and return None
CHANGING = {"fill": 1, "partition": 0, "put": 2, "sort": 0}

#: the attributes that are computed from the array's memory
VIEWS = frozenset({"T", "mT", "real", "imag"})

#: the attributes that are constants of a sample
LAYOUT = frozenset({"dtype", "itemsize", "nbytes", "ndim", "shape", "size", "strides"})


#: modules that numpy imports when a program first uses them. They would take most of this module's import.
_LATE = ("numpy.fft", "numpy.random")


def _named(names: str) -> Iterator[tuple[Any, str]]:
    for name in names.split():
        module = "numpy." + name.partition(".")[0]
        if module in _LATE and module not in sys.modules:
            continue
        try:
            yield operator.attrgetter(name)(np), name
        except AttributeError:  # this version of numpy has no such function
            continue


def _functions() -> tuple[dict[Any, str], dict[Any, str]]:
    if not CAPTURED:
        return {}, {}
    paths = {f: f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)}
    paths = {f: name for f, name in paths.items() if getattr(np, name, None) is f}
    found = dict.fromkeys(paths, str(ALL))
    for data, names in [*_FUNCTIONS.items(), *_IN_PLACE.items()]:
        detail = f"{data} in place" if _IN_PLACE.get(data) == names else str(data)
        for f, name in _named(names):
            found[f], paths[f] = detail, name
    draws = {data: " ".join(f"random.{name}" for name in names.split()) for data, names in _RANDOM.items()}
    for data, names in [*draws.items(), (1, "random.shuffle")]:
        for f, name in _named(names):
            found[f], paths[f] = f"{data} in place" if name == "random.shuffle" else str(data), name
    return found, paths


#: {function: how many arguments may be known only at run time, and whether it changes the first one}, and {function:
#: its dotted name in numpy}
FUNCTIONS, PATHS = _functions()

_KINDS: frozenset[int] = frozenset()
_generator: Any = None
_loaded: list[str] = []


def _note_kinds() -> None:
    """Note numpy's own types of functions (a user's class may have a metaclass that defines __hash__)."""
    global _KINDS, _generator
    kinds = {type(f) for f in FUNCTIONS}
    _KINDS = frozenset(id(t) for t in kinds if t.__module__ == "numpy" or t.__module__.startswith("_cython"))
    _loaded[:] = [module for module in _LATE if module in sys.modules]
    if CAPTURED and "numpy.random" in _loaded:
        _generator = np.random.RandomState(0)


_note_kinds()


def _look_again() -> None:
    """Add the functions of modules that the program has imported since."""
    if CAPTURED and len(_loaded) < len(_LATE) and _loaded != [module for module in _LATE if module in sys.modules]:
        functions, paths = _functions()
        FUNCTIONS.update(functions)
        PATHS.update(paths)
        _note_kinds()


def _known(obj: Any) -> bool:
    kind = type(obj)
    return id(kind) in _KINDS or (kind is types.MethodType and type(obj.__self__) is type(_generator))


def detail(obj: Any) -> str | None:
    """Return the detail of one of numpy's functions that is neither a builtin nor a Python function; else None."""
    _look_again()
    return FUNCTIONS.get(obj) if _known(obj) else None


def path_of(obj: Any) -> str | None:
    """Return the dotted name of such a function; None for other objects."""
    return PATHS.get(obj) if _known(obj) else None


_SHAPES = frozenset(id(f) for f, _ in _named(_CONSTANT)) if CAPTURED else frozenset()

#: the dtypes of arrays in captured code by their text: numbers in the machine's byte order
_DTYPES = {np.dtype(c).str: np.dtype(c) for c in "?bhilBHILefdFD"} if CAPTURED else {}
_SCALARS: dict[int, Any] = {id(d.type): d for d in _DTYPES.values()}
_KINDS_OF_DTYPES = frozenset(id(type(d)) for d in _DTYPES.values())
_NUMBERS = frozenset(map(id, (int, float, bool, complex)))
_CONSTANTS = _NUMBERS | frozenset(map(id, (str, type(None), type(...))))


def _plain_dtype(dtype: Any) -> bool:
    return dtype is _DTYPES.get(dtype.str)


def _plain(value: Any) -> bool:
    """Return whether a value is an exact array or scalar of one of these dtypes."""
    kind = type(value)
    if kind is np.ndarray:
        return _plain_dtype(value.dtype)
    return id(kind) in _SCALARS


def sample(array: Any) -> tuple[Any, Callable[[Any], bool], str] | None:
    """Return (a sample of an array, a guard predicate on what the sample has in common with it, its text).

    Returns None for an array that is not captured.
    """
    if not CAPTURED or not _plain(array) or not array.flags.aligned:
        return None
    shape, strides, kind = array.shape, array.strides, array.dtype
    low = sum(min(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True)) if array.size else 0
    high = sum(max(0, (n - 1) * step) for n, step in zip(shape, strides, strict=True)) if array.size else 0
    if high - low > _LARGEST or array.nbytes > _LARGEST:
        return None
    memory = np.zeros(high - low + kind.itemsize, np.uint8)
    made = np.ndarray(shape, kind, memory, -low, strides)
    if array.ndim > 1 and kind.kind in "fc" and array.size:
        made[..., range(n := min(shape[-2:])), range(n)] = 1  # a matrix has an inverse
    made.flags.writeable = writeable = array.flags.writeable
    text, dtypes = kind.str, _DTYPES

    def same(other: Any) -> bool:
        return (
            other.shape == shape
            and other.dtype is dtypes[text]
            and other.strides == strides
            and (flags := other.flags).writeable == writeable
            and flags.aligned
        )

    words = f"is an array of {kind.name} with shape {shape}, strides {strides}"
    return made, same, words if writeable else words + ", read-only"


def passed_number(scalar: Any) -> Any:
    """Return a sample of a number, or None if it is not captured: an object of the same type with another value."""
    kind = type(scalar)
    return kind(1) if CAPTURED and issubclass(kind, np.number) and kind.__module__ == "numpy" else None


def _computed(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """Return (result,) of a call, or None if it raises, or warns of something else than values."""
    try:
        with np.errstate(all="ignore"):
            return warned.computed(fn, args, kwargs)
    except Exception:
        return None


def call(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], operands: tuple[Any, ...]) -> tuple[str, Any] | None:
    """Call a function, or a method if fn is its name, on samples. ``operands`` are the samples among the arguments.

    Returns ("operand", its number), ("value", sample), ("constant", object), ("none", None), ("bool", "int" or "float",
    None) for a number of Python, ("tuple" or "list", a list of such pairs), or None if the result cannot be tracked.
    """
    if type(fn) is str:
        fn, args = getattr(args[0], fn, None), args[1:]
    if fn is None:
        return None
    path = path_of(fn)
    if _by_contents(path, args):
        return None
    if path is not None and path.startswith("random."):
        fn = getattr(_generator, path.removeprefix("random."))
    if fn is operator.getitem or fn is operator.setitem:
        args = (args[0], _first(args[1]), *args[2:])
    found = _computed(fn, args, kwargs)
    return None if found is None else _described(found[0], operands, id(fn) in _SHAPES)


def _by_contents(path: str | None, args: tuple[Any, ...]) -> bool:
    """Return whether the shape of the result of one of FUNCTIONS depends on what a sample does not have.

    ``where`` of a mask alone returns the indices of its items. ``permutation`` of a number has that many items; the
    sample of a number that is known only at run time is 0 or 1.
    """
    if path == "random.permutation":
        return type(args[0]) is int and args[0] < 2
    return path == "where" and len(args) < 3


def _first(key: Any) -> Any:
    """Return a subscript in which arrays of ints select the first item, which is always there."""
    if type(key) is tuple:
        return tuple(map(_first, key))
    return np.zeros_like(key) if type(key) is np.ndarray and key.dtype.kind in "iu" else key


def _described(value: Any, operands: tuple[Any, ...], constant: bool) -> tuple[str, Any] | None:
    kind = type(value)
    if value is None:
        return "none", None
    if constant and (kind in (int, bool, tuple) or (id(kind) in _KINDS_OF_DTYPES and _plain_dtype(value))):
        return "constant", value
    if kind is bool or kind is int or kind is float:
        return kind.__name__, None
    if kind is np.ndarray:
        for i, operand in enumerate(operands):
            if operand is value:
                return "operand", i
    if kind is tuple or kind is list:
        items = [_described(item, operands, False) for item in value]
        if len({id(item) for item in value}) < len(items) or any(item is None or item[0] != "value" for item in items):
            return None
        return kind.__name__, items
    return ("value", value) if _plain(value) and not (kind is np.ndarray and value.nbytes > _LARGEST) else None


def tells_values(key: tuple[Any, ...]) -> bool:
    """Return whether one of these samples, as a subscript, is a mask: the shape of the result depends on its values."""
    return any(item.dtype.kind == "b" for item in key)


def at_line(fn: Any, code: types.CodeType, scope: dict[str, Any], line: int) -> Callable[..., Any]:
    """Return a function that calls ``fn``. Warnings from this call name the given line of the user's code."""
    return placed(fn, code, scope, line - code.co_firstlineno)


@recipes.noted
def placed(fn: Any, code: types.CodeType, scope: dict[str, Any], offset: int) -> Callable[..., Any]:
    """Do what ``at_line`` does. The line is counted from the first line of ``code``, since source files change.

    Tracebacks do not show the function's frame (core/calls/traceback.c).
    """
    lines = "\n" * max(0, code.co_firstlineno + offset - 1)
    make = compile(f"{lines}lambda fn: lambda *args, **kwargs: fn(*args, **kwargs)", code.co_filename, "eval")
    function: Any = eval(make, scope)(fn)
    function.__code__ = function.__code__.replace(co_qualname=PLACED)
    _C.mark_skip(function.__code__)
    return function  # type: ignore[no-any-return]


def attribute(value: Any, name: str) -> tuple[str, Any] | None:
    """Return what ``call`` returns for an attribute of a sample."""
    if name in LAYOUT:
        return "constant", getattr(value, name)
    if name not in VIEWS or not hasattr(value, name):
        return None
    return call(getattr, (value, name), {}, (value,))


def listed(sample: Any, most: int) -> tuple[str, int] | None:
    """Return (what ``number`` returns for an item, the number of items) of a vector with up to ``most``, or None."""
    if sample.ndim != 1 or not 0 < len(sample) <= most:
        return None
    kind = number(sample[0], "item")
    return None if kind is None else (kind, len(sample))


def number(value: Any, of: str) -> str | None:
    """Return the type that ``item()``, ``int`` or ``float`` of a sample returns, or None if it may raise."""
    if value.size != 1 or (of != "item" and value.ndim > 0):
        return None
    kind = value.dtype.kind
    if kind == "c" or (of != "float" and value.dtype.str[1:] == "u8"):
        return None
    if of == "int" and kind == "f":
        return None  # it raises for an infinity
    if of != "item":
        return of
    return {"b": "bool", "f": "float"}.get(kind, "int")


def constant(value: Any) -> bool:
    """Return whether an object may be an argument of an operation: a number, a text, a dtype, or a class of scalars."""
    kind = type(value)
    if kind is tuple or kind is list:
        return all(map(constant, value))
    if kind is slice:
        return all(map(constant, (value.start, value.stop, value.step)))
    if id(kind) in _KINDS_OF_DTYPES:
        return _plain_dtype(value)
    if kind is UFUNC:
        return value in PATHS
    return id(kind) in _CONSTANTS or id(kind) in _SCALARS or id(value) in _NUMBERS or id(value) in _SCALARS


def dtype(cls: type, of: Any) -> Any:
    """Return ``np.dtype(of)`` if ``cls`` is np.dtype and arrays in captured code may have this dtype; else None."""
    if not CAPTURED or cls is not np.dtype or not constant(of):
        return None
    found = _computed(cls, (of,), {})
    return found[0] if found is not None and _plain_dtype(found[0]) else None


def plain_text(value: Any) -> str | None:
    """Return a text for a dtype or a scalar, from which ``of_text`` makes it again; None for other objects."""
    kind = id(type(value))
    if kind in _SCALARS:
        return f"{_SCALARS[kind].str} {value.tobytes().hex()}"
    return value.str if kind in _KINDS_OF_DTYPES and _plain_dtype(value) else None


def of_text(text: str) -> Any:
    """Return the object for a result of ``plain_text``."""
    dtype, _, data = text.partition(" ")
    return np.frombuffer(bytes.fromhex(data), _DTYPES[dtype])[0] if data else _DTYPES[dtype]


def _quietly(value: Any) -> bool:
    """Return whether torch makes a tensor of a value without a warning, which it gives once a process."""
    if type(value) is list or type(value) is tuple:
        return all(type(item) is not np.ndarray and _quietly(item) for item in value)
    return type(value) is not np.ndarray or value.flags.writeable


def tensor(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor | None:
    """Return what a function of torch returns for samples, or None if it raises or warns."""
    if not _quietly(args[0]):
        return None
    try:
        with torch._C.DisableTorchFunction():
            found = warned.computed(fn, args, kwargs)
    except Exception:
        return None
    made = None if found is None else found[0]
    return made if type(made) is torch.Tensor and made.device.type == "cpu" and not made.requires_grad else None


def of_tensor(name: str, size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Any:
    """Return a sample of the array of a tensor in CPU memory, or None if it cannot be made.

    ``name`` is "array" for ``np.array(t)``, which copies the data, and "" for an array that shares them.
    """
    extent = 1 + sum(max(0, n - 1) * step for n, step in zip(size, stride, strict=True))
    if not CAPTURED or extent * dtype.itemsize > _LARGEST:
        return None
    try:
        made = torch.zeros(extent, dtype=dtype).as_strided(size, stride).numpy()
    except (RuntimeError, TypeError):
        return None
    made = np.array(made) if name == "array" else made
    return made if _plain(made) else None
