"""The comparison of harness.capture, with the number of graphs that a row of docs/conformance.md requires.

The rows use these codes. G and C are ``one_graph``; for C, a folded constant is returned together with a tensor
operation, since otherwise CPython could have run the frame. B is ``split``: captured in at most a given number of
graphs, where one graph without a break also passes. S and X are ``same``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import godynamo
from harness.capture import RecordingBackend, break_reasons, check, nb, unsupported


def one_graph(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> RecordingBackend:
    """Check that fn is captured as one graph, without a graph break, and returns what CPython returns."""
    godynamo.reset()
    recorder = same(fn, *args, **kwargs)
    assert not break_reasons(), break_reasons()
    assert len(recorder) == 1, [recorder.ops(i) for i in range(len(recorder))]
    return recorder


def split(fn: Callable[..., Any], *args: Any, at_most: int = 2, **kwargs: Any) -> RecordingBackend:
    """Check that fn returns CPython's result and is captured in one to ``at_most`` graphs."""
    godynamo.reset()
    recorder = same(fn, *args, **kwargs)
    assert 1 <= len(recorder) <= at_most, ([recorder.ops(i) for i in range(len(recorder))], break_reasons())
    return recorder


def same(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> RecordingBackend:
    """Check that fn returns CPython's result, with any number of graphs."""
    return check(fn, *args, **kwargs)


def x3() -> torch.Tensor:
    """Return a small tensor without zeros."""
    return torch.tensor([1.5, -2.0, 3.25])


__all__ = ["RecordingBackend", "break_reasons", "check", "nb", "one_graph", "same", "split", "unsupported", "x3"]
