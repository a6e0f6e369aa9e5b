"""Operations that take functions (torch.vmap, torch.func.grad, ...) as one graph operation: see variables/higher.

Each function operand has been captured as a separate graph. Outer tensors that it reads are operands of the operation;
each call makes a new function that runs the graph with them, and torch does the rest.
"""

from __future__ import annotations

import inspect
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from .._backends.rows import Ref

Operands = Sequence[Any]
Template = Callable[[Operands], Any]


# ---- a function's result, from its graph's outputs ----


def constant(value: Any) -> Template:
    """Return a template of a value that is the same in every call."""
    return lambda _: value


def operand(index: int) -> Template:
    """Return a template of an output of the graph."""
    return lambda operands: operands[index]


def together(cls: type, items: tuple[Template, ...]) -> Template:
    """Return a template of a list, a tuple, or an instance of a namedtuple class."""
    if hasattr(cls, "_make"):
        return lambda operands: cls._make(item(operands) for item in items)
    return lambda operands: cls(item(operands) for item in items)


def mapping(keys: tuple[Any, ...], values: tuple[Template, ...]) -> Template:
    """Return a template of a dict."""
    return lambda operands: {k: v(operands) for k, v in zip(keys, values, strict=True)}


# ---- functions ----


def function(rows: Sequence[Any], positions: Sequence[int], result: Template, plain: bool) -> Template:
    """Return a template of a function that runs a graph, given the outer tensors that it reads.

    rows: of the graph (backends.build_graph_module). positions: the leaves of the arguments that are its first inputs.
    plain: the arguments are tensors.
    """
    from .._backends.graph_modules import build_graph_module

    forward = build_graph_module(rows, ()).forward

    def make(outside: Operands) -> Any:
        if plain:
            return lambda *args: result(forward(*args, *outside))

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = pytree.tree_leaves((args, kwargs))
            return result(forward(*(leaves[i] for i in positions), *outside))

        return run

    return make


def subgraph(rows: Sequence[Any], order: Sequence[Sequence[int]], bare: bool) -> torch.fx.GraphModule:
    """Return the graph of a function as a module that takes an operation's operands.

    order[i] are the placeholders that get the i-th operand. bare: it returns its single result, not a tuple.
    """
    from .._backends.graph_modules import build_graph_module

    given = [row for row in rows if row[0] == "placeholder"]
    moved = {at: i for i, places in enumerate(order) for at in places}
    shift = len(order) - len(given)

    def renumbered(x: Any) -> Any:
        if isinstance(x, Ref):
            return Ref(moved[x.index] if x.index < len(given) else x.index + shift)
        if type(x) is tuple or type(x) is list:
            return type(x)(renumbered(i) for i in x)
        if type(x) is dict:
            return {k: renumbered(v) for k, v in x.items()}
        if type(x) is slice:
            return slice(renumbered(x.start), renumbered(x.stop), renumbered(x.step))
        return x

    places = [
        given[at[0]] if at else ("placeholder", f"unused_{i}", f"unused_{i}", (), {}, "") for i, at in enumerate(order)
    ]
    rest = [(op, n, t, renumbered(a), renumbered(k), *more) for op, n, t, a, k, *more in rows[len(given) :]]
    gm = build_graph_module([*places, *rest], ())
    if bare:
        gm.graph.output_node().args = (gm.graph.output_node().args[0][0],)
        gm.recompile()
    return gm  # type: ignore[no-any-return]


