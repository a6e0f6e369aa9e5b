"""Exports a function as a torch.export.ExportedProgram whose sizes are those of ``dynamic_shapes``.

The function is translated as one graph for all sizes, without running it. torch.export then traces the transformed
function with FakeTensors. First it evaluates each condition on sizes that the translation has recorded, so torch
reports a Dim that does not fit; :mod:`.program_lines` adds the user's lines to its report.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx
from torch.utils import _pytree as pytree

from .. import config, exc
from .._backends import graph_modules
from .._called import guard_env
from . import modules as _modules
from .dims import unmarked
from .optimize import Optimizer
from .options import Options
from .program_lines import Narrowed, at_user_lines, in_torchs_form


class _ExportOptions(Options):
    """Options of a translation whose graph is only traced, so it serves all sizes and keeps its operators."""

    any_size = property(lambda _: True)
    fixes_sizes = property(lambda _: False)
    takes_apart = property(lambda _: False)
    takes_symbols = property(lambda _: False)


class _Graph:
    """A backend that keeps the graph. Results are dummies until ``narrowed`` is set: torch.export then traces."""

    __name__ = "export"

    def __init__(self) -> None:
        self.narrowed: Narrowed | None = None

    def __call__(self, gm: torch.fx.GraphModule, _example_inputs: list[Any]) -> Callable[..., Any]:
        (output,) = [n for n in gm.graph.nodes if n.op == "output"]
        count = len(output.args[0])
        for module in gm.modules():  # gm, and the functions given to operations
            if isinstance(module, torch.fx.GraphModule):
                _prepare(module)

        def run(*inputs: Any) -> tuple[Any, ...]:
            if self.narrowed is None:
                return tuple(torch.empty(0) for _ in range(count))
            with torch.fx.traceback.preserve_node_meta():
                return tuple(_Interpreter(gm, self.narrowed).run(*inputs))

        return run


def _prepare(gm: torch.fx.GraphModule) -> None:
    """Write the stack traces of a graph as torch.export does, and check the operations that take functions."""
    changed = False
    for node in gm.graph.nodes:
        if node.stack_trace:
            node.stack_trace = in_torchs_form(node.stack_trace)
        if node.op == "call_function" and node.target in _TAKING_FUNCTIONS:
            node.target, changed = _checked(node.target), True
    if changed:
        graph_modules.recompile(gm)


#: operation -> (arguments that are functions, the argument with the operands that are passed last)
_TAKING_FUNCTIONS: dict[Any, tuple[tuple[int, ...], int]] = {
    torch.ops.higher_order.cond: ((1, 2), 3),
    torch.ops.higher_order.while_loop: ((0, 1), 3),
    torch.ops.higher_order.scan: ((0,), 3),
    torch.ops.higher_order.associative_scan: ((0,), 2),
    torch.ops.higher_order.map_impl: ((0,), 2),
}


def _checked(operation: Any) -> Callable[..., Any]:
    """Return a function that calls an operation on functions, as torch.export expects it.

    A size without a Dim is an int when torch.export traces. torch's operations take no ints, and torch.cond calls no
    operation if the condition is known.
    """
    functions, last = _TAKING_FUNCTIONS[operation]

    def run(*args: Any) -> Any:
        given = list(args)
        ints = {i - len(args[last]): x for i, x in enumerate(args[last]) if type(x) is int}
        if ints:
            given[last] = tuple(x for x in args[last] if type(x) is not int)
            for i in functions:
                given[i] = _with_ints(args[i], ints)
        if operation is torch.ops.higher_order.cond:
            pred, true_fn, false_fn, operands = given
            if isinstance(pred, bool):
                return (true_fn if pred else false_fn)(*operands)
            if isinstance(pred, torch.Tensor) and pred.numel() != 1:
                raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
        return operation(*given)

    run.__name__ = run.__qualname__ = operation.name()
    return run


def _with_ints(gm: torch.fx.GraphModule, ints: Mapping[int, int]) -> torch.fx.GraphModule:
    """Return a graph in which ints replace some of the parameters. ints: index from the end -> value."""
    graph = torch.fx.Graph()
    places = gm.graph.find_nodes(op="placeholder")
    known: dict[Any, Any] = {places[i]: value for i, value in ints.items()}
    graph.output(graph.graph_copy(gm.graph, known))
    return torch.fx.GraphModule(gm, graph)


class _Interpreter(torch.fx.Interpreter):
    """Runs a graph, and records which of its nodes restrict sizes.

    The graph switches autocast with the single functions that torch.autocast calls. torch.export keeps whole blocks
    only, so a block is entered and left instead.
    """

    def __init__(self, gm: torch.fx.GraphModule, narrowed: Narrowed) -> None:
        super().__init__(gm)
        self._narrowed = narrowed
        self._blocks: list[Any] = []  # entered autocast blocks, innermost last
        self._switch: dict[str, Any] = {}  # the functions called so far of a block's beginning or end

    def run(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().run(*args, **kwargs)
        finally:
            while self._blocks:
                self._blocks.pop().__exit__(None, None, None)

    def run_node(self, n: torch.fx.Node) -> Any:
        with self._narrowed.by_node(n):
            return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target not in _AUTOCAST:
            return super().call_function(target, args, kwargs)
        self._switch[target.__name__] = args
        if target is not torch.set_autocast_cache_enabled:  # the last function at both ends of a block
            return None
        switch, self._switch = self._switch, {}
        if "autocast_decrement_nesting" in switch:
            self._blocks.pop().__exit__(None, None, None)
            return None
        device, enabled = switch["set_autocast_enabled"]
        dtype = switch["set_autocast_dtype"][1]
        cache = None if args[0] else False  # None: torch.export's choice
        self._blocks.append(torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=cache))
        self._blocks[-1].__enter__()
        return None


_AUTOCAST = (
    torch.set_autocast_enabled,
    torch.set_autocast_dtype,
    torch.set_autocast_cache_enabled,
    torch.autocast_increment_nesting,
    torch.autocast_decrement_nesting,
    torch.clear_autocast_cache,
)


class _Condition(NamedTuple):
    """A condition on sizes, as a Python expression with the names of the guards' text, and the line that needs it."""

    text: str
    file: str
    line: int

    def code(self) -> types.CodeType:
        """Return the expression's code. It has the user's line, which torch's logs then show."""
        tree = ast.parse(self.text, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.expr):
                node.lineno = node.end_lineno = max(self.line, 1)
        return compile(tree, self.file or "<godynamo.export>", "eval")


