"""Stand-ins for a decorator and a method of torch.optim."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import _use_grad_for_differentiable
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_avg_fn, get_swa_multi_avg_fn
from torch.utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)

from ._base import closures_like, stands_for

__godynamo_polyfill__ = "module"


def _plain() -> None: ...


@closures_like(_use_grad_for_differentiable(_plain))  # type: ignore[arg-type]
def use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``step``. torch's decorator also asks torch.compile to break the graph before and after the step."""

    def _use_grad(*args: Any, **kwargs: Any) -> Any:  # tracebacks may show this name, so it is torch's
        with torch.set_grad_enabled(args[0].defaults["differentiable"]):
            ret = func(*args, **kwargs)
        return ret

    return _use_grad


@stands_for(AveragedModel.update_parameters)
def update_parameters(self: AveragedModel, model: torch.nn.Module) -> None:
    """Update the averages. Where torch's method holds iterators of the parameters while it branches on the number of
    updates, this one holds lists."""
    if self.use_buffers:
        averages = [*self.module.parameters(), *self.module.buffers()]
        values = [*model.parameters(), *model.buffers()]
    else:
        averages, values = [*self.parameters()], [*model.parameters()]
    first = bool(self.n_averaged == 0)
    ours: list[torch.Tensor] = []
    theirs: list[torch.Tensor] = []
    for average, value in zip(averages, values, strict=False):
        copy = value.detach().to(average.device)
        ours.append(average.detach())
        theirs.append(copy)
        if first:
            average.detach().copy_(copy)
    if self.n_averaged > 0:
        _average(self, ours, theirs)
    if not self.use_buffers:
        for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
            average.detach().copy_(value.detach().to(average.device))
    self.n_averaged += 1


def _average(model: AveragedModel, ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    average = model.avg_fn
    if average is None or model.multi_avg_fn is not None:
        _average_lists(model, ours, theirs)
        return
    for mean, value in zip(ours, theirs, strict=True):
        count = model.n_averaged.to(mean.device)
        mean.detach().copy_(average(mean.detach(), value, count))


def _average_lists(model: AveragedModel, ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    """Average the tensors of each device and dtype together."""
    for (device, _), ((means, values), _) in _groups(model.multi_avg_fn, ours, theirs):
        count = model.n_averaged.to(device)
        if model.multi_avg_fn:
            model.multi_avg_fn(means, values, count)
        elif device is not None and device.type in _get_foreach_kernels_supported_devices():
            _equal_weights()(means, values, count)
        else:
            average = _equal_weight()
            for mean, value in zip(means, values, strict=True):
                mean.copy_(average(mean, value, count))


#: torch's functions have no types
_equal_weights: Any = get_swa_multi_avg_fn
_equal_weight: Any = get_swa_avg_fn
_exponential: Any = get_ema_multi_avg_fn
_TORCHS = [_exponential(), _equal_weights()]


def _groups(average: Any, ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> Any:
    """Return the groups. torch takes their order from a hash map, which the program's function may notice."""
    if average is not None and not any([_alike(average, known) for known in _TORCHS]):
        return _group_tensors_by_device_and_dtype([[*ours], [*theirs]]).items()
    groups: dict[Any, Any] = {}
    for mean, value in zip(ours, theirs, strict=True):
        key = (mean.device, mean.dtype)
        if value.dtype != mean.dtype:
            return _group_tensors_by_device_and_dtype([[*ours], [*theirs]]).items()
        if key not in groups:
            groups[key] = ([], []), None
        groups[key][0][0].append(mean)
        groups[key][0][1].append(value)
    return groups.items()


def _alike(average: Any, known: Any) -> bool:
    """Return whether a function has the code of one that torch's decorator has returned."""
    if type(average) is not types.FunctionType or average.__code__ != known.__code__:
        return False
    wrapped: Any = getattr(average, "__wrapped__", None)
    return type(wrapped) is types.FunctionType and wrapped.__code__ == known.__wrapped__.__code__
