"""Describes a captured graph as plain data, for the process that compiles it, and builds it again there."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .._backends.graph_modules import describe, fake
from .._backends.named import Named, is_own
from .._called import torch_state
from .._stored import objects
from .._stored.keys import torch_state as guarded_state
from .._translator import vague

#: modules whose settings change what inductor generates
_CONFIGS = ("torch._inductor.config", "torch._functorch.config")
#: torch.compile's modes without CUDA graphs, which need the addresses of the program's tensors
_MODES = (None, "default", "max-autotune-no-cudagraphs")
#: packages that the other process can import without running the program's code
_KNOWN = {"torch", "godynamo", "builtins", "operator", "_operator", "math", "types"}


#: arguments of symbolic.Sizes
Sizes = tuple[Any, Any, Any, Any, bool, bool]


class NotHandedOver(Exception):
    """Only the program's own process can compile the graph."""


@dataclass(frozen=True)
class Job:
    """A graph to compile: plain data, which can be pickled."""

    described: list[objects.Row]
    graph: int  #: the row of ``described`` that is the list of the graph's rows
    inputs: list[tuple[Any, ...] | int]  #: graph_modules.describe() of a tensor; the row of another input
    mode: str | None  #: torch.compile's mode and options
    options: dict[str, Any]
    modes: torch_state.State
    default_dtype: torch.dtype
    matmul_precision: str
    deterministic: tuple[bool, bool]
    threads: int
    guarded: str  #: torch's global state as guards compare it
    sizes: Sizes | None  #: arguments of symbolic.Sizes, if sizes are symbols


#: passed to _stored.objects in place of the translated function; no object of a graph is found through it
_anchor: Any = types.FunctionType((lambda: None).__code__, {})


def described(
    rows: Sequence[Any], inputs: Sequence[Any], changed: Sequence[int], backend: Any, sizes: Sizes | None = None
) -> Job:
    """Describe a graph and torch's global state. Raises NotHandedOver with the reason if that is impossible.

    changed: the numbers of the inputs whose memory the graph may change.
    sizes: the arguments of symbolic.Sizes, if sizes are symbols.
    """
    if sizes is not None and (sizes[4] or not _plain(sizes)):
        raise NotHandedOver("the graph has numbers known only at run time")
    if not isinstance(backend, Named) or backend.name != "inductor" or is_own("inductor"):
        raise NotHandedOver("only inductor saves what it has compiled")
    _, mode, options, _ = backend.arguments
    if mode not in _MODES or not _plain(options) or options.get("triton.cudagraphs"):
        raise NotHandedOver(f"mode {mode!r} with options {options!r}")
    modes = torch_state.snapshot()
    if modes[0]:
        raise NotHandedOver("the graph runs under modes that captured code has entered")
    table = objects.Table(_anchor, {}, {})
    try:
        graph = table.add_plain(list(rows), strict=True)
        given = [_input(x, i in changed) or table.add(x) for i, x in enumerate(inputs)]
    except objects.NotStored as error:
        raise NotHandedOver(str(error)) from None
    for row in table.rows:
        _check_known(row)
    return Job(
        table.rows,
        graph,
        given,
        mode,
        dict(options),
        modes,
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        torch.get_num_threads(),
        guarded_state(),
        sizes,
    )


def _input(x: Any, changed: bool) -> tuple[Any, ...] | None:
    """Describe a tensor; return None for other objects. ``changed``: the graph may change the tensor."""
    if not isinstance(x, torch.Tensor):
        return None
    if type(x) not in (torch.Tensor, torch.nn.Parameter) or not vague.is_dense(x):
        raise NotHandedOver(f"an input is a {type(x).__name__} that has more than sizes and strides")
    if x.is_conj() or x.is_neg() or x.is_inference():
        raise NotHandedOver("an input is a view of the conjugate or negative, or made in inference mode")
    if changed and (x._base is not None or (x.requires_grad and not x.is_leaf)):
        raise NotHandedOver("the graph changes a view or a computed tensor in place")
    return describe(x)  # type: ignore[no-any-return]


