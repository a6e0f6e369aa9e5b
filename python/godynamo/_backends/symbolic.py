"""Symbolic sizes for compilers: FakeTensors whose sizes are symbols of a torch ShapeEnv.

The translator knows which sizes may differ between calls (bytecode/translate/graph_compilers.go) and describes the
graph's inputs by expressions over numbered symbols. A compiler that traces with AOTAutograd reads the sizes of its
examples, and torch records in the ShapeEnv what the compiled code assumes about them. These conditions become guards of
the translation.

An expression is an int, ("s", number of a symbol), ("r", number of a rounded float) or (operator, left, right). A
condition is (relation, left, right).
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .._called import computed
from .._translator import fake, vague
from . import unbacked

Expression = Any
Condition = tuple[str, Expression, Expression]

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": torch.sym_max,
    "min": torch.sym_min,
}
#: Arguments of ShapeEnv. Only sizes that the translator has marked as symbols are symbolic. Operations whose result
#: sizes depend on data raise, unless _DATA is added.
_SETTINGS: dict[str, Any] = {
    "duck_shape": False,
    "assume_static_by_default": True,
    "allow_scalar_outputs": False,
    "allow_dynamic_output_shape_ops": False,
}
_DATA: dict[str, Any] = {"allow_scalar_outputs": True, "allow_dynamic_output_shape_ops": True}
#: Types of numbers known only at run time, among the inputs.
_NUMBERS: dict[Any, type] = {"int": int, "float": float}
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "le": operator.le,
    "ge": operator.ge,
}


class Sizes:
    """The symbolic sizes of one graph's inputs, as OutputGraph.symbolicExamples describes them.

    symbols: for each symbol (place, value in this call or None if it is known at run time only, whether it is a size of
    a tensor).
    rounded: the values in this call of the ints that are rounded from floats; see graph_rounded.go.
    inputs: for each input one of None, the expression of an int, (sizes, strides), or "int" or "float" for a number
    known only at run time.
    conditions: what is known about the symbols.
    data: whether the graph has numbers known only at run time.
    repeats: whether the graph leaves no trace if it raises.
    """

    def __init__(
        self,
        symbols: Sequence[tuple[str | None, int | None, bool]],
        rounded: Sequence[int],
        inputs: Sequence[Any],
        conditions: Sequence[Condition],
        data: bool,
        repeats: bool,
    ) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self._symbols, self._rounded, self._inputs, self._conditions = symbols, rounded, inputs, conditions
        self._data, self._repeats = data, repeats
        self._read = {i: _NUMBERS[row] for i, row in enumerate(inputs) if isinstance(row, str)}
        self._env: Any = ShapeEnv(**{**_SETTINGS, **(_DATA if data else {})})
        self._ints: dict[Expression, Any] = {}
        self._leaves: dict[Any, Expression] = {}  # sympy symbol -> the expression for which it was made
        self.mode = FakeTensorMode(shape_env=self._env, allow_non_fake_inputs=True)

    def examples(self, example_inputs: Sequence[Any]) -> list[Any]:
        """Return FakeTensors and SymInts for the inputs."""
        fakes = [self.example(x, row) for x, row in zip(example_inputs, self._inputs, strict=True)]
        for relation, left, right in self._conditions:
            holds = _RELATIONS[relation](self._value(left), self._value(right))
            if self._unbacked(holds):
                torch._check(holds)
            elif not bool(holds):
                raise ValueError("a condition on sizes does not hold in this call")
        return fakes

    def prepare(self, gm: torch.fx.GraphModule, examples: Sequence[Any]) -> bool:
        """Prepare the graph for the compiler; see unbacked. Return whether it has changed."""
        changed = _tensors_of_sizes(gm)
        if self._data:
            if self._read:
                unbacked.read_numbers(gm, self._read)
            if unbacked.bind(gm, examples, self.mode) and not self._repeats:
                raise ValueError("a condition on numbers known only at run time may fail after a change")
        return changed or self._data

    def runs(self, compiled: Callable[..., Any], captured: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """Return a callable that takes the captured graph's inputs and runs the compiled code of the prepared graph.

        captured: returns the captured graph.
        """
        if self._read:
            compiled = unbacked.from_numbers(compiled, self._read)
        return unbacked.Assuming(compiled, captured) if self._data and self._repeats else compiled

    def example(self, x: Any, row: Any) -> Any:
        """Return the FakeTensor or SymInt for an input; ``row`` is an item of ``inputs``."""
        if isinstance(row, str):
            return self.mode.from_tensor(computed.as_tensor(x), static_shapes=True)
        if isinstance(x, torch.Tensor):
            if row is None:
                return x if getattr(x, "fake_mode", None) is self.mode else self.mode.from_tensor(x, static_shapes=True)
            sizes, strides = (tuple(map(self._value, part)) for part in row)
            with self.mode, torch.enable_grad():
                made = torch.empty_strided(sizes, strides, dtype=x.dtype, device=x.device)
                # AOTAutograd detaches inputs that are no leaves, if they get no gradients
                return made.requires_grad_(x.requires_grad) if x.is_leaf else fake.with_history(made)
        return x if row is None else self._value(row)

    def _value(self, e: Expression) -> Any:
        """Return an expression as an int or a SymInt."""
        if isinstance(e, int):
            return e
        if e[0] in ("s", "r"):
            return self._symbol(e)
        return _OPERATORS[e[0]](self._value(e[1]), self._value(e[2]))

    def _symbol(self, leaf: Expression) -> Any:
        if leaf not in self._ints:
            from torch._dynamo.source import ConstantSource
            from torch.fx.experimental.symbolic_shapes import DimDynamic

            kind, number = leaf
            place, hint, size = self._symbols[number] if kind == "s" else (None, self._rounded[number], False)
            if hint is None:
                return self._unbacked_size(leaf)
            source = ConstantSource(f"{place}" if place else f"__{kind}_{number}")
            make = self._env.create_symbol if size else self._env.create_unspecified_symbol
            symbol = make(hint, source, DimDynamic.DYNAMIC)
            self._leaves[symbol] = leaf
            self._ints[leaf] = self._env.create_symintnode(symbol, hint=hint, source=source)
        return self._ints[leaf]

    def _unbacked_size(self, leaf: Expression) -> Any:
        """Make a symbol for a size of an input that is known at run time only."""
        env = self._env
        with env.ignore_fresh_unbacked_symbols():  # those are results of operations
            size = env.create_unbacked_symint()
        symbol = size.node.expr
        env._constrain_range_for_size(symbol)
        if hasattr(env, "unbacked_inputs"):
            env.unbacked_inputs.add(symbol)
        self._leaves[symbol] = leaf
        self._ints[leaf] = size
        return size

    @staticmethod
    def _unbacked(value: Any) -> bool:
        """Return whether a value is known at run time only."""
        from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

        return isinstance(value, torch.SymBool) and bool(free_unbacked_symbols(value))

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Let torch's compilers find the ShapeEnv, for a ``with`` block.

        Backward graphs are compiled at once. If they were compiled later, they would add conditions to a translation
        that is in use.
        """
        from torch._functorch import config
        from torch._guards import TracingContext, tracing

        with tracing(TracingContext(self.mode)), config.patch(force_non_lazy_backward_lowering=True):
            yield

    def written(self, values: Sequence[Any]) -> tuple[Expression, ...] | None:
        """Return ints and SymInts as expressions, or None if one has no such form."""
        reader = _Reader(self._leaves)
        try:
            found = tuple(x if isinstance(x, int) else reader.expression(x.node.expr) for x in values)
        except _NotWritable:
            return None
        return None if reader.needed else found

    def assumed(self) -> tuple[list[Condition], list[Expression]]:
        """Return the conditions recorded in the ShapeEnv, and the symbols that must become constants, as expressions.

        These symbols occur in conditions that cannot be written as a Condition. torch defers conditions on sizes of
        inputs that are known at run time only, and the graph checks only those that depend on results (unbacked.bind).
        """
        import sympy

        env, conditions, constants = self._env, [], set()
        reader = _Reader(self._leaves)
        found = []
        for symbol in self._leaves:  # the bounds come first, since they show that divisors are not 0
            bounds = env.var_to_range[symbol]
            found += [symbol >= bounds.lower, symbol <= bounds.upper]
        found += [guard.expr for guard in env.guards]
        found += [sympy.Eq(symbol, env.replacements[symbol]) for symbol in self._leaves if symbol in env.replacements]
        deferred = [check.expr for checks in env.deferred_runtime_asserts.values() for check in checks]
        found += [condition for condition in deferred if condition.free_symbols <= self._leaves.keys()]
        for condition in found:
            try:
                conditions += reader.conditions(condition)
            except _NotWritable:
                constants |= {self._leaves[s] for s in condition.free_symbols if s in self._leaves}
        return conditions + reader.needed, sorted(constants)


