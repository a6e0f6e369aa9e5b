"""Cases of torch.nn: modules from torch's module_db and from our own table, in training and in evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

import module_table
from harness.device import DEVICE, moved
from library_judge import SEED, Case
from op_cases import spread


def units() -> dict[str, Any]:
    """Return every module class of torch.nn that can be called, and those of module_db, by name."""
    found = {name: getattr(nn, name) for name in module_table.names()}
    return found | {info.module_cls.__name__: info.module_cls for info in module_db}


def cases(cls: type[nn.Module], most: int) -> Iterator[Case]:
    """Yield all cases of a class, those of module_db first."""
    for training in (True, False):
        mode = "train" if training else "eval"
        for info in module_db:
            if info.module_cls is not cls:
                continue
            torch.manual_seed(0)
            inputs = info.module_inputs_func(
                info, device=DEVICE, dtype=torch.float32, requires_grad=True, training=training
            )
            for number, given in enumerate(spread([i for i in inputs if i.forward_input is not None], most)):
                make = maker(lambda g=given: cls(*g.constructor_input.args, **g.constructor_input.kwargs), training)
                f = given.forward_input
                yield Case(f"{mode} {number}", make, tuple(f.args), dict(f.kwargs))
        for number, row in enumerate(module_table.ROWS.get(cls.__name__, ())):
            torch.manual_seed(0)
            yield Case(f"{mode} own {number}", maker(row.make, training), moved(row.inputs()))


def maker(construct: Any, training: bool) -> Any:
    """Return a function that creates the module, the same at each call."""

    def make() -> nn.Module:
        torch.manual_seed(SEED)
        module: nn.Module = moved(construct())
        module.train(training)  # not chained: train() of a user's module may return nothing
        return module

    return make
