"""Passes numbers known only at run time to compilers, as unbacked symbols of torch's ShapeEnv.

A compiler makes such a symbol for each result of item(), nonzero() and the like when it traces the graph. It needs to
know which of its symbols stand for the same number, and the conditions that operations assume (a size is not negative,
two sizes are equal) must be checked in each call. Both are written into the graph here, as torch._dynamo does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from .. import exc
from .._called import computed, torch_state
from .._called.saved_tensors import unseen
from .._core import core

log = logging.getLogger("godynamo")


def read_numbers(gm: torch.fx.GraphModule, numbers: Mapping[int, type]) -> None:
    """Replace each input that is a number by a 0-dimensional tensor, from which the graph reads the number by item().

    numbers: input index → the type, int or float. A compiler treats a number among the inputs as a constant;
    torch._dynamo also passes floats as tensors.
    """
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    first = next(node for node in gm.graph.nodes if node.op != "placeholder")
    for place in numbers:
        tensor = inputs[place]
        with gm.graph.inserting_before(first):
            number = gm.graph.call_method("item", (tensor,))
        tensor.replace_all_uses_with(number, lambda user, number=number: user is not number)


def from_numbers(compiled: Callable[..., Any], numbers: Mapping[int, type]) -> Callable[..., Any]:
    """Return a callable that takes Python numbers where ``compiled`` takes tensors; see read_numbers."""

    def run(*inputs: Any) -> Any:
        tensors = list(inputs)
        for place in numbers:
            tensors[place] = computed.as_tensor(tensors[place])
        return compiled(*tensors)

    return run


def bind(gm: torch.fx.GraphModule, examples: Sequence[Any], mode: Any) -> bool:
    """Run the graph on its examples. Write each node's new symbols, and run-time assertions, into the graph.

    mode: the FakeTensorMode of the examples. Returns whether an assertion may fail. The bounds of a size that depends
    on data always hold: nonzero(), for example, returns at most as many rows as the tensor has elements.

    Raises GuardOnDataDependentSymNode if an operation needs the value of a number, and ValueError if the graph's
    results may differ from eager mode's.
    """
    from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings
    from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts

    held: dict[Any, Any] = {}
    copies = _Copies()

    class Propagate(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if _name(n) in _KERNEL_BY_SIZE and any(map(_unbacked, _tensors(value))):
                raise ValueError(f"the rounding of {_name(n)} depends on a number known only at run time")
            if n.op != "output":
                n.meta["example_value"] = value
                copies.note(n, value)
                if bindings := compute_unbacked_bindings(mode.shape_env, value):
                    n.meta["unbacked_bindings"] = bindings
                    if isinstance(value, (torch.Tensor, tuple)):
                        held.update({symbol: mode.shape_env.var_to_range[symbol] for symbol in bindings})
            return value

    outside = torch_state.snapshot()
    try:
        with unseen(), mode:
            runner = Propagate(gm, garbage_collect_values=False)
            runner.extra_traceback = False
            runner.run(*examples)
    finally:
        torch_state.restore(outside)
    if copies.matter(gm, examples):
        raise ValueError("whether a tensor is a view depends on a number known only at run time")
    insert_deferred_runtime_asserts(gm, mode.shape_env, "graph")
    return _may_fail(gm, held)


#: Operations with several kernels. torch chooses one by the sizes, and may choose another one for unbacked sizes.
_KERNEL_BY_SIZE = {"scaled_dot_product_attention"}

#: Operations that return a view if the layout allows it, and a copy otherwise.
_VIEW_OR_COPY = {"contiguous", "cpu", "cuda", "flatten", "ravel", "reshape", "reshape_as", "sum_to_size", "to"}


class _Copies:
    """A graph's copies that may be views in other calls: y.t().reshape(-1) is a view if y has one row.

    torch traces such an operation as a copy. This is wrong if the program can see that two tensors share memory.
    """

    def __init__(self) -> None:
        self._found: list[tuple[int, int, bool]] = []  # (source's memory, copy's memory, whether the source overlaps)
        self._values: list[torch.Tensor] = []

    def note(self, n: torch.fx.Node, value: Any) -> None:
        """Note the value of a node."""
        self._values += _tensors(value)
        if _name(n) not in _VIEW_OR_COPY or not isinstance(value, torch.Tensor):
            return
        source = n.args[0].meta.get("example_value") if n.args and isinstance(n.args[0], torch.fx.Node) else None
        if isinstance(source, torch.Tensor) and _memory(source) != _memory(value) and _unbacked(source):
            overlaps = any(isinstance(stride, int) and stride == 0 for stride in source.stride())
            self._found.append((_memory(source), _memory(value), overlaps))

    def matter(self, gm: torch.fx.GraphModule, examples: Sequence[Any]) -> bool:
        """Return whether the graph changes such a copy or its source, or both are visible outside the graph."""
        if not self._found:
            return False
        if torch.is_inference_mode_enabled():  # inference tensors have no version counters
            return True
        changed = {_memory(t) for t in self._values if t._version}
        (output,) = [node for node in gm.graph.nodes if node.op == "output"]
        outputs = [node.meta["example_value"] for node in output.all_input_nodes]
        visible = {_memory(t) for value in (*outputs, *examples) for t in _tensors(value)}
        return any(
            source in changed or copy in changed or (copy in visible and (source in visible or overlaps))
            for source, copy, overlaps in self._found
        )


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in _tensors(part)] if isinstance(value, (tuple, list)) else []


def _name(n: torch.fx.Node) -> str:
    return n.target if isinstance(n.target, str) else getattr(n.target, "__name__", "")


def _unbacked(t: torch.Tensor) -> bool:
    """Return whether sizes, strides or the offset of a tensor are known only at run time."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(t))


