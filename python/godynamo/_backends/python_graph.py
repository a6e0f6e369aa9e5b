"""Pickles GraphModules with Python operations. FX unpickles a graph by tracing its code, which would run them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch
from torch.fx.node import _get_qualified_name, map_arg

from . import python_ops
from .rows import Ref


class PythonGraphModule(torch.fx.GraphModule):
    """A GraphModule that pickles node by node, so that nothing runs. Its constants must be picklable."""

    def __reduce__(self) -> Any:
        place = {node: i for i, node in enumerate(self.graph.nodes)}
        rows = []
        for node in self.graph.nodes:
            target = _get_qualified_name(node.target) if node.op == "call_function" else node.target
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: Ref(place[n]))  # type: ignore[arg-type,return-value]
            rows.append((node.op, node.name, target, args, kwargs, node.meta.get("source_range", "")))
        root = {name: value for name, value in vars(self).items() if name.startswith("_constant")}
        return _rebuild, (rows, root)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()


def _rebuild(rows: Sequence[Any], constants: dict[str, Any]) -> torch.fx.GraphModule:
    root, graph = torch.nn.Module(), torch.fx.Graph()
    for name, value in constants.items():
        setattr(root, name, value)
    nodes: list[Any] = []

    def resolve(x: Any) -> Any:
        if isinstance(x, Ref):
            return nodes[x.index]
        if isinstance(x, slice):
            return slice(resolve(x.start), resolve(x.stop), resolve(x.step))
        if isinstance(x, dict):
            return {k: resolve(v) for k, v in x.items()}
        return type(x)(map(resolve, x)) if isinstance(x, (tuple, list)) else x

    for op, name, target, args, kwargs, source_range in rows:
        called = _named(target) if op == "call_function" else target
        node = graph.create_node(op, called, resolve(args), resolve(kwargs), name=name)
        if source_range:
            node.meta["source_range"] = source_range
        nodes.append(node)
    return PythonGraphModule(root, graph)


def _named(qualified: str) -> Any:
    module, _, rest = qualified.partition(".")
    found: Any = import_module(module)
    for part in rest.split("."):
        found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
    return found


def module_for(root: torch.nn.Module, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """Return the GraphModule of a graph: a PythonGraphModule if it has Python operations."""
    own = python_ops.__name__
    python = any(n.op == "call_function" and getattr(n.target, "__module__", None) == own for n in graph.nodes)
    return (PythonGraphModule if python else torch.fx.GraphModule)(root, graph)
