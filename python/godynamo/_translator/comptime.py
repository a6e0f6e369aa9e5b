"""The argument of functions passed to godynamo.comptime: the translation's frames, graph and guards at the call.

The Go side (bytecode/translate/frame_comptime.go) takes this picture without building real values. Reading the picture
adds no guard. Metadata of values that the graph computes is computed on request, by torch's FakeTensor in a separate
session.
"""

from __future__ import annotations

import dis
import sys
import time
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

import torch

from .. import exc
from .._backends import graph_modules
from .fake import Session

#: a value of the translation: (kind, text, type or None, whether known, value or None, node or -1, example or None)
View = tuple[str, str, type | None, bool, Any, int, Any]
#: a frame: (code, line, offset or -1, ((variable's name, its View), ...), Views of the value stack)
Frame = tuple[types.CodeType, int, int, tuple[tuple[str, View], ...], tuple[View, ...]]


class _Break(Exception):
    """Raised by ComptimeContext.graph_break()."""


class _Picture:
    """The state of a translation at a call of comptime."""

    def __init__(
        self, frames: tuple[Frame, ...], rows: list[Any], examples: list[Any], guards: tuple[str, ...]
    ) -> None:
        self.frames = frames
        self.rows = rows
        self.examples = examples
        self.guards = guards
        self._session: Session | None = None
        self._graph_module: Any = None

    def fake(self, node: int) -> Any:
        """Return the fake value of a graph node, given its index."""
        if self._session is None:
            session = Session()
            for i, (row, example) in enumerate(zip(self.rows, self.examples, strict=True)):
                if row[0] == "placeholder":
                    session.input(i, example)
                else:
                    session.run(i, row)
            self._session = session
        return self._session.value(node)

    def graph_module(self) -> Any:
        """Return the graph so far as a torch.fx.GraphModule. It has no outputs, which are not known yet."""
        if self._graph_module is None:
            output: tuple[Any, ...] = ("output", "output", "output", ((),), {}, "")
            inputs = [e for row, e in zip(self.rows, self.examples, strict=True) if row[0] == "placeholder"]
            self._graph_module = graph_modules.build_graph_module([*self.rows, output], inputs)
        return self._graph_module


class ComptimeVar:
    """What the translation knows about a value of the user's code. ``repr`` describes it."""

    def __init__(self, view: View, picture: _Picture) -> None:
        self._kind, self._text, self._type, self._known, self._value, self._node, self._example = view
        self._picture = picture

    def is_python_constant(self) -> bool:
        """Return whether :meth:`as_python_constant` returns the value."""
        return self._known

    def as_python_constant(self) -> Any:
        """Return the value. The entry need not have a guard for it. Raises ValueError if the value is unknown."""
        if not self._known:
            raise ValueError(f"{self!r} is not known while translating")
        return self._value

    def is_proxy(self) -> bool:
        """Return whether the value is a node of the graph, which :meth:`as_proxy` returns."""
        return self._node >= 0

    def as_proxy(self) -> Any:
        """Return the value's torch.fx.Node in the graph so far. Raises ValueError if the graph has no such node."""
        if self._node < 0:
            raise ValueError(f"{self!r} is no value of the graph")
        nodes = {n.name: n for n in self._picture.graph_module().graph.nodes}
        return nodes[self._picture.rows[self._node][1]]

    def as_fake(self) -> Any:
        """Return a fake tensor with the tensor's metadata; do not change it. Raises TypeError for other values."""
        if self._example is not None:
            from torch._subclasses.fake_tensor import FakeTensorMode

            return FakeTensorMode().from_tensor(self._example, static_shapes=True)
        if self._node < 0:
            raise TypeError(f"{self!r} is no tensor")
        return self._picture.fake(self._node)

    def size(self, dim: int | None = None) -> Any:
        """Return the tensor's sizes, or the size of one dimension. Raises TypeError if the value is not a tensor."""
        tensor = self._example if self._example is not None else self.as_fake()
        return tensor.size() if dim is None else tensor.size(dim)

    def python_type(self) -> type:
        """Return the value's type. Raises TypeError if the type is unknown."""
        if self._type is None:
            raise TypeError(f"the type of {self!r} is not known while translating")
        return self._type

    def is_dynamic(self) -> bool:
        """Return whether the value is an int that differs between the calls that the translation serves."""
        return self._kind == "SymNodeVariable" and not self._known

    def force_static(self) -> None:
        """Make the value a constant of the translation. Numbers already are. Raises TypeError for an unknown value."""
        if not self._known:
            raise TypeError(f"{self!r} cannot be made static")

    def __repr__(self) -> str:
        if self._known:
            return repr(self._value)
        shown = self._example
        if shown is None and self._node >= 0:
            try:
                shown = self._picture.fake(self._node)
            except Exception:  # data-dependent sizes, an operation that raises: show only the name
                shown = None
        if isinstance(shown, torch.Tensor):
            return f"{type(self).__name__}({self._text}: {shown.dtype} {list(shown.shape)} on {shown.device})"
        return f"{type(self).__name__}({self._text})"


