"""Lists the functions and tensor classes of torch.distributed whose calls run in the graph as in eager mode.

These functions communicate with other ranks, or handle tensors whose class dispatches operators in Python. The
translator never runs them: not while translating and not in a guard. Nothing here imports a module of torch, since
``torch.distributed.tensor`` takes 200 ms.
"""

from __future__ import annotations

import inspect
import sys
import types
from typing import Any

import torch

from . import classes

_COLLECTIVES = "torch.distributed.distributed_c10d"
_FUNCTIONAL = "torch.distributed._functional_collectives"
_TENSOR = "torch.distributed.tensor._api"
_PARALLEL = "torch.distributed.tensor.parallel.style"
_DDP = "torch.nn.parallel.distributed"
_FSDP = "torch.distributed.fsdp._fully_shard._fsdp_state"

#: what a call returns, the module, the functions' qualified names. A call returns "tensor", of a class that is not
#: known, "none", "object", or "work", which is None unless the argument async_op is true. After "tensor:" follows the
#: rule for what the result looks like (bytecode/translate/graph_foreign_sizes.go). Functions with "inline" are inlined
#: like the user's. The hooks of FSDP2 and the methods of DistributedDataParallel have details of their own
#: (_called/fsdp and _called/ddp).
_LISTS = (
    (
        "work",
        _COLLECTIVES,
        "all_reduce broadcast reduce all_gather all_gather_single all_gather_into_tensor gather scatter reduce_scatter "
        "reduce_scatter_single reduce_scatter_tensor all_to_all_single all_to_all barrier",
    ),
    ("none", _COLLECTIVES, "send"),
    ("object", _COLLECTIVES, "recv isend irecv _WorldMeta.WORLD"),
    (
        "tensor:same",
        _FUNCTIONAL,
        "wait_tensor broadcast all_reduce AsyncCollectiveTensor.wait AsyncCollectiveTensor.trigger_wait",
    ),
    (
        "tensor",
        _FUNCTIONAL,
        "all_gather_single all_gather_single_autograd reduce_scatter_single "
        "reduce_scatter_single_autograd all_gather_tensor all_gather_tensor_autograd reduce_scatter_tensor "
        "reduce_scatter_tensor_autograd all_to_all_single all_to_all_single_autograd permute_tensor",
    ),
    ("tensor", _TENSOR, "distribute_tensor"),
    ("tensor:whole", _TENSOR, "DTensor.from_local"),
    ("tensor:local", _TENSOR, "DTensor.to_local"),
    ("tensor:redistribute", _TENSOR, "DTensor.redistribute"),
    ("tensor:full", _TENSOR, "DTensor.full_tensor"),
    (
        "tensor:input",
        _PARALLEL,
        "ColwiseParallel._prepare_input_fn RowwiseParallel._prepare_input_fn SequenceParallel._prepare_input_fn",
    ),
    (
        "tensor:output",
        _PARALLEL,
        "ColwiseParallel._prepare_output_fn RowwiseParallel._prepare_output_fn SequenceParallel._prepare_output_fn",
    ),
    ("fsdp_before", _FSDP, "FSDPState._pre_forward"),
    ("fsdp_after", _FSDP, "FSDPState._post_forward"),
    ("ddp_before", _DDP, "DistributedDataParallel._pre_forward"),
    ("ddp_after", _DDP, "DistributedDataParallel._post_forward"),
    ("inline", _TENSOR, "distribute_module.<locals>.<lambda>"),
    (
        "inline",
        _PARALLEL,
        "PrepareModuleInput._prepare_input_arg PrepareModuleInput._prepare_input_fn "
        "PrepareModuleInput._prepare_input_kwarg_fn PrepareModuleInput._apply.<locals>.<lambda> "
        "PrepareModuleOutput._prepare_out_fn PrepareModuleOutput._apply.<locals>.<lambda>",
    ),
)

#: (module, qualified name) -> what a call returns
_RETURNS = {(module, name): gives for gives, module, names in _LISTS for name in names.split()}

#: methods and attributes that the classes of CLASSES add to torch.Tensor -> what they return, see _RETURNS
_MEMBERS = {
    "to_local": "tensor:local",
    "redistribute": "tensor:redistribute",
    "full_tensor": "tensor:full",
    "wait": "tensor:same",
    "trigger_wait": "tensor:same",
    "device_mesh": "object",
    "placements": "object",
}