#: A bound of at least this value (the mantissa of a float) only says that a number is representable.
_NO_BOUND = 2**53 - 1


def _compares_ints(text: str) -> bool:
    """Return whether a guard's text compares ints, and does not only say that a number is representable."""
    compare = ast.parse(text, mode="eval").body
    if not isinstance(compare, ast.Compare):
        return False
    values = [s.value for s in (compare.left, compare.comparators[0]) if isinstance(s, ast.Constant)]
    return all(type(value) is int and value < _NO_BOUND for value in values)


_NO_RESULT = object()
_TEXT = "the result has a text or a key that is made from a size"


class _Translation:
    """The translation of a call for all sizes."""

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._graph = _Graph()
        options = _ExportOptions(
            backend=self._graph,
            backend_name="export",
            inline=False,
            nopython=True,
            exporting=True,
            dynamic=True,
        )
        made = Optimizer(options)(fn)
        self._original = fn
        self._call = object.__getattribute__(made, "_godynamo_call") if _modules.is_module(made) else made
        self._result: Any = _NO_RESULT  # result of the translated call, with dummies in place of the graph's results
        self._entry = self._translated(args, kwargs)
        self._conditions = list(self._found(args, kwargs)) if self._entry is not None else []

    def _translated(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return the entry of the translation, or None if the call has nothing to capture."""
        cache = getattr(self._call, "cache", None)
        if cache is None:
            raise exc.Unsupported("export: godynamo.disable or the process's settings leave this function to CPython")
        with config.patch(verify_correctness=False, suppress_errors=False, dynamic_shapes=True):
            try:
                self._result = self._call(*args, **kwargs)
            except exc.TorchDynamoException:
                raise
            except Exception:
                if not cache.entries():
                    raise  # otherwise the code after the graph has met a dummy
        return next((e for e in cache.entries() if e.function is not None), None)

    def _slots(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the contents of the frame's slots for a call: its arguments, then the cells of its closure."""
        function = self._call.function
        code, closure = function.__code__, function.__closure__
        plain = types.FunctionType(code, {}, code.co_name, function.__defaults__, closure)
        plain.__kwdefaults__ = function.__kwdefaults__
        own = () if self._call.self_object is None else (self._call.self_object,)
        bound = inspect.signature(plain).bind(*own, *args, **kwargs)
        bound.apply_defaults()
        flags = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
        count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in flags)
        return [bound.arguments[name] for name in code.co_varnames[:count]] + list(closure or ())

    def _names(self, slots: Sequence[Any]) -> tuple[dict[str, Any], Any]:
        """Return the globals and locals with which texts of the guards are evaluated."""
        by_name = dict(zip(guard_env.slot_names(self._entry), slots, strict=False))
        return {"__builtins__": {}}, guard_env.names(self._entry, by_name, self._call.function.__globals__)

    def _found(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[_Condition]:
        entry = self._entry
        _, tensors, fixed = entry.info["exported"]
        names = self._names(self._slots(args, kwargs))
        for text, value, file, line in fixed:
            yield _Condition(f"{text} == {value}", file, line)
        known = {text for text, *_ in fixed}
        for text, dims in tensors:
            for dim, size in enumerate(eval(text, *names).size()):
                if dims & 1 << dim and f"{text}.size()[{dim}]" not in known:
                    yield _Condition(f"{text}.size()[{dim}] == {size}", "", 0)
        on_ints = {node[4] for node in entry.nodes() if node[0] in ("SHAPE_ENV", "EQUALS")}
        for part in sorted(on_ints):
            if _compares_ints(entry.parts[part]):
                file, line = (entry.part_lines or {})[part] or ("", 0)
                yield _Condition(entry.parts[part], file, line)

    def trace(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], narrowed: Narrowed) -> Any:
        """Run the transformed function on FakeTensors, under torch.export."""
        if self._entry is None:
            return self._original(*args, **kwargs)
        slots = self._slots(args, kwargs)
        names = self._names(slots)
        for condition in self._conditions:
            before = len(narrowed.lines)
            with narrowed.by_line(condition.file, condition.line):
                holds = eval(condition.code(), *names)
                if not holds:
                    raise exc.Unsupported(f"export: {condition.text} does not hold for these arguments")
            if isinstance(holds, torch.SymBool) and len(narrowed.lines) == before:
                # torch.export derives this from a size being neither 0 nor 1, but its programs do not check that.
                where = f', needed by File "{condition.file}", line {condition.line}' if condition.line else ""
                expr = holds.node.expr
                text = narrowed.text_of(expr) if expr.free_symbols else condition.text
                torch.ops.aten._assert_scalar.default(holds, f"{text} does not hold{where}")
        extras = [eval(text, *names) for text in self._entry.info["exported"][0]]
        self._graph.narrowed = narrowed
        try:
            result = self._entry.function(*slots, *extras)
        except TypeError as error:
            if "SymInt" in str(error) or "SymFloat" in str(error):
                raise exc.Unsupported(f"export: {_TEXT} ({error})") from error
            raise
        finally:
            self._graph.narrowed = None
        self._check_texts(result)
        return result

    def _check_texts(self, result: Any) -> None:
        """Raise exc.Unsupported if the result contains a text made from a size: the text would name torch's symbol."""
        if self._result is _NO_RESULT:
            return
        (before, structure), (now, structure_now) = pytree.tree_flatten(self._result), pytree.tree_flatten(result)
        texts = (x == y for x, y in zip(before, now, strict=False) if isinstance(y, (str, bytes)))
        if structure != structure_now or not all(texts):
            raise exc.Unsupported(f"export: {_TEXT}")


