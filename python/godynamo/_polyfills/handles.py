"""Stand-ins for the attributes of handles, the results of optimize(module), that our own descriptors compute."""

from __future__ import annotations

from typing import Any

from .._user import modules
from ._base import DECLINE, stands_for

__godynamo_polyfill__ = "module"


@stands_for(modules._Forward.__get__)
def forward(_descriptor: Any, handle: Any, _owner: Any = None) -> Any:
    if handle is None or handle._godynamo_forward is None:
        return DECLINE
    made = handle._godynamo_forward
    return made if made.function is handle._godynamo_module.forward.__func__ else DECLINE


@stands_for(modules._OriginalModule.__get__)
def original_module(_descriptor: Any, handle: Any, _owner: Any = None) -> Any:
    if handle is None:
        return DECLINE
    module = handle._godynamo_module
    return module._modules.get("_orig_mod", module)
