"""Finds modules that look alike, cheaply. Guards then check whether the modules are really equal."""

from __future__ import annotations

from typing import Any

import torch

_PLAIN = frozenset((float, bool, str, bytes, complex, type(None)))
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))


class Kinds:
    """Assigns one number to all modules that look alike.

    Such modules have the same class, the same plain attributes, tensors with the same metadata, and submodules that
    look alike. Integers (such as an unused layer number) and other attributes need only have the same types. A Kinds
    object serves one translation and checks each module once. It runs no user code.
    """

    def __init__(self) -> None:
        self._of: dict[int, int] = {}
        self._kinds: dict[Any, int] = {}
        self._modules: list[Any] = []  # keeps the modules alive, so that their ids stay valid

    def of(self, module: Any) -> int:
        """Return a module's number, or -1 if it cannot be compared (a cycle of modules, an unusual ``__dict__``)."""
        known = self._of.get(id(module))
        if known is not None:
            return known
        self._of[id(module)] = -1
        self._modules.append(module)
        attributes = object.__getattribute__(module, "__dict__")
        if type(attributes) is not dict:
            return -1
        look: list[Any] = [type(module)]
        self._entries(attributes, look, nested=True)
        kind = self._kinds.setdefault(tuple(look), len(self._kinds))
        self._of[id(module)] = kind
        return kind

    def _entries(self, entries: dict[Any, Any], look: list[Any], nested: bool) -> None:
        for name, v in entries.items():
            look.append(name if type(name) is str else type(name))  # hashing a name of another type may run user code
            self._look(v, look, nested)

    def _look(self, v: Any, look: list[Any], nested: bool) -> None:
        kind = type(v)
        if kind in _PLAIN:
            look.append(v)
        elif kind is dict and nested:
            self._entries(v, look, nested=False)
        elif kind is dict:
            look.append(len(v))
        elif kind in _TENSORS:
            look += (v.shape, v.dtype, v.requires_grad)
        elif kind is tuple:
            look.append(v if all(type(i) is int or type(i) in _PLAIN for i in v) else len(v))
        elif issubclass(kind, torch.nn.Module):
            look.append(self.of(v))
        else:
            look.append(kind)