#: the classes, as (module, name)
CLASSES = ((_TENSOR, "DTensor"), (_FUNCTIONAL, "AsyncCollectiveTensor"))

#: classes of immutable values that the functions take, as (module, name)
_CONSTANTS = tuple(("torch.distributed.tensor.placement_types", name) for name in "Shard Replicate Partial".split())


def returns(fn: types.FunctionType) -> str:
    """Return the detail of a function of kind "foreign" (see _RETURNS), or "".

    For "work", the position of the parameter async_op follows, as in "work:3".
    """
    name = fn.__qualname__
    # a wrapper has the globals of the decorator's module, and torch assigns some functions the package's __module__
    for module in (fn.__module__, fn.__globals__["__name__"]):
        found = _RETURNS.get((module, name), "")
        if found and ("<" in name or _named(module, name) is fn):  # else the user has wrapped torch's function
            if found == "work":
                return f"work:{list(inspect.signature(fn).parameters).index('async_op')}"
            return found
    return ""


def _named(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = inspect.getattr_static(found, part, None)
    return getattr(found, "fget", None) or getattr(found, "__func__", found)


def member(name: str) -> str:
    """Return what a method or attribute of a foreign tensor returns, see _MEMBERS, or "" for a name of torch.Tensor."""
    known = _MEMBERS.get(name)
    if known is not None:
        return known
    return "unknown" if any(name in vars(cls) for cls in _loaded(CLASSES)) else ""


def is_foreign(cls: type) -> bool:
    """Return whether tensors of this class are foreign: operations on them run in the graph as in eager mode."""
    return cls in _loaded(CLASSES)


def classes_of(kind: str) -> tuple[type, ...]:
    """Return the possible classes of a foreign tensor: kind "whole" is a DTensor, "local" is not, "" is either."""
    whole, waited = (_loaded((name,)) for name in CLASSES)
    return {"whole": whole, "local": (torch.Tensor, *waited), "": (torch.Tensor, *whole, *waited)}[kind]


def is_constant(cls: type) -> bool:
    """Return whether objects of this class, which has a metaclass of its own, are constants compared by ``==``."""
    return cls in _loaded(_CONSTANTS) or is_reduction(cls) or classes.is_pybind_enum(cls)


def is_reduction(cls: type) -> bool:
    """Return whether objects of this class are torch.distributed's reductions, such as ReduceOp.SUM."""
    return cls is _REDUCE


def is_operand(obj: Any) -> bool:
    """Return whether an object may be an operand of a foreign function without being known: a group, a mesh, the state
    of FSDP2 or a module."""
    known = _loaded((("torch.distributed.device_mesh", "DeviceMesh"), (_FSDP, "FSDPState")))
    return issubclass(type(obj), (*_GROUPS, *known, torch.nn.Module))  # isinstance would read obj.__class__


def parts(placements: Any, mesh: Any, dims: int) -> tuple[int, ...] | None:
    """Return into how many parts each dimension of a DTensor is split, or None if that is not known.

    ``placements`` has one placement for each dimension of the mesh, and ``dims`` is the tensor's number of dimensions.
    """
    found = [1] * dims
    types = sys.modules["torch.distributed.tensor.placement_types"]
    if type(placements) not in (tuple, list) or len(placements) != mesh.ndim:
        return None
    for placement, size in zip(placements, mesh.shape, strict=True):
        if type(placement) is types.Shard and -dims <= placement.dim < dims:
            found[placement.dim] *= size
        elif type(placement) not in (types.Replicate, types.Partial):
            return None
    return tuple(found)


def _loaded(names: tuple[tuple[str, str], ...]) -> tuple[type, ...]:
    found = (getattr(sys.modules.get(module), name, None) for module, name in names)
    return tuple(cls for cls in found if isinstance(cls, type))


_GROUPS: tuple[Any, ...] = ()
_REDUCE: Any = None
if torch.distributed.is_available():
    _GROUPS = (torch.distributed.ProcessGroup, torch.distributed.Work)
    _REDUCE = torch.distributed.ReduceOp.RedOpType


def rank_facts() -> list[Any]:
    """Return functions of a group that ask about this process; guards repeat the calls."""
    if not torch.distributed.is_available():
        return []
    return [torch.distributed.get_rank, torch.distributed.get_world_size]
