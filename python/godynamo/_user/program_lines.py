"""Says which of the user's lines restrict a Dim of torch.export: torch's own report names the Dim only."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch._higher_order_ops
import torch.fx
from torch.utils import _pytree as pytree


class _Line(NamedTuple):
    expr: Any  # sympy's
    file: str
    line: int


class Narrowed:
    """The conditions that torch's ShapeEnv records while torch.export traces, each with the user's line."""

    def __init__(self) -> None:
        self.lines: list[_Line] = []
        self.env: Any = None

    @contextlib.contextmanager
    def by_line(self, file: str, line: int) -> Iterator[None]:
        """Attribute the conditions that are recorded in a ``with`` block to a line of the user's code."""
        mode = torch._guards.detect_fake_mode()
        self.env = getattr(mode, "shape_env", None)
        guards = self.env.guards if self.env is not None else []
        before = len(guards)
        try:
            yield
        finally:
            self.lines += [_Line(g.expr, file, line) for g in guards[before:]]

    def by_node(self, node: torch.fx.Node) -> contextlib.AbstractContextManager[None]:
        """Do the same for the line of a graph's node."""
        file, line, _ = (_places(node.stack_trace or "") or [("", 0, "")])[-1]
        return self.by_line(file, line)

    def text_of(self, expr: Any) -> str:
        """Return a condition with the sources of its symbols, such as ``L['x'].size()[0] >= 2``."""
        sources = {str(s): _source(self.env, s) for s in expr.free_symbols}
        return re.sub(r"\w+", lambda m: sources.get(m[0], m[0]), str(expr))

    def report(self, message: str, dims: Mapping[str, str]) -> str:
        """Return text to add to torch's report: the lines that restrict the dimensions that the report names.

        dims: source of a size, such as ``L['x'].size()[0]`` -> the name of its Dim, or "".
        """
        rows = []
        for at in self.lines:
            sources = {str(s): _source(self.env, s) for s in at.expr.free_symbols}
            if at.line and any(_names(message, dims.get(s, ""), s) for s in sources.values()):
                rows.append(_row(at, self.text_of(at.expr), sources.values(), dims))
        return "\nThese lines need it:\n" + "\n".join(dict.fromkeys(rows)) if rows else ""


def _row(at: _Line, condition: str, sources: Iterable[str], dims: Mapping[str, str]) -> str:
    """Return the text of a line. sources: those of its condition."""
    named = sorted(f"{dims[s]} = {s}" if dims.get(s) else s for s in sources)
    code = linecache.getline(at.file, at.line).strip()
    return f'  - {", ".join(named)}: {condition}\n    File "{at.file}", line {at.line}' + (
        f"\n      {code}" if code else ""
    )


def _names(message: str, dim: str, source: str) -> bool:
    """Return whether torch's report is about a dimension."""
    told = re.search(r"Constraints violated \((.*?)\)!", message)
    about = told[1].split(", ") if told else []
    return source in message or any(re.search(rf"\b{dim}\b", a) for a in about if dim)


def _source(env: Any, symbol: Any) -> str:
    sources = env.var_to_sources.get(symbol)
    return str(sources[0].name) if sources else str(symbol)


def _places(stack_trace: str) -> list[tuple[str, int, str]]:
    return [
        (file, int(line), name) for file, line, name in re.findall(r'File "(.*?)", line (\d+), in (.*)', stack_trace)
    ]


#: Files of torch whose functions only call the user's: their frames are left out of stack traces.
_CALLERS = (torch.nn.modules.module.__file__, os.path.dirname(torch._higher_order_ops.__file__))


def in_torchs_form(stack_trace: str) -> str:
    """Return a stack trace as torch.export prints it: with code, without frames that only call the user's functions."""
    rows = []
    for file, line, name in _places(stack_trace):
        if not file.startswith(_CALLERS):
            rows.append(f'File "{file}", line {line}, in {name}\n    {linecache.getline(file, line).strip()}')
    return "\n".join(rows)


def _names_of_dims(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> dict[str, str]:
    """Return the names of the Dims by the sources of the sizes, as far as dynamic_shapes has the inputs' structure."""
    if isinstance(dynamic_shapes, (torch.export.ShapesCollection, torch.export.AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(module, args, kwargs)  # type: ignore[no-untyped-call]
    combined = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    if isinstance(dynamic_shapes, (list, tuple)):
        dynamic_shapes = dict(zip(combined, dynamic_shapes, strict=False))
    out = {}
    for path, leaf in pytree.tree_flatten_with_path(dict(combined))[0]:
        spec = dynamic_shapes
        for key in path:
            at = getattr(key, "key", getattr(key, "idx", None))
            try:
                spec = spec[at]
            except (LookupError, TypeError):
                spec = None
        if not isinstance(leaf, torch.Tensor) or not isinstance(spec, (dict, list, tuple)):
            continue
        for dim, given in spec.items() if isinstance(spec, dict) else enumerate(spec):
            name = getattr(given, "__name__", "")
            out[f"L{pytree.keystr(path)}.size()[{dim}]"] = name
    return out


@contextlib.contextmanager
def at_user_lines(
    narrowed: Narrowed, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> Iterator[None]:
    """Add the user's lines to torch's reports of Dims that do not fit, for a ``with`` block."""
    from torch._dynamo.exc import UserError
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    try:
        yield
    except (UserError, ConstraintViolationError, ValueError) as error:
        message = str(error)
        added = narrowed.report(message, _names_of_dims(module, args, kwargs, dynamic_shapes)) if narrowed.lines else ""
        if added:
            # refine_dynamic_shapes_from_suggested_fixes() parses all lines after "Suggested fixes:"
            before = "\nSuggested fixes:" if "\nSuggested fixes:" in message else "\n\nThe error above occurred"
            head, separator, tail = message.partition(before)
            error.args = (head.rstrip("\n") + added + separator + tail,)
        raise
