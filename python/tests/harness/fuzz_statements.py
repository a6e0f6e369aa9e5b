"""A program as a tree of statements, from which the parts that a mismatch does not need can be removed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Statement:
    """A line, or headers with a block under each; ``optional`` marks the later parts that may be omitted."""

    parts: list[tuple[str, list[Statement] | None]]
    optional: tuple[bool, ...] = ()

    def render(self, depth: int, out: list[str]) -> None:
        """Append the statement's lines."""
        for header, block in self.parts:
            out.append("    " * depth + header)
            if block is not None:
                render_block(block, depth + 1, out)


def render_block(block: list[Statement], depth: int, out: list[str]) -> None:
    """Append a block's lines; an empty block is a pass."""
    for statement in block:
        statement.render(depth, out)
    if not block:
        out.append("    " * depth + "pass")


def line(text: str) -> Statement:
    """Return a simple statement."""
    return Statement([(text, None)])
