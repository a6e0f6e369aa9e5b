"""Draws the pieces between a function's graph breaks in the DOT language: a cluster per piece, a note per break."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._called import runtime
from .._translator import trace_rules
from . import guard_words

if TYPE_CHECKING:
    from .explanation import BreakReason, Node, Piece

#: parts to remove from the name of an input that is read from a module, such as
#: ``l_self__modules_block__parameters_weight``
_MODULE_STEPS = re.compile(r"__(?:modules|parameters|buffers)_")

_STYLE = {
    "placeholder": 'shape=ellipse, style=filled, fillcolor="#eef2f7"',
    "get_attr": 'shape=ellipse, style=filled, fillcolor="#f3eefa"',
    "output": 'shape=ellipse, style=filled, fillcolor="#eef7ee"',
}


def pieces(all_pieces: Sequence[Piece], breaks: Sequence[BreakReason]) -> str:
    """Return a drawing of the pieces and their continuations. Dotted edges lead to pieces that a break's call ran."""
    out = [
        "digraph explanation {",
        "  rankdir=TB; compound=true; fontname=Helvetica;",
        "  node [shape=box, fontname=Helvetica, fontsize=10];",
    ]
    for i, piece in enumerate(all_pieces):
        out += [f"  subgraph cluster_{i} {{", f"    label={_quoted(heading(i, piece))};"]
        names = {node.name: f"p{i}_{k}" for k, node in enumerate(piece.nodes)}
        for node in piece.nodes:
            style = _STYLE.get(node.op, "")
            where = tooltip(node)
            out.append(
                f"    {names[node.name]} [label={_quoted(label(node))}, "
                f"tooltip={_quoted(where)}{', ' if style else ''}{style}];"
            )
        out.append(f"    start_{i} [shape=point, style=invis];")
        for node in piece.nodes:
            out += [f"    {names[a]} -> {names[node.name]};" for a in dict.fromkeys(node.inputs) if a in names]
        if piece.split is not None and piece.split < len(breaks):
            reason = breaks[piece.split]
            text = "\n".join(break_lines(reason, piece))
            out.append(f'    break_{i} [shape=note, style=filled, fillcolor="#fde8e4", label={_quoted(text)}];')
            used = {a for node in piece.nodes for a in node.inputs}
            last = [names[n.name] for n in piece.nodes if n.name not in used and n.op != "placeholder"]
            out += [f"    {name} -> break_{i} [style=dashed, arrowhead=none];" for name in last[-1:]]
        out.append("  }")
    for i, piece in enumerate(all_pieces):
        if piece.split is None or piece.split >= len(breaks):
            continue
        known = all_pieces[piece.again].goes_on if piece.again is not None else []
        out += [f"  break_{i} -> start_{j} [lhead=cluster_{j}];" for j in piece.goes_on if j not in known]
        out += [f'  break_{i} -> start_{j} [lhead=cluster_{j}, style=dotted, label="calls"];' for j in piece.calls]
        if piece.not_run:
            out.append(f'  rest_{i} [label="not run in this call", style=dashed];')
            out.append(f"  break_{i} -> rest_{i} [style=dashed];")
    return "\n".join([*out, "}", ""])


def heading(number: int, piece: Piece) -> str:
    """Return a piece's heading."""
    ops = piece.ops
    count = "no operation" if ops == 0 else f"{ops} operation{'s' if ops > 1 else ''}"
    return f"{number + 1}: {piece.title} ({count})"


def break_lines(reason: BreakReason, piece: Piece | None = None) -> list[str]:
    """Return lines about a break: code and text, the piece's last line, and the innermost line if it differs."""
    at = piece.split_frame if piece is not None else 0
    while at and (at >= len(reason.user_stack) or trace_rules.is_torchs(reason.user_stack[at][1])):
        at -= 1  # from nn.Module.__call__ to the frame that it inlined
    out = [f"{reason.code} {_cut(reason.reason, 70)}".strip()]
    for i in (at, 0) if at else (0,):
        if i < len(reason.user_stack):
            name, file, line = reason.user_stack[i]
            source = runtime.source_line(file, line)
            out.append(_cut(f"{name}, line {line}" + (f": {source}" if source else ""), 90))
    return out


def label(node: Node) -> str:
    """Return the text of a node's box: its name, and its target if different. For an input: its name in user code."""
    if node.op in ("placeholder", "get_attr"):
        path = _MODULE_STEPS.split(node.name)
        return _cut(".".join(path[1:]) if len(path) > 1 else guard_words.on_stack(node.name.removeprefix("l_")), 40)
    target = node.target.rpartition(".")[2]
    bare = node.name.rstrip("0123456789").rstrip("_")
    return _cut(node.name if not target or target == bare else f"{node.name} = {target}", 40)


def tooltip(node: Node) -> str:
    """Return the node's line as FX prints it, and its place in the user's code."""
    return "\n".join([node.text, *(f"{f} {file}:{line}" for f, file, line in node.user_stack[:3])])


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
