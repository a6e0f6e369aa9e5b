"""Backends that take whole graphs: their names, and the way of a captured graph to one.

A backend is called as ``backend(gm, example_inputs)`` with a real torch.fx.GraphModule, all of whose inputs (lifted
parameters too) are placeholders, and the real input tensors; it returns a callable that takes the inputs positionally
and returns a sequence of outputs. torch._dynamo is imported when one of torch's own backends is asked for, not before:
that costs a second.
"""

from __future__ import annotations

import builtins
import contextlib
import difflib
import functools
import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import torch

from .. import config, exc, utils
from .._called import torch_state
from .._called.runtime import Ref
from .._called.saved_tensors import unseen
from .._core import BUILTINS, core
from .._translator import trace_rules, vague, vf
from . import aot, graph_outputs, python_graph, python_ops
from .compile_lock import compile_lock

log = logging.getLogger("godynamo")

Backend = Callable[..., Any]
B = TypeVar("B", bound=Backend)

_ENTRY_POINTS = "torch_dynamo_backends"
_own: dict[str, Backend] = {}
_tags: dict[str, tuple[str, ...]] = {}


# ---- names ----


@overload
def register_backend(compiler_fn: B, name: str | None = None, tags: Sequence[str] = ()) -> B: ...
@overload
def register_backend(
    compiler_fn: None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable[[B], B]: ...
def register_backend(compiler_fn: Backend | None = None, name: str | None = None, tags: Sequence[str] = ()) -> Any:
    """Give a backend a name (by default its own); also as a decorator, with or without arguments.

    tags: words by which :func:`list_backends` leaves it out ("debug", "experimental"). Raises TypeError for what cannot be
    called, ValueError where there is no name, or it is "eager".

    >>> @godynamo.register_backend
    ... def my_backend(gm, example_inputs):
    ...     return gm.forward
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"a backend is a callable (gm, example_inputs), not {compiler_fn!r}")
    word = name or str(getattr(compiler_fn, "__name__", ""))
    if not word:
        raise ValueError("a backend needs a name")
    if word == "eager":
        raise ValueError("the name 'eager' is the built-in pass-through backend's")
    _own[word] = compiler_fn
    _tags[word] = (tags,) if isinstance(tags, str) else tuple(tags)
    return compiler_fn


def register_debug_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """register_backend(tags=("debug",)): left out of list_backends() unless it is asked for all."""
    return register_backend(compiler_fn, name, ("debug",))


def register_experimental_backend(compiler_fn: Backend | None = None, name: str | None = None) -> Any:
    """register_backend(tags=("experimental",)): left out of list_backends() unless it is asked for all."""
    return register_backend(compiler_fn, name, ("experimental",))


def registered() -> list[Backend]:
    """Backends registered here, for telling a backend from a function."""
    return list(_own.values())


@functools.lru_cache(maxsize=1)
def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=_ENTRY_POINTS)}


def _torch_backends() -> list[str]:
    from torch._dynamo.backends.registry import list_backends as torch_list

    return list(torch_list(exclude_tags=()))


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """List what ``backend=`` takes: "eager", those registered here, entry points, torch's. Imports torch._dynamo.

    exclude_tags: leave out those registered with one of these tags; None or (): list all.
    """
    from torch._dynamo.backends.registry import list_backends as torch_list

    out = (exclude_tags,) if isinstance(exclude_tags, str) else tuple(exclude_tags or ())
    own = [name for name in _own if not set(_tags[name]) & set(out)]
    return sorted({"eager", *own, *_entry_points(), *torch_list(exclude_tags=out)})


def lookup_backend(backend: str | Backend) -> Backend:
    """The backend of a name; a callable is given back.

    Raises exc.InvalidBackend, a ValueError that names the nearest names, and TypeError for what is neither.
    """
    if not isinstance(backend, str):
        if not callable(backend):
            raise TypeError(f"a backend is a name or a callable (gm, example_inputs), not {backend!r}")
        return backend
    if backend == "eager":
        return _eager
    if backend in _own:
        return _own[backend]
    if backend in _entry_points():
        return _entry_points()[backend].load()  # type: ignore[no-any-return]
    names = _torch_backends()
    if backend not in names:
        near = difflib.get_close_matches(backend, {"eager", *_own, *_entry_points(), *names}, n=3)
        hint = f"; near it: {', '.join(map(repr, near))}" if near else "; godynamo.list_backends() has all names"
        raise exc.InvalidBackend(f"no backend is named {backend!r}{hint}")
    from torch._dynamo.backends.registry import lookup_backend as torch_lookup

    return torch_lookup(backend)


def _eager(gm: Any, _example_inputs: Sequence[Any]) -> Any:
    return gm.forward


def by_name(name: str, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None) -> Backend:
    """What Options.backend is for a name: looked up now, so that an unknown name fails in optimize()."""
    backend = _Named(name, mode, dict(options or {}), dynamic)
    backend.resolve()
    return backend


class _Named:
    """A backend given by name, with torch.compile's mode and options; pickles by these."""

    __godynamo_backend__ = True

    def __init__(self, name: str, mode: str | None, options: dict[str, Any], dynamic: bool | None) -> None:
        self._key = (name, mode, options, dynamic)
        self.__name__ = name
        self._resolved: Backend | None = None

    def resolve(self) -> Backend:
        """Look the backend up; ValueError for an unknown name."""
        if self._resolved is None:
            name, mode, options, dynamic = self._key
            found = lookup_backend(name)
            plain = mode in (None, "default") and not options
            if name in _own or plain:
                self._resolved = functools.partial(found, **({"options": options} if options else {}))
            elif name == "inductor":
                # torch.compile's own reading of mode and options.
                self._resolved = torch._TorchCompileInductorWrapper(mode, options or None, dynamic)
            else:
                self._resolved = torch._TorchCompileWrapper(name, mode, options or None, dynamic)
        return self._resolved

    @property
    def of_torch(self) -> bool:
        """Whether it is one of torch's, and none that runs the graph's operators as they are."""
        name = self._key[0]
        return name not in _RUN_OPERATORS and name not in _own and name not in _entry_points()

    def __call__(self, gm: Any, example_inputs: Sequence[Any]) -> Any:
        return self.resolve()(gm, example_inputs)

    def __reduce__(self) -> Any:
        return _Named, self._key


#: torch's backends that run the graph's operators themselves
_RUN_OPERATORS = {"eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager", "ts"}


def takes_apart(backend: Any) -> bool:
    """Whether a backend is one of torch's that trace the graph with AOTAutograd.

    Recurrent layers draw other random numbers there, and an LSTM's graph does not run; torch.compile splits at them, too.
    """
    if isinstance(backend, _Named):
        return backend.of_torch
    return type(backend).__module__ == "torch._dynamo.backends.common"


# ---- from rows to a GraphModule ----


class _Builder:
    """Makes FX nodes of node rows; what FX cannot print as an operand becomes an attribute of the root."""

    def __init__(self) -> None:
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.nodes: list[Any] = []
        self._constants: dict[int, Any] = {}

    def add(self, row: Sequence[Any]) -> None:
        """Append the node of (op, name, target, args, kwargs, stack_trace[, source_range])."""
        op, name, target, args, kwargs, stack_trace, *where = row
        if op == "call_function" and target is python_ops.PyConstant:
            args = tuple(python_ops.PyObject(x) for x in args)
        a = tuple(self.operand(x) for x in args)
        k = {key: self.operand(x) for key, x in kwargs.items()}
        if op == "output" and not isinstance(a[0], tuple):
            a = ((a[0],),) if not isinstance(a[0], list) else (tuple(a[0]),)
        if op == "call_function":
            target = vf.printable(target)
        node = self.graph.create_node(op, target, a, k, name=name)
        if stack_trace:
            node.stack_trace = stack_trace
        if where and where[0]:
            node.meta["source_range"] = where[0]
        self.nodes.append(node)

    def operand(self, x: Any) -> Any:
        """An operand as FX takes it."""
        if isinstance(x, Ref):
            return self.nodes[x.index]
        if type(x) is tuple or type(x) is list:
            return type(x)(self.operand(i) for i in x)
        if type(x) is dict:
            return {key: self.operand(value) for key, value in x.items()}
        if type(x) is slice:
            return slice(self.operand(x.start), self.operand(x.stop), self.operand(x.step))
        if isinstance(x, torch.Size):
            return tuple(x)
        if x is None or x is Ellipsis or type(x) in _PRINTABLE:
            return x
        return self._constant(x)

    def _constant(self, x: Any) -> Any:
        node = self._constants.get(id(x))
        if node is None:
            name = f"_constant{len(self._constants)}"
            setattr(self.root, name, x)
            first = next((n for n in self.nodes if n.op != "placeholder"), None)
            if first is not None:
                with self.graph.inserting_before(first):
                    node = self.graph.get_attr(name)
            else:
                node = self.graph.get_attr(name)
            self._constants[id(x)] = node
        return node


_PRINTABLE = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


def build_graph_module(rows: Sequence[Any], example_inputs: Sequence[Any]) -> Any:
    """A torch.fx.GraphModule of node rows: linted, its output a tuple, node.meta["example_value"] computed when read.

    example_inputs, one a placeholder, are looked at and not kept.
    """
    return _graph_module(rows, example_inputs)[0]


def _graph_module(rows: Sequence[Any], example_inputs: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The GraphModule, and its node of each row."""
    builder = _Builder()
    for row in rows:
        builder.add(row)
    builder.graph.lint()
    gm = python_graph.module_for(builder.root, builder.graph)
    _without_report(gm)
    source = weakref.finalize(gm, _forget_source, type(gm).forward.__code__.co_filename)
    source.atexit = False
    values = _ExampleValues(gm, example_inputs)
    for node in gm.graph.nodes:
        if node.op != "output":
            node.meta = _Meta(node.meta, node.name, values)
    return gm, builder.nodes


@functools.lru_cache(maxsize=1)
def _plain_call() -> tuple[Any, Any] | None:
    """FX's way to call a GraphModule, and the same without a report: None where this torch has another one."""
    from torch.fx import graph_module

    fx: Any = getattr(graph_module, "_WrappedCall", None)
    if fx is None:
        return None

    class Call(fx):  # type: ignore[misc]
        def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)

    return fx, Call


def _without_report(gm: Any) -> None:
    """Keep FX from printing a report to stderr, and from dropping the traceback, when the graph raises."""
    wrapped: Any = vars(type(gm)).get("_wrapped_call")
    ways = _plain_call()
    if ways is not None and type(wrapped) is ways[0]:
        type(gm)._wrapped_call = ways[1](wrapped.cls, wrapped.cls_call)


def _forget_source(filename: str) -> None:
    """FX keeps the text of every graph it ever made, for tracebacks: 0.7 KiB each, for as long as the process lives."""
    import linecache

    from torch.fx import graph_module

    getattr(getattr(graph_module, "_loader", None), "eval_cache", {}).pop(filename, None)
    linecache.cache.pop(filename, None)


class _ExampleValues:
    """Fake values of a graph's nodes, all computed when the first is asked for: a backend that never looks pays nothing."""

    def __init__(self, gm: Any, example_inputs: Sequence[Any]) -> None:
        self._gm = weakref.ref(gm)
        self._inputs = [_describe(x) for x in example_inputs]
        self._values: dict[str, Any] | None = None

    def get(self, name: str) -> Any:
        """The fake value of a node; KeyError where it cannot be computed."""
        if self._values is None:
            gm = self._gm()
            make = lambda _: [_fake(d) for d in self._inputs]  # noqa: E731
            if gm is None or any(d is _NOT_DENSE for d in self._inputs):
                self._values = {}
            else:
                self._values = graph_outputs.fake_values(gm, make)
        return self._values[name]


_NOT_DENSE = object()  # an input that no fake tensor stands for


def _describe(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    if not vague.is_dense(x):
        return _NOT_DENSE
    return (tuple(x.shape), tuple(x.stride()), x.dtype, x.device, x.requires_grad)


def _fake(description: Any) -> Any:
    if type(description) is not tuple:
        return description
    shape, stride, dtype, device, requires_grad = description
    return torch.empty_strided(shape, stride, dtype=dtype, device=device, requires_grad=requires_grad)


class _Meta(dict[str, Any]):
    """node.meta whose "example_value" appears when it is asked for. A copy of it is a plain dict."""

    _MISSING = object()

    def __init__(self, plain: Mapping[str, Any], name: str, values: _ExampleValues) -> None:
        super().__init__(plain)
        self._name = name
        self._values = values

    def __missing__(self, key: str) -> Any:
        if key != "example_value":
            raise KeyError(key)
        value = self._values.get(self._name)
        self[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        if super().__contains__(key):
            return True
        return key == "example_value" and self.get(key, self._MISSING) is not self._MISSING

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)


# ---- to a backend and back ----


@contextlib.contextmanager
def _own_builtins() -> Iterator[None]:
    """Give the builtins that a program has replaced back for a while: torch's code generator asks for len(), too."""
    ours, now = vars(builtins), dict(vars(builtins))
    if any(now.get(name) is not value for name, value in BUILTINS.items()):
        ours.update(BUILTINS)
        try:
            yield
        finally:
            for name in BUILTINS:
                if name in now:
                    ours[name] = now[name]
                else:
                    del ours[name]
    else:
        yield


@_own_builtins()
def compile_fx(
    rows: Sequence[Any],
    backend: Backend,
    backend_name: str,
    example_inputs: list[Any],
    options: Any = None,
    several: Sequence[int] = (),
    whole: bool = False,
) -> Callable[..., Any]:
    """Hand a captured graph to a backend and check what comes back.

    rows: (op, name, target, args, kwargs, stack_trace, source_range), placeholders first, Ref(i) for the node of row i.
    several: which rows among the outputs give sequences; the backend sees their elements (graph_outputs).
    whole: the graph is right only where operators are not taken apart (aot.FirstRun). Raises
    exc.BackendCompilerFailed where the backend raises and exc.InvalidBackendResult where it returns no callable; with
    ``config.suppress_errors`` both are logged and the graph runs as it is. So does one that the backend's fake tensors cannot
    run, since sizes in it depend on data (``utils.counters["stats"]["graphs_with_data_dependent_sizes"]``),
    and one in which the program calls an operator wrongly (``["graphs_that_raise"]``): the exception is eager's, where eager
    raises it. A backend that traces with AOTAutograd gets no graph of sparse, quantized, nested or mkldnn tensors
    (``["graphs_of_tensors_that_are_not_dense"]``).
    """
    if several:
        gm, nodes = _graph_module(rows, example_inputs)
        values = graph_outputs.fake_values(gm, graph_outputs.like(example_inputs))
        rows, parts = graph_outputs.flattened(rows, several, lambda i: values[nodes[i].name])
        if parts is not None:
            compiled = _compiled(rows, backend, backend_name, example_inputs, options, whole)
            return graph_outputs.regrouped(compiled, parts)
    return _compiled(rows, backend, backend_name, example_inputs, options, whole)


def _compiled(
    rows: Sequence[Any], backend: Backend, backend_name: str, example_inputs: list[Any], options: Any, whole: bool
) -> Callable[..., Any]:
    guessed = vague.in_rows(rows) or not all(vague.is_dense(x) for x in example_inputs if isinstance(x, torch.Tensor))
    if guessed and takes_apart(backend):
        return _as_captured(rows, backend_name, example_inputs)
    traced = aot.count()
    try:
        compiled = _by_backend(rows, backend, backend_name, example_inputs)
    except exc.BackendCompilerFailed as error:
        if guessed and aot.with_fakes(error):
            return _as_captured(rows, backend_name, example_inputs)
        raise
    finally:
        if options is not None and aot.count() != traced:  # or another thread's, which costs some breaks
            options.found.add("takes_apart")
    if guessed and aot.count() != traced:
        return _as_captured(rows, backend_name, example_inputs)
    if whole and options is not None and not options.takes_apart:
        return aot.FirstRun(
            compiled, lambda inputs: _as_captured(rows, backend_name, inputs, "whole_operators"), options.found
        )
    return compiled


def _as_captured(
    rows: Sequence[Any],
    backend_name: str,
    example_inputs: Sequence[Any],
    why: str = "tensors_that_are_not_dense",
) -> Callable[..., Any]:
    """A graph that a backend would trace with fake tensors and cannot: of sparse, quantized, nested or mkldnn tensors (why)."""
    log.info(
        "backend %r traces with fake tensors, which this graph does not allow (%s): it runs as captured",
        backend_name,
        why.replace("_", " "),
    )
    utils.counters["stats"]["graphs_of_" + why] += 1
    return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]


def _by_backend(
    rows: Sequence[Any], backend: Backend, backend_name: str, example_inputs: list[Any]
) -> Callable[..., Any]:
    begin = time.perf_counter()
    gm = build_graph_module(rows, example_inputs)
    built = time.perf_counter()
    utils.record_time("graph_module", built - begin)
    noise = _HeldBack("torch._subclasses.fake_tensor")
    try:
        with noise:
            compiled = _call(backend, backend_name, gm, list(example_inputs))
        noise.tell()
    except exc.TorchDynamoException as error:
        if _depends_on_data(error):
            log.info("backend %r takes no sizes that depend on data; the graph runs as captured", backend_name)
            utils.counters["stats"]["graphs_with_data_dependent_sizes"] += 1
            return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
        if isinstance(error, exc.BackendCompilerFailed) and _cannot_run(rows, example_inputs):
            log.info("an operation of the graph raises; it runs as captured, not with backend %r", backend_name)
            utils.counters["stats"]["graphs_that_raise"] += 1
            return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
        noise.tell()
        if config.trace_dir:
            from .._observe import trace as _trace

            _trace.event("backend_failed", backend=backend_name, error=str(error), suppressed=config.suppress_errors)
        if not config.suppress_errors:
            raise
        log.warning("backend %r failed; the graph runs as captured", backend_name, exc_info=True)
        # A fresh one: the backend may have got halfway through changing its own.
        return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
    utils.record_time("backend", time.perf_counter() - built)
    compiled = _outside(compiled, backend_name, _outputs_of(rows))
    if config.verify_correctness:
        return _Verified(compiled, build_graph_module(rows, example_inputs), backend_name)
    return compiled


def _outputs_of(rows: Sequence[Any]) -> int:
    """How many values a graph returns."""
    outputs = rows[-1][3][0]
    return _length(outputs) if isinstance(outputs, (tuple, list)) else 1


def _edited_outputs(compiled: Any) -> int | None:
    """How many values a GraphModule that a backend returned gives; None for what is no GraphModule, or its forward."""
    gm = getattr(compiled, "__self__", compiled)
    if not isinstance(gm, torch.fx.GraphModule):
        return None
    (output,) = [n for n in gm.graph.nodes if n.op == "output"]
    return _length(output.args[0]) if isinstance(output.args[0], (tuple, list)) else None


def _depends_on_data(error: BaseException | None) -> bool:
    """Whether a backend failed since fake tensors have no data: no fault of its own, nor of the graph."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    while error is not None:
        if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _no_compiler(error: BaseException | None) -> BaseException | None:
    """The error at the root of a backend's that says that inductor has no C++ compiler; None for any other.

    Its context, pages of inductor's frames, is not shown: the remedy is one line.
    """
    known: type[BaseException] | None = getattr(sys.modules.get("torch._inductor.exc"), "InvalidCxxCompiler", None)
    while error is not None and known is not None:
        if isinstance(error, known):
            error.__cause__ = None
            error.__suppress_context__ = True
            return error
        error = error.__cause__ or error.__context__
    return None


class _HeldBack(logging.Filter):
    """Inside of it what a logger is told waits: fake tensors log each operator that is called wrongly as a failure."""

    def __init__(self, logger: str) -> None:
        super().__init__()
        self._logger = logging.getLogger(logger)
        self._records: list[logging.LogRecord] = []
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self._records.append(record)
        return False

    def __enter__(self) -> None:
        self._logger.addFilter(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeFilter(self)

    def tell(self) -> None:
        """Log what has waited."""
        for record in self._records:
            self._logger.handle(record)


def _cannot_run(rows: Sequence[Any], example_inputs: Sequence[Any]) -> bool:
    """Whether a graph raises by itself, forward or backward: no backend is to blame for that. It is run on copies to see."""
    gm = build_graph_module(rows, example_inputs)
    if any(graph_outputs.of_python(node.target) for node in gm.graph.nodes):  # these are run once
        return False
    outside = torch_state.snapshot()
    try:
        with torch.random.fork_rng(), unseen():
            outputs = gm.forward(*[_copy(x) for x in example_inputs])
            wanted = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
            torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])
    except Exception:
        log.debug("the graph raises by itself", exc_info=True)
        return True
    finally:
        torch_state.restore(outside)
    return False


def _outside(compiled: Callable[..., Any], name: str, outputs: int) -> Callable[..., Any]:
    """Keep the eval-frame hook out of what a backend returned: frames in it would be captured, and handed to the backend, again.

    FX's, torch's and inductor's own code the hook leaves alone by itself; those are called directly. What others return is looked
    at after each call: exc.InvalidBackendResult names a backend whose code returns another number of values than its graph has.
    """
    if isinstance(compiled, torch.fx.GraphModule):
        _without_report(compiled)
    given = _edited_outputs(compiled)
    if given is not None and given != outputs:
        compiled = _wrong_number(name, given, outputs)
    elif trace_rules.skipped_callable(compiled):
        return compiled
    hook_installed, set_mode, disabled = core.hook_installed, core.set_mode, core.MODE_DISABLED

    def outside(*inputs: Any) -> Any:
        if not hook_installed():
            result = compiled(*inputs)
        else:
            before = set_mode(disabled)
            try:
                result = compiled(*inputs)
            finally:
                set_mode(before)
        if not _is_instance(result, _SEQUENCES) or _length(result) != outputs:
            raise exc.InvalidBackendResult(_wrong_result(name, result, outputs))
        return result

    return outside


_SEQUENCES = (tuple, list)
#: as they were: programs replace builtins, and what counts outputs runs in the midst of them
_length, _is_instance = len, isinstance


def _wrong_result(name: str, result: Any, outputs: int) -> str:
    if isinstance(result, _SEQUENCES):
        return f"what backend {name!r} compiled returned {len(result)} values for a graph with {outputs}"
    return f"what backend {name!r} compiled must return a tuple of {outputs} values, not a {type(result).__name__}"


def _wrong_number(name: str, given: int, outputs: int) -> Callable[..., Any]:
    def wrong(*_: Any) -> Any:
        raise exc.InvalidBackendResult(f"backend {name!r} returned a graph with {given} outputs for one with {outputs}")

    return wrong


#: Seconds for which a backend is not interrupted: an interrupted AOTAutograd has left nn.Module patched and dispatch modes
#: entered. A longer compilation must end at Ctrl-C.
_PATIENCE = 0.5


@contextlib.contextmanager
def _nothing_lost() -> Iterator[None]:
    """End the translation if an exception from outside is raised in a torch finalizer, which CPython would only report."""
    theirs, thread = sys.unraisablehook, threading.get_ident()

    def ours(found: Any) -> None:
        if threading.get_ident() != thread or not core.came_from_outside(found.exc_value):
            theirs(found)

    sys.unraisablehook = ours
    try:
        yield
    finally:
        if sys.unraisablehook is ours:
            sys.unraisablehook = theirs


def _not_its_own(error: BaseException, before: BaseException | None) -> BaseException | None:
    """Return the outside exception or MemoryError that ``error`` is or has replaced; None if there is none.

    ``before``: the exception that was being handled at the start. A ``finally`` block in torch may fail, and C code that
    ignores an exception makes CPython raise SystemError.
    """
    at: BaseException | None = error
    while at is not None and at is not before:
        if isinstance(at, MemoryError) or core.came_from_outside(at):
            return at
        at = at.__context__
    return None


def _call(backend: Backend, name: str, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    modes, handled = torch_state.everything(), sys.exception()
    compiled = arrived = None
    held = core.let_signals_through(_PATIENCE)
    try:
        if isinstance(backend, _Named):
            backend.resolve()  # imports torch._dynamo, whose lock is then the one to take
        with compile_lock(), unseen(), _nothing_lost():
            compiled = backend(gm, example_inputs)
    except exc.BackendCompilerFailed:
        raise
    except Exception as error:
        if (arrived := _not_its_own(error, handled)) is None:
            if (missing := _no_compiler(error)) is not None:
                log.debug("backend %r", name, exc_info=True)
                raise exc.BackendCompilerFailed(name, missing) from missing.with_traceback(None)
            raise exc.BackendCompilerFailed(name, error) from error
    finally:
        core.hold_signals_again(held)
        if compiled is None:
            torch_state.restore_everything(modes)
    if arrived is not None:
        raise arrived
    if not callable(compiled):
        raise exc.InvalidBackendResult(f"backend {name!r} must return a callable, not {compiled!r}")
    return compiled  # type: ignore[no-any-return]


class _Verified:
    """Compares the first call with the graph run as captured; RuntimeError where they differ."""

    def __init__(self, compiled: Callable[..., Any], reference: Any, name: str) -> None:
        self._compiled = compiled
        self._reference = reference
        self._name = name

    def __call__(self, *inputs: Any) -> Any:
        if self._reference is None:
            return self._compiled(*inputs)
        from ..testing import same

        reference, self._reference = self._reference, None
        copies = [_copy(x) for x in inputs]
        state = torch.get_rng_state()
        expected = reference.forward(*copies)
        torch.set_rng_state(state)
        result = self._compiled(*inputs)
        for what, got, want in (("output", result, expected), ("input", inputs, copies)):
            for i, (a, b) in enumerate(zip(got, want, strict=True)):
                if not same(a, b):
                    raise RuntimeError(f"backend {self._name!r}: {what} {i} differs from eager's")
        return result


def _copy(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    copy = x.detach().clone().requires_grad_(x.requires_grad)
    return copy if x.is_leaf else copy.clone()  # what computes a gradient may be changed in place, a leaf may not
