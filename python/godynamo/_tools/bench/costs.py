"""Measures costs of a captured call that its time does not show: guards, operator calls, and memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch


def guards(kind: str, compiled: Any, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"guards": the number of guards of all entries, "guards_ns": time to evaluate the guards of this call}.

    target: the function or module that ``compiled`` was made from. The time is in nanoseconds. It is missing if the
    call runs several frames or several entries serve it, and for other engines than godynamo.
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
        return found  # the call runs other frames, which have guards too
    serving = [entry for entry in entries if len(slots) == entry.nslots and entry.check(*slots, globals=where)]
    if len(serving) == 1:
        found["guards_ns"] = guards_ns(serving[0], slots, where)
    return found


def guards_ns(entry: Any, slots: tuple[Any, ...], where: dict[str, Any], evaluations: int = 200) -> float:
    """Return the nanoseconds of one evaluation of an entry's guards in C, the best of 20 means over `evaluations`.

    Raises AssertionError if the guards do not hold.
    """
    from godynamo import _C

    taken = [_C.guard_time(entry, slots, where, evaluations) for _ in range(20)]
    if any(failures for _, failures in taken):
        raise AssertionError("the guards do not hold for the call that they serve")
    return min(ns for ns, _ in taken)


def _frame(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], Any] | None:
    """Return the code, slots and globals of the frame of a call; None if ``target`` is no function or module."""
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
    """Return the number of torch.compile's guards from torch's debugging functions, {} if this torch lacks them.

    torch reports the guards' cost with empty processor caches, so it is not comparable with ours and is left out.
    """
    function = type(target).forward if isinstance(target, torch.nn.Module) else inspect.unwrap(target)
    try:
        from torch._dynamo.eval_frame import _debug_get_cache_entry_list

        managers = [entry.guard_manager for entry in _debug_get_cache_entry_list(function.__code__)]
        if not managers:  # the entries belong to another code object
            return {}
        for manager in managers:
            if not manager.code_parts:
                manager.populate_code_parts_for_debugging()
        return {"guards": sum(len(manager.code_parts) for manager in managers)}
    except (ImportError, AttributeError, TypeError):
        return {}


def work(call: Callable[[], Any]) -> dict[str, int]:
    """Return how much work torch does in a call. The numbers do not depend on the machine's load.

    They are {"calls": number of operator calls, including nested ones; "bytes": peak of the memory that the call
    allocates}.
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
