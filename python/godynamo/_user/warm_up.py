"""warm_up(): translates what a program will be asked for, before it is asked."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import config, utils

#: parameter -> dimension -> (least size, greatest size)
Sizes = Mapping[str, Mapping[int, tuple[int, int]]]

_ROUNDS = 3


@dataclass(frozen=True)
class WarmUp:
    """What warm_up() has done. ``str()`` of it is a report."""

    calls: int  #: of the callable
    translations: int  #: made
    loaded: int  #: read from config.cache_dir
    graphs: int  #: of both
    operations: int  #: in the graphs
    breaks: dict[str, int]  #: reason -> number
    left: int  #: frames that are left to CPython
    seconds: float
    settled: bool  #: whether the last call of each example has found its translations

    def __str__(self) -> str:
        split = _number(sum(self.breaks.values()), "graph break")
        lines = [
            f"{_number(self.calls, 'call')} in {self.seconds:.2f} s: {_number(self.translations, 'translation')} made, "
            f"{self.loaded or 'none'} loaded",
            f"{_number(self.graphs, 'graph')} with {_number(self.operations, 'operation')}, {split}, "
            f"{_number(self.left, 'frame')} left to CPython",
            *(f"break, {_number(n, 'time')}: {reason}" for reason, n in self.breaks.items()),
        ]
        if not self.settled:
            lines.append("the last calls have still been translated: explain() tells why")
        return "\n".join(lines)


def warm_up(fn: Callable[..., Any], examples: Iterable[Any], *, sizes: Sizes | None = None) -> WarmUp:
    """Call an optimized callable with each example until no call is translated, three times at most.

    With ``config.compile_aside``, also wait for what is being compiled.

    An example is a tuple of positional arguments, a dict of keyword arguments, or a single argument. ``sizes`` gives
    ranges of sizes by parameter: ``{"x": {0: (1, 64)}}`` translates for x.shape[0] from 1 to 64, as mark_dynamic does
    for tensors that are passed to it. Arguments that have ranges are passed as detached tensors on the same memory.

    The calls are real: buffers of modules in training mode change, hooks run. Random numbers that they draw from torch
    or random are not missed afterwards. The grad mode and autocast count as in every call, so warm up in those of the
    later calls.

    Raises what the callable raises; TypeError for a parameter that ``sizes`` names and the callable does not have, or
    that is no tensor; ValueError for an example whose size is not in its range.

    >>> model = godynamo.optimize(torch.nn.Linear(3, 2))
    >>> godynamo.warm_up(model, [torch.ones(4, 3)], sizes={"input": {0: (2, 64)}}).settled
    True
    """
    listed = [_arguments(fn, example, sizes or {}) for example in examples]
    if not listed:
        raise ValueError("warm_up() needs an example of the arguments")
    before, begun, calls, settled = _counts(), time.perf_counter(), 0, False
    with _random_numbers_kept():
        for _ in range(_ROUNDS):
            was = _counts()["total"]
            for args, kwargs in listed:
                fn(*args, **kwargs)
                calls += 1
            if settled := _counts()["total"] == was:
                break
        if config.compile_aside:
            from .._aside.aside import wait_for_compilation

            wait_for_compilation()
    done, seconds = _counts(), time.perf_counter() - begun
    done.subtract(before)
    return WarmUp(
        calls=calls,
        translations=done["total"] - done["skipped"] - done["translations_loaded"],
        loaded=done["translations_loaded"],
        graphs=done["unique_graphs"],
        operations=done["calls_captured"],
        breaks={key[0]: n for key, n in done.items() if isinstance(key, tuple) and n},
        left=done["skipped"],
        seconds=seconds,
        settled=settled,
    )


def _number(n: int, noun: str) -> str:
    return f"{n or 'no'} {noun}{'s' * (n != 1)}"


def _counts() -> Counter[Any]:
    """Return the counters of frames and graphs; those of graph breaks have the key (reason,)."""
    found: Counter[Any] = Counter()
    found.update(utils.counters["frames"])
    found.update(utils.counters["stats"])
    found.update({(reason,): n for reason, n in utils.counters["graph_break"].items()})
    return found


@contextlib.contextmanager
def _random_numbers_kept() -> Iterator[None]:
    import random

    import torch

    state = random.getstate()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(state)


def _arguments(fn: Callable[..., Any], example: Any, sizes: Sizes) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with marks on the tensors that ``sizes`` names."""
    args: tuple[Any, ...] = example if type(example) is tuple else () if type(example) is dict else (example,)
    kwargs: dict[str, Any] = example if type(example) is dict else {}
    if not sizes:
        return args, kwargs
    import torch

    from .dims import mark_dynamic
    from .modules import is_module, original

    called = original(fn).forward if is_module(fn) else fn
    bound = inspect.signature(called).bind(*args, **kwargs)
    for name, ranges in sizes.items():
        value = bound.arguments.get(name)
        if not isinstance(value, torch.Tensor):
            what = f"is a {type(value).__name__}" if name in bound.arguments else "is no argument of the example"
            raise TypeError(f"sizes={{{name!r}: ...}} is for a tensor, but {name} {what}")
        marked = value.detach().requires_grad_(value.requires_grad)
        for dim, (low, high) in ranges.items():
            mark_dynamic(marked, dim, min=low, max=high)
        bound.arguments[name] = marked
    return bound.args, bound.kwargs
