"""Shared by many tests: the recording no-op backend, and the comparison with plain CPython.

``check(fn, *args)`` runs ``fn`` under CPython and under godynamo on copies of the same arguments, several times, and
compares everything a caller can see: value or exception (type, text, user frames), changes of the arguments, objects
shared by result and arguments, and printed output in order.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import traceback
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

import godynamo
from godynamo import _C, utils

#: flags of an entry, as in golib.h
RUN_ORIGINAL, NEEDS_HOOK = 1, 2


class RecordingBackend:
    """Called ``nb`` in the conformance table: runs every graph unchanged and records its arguments."""

    __godynamo_backend__ = True

    def __init__(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None) -> None:
        self.graphs: list[torch.fx.GraphModule] = []
        self.inputs: list[Sequence[Any]] = []
        self.runs = 0  #: number of runs of all graphs
        self._wrap = wrap

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
        gm.graph.lint()
        self.graphs.append(gm)
        self.inputs.append(example_inputs)
        forward = gm.forward if self._wrap is None else self._wrap(gm.forward)

        def counted(*args: Any) -> Any:
            self.runs += 1
            return forward(*args)

        return counted

    def __len__(self) -> int:
        """Number of graphs received so far."""
        return len(self.graphs)

    def __bool__(self) -> bool:
        return True

    def ops(self, graph: int = 0) -> list[str]:
        """Return the names of one graph's operations in order."""
        return ops_of(self.graphs[graph])

    def all_ops(self) -> list[str]:
        """Return the names of all graphs' operations."""
        return [name for gm in self.graphs for name in ops_of(gm)]


def nb() -> RecordingBackend:
    """Return a new recording no-op backend."""
    return RecordingBackend()


def ops_of(gm: torch.fx.GraphModule) -> list[str]:
    """Return the names of a graph's operations: functions by ``__name__`` (operator.add is "add"), methods by name."""
    return [
        getattr(node.target, "__name__", None) or str(node.target).rsplit(".", 1)[-1]
        for node in gm.graph.nodes
        if node.op in ("call_function", "call_method", "call_module")
    ]


def nodes_of(gm: torch.fx.GraphModule, op: str) -> list[torch.fx.Node]:
    """Return the graph's nodes of one op ("placeholder", "output", ...)."""
    return [node for node in gm.graph.nodes if node.op == op]


# ---- the outcome of a call -------------------------------------------------------------------------------------------


