"""torch's modes that captured code switches: grad mode, inference mode, autocast, profiler blocks, the default dtype.

While a frame is translated, the translator really switches the modes that the frame switches. So queries of torch, also
by FakeTensor, have the same results as in the user's code. The initial state is restored at the end of the translation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import profiler
from torch.nn import attention

from godynamo import _C

from .._core import core

#: Functions that switch modes. Their calls become nodes of the graph.
SETTERS = (
    "_C._set_grad_enabled",
    "set_autocast_enabled",
    "set_autocast_dtype",
    "set_autocast_cache_enabled",
    "autocast_increment_nesting",
    "autocast_decrement_nesting",
    "clear_autocast_cache",
    "_C._set_default_dtype",
)

#: Context managers that only switch modes. The value says whether they restore grad mode at their end: "prev" if they
#: keep the old one in ``prev``, "inside" if torch's object of the mode keeps it, else "".
CONTEXTS: dict[type, str] = {
    torch.no_grad: "prev",
    torch.enable_grad: "prev",
    torch.set_grad_enabled: "prev",
    torch.inference_mode: "inside",
    torch.autocast: "",
    torch.cpu.amp.autocast_mode.autocast: "",
    torch.cuda.amp.autocast_mode.autocast: "",
    profiler.record_function: "",
}

_DEVICES = ("cpu", "cuda")

#: The default dtype of which a snapshot says nothing.
_USUAL = torch.float32

State = tuple[Any, ...]

# ---- modes that torch leaves when an object is released ----


class _Entered(threading.local):
    """The modes that captured code has entered on this thread, outermost first.

    An item is ((number, function that enters the mode, its argument), torch's object for the mode).
    """

    def __init__(self) -> None:
        self.stack: list[tuple[tuple[int, Any, Any], Any]] = []


_entered = _Entered()


def _enter(how: Callable[[Any], Any], argument: Any) -> int:
    stack = _entered.stack
    number = stack[-1][0][0] + 1 if stack else 0
    stack.append(((number, how, argument), how(argument)))
    return number


def _leave(entry: tuple[tuple[int, Any, Any], Any]) -> None:
    (_, how, _), obj = entry
    if how is not _record:
        obj.__exit__(None, None, None)
    elif obj is not None and obj is not _UNSEEN:
        record, observer = obj
        if observer is not None:
            observer.pop_annotation()
        with torch._C.DisableTorchFunctionSubclass():
            torch.ops.profiler._record_function_exit._RecordFunction(record)


def _inference(mode: bool) -> Any:
    guard: Any = torch._C._InferenceMode(mode)
    guard.__enter__()
    return guard


#: What is entered where nothing sees the block: torch's own object would take most of the time of a small block.
_UNSEEN = object()


def _record(argument: tuple[str, str | None]) -> Any:
    if core.is_translating():
        return None  # the block's operations do not run while translating
    observer = getattr(profiler, "_active_cuspy_profiler_observer", None)
    if observer is None and _C.operators_unseen():
        return _UNSEEN
    return _begun(argument, observer)


def _begun(argument: tuple[str, str | None], observer: Any) -> tuple[Any, Any]:
    record = torch.ops.profiler._record_function_enter_new(*argument)
    if observer is not None:
        observer.push_annotation(argument[0])
    return record, observer


#: Dispatch keys that a trace adds to a thread. When torch's object of inference mode is left, it restores the keys of
#: the moment at which it was entered. If an operation raises in a trace, the mode is left only after the trace.
_KEYS_OF_TRACES = tuple(
    getattr(torch._C.DispatchKey, name) for name in ("PythonDispatcher", "Python", "PythonTLSSnapshot", "Functionalize")
)


def _keys_of_traces() -> list[tuple[bool, bool]]:
    """Return for each key whether it is included and whether it is excluded."""
    c: Any = torch._C
    included, excluded = c._dispatch_tls_is_dispatch_key_included, c._dispatch_tls_is_dispatch_key_excluded
    return [(included(key), excluded(key)) for key in _KEYS_OF_TRACES]


def _leave_after_trace(entry: tuple[tuple[int, Any, Any], Any]) -> None:
    """Leave a mode. If the trace in which it was entered has ended, keep the keys, and the flags that traces set."""
    c: Any = torch._C
    before, threads, views = _keys_of_traces(), c._is_multithreading_enabled(), c._is_view_replay_enabled()
    _leave(entry)
    if before == (now := _keys_of_traces()):
        return
    c._set_multithreading_enabled(threads)
    c._set_view_replay_enabled(views)
    for key, was, wanted in zip(_KEYS_OF_TRACES, now, before, strict=True):
        if was != wanted:
            c._dispatch_tls_set_dispatch_key_included(key, wanted[0])
            c._dispatch_tls_set_dispatch_key_excluded(key, wanted[1])


def enter_inference_mode(mode: bool) -> int:
    """Enter ``torch._C._InferenceMode(mode)``; return the number for leave_entered()."""
    return _enter(_inference, mode)


def _functions_off(_: None) -> Any:
    guard: Any = torch._C.DisableTorchFunctionSubclass()
    guard.__enter__()
    return guard


def enter_functions_off() -> int:
    """Enter ``torch._C.DisableTorchFunctionSubclass()``; return the number for leave_entered()."""
    return _enter(_functions_off, None)


def _all_functions_off(_: None) -> Any:
    guard: Any = torch._C.DisableTorchFunction()
    guard.__enter__()
    return guard


def enter_all_functions_off() -> int:
    """Enter ``torch._C.DisableTorchFunction()``; return the number for leave_entered()."""
    return _enter(_all_functions_off, None)


def _kernel(argument: tuple[tuple[Any, ...], bool]) -> Any:
    backends, set_priority = argument
    manager = attention.sdpa_kernel(list(backends), **({"set_priority": True} if set_priority else {}))
    manager.__enter__()
    return manager


def enter_sdpa_kernel(backends: tuple[Any, ...], set_priority: bool) -> int:
    """Enter ``torch.nn.attention.sdpa_kernel(backends, set_priority)``; return the number for leave_entered()."""
    return _enter(_kernel, (backends, set_priority))


def enter_record(name: str, args: str | None) -> int:
    """Begin a profiler block; return the number for leave_entered()."""
    return _enter(_record, (name, args))


def _taken(number: int) -> tuple[tuple[int, Any, Any], Any]:
    stack = _entered.stack
    return stack.pop(next(i for i, (key, _) in enumerate(stack) if key[0] == number))


def leave_entered(number: int) -> None:
    """Leave the mode entered under this number."""
    _leave(_taken(number))


def shared(number: int) -> Any:
    """Return torch's object of the profiler block entered under this number. Captured code still ends the block."""
    stack = _entered.stack
    at = next(i for i, (key, _) in enumerate(stack) if key[0] == number)
    key, obj = stack[at]
    if obj is _UNSEEN:
        obj = _begun(key[2], None)
        stack[at] = key, obj
    return obj[0]


def adopt(number: int) -> Any:
    """Return torch's object of the mode entered under this number. From now on the caller must leave the mode."""
    (_, how, argument), obj = _taken(number)
    if how is not _record:
        return obj
    return (_begun(argument, None) if obj is _UNSEEN else obj)[0]


#: Functions that create or release an object of an entered mode.
ENTERING = (
    enter_inference_mode,
    enter_functions_off,
    enter_all_functions_off,
    enter_sdpa_kernel,
    enter_record,
    leave_entered,
)


def entered() -> tuple[Any, ...]:
    """Return the modes that captured code has entered on this thread, outermost first."""
    return tuple(key for key, _ in _entered.stack)


def entered_is(keys: tuple[Any, ...]) -> Callable[[Any], bool]:
    """Return a guard predicate that holds if captured code has entered exactly these modes."""
    return lambda _: entered() == keys


# ---- the whole state ----


def autocasts(state: State) -> bool:
    """Return whether autocast is on for a device type."""
    return any(enabled for enabled, _ in state[4 : 4 + len(_DEVICES)])


def default_dtype(state: State) -> torch.dtype:
    """Return the default dtype."""
    found: torch.dtype = (*state[4 + len(_DEVICES) :], _USUAL)[0]
    return found


def snapshot() -> State:
    """Read entered modes, grad mode, autocast's cache switch and nesting, (enabled, dtype) per device type, and the
    default dtype if it is not torch.float32."""
    torch.autocast_increment_nesting()
    default = torch.get_default_dtype()
    return (
        entered(),
        torch.is_grad_enabled(),
        torch.is_autocast_cache_enabled(),
        torch.autocast_decrement_nesting(),
        *((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _DEVICES),
        *([] if default is _USUAL else [default]),
    )


def with_grad(state: State, on: bool) -> State:
    """Return the state with another grad mode."""
    return (state[0], on, *state[2:])


def with_default_dtype(state: State, dtype: torch.dtype) -> State:
    """Return the state with another default dtype."""
    return (*state[: 4 + len(_DEVICES)], *([] if dtype is _USUAL else [dtype]))


def restore(state: State) -> None:
    """Restore a snapshot; leaving the outermost autocast drops its cache, as autocast.__exit__ does."""
    if state == snapshot():
        return
    wanted, grad, cache, nesting, *devices = state[: 4 + len(_DEVICES)]
    stack = _entered.stack
    while stack and entered() != wanted[: len(stack)]:
        _leave_after_trace(stack.pop())
    for _, how, argument in wanted[len(stack) :]:
        _enter(how, argument)
    torch._C._set_grad_enabled(grad)
    torch.set_autocast_cache_enabled(cache)
    now = torch.autocast_increment_nesting()
    while now > nesting:
        now = torch.autocast_decrement_nesting()
        if now == 0:
            torch.clear_autocast_cache()
    while now < nesting:
        now = torch.autocast_increment_nesting()
    for device, (enabled, dtype) in zip(_DEVICES, devices, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    if torch.get_default_dtype() is not default_dtype(state):
        torch.set_default_dtype(default_dtype(state))


def restoring(state: State) -> Callable[[], None]:
    """Return a function that restores a snapshot, for graphs of backends that trace with AOTAutograd.

    A graph that would end in other modes than those in which it begins calls this function at its start and at its end.
    """

    def put_modes_back() -> None:
        restore(state)

    return put_modes_back


# ---- modes that stay entered if an exception from a signal or another thread ends torch's own code ----

#: State that torch.fx's symbolic tracing changes: its patcher, whether it traces, and two functions of torch.nn.Module.
Tracing = tuple[Any, bool, tuple[Any, ...]]
Everything = tuple[State, int, int, int, Tracing]
_PATCHED = "__call__", "__getattr__"


def _tracing() -> Tracing:
    fx: Any = torch.fx._symbolic_trace
    flag = fx._get_is_fx_tracing() if hasattr(fx, "_get_is_fx_tracing") else fx._is_fx_tracing_flag
    return fx.CURRENT_PATCHER, flag, tuple(torch.nn.Module.__dict__.get(name) for name in _PATCHED)


def _restore_tracing(before: Tracing) -> None:
    fx: Any = torch.fx._symbolic_trace
    patcher, flag, functions = before
    if fx.CURRENT_PATCHER is not patcher:
        fx.CURRENT_PATCHER.revert_all_patches()
        fx.CURRENT_PATCHER = patcher
    for name, function in zip(_PATCHED, functions, strict=True):
        if torch.nn.Module.__dict__.get(name) is not function:
            setattr(torch.nn.Module, name, function)
    if not hasattr(fx, "_set_is_fx_tracing"):
        fx._is_fx_tracing_flag = flag
    elif fx._get_is_fx_tracing() is not flag:
        fx._set_is_fx_tracing(flag)


def everything() -> Everything:
    """Return a snapshot, the depths of the stacks of function modes, dispatch modes and functorch, and FX's tracing."""
    c: Any = torch._C
    layers = c._functorch.get_dynamic_layer_stack_depth()
    return snapshot(), c._len_torch_function_stack(), c._len_torch_dispatch_stack(), layers, _tracing()


def restore_everything(before: Everything) -> None:
    """Leave every mode entered since everything() returned ``before``, without calling its ``__exit__``.

    This is necessary because a signal handler may raise after a mode is entered and before the ``try`` that leaves it,
    or while the mode is left.
    """
    from torch.utils import _python_dispatch

    c: Any = torch._C
    state, functions, dispatch, layers, tracing = before
    if c._functorch.get_dynamic_layer_stack_depth() > layers:
        c._functorch.pop_dynamic_layer_stack_and_undo_to_depth(layers)
    while c._len_torch_dispatch_stack() > dispatch:
        _python_dispatch._pop_mode()
    while c._len_torch_function_stack() > functions:
        c._pop_torch_function_stack()
    _restore_tracing(tracing)
    restore(state)


def leave_dispatch_modes(_: None) -> None:
    """Leave all dispatch modes after an aborted translation. No translation begins under a dispatch mode."""
    restore_everything((snapshot(), torch._C._len_torch_function_stack(), 0, 0, _tracing()))


# ---- random numbers ----


def _generators() -> list[torch.Generator]:
    """Return the CPU's default generator, and the default generators of devices whose runtime has started."""
    found = [torch.default_generator]
    for device in (torch.cuda, torch.xpu):
        if device.is_initialized():
            found += device.default_generators
    return found


def random_state() -> list[tuple[torch.Generator, torch.Tensor]]:
    """Read the states of torch's default generators."""
    return [(g, g.get_state()) for g in _generators()]


def put_random_state(states: list[tuple[torch.Generator, torch.Tensor]]) -> None:
    """Restore the states read by random_state()."""
    for generator, state in states:
        generator.set_state(state)
