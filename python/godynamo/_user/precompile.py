"""precompile(): the translations of a callable as bytes, made before they are needed and where they are not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from .. import config
from .._stored.artifacts import save_cache_artifacts
from .warm_up import Sizes, WarmUp, warm_up


def precompile(fn: Callable[..., Any], examples: Iterable[Any], *, sizes: Sizes | None = None) -> tuple[bytes, WarmUp]:
    """Call an optimized callable with each example as warm_up() does, and return its translations and the report.

    load_cache_artifacts() stores the bytes where the callable is to run; nothing is translated there for calls like the
    examples. What torch's compilers have made is not in the bytes: torch.compiler.save_cache_artifacts() returns that.

    What was translated before is not in the bytes either: call this in a new process, or after godynamo.reset(). Raises
    what warm_up() raises, and ValueError if no translation was made, or none that can be stored.

    >>> data, report = godynamo.precompile(godynamo.optimize(torch.nn.Linear(3, 2)), [torch.ones(4, 3)])
    """
    with tempfile.TemporaryDirectory(prefix="godynamo-") as folder, config.patch(cache_dir=folder):
        report = warm_up(fn, examples, sizes=sizes)
        saved = save_cache_artifacts()
    if saved is None:
        why = (
            "these calls are translated already; godynamo.reset() drops that"
            if report.translations == 0
            else "nothing of them can be stored; the log says why (logging.getLogger('godynamo') at DEBUG)"
        )
        raise ValueError(f"precompile() has made no translation: {why}")
    return saved[0], report
