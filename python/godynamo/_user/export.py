"""Exports a function: as one GraphModule with its guards, or as an ExportedProgram (:mod:`.program`).

For a GraphModule, the function is translated with ``nopython`` and runs once on the given arguments. An input of the
graph is matched to the argument or parameter that is the same object, and a result to the function's output.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, overload

import torch
import torch.export
import torch.fx
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo
from torch.utils import _pytree as pytree

from .. import exc
from .._core import available, core, refusal
from .._explain.explain import GuardText, guards
from . import modules as _modules
from .optimize import optimize


class Exported(NamedTuple):
    """The result of :func:`export`, which can be unpacked into its two fields."""

    graph_module: torch.fx.GraphModule
    guards: list[GuardText]


@overload
def export(
    fn: Callable[..., Any],
    *,
    dynamic: bool | None = None,
    aten_graph: bool = False,
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Exported]: ...
@overload
def export(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> torch.export.ExportedProgram: ...
@overload
def export(
    fn: Callable[..., Any],
    *,
    dynamic_shapes: Any,
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> Callable[..., torch.export.ExportedProgram]: ...
def export(
    fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    dynamic: bool | None = None,
    aten_graph: bool = False,
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> Any:
    """Capture a function or module as one graph, as torch._dynamo.export or torch.export.export does.

    ``graph_module, guards = export(f)(*args, **kwargs)`` calls f once. The graph module takes f's arguments and returns
    f's result, both in their original structure. Its parameters and buffers are f's own objects. Arguments that are not
    tensors become constants. The graph module is valid for calls for which the guards hold.

    ``export(f, args, kwargs, dynamic_shapes=...)``, or ``export(f, dynamic_shapes=...)(*args, **kwargs)``, returns a
    torch.export.ExportedProgram and does not run f: torch.export traces the translation with FakeTensors. The program
    has f's changes of tensors, but no other effect: no print, and no store into an object.

    Args:
        dynamic_shapes: which sizes may vary, as for torch.export.export: ``torch.export.Dim`` objects and hints in a
            dict by argument, or in a tuple or list in the order of arguments; or a ShapesCollection.
        decomposition_table: decompositions for aten operations; for a graph module, aten_graph must be True.
        prefer_deferred_runtime_asserts_over_guards: see torch.export.export.
        dynamic: for a graph module; see :func:`optimize`.
        aten_graph: return the graph module of the corresponding aten operations.

    Raises:
        exc.Unsupported: f has a graph break (the text is its report), or this Python is not supported. For a graph
            module: f's result has a part that is neither a tensor of the graph nor an argument nor a constant. For a
            program: f returns an object that it has changed, or an effect keeps a tensor that f computes.
        torch._dynamo.exc.UserError: a Dim does not fit f. The text is torch's, with the lines of f that restrict it.
        AssertionError: a decomposition table for a graph module is given without aten_graph.
    """
    if not available:
        raise exc.Unsupported(f"export: nothing can be captured: {refusal}")
    if args is not None or dynamic_shapes is not None:

        def program(*args: Any, **kwargs: Any) -> torch.export.ExportedProgram:
            from .program import exported_program

            made = exported_program(
                _own(fn),
                args,
                kwargs,
                dynamic_shapes,
                prefer_deferred_runtime_asserts_over_guards=prefer_deferred_runtime_asserts_over_guards,
            )
            return made if decomposition_table is None else made.run_decompositions(dict(decomposition_table))

        return program if args is None else program(*args, **(kwargs or {}))
    if decomposition_table is not None and not aten_graph:
        raise AssertionError("a decomposition_table is for aten_graph=True")

    def exported(*args: Any, **kwargs: Any) -> Exported:
        captured = _Capture()
        translated = optimize(backend=captured, nopython=True, dynamic=dynamic)(_own(fn))
        result = translated(*args, **kwargs)
        gm = _Assembly(captured, fn, args, kwargs, result).module()
        if aten_graph:
            gm = _aten(gm, args, kwargs, dict(decomposition_table or {}), dynamic)
        return Exported(gm, guards(translated))

    return exported


def _own(fn: Any) -> Any:
    """Return the original function or module if ``fn`` is optimized, otherwise ``fn``."""
    if _modules.is_module(fn):
        return _modules.original(fn)
    return fn.__wrapped__ if isinstance(fn, core.Callable) else fn


class _Capture:
    """A backend that keeps the graph, its inputs and its results."""

    __godynamo_backend__ = True
    __name__ = "export"

    def __init__(self) -> None:
        self.gm: torch.fx.GraphModule | None = None
        self.inputs: tuple[Any, ...] = ()
        self.outputs: tuple[Any, ...] = ()

    def __call__(self, gm: torch.fx.GraphModule, _example_inputs: list[Any]) -> Callable[..., Any]:
        if self.gm is not None:
            raise exc.Unsupported("export: the function does not come to one graph")
        self.gm = gm

        def run(*inputs: Any) -> Any:
            self.inputs, self.outputs = inputs, tuple(gm.forward(*inputs))
            return self.outputs

        return run


class _Assembly:
    """Makes the graph module from the captured graph and the values of one run."""

    def __init__(self, captured: _Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self._captured = captured
        self._names = _argument_names(fn, args, kwargs)
        self._flat, self._in_spec = pytree.tree_flatten((args, kwargs))
        self._result, self._out_spec = pytree.tree_flatten(result)
        self._root = torch.nn.Module()
        self._graph = torch.fx.Graph()
        self._known: dict[int, torch.fx.Node] = {}
        self._parameters = _named_tensors(fn)

    def module(self) -> torch.fx.GraphModule:
        """Return the graph module. Raises exc.Unsupported if the result has a part that is not in the graph."""
        placeholders = []
        for i, value in enumerate(self._flat):
            node = self._graph.placeholder(f"arg{i}")
            placeholders.append(node)
            if isinstance(value, torch.Tensor):
                node.meta["val"] = value
                self._known.setdefault(id(value), node)
        gm = self._captured.gm
        if gm is not None:
            values = {}
            nodes = list(gm.graph.nodes)
            inner = [n for n in nodes if n.op == "placeholder"]
            for node, value in zip(inner, self._captured.inputs, strict=True):
                values[node] = self._input(value, node.name)
            for node in nodes:
                if node.op == "get_attr":
                    values[node] = self._attribute(node.target, getattr(gm, node.target))
                elif node.op == "output":
                    outputs = [values[n] if isinstance(n, torch.fx.Node) else n for n in node.args[0]]
                elif node.op != "placeholder":
                    values[node] = self._graph.node_copy(node, lambda n: values[n])
            for out, value in zip(outputs, self._captured.outputs, strict=True):
                if isinstance(out, torch.fx.Node):
                    self._known.setdefault(id(value), out)
        self._graph.output([self._leaf(value) for value in self._result])
        self._graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(self._names, self._in_spec, self._out_spec)))
        made = torch.fx.GraphModule(self._root, self._graph, "Exported")
        made.graph.lint()
        return made

    def _input(self, value: Any, name: str) -> torch.fx.Node:
        """Return the node for a graph input: an argument, a parameter, a buffer or another tensor from outside."""
        known = self._known.get(id(value))
        return known if known is not None else self._attribute(name, value)

    def _attribute(self, name: str, value: Any) -> torch.fx.Node:
        path = self._parameters.get(id(value)) or _identifier(name)
        owner: Any = self._root
        *parents, last = path.split(".")
        for parent in parents:
            if not hasattr(owner, parent):
                owner.add_module(parent, torch.nn.Module())
            owner = getattr(owner, parent)
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            owner.register_buffer(last, value)
        else:
            setattr(owner, last, value)
        node = self._graph.get_attr(path)
        self._known[id(value)] = node
        return node

    def _leaf(self, value: Any) -> Any:
        known = self._known.get(id(value)) if isinstance(value, torch.Tensor) else None
        if known is not None:
            return known
        if isinstance(value, torch.Tensor):
            if id(value) in self._parameters:
                return self._attribute(self._parameters[id(value)], value)
            raise exc.Unsupported("export: the result has a tensor that the graph does not give")
        if value is None or isinstance(value, (int, float, str, bool, complex, torch.dtype, torch.device)):
            return value
        raise exc.Unsupported(f"export: the result has a {type(value).__name__}, which no graph can return")


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name).strip("_") or "tensor"


def _named_tensors(fn: Any) -> dict[int, str]:
    owner = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if not isinstance(owner, torch.nn.Module):
        return {}
    named = [*owner.named_buffers(), *owner.named_parameters()]
    return {id(t): name for name, t in named}


def _argument_names(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the parameter names of the generated forward: those of the positional arguments, then the keywords."""
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    names: list[str] = []
    for p in inspect.signature(target).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and len(names) < len(args):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
    return [*names, *kwargs]


