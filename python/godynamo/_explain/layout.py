"""Computes a layered drawing of an acyclic graph, with few crossings and with edges that pass between boxes.

The steps are those of Sugiyama's method. A node's layer is the length of the longest path from an input. A long edge
gets a dummy node in each layer that it crosses. The order within a layer follows the medians of the neighbours. Then
coordinates are chosen that pull each node below its inputs. Graphs of a few hundred nodes take some tens of
milliseconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

#: An edge over more layers than this is not drawn. Its target gets a stub with the name of its origin.
LONGEST = 8

_GAP_X, _GAP_Y = 18.0, 26.0
_SWEEPS = 6
_OF_INPUT = 0.02  # weight of an input's preferred place, so small that other nodes do not move for it


@dataclass
class Box:
    """A node with its given size and its computed center (x, y)."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass
class Drawing:
    """The positions of everything drawn."""

    boxes: list[Box]
    #: (from, to) of an edge -> its points, from the bottom of the first box to the top of the second box
    paths: dict[tuple[int, int], list[tuple[float, float]]] = field(default_factory=dict)
    stubs: list[tuple[int, int]] = field(default_factory=list)  #: edges too long to be drawn
    width: float = 0.0
    height: float = 0.0


def layered(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Place boxes of these sizes (width, height). Each edge (from, to) goes from a lower to a higher index.

    >>> drawing = layered([(40, 20), (40, 20), (40, 20)], [(0, 2), (1, 2)])
    >>> [(b.x, b.y) for b in drawing.boxes]
    [(20.0, 10.0), (78.0, 10.0), (49.0, 56.0)]
    """
    unique = sorted(set(edges))
    layer = _layers(len(sizes), unique)
    real = len(sizes)
    boxes = [Box(w, h) for w, h in sizes]
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node in range(real):
        rows[layer[node]].append(node)
    drawing = Drawing(boxes[:])
    above: list[list[int]] = [[] for _ in range(real)]
    below: list[list[int]] = [[] for _ in range(real)]
    chains: dict[tuple[int, int], list[int]] = {}
    for a, b in unique:
        if layer[b] - layer[a] > LONGEST:
            drawing.stubs.append((a, b))
            continue
        chain = [a]
        for row in range(layer[a] + 1, layer[b]):
            boxes.append(Box(2.0, 0.0))
            above.append([])
            below.append([])
            rows[row].append(len(boxes) - 1)
            chain.append(len(boxes) - 1)
        chain.append(b)
        chains[a, b] = chain
        for one, other in itertools.pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    _order(rows, above, below)
    _across(rows, boxes, above, below)
    _down(rows, boxes)
    for edge, chain in chains.items():
        first, last = boxes[chain[0]], boxes[chain[-1]]
        middle = [(boxes[n].x, boxes[n].y) for n in chain[1:-1]]
        drawing.paths[edge] = [(first.x, first.y + first.height / 2), *middle, (last.x, last.y - last.height / 2)]
    drawing.width = max((b.x + b.width / 2 for b in boxes), default=0.0)
    drawing.height = max((b.y + b.height / 2 for b in boxes), default=0.0)
    return drawing


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return each node's layer, the longest path from an input. An input is directly above its first user."""
    layer = [0] * count
    takes = [False] * count
    first = [-1] * count
    for a, b in sorted(edges, key=lambda e: e[1]):
        layer[b] = max(layer[b], layer[a] + 1)
        takes[b] = True
    for a, b in edges:
        first[a] = layer[b] if first[a] < 0 else min(first[a], layer[b])
    for node in range(count):
        if not takes[node] and first[node] > 0:
            layer[node] = first[node] - 1
    return layer


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort each row by the medians of the nodes' neighbours in the next row, to avoid crossings."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for i in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            other = i - 1 if down else i + 1
            if not 0 <= other < len(rows):
                continue
            at = {node: k for k, node in enumerate(rows[other])}
            neighbours = above if down else below
            own = {node: k for k, node in enumerate(rows[i])}
            scale = max(len(rows[other]), 1) / max(len(rows[i]), 1)

            def middle(
                node: int,
                at: dict[int, int] = at,
                n: list[list[int]] = neighbours,
                own: dict[int, int] = own,
                s: float = scale,
            ) -> float:
                places = sorted(at[x] for x in n[node] if x in at)
                if not places:
                    return own[node] * s
                half = len(places) // 2
                return places[half] if len(places) % 2 else (places[half - 1] + places[half]) / 2

            rows[i].sort(key=middle)


def _across(rows: list[list[int]], boxes: list[Box], above: list[list[int]], below: list[list[int]]) -> None:
    """Set each x. Boxes start side by side, then move towards their neighbours without losing order and gaps."""
    for row in rows:
        x = 0.0
        for node in row:
            boxes[node].x = x + boxes[node].width / 2
            x += boxes[node].width + _GAP_X
    for sweep in range(2 * _SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            neighbours = above if sweep % 2 == 0 else below
            wishes = [_wish(node, neighbours[node], boxes, above) for node in row]
            _pull(row, boxes, wishes, [1.0 if above[node] else _OF_INPUT for node in row])
    left = min((b.x - b.width / 2 for b in boxes), default=0.0)
    for box in boxes:
        box.x -= left


def _wish(node: int, neighbours: list[int], boxes: list[Box], above: list[list[int]]) -> float:
    """Return the neighbours' mean x. Inputs count only if there are no others, since inputs move to their users."""
    inner = [n for n in neighbours if above[n]] or neighbours
    return sum(boxes[n].x for n in inner) / len(inner) if inner else boxes[node].x


def _pull(row: list[int], boxes: list[Box], wanted: list[float], weights: list[float]) -> None:
    """Place a row's boxes as near to the wanted places as order and gaps allow. Boxes that touch move as a group."""
    groups: list[tuple[float, float, list[int]]] = []  # (place of the first node, sum of the weights, the nodes)
    offsets: dict[int, float] = {}
    for node, want, own in zip(row, wanted, weights, strict=True):
        members, start, weight = [node], want, own
        offsets[node] = 0.0
        while groups:
            before, heavy, nodes = groups[-1]
            last = nodes[-1]
            gap = (boxes[last].width + boxes[members[0]].width) / 2 + _GAP_X
            if before + offsets[last] + gap <= start:
                break
            groups.pop()
            shift = offsets[last] + gap
            for m in members:
                offsets[m] += shift
            start = (before * heavy + (start - shift) * weight) / (heavy + weight)
            members, weight = nodes + members, heavy + weight
        groups.append((start, weight, members))
    for start, _, members in groups:
        for node in members:
            boxes[node].x = start + offsets[node]


def _down(rows: list[list[int]], boxes: list[Box]) -> None:
    y = 0.0
    for row in rows:
        height = max((boxes[n].height for n in row), default=0.0)
        for node in row:
            boxes[node].y = y + height / 2
        y += height + _GAP_Y
