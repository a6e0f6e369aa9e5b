"""Computes metadata of graph values during translation with torch's FakeTensor, if Go has no cheaper rule for them."""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import re
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import torch.utils._pytree
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)

from .._backends.rows import Ref
from .._called import fsdp, torch_state
from .._called.saved_tensors import unseen
from . import torch_function, vague, warned


class _Unseen:
    """Represents the value of a node that has not run."""


_UNSEEN = _Unseen()


class _Unknown:
    """Represents a result whose metadata depend on data or can only be guessed, and values computed from it."""

    def __init__(self, root: int, error: Exception) -> None:
        self.root = root  #: index of the operation with this result
        self._kind, self._args = type(error), error.args

    def error(self) -> Exception:
        """Return a copy of the operation's exception. The original's traceback would keep the user's frames alive."""
        return self._kind(*self._args)


def _changes(op: str, target: Any, kwargs: dict[str, Any]) -> bool:
    """Return whether an operation may change an operand: it has a name of an in-place operation, or an ``out``."""
    name = target if op == "call_method" else getattr(target, "__name__", "")
    return name.endswith("_") or name in _IN_PLACE or "out" in kwargs


_IN_PLACE = {"i" + name for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()} | {
    "setitem"
}
#: in-place operations that change the data of their first operand and nothing else, unless autograd records them
_KEEP_METADATA = frozenset(
    "add_ sub_ mul_ div_ pow_ neg_ abs_ sqrt_ rsqrt_ exp_ log_ reciprocal_ clamp_ clamp_min_ clamp_max_ lerp_ addcmul_ "
    "addcdiv_ copy_ zero_ fill_ sign_ floor_ ceil_ round_ sigmoid_ tanh_ masked_fill_ index_add_ index_copy_".split()
)
_IN_PLACE_OPERATORS = (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow)


@functools.cache  # one predicate for a device, so that equal guards are one guard
def _is_current(kind: str, index: int) -> Callable[[Any], bool]:
    """Return a guard predicate: whether a tensor without a device index is made on this one now."""
    module = torch.get_device_module(kind)

    def current(_: Any) -> bool:
        # Asking a device that has not started would start it. It starts with the first device.
        return bool((module.current_device() if module.is_initialized() else 0) == index)

    return current


def _current_devices(target: Any, value: Any, operands: Any) -> list[tuple[Callable[[Any], bool], str]]:
    """Return (guard predicate, text) for each accelerator of a result that is on the current device of its kind.

    These are the results that no operand is on, and those of an operation that names the kind alone: ``x.cuda()`` may
    move a tensor from one GPU to another.
    """
    results = torch.utils._pytree.tree_leaves(value) if isinstance(value, (list, tuple)) else (value,)
    devices = [t.device for t in results if isinstance(t, torch.Tensor) and t.device.type not in ("cpu", "meta")]
    if not devices:
        return []
    given = torch.utils._pytree.tree_leaves(operands)
    on = [x.device for x in given if isinstance(x, torch.Tensor)]
    named = {x if isinstance(x, str) else x.type for x in given if isinstance(x, (str, torch.device))}
    found = {
        device: _is_current(device.type, device.index)
        for device in devices
        if device.index is not None and (device not in on or target == device.type or device.type in named)
    }
    return [(current, f"the current {device.type} device is {device.index}") for device, current in found.items()]


def plain_state(entry: torch_state.State | None) -> tuple[torch.dtype, torch.device, torch.layout] | None:
    """Return (default dtype, default device, torch.strided), the state that Go's rules for sizes need.

    ``entry`` has torch's modes at the frame's start, None if captured code has not switched any. Returns None if a mode
    that affects results is active: autocast at the frame's start, a function mode, a dispatch mode, or one of
    functorch's transforms.
    """
    c = torch._C
    if (
        (c._is_any_autocast_enabled() if entry is None else torch_state.autocasts(entry))
        or c._len_torch_function_stack() > 0
        or c._len_torch_dispatch_stack() > 0
        or c._functorch.peek_interpreter_stack() is not None
    ):
        return None
    default = torch.get_default_dtype() if entry is None else torch_state.default_dtype(entry)
    return default, torch.device("cpu"), torch.strided


