"""What the end of an object does, asked while translating."""

from __future__ import annotations

import gc
import types
from typing import Any

import torch

from . import _C

_type_mro = type.__dict__["__mro__"].__get__
_type_dict = type.__dict__["__dict__"].__get__

#: what is not looked into: it outlives a call, or its end shows nobody anything
_LASTING = (type, types.ModuleType, types.FunctionType, types.CodeType, types.BuiltinFunctionType, torch.Tensor)
_LEVELS = 3
_MANY = 64


def ends_in_code(obj: object) -> bool:
    """Whether the end of ``obj``, or of what it holds, may run the program's code: a ``__del__``, or the callback of a weak
    reference. Looks at few objects, three deep, and runs none of their code."""
    level: list[Any] = [obj]
    seen = {id(obj)}
    for _ in range(_LEVELS):
        if any(map(_ends_itself_in_code, level)):
            return True
        below: list[Any] = []
        for held in gc.get_referents(*level):
            if id(held) not in seen and not issubclass(type(held), _LASTING):
                seen.add(id(held))
                below.append(held)
        if not below or len(seen) > _MANY:
            return False
        level = below
    return False


def _ends_itself_in_code(obj: object) -> bool:
    return any("__del__" in _type_dict(cls) for cls in _type_mro(type(obj))) or _C.watched(obj)