def _module_for(fn: Any, run: Callable[[tuple[Any, ...], Mapping[str, Any]], Any]) -> torch.nn.Module:
    """Return a module with the tensors of fn's module and fn's signature, whose forward calls run(args, kwargs).

    Its dicts of parameters, buffers and submodules are those of fn's module: torch.export replaces the tensors in them
    by FakeTensors, which the translation then reads.
    """

    def forward(_self: Any, *args: Any, **kwargs: Any) -> Any:
        return run(args, kwargs)

    owner = fn if _modules.is_module(fn) else getattr(fn, "__self__", None)
    given = inspect.signature(fn.forward if _modules.is_module(fn) else fn).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    forward.__signature__ = inspect.Signature([own, *given])  # type: ignore[attr-defined]
    is_module = isinstance(owner, torch.nn.Module)
    name = type(owner).__name__ if is_module else getattr(fn, "__name__", "Program").strip("<>")
    kind: Any = type(owner) if is_module else fn
    members = {"forward": forward, "__module__": getattr(kind, "__module__", __name__), "__qualname__": name}
    made: torch.nn.Module = type(name, (torch.nn.Module,), members)()
    if is_module:
        state, theirs = vars(made), vars(owner)
        for key in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training"):
            state[key] = theirs[key]
        state.update({key: value for key, value in theirs.items() if isinstance(value, torch.Tensor)})
    return made


def exported_program(
    fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any, **settings: Any
) -> torch.export.ExportedProgram:
    """Return the ExportedProgram of a call; see :func:`.export.export`."""
    args, kwargs = tuple(args), dict(kwargs or {})
    narrowed = Narrowed()
    with unmarked((args, kwargs)):
        translation = _Translation(fn, args, kwargs)
        module = _module_for(fn, lambda args, kwargs: translation.trace(args, kwargs, narrowed))
        with at_user_lines(narrowed, module, args, kwargs, dynamic_shapes):
            return torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False, **settings)
