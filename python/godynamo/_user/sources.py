"""Looks up rules for sizes and ints in the user's lists: config.dynamic_sources and others, compile(dynamic_shapes=).

Called by the translator (bytecode/translate/graph_marks.go) for each tensor and int passed to a frame.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

from .. import config
from .._observe.reasons import Frame

#: the kinds of rules; graph_marks.go has the same numbers
NONE, DYNAMIC, UNBACKED, STATIC = range(4)

#: (kind, smallest value or None, largest value or None, name that equal values share or "")
Rule = tuple[int, int | None, int | None, str]

_NOTHING: Rule = (NONE, None, None, "")


def rules(
    shapes: Any,
    code: CodeType,
    first_type: type | None,
    name: str,
    local: bool,
    values: tuple[int, ...],
    tensor: bool,
) -> list[Rule] | None:
    """Return the rule of each size of a tensor, or of an int; None if nothing is listed for it.

    shapes: the dynamic_shapes of compile(), or None.
    code, first_type: the frame's code, and the type of its first variable.
    name: the place, as guards print it; ``local`` is true if it starts at a variable of the frame, not at a global.
    values: the sizes of the tensor, or the int.

    Raises torch's ConstraintViolationError if a value is not the one that dynamic_shapes gives.
    """
    frame = Frame.of(code, first_type)
    user = frame.rename(name)
    if shapes is not None and local:
        found = _of_shapes(shapes, user, _stars(frame, code), values, tensor)
        if found is not None:
            return found
    names = {name, user, _torchs(name, local), _torchs(user, local)}
    kinds = [_kind(names, dim if tensor else None, value) for dim, value in enumerate(values)]
    return [(kind, None, None, "") for kind in kinds] if any(kinds) else None


def _torchs(name: str, local: bool) -> str:
    """Return a place as torch.compile names it: L['x'].attribute, or G['x'] for a global variable."""
    root = re.match(r"\w+", name)
    return name if root is None else f"{'L' if local else 'G'}['{root[0]}']{name[root.end() :]}"


def _kind(names: Iterable[str], dim: int | None, value: int) -> int:
    """Return the kind of a size or an int. The order of the lists is torch's: static, dynamic, unbacked, values."""
    for setting, kind in (("static_sources", STATIC), ("dynamic_sources", DYNAMIC), ("unbacked_sources", UNBACKED)):
        for pattern, only in _parsed(getattr(config, setting)):
            if (dim is None or only is None or dim == only) and _matches(pattern, names):
                return kind
    return DYNAMIC if value in _ints(config.dynamic_values) else NONE


def _matches(pattern: str, names: Iterable[str]) -> bool:
    if pattern in names:
        return True
    try:
        return any(re.match(pattern, name) for name in names)
    except re.error:
        return False


@functools.lru_cache(maxsize=16)
def _parsed(text: str) -> tuple[tuple[str, int | None], ...]:
    """Return the entries of a list: (name or regular expression, dimension or None)."""
    out: list[tuple[str, int | None]] = []
    for entry in filter(None, text.replace(" ", "").split(",")):
        with_dim = re.fullmatch(r"(.+):(\d+)", entry)
        out.append((with_dim[1], int(with_dim[2])) if with_dim else (entry, None))
    return tuple(out)


@functools.lru_cache(maxsize=16)
def _ints(text: str) -> frozenset[int]:
    return frozenset(int(item) for item in text.replace(" ", "").split(",") if item)


# ---- compile(dynamic_shapes=...) ------------------------------------------------------------------------------------


def of_user(dynamic_shapes: Any, target: Any) -> Any:
    """Return the dynamic_shapes of compile() as torch's ShapesSpec, or None. ``target`` may have torch's dynamic_spec.

    Raises what torch raises for a wrong specification, and NotImplementedError for assumptions.
    """
    import sys

    module = sys.modules.get("torch.fx.experimental.dynamic_spec")
    if dynamic_shapes is None and module is None:
        return None
    from torch.fx.experimental import dynamic_spec

    if target is not None:
        dynamic_shapes = dynamic_spec._resolve_dynamic_shapes(target, dynamic_shapes)
    spec = dynamic_spec._coerce_to_shapes_spec(dynamic_shapes)
    if spec is not None and spec.assumptions:
        # Assumptions are conditions on several sizes, but a rule here is about one size. torch._check can state them.
        raise NotImplementedError("compile(): assumptions of dynamic_shapes; use torch._check in the function")
    for leaf in _leaves(spec._params) if spec is not None and spec._params is not None else ():
        _leaf_rule(leaf, 0, "")
    return spec


