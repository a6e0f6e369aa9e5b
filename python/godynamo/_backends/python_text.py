"""Prints a graph with Python operations in the format of TorchScript's fallback::

graph(%x):
  %py_constant : PyObject = prim::PyConstant[value=<python object>]() # file.py:5:11
  %py_object_call : PyObject = ^<PyObjectCall>()(%py_constant, %x) # file.py:5:11
  %c.1 : str = prim::Constant[value="read"]() # file.py:5:11
  %getattr_1 : PyObject = ^getattr()(%py_object_call, %c.1) # file.py:5:11
"""

from __future__ import annotations

from typing import Any

import torch

from . import python_ops


def text(gm: torch.fx.GraphModule) -> str:
    """Return a graph in TorchScript's fallback format: one line per node, and one per constant operand."""
    printer = _Printer(gm)
    return printer.graph()


class _Printer:
    def __init__(self, gm: torch.fx.GraphModule) -> None:
        self._gm = gm
        self._constants = 0

    def graph(self) -> str:
        inputs = ", ".join(f"%{n.name}" for n in self._gm.graph.nodes if n.op == "placeholder")
        lines = [f"graph({inputs}):"]
        for node in self._gm.graph.nodes:
            lines += self.node(node)
        return "\n".join(lines)

    def node(self, node: torch.fx.Node) -> list[str]:
        if node.op == "placeholder" or (node.op == "get_attr" and self._held(node)):
            return []
        before: list[str] = []
        where = node.meta.get("source_range", "")
        where = f" # {where}" if where else ""
        if node.op == "output":
            return [f"  return ({', '.join(self.operand(a, before, '') for a in node.args[0])})"]  # type: ignore[union-attr]
        if node.target is python_ops.PyConstant:
            return [f"  %{node.name} : PyObject = prim::PyConstant[value=<python object>](){where}"]
        operands = [self.operand(a, before, where) for a in node.args]
        operands += [
            f"{k}={self.operand(v, before, where)}"
            for k, v in node.kwargs.items()
            if node.target is not python_ops.CastFromPython
        ]
        if node.target is python_ops.CastFromPython:
            asked = node.kwargs["types"]
            line = f"%{node.name} : {asked} = prim::CastFromPython[types={asked}]({', '.join(operands)})"
        elif is_python_op(node):
            line = f"%{node.name} : PyObject = ^{shown(node.target)}()({', '.join(operands)})"
        else:
            line = f"%{node.name} : Tensor = {node._pretty_print_target(node.target)}({', '.join(operands)})"
        return [*before, f"  {line}{where}"]

    def _held(self, node: torch.fx.Node) -> bool:
        return isinstance(getattr(self._gm, str(node.target), None), python_ops.PyObject)

    def operand(self, value: Any, before: list[str], where: str) -> str:
        if isinstance(value, torch.fx.Node):
            return f"%{value.name}"
        if isinstance(value, tuple):
            return f"({', '.join(self.operand(v, before, where) for v in value)})"
        if value is None or isinstance(value, (bool, int, float, str)):
            self._constants += 1
            name = f"%c.{self._constants}"
            kind = "NoneType" if value is None else type(value).__name__
            shown = f'"{value}"' if isinstance(value, str) else repr(value)
            before.append(f"  {name} : {kind} = prim::Constant[value={shown}](){where}")
            return name
        return repr(value)


def shown(target: Any) -> str:
    """Return a Python operation's printed name."""
    return "<PyObjectCall>" if target is python_ops.PyObjectCall else str(target.__name__)


def is_python_op(node: torch.fx.Node) -> bool:
    """Return whether a node's target is one of python_ops."""
    return node.op == "call_function" and getattr(node.target, "__module__", None) == python_ops.__name__