def _aten(
    gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any], table: dict[Any, Any], dynamic: bool | None
) -> torch.fx.GraphModule:
    """Return an exported graph module's graph of aten operations, with the same structure of arguments and results."""
    from torch.fx.experimental.proxy_tensor import make_fx

    codegen = gm.graph._codegen
    flat, _ = pytree.tree_flatten((args, kwargs))
    tensors = [i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)]
    gm.graph.set_codegen(torch.fx.graph.CodeGen())
    gm.recompile()

    def of_tensors(*values: Any) -> Any:
        full = list(flat)
        for i, value in zip(tensors, values, strict=True):
            full[i] = value
        return gm(*full)

    copies = [flat[i].detach().clone().requires_grad_(flat[i].requires_grad) for i in tensors]
    traced = make_fx(
        of_tensors,
        decomposition_table=table,
        tracing_mode="symbolic" if dynamic else "fake",
        _allow_non_fake_inputs=True,
    )(*copies)
    graph = torch.fx.Graph()
    placeholders = [graph.placeholder(f"arg{i}") for i in range(len(flat))]
    values: dict[Any, Any] = {}
    inner = [n for n in traced.graph.nodes if n.op == "placeholder"]
    for i, node in zip(tensors, inner, strict=True):
        values[node] = placeholders[i]
    for node in traced.graph.nodes:
        if node.op == "output":
            graph.output(torch.fx.node.map_arg(node.args[0], lambda n: values[n]))
        elif node.op != "placeholder":
            values[node] = graph.node_copy(node, lambda n: values[n])
    graph.set_codegen(codegen)
    made = torch.fx.GraphModule(traced, graph, "Exported")
    made.graph.lint()
    return made
