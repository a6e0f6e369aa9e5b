"""Stand-ins for torch's context managers that hold a C object while they are entered.

The C object is created when the graph runs (torch_state). If the real object of the manager is needed while the manager
is entered, it is that C object.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.profiler import record_function
from torch.nn import attention
from torch.utils._device import DeviceContext, _device_constructors

from .._called import torch_state
from ._base import DECLINE, StandIn, stands_for

__godynamo_polyfill__ = "module"


class Entered(StandIn):
    """A context manager. While it is entered, ``number`` is its key in torch_state; otherwise ``number`` is None."""

    __public__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        self.number: Any = None

    def __exit__(self, *_: Any) -> None:
        if self.number is not None:
            torch_state.leave_entered(self.number)
        self.number = None

    def _made_by(self) -> tuple[Any, ...]:
        return (self.__real__,)

    def _escape(self) -> Any:
        if self.number is None:
            return self._made_by()
        return (torch_state.adopt, self.number)


@stands_for(torch._C._InferenceMode)
class InferenceMode(Entered):
    __real__ = torch._C._InferenceMode

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        self.number = None

    def __enter__(self) -> None:
        self.number = torch_state.enter_inference_mode(self.mode)

    def _made_by(self) -> tuple[Any, ...]:
        return (self.__real__, self.mode)


@stands_for(torch._C.DisableTorchFunctionSubclass)
class DisableTorchFunctionSubclass(Entered):
    __real__: Any = torch._C.DisableTorchFunctionSubclass

    def __enter__(self) -> None:
        self.number = torch_state.enter_functions_off()


@stands_for(torch._C.DisableTorchFunction)
class DisableTorchFunction(Entered):
    __real__: Any = torch._C.DisableTorchFunction

    def __enter__(self) -> None:
        self.number = torch_state.enter_all_functions_off()


class SdpaKernel(Entered):
    __real__ = type(attention.sdpa_kernel([]))

    def __init__(self, backends: Any, set_priority: Any) -> None:
        self.backends = backends
        self.set_priority = set_priority
        self.number = None
        self.spent = False

    def __enter__(self) -> Any:
        if self.spent:
            torch_state.adopt(-1)  # never captured, so the graph breaks here, and CPython raises
        self.spent = True
        backends = self.backends
        if type(backends) is not list:
            backends = (backends,)
        self.number = torch_state.enter_sdpa_kernel(tuple(backends), self.set_priority)
        return {}

    def __exit__(self, *_: Any) -> Any:
        if self.number is None:
            torch_state.adopt(-1)
        torch_state.leave_entered(self.number)
        self.number = None
        return False

    def _made_by(self) -> Any:
        return DECLINE if self.spent else (attention.sdpa_kernel, self.backends, self.set_priority)


@stands_for(attention.sdpa_kernel)
def sdpa_kernel(backends: Any, set_priority: Any = False) -> Any:
    if (type(backends) is not list and type(backends) is not attention.SDPBackend) or type(set_priority) is not bool:
        return DECLINE
    return SdpaKernel(backends, set_priority)


for _manager in (DisableTorchFunctionSubclass, DisableTorchFunction, SdpaKernel):
    torch_state.CONTEXTS[_manager] = ""
torch_state.CONTEXTS[InferenceMode] = "inside"


class Record(StandIn):
    __real__ = torch.ScriptObject
    __public__ = ("end",)
    __shares__ = True

    def __init__(self, number: Any) -> None:
        self.number: Any = number

    def end(self) -> None:
        torch_state.leave_entered(self.number)
        self.number = None

    def _escape(self) -> Any:
        return DECLINE if self.number is None else (torch_state.shared, self.number)


@stands_for(record_function.__enter__)
def __enter__(self: Any) -> Any:
    self.record = Record(torch_state.enter_record(self.name, self.args))
    return self


@stands_for(record_function.__exit__)
def __exit__(self: Any, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
    if not self.run_callbacks_on_exit:
        return DECLINE
    self.record.end()
    return None


_device_constructors()  # fills its cache: the call of a mode's handler is then a hit, which captured code looks up


@stands_for(torch.device.__enter__)
def enter_device(self: Any) -> Any:
    torch._C._push_on_torch_function_stack(DeviceContext(self))
    return self


@stands_for(torch.device.__exit__)
def leave_device(self: Any, *_: Any) -> None:
    torch._C._pop_torch_function_stack()