class Session:
    """Runs the nodes of one graph on fake tensors, each once, in program order.

    Values are keyed by the node's index in the graph. The real tensors are not changed: inputs are copied into the
    fake mode without data, and the random state stays the same.
    """

    def __init__(self) -> None:
        self._mode = FakeTensorMode(allow_non_fake_inputs=False)
        self._watch = vague.Watch(self._mode)
        self._values: dict[int, Any] = {}
        self._examples: dict[int, torch.Tensor] = {}  # the real inputs
        self._stuck = -1  # index of the operation whose unknown result has prevented a node from running, see root()
        self._state: torch_state.State | None = None  # modes for the next nodes; None until modes switch

    def set_state(self, state: torch_state.State) -> None:
        """Run the following nodes under these modes of torch. If a node switches modes, later nodes see the switch."""
        self._state = state

    @contextlib.contextmanager
    def _modes(self) -> Iterator[None]:
        """Enter the modes for the next nodes, and remember what they become."""
        if self._state is None:
            yield
            return
        outside = torch_state.snapshot()
        torch_state.restore(self._state)
        try:
            yield
        finally:
            self._state = torch_state.snapshot()
            torch_state.restore(outside)

    def input(self, index: int, tensor: Any) -> None:
        """Add a graph input. ``tensor`` is an example of it; it may also be a number that differs in each call, or
        a random generator."""
        if isinstance(tensor, torch.Generator):
            tensor = torch.Generator(tensor.device)  # the program's own is not drawn from
        if not isinstance(tensor, torch.Tensor):
            self._values[index] = tensor
            return
        if isinstance(tensor, FakeTensor):  # dispatchers.plain_example
            with self._mode:
                self._values[index] = torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
                )
            return
        # This raises for quantized and nested tensors.
        self._values[index] = vague.without_data(self._mode, tensor)
        self._examples[index] = tensor

    def unknown(self, index: int) -> None:
        """Add a graph input of unknown metadata."""
        self._values[index] = _Unknown(index, vague.VagueMetadata("a row of a tensor, or a list of tensors"))

    def recorded(self, index: int) -> None:
        """Add a gradient whose own history ``backward(create_graph=True)`` has recorded. No pass runs here."""
        self._values[index] = _Unknown(index, vague.VagueMetadata("a gradient with a history"))

    def foreign(self, index: int, changed: tuple[int, ...]) -> None:
        """Add an operation that does not run here. It gives the nodes in ``changed`` data that are not known.

        If one of these is no tensor, it may be an array, which may share memory with any tensor.
        """
        self._values[index] = _Unknown(
            index, vague.VagueMetadata("what an operation of torch.distributed or numpy returns")
        )
        if any(isinstance(self._values.get(i), _Unknown | None) for i in changed):
            changed = tuple(self._values)
        self._forget_data(self._values.get(i) for i in changed)

    def _forget_data(self, changed: Iterable[Any]) -> None:
        """Drop the data that torch keeps of small tensors, since an operation that does not run here changes them."""
        for value in changed:
            for t in torch.utils._pytree.tree_leaves(value):
                constant = getattr(t, "constant", None)
                if constant is not None:
                    self._mode.fake_tensor_converter.invalidate_constant_aliases(constant)

    def _changes_data_only(self, op: str, target: Any, operands: Any) -> bool:
        """Return whether an operation that changes its first operand changes the metadata of no tensor.

        If autograd records the operation, it may change requires_grad of all tensors that share the operand's memory.
        """
        name = target if op == "call_method" else getattr(target, "__name__", "")
        first = operands[0] if operands else None
        with self._modes():
            if torch.is_grad_enabled() or not isinstance(first, torch.Tensor | _Unknown):
                return False
        return name in _KEEP_METADATA or target in _IN_PLACE_OPERATORS

    def declared(
        self,
        index: int,
        like: int,
        dtype: torch.dtype | None,
        looks: fsdp.Looks | None,
        gradient: bool,
        computed: bool,
        sparse: bool,
    ) -> None:
        """Add a result that is known without a run: a copy of the node ``like`` with this dtype, a view of it if the
        dtype is None, its gradient (``sparse`` or dense), or, if ``like`` is -1, a parameter with these looks (a tensor
        that operations have computed, if ``computed`` is true)."""
        found: Any = self._values.get(like)
        if isinstance(found, _Unknown):
            self._values[index] = found
            return
        with self._modes(), unseen(), self._mode:
            if sparse:
                values = torch.empty((0, *found.shape[1:]), dtype=found.dtype, device=found.device)
                places = torch.empty((1, 0), dtype=torch.int64, device=found.device)
                self._values[index] = torch.sparse_coo_tensor(places, values, found.shape, check_invariants=False)
            elif gradient:
                self._values[index] = torch.empty_like(found, requires_grad=False)
            elif looks is not None:
                size, stride, of, device, requires_grad = looks
                made = torch.empty_strided(size, stride, dtype=of, device=device)
                if computed and requires_grad:
                    self._values[index] = with_history(made)
                elif computed:
                    self._values[index] = made
                else:
                    self._values[index] = torch.nn.Parameter(made, requires_grad=requires_grad)
            else:
                self._values[index] = torch.ops.aten.alias(found) if dtype is None else found.to(dtype, copy=True)

    def run(self, index: int, row: tuple[str, str, Any, tuple[Any, ...], dict[str, Any], str, str]) -> Any:
        """Run one node row (see _backends/rows.py) and keep its fake result.

        Returns _current_devices(), or None if the node has not run. Raises the operation's exceptions.
        """
        op, _name, target, args, kwargs = row[:5]
        if not isinstance(self._values.get(index, _UNSEEN), _Unknown | _Unseen):  # the node has run already
            return None
        self._values.pop(index, None)  # what was unknown is not known again if the operation raises now
        a = self._resolve(args)
        k = self._resolve(kwargs)
        for operand in torch.utils._pytree.tree_leaves((a, k)):
            if isinstance(operand, _Unknown):
                if not _changes(op, target, k):
                    self._values[index] = operand
                elif self._changes_data_only(op, target, a) and "out" not in k:
                    # a tensor of unknown metadata may share its memory with any other
                    self._forget_data(list(self._values.values()) if isinstance(a[0], _Unknown) else [a[0]])
                    self._values[index] = a[0]
                else:
                    self._stuck = operand.root
                    raise operand.error()
                return None
        if target in ("as_subclass", torch_function.as_subclass, torch_function.converted):
            self._values[index] = a[0]  # only the class changes, and Go knows the class
            return None
        if target is torch.autograd.grad:
            k = {**k, "retain_graph": True}  # it may run here before another pass that precedes it in the program
        if target in torch_function.PLAIN:
            target, a = torch_function.PLAIN[target], a[1:]
        # A wrong call raises in the user's code when it runs. So torch must not log it as an error now.
        noisy = logging.getLogger("torch._subclasses.fake_tensor")
        before, noisy.disabled = noisy.disabled, True
        self._watch.vague = None
        try:
            # These functions run outside the fake mode: inference mode saves the state and restores it later, and the
            # saved state must not contain the fake mode.
            mode = contextlib.nullcontext() if target in torch_state.ENTERING else self._mode
            with self._modes(), unseen(), mode, warned.hidden():
                value = getattr(a[0], target)(*a[1:], **k) if op == "call_method" else target(*a, **k)
        except (DynamicOutputShapeException, DataDependentOutputException) as error:
            value = _Unknown(index, error)
        finally:
            noisy.disabled = before
        if self._watch.vague is not None and not isinstance(value, _Unknown):
            value = _Unknown(
                index, vague.VagueMetadata(f"{self._watch.vague} of a tensor that is not dense and strided")
            )
            if _changes(op, target, k):
                self._stuck = index
                raise value.error()
        self._values[index] = value
        return _current_devices(target, value, (a, k))

    def forget(self, start: int) -> None:
        """Drop the nodes from this index on, because other nodes have replaced them."""
        for index in [i for i in self._values if i >= start]:
            del self._values[index]
            self._examples.pop(index, None)

    def own_memory(self, results: tuple[int, ...], others: tuple[int, ...]) -> bool:
        """Return whether the results are tensors that share memory neither with each other nor with ``others``."""
        made = [self._values.get(i) for i in results]
        if not all(isinstance(t, torch.Tensor) and vague.layout(t) is torch.strided for t in made):
            return False
        seen = {
            t.untyped_storage()._cdata
            for i in others
            for t in torch.utils._pytree.tree_leaves(self._values.get(i))
            if isinstance(t, torch.Tensor) and t.layout is torch.strided
        }
        storages = [t.untyped_storage()._cdata for t in made if isinstance(t, torch.Tensor)]
        return len({*storages}) == len(storages) and seen.isdisjoint(storages)

    def value(self, index: int) -> Any:
        """Return the fake value of a node that has run. Raise the recorded exception if its metadata are unknown."""
        found = self._values[index]
        if isinstance(found, _Unknown):
            raise found.error()
        return found

    def root(self, index: int) -> int:
        """Return the index of the operation whose unknown metadata make this node's metadata unknown.

        If the node has not run, this is the operation whose unknown result kept it from running. Returns -1 if there is
        none.
        """
        stuck, self._stuck = self._stuck, -1
        found = self._values.get(index)
        return found.root if isinstance(found, _Unknown) else stuck

    def result(self, index: int, row: tuple[str, str, Any, tuple[Any, ...], dict[str, Any], str]) -> tuple[Any, ...]:
        """Run a user's function (allow_in_graph) at this node.

        Returns (whether the function changed a tensor argument, a description of its result). A description is one of
        ("tensor",); ("value", v), if the value is v for all calls with the same metadata; ("list" | "tuple", class,
        (descriptions)); ("dict", class, (keys), (descriptions)); ("function",); ("unknown", what).

        The function runs on fake tensors. If that fails or its metadata can only be guessed, it runs on copies of the
        graph inputs, and on ones in place of computed values. Then only the kinds of the results are trusted, the
        metadata of result tensors are unknown, and the function's exceptions propagate.
        """
        if any(isinstance(x, _Unknown) for x in torch.utils._pytree.tree_leaves(self._resolve((row[3], row[4])))):
            raise vague.VagueMetadata("an operand whose metadata are unknown")
        self._watch.vague = None
        try:
            changed = self._run_watched(index, row, self._resolve)
            if self._watch.vague is None:
                return changed, _describe(self._values[index], True)
        except Exception:  # fake tensors do not support something that the function does
            self._values.pop(index, None)
            if isinstance(row[2], torch._ops.HigherOrderOperator):  # it works on fake tensors, so the call is wrong
                raise
        state = torch.get_rng_state()
        try:
            changed = self._run_watched(index, row, lambda arg: self._resolve(arg, self._concrete))
        finally:
            torch.set_rng_state(state)
        real = self._values[index]
        self._values[index] = _Unknown(
            index, vague.VagueMetadata("what a function computes from the data of its tensors")
        )
        return changed, _describe(real, False)

    def _run_watched(self, index: int, row: tuple[Any, ...], resolve: Callable[[Any], Any]) -> bool:
        a, k = resolve(row[3]), resolve(row[4])
        given = [t for t in torch.utils._pytree.tree_leaves((a, k)) if isinstance(t, torch.Tensor)]
        before = [(t, t._version) for t in given if not t.is_inference()]
        noisy = logging.getLogger("torch._subclasses.fake_tensor")
        was, noisy.disabled = noisy.disabled, True
        mode = self._mode if resolve == self._resolve else contextlib.nullcontext()
        try:
            with unseen(), mode, warned.hidden():
                self._values[index] = (_loop_once if row[2] is torch.ops.higher_order.while_loop else row[2])(*a, **k)
        finally:
            noisy.disabled = was
        # an inference tensor counts no changes
        return len(before) < len(given) or any(t._version != version for t, version in before)

    def _concrete(self, index: int) -> Any:
        """Return a real value in place of a node's value: a copy of a graph input, ones for a computed value."""
        if index in self._examples:
            t = self._examples[index]
            return t.detach().clone().requires_grad_(t.requires_grad)
        return torch.utils._pytree.tree_map_only(
            torch.Tensor,
            lambda t: torch.ones(
                t.shape, dtype=t.dtype, device=t.device, requires_grad=t.requires_grad, layout=t.layout
            ),
            self._values[index],
        )

    def _resolve(self, arg: Any, node: Callable[[int], Any] | None = None) -> Any:
        if isinstance(arg, Ref):
            return self._values[arg.index] if node is None else node(arg.index)
        if type(arg) in (list, tuple):
            return type(arg)(self._resolve(x, node) for x in arg)
        if type(arg) is dict:
            return {k: self._resolve(v, node) for k, v in arg.items()}
        if type(arg) is slice:
            return slice(*(self._resolve(x, node) for x in (arg.start, arg.stop, arg.step)))
        if type(arg) in (torch.device, str) and _UNINDEXED.fullmatch(str(arg)):
            return type(arg)(str(arg).partition(":")[0])  # tensors there have no index, but fake ones would
        return arg


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: torch.Tensor, _requires_grad: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device)