def _memory(t: torch.Tensor) -> int:
    memory: int = t.untyped_storage()._cdata
    return memory


def _may_fail(gm: torch.fx.GraphModule, held: Mapping[Any, Any]) -> bool:
    """Return whether the graph has an assertion other than the bounds that always hold; see bind."""
    import sympy

    for node in gm.graph.nodes:
        if node.target is torch.ops.aten._assert_scalar.default:
            value = node.args[0].meta.get("example_value") if isinstance(node.args[0], torch.fx.Node) else None
            condition = value.node.expr if isinstance(value, torch.SymBool) else None
            if not isinstance(condition, (sympy.Ge, sympy.Le)) or condition.lhs not in held:
                return True
            bounds = held[condition.lhs]
            above = isinstance(condition, sympy.Ge)
            if bounds.lower < condition.rhs if above else bounds.upper > condition.rhs:
                return True
    return False


class Assuming:
    """Runs a compiled graph that changes nothing. If the compiled graph raises, runs the captured graph.

    compiled: raises if an assumption fails, such as that two sizes are equal. captured: returns the captured graph,
    which raises the program's own exception if the program is wrong.
    """

    def __init__(self, compiled: Callable[..., Any], captured: Callable[[], Callable[..., Any]]) -> None:
        self._run, self._captured = compiled, captured
        self._instead: Callable[..., Any] | None = None
        self._balance = 0  # the number of failed calls minus the number of successful calls, at least 0

    def __call__(self, *inputs: Any) -> Any:
        try:
            result = self._run(*inputs)
            self._balance = max(self._balance - 1, 0)
            return result
        except Exception as error:
            if self._run is self._instead or isinstance(error, (MemoryError, exc.TorchDynamoException)):
                raise
            if core.came_from_outside(error):
                raise
            log.info("the graph runs as captured, since its compiled code assumes: %s", error)
        if self._instead is None:
            self._instead = self._captured()
        self._balance += 1
        if self._balance > _MOST_FAILURES:
            self._run = self._instead
        return self._instead(*inputs)


#: The compiled code is dropped once failed calls outnumber successful calls by more than this.
_MOST_FAILURES = 8
