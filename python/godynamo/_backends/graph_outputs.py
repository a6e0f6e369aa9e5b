"""Flattens a captured graph's outputs to the tuple of tensors that backends expect.

An operation may return a sequence (``x.max(0)``, ``x.split(1)``), and the program may keep the sequence. AOTAutograd
does not support such an output, and torch.compile never passes one to a backend. So the graph returns each element of
the sequence once, and a wrapper of the compiled graph rebuilds the sequences with their exact types. A run on fake
tensors determines how many elements each sequence has.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from .._called import torch_state
from .._called.saved_tensors import unseen
from .._translator import vague
from . import python_ops
from .rows import Ref

Row = Sequence[Any]
#: How to build one of the program's outputs from the flat outputs: the index of a flat output; (type, parts); or None,
#: for the output None.
Part = Any


def flattened(
    rows: Sequence[Row], several: Iterable[int], values: Callable[[int], Any]
) -> tuple[list[Row], list[Part] | None]:
    """Return the rows with a flat output, and the Parts of the program's outputs; None for Parts if nothing changes.

    several: rows whose value is a sequence. values: returns the fake value of a row, or raises KeyError if the value is
    unknown; such a row stays as it is.
    """
    wanted = {i: value for i in several if (value := _known(values, i)) is not None}
    if not wanted:
        return list(rows), None
    flat = _Flat(rows, values)
    parts = [flat.part(ref, wanted.get(ref.index)) for ref in rows[-1][3][0]]
    output = rows[-1]
    flat.rows.append((output[0], output[1], output[2], (tuple(flat.refs),), *output[4:]))
    return flat.rows, parts


def _known(values: Callable[[int], Any], i: int) -> Any:
    try:
        value = values(i)
    except KeyError:
        return None
    return value if isinstance(value, (tuple, list)) else None


class _Flat:
    """Extends rows by nodes that read elements of sequences. An element that a row already reads gets no new node."""

    def __init__(self, rows: Sequence[Row], values: Callable[[int], Any]) -> None:
        self.rows = list(rows[:-1])
        self.refs: list[Ref] = []
        self._places: dict[int, int] = {}
        self._elements: dict[tuple[int, int], int] = {}
        self._same: dict[int, int] = {}  # row that reads an element -> first row that reads the same one
        for i, row in enumerate(rows):
            if row[0] == "call_function" and len(row[3]) == 2 and isinstance(row[3][0], Ref):
                of, key = row[3][0].index, row[3][1]
                if isinstance(key, str):  # getattr on a named tuple
                    sequence = _known(values, of)
                    found = getattr(sequence, key, None)
                    key = next((k for k, item in enumerate(sequence or ()) if item is found), None)
                if type(key) is int and getattr(row[2], "__name__", "") in ("getitem", "getattr"):
                    self._same[i] = self._elements.setdefault((of, key), i)

    def part(self, ref: Ref, value: Any) -> Part:
        """Return the Part that builds a value; add the flat outputs that the Part needs."""
        if value is None or not isinstance(value, (tuple, list)):
            return self._place(ref)
        parts = [None if item is None else self.part(self._element(ref, k), item) for k, item in enumerate(value)]
        kind = type(value)
        return (kind._make if hasattr(kind, "_make") else kind), parts

    def _element(self, ref: Ref, k: int) -> Ref:
        row = self._elements.get((ref.index, k))
        if row is None:
            of = self.rows[ref.index]
            row = self._elements[ref.index, k] = len(self.rows)
            self.rows.append(("call_function", f"{of[1]}_{k}", operator.getitem, (ref, k), {}, of[5], *of[6:]))
        return Ref(row)

    def _place(self, ref: Ref) -> int:
        index = self._same.get(ref.index, ref.index)
        if index not in self._places:
            self._places[index] = len(self.refs)
            self.refs.append(Ref(index))
        return self._places[index]


def regrouped(compiled: Callable[..., Any], parts: Sequence[Part]) -> Callable[..., Any]:
    """Return a callable that calls ``compiled`` and builds the program's outputs from the flat tuple it returns."""

    def run(*inputs: Any) -> list[Any]:
        flat = compiled(*inputs)
        return [flat[part] if type(part) is int else _made(part, flat) for part in parts]

    return run


