"""A stand-in for a method of DistributedDataParallel."""

from __future__ import annotations

from typing import Any

from torch.nn.parallel.distributed import DistributedDataParallel

from ._base import stands_for

__godynamo_polyfill__ = "module"


@stands_for(DistributedDataParallel._run_ddp_forward)
def _run_ddp_forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
    """Call the module.

    The method also names this module in a class attribute meanwhile, which torch.compile reads to split its graphs at
    the buckets of gradients. Captured code is not split.
    """
    return self.module(*inputs, **kwargs)