def _named(run: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Set a name that torch.fx can print."""
    run.__name__ = run.__qualname__ = name
    return run


def transformation(
    name: str,
    body: Template,
    args: Template,
    kwargs: Template,
    maker: Any,
    options: tuple[Any, ...],
    named: dict[str, Any],
) -> Callable[..., Any]:
    """Return the operation ``(outside, *tensors)`` that computes maker(f, *options, **named)(*args, **kwargs)."""

    def run(outside: Operands, /, *tensors: Any) -> Any:
        return maker(body(outside), *options, **named)(*args(tensors), **kwargs(tensors))

    return _named(run, name)


def direct(name: str, body: Template, args: Template, kwargs: Template, taker: Any) -> Callable[..., Any]:
    """Return the operation ``(outside, *tensors)`` that computes taker(f, *args, **kwargs)."""

    def run(outside: Operands, /, *tensors: Any) -> Any:
        return taker(body(outside), *args(tensors), **kwargs(tensors))

    return _named(run, name)


class _Recomputed:
    """A function that a checkpoint keeps: it runs its graph in the forward pass, later the program's own function."""

    __slots__ = ("__weakref__", "_places", "_run", "_values")

    def __init__(self, run: Callable[..., Any], places: tuple[int | str, ...]) -> None:
        self._run, self._places, self._values = run, places, ()

    def supply(self, fn: Callable[..., Any], values: tuple[Any, ...]) -> None:
        self._run, self._values = fn, values

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._values:
            given: list[Any] = list(args)
            for place, value in zip(self._places, self._values, strict=True):
                (kwargs if isinstance(place, str) else given)[place] = value
            return self._run(*given, **kwargs)
        return self._run(*args, **kwargs)


def checkpointed(
    name: str, body: Template, args: Template, kwargs: Template, taker: Any, places: tuple[int | str, ...]
) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Return (the operation of ``direct``, a function that gives it the program's own function once it has run).

    A checkpoint calls its function again in backward, when the program may have changed what the function reads: a
    module's training flag, a closure variable, a list argument. So the second run calls the program's function, as in
    eager mode. ``supply(fn, *values)`` receives it and the arguments at ``places`` that the program can change. It is
    called after the graph in the same thread; if the graph raises, its function is dropped.
    """
    waiting = threading.local()

    def run(outside: Operands, /, *tensors: Any) -> Any:
        fn = _Recomputed(body(outside), places)
        alive = [r for r in getattr(waiting, "functions", ()) if r() is not None]
        waiting.functions = [*alive, weakref.ref(fn)]
        return taker(fn, *args(tensors), **kwargs(tensors))

    def supply(fn: Callable[..., Any], *values: Any) -> None:
        functions = getattr(waiting, "functions", None)
        last = functions.pop()() if functions else None  # None: no gradient is recorded, or the graph ran elsewhere
        if last is not None:
            last.supply(fn, values)

    return _named(run, name), supply


def called_function(args: Template, kwargs: Template) -> Callable[..., Any]:
    """Return the operation ``(fn, *tensors)`` that calls the result of another operation."""

    def called_function(fn: Any, /, *tensors: Any) -> Any:
        return fn(*args(tensors), **kwargs(tensors))

    return called_function


# ---- samples of the tensors with which a function will be called ----


def stand_in(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor with the same metadata."""
    return x.detach().requires_grad_(x.requires_grad)


def first_slice(x: torch.Tensor) -> torch.Tensor:
    """Return a sample of the slices that a scan passes to its function."""
    return x.select(0, 0).detach().clone().requires_grad_(x.requires_grad)


def differentiated(x: torch.Tensor) -> torch.Tensor:
    """Return a sample of the tensor that torch.func.grad passes for an argument."""
    return x.detach().requires_grad_()


def one_of_none(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return a sample of the tensor that torch.vmap would pass for a tensor of size 0 along ``dim``."""
    return x.new_empty(x.shape[:dim] + x.shape[dim + 1 :]).requires_grad_(x.requires_grad)


def dimensions(in_dims: Any, args: tuple[Any, ...]) -> list[int | None] | None:
    """Return the dimension over which torch.vmap maps each leaf of the arguments; None if they do not match."""
    if type(in_dims) is list:
        in_dims = tuple(in_dims)
    if type(in_dims) is not int and type(in_dims) is not tuple:
        return None
    flat = pytree._broadcast_to_and_flatten(in_dims, pytree.tree_structure(args))
    if flat is None or not all(d is None or type(d) is int for d in flat):
        return None
    return flat


def differentiated_leaves(argnums: Any, args: tuple[Any, ...]) -> list[int] | None:
    """Return the leaves of the arguments by which torch.func.grad differentiates; None if they do not match."""
    chosen = (argnums,) if type(argnums) is int else argnums
    if type(chosen) is not tuple or not all(type(i) is int and -len(args) <= i < len(args) for i in chosen):
        return None
    chosen = {i % len(args) for i in chosen}
    counts = [len(pytree.tree_leaves(a)) for a in args]
    return [sum(counts[:i]) + k for i in sorted(chosen) for k in range(counts[i])]


def untied(module: torch.nn.Module) -> bool:
    """Return whether no parameter or buffer has two names; a guard predicate."""
    seen = set()
    for m in module.modules():
        for t in (*m._parameters.values(), *m._buffers.values()):
            if t is not None:
                if id(t) in seen:
                    return False
                seen.add(id(t))
    return True


# ---- functions made earlier ----


def _code_inside(maker: Callable[..., Any], name: str) -> types.CodeType:
    inner = inspect.unwrap(maker).__code__.co_consts
    return next(c for c in inner if isinstance(c, types.CodeType) and c.co_name == name)


#: the code of the functions they return -> (the maker, its name)
_MADE: dict[types.CodeType, tuple[Any, str]] = {
    _code_inside(maker, inner): (maker, maker.__name__)
    for maker, inner in (
        (torch.vmap, "wrapped"),
        (torch.func.grad, "wrapper"),
        (torch.func.grad_and_value, "wrapper"),
        (torch.func.jacrev, "wrapper_fn"),
        (torch.func.jacfwd, "wrapper_fn"),
    )
}


def is_made(fn: types.FunctionType) -> bool:
    """Return whether torch.vmap or a similar function returned it."""
    return fn.__code__ in _MADE


def made_by(fn: types.FunctionType) -> tuple[Any, str, Any, tuple[str | None, ...]]:
    """Return (maker, maker's name, cells, for each cell its name if it holds an argument of the maker, else None)."""
    maker, name = _MADE[fn.__code__]
    given = inspect.signature(maker).parameters
    return maker, name, fn.__closure__, tuple(n if n in given else None for n in fn.__code__.co_freevars)
