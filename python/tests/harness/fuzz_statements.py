"""A program as a tree of statements, so that what a mismatch does not need can be taken out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Statement:
    """A line, or headers with a block under each; a part after the first may be left out where ``optional`` says so."""

    parts: list[tuple[str, list[Statement] | None]]
    optional: tuple[bool, ...] = ()

    def render(self, depth: int, out: list[str]) -> None:
        """Appends the statement's lines."""
        for header, block in self.parts:
            out.append("    " * depth + header)
            if block is not None:
                render_block(block, depth + 1, out)


def render_block(block: list[Statement], depth: int, out: list[str]) -> None:
    """Appends a block's lines; an empty one is a pass."""
    for statement in block:
        statement.render(depth, out)
    if not block:
        out.append("    " * depth + "pass")


def line(text: str) -> Statement:
    """A simple statement."""
    return Statement([(text, None)])
