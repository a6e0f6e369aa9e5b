"""Finds out what calls of scripted and traced code return, and of quantized operators, without the program's tensors.

A method of a ScriptModule is one operation of the graph, which calls the method as in eager mode. Here a copy of its
graph runs on fake tensors. Each call checks that its result looks like that (``as_declared``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .._called import predictions
from . import warned
from .recipes import noted

#: whether a call returns a tuple, and what the tensors look like that it returns: (size, stride, dtype, device,
#: requires_grad)
Result = tuple[bool, tuple[tuple[tuple[int, ...], tuple[int, ...], torch.dtype, torch.device, bool], ...]]

#: operations of TorchScript, beside those of ATen, that neither change an object nor run other code
_PLAIN = frozenset(
    "prim::" + name
    for name in "Constant DictConstruct GetAttr If ListConstruct ListUnpack Loop NumToTensor RaiseException "
    "TupleConstruct TupleIndex TupleUnpack Uninitialized device dtype is_cuda layout max min shape "
    "unchecked_cast unchecked_unwrap_optional".split()
)

#: operations of ATen that have other effects
_EFFECTS = frozenset("aten::" + name for name in "backward get_gradients manual_seed save seed set_data warn".split())


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _prepared(graph: Any) -> list[torch.Tensor] | None:
    """Remove changes of the module's tensors from a graph. Return None if other effects are left in it.

    Tensors among its constants become inputs, and are returned: the optimizer of TorchScript would read their values.
    """
    constants = []
    for node in list(_nodes(graph)):
        kind = node.kind()
        if kind not in _PLAIN and (not kind.startswith("aten::") or kind in _EFFECTS):
            return None
        if kind == "prim::Constant" and node.hasAttribute("value") and node.kindOf("value") == "t":
            constants.append(node.t("value"))
            given = graph.addInput()
            given.setType(node.output().type())
            node.output().replaceAllUsesWith(given)
            node.destroy()
        if not kind.startswith("aten::") or "!" not in node.schema():
            continue
        changed = next(node.inputs())
        if changed.type().kind() == "ListType":
            continue
        if changed.node().kind() != "prim::GetAttr" or not kind.endswith("_"):
            return None
        node.output().replaceAllUsesWith(changed)
        node.destroy()
    return constants


def _like(sample: Any) -> Any:
    """Return a new tensor with the metadata of a sample; other values unchanged."""
    if not isinstance(sample, torch.Tensor):
        return sample
    made = torch.empty_strided(sample.shape, sample.stride(), dtype=sample.dtype, device=sample.device)
    return made.requires_grad_(sample.requires_grad)


def of_method(method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result | None:
    """Return what a call of a ScriptMethod returns, for arguments with the metadata of these; None if that is unknown.

    It is unknown if the method has effects other than changes of the module's tensors and random draws, or if its
    control flow depends on data.
    """
    parameters = method.schema.arguments[1:]
    given = dict(zip([p.name for p in parameters], args, strict=False)) | kwargs
    defaults = {p.name: p.default_value for p in parameters if p.has_default_value()}
    if len(args) + len(kwargs) != len(given) or not all(p.name in given or p.name in defaults for p in parameters):
        return None  # the call is wrong
    values = [given.get(p.name, defaults.get(p.name)) for p in parameters]
    if len(given.keys() | defaults.keys()) > len(values):
        return None
    graph = method.inlined_graph.copy()
    constants = _prepared(graph)
    if constants is None:
        return None
    run = torch._C._create_function_from_graph("looked_at", graph)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), warned.hidden():
            samples = [_like(v) for v in values]
            result = run(method.owner, *samples, *constants)
    except Exception:  # the call raises when it runs, or FakeTensor does not support an operation
        return None
    found = result if type(result) is tuple else (result,)
    memory = [t.untyped_storage()._cdata for t in (*found, *samples) if isinstance(t, torch.Tensor)]
    if len({*memory}) < len(memory):
        return None  # it returns a tensor twice, an argument, or a view
    return _looks(result)


def of_operator(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result | None:
    """Do the same for a quantized operator, which runs on tensors of ones: no FakeTensor can have packed parameters."""
    try:
        with torch.no_grad():
            given = [torch.ones_like(_like(v)) if isinstance(v, torch.Tensor) else v for v in args]
            result = operator(*given, **kwargs)
    except Exception:
        return None
    return _looks(result)


def _looks(value: Any) -> Result | None:
    found = value if type(value) is tuple else (value,)
    for t in found:
        if not isinstance(t, torch.Tensor) or t.layout is not torch.strided or t.is_quantized:
            return None
    looks = tuple((tuple(t.shape), t.stride(), t.dtype, t.device, t.requires_grad) for t in found)
    return type(value) is tuple, looks


@noted
def as_declared(question: str, key: str, result: Result) -> Callable[[Any, tuple[Any, ...]], bool | None]:
    """Return a function of a result and of the arguments of a call.

    It returns True if the result looks like ``result`` and is none of the arguments, else None.

    ``question`` and ``key`` are of _called/predictions.declare.
    """

    def check(value: Any, arguments: tuple[Any, ...]) -> bool | None:
        found = value if type(value) is tuple else (value,)
        if (
            all(type(t) is torch.Tensor and all(t is not a for a in arguments) for t in found)
            and len({id(t) for t in found}) == len(found)
            and _looks(value) == result
        ):
            return True
        predictions.refute(question, key)
        return None

    return check
