"""Finds the operation of a graph that raised, from the traceback of the backend's callable.

In the code that FX generates, each variable has the name of its node. A node's ``stack_trace`` is the user's stack;
copies of the graph and most passes (including AOTAutograd's) preserve it. If a backend compiles the graph to other
code than FX's, nothing is found.

An operation that takes functions (torch.vmap, checkpoint, ...: _translator/higher.py) runs one graph per function. The
frame of such a graph is found in the same way. In the traceback, the user frames of the captured code replace it;
torch's own frames around it stay.
"""

from __future__ import annotations

import ast
import linecache
from types import FrameType, TracebackType
from typing import Any

import torch

from .._backends import compiling, graph_modules, python_ops, verified
from .._translator import higher

# (code, globals, lasti, line) of each user frame, outermost first. The outermost tuple may end with the variables that
# its frame shows.
Chain = tuple[tuple[Any, ...], ...]
# (name of a node, its user frames) for a node of the backend's graph. For a node of a function's graph, a third item
# is the number of user frames that are outside the function.
Operation = tuple[str, Chain] | tuple[str, Chain, int]
Operations = tuple[Operation, ...]
# a traceback: its entries, or (user frames, the frame that they replace)
Parts = tuple[TracebackType | tuple[Chain, FrameType], ...]

#: files of the functions through which a graph is called
_CALLS = {
    torch.fx.graph_module.__file__,
    torch.nn.modules.module.__file__,
    compiling.__file__,
    graph_modules.__file__,
    verified.__file__,
}


def user_frames(
    question: tuple[Operations, TracebackType, bool],
) -> tuple[Chain | None, TracebackType | Parts | None] | None:
    """Return the user frames of the operation that raised, and the rest of the traceback inside that operation.

    ``question`` has the operations, the traceback below the transformed frame, and whether that frame called the
    backend's graph. If it did not, or if the operation is not found, the user frames are None. Returns None if nothing
    in the traceback must be replaced. C calls this function (traceback.c).
    """
    operations, tb, whole = question
    graph = tuple(op for op in operations if len(op) == 2)
    inside = operations[len(graph) :]
    chain: Chain | None = None
    rest: TracebackType | None = tb
    if whole:
        entry = rest
        while entry is not None and chain is None:
            named = _node_of(entry)
            chain = _chain(graph, *named) if named is not None else None
            entry = entry.tb_next
        if chain is not None:
            rest = _inward(entry)
    parts = _inside(inside, rest) if inside else None
    if parts is not None:
        return chain, parts
    return (chain, rest) if chain is not None else None


def _inside(operations: Operations, entry: TracebackType | None) -> Parts | None:
    """Replace the frames of functions' graphs in a traceback by user frames; return None if it has no such frame."""
    parts: list[Any] = []
    left_out = False
    while entry is not None:
        named = _node_of(entry)
        levels = _function_levels(operations, *named) if named is not None else None
        if levels is not None:
            left_out = True
            while parts and isinstance(parts[-1], TracebackType) and _file(parts[-1]) in _CALLS:
                parts.pop()
            parts.append((levels, entry.tb_frame))
        elif _file(entry) == higher.__file__:
            left_out = True
        else:
            parts.append(entry)
        entry = entry.tb_next
    return tuple(parts) if left_out else None


def _function_levels(operations: Operations, name: str, stack_trace: str) -> Chain | None:
    """Return the user frames inside the function for a node of its graph; None if the node is not found.

    The node is found by its user stack first, since several graphs may have nodes of the same name.
    """
    wanted = stack_trace.strip()
    found = [op for op in operations if _text(op[1]) == wanted] if wanted else []
    found = [op for op in found if op[0] == name] or found
    return found[0][1][found[0][2] :] if found else None  # type: ignore[misc]


def _file(entry: TracebackType) -> str:
    return entry.tb_frame.f_code.co_filename


def _node_of(entry: TracebackType) -> tuple[str, str] | None:
    """Return the name and stack_trace of the node that a frame is running, or None. A lost stack_trace is ""."""
    frame = entry.tb_frame
    if frame.f_code is torch.fx.Interpreter.run_node.__code__:
        node = frame.f_locals.get("n")
        return (node.name, node.stack_trace or "") if isinstance(node, torch.fx.Node) else None
    if "eval_with_key" not in frame.f_code.co_filename:
        return None
    name = _assigned(linecache.getline(frame.f_code.co_filename, entry.tb_lineno, frame.f_globals))
    return (name, _stack_trace(frame, name)) if name else None


def _assigned(line: str) -> str:
    """Return the name of the node that a line of generated code computes.

    The name is "mul" for `mul = x * 2; x = None`, and "iadd" for `x += y; iadd = x; y = None`.
    """
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
    """Return the user frames of a node, which is found by its user stack or, among nodes of one line, by its name."""
    if not stack_trace:
        return next((op[1] for op in operations if op[0] == name), None)
    wanted = stack_trace.strip()
    found = {op[0]: op[1] for op in operations if _text(op[1]) == wanted}
    if name in found:
        return found[name]
    chains = list(found.values())
    if not chains:
        return None
    if any(chain != chains[0] for chain in chains):
        # A pass has renamed the node, so the line is known but not the instruction.
        return tuple((level[0], level[1], -1, *level[3:]) for level in chains[0])
    return chains[0]


def _text(chain: Chain) -> str:
    """Return user frames as text, formatted like the stack_trace of a node."""
    return "\n".join(f'  File "{c.co_filename}", line {line}, in {c.co_name}' for c, _, _, line, *_ in chain).strip()


def _inward(entry: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames in which FX's interpreter or python_ops call an operation."""
    ways = (torch.fx.Interpreter.run_node.__code__.co_filename, python_ops.__file__)
    while entry is not None and entry.tb_frame.f_code.co_filename in ways:
        entry = entry.tb_next
    return entry