def describe(value: Any, seen: dict[int, int] | None = None, keep: list[Any] | None = None) -> Any:
    """Return a value as plain data: a program cannot distinguish values with equal descriptions.

    Tensors bit by bit with dtype, device, strides and requires_grad; containers in order with their types; an object
    that occurred before as its number, so that aliasing shows.
    """
    seen = {} if seen is None else seen
    keep = [] if keep is None else keep
    if value is None or isinstance(
        value, (bool, int, str, bytes, complex, torch.dtype, torch.device, types.ModuleType)
    ):
        return (type(value).__name__, value)
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return (type(value).__name__, getattr(value, "__qualname__", None))
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    keep.append(value)  # so that no address is used twice

    def inner(v: Any) -> Any:
        return describe(v, seen, keep)

    name = type(value).__name__
    if isinstance(value, torch.Tensor):
        data = value.detach().cpu()
        bits = data.contiguous().reshape(-1).view(torch.uint8).tolist() if data.numel() else []
        grad = inner(value.grad) if value.is_leaf and value.grad is not None else None
        return (
            name,
            bits,
            str(value.dtype),
            str(value.device),
            tuple(value.shape),
            value.stride(),
            value.requires_grad,
            grad,
        )
    if isinstance(value, (list, tuple)):
        return (name, [inner(v) for v in value])
    if isinstance(value, (dict, OrderedDict)):
        return (name, [(inner(k), inner(v)) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return (name, sorted(repr(describe(v)) for v in value))
    if isinstance(value, (range, slice)):
        return (name, inner(value.start), inner(value.stop), inner(value.step))
    if isinstance(value, types.MethodType):
        return (name, value.__func__.__qualname__, inner(value.__self__))
    if isinstance(value, BaseException):
        return (name, str(value))
    if isinstance(value, torch.nn.Module):
        return (name, [(k, inner(v)) for k, v in value.state_dict().items()], value.training)
    if dataclasses.is_dataclass(value):
        return (name, [(f.name, inner(getattr(value, f.name))) for f in dataclasses.fields(value)])
    if hasattr(value, "__dict__"):
        return (name, [(k, inner(v)) for k, v in vars(value).items()])
    if slots := [n for c in type(value).__mro__ for n in getattr(c, "__slots__", ())]:
        return (name, [(n, inner(getattr(value, n))) for n in slots if hasattr(value, n)])
    return (name, repr(value))


def outcome(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the outcome of a call as plain data. The arguments are passed uncopied, so mutations reach them.

    An exception's user frames are those inside the call: (function, line), outermost first.
    """
    out = io.StringIO()
    result: Any
    with contextlib.redirect_stdout(out):
        try:
            value = fn(*args, **(kwargs or {}))
        except Exception as error:
            frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)[1:]]
            result, value = ("raised", type(error).__name__, str(error), frames), None
        else:
            result = ("returned",)
    seen: dict[int, int] = {}
    keep: list[Any] = []
    # Arguments first: a returned argument is then described as "again".
    after = describe([list(args), kwargs or {}], seen, keep)
    return {"how": result, "arguments": after, "value": describe(value, seen, keep), "stdout": out.getvalue()}


def clone_args(args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
    """Return deep copies that preserve aliasing between the arguments."""
    return copy.deepcopy((list(args), dict(kwargs or {})))  # type: ignore[return-value]


def check(
    fn: Callable[..., Any],
    *args: Any,
    backend: Any = None,
    calls: int = 3,
    optimized: Any = None,
    **kwargs: Any,
) -> RecordingBackend:
    """Compare CPython and godynamo on deep copies of the arguments, ``calls`` times (a miss, then hits).

    Returns the backend. If ``optimized`` is given, it is called instead of optimizing ``fn``.
    """
    recorder = nb() if backend is None else backend
    compiled = godynamo.optimize(fn, backend=recorder) if optimized is None else optimized
    for call in range(calls):
        eager_args, eager_kwargs = clone_args(args, kwargs)
        our_args, our_kwargs = clone_args(args, kwargs)
        state = torch.get_rng_state()
        expected = outcome(fn, eager_args, eager_kwargs)
        torch.set_rng_state(state)
        actual = outcome(compiled, our_args, our_kwargs)
        assert actual == expected, f"call {call}"
    assert_no_internal_errors()
    return recorder


def assert_no_internal_errors() -> None:
    """Check that there was no internal error: after one, CPython runs the call and its result is still right."""
    assert _C.counters()["internal_errors"] == 0


# ---- counts ----------------------------------------------------------------------------------------------------------


def counted(name: str) -> int:
    """Return one of the core's counters."""
    return _C.counters()[name]


@contextlib.contextmanager
def no_translation() -> Iterator[None]:
    """Check that each call inside is a hit, or runs in CPython by an earlier decision: no translation, no Go call."""
    before = _C.counters()
    yield
    after = _C.counters()
    assert after["translations"] == before["translations"], "translated again"
    assert _C.golib_calls() == before["golib_calls"], "Go was called"


@contextlib.contextmanager
def translations(expected: int) -> Iterator[None]:
    """Check that exactly this number of translations starts inside."""
    before = counted("translations")
    yield
    assert counted("translations") - before == expected


def entries(fn: Any) -> list[Any]:
    """Return the entries of the function's own frame, most recently used first."""
    return list(fn.cache.entries())


def texts(fn: Any) -> list[str]:
    """Return the guard texts of the function's entries."""
    return [entry.text for entry in entries(fn)]


def break_reasons() -> list[str]:
    """Return the reasons of all graph breaks counted so far."""
    return [reason for reason, count in utils.counters["graph_break"].items() for _ in range(count)]


def opaque(x: Any) -> Any:
    """Return ``x``. Never captured: a call of it is a graph break. See ``unsupported``."""
    return x


#: called by tests to break the graph: runs in CPython and returns its argument
unsupported = godynamo.disable(opaque)


__all__ = [
    "NEEDS_HOOK",
    "RUN_ORIGINAL",
    "RecordingBackend",
    "assert_no_internal_errors",
    "break_reasons",
    "check",
    "clone_args",
    "counted",
    "describe",
    "entries",
    "nb",
    "no_translation",
    "nodes_of",
    "ops_of",
    "outcome",
    "texts",
    "translations",
    "unsupported",
]