def _made(part: Part, flat: Sequence[Any]) -> Any:
    if part is None:
        return None
    if type(part) is int:
        return flat[part]
    kind, parts = part
    return kind([_made(p, flat) for p in parts])


# ---- the graph's values, by a run on fake tensors ----


def fake_values(gm: torch.fx.GraphModule, inputs: Callable[[Any], Sequence[Any]], mode: Any = None) -> dict[str, Any]:
    """Run a graph on fake tensors; return its nodes' values by name, up to the first that raises or is only a guess.

    ``inputs(mode)`` makes the fake inputs; ``mode`` is a new mode if it is not given. Which values are guesses is
    defined in _translator/vague.py. The result is empty if the graph has Python operations, since they must run only
    once.
    """
    values: dict[str, Any] = {}
    if any(of_python(node.target) for node in gm.graph.nodes):
        return values
    raised = _run_fakes(gm, inputs, None, values, mode)
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    if mode is None and raised in (DataDependentOutputException, DynamicOutputShapeException):
        from torch.fx.experimental.symbolic_shapes import ShapeEnv  # late, since the import takes longer than most runs

        _run_fakes(gm, inputs, ShapeEnv(), values)
    return values


def not_for_fakes(gm: torch.fx.GraphModule, inputs: Callable[[Any], Sequence[Any]]) -> str | None:
    """Return the name of the first node that raises on fake tensors, or None; ``inputs`` as for fake_values.

    Nodes whose values depend on data, or are only guesses, do not count.
    """
    if any(of_python(node.target) for node in gm.graph.nodes):
        return None
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    values: dict[str, Any] = {}
    raised = _run_fakes(gm, inputs, None, values)
    if raised in (None, vague.VagueMetadata, DataDependentOutputException, DynamicOutputShapeException):
        return None
    return next((node.name for node in gm.graph.nodes if node.name not in values and node.op != "output"), None)


def _run_fakes(
    gm: torch.fx.GraphModule,
    inputs: Callable[[Any], Sequence[Any]],
    symbols: Any,
    values: dict[str, Any],
    mode: Any = None,
) -> type[Exception] | None:
    """Run the graph and fill ``values``; return the class of the exception that ended the run, or None.

    The exception itself is not returned, since it would keep all outer frames alive.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: Any) -> Any:
            value = super().run_node(n)
            if watch.vague is not None:
                raise vague.VagueMetadata(str(watch.vague))
            values[n.name] = value
            return value

    noisy = logging.getLogger("torch._subclasses.fake_tensor")
    before, noisy.disabled = noisy.disabled, True
    outside = torch_state.snapshot()
    if mode is None:
        mode = FakeTensorMode(shape_env=symbols, allow_non_fake_inputs=True, static_shapes=True)
    watch = vague.Watch(mode)
    try:
        with unseen(), mode:
            fakes = inputs(mode)
            watch.vague = None
            recorder = Recorder(gm, garbage_collect_values=False)
            recorder.extra_traceback = False  # FX would build the text in a frame that is part of a reference cycle
            try:
                recorder.run(*fakes)
            finally:
                # A guard of inference mode restores what it found. That includes the fake mode, so it must end here.
                torch_state.restore(outside)
    except Exception as error:  # the values before the operation that raised are kept
        return type(error)
    finally:
        noisy.disabled = before
        torch_state.restore(outside)
    return None


def like(example_inputs: Sequence[Any]) -> Callable[[Any], list[Any]]:
    """Return a function of a fake mode that makes fake inputs with the metadata of the example inputs."""
    return lambda mode: [vague.without_data(mode, x) if isinstance(x, torch.Tensor) else x for x in example_inputs]


def of_python(target: Any) -> bool:
    """Return whether a target is one of python_ops. Such operations must run only once, in the program's order."""
    return getattr(target, "__module__", None) == python_ops.__name__
