"""The device of the tests that run on any device: the CPU, or what GODYNAMO_DEVICE says (`make gpu` says cuda)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree

DEVICE = os.environ.get("GODYNAMO_DEVICE", "cpu")

#: functions of torch that make a tensor on the device that they are told
_FACTORIES = re.compile(r"\btorch\.(?:zeros|ones|tensor|arange|randn|rand|randint|randperm|eye|empty|full|linspace)\(")


def moved(tree: Any) -> Any:
    """Return a tree with its tensors and modules on DEVICE. Tensors keep requires_grad and stay leaves."""
    if DEVICE == "cpu":
        return tree

    def one(value: Any) -> Any:
        if isinstance(value, torch.nn.Module):
            return value.to(DEVICE)
        if isinstance(value, PackedSequence):
            sequence: Any = value
            return sequence.to(DEVICE)
        if not isinstance(value, torch.Tensor):
            return value
        there = value.detach().to(DEVICE)
        return there.requires_grad_(value.requires_grad)

    return _pytree.tree_map(one, tree, is_leaf=lambda value: isinstance(value, PackedSequence))


def lost(error: BaseException) -> bool:
    """Return whether an exception means that this process can no longer use the device.

    An index out of range does it on CUDA, where on the CPU it is an IndexError. The exception may come from a later
    operation than the one that failed.
    """
    return isinstance(error, getattr(torch, "AcceleratorError", ()))


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Run a ``with`` block without warnings, and with torch's deterministic algorithms unless DEVICE is the CPU."""
    settings: Any = torch.utils.deterministic
    asked, fill = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if DEVICE != "cpu":
            torch.use_deterministic_algorithms(True, warn_only=True)
            settings.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(asked)
            settings.fill_uninitialized_memory = fill


def nondeterministic(run: Callable[[], object]) -> bool:
    """Return whether a run calls an operation whose result depends on the order of its threads.

    torch warns of it in a block of deterministic(). Comparing two runs is not enough: they may agree.
    """
    if DEVICE == "cpu":
        return False
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run()
    return any("does not have a deterministic implementation" in str(w.message) for w in told)


def random_state() -> str:
    """Return a hash of the states of the CPU's and DEVICE's generators."""
    states = [torch.get_rng_state()]
    if DEVICE != "cpu":
        states.append(torch.get_device_module(DEVICE).get_rng_state().cpu())
    return hashlib.sha256(b"".join(state.numpy().tobytes() for state in states)).hexdigest()[:16]


def placed(text: str) -> str:
    """Return a program in which torch's factories make their tensors on DEVICE, and autocast is that of DEVICE."""
    if DEVICE == "cpu":
        return text
    out, at = [], 0
    ends = sorted(_end(text, found.end()) for found in _FACTORIES.finditer(text))
    for end in ends:
        out += [text[at:end], f", device={DEVICE!r}"]
        at = end
    return "".join([*out, text[at:]]).replace("torch.autocast('cpu'", f"torch.autocast({DEVICE!r}")


def _end(text: str, start: int) -> int:
    """Return where the bracket closes that opened before ``start``."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at
    raise ValueError(f"no closing bracket: {text[start:]}")
