"""Finds backward passes of operators made with torch.library.custom_op, and reads what such passes change."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch
from torch._library import custom_ops, utils

from . import changes

#: the types of default values that the translator passes on
_PLAIN = (type(None), bool, int, float, str)


def backward_pass(fn: Any, positional: int, keywords: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return the definition of an operator with a registered backward pass, and how a call of it gives its arguments.

    The items after the definition are one for each argument of the schema: its position in the call (keywords follow
    the positional arguments), or a tuple with its default value. The result is None if there is no such pass, or if
    ``setup_context`` receives anything but this list (lists of tensors, keyword-only arguments).
    """
    if isinstance(fn, torch._ops.OpOverloadPacket):
        if fn.overloads() != ["default"]:  # type: ignore[no-untyped-call]
            return None
        fn = fn.default
    schema = fn._schema
    definition = custom_ops.OPDEFS.get(schema.name)
    if definition is None or definition._opoverload is not fn or definition._backward_fn is None:
        return None
    if any(utils.is_tensorlist_like_type(a.type) for a in (*schema.arguments, *schema.returns)):
        return None
    given: list[Any] = []
    for i, a in enumerate(schema.arguments):
        if a.kwarg_only:
            return None
        if i < positional:
            given.append(i)
        elif a.name in keywords:
            given.append(positional + keywords.index(a.name))
        elif a.has_default_value() and type(a.default_value) in _PLAIN:
            given.append((a.default_value,))
        else:
            return None
    return definition, *given


def backward_may_change(definition: Any) -> bool:
    """Return whether the backward pass of an operator may change objects that it has not made, whatever state the
    program is in."""
    return _may_change(definition._backward_fn, definition._setup_context_fn)


def function_may_change(cls: type[torch.autograd.Function]) -> bool:
    """Return the same for an autograd.Function."""
    return _may_change(cls.backward, cls.forward, cls.setup_context)


def _may_change(backward: Any, *before: Any) -> bool:
    """``before`` fill the context."""
    all_known = all(type(f) is FunctionType or f is None for f in (backward, *before))
    return not all_known or bool(changes.may_change([backward], fillers=before))
