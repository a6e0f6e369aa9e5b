"""Compares one call of a torch function or module under eager and under godynamo.

Compared are value (bit by bit where eager is deterministic), dtype, shape, strides, aliasing, gradients, the arguments
afterwards, the state of the module and of the random generator, and exceptions by type and text. Also recorded is
whether a call was captured in one graph, and if not, why.
"""

from __future__ import annotations

import copy
import hashlib
import random
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch.utils import _pytree

import godynamo
from godynamo import _C, utils
from harness.device import deterministic, nondeterministic, random_state

#: a miss, then a hit; preceded by a lazy module's first call
CALLS = 2
SEED = 1234


@dataclass
class Case:
    """A call; ``make`` returns a new callable each time."""

    name: str
    make: Callable[[], Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    valued: bool = True  #: False if eager leaves memory uninitialized
    counted: bool = True  #: whether one graph is expected


@dataclass
class Verdict:
    """The result of one case."""

    ran: bool  #: eager returned a result and raised no exception
    wrong: list[str]  #: the differences between godynamo's calls and eager's, by backend
    one: bool  #: the whole-graph backend received one graph in each translation, without a break
    breaks: Counter[str]
    again: bool = False  #: a later call was translated again, since the first one had changed what the guards check
    valued: bool = True  #: values were compared; False if eager's own differ from call to call, or are uninitialized


# ---- calls -----------------------------------------------------------------------------------------------------------


def caller_of(op: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Python function that calls ``op``; its code object is new, so it has no marks from other cases."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(), call.__globals__, op_name(op), None, call.__closure__)


def op_name(op: Any) -> str:
    """Return a name for an operator."""
    return str(getattr(op, "__name__", type(op).__name__))


def copies(tree: Any, detached: bool = False) -> Any:
    """Copy all tensors, as leaves that share memory where the originals do; leave other values as they are.
    If ``detached``, no copy requires a gradient."""
    memo: dict[int, Any] = {}
    kept: list[Any] = []

    def one(t: Any) -> Any:
        if not isinstance(t, torch.Tensor):
            return copy.deepcopy(t, memo) if isinstance(t, torch.nn.Module) else t
        if id(t) not in memo:
            kept.append(t)
            made = copy.deepcopy(t.detach(), memo) if t.layout is torch.strided else t.detach().clone()
            made.requires_grad_(t.requires_grad and not detached)
            memo[id(t)] = made
        return memo[id(t)]

    return _pytree.tree_map(one, tree)


# ---- outcomes of calls -----------------------------------------------------------------------------------------------


class Describer:
    """Describes values as plain data; a tensor or storage that occurred before is a number, so that aliasing shows."""

    def __init__(self, valued: bool) -> None:
        self._valued = valued
        self._seen: dict[int, int] = {}
        self._storages: dict[int, int] = {}
        self._keep: list[Any] = []

    def tree(self, value: Any) -> Any:
        """Describe any value that an operator returns."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.nn.utils.rnn.PackedSequence) or (isinstance(value, (tuple, list))):
            return (type(value).__name__, [self.tree(v) for v in value])
        if isinstance(value, dict):
            return (type(value).__name__, [(self.tree(k), self.tree(v)) for k, v in value.items()])
        if isinstance(value, torch.nn.Module):
            state = [(k, self.tree(v)) for k, v in value.state_dict(keep_vars=True).items()]
            return (type(value).__name__, state, [m.training for m in value.modules()])
        if isinstance(value, float):
            return ("float", value.hex() if self._valued else "")
        if isinstance(value, complex):
            return ("complex", value.real.hex(), value.imag.hex())
        if callable(value):
            return (type(value).__name__, op_name(value))
        if type(value).__str__ is object.__str__ and type(value).__repr__ is object.__repr__:  # shows its address
            return (type(value).__name__, self._fields(value))
        return (type(value).__name__, str(value))

    def _fields(self, value: Any) -> Any:
        if id(value) in self._seen:
            return ("again", self._seen[id(value)])
        self._seen[id(value)] = len(self._seen)
        self._keep.append(value)
        return [(name, self.tree(v)) for name, v in getattr(value, "__dict__", {}).items()]

    def _tensor(self, t: torch.Tensor) -> Any:
        if id(t) in self._seen:
            return ("again", self._seen[id(t)])
        self._seen[id(t)] = len(self._seen)
        self._keep.append(t)
        known: list[Any] = [type(t).__name__, str(t.dtype), str(t.layout), str(t.device), t.requires_grad, t.is_leaf]
        known.append(type(t.grad_fn).__name__)
        if t.is_nested:
            return (*known, [self._tensor(x) for x in t.detach().unbind()])
        if t.layout is not torch.strided:
            # Operations that autograd runs on sparse tensors are not part of the case.
            return (*known, tuple(t.shape), self._bits(t.detach().to_dense()))
        known += [tuple(t.shape), t.stride(), t.storage_offset(), t.is_conj(), t.is_neg(), t._version]
        if t._is_zerotensor():  # has no memory
            return (*known, "zeros")
        storage = t.untyped_storage().data_ptr()
        if storage and t.numel():
            known.append(("memory", self._storages.setdefault(storage, len(self._storages))))
        return (*known, self._bits(t.detach()))

    def _bits(self, t: torch.Tensor) -> Any:
        if not self._valued:
            return "any"
        if t.is_quantized:
            t = t.dequantize()
        flat = t.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        if t.numel() <= 4:
            return str(flat.tolist())
        return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def tensors_of(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a tree."""
    return [t for t in _pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def consumed(value: Any) -> Any:
    """Return the items of a generator, which may be generators themselves, or the value."""
    return [consumed(v) for v in value] if isinstance(value, (map, types.GeneratorType)) else value


def outcome(fn: Callable[..., Any], target: Any, case: Case, valued: bool) -> dict[str, Any]:
    """Return the outcome of one call; ``target`` is the module whose state and parameters are compared, or None."""
    args, kwargs = copies((case.args, case.kwargs))
    torch.manual_seed(SEED)
    random.seed(SEED)
    numpy.random.seed(SEED)
    d = Describer(valued)
    out: dict[str, Any] = {"how": "returned"}
    value = None
    try:
        value = consumed(fn(*args, **kwargs))
    except Exception as error:
        out["how"] = f"raised {type(error).__name__}: {error}"
    out["random"] = random_state()
    out["arguments"] = d.tree([list(args), kwargs])
    out["value"] = d.tree(value)
    out["tensors"] = len(tensors_of(value))
    if target is not None:
        out["state"] = d.tree(target)
    out["gradients"] = _gradients(value, args, kwargs, target, Describer(valued))
    return out


def _gradients(value: Any, args: Any, kwargs: Any, target: Any, d: Describer) -> Any:
    outputs = [t for t in tensors_of(value) if t.requires_grad and t.grad_fn is not None]
    leaves = [t for t in tensors_of([args, kwargs]) if t.requires_grad and t.is_leaf]
    if isinstance(target, torch.nn.Module):
        leaves += [p for p in target.parameters() if p.requires_grad and not torch.nn.parameter.is_lazy(p)]
    if not outputs or not leaves:
        return None
    try:
        given = [
            torch.linspace(0.5, 1.5, max(t.numel(), 1)).to(t.device, t.dtype)[: t.numel()].reshape(t.shape)
            for t in outputs
        ]
        found = torch.autograd.grad(outputs, leaves, given, allow_unused=True)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    return d.tree(found)


def _weights(t: torch.Tensor) -> torch.Tensor:
    """Return a gradient of an output: numbers from 0.5 to 1.5."""
    return torch.linspace(0.5, 1.5, max(t.numel(), 1)).to(t.device, t.dtype)[: t.numel()].reshape(t.shape)


# ---- the comparison --------------------------------------------------------------------------------------------------


class Recorder:
    """A whole-graph backend that runs graphs unchanged and counts them."""

    __godynamo_backend__ = True

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        gm.graph.lint()
        self.graphs += 1
        return gm.forward


def _calls(case: Case, backend: Any, valued: bool) -> list[dict[str, Any]]:
    made = case.make()
    target = made if isinstance(made, torch.nn.Module) else None
    calls = CALLS + isinstance(made, torch.nn.modules.lazy.LazyModuleMixin)
    fn = made if backend is None else godynamo.optimize(made, backend=backend)
    return [outcome(fn, target, case, valued) for _ in range(calls)]


def judge(case: Case) -> Verdict:
    """Run a case under eager and with both kinds of backend."""
    with deterministic():
        plain = _calls(case, None, case.valued)
        valued = case.valued
        if valued and (_calls(case, None, True) != plain or nondeterministic(lambda: _calls(case, None, True))):
            valued = False
            plain = _calls(case, None, False)
        wrong: list[str] = []
        one, again, breaks = False, False, Counter[str]()
        for kind in ("inline", "whole graph"):
            recorder = Recorder()
            _before()
            ours = _calls(case, "eager" if kind == "inline" else recorder, valued)
            if kind == "whole graph":
                breaks = Counter(utils.counters["graph_break"])
                frames = utils.counters["frames"]
                # A frame without anything to capture is left to CPython.
                nothing = not recorder.graphs and not plain[0]["tensors"] and not tensors_of([case.args, case.kwargs])
                again = frames["total"] > 1 and sum(utils.counters["recompiles"].values()) == frames["total"] - 1
                one = not breaks and (frames["total"] == 1 or again) and recorder.graphs <= frames["total"]
                one = one and (nothing or frames["ok"] == frames["total"])
                if not one and not breaks:
                    breaks[f"no break: {recorder.graphs} graphs, frames {dict(frames)}"] += 1
            if _C.counters()["internal_errors"]:
                wrong.append(f"{kind}: internal error")
            wrong += [f"{kind}, call {i}: {d}" for i, (p, o) in enumerate(zip(plain, ours)) for d in difference(p, o)]
    return Verdict(plain[0]["how"] == "returned", wrong, one, breaks, again and one, valued)


def _before() -> None:
    """Reset the counters."""
    godynamo.reset()
    utils.counters.clear()


def difference(plain: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    """Return how an outcome differs from eager's, a text for each part."""
    return [f"{key}: {_short(plain[key])} became {_short(ours[key])}" for key in plain if plain[key] != ours[key]]


def _short(x: Any) -> str:
    text = str(x)
    return text if len(text) < 400 else text[:400] + " ..."
