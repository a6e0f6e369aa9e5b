"""Runs what DistributedDataParallel does before and after its module's forward, as one operation each.

Neither runs during translation. ``described`` returns which tensors they pass on, and a guard compares it in each call.
"""

from __future__ import annotations

from typing import Any

import torch

#: (the device to which tensors are moved before forward, or None; whether results with a grad_fn are replaced; whether
#: copies replace them)
Described = tuple[torch.device | None, bool, bool]


def before(module: Any, tensors: tuple[torch.Tensor, ...]) -> None:
    """Prepare the reducer and the buffers. The tensors among the arguments are on the right device already."""
    module._pre_forward(*tensors)


def after(module: Any, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Prepare the reducer for backward, and return what takes the places of the tensors among the results."""
    return tuple(module._post_forward(tensors))


def described(module: Any) -> Described | None:
    """Describe what the module passes on, or return None if this is unknown: with mixed precision, or in a version of
    torch without one of the private attributes."""
    try:
        if module.mixed_precision is not None or module._use_python_reducer or module._delay_all_reduce_all_params:
            return None
        device = torch.device(module.device_type, module.device_ids[0]) if module.device_ids else None
        once = module.static_graph and not module._static_graph_delay_allreduce_enqueued
        replaces = once or (module.find_unused_parameters and not module.static_graph)
        return device, replaces, module._ddp_sink_clone
    except AttributeError:
        return None


class AsDescribed:
    """A guard on a DistributedDataParallel: it passes on what was described."""

    def __init__(self, told: Described) -> None:
        self.told = told

    def __call__(self, module: Any) -> bool:
        return described(module) == self.told
