"""Describes objects of torch.distributed: groups and meshes by their ranks, placements and reductions by value.

Nothing here communicates with other ranks or imports a torch module. If a private attribute that this module reads is
missing, the translation is not stored.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from .._translator import foreign

_PLACEMENTS = "torch.distributed.tensor.placement_types"
#: placement class -> its fields
_FIELDS = {"Shard": ("dim",), "Replicate": (), "Partial": ("reduce_op",)}


def members(obj: Any) -> str | None:
    """Return a text that covers everything a translation may read from a group or a mesh; None for other objects.

    The text includes this process's rank, since a translation may contain it. Raises KeyError for a destroyed group.
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
    """Return the class name and the fields of a placement, or None for other objects."""
    name = type(obj).__name__
    if name in _FIELDS and foreign.is_constant(type(obj)):
        return name, tuple(getattr(obj, field) for field in _FIELDS[name])
    return None


def make_placement(name: str, fields: list[Any]) -> Any:
    """Return the placement that placement() described. Raises KeyError or TypeError for any other arguments."""
    if len(fields) != len(_FIELDS[name]):
        raise TypeError(f"{len(fields)} fields of {name}")
    return getattr(sys.modules[_PLACEMENTS], name)(*fields)


def reduction(obj: Any) -> str:
    """Return the name of a reduction such as torch.distributed.ReduceOp.SUM, or "" for other objects."""
    return str(obj.name) if foreign.is_reduction(type(obj)) else ""
