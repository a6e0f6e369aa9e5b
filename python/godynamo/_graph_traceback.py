"""Which operation of a graph raised, read from the traceback that came out of the backend's callable.

FX gives every node its name in the code it generates and keeps the node's user stack in ``stack_trace``, which copies and most
passes (AOTAutograd's too) carry along. A backend that compiles to something else leaves nothing to be found here.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType, TracebackType
from typing import Any

import torch

from . import _python_ops

# (code, globals, lasti, line) of each user frame, outermost first; the outermost may have the variables to show behind these
Chain = tuple[tuple[Any, ...], ...]
Operations = tuple[tuple[str, Chain], ...]


def failed_operation(question: tuple[Operations, TracebackType]) -> tuple[Chain, TracebackType | None] | None:
    """The user frames of the operation that raised, and the traceback inward of the graph's frame; None where not found.

    question: the graph's operations with the names of their nodes, and the traceback inward of the transformed frame.
    Called by C (traceback.c).
    """
    operations, tb = question
    entry: TracebackType | None = tb
    while entry is not None:
        named = _node_of(entry)
        if named is not None:
            chain = _chain(operations, *named)
            if chain is not None:
                return chain, _inward(entry.tb_next)
        entry = entry.tb_next
    return None


def _node_of(entry: TracebackType) -> tuple[str, str] | None:
    """Name and stack_trace ("" where lost) of the node that a frame was at."""
    frame = entry.tb_frame
    if frame.f_code is torch.fx.Interpreter.run_node.__code__:
        node = frame.f_locals.get("n")
        return (node.name, node.stack_trace or "") if isinstance(node, torch.fx.Node) else None
    if "eval_with_key" not in frame.f_code.co_filename:
        return None
    name = _assigned(linecache.getline(frame.f_code.co_filename, entry.tb_lineno, frame.f_globals))
    return (name, _stack_trace(frame, name)) if name else None


def _assigned(line: str) -> str:
    """The node that a line of generated code computes: `mul = x * 2;  x = None`, `x += y;  iadd = x;  y = None`."""
    try:
        statements = ast.parse(line.strip()).body
    except SyntaxError:
        return ""
    for s in statements:
        target = s.targets[0] if isinstance(s, ast.Assign) else s.target if isinstance(s, ast.AnnAssign) else None
        if isinstance(target, ast.Name):
            return target.id
    return ""


def _stack_trace(frame: FrameType, name: str) -> str:
    module = frame.f_locals.get("self")
    if isinstance(module, torch.fx.GraphModule):
        for node in module.graph.nodes:
            if node.name == name:
                return node.stack_trace or ""
    return ""


def _chain(operations: Operations, name: str, stack_trace: str) -> Chain | None:
    """The chain of a node: by its user stack, among those of one line by its name."""
    if not stack_trace:
        return next((chain for n, chain in operations if n == name), None)
    wanted = stack_trace.strip()
    found = {n: chain for n, chain in operations if _text(chain) == wanted}
    if name in found:
        return found[name]
    chains = list(found.values())
    if not chains:
        return None
    if any(chain != chains[0] for chain in chains):
        # A pass has renamed the node: the line is known, the place in it is not.
        return tuple((level[0], level[1], -1, *level[3:]) for level in chains[0])
    return chains[0]


def _text(chain: Chain) -> str:
    """As the translator writes it into stack_trace."""
    return "\n".join(f'  File "{c.co_filename}", line {line}, in {c.co_name}' for c, _, _, line, *_ in chain).strip()


def _inward(entry: TracebackType | None) -> TracebackType | None:
    """What the operation itself added, without the way FX's interpreter calls it."""
    ways = (torch.fx.Interpreter.run_node.__code__.co_filename, _python_ops.__file__)
    while entry is not None and entry.tb_frame.f_code.co_filename in ways:
        entry = entry.tb_next
    return entry
