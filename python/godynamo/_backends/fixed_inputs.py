"""Marks the parameters and buffers among a graph's inputs, for compilers that make CUDA graphs.

A CUDA graph reads its inputs at fixed addresses. inductor copies each input to such an address in every call, and makes
no CUDA graph of code that changes an input. Inputs that AOTAutograd calls static are exempt: they are used where they
are, and if one has moved, inductor records the CUDA graph again (torch/_inductor/cudagraph_trees.py). AOTAutograd finds
them by the marks that torch.compile leaves in its graphs (torch/_functorch/_aot_autograd/frontend_utils.py).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence
from typing import Any

from .named import Backend, Named


def mark(gm: Any, backend: Backend, example_inputs: Sequence[Any], of_modules: Sequence[int]) -> None:
    """Mark the inputs whose memory rarely moves, if the backend makes CUDA graphs.

    These are the parameters and buffers of modules, with the numbers ``of_modules``, and the tensors that the user has
    given to mark_static_address.
    """
    static = {*of_modules, *(i for i, x in enumerate(example_inputs) if hasattr(x, "_dynamo_static_input_type"))}
    if not static or not _makes_cuda_graphs(backend):
        return
    from torch._dynamo.source import ConstantSource, LocalSource

    gm.meta.setdefault("dynamo_compile_id", None)  # AOTAutograd looks for this key
    attributes = [*gm.named_parameters(remove_duplicate=False), *gm.named_buffers(remove_duplicate=False)]
    gm._param_name_to_source = {name: ConstantSource(name) for name, _ in attributes}
    for i, node in enumerate(gm.graph.find_nodes(op="placeholder")):
        node._dynamo_source = LocalSource(node.name)
        if i in static:
            node.meta["tensor_dict"] = {"_dynamo_static_input_type": "unguarded"}


def _makes_cuda_graphs(backend: Backend) -> bool:
    """Return whether inductor makes CUDA graphs that check their inputs' addresses.

    With the option "freezing" static inputs would become constants.
    """
    given = getattr(backend.resolve() if isinstance(backend, Named) else backend, "config", {})
    config: Any = sys.modules.get("torch._inductor.config")
    if config is None or not isinstance(given, dict):
        return False

    def value(name: str) -> Any:
        return given.get(name, operator.attrgetter(name)(config))

    return bool(value("triton.cudagraphs") and value("triton.cudagraph_trees") and not value("freezing"))
