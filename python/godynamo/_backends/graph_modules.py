"""Builds a torch.fx.GraphModule from the node rows that Go writes. The nodes' example values are computed when read."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .._called import torch_state
from .._translator import vague, vf
from . import graph_outputs, python_graph, python_ops
from .rows import Ref

log = logging.getLogger("godynamo")

# A store to `data` (variables/tensor_data.go): passes of FX keep it, although nothing uses its result.
torch.fx.node.has_side_effect(setattr)


class _Builder:
    """Builds FX nodes from rows. An operand that FX cannot print becomes an attribute of the root module."""

    def __init__(self) -> None:
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.nodes: list[Any] = []
        self._constants: dict[int, Any] = {}

    def add(self, row: Sequence[Any]) -> None:
        """Append the node of a row (op, name, target, args, kwargs, stack_trace[, source_range])."""
        op, name, target, args, kwargs, stack_trace, *where = row
        if op == "call_function" and target is python_ops.PyConstant:
            args = tuple(python_ops.PyObject(x) for x in args)
        a = tuple(self.operand(x) for x in args)
        k = {key: self.operand(x) for key, x in kwargs.items()}
        if op == "output" and not isinstance(a[0], tuple):
            a = ((a[0],),) if not isinstance(a[0], list) else (tuple(a[0]),)
        if op == "call_function":
            target = vf.printable(target)
        node = self.graph.create_node(op, target, a, k, name=name)
        if stack_trace:
            node.stack_trace = stack_trace
        if where and where[0]:
            node.meta["source_range"] = where[0]
        self.nodes.append(node)

    def operand(self, x: Any) -> Any:
        """Return a row's operand as an operand of an FX node: each Ref is replaced by its node."""
        if isinstance(x, Ref):
            return self.nodes[x.index]
        if type(x) is tuple or type(x) is list:
            return type(x)(self.operand(i) for i in x)
        if type(x) is dict:
            return {key: self.operand(value) for key, value in x.items()}
        if type(x) is slice:
            return slice(self.operand(x.start), self.operand(x.stop), self.operand(x.step))
        if isinstance(x, torch.Size):
            return tuple(x)
        if x is None or x is Ellipsis or type(x) in _PRINTABLE:
            return x
        return self._constant(x)

    def _constant(self, x: Any) -> Any:
        node = self._constants.get(id(x))
        if node is None:
            name = f"_constant{len(self._constants)}"
            setattr(self.root, name, x)
            first = next((n for n in self.nodes if n.op != "placeholder"), None)
            if first is not None:
                with self.graph.inserting_before(first):
                    node = self.graph.get_attr(name)
            else:
                node = self.graph.get_attr(name)
            self._constants[id(x)] = node
        return node


_PRINTABLE = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


def build_graph_module(rows: Sequence[Any], example_inputs: Sequence[Any], mode: Any = None) -> Any:
    """Return a linted torch.fx.GraphModule of rows. Its output is a tuple, and node.meta["example_value"] is lazy.

    There is one example input per placeholder. Only descriptions of them are kept. If they are FakeTensors, ``mode`` is
    their FakeTensorMode, and they are kept themselves.
    """
    return with_nodes(rows, example_inputs, mode)[0]


def with_nodes(rows: Sequence[Any], example_inputs: Sequence[Any], mode: Any = None) -> tuple[Any, list[Any]]:
    """Return the GraphModule of rows, and the node of each row."""
    builder = _Builder()
    for row in rows:
        builder.add(row)
    builder.graph.lint()
    gm = python_graph.module_for(builder.root, builder.graph)
    without_report(gm)
    _forget_source_with(gm)
    values = _ExampleValues(gm, example_inputs, mode)
    for node in gm.graph.nodes:
        if node.op != "output":
            node.meta = _Meta(node.meta, node.name, values)
    return gm, builder.nodes


