"""torch: context managers that keep an object of C's for as long as they are entered.

The object is made while the graph runs (_torch_state); where the manager itself is needed as a real object, it is given its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.profiler import record_function

from .. import _torch_state
from ._base import DECLINE, StandIn, stands_for

__godynamo_polyfill__ = "module"


@stands_for(torch._C._InferenceMode)
class InferenceMode(StandIn):
    __real__ = torch._C._InferenceMode
    __public__ = ("__enter__", "__exit__")

    def __init__(self, mode: Any) -> None:
        self.mode = mode
        self.number: Any = None

    def __enter__(self) -> None:
        self.number = _torch_state.enter_inference_mode(self.mode)

    def __exit__(self, *_: Any) -> None:
        if self.number is not None:
            _torch_state.leave_entered(self.number)
        self.number = None

    def _escape(self) -> Any:
        if self.number is None:
            return (torch._C._InferenceMode, self.mode)
        return (_torch_state.adopt, self.number)


_torch_state.CONTEXTS[InferenceMode] = False


@stands_for(torch._C.DisableTorchFunctionSubclass)
class DisableTorchFunctionSubclass(StandIn):
    __real__: Any = torch._C.DisableTorchFunctionSubclass
    __public__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        self.number: Any = None

    def __enter__(self) -> None:
        self.number = _torch_state.enter_functions_off()

    def __exit__(self, *_: Any) -> None:
        if self.number is not None:
            _torch_state.leave_entered(self.number)
        self.number = None

    def _escape(self) -> Any:
        if self.number is None:
            return (torch._C.DisableTorchFunctionSubclass,)
        return (_torch_state.adopt, self.number)


_torch_state.CONTEXTS[DisableTorchFunctionSubclass] = False


@stands_for(torch._C.DisableTorchFunction)
class DisableTorchFunction(StandIn):
    __real__: Any = torch._C.DisableTorchFunction
    __public__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        self.number: Any = None

    def __enter__(self) -> None:
        self.number = _torch_state.enter_all_functions_off()

    def __exit__(self, *_: Any) -> None:
        if self.number is not None:
            _torch_state.leave_entered(self.number)
        self.number = None

    def _escape(self) -> Any:
        if self.number is None:
            return (torch._C.DisableTorchFunction,)
        return (_torch_state.adopt, self.number)


_torch_state.CONTEXTS[DisableTorchFunction] = False


class Record(StandIn):
    __real__ = torch.ScriptObject
    __public__ = ("end",)

    def __init__(self, number: Any) -> None:
        self.number: Any = number

    def end(self) -> None:
        _torch_state.leave_entered(self.number)
        self.number = None

    def _escape(self) -> Any:
        return DECLINE if self.number is None else (_torch_state.adopt, self.number)


@stands_for(record_function.__enter__)
def __enter__(self: Any) -> Any:
    self.record = Record(_torch_state.enter_record(self.name, self.args))
    return self


@stands_for(record_function.__exit__)
def __exit__(self: Any, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
    if not self.run_callbacks_on_exit:
        return DECLINE
    self.record.end()
    return None