class ComptimeContext:
    """The argument of a function that is passed to ``comptime``."""

    def __init__(self, picture: _Picture, level: int = 0) -> None:
        self._picture = picture
        self._level = level

    def _frame(self, stacklevel: int) -> Frame:
        level = self._level + stacklevel
        frames = self._picture.frames
        if not 0 <= level < len(frames):
            raise ValueError(f"stacklevel {stacklevel}: this translation has {len(frames)} frames here")
        return frames[level]

    def get_local(self, name: str, *, stacklevel: int = 0) -> ComptimeVar:
        """Return a variable of the frame, or with ``stacklevel`` of a caller's frame. Raises KeyError if missing."""
        values = dict(self._frame(stacklevel)[3])
        if name not in values:
            raise KeyError(f"{name!r}; variables here: {', '.join(values) or 'none'}")
        return ComptimeVar(values[name], self._picture)

    def parent(self) -> ComptimeContext:
        """Return the context of the caller's frame. Raises ValueError in the outermost frame."""
        self._frame(1)
        return ComptimeContext(self._picture, self._level + 1)

    def graph_break(self, msg: str = "ComptimeContext.graph_break") -> NoReturn:
        """Break the graph here."""
        raise _Break(msg)

    def graph(self) -> Any:
        """Return a copy of the graph so far, as torch.fx.Graph. Changing the copy has no effect."""
        return self._picture.graph_module().graph

    def assert_static(self, val: ComptimeVar) -> None:
        """Raise AssertionError if a value is symbolic; see ComptimeVar.is_dynamic."""
        if val.is_dynamic():
            raise AssertionError("expected static but got dynamic")

    def print(self, val: Any, *, file: TextIO | None = None) -> None:
        """Print a value's description."""
        print(repr(val), file=file)

    def print_graph(self, *, verbose: bool = True, file: TextIO | None = None) -> None:
        """Print the code of the graph so far."""
        print(self.graph().python_code("self", verbose=verbose).src, file=file)

    def print_disas(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Print the frame's instructions, with the current one marked."""
        code, _, offset = self._frame(stacklevel)[:3]
        print(dis.Bytecode(code, current_offset=offset if offset >= 0 else None).dis(), file=file)

    def print_value_stack(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Print the values on the frame's stack, bottom first."""
        for view in self._frame(stacklevel)[4]:
            print(f"- {ComptimeVar(view, self._picture)!r}", file=file)

    def print_locals(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Print the frame's variables."""
        for name, view in self._frame(stacklevel)[3]:
            print(f"{name} = {ComptimeVar(view, self._picture)!r}", file=file)

    def print_bt(self, *, file: TextIO | None = None, stacklevel: int = 0) -> None:
        """Print the frames of the translation like a traceback, outermost first."""
        self._frame(stacklevel)
        frames = self._picture.frames[self._level + stacklevel :]
        rows = [traceback.FrameSummary(f[0].co_filename, f[1], f[0].co_name) for f in reversed(frames)]
        print("".join(traceback.StackSummary.from_list(rows).format()), end="", file=file)

    def print_guards(self, *, file: TextIO | None = None) -> None:
        """Print the guards so far, one per line: kind and place."""
        print("\n".join(sorted(self._picture.guards)), file=file)

    def sleep(self, sec: float) -> None:
        """Wait for this number of seconds."""
        time.sleep(sec)


def _argument(given: tuple[Any, ...], picture: _Picture) -> Any:
    """Convert an argument of the call: a function to the function, anything else to a ComptimeVar."""
    if given[0] == "function" and len(given) == 2:
        return given[1]
    if given[0] == "code" and len(given) == 6:
        _, code, module, name, cells, defaults = given
        closure = tuple(types.CellType(_closed_over(ComptimeVar(c, picture))) for c in cells)
        values = tuple(_closed_over(ComptimeVar(d, picture)) for d in defaults)
        return types.FunctionType(code, module, name, values, closure)
    view: Any = given
    return ComptimeVar(view, picture)


def _closed_over(var: ComptimeVar) -> Any:
    """Return a closure variable's value if it is known, otherwise its ComptimeVar."""
    return var.as_python_constant() if var.is_python_constant() else var


def _call(fn: Any, fallback_fn: Any = None) -> Callable[[ComptimeContext], Any]:
    if isinstance(fn, ComptimeVar) and fn.is_python_constant():
        fn = fn.as_python_constant()
    if not callable(fn):
        raise TypeError(f"comptime() takes a function of one argument, not {fn!r}")
    return fn  # type: ignore[no-any-return]


def _stacklevel(var: Any) -> int:
    return int(var.as_python_constant()) if isinstance(var, ComptimeVar) else int(var)


def _shorthand(name: str) -> Callable[..., Callable[[ComptimeContext], Any]]:
    """Return a function that converts a call, ``comptime.print_locals(stacklevel=1)``, to a function of a context."""

    def of(*, stacklevel: Any = 0) -> Callable[[ComptimeContext], Any]:
        return lambda ctx: getattr(ctx, name)(stacklevel=_stacklevel(stacklevel))

    return of


def _breakpoint(ctx: ComptimeContext) -> None:
    import pdb

    pdb.Pdb().set_trace(sys._getframe())


#: name -> function that makes a function of the context from the call's arguments
_CALLS: dict[str, Callable[..., Callable[[ComptimeContext], Any]]] = {
    "comptime": _call,
    "graph_break": lambda: lambda ctx: ctx.graph_break(),
    "print": lambda e: lambda ctx: ctx.print(e),
    "print_graph": lambda: lambda ctx: ctx.print_graph(),
    "print_guards": lambda: lambda ctx: ctx.print_guards(),
    "print_value_stack_and_return": lambda e, *, stacklevel=0: _shorthand("print_value_stack")(stacklevel=stacklevel),
    **{name: _shorthand(name) for name in ("print_disas", "print_value_stack", "print_locals", "print_bt")},
    "assert_static": lambda val: lambda ctx: ctx.assert_static(val),
    "force_static": lambda val: lambda ctx: val.force_static(),
    "sleep": lambda sec: lambda ctx: ctx.sleep(sec.as_python_constant()),
    "breakpoint": lambda: _breakpoint,
}


def call(name: str, args: Sequence[Any], kwargs: dict[str, Any], picture: tuple[Any, ...]) -> str | None:
    """Run a call of ``comptime`` or of one of its shorthands, for the translator.

    Returns the message of the graph break that the call requests, or None. Raises exc.ComptimeError if the user's
    function raises.
    """
    seen = _Picture(*picture)
    try:
        made = _CALLS[name](
            *(_argument(a, seen) for a in args), **{key: _argument(a, seen) for key, a in kwargs.items()}
        )
        made(ComptimeContext(seen))
    except _Break as asked:
        return str(asked)
    except Exception as error:
        where = seen.frames[0]
        said = error.args[0] if isinstance(error, KeyError) and error.args else error  # str(KeyError) would add quotes
        text = f"{type(error).__name__}: {said}" if str(said) else type(error).__name__
        raise exc.ComptimeError(
            f"comptime at {where[0].co_filename}:{where[1]} in {where[0].co_name}: {text}"
        ) from error
    return None