def with_history(t: torch.Tensor) -> torch.Tensor:
    """Return a tensor that looks like ``t``, requires gradients and is no leaf, if gradients are recorded now."""
    made: torch.Tensor = _Differentiable.apply(t, torch.empty(0, requires_grad=True))
    return made


def looks(t: torch.Tensor, requires_grad: bool) -> fsdp.Looks:
    """Return what a result looks like that an autograd.Function returns as ``t``, see Session.declared.

    ``requires_grad``: whether results of a differentiable dtype require gradients.
    """
    differentiable = t.dtype.is_floating_point or t.dtype.is_complex
    return tuple(t.shape), t.stride(), t.dtype, t.device, requires_grad and differentiable


def _loop_once(_cond: Any, body: Callable[..., Any], carried: tuple[Any, ...], outside: tuple[Any, ...]) -> Any:
    """Run the body of torch.while_loop once.

    The operator's own rule for fake tensors is not used: it would make symbols. Raises RuntimeError if the body changes
    the metadata of a carried tensor.
    """
    results = body(*carried, *outside)
    for before, after in zip(carried, results, strict=True):
        if (before.shape, before.stride(), before.dtype, before.device) != (
            *(after.shape, after.stride()),
            *(after.dtype, after.device),
        ):
            raise RuntimeError("a loop that changes what its tensors look like")
    return results


#: texts of devices whose tensors have no index
_UNINDEXED = re.compile(r"(cpu|meta):\d+")

_PLAIN = (int, float, complex, bool, str, bytes, torch.dtype, torch.device, torch.Size)


def _describe(value: Any, believed: bool) -> tuple[Any, ...]:
    """Return the description of a value, see Session.result. believed: trust the values of numbers and texts."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return ("tensor",)
    if value is None:
        return ("value", None)
    if kind is types.FunctionType or kind is functools.partial:
        return ("function",)
    if kind in _PLAIN:
        return ("value", value) if believed else ("unknown", kind.__name__)
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        word = "list" if kind is list else "tuple"
        return (word, kind, tuple(_describe(v, believed) for v in value))
    if kind is dict and all(type(k) in (str, int, bool) for k in value):
        return ("dict", kind, tuple(value), tuple(_describe(v, believed) for v in value.values()))
    return ("unknown", kind.__name__)