def derived(arguments: Sequence[Any], example_inputs: Sequence[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the arguments of Sizes and the examples for a call in another process.

    ``arguments`` are those of Sizes in the first process. ``example_inputs`` has this call's tensors; the other items
    are ints that are computed from sizes. Raises ValueError if the tensors do not determine all symbols.
    """
    symbols, rounded, inputs, conditions, data, repeats = arguments
    values: dict[int, int] = {}
    for x, row in zip(example_inputs, inputs, strict=True):
        if isinstance(x, torch.Tensor) and row is not None:
            for e, n in zip(row[0], x.shape, strict=True):
                if isinstance(e, tuple) and e[0] == "s":
                    values.setdefault(e[1], n)
    if rounded or data or not all(k in values for k, (_, value, _) in enumerate(symbols) if value is not None):
        raise ValueError("a symbol is not the size of an input")

    def value(e: Expression) -> int:
        if isinstance(e, int):
            return e
        return values[e[1]] if e[0] == "s" else int(_OPERATORS[e[0]](value(e[1]), value(e[2])))

    now = tuple((place, v if v is None else values[k], size) for k, (place, v, size) in enumerate(symbols))
    examples = [x if isinstance(x, torch.Tensor) else value(row) for x, row in zip(example_inputs, inputs, strict=True)]
    return (now, rounded, inputs, conditions, data, repeats), examples


def derivable(arguments: tuple[Any, ...], example_inputs: Sequence[Any]) -> bool:
    """Return whether the tensors among the inputs determine all symbols and ints."""
    try:
        now, examples = derived(arguments, example_inputs)
    except (ValueError, KeyError):
        return False
    return now == arguments and all(x is y or x == y for x, y in zip(examples, example_inputs, strict=True))


def _tensors_of_sizes(gm: torch.fx.GraphModule) -> bool:
    """Write torch.tensor(size) as operations. torch.tensor makes a constant of a SymInt. Return whether gm has one."""
    found = [
        node
        for node in gm.graph.find_nodes(op="call_function", target=torch.tensor)
        if not any(node.kwargs.get(name) for name in ("pin_memory", "names")) and node.all_input_nodes
    ]
    for node in found:
        node.target = torch._refs.tensor
    return bool(found)


@contextlib.contextmanager
def constant_sizes(example_inputs: Sequence[Any]) -> Iterator[None]:
    """Let torch's compilers find a ShapeEnv without symbols, for a ``with`` block.

    Without one they use no cache on disk. There is no ShapeEnv if an input is not a dense tensor, since AOTAutograd
    would make a symbol of an int.
    """
    if not all(isinstance(x, torch.Tensor) and vague.is_dense(x) for x in example_inputs):
        yield
        return
    from torch._guards import TracingContext, tracing
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv(**_SETTINGS), allow_non_fake_inputs=True)
    fakes = [mode.from_tensor(x, static_shapes=True) for x in example_inputs]
    with tracing(TracingContext(mode)):
        yield
    del fakes  # while these FakeTensors live, the mode passes them to the compiler for the examples


class _NotWritable(Exception):
    """Raised for a sympy expression that cannot be written as an Expression."""


#: The largest size whose product with a factor is read as a product of ints; see _Reader.scaled.
_MOST_SCALED = 1 << 22


class _Reader:
    """Turns sympy's expressions into Expressions and Conditions. leaves: the expressions of the known symbols.

    needed: the conditions under which the expressions read so far are equal to sympy's.
    """

    def __init__(self, leaves: dict[Any, Expression]) -> None:
        import sympy
        from torch.utils._sympy import functions
        from torch.utils._sympy import numbers as infinite

        self._leaves = leaves
        self.needed: list[Condition] = []
        self._rounding = (functions.TruncToInt, functions.FloorToInt)
        self._to_float = functions.ToFloat
        self._infinite = (infinite.int_oo, -infinite.int_oo, sympy.oo, -sympy.oo)
        self._relations = {
            sympy.Eq: "eq",
            sympy.Ne: "ne",
            sympy.Lt: "lt",
            sympy.Le: "le",
            sympy.Gt: "gt",
            sympy.Ge: "ge",
        }
        self._negated = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
        self._operators = {
            sympy.Add: "add",
            sympy.Mul: "mul",
            sympy.Max: "max",
            sympy.Min: "min",
            functions.Max: "max",
            functions.Min: "min",
            functions.FloorDiv: "floordiv",
            functions.CleanDiv: "floordiv",
            functions.Mod: "mod",
            functions.PythonMod: "mod",
        }

    def conditions(self, e: Any, negated: bool = False) -> list[Condition]:
        """Return conditions that together are equivalent to ``e`` or to its negation. Raises _NotWritable."""
        import sympy

        if e in (True, False):
            if bool(e) == negated:
                raise _NotWritable
            return []
        if isinstance(e, sympy.Not):
            return self.conditions(e.args[0], not negated)
        if isinstance(e, sympy.Or if negated else sympy.And):
            return [c for part in e.args for c in self.conditions(part, negated)]
        relation = self._relations.get(type(e))
        if relation is None:
            raise _NotWritable
        left, right = e.args
        if left in self._infinite or right in self._infinite:
            if negated or relation in ("eq", "ne"):
                raise _NotWritable
            return []
        return [(self._negated[relation] if negated else relation, self.expression(left), self.expression(right))]

    def expression(self, e: Any) -> Expression:
        """Return a sympy expression as an Expression. Raises _NotWritable."""
        import sympy

        if isinstance(e, sympy.Integer):
            return int(e)
        if isinstance(e, sympy.Symbol):
            if e not in self._leaves:
                raise _NotWritable
            return self._leaves[e]
        if isinstance(e, sympy.Pow) and isinstance(e.exp, sympy.Integer) and 0 < e.exp < 16:
            return self._joined("mul", [self.expression(e.base)] * int(e.exp))
        if isinstance(e, self._rounding):
            return self.scaled(e.args[0])
        name = self._operators.get(type(e))
        if name is None:
            raise _NotWritable
        return self._joined(name, [self.expression(part) for part in e.args])

    def scaled(self, e: Any) -> Expression:
        """Return the integer part of a size times a factor: ToFloat(s)*0.75 is s * 3 // 4 while the product is exact.

        This is fxgraph/shapes' scaled. Raises _NotWritable for other expressions.
        """
        import sympy

        if not isinstance(e, sympy.Mul) or len(e.args) != 2:
            raise _NotWritable
        factor, size = e.args
        if not isinstance(factor, sympy.Float) or not isinstance(size, self._to_float):
            raise _NotWritable
        product, divisor = float(factor).as_integer_ratio()
        if not 0 < product < 1 << 30 or divisor > 1 << 20:
            raise _NotWritable
        whole = self.expression(size.args[0])
        self.needed += [("ge", whole, 0), ("le", whole, _MOST_SCALED)]
        return "floordiv", ("mul", whole, product), divisor

    def _joined(self, name: str, parts: list[Expression]) -> Expression:
        out = parts[0]
        for part in parts[1:]:
            out = (name, out, part)
        return out
