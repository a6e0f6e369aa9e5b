"""Functions made of functions (torch.vmap, torch.func's transforms) as one operation of the graph.

The operation makes the function anew from a template: the user's own code with, in its cells and defaults, what the translation
knows to be there, and the operation's operands in the place of tensors. Then it calls it, and torch does the rest.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

Operands = Sequence[Any]
Template = Callable[[Operands], Any]


def constant(value: Any) -> Template:
    """The same in every call."""
    return lambda _: value


def operand(index: int) -> Template:
    """A tensor of the graph's."""
    return lambda operands: operands[index]


def together(items: tuple[Template, ...]) -> Template:
    """A tuple."""
    return lambda operands: tuple(item(operands) for item in items)


def rebuilt(
    code: types.CodeType,
    namespace: dict[str, Any],
    defaults: tuple[Template, ...],
    keywords: dict[str, Template],
    cells: tuple[Template | None, ...],
) -> Template:
    """A Python function; an empty cell is None."""

    def make(operands: Operands) -> Any:
        closure = tuple(types.CellType() if c is None else types.CellType(c(operands)) for c in cells)
        made = types.FunctionType(code, namespace, code.co_name, tuple(d(operands) for d in defaults), closure)
        if keywords:
            made.__kwdefaults__ = {name: value(operands) for name, value in keywords.items()}
        return made

    return make


def called(maker: Any, args: tuple[Template, ...], kwargs: dict[str, Template]) -> Template:
    """What ``maker`` gives for these: torch.vmap(f, in_dims=...)."""
    return lambda operands: maker(*(a(operands) for a in args), **{k: v(operands) for k, v in kwargs.items()})


def operation(template: Template, name: str) -> Callable[..., Any]:
    """The operation ``(operands, *args)``, with a name that torch.fx can print."""

    def run(operands: Operands, *args: Any) -> Any:
        return template(operands)(*args)

    run.__name__ = run.__qualname__ = name
    return run


def dimensions(in_dims: Any, count: int) -> tuple[int | None, ...] | None:
    """The dimension that torch.vmap goes along for each of ``count`` tensors; None for what is nested or wrong."""
    dims = (in_dims,) * count if type(in_dims) is int else in_dims
    if type(dims) is not tuple or len(dims) != count or not all(d is None or type(d) is int for d in dims):
        return None
    return dims
