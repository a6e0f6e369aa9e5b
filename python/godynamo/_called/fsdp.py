"""Runs the hooks of FSDP2 (``fully_shard``), which captured code calls as one operation each.

Before a module's forward, its FSDPState gathers the module's parameters and puts them into the modules' dicts; after
it, the sharded ones are put back. Captured code takes the parameters from the operation's results. What they look like
is known while translating, without a run of the hook: ``described`` tells it, and a guard asks again.
"""

from __future__ import annotations

from typing import Any

import torch

#: what a parameter looks like between the two hooks: (size, stride, dtype, device, requires_grad), or None if its class
#: computes this, as that of a DTensor does
Looks = tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.device, bool] | None

#: (path of the module below the one that has the hooks, name) of each place of a parameter
Places = tuple[tuple[tuple[str, ...], str], ...]

#: (dtype to which the hook converts floating point arguments, the same for results, [(places, looks)])
Described = tuple[torch.dtype | None, torch.dtype | None, tuple[tuple[Places, Looks], ...]]


def before(state: Any, module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Run the hook before forward with the tensors among the arguments.

    Returns what takes the tensors' places, and the parameters.
    """
    found, _ = state._pre_forward(module, tensors, {})
    return (*found, *_parameters(state))


def after(state: Any, module: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Run the hook after forward with the tensors among the results. Returns the same as ``before``."""
    return (*state._post_forward(module, None, tensors), *_parameters(state))


def _managed(state: Any) -> list[Any]:
    return [parameter for group in state._fsdp_param_groups for parameter in group.fsdp_params]


def _parameters(state: Any) -> list[torch.Tensor]:
    places = (parameter._module_info for parameter in _managed(state))
    return [place.module._parameters[place.param_name] for place in places]


def _looks(state: Any, parameter: Any) -> Looks:
    own = parameter._sharded_local_tensor
    if parameter.is_dtensor or parameter.is_spmd_types or hasattr(own, "fsdp_post_all_gather"):
        return None
    dtype, wanted = parameter.sharded_param.dtype, parameter.mp_policy.param_dtype
    return (
        tuple(parameter._orig_size),
        tuple(parameter._contiguous_orig_stride),
        wanted if wanted is not None and dtype.is_floating_point else dtype,
        state._device,
        parameter.sharded_param.requires_grad,
    )


def _places(parameter: Any) -> list[tuple[torch.nn.Module, str]]:
    info = parameter._module_info
    return [
        (info.module, info.param_name),
        *zip(info.shared_modules, info.shared_param_names, strict=True),
    ]


def _casts(state: Any) -> tuple[torch.dtype | None, torch.dtype | None]:
    policy = state._mp_policy
    return policy.param_dtype if policy.cast_forward_inputs else None, policy.output_dtype


def described(state: Any, module: torch.nn.Module) -> Described | None:
    """Describe what the hooks of ``module`` do, or return None if this is unknown.

    It is unknown if one state serves several modules, or if an attribute that this reads is missing: they are private,
    and other versions of torch may have none of them.
    """
    from torch.distributed.fsdp import _common_utils

    try:
        # older hooks replace more of the arguments than the tensors that require gradients
        if state._modules != (module,) or not hasattr(_common_utils, "replace_grad_tensors"):
            return None
        paths = {m: tuple(name.split(".")) if name else () for name, m in module.named_modules()}
        rows = tuple(
            (tuple((paths[m], name) for m, name in _places(parameter)), _looks(state, parameter))
            for parameter in _managed(state)
        )
        return (*_casts(state), rows)
    except (AttributeError, KeyError):
        return None


class AsDescribed:
    """A guard on a module: its hooks do what was described."""

    def __init__(self, told: Described) -> None:
        self.told = told

    def __call__(self, module: torch.nn.Module) -> bool:
        from torch.distributed.fsdp._fully_shard._fsdp_state import _get_module_fsdp_state

        try:
            state: Any = _get_module_fsdp_state(module)
            if state is None or state._modules != (module,) or _casts(state) != self.told[:2]:
                return False
            rows, managed = self.told[2], _managed(state)
            return len(rows) == len(managed) and all(map(self._same, managed, rows, [state] * len(rows)))
        except (AttributeError, KeyError):
            return False

    @staticmethod
    def _same(parameter: Any, row: tuple[Places, Looks], state: Any) -> bool:
        places, looks = row
        own = _places(parameter)
        if len(own) != len(places) or _looks(state, parameter) != looks:
            return False
        root = state._modules[0]
        for (path, name), (module, own_name) in zip(places, own, strict=True):
            at = root
            for part in path:
                at = at._modules[part]
            if at is not module or name != own_name:
                return False
        return True
