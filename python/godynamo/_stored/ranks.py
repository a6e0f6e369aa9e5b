"""Describes what torch.distributed makes: groups and meshes by the ranks in them, placements by their value.

Nothing here communicates or imports a module of torch. Private names of torch 2.6 to 2.15 are read; without one of
them, nothing is stored.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

_PLACEMENTS = "torch.distributed.tensor.placement_types"
#: class of placements -> its fields
_FIELDS = {"Shard": ("dim",), "Replicate": (), "Partial": ("reduce_op",)}
_REDUCE: Any = torch.distributed.ReduceOp.RedOpType if torch.distributed.is_available() else None


def members(obj: Any) -> str | None:
    """Return a text with all that a translation may know of a group or a mesh, or None for another object.

    Each rank has a text of its own, since a translation may contain the rank. Raises an Exception if torch no longer
    knows the group.
    """
    kind = type(obj)
    if torch.distributed.is_available() and kind is torch.distributed.ProcessGroup:
        ranks = torch.distributed.get_process_group_ranks(obj)
        return repr((obj.group_name, obj.name(), ranks, obj.rank()))
    meshes = sys.modules.get("torch.distributed.device_mesh")
    if meshes is not None and kind is meshes.DeviceMesh:
        names = list(obj._dim_group_names)
        return repr((obj.device_type, obj.mesh.tolist(), obj.mesh_dim_names, obj.get_coordinate(), names))
    return None


def placement(obj: Any) -> tuple[str, tuple[Any, ...]] | None:
    """Return the class name and the fields of a placement, or None for another object."""
    name = type(obj).__name__
    if name in _FIELDS and type(obj) is getattr(sys.modules.get(_PLACEMENTS), name, None):
        return name, tuple(getattr(obj, field) for field in _FIELDS[name])
    return None


def make_placement(name: str, fields: list[Any]) -> Any:
    """Return a placement with these fields. Raises KeyError and TypeError for what placement() did not return."""
    if len(fields) != len(_FIELDS[name]):
        raise TypeError(f"{len(fields)} fields of {name}")
    return getattr(sys.modules[_PLACEMENTS], name)(*fields)


def reduction(obj: Any) -> str:
    """Return the name of a ReduceOp's value, under which torch.distributed.ReduceOp has it, or ""."""
    return str(obj.name) if _REDUCE is not None and type(obj) is _REDUCE else ""
