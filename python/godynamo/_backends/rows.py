"""Node rows: the form in which Go passes a graph, before it becomes a torch.fx.GraphModule.

A row is (op, name, target, args, kwargs, stack_trace, source_range); placeholders come first, the output last.
"""

from __future__ import annotations


class Ref:
    """An operand in a node row that is the node of another row of the same graph."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __repr__(self) -> str:
        return f"Ref({self.index})"