def recompile(gm: Any) -> None:
    """Regenerate the module's code after its graph has changed."""
    gm.graph.lint()
    gm.recompile()
    without_report(gm)
    _forget_source_with(gm)


def _forget_source_with(gm: Any) -> None:
    weakref.finalize(gm, _forget_source, type(gm).forward.__code__.co_filename).atexit = False


@functools.lru_cache(maxsize=1)
def _plain_call() -> tuple[Any, Any] | None:
    """Return FX's class that calls a GraphModule, and a subclass that prints no report; None if torch lacks it."""
    from torch.fx import graph_module

    fx: Any = getattr(graph_module, "_WrappedCall", None)
    if fx is None:
        return None

    class Call(fx):  # type: ignore[misc]
        def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)

    return fx, Call


def without_report(gm: Any) -> None:
    """Keep FX from printing a report to stderr and from dropping the traceback when this graph raises."""
    wrapped: Any = vars(type(gm)).get("_wrapped_call")
    ways = _plain_call()
    if ways is not None and type(wrapped) is ways[0]:
        type(gm)._wrapped_call = ways[1](wrapped.cls, wrapped.cls_call)


def _forget_source(filename: str) -> None:
    """Drop a graph's source. FX would keep it for tracebacks until the process ends, which costs 0.7 KiB per graph."""
    import linecache

    from torch.fx import graph_module

    getattr(getattr(graph_module, "_loader", None), "eval_cache", {}).pop(filename, None)
    linecache.cache.pop(filename, None)


class _ExampleValues:
    """Fake values of a graph's nodes. The first request computes all of them; without a request they cost nothing."""

    def __init__(self, gm: Any, example_inputs: Sequence[Any], mode: Any) -> None:
        self._gm = weakref.ref(gm)
        self._mode = mode
        self._inputs = list(example_inputs) if mode else [describe(x) for x in example_inputs]
        self._values: dict[str, Any] | None = None
        self._entered = torch_state.entered()

    def get(self, name: str) -> Any:
        """Return a node's fake value. Raises KeyError if the value cannot be computed."""
        if self._values is None:
            # FX prints the nodes of a graph that raises. A second run would leave the modes that the first has entered.
            if (now := torch_state.entered()) != self._entered and now[: len(self._entered)] == self._entered:
                raise KeyError(name)
            gm = self._gm()
            if self._mode:
                make = lambda _: self._inputs  # noqa: E731
            else:
                make = lambda _: [fake(d) for d in self._inputs]  # noqa: E731
            if gm is None or any(d is _NOT_DENSE for d in self._inputs):
                self._values = {}
            else:
                self._values = graph_outputs.fake_values(gm, make, self._mode)
        return self._values[name]


_NOT_DENSE = object()  # an input that fake tensors cannot represent


def describe(x: Any) -> Any:
    """Return the metadata of a dense tensor as a tuple of plain data, for fake(). Return other objects unchanged."""
    if not isinstance(x, torch.Tensor):
        return x
    if not vague.is_dense(x):
        return _NOT_DENSE
    return (tuple(x.shape), tuple(x.stride()), x.dtype, x.device, x.requires_grad)


def fake(description: Any) -> Any:
    """Return a tensor with the metadata that describe() has returned, a fake one in a fake mode."""
    if type(description) is not tuple:
        return description
    shape, stride, dtype, device, requires_grad = description
    return torch.empty_strided(shape, stride, dtype=dtype, device=device, requires_grad=requires_grad)


class _Meta(dict[str, Any]):
    """A dict for node.meta that computes "example_value" on the first read. Copies are plain dicts."""

    _MISSING = object()

    def __init__(self, plain: Mapping[str, Any], name: str, values: _ExampleValues) -> None:
        super().__init__(plain)
        self._name = name
        self._values = values

    def __missing__(self, key: str) -> Any:
        if key != "example_value":
            raise KeyError(key)
        value = self._values.get(self._name)
        self[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        return key == "example_value" and self.get(key, self._MISSING) is not self._MISSING

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)
