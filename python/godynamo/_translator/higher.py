"""Runs operations that take functions (torch.vmap, torch.func.grad, ...) as one graph operation: see variables/higher.

Each function operand has been captured as a separate graph. Outer tensors that the function reads are operands of the
operation. Each call of the operation makes a new function, which runs the graph with these tensors, and passes the
function to torch. A Template is a function that builds an object from tensors.
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
from .recipes import noted

Operands = Sequence[Any]
Template = Callable[[Operands], Any]


# ---- templates of a function's result, filled with its graph's outputs ----


@noted
def constant(value: Any) -> Template:
    """Return a template of a value that is the same in every call."""
    return lambda _: value


@noted
def operand(index: int) -> Template:
    """Return a template of the graph output with this index."""
    return lambda operands: operands[index]


@noted
def together(cls: type, items: tuple[Template, ...]) -> Template:
    """Return a template of a list, a tuple, or an instance of a namedtuple class."""
    if hasattr(cls, "_make"):
        return lambda operands: cls._make(item(operands) for item in items)
    return lambda operands: cls(item(operands) for item in items)


@noted
def mapping(keys: tuple[Any, ...], values: tuple[Template, ...]) -> Template:
    """Return a template of a dict."""
    return lambda operands: {k: v(operands) for k, v in zip(keys, values, strict=True)}


# ---- functions ----


@noted
def function(rows: Sequence[Any], positions: Sequence[int], result: Template, plain: bool) -> Template:
    """Return a template of a function that runs a graph; it is filled with the outer tensors that the graph reads.

    rows: the graph's rows (see _backends/rows.py). positions: the leaves of the arguments that are the graph's first
    inputs. plain: all arguments are tensors.
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


@noted
def subgraph(rows: Sequence[Any], order: Sequence[Sequence[int]], bare: bool) -> torch.fx.GraphModule:
    """Return the graph of a function as a module whose inputs are an operation's operands.

    order[i] are the placeholders that get the i-th operand. bare: the module returns its single result, not a tuple.
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
    """Give a function a name that torch.fx can print, and return it."""
    run.__name__ = run.__qualname__ = name
    return run


@noted
def transformation(
    name: str,
    body: Template,
    args: Template,
    kwargs: Template,
    maker: Any,
    options: tuple[Any, ...],
    named: dict[str, Any],
) -> Callable[..., Any]:
    """Return the operation ``(outside, *tensors)`` that computes maker(f, *options, **named)(*args, **kwargs).

    ``body`` is the template of f.
    """

    def run(outside: Operands, /, *tensors: Any) -> Any:
        return maker(body(outside), *options, **named)(*args(tensors), **kwargs(tensors))

    return _named(run, name)


@noted
def direct(name: str, body: Template, args: Template, kwargs: Template, taker: Any) -> Callable[..., Any]:
    """Return the operation ``(outside, *tensors)`` that computes taker(f, *args, **kwargs). ``body`` makes f."""

    def run(outside: Operands, /, *tensors: Any) -> Any:
        return taker(body(outside), *args(tensors), **kwargs(tensors))

    return _named(run, name)


class _Recomputed:
    """The function of a checkpoint.

    Its first call runs the captured graph; the call in backward runs the program's function.
    """

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


@noted
def checkpointed(
    name: str, body: Template, args: Template, kwargs: Template, taker: Any, places: tuple[int | str, ...]
) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Return (an operation like that of ``direct``, the function ``supply``).

    A checkpoint calls its function again in backward, when the program may have changed something that the function
    reads: a module's training flag, a closure variable, a list argument. So the second call must run the program's own
    function, as in eager mode. ``supply(fn, *values)`` passes this function to the checkpoint, with the arguments at
    ``places``, which the program can change. The transformed code calls ``supply`` after the graph, in the same thread.
    If the graph raises, the checkpoint's function has died and gets nothing.
    """
    waiting = threading.local()

    def run(outside: Operands, /, *tensors: Any) -> Any:
        fn = _Recomputed(body(outside), places)
        alive = [r for r in getattr(waiting, "functions", ()) if r() is not None]
        waiting.functions = [*alive, weakref.ref(fn)]
        return taker(fn, *args(tensors), **kwargs(tensors))

    def supply(fn: Callable[..., Any], *values: Any) -> None:
        functions = getattr(waiting, "functions", None)
        last = functions.pop()() if functions else None  # None if no gradient is recorded, or in another thread
        if last is not None:
            last.supply(fn, values)

    return _named(run, name), supply


@noted
def called_function(args: Template, kwargs: Template) -> Callable[..., Any]:
    """Return the operation ``(fn, *tensors)`` that calls ``fn``, a function that another operation has returned."""

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


def score(query: torch.Tensor) -> torch.Tensor:
    """Return a sample of the scores that flex_attention passes to its function."""
    return query.new_empty((), requires_grad=query.requires_grad)


def index(query: torch.Tensor) -> torch.Tensor:
    """Return a sample of the indices that flex_attention passes to its functions."""
    return query.new_empty((), dtype=torch.int32)


def one_of_none(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return a sample of the tensor that torch.vmap would pass for a tensor of size 0 along ``dim``."""
    return x.new_empty(x.shape[:dim] + x.shape[dim + 1 :]).requires_grad_(x.requires_grad)


def dimensions(in_dims: Any, args: tuple[Any, ...]) -> list[int | None] | None:
    """Return for each leaf of the arguments the dimension that torch.vmap maps; None if in_dims does not match args."""
    if type(in_dims) is list:
        in_dims = tuple(in_dims)
    if type(in_dims) is not int and type(in_dims) is not tuple:
        return None
    flat = pytree._broadcast_to_and_flatten(in_dims, pytree.tree_structure(args))
    if flat is None or not all(d is None or type(d) is int for d in flat):
        return None
    return flat


def differentiated_leaves(argnums: Any, args: tuple[Any, ...]) -> list[int] | None:
    """Return which leaves of the arguments torch.func.grad differentiates by; None if argnums does not match args."""
    chosen = (argnums,) if type(argnums) is int else argnums
    if type(chosen) is not tuple or not all(type(i) is int and -len(args) <= i < len(args) for i in chosen):
        return None
    chosen = {i % len(args) for i in chosen}
    counts = [len(pytree.tree_leaves(a)) for a in args]
    return [sum(counts[:i]) + k for i in sorted(chosen) for k in range(counts[i])]


def untied(module: torch.nn.Module) -> bool:
    """Return whether no parameter or buffer of a module has two names. Used as a guard predicate."""
    seen = set()
    for m in module.modules():
        for t in (*m._parameters.values(), *m._buffers.values()):
            if t is not None:
                if id(t) in seen:
                    return False
                seen.add(id(t))
    return True


# ---- functions that torch.vmap and the like have returned earlier ----


def _code_inside(maker: Callable[..., Any], name: str) -> types.CodeType:
    inner = inspect.unwrap(maker).__code__.co_consts
    return next(c for c in inner if isinstance(c, types.CodeType) and c.co_name == name)


#: code of a function that a maker such as torch.vmap returns -> (the maker, its name)
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
    """Return whether torch.vmap or a similar function has returned ``fn``."""
    return fn.__code__ in _MADE


def made_by(fn: types.FunctionType) -> tuple[Any, str, Any, tuple[str | None, ...]]:
    """Return (maker, maker's name, cells, cells' names).

    The name is None if the cell holds no argument of the maker.
    """
    maker, name = _MADE[fn.__code__]
    given = inspect.signature(maker).parameters
    return maker, name, fn.__closure__, tuple(n if n in given else None for n in fn.__code__.co_freevars)
