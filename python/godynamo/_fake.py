"""Metadata of graph values while translating, by torch's FakeTensor: asked for only where Go has no cheaper answer."""

from __future__ import annotations

import logging
from typing import Any

import torch

from ._runtime import Ref
from ._saved_tensors import unseen


class Session:
    """Runs the nodes of one graph on fake tensors, each once, in program order.

    Values are keyed by the node's index in the graph. Nothing here touches the real tensors: inputs are copied into the fake
    mode without data, random state is left alone.
    """

    def __init__(self) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode

        self._mode = FakeTensorMode(allow_non_fake_inputs=False)
        self._values: dict[int, Any] = {}

    def input(self, index: int, tensor: torch.Tensor) -> None:
        """Add a graph input that looks like ``tensor``."""
        self._values[index] = self._mode.from_tensor(tensor, static_shapes=True)

    def run(self, index: int, row: tuple[str, str, Any, tuple[Any, ...], dict[str, Any], str]) -> None:
        """Run one node row (see _runtime.compile_fx) and keep its fake result. Raises what the operation raises."""
        op, _name, target, args, kwargs, _trace = row
        a = self._resolve(args)
        k = self._resolve(kwargs)
        # A call that cannot work is the user's to see when the program runs it, not an error of torch's to log now.
        noisy = logging.getLogger("torch._subclasses.fake_tensor")
        before, noisy.disabled = noisy.disabled, True
        try:
            with unseen(), self._mode:
                value = getattr(a[0], target)(*a[1:], **k) if op == "call_method" else target(*a, **k)
        finally:
            noisy.disabled = before
        self._values[index] = value

    def value(self, index: int) -> Any:
        """The fake value of a node that has run."""
        return self._values[index]

    def _resolve(self, arg: Any) -> Any:
        if isinstance(arg, Ref):
            return self._values[arg.index]
        if type(arg) in (list, tuple):
            return type(arg)(self._resolve(x) for x in arg)
        if type(arg) is dict:
            return {k: self._resolve(v) for k, v in arg.items()}
        if type(arg) is slice:
            return slice(self._resolve(arg.start), self._resolve(arg.stop), self._resolve(arg.step))
        return arg
