"""Draws the pieces of a function as an SVG picture, from top to bottom, each with its graph and break."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from . import dot, layout

if TYPE_CHECKING:
    from .explanation import BreakReason, Node, Piece

_CHAR = 6.4  # width of a character of the nodes' font, in pixels; text is not measured
_HEIGHT = 22.0
_PAD, _TITLE, _BETWEEN = 14.0, 24.0, 34.0
_INDENT = 46.0  # indent of pieces that ran inside the call at a break
_LANE = 13.0  # distance between vertical lines at the side
_LINE = 15.0

_CSS = """
.gd{font:11px "DejaVu Sans Mono",Menlo,Consolas,monospace}
.gd .piece{fill:#f8fafc;stroke:#b6c2d1}.gd .title{font:bold 12px "DejaVu Sans",Helvetica,sans-serif;fill:#24364b}
.gd .node{fill:#dbe9fb;stroke:#6b93c7}.gd .placeholder{fill:#eef2f7;stroke:#a9b6c6}
.gd .output{fill:#e4f4e4;stroke:#7fae7f}
.gd .get_attr{fill:#efe6fa;stroke:#a78bc9}.gd .edge{fill:none;stroke:#8fa3ba}.gd text{fill:#1c2733}
.gd .stub{fill:#5e7186;font-size:9px}.gd .break{fill:#fdeae6;stroke:#d4654b}.gd .code{font-weight:bold;fill:#a5341a}
.gd .flow{fill:none;stroke:#d4654b;stroke-width:1.6}.gd .call{stroke-dasharray:2 4}
.gd .rest{fill:none;stroke:#d4654b;stroke-dasharray:5 4}
.gd .note{fill:#5e7186;font-style:italic}
"""

#: style for a page that follows the reader's dark or light setting
DARK = """
@media(prefers-color-scheme:dark){.gd .piece{fill:#18212c;stroke:#3c4d60}.gd .title{fill:#d5e0ec}
.gd .node{fill:#1f3a5c;stroke:#5681b8}
.gd .placeholder{fill:#26313d;stroke:#51606f}.gd .output{fill:#20402a;stroke:#5b8f66}
.gd .get_attr{fill:#372a4a;stroke:#8a6db0}
.gd text{fill:#dfe7ef}.gd .edge{stroke:#64788e}.gd .break{fill:#43241d;stroke:#c9674f}.gd .code{fill:#ff9f86}
.gd .stub,.gd .note{fill:#93a5b8}}
"""


def picture(pieces: Sequence[Piece], breaks: Sequence[BreakReason], most: int | None = None) -> str:
    """Return the picture, or a note if there is nothing to draw. Graphs of more than ``most`` nodes are omitted."""
    return _Picture(pieces, breaks, most).text()


class _Picture:
    def __init__(self, pieces: Sequence[Piece], breaks: Sequence[BreakReason], most: int | None) -> None:
        self.pieces, self.breaks, self.most = pieces, breaks, most
        self.out: list[str] = []
        self.width = 200.0
        self.y = 8.0
        self.tops: list[float] = []
        self.ends: list[tuple[float, float]] = []  # x and y of each piece's lower edge, from which lines lead on
        depth = self._depths()
        self.flows = [(i, j, "flow") for i in range(len(pieces)) for j in self._new(i)]
        self.flows += [(i, j, "flow call") for i, p in enumerate(pieces) for j in p.calls]
        jumps = [(i, j) for i, j, _ in self.flows if j != i + 1]
        self.lanes = {jump: k for k, jump in enumerate(jumps)}
        self.left = 12.0 + _LANE * (len(jumps) + 1 if jumps else 0)
        self.indent = [self.left + _INDENT * d for d in depth]
        for i, piece in enumerate(pieces):
            self._piece(i, piece)
        for i, j, kind in self.flows:
            self._flow(i, j, kind)
        if not pieces:
            self._text(12, 26, "nothing was captured", "note")
            self.y = 40.0

    def _depths(self) -> list[int]:
        depth = [0] * len(self.pieces)
        for i, piece in enumerate(self.pieces):
            for j in piece.calls:
                depth[j] = max(depth[j], depth[i] + 1)
            for j in piece.goes_on:
                if j > i:
                    depth[j] = depth[i]
            if piece.again is not None:
                depth[i] = depth[piece.again]
        return [min(d, 6) for d in depth]

    def _new(self, i: int) -> list[int]:
        """Return the pieces that follow a piece, without those that follow the first translation of the same piece."""
        again = self.pieces[i].again
        known = self.pieces[again].goes_on if again is not None else []
        return [j for j in self.pieces[i].goes_on if j not in known]

    def text(self) -> str:
        width, height = self.width + 12, self.y + 8
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gd" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img"><title>how the function was split</title>'
            f"<style>{_CSS}</style>"
            '<defs><marker id="gd-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
            'orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#8fa3ba"/></marker>'
            '<marker id="gd-flow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#d4654b"/></marker></defs>' + "".join(self.out) + "</svg>"
        )

    # -- a piece --

    def _piece(self, number: int, piece: Piece) -> None:
        x, top = self.indent[number], self.y
        self.tops.append(top)
        nodes = piece.nodes if self.most is None or len(piece.nodes) <= self.most else []
        index = {node.name: k for k, node in enumerate(nodes)}
        edges = [(index[a], k) for k, node in enumerate(nodes) for a in node.inputs if a in index and index[a] < k]
        sizes = [(max(len(dot.label(n)) * _CHAR + 18, 34.0), _HEIGHT) for n in nodes]
        drawing = layout.layered(sizes, edges)
        title = dot.heading(number, piece)
        told = self._break_of(piece)
        break_width = max((len(line) * _CHAR for line in told), default=0) + 22
        width = max(drawing.width, len(title) * 7.4, break_width) + 2 * _PAD
        inner = top + _TITLE + (6 if nodes else 0)
        bottom = inner + (drawing.height + _PAD if nodes else 4)
        break_height = len(told) * _LINE + 12 if told else 0.0
        end = bottom + (break_height + 8 if told else 0)
        self.out.append(
            f'<g><rect class="piece" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{end - top:.1f}" rx="7"/>'
        )
        self._text(x + 10, top + 17, title, "title")
        dx = x + _PAD + max((width - 2 * _PAD - drawing.width) / 2, 0)
        self._graph(nodes, drawing, dx, inner)
        if told:
            self._break(x + 8, bottom, width - 16, break_height, told)
            if piece.not_run:
                self._rest(x + width, bottom + break_height / 2, piece.not_run)
        self.out.append("</g>")
        self.ends.append((x + min(width / 2, 150), end))
        self.width = max(self.width, x + width + (190 if piece.not_run and told else 0))
        self.y = end + (_BETWEEN if number + 1 < len(self.pieces) else 0)

    def _break_of(self, piece: Piece) -> list[str]:
        if piece.split is None or piece.split >= len(self.breaks):
            return []
        return [line for line in dot.break_lines(self.breaks[piece.split], piece) if line]

    def _graph(self, nodes: Sequence[Node], drawing: layout.Drawing, dx: float, dy: float) -> None:
        for points in drawing.paths.values():
            moved = [(px + dx, py + dy) for px, py in points]
            self.out.append(f'<path class="edge" d="{_curve(moved)}" marker-end="url(#gd-arrow)"/>')
        far: dict[int, list[str]] = {}
        for a, b in drawing.stubs:
            far.setdefault(b, []).append(nodes[a].name)
        for k, (node, box) in enumerate(zip(nodes, drawing.boxes, strict=True)):
            x, y = box.x - box.width / 2 + dx, box.y - box.height / 2 + dy
            kind = node.op if node.op in ("placeholder", "output", "get_attr") else "node"
            radius = 11 if kind != "node" else 3
            self.out.append(
                f'<g><title>{escape(dot.tooltip(node))}</title><rect class="{kind}" x="{x:.1f}" y="{y:.1f}" '
                f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius}"/>'
            )
            self._text(box.x + dx, box.y + dy + 4, dot.label(node), "", middle=True)
            if k in far:
                self._text(box.x + dx, y - 3, "↑ " + ", ".join(far[k]), "stub", middle=True)
            self.out.append("</g>")

    def _break(self, x: float, y: float, width: float, height: float, told: list[str]) -> None:
        self.out.append(
            f'<rect class="break" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4"/>'
        )
        for i, line in enumerate(told):
            self._text(x + 9, y + 17 + i * _LINE, line, "code" if i == 0 else "")

    def _rest(self, x: float, y: float, count: int) -> None:
        text = "an arm that did not run" if count == 1 else f"{count} parts that did not run"
        self.out.append(f'<path class="rest" d="M{x - 8:.1f} {y:.1f}H{x + 18:.1f}" marker-end="url(#gd-flow)"/>')
        self._text(x + 24, y + 4, text, "note")

    # -- between pieces --

    def _flow(self, i: int, j: int, kind: str) -> None:
        x, y = self.ends[i]
        top = self.tops[j]
        if j == i + 1:
            to = max(x, self.indent[j] + 30)
            d = f"M{x:.1f} {y:.1f}C{x:.1f} {y + 16:.1f} {to:.1f} {top - 16:.1f} {to:.1f} {top - 1:.1f}"
        else:  # lines at the left side, each in a separate lane
            lane = self.left - _LANE * (self.lanes[i, j] + 1)
            side, into = self.ends[i][1] - 14, top + 12
            d = (
                f"M{self.indent[i]:.1f} {side:.1f}H{lane + 6:.1f}Q{lane:.1f} {side:.1f} {lane:.1f} "
                f"{side + (6 if into > side else -6):.1f}V{into - (6 if into > side else -6):.1f}"
                f"Q{lane:.1f} {into:.1f} {lane + 6:.1f} {into:.1f}H{self.indent[j] - 1:.1f}"
            )
        self.out.append(f'<path class="{kind}" d="{d}" marker-end="url(#gd-flow)"/>')

    def _text(self, x: float, y: float, text: str, kind: str, middle: bool = False) -> None:
        anchor = ' text-anchor="middle"' if middle else ""
        style = f' class="{kind}"' if kind else ""
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{style}>{escape(text)}</text>')


def _curve(points: Sequence[tuple[float, float]]) -> str:
    """Return an SVG path through the points that is vertical at each of them."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for nx, ny in points[1:]:
        bend = (ny - y) / 2
        parts.append(f"C{x:.1f} {y + bend:.1f} {nx:.1f} {ny - bend:.1f} {nx:.1f} {ny:.1f}")
        x, y = nx, ny
    return "".join(parts)