def _leaves(spec: Any) -> Iterator[Any]:
    """Return the specifications of sizes and ints within a specification."""
    from torch.fx.experimental import dynamic_spec as ds

    if isinstance(spec, ds.ParamsSpec):
        children = [*spec._named_args.values(), *(spec._varargs or []), *(spec._varkw or {}).values()]
    elif isinstance(spec, (ds.ObjectSpec, ds.DictSpec)):
        children = [value for _, value in spec.items()]
    elif isinstance(spec, (ds.TensorSpec, ds.SeqSpec)):
        children = list(spec._specs if isinstance(spec, ds.TensorSpec) else spec._entries)
    else:
        yield spec
        return
    for child in children:
        yield from _leaves(child)


#: a step from a value to a part of it: .name, ['name'] or [0]
_STEP = re.compile(r"\.(?P<name>\w+)|\['(?P<key>[^']*)'\]|\[(?P<index>\d+)\]")


def _stars(frame: Frame, code: CodeType) -> tuple[str | None, str | None]:
    """Return the names of the parameters *args and **kwargs."""
    if frame.parameters is not None:
        return frame.varargs, frame.varkw
    names = list(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    varargs = names.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    return varargs, names[0] if code.co_flags & inspect.CO_VARKEYWORDS else None


def _of_shapes(
    shapes: Any, name: str, stars: tuple[str | None, str | None], values: Sequence[int], tensor: bool
) -> list[Rule] | None:
    """Return the rules that a ShapesSpec has for a place, or None if it does not mention the place."""
    from torch.fx.experimental import dynamic_spec as ds

    root = re.match(r"\w+", name)
    params = shapes._params
    if root is None or params is None:
        return None
    roots = {**dict(zip(stars, (params._varargs, params._varkw), strict=True)), **params._named_args}
    spec = roots.get(root[0])
    at = root.end()
    while spec is not None and at < len(name):
        step = _STEP.match(name, at)
        if step is None:
            return None
        at = step.end()
        spec = _child(spec, step)
    if spec is None:
        return None
    if isinstance(spec, ds.TensorSpec):
        if not tensor or len(spec) != len(values):
            raise _violated(f"{name} has {len(values)} dimensions, not {len(spec)}")
        return [_leaf_rule(s, v, f"{name}.size()[{i}]") for i, (s, v) in enumerate(zip(spec, values, strict=True))]
    return None if tensor else [_leaf_rule(spec, values[0], name)]


def _child(spec: Any, step: re.Match[str]) -> Any:
    from torch.fx.experimental import dynamic_spec as ds

    if isinstance(spec, ds.ObjectSpec):
        return dict(spec.items()).get(step["name"])
    key: Any = int(step["index"]) if step["index"] is not None else step["key"]
    if isinstance(spec, ds.DictSpec):
        return dict(spec.items()).get(key)
    items = spec._entries if isinstance(spec, ds.SeqSpec) else spec
    if isinstance(items, (list, tuple)) and isinstance(key, int) and key < len(items):
        return items[key]
    return spec.get(key) if isinstance(spec, dict) else None


def _violated(text: str) -> Exception:
    from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

    return ConstraintViolationError(f"dynamic_shapes: {text}")


def _leaf_rule(spec: Any, value: int, place: str) -> Rule:
    from torch.fx.experimental import dynamic_spec as ds

    if isinstance(spec, ds.IntVar):
        low, high = spec.min, spec.max
        if place and ((low is not None and value < low) or (high is not None and value > high)):
            raise _violated(f"{place} is {value}, which is not in the range of {spec!r}")
        return UNBACKED, low, high, f"{spec.name}#{spec._uid}"
    if spec is None or type(spec) is int:
        if place and spec is not None and spec != value:
            raise _violated(f"{place} is {value}, not {spec}")
        return STATIC, None, None, ""
    # A rule is about one size, and this size is an expression of others.
    raise NotImplementedError(f"compile(): {spec!r} in dynamic_shapes, a size that is computed from others")