def _check_known(row: objects.Row) -> None:
    """Raise NotHandedOver if the other process would have to import code of the program."""
    kind, _, way, data, *_ = row
    if kind != objects.PYTHON:
        raise NotHandedOver("an object of the graph is found by its place")
    if way == "made":  # AOTAutograd refuses to save such a graph
        raise NotHandedOver("the graph contains another graph")
    if way not in ("global", "module", "globals", "closure", "frame global"):
        return
    module, _, path = data.decode("utf-8", "surrogatepass").partition(":")
    root = module.partition(".")[0]
    parts = path.split(".")
    if way == "frame global" or root not in _KNOWN:
        raise NotHandedOver(f"the graph calls {module} {path}")
    if root == "torch" and len(parts) > 1 and parts[0] == "ops" and parts[1] not in objects.TORCHS_LIBRARIES:
        raise NotHandedOver(f"the graph calls torch.{path}")


def _plain(x: Any) -> bool:
    if type(x) in (tuple, list):
        return all(map(_plain, x))
    if type(x) is dict:
        return all(map(_plain, x)) and all(map(_plain, x.values()))
    return x is None or type(x) in (bool, int, float, str)


def settings() -> str:
    """Return Python statements that make torch's compilers in another process have this process's settings.

    Raises NotHandedOver if a setting is a function or the like.
    """
    found = []
    for name in _CONFIGS:
        module: Any = sys.modules.get(name)
        if module is None:
            continue
        text = module.codegen_config()
        skipped = [key for key in getattr(module, "_save_config_ignore", ()) if not module._is_default(key)]
        try:
            compile(text, name, "exec")
        except SyntaxError:
            skipped.append("a value without a text")
        if skipped or " omitted: " in text:
            raise NotHandedOver(f"{name} has values of this process: {', '.join(skipped)}")
        found.append(f"import {name}\n{text}\n")
    return "".join(found)


# ---- in the process that compiles ----


def prepare(job: Job) -> None:
    """Set torch's global state to the program's. Raises NotHandedOver if the states still differ."""
    torch.set_num_threads(job.threads)
    torch.set_default_dtype(job.default_dtype)
    torch.set_float32_matmul_precision(job.matmul_precision)
    on, warn_only = job.deterministic
    torch.use_deterministic_algorithms(on, warn_only=warn_only)
    torch_state.restore(job.modes)
    if (ours := guarded_state()) != job.guarded:
        raise NotHandedOver(f"torch's state is {ours}, not {job.guarded}")


def objects_of(job: Job) -> list[Any]:
    """Return the described objects. Raises objects.Missing if one is another object in this process."""
    found: list[Any] = [None] * len(job.described)
    objects.find(job.described, _anchor, found)
    objects.check(job.described, found)
    return [obj for (obj,) in found]


def inputs_of(job: Job, found: Sequence[Any], mode: Any) -> list[Any]:
    """Return new inputs for a job's graph: fake tensors of ``mode``, and those of ``found`` that are no tensors."""
    with mode, torch.enable_grad():
        return [found[x] if isinstance(x, int) else fake(x) for x in job.inputs]


# ---- messages ----


@dataclass(frozen=True)
class Answer:
    """What the other process has done with a job."""

    why: str | None  #: why it has failed, or None
    seconds: float
    conditions: list[Any]  #: on sizes, under which the compiled code is right (symbolic.Condition)


_LENGTH = 8


def send(message: Any, out: Any) -> None:
    """Write a message to an unbuffered file. Both ends are processes of one program, so they use pickle.

    Raises OSError if the other process has ended.
    """
    data = pickle.dumps(message)
    rest = memoryview(len(data).to_bytes(_LENGTH, "little") + data)
    while rest:
        rest = rest[out.write(rest) :]


def receive(source: Any) -> Any:
    """Read a message from an unbuffered file. Raises EOFError if the other process has ended."""
    return pickle.loads(_read(source, int.from_bytes(_read(source, _LENGTH), "little")))


def _read(source: Any, n: int) -> bytes:
    data = bytearray()
    while len(data) < n:
        part = source.read(n - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
