"""The costs of a captured call besides its operations: guards, calls of torch's operators, memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch


def guards(kind: str, compiled: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"guards": their number in all entries, "guards_ns": nanoseconds to evaluate those of the call}.

    target: the original of compiled. guards_ns is missing if more than one entry serves a call or the engine does not
    report it.
    """
    if kind == "godynamo":
        return _ours(compiled, target, args, dict(kwargs))
    if kind == "torch.compile":
        return _torchs(target)
    return {}


def _ours(compiled: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    import godynamo

    entries = godynamo.cache_entries(compiled)
    found: dict[str, Any] = {"guards": sum(len(entry.parts) for entry in entries)}
    frame = _frame(target, args, kwargs)
    if frame is None:
        return found
    code, slots, where = frame
    if any(entry.orig_code is not code for entry in entries):
        return found  # other frames in the call have guards as well
    serving = [entry for entry in entries if len(slots) == entry.nslots and entry.check(*slots, globals=where)]
    if len(serving) == 1:
        found["guards_ns"] = guards_ns(serving[0], slots, where)
    return found


def guards_ns(entry: Any, slots: tuple[Any, ...], where: dict[str, Any], evaluations: int = 200) -> float:
    """Return the nanoseconds of one evaluation of an entry's guards in C: the best of 20 means over `evaluations`.

    Raises AssertionError if they do not hold.
    """
    from godynamo import _C

    taken = [_C.guard_time(entry, slots, where, evaluations) for _ in range(20)]
    if any(failures for _, failures in taken):
        raise AssertionError("the guards do not hold for the call that they serve")
    return min(ns for ns, _ in taken)


def _frame(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], Any] | None:
    """Return code, slots and globals of the frame that a call of target starts; None if it is no function or module."""
    if isinstance(target, torch.nn.Module):
        call = torch.nn.Module._wrapped_call_impl
        return call.__code__, (target, args, kwargs), call.__globals__
    if inspect.ismethod(target):
        target, args = target.__func__, (target.__self__, *args)
    if not inspect.isfunction(target):
        return None
    bound = inspect.signature(target, follow_wrapped=False).bind(*args, **kwargs)
    bound.apply_defaults()
    code = target.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    slots = tuple(bound.arguments[name] for name in code.co_varnames[:count])
    return code, (*slots, *(target.__closure__ or ())), target.__globals__


def _torchs(target: Any) -> dict[str, Any]:
    """Return the number of torch.compile's guards, from its own debugging functions; nothing if a version renames them.

    Their cost is reported with the processor's caches emptied, so it is not comparable with ours.
    """
    function = type(target).forward if isinstance(target, torch.nn.Module) else inspect.unwrap(target)
    try:
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list

        managers = [entry.guard_manager for entry in _debug_get_cache_entry_list(function.__code__)]
        if not managers:  # compiled under another code object
            return {}
        for manager in managers:
            if not manager.code_parts:
                manager.populate_code_parts_for_debugging()
        return {"guards": sum(len(manager.code_parts) for manager in managers)}
    except (ImportError, AttributeError, TypeError):
        return {}


def work(call: Callable[[], Any]) -> dict[str, int]:
    """Return the work that torch does in a call, independent of the machine's load.

    {"calls": number of operator calls, including nested ones; "bytes": peak of the memory allocated by the call}.
    """
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        output = call()
    now = most = calls = 0
    for event in profile.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
        else:
            calls += 1
    del output
    return {"calls": calls, "bytes": most}
