"""Passes a captured graph to a backend, handles the backend's failures and checks its result."""

from __future__ import annotations

import builtins
import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from .. import config, exc, utils
from .._called import torch_state
from .._called.saved_tensors import unseen
from .._core import BUILTINS, core
from .._translator import trace_rules, vague
from . import aot, fixed_inputs, graph_outputs, memory, symbolic
from .compile_lock import compile_lock
from .graph_modules import build_graph_module, recompile, with_nodes, without_report
from .named import Backend, Named, takes_apart
from .verified import Verified, copied

log = logging.getLogger("godynamo")


@contextlib.contextmanager
def _own_builtins() -> Iterator[None]:
    """Restore builtins that the program has replaced, for a ``with`` block: torch's code generator calls len() too."""
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
    sizes: Sequence[Any] | None = None,
    changed: tuple[int, ...] = (),
    of_modules: tuple[int, ...] = (),
) -> Any:
    """Pass a captured graph to a backend, check the result and return the callable that runs the graph.

    rows: (op, name, target, args, kwargs, stack_trace, source_range), placeholders first; Ref(i) is the node of row i.
    several: those outputs' rows whose values are sequences; the backend sees the sequences' elements (graph_outputs).
    whole: the graph is correct only if its operators are not decomposed (aot.FirstRun).
    sizes: the symbolic sizes of the inputs (arguments of symbolic.Sizes), for a backend that does not return the graph.
    The result is then (callable, conditions, constants), see Sizes.assumed(), or None if the graph must be compiled for
    constant sizes.
    changed: the numbers of the inputs whose memory the graph may change.
    of_modules: the numbers of the inputs that are parameters or buffers of modules.

    Raises exc.BackendCompilerFailed if the backend raises, and exc.InvalidBackendResult if the backend returns no
    callable. With ``config.suppress_errors`` both are logged and the graph runs as captured.

    The graph also runs as captured, and a counter in ``utils.counters["stats"]`` is raised, in four cases:

    - the graph's sizes depend on data, so the backend's fake tensors cannot run it
      ("graphs_with_data_dependent_sizes");
    - the program calls an operator wrongly, so that the captured graph raises eager mode's exception at the operator's
      place ("graphs_that_raise");
    - the backend traces with AOTAutograd and the graph has sparse, quantized, nested or mkldnn tensors
      ("graphs_of_tensors_that_are_not_dense");
    - the graph changes an input that overlaps another one, and the examples for the backend cannot be copies that do
      not overlap ("graphs_of_overlapping_inputs"), see the module memory.
    """
    apart = _apart(backend, options)
    if several:
        gm, nodes = with_nodes(rows, example_inputs)
        values = graph_outputs.fake_values(gm, graph_outputs.like(example_inputs))
        rows, parts = graph_outputs.flattened(rows, several, lambda i: values[nodes[i].name])
        if parts is not None:
            if sizes is not None:
                answer = _with_symbols(rows, backend, backend_name, example_inputs, sizes, apart, changed, of_modules)
                return answer and (graph_outputs.regrouped(answer[0], parts), *answer[1:])
            compiled = _compiled(rows, backend, backend_name, example_inputs, options, whole, changed, of_modules)
            return graph_outputs.regrouped(compiled, parts)
    if sizes is not None:
        return _with_symbols(rows, backend, backend_name, example_inputs, sizes, apart, changed, of_modules)
    return _compiled(rows, backend, backend_name, example_inputs, options, whole, changed, of_modules)


def compile_again(
    rows: Sequence[Any],
    backend: Backend,
    backend_name: str,
    example_inputs: list[Any],
    options: Any,
    several: Sequence[int],
    whole: bool,
    sizes: Sequence[Any],
    changed: tuple[int, ...],
    of_modules: tuple[int, ...],
    assumed: tuple[list[Any], list[Any]],
) -> Callable[..., Any]:
    """Compile a graph with symbolic sizes that another process has compiled; see compile_fx.

    sizes, assumed: what compile_fx was passed there, and the conditions and constants that it returned. Guards check
    these. Raises ValueError if the code compiled here assumes anything else about sizes.
    """
    sizes, examples = symbolic.derived(sizes, example_inputs)
    answer = compile_fx(rows, backend, backend_name, examples, options, several, whole, sizes, changed, of_modules)
    if answer is None:
        raise ValueError("the graph is compiled for constant sizes")
    compiled: Callable[..., Any]
    compiled, conditions, constants = answer
    if not (set(conditions) <= set(assumed[0]) and set(constants) <= set(assumed[1])):
        raise ValueError("the compiled code assumes something else about sizes")
    return compiled


def _apart(backend: Backend, options: Any) -> bool:
    """Return whether the backend is known to trace with AOTAutograd."""
    return takes_apart(backend) or (options is not None and options.takes_apart)


def _with_symbols(
    rows: Sequence[Any],
    backend: Backend,
    backend_name: str,
    example_inputs: list[Any],
    symbols: Sequence[Any],
    apart: bool,
    changed: tuple[int, ...],
    of_modules: tuple[int, ...],
) -> tuple[Callable[..., Any], list[Any], list[int]] | None:
    """Compile a graph with symbolic sizes; see compile_fx. Return None if that fails for any reason."""
    if vague.in_rows(rows) or not all(vague.is_dense(x) for x in example_inputs if isinstance(x, torch.Tensor)):
        return (_as_captured(rows, backend_name, example_inputs), [], []) if apart else None
    waiting = _aside(
        rows,
        example_inputs,
        changed,
        backend,
        backend_name,
        lambda: build_graph_module(rows, example_inputs),
        None,
        symbols,
    )
    if waiting is not None:
        return waiting, [], []
    begin = time.perf_counter()
    handled = sys.exception()
    try:
        sizes = symbolic.Sizes(*symbols)
        examples = sizes.examples(example_inputs)
        gm = build_graph_module(rows, examples, sizes.mode)
        with _HeldBack("torch._subclasses.fake_tensor"):
            if sizes.prepare(gm, examples):
                recompile(gm)
        fixed_inputs.mark(gm, backend, example_inputs, of_modules)
        built = time.perf_counter()
        utils.record_time("graph_module", built - begin)
        with _HeldBack("torch._subclasses.fake_tensor"), sizes.context():
            compiled = _call(backend, backend_name, gm, examples)
        utils.record_time("backend", time.perf_counter() - built)
        answer = sizes.assumed()
    except Exception as error:
        if (arrived := _not_its_own(error, handled)) is not None:
            raise arrived from None
        log.info("backend %r failed with symbolic sizes; they are constants", backend_name, exc_info=True)
        return None
    compiled = _outside(compiled, backend_name, _outputs_of(rows))
    compiled = sizes.runs(compiled, lambda: build_graph_module(rows, example_inputs).forward)
    if changed:
        compiled = _for_separate(compiled, rows, len(example_inputs), changed, backend_name)
    if config.verify_correctness:
        compiled = Verified(compiled, build_graph_module(rows, example_inputs), backend_name)
    return compiled, *answer


def _compiled(
    rows: Sequence[Any],
    backend: Backend,
    backend_name: str,
    example_inputs: list[Any],
    options: Any,
    whole: bool,
    changed: tuple[int, ...],
    of_modules: tuple[int, ...],
) -> Callable[..., Any]:
    guessed = vague.in_rows(rows) or not all(vague.is_dense(x) for x in example_inputs if isinstance(x, torch.Tensor))
    if guessed and takes_apart(backend):
        return _as_captured(rows, backend_name, example_inputs)
    traced = aot.count()
    try:
        compiled = _by_backend(rows, backend, backend_name, example_inputs, options, changed, of_modules)
    except exc.BackendCompilerFailed as error:
        if guessed and aot.with_fakes(error):
            return _as_captured(rows, backend_name, example_inputs)
        raise
    finally:
        # The count of traces may have changed because of another thread. Then programs with this backend get a few
        # unnecessary graph breaks.
        if options is not None and aot.count() != traced:
            options.found.add("takes_apart")
    if guessed and aot.count() != traced:
        return _as_captured(rows, backend_name, example_inputs)
    if whole and options is not None and not options.takes_apart and not options.any_size:
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
    """Return a callable that runs the graph without the backend; ``why`` is the reason, for log and counter."""
    log.info(
        "backend %r traces with fake tensors, which this graph does not allow (%s): it runs as captured",
        backend_name,
        why.replace("_", " "),
    )
    utils.counters["stats"]["graphs_of_" + why] += 1
    return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]


def _is_graph(compiled: Any, gm: Any, code: str) -> bool:
    """Return whether a backend has returned the graph itself, unchanged, so that it runs at any sizes.

    code: the graph's Python code before the backend received it.
    """
    if compiled is not gm:
        own = type(gm).forward, type(gm).__call__
        if getattr(compiled, "__self__", None) is not gm or getattr(compiled, "__func__", None) not in own:
            return False
    return gm.code is code and "forward" not in vars(gm)


def _by_backend(
    rows: Sequence[Any],
    backend: Backend,
    backend_name: str,
    example_inputs: list[Any],
    options: Any,
    changed: tuple[int, ...],
    of_modules: tuple[int, ...],
    aside: bool = True,
) -> Callable[..., Any]:
    """Pass the graph to the backend. ``aside``: another process may compile it, if the settings say so."""
    apart = _apart(backend, options)
    begin = time.perf_counter()
    examples = memory.separate(example_inputs, changed) if apart and changed else list(example_inputs)
    if examples is None:
        return _as_captured(rows, backend_name, example_inputs, "overlapping_inputs")
    gm = build_graph_module(rows, example_inputs)
    fixed_inputs.mark(gm, backend, example_inputs, of_modules)
    built = time.perf_counter()
    utils.record_time("graph_module", built - begin)
    if aside:

        def here(inputs: Sequence[Any]) -> Callable[..., Any]:
            before = core.set_mode(core.MODE_DISABLED)  # in a call the hook is on
            try:
                return _by_backend(rows, backend, backend_name, list(inputs), options, changed, of_modules, aside=False)
            finally:
                core.set_mode(before)

        if (waiting := _aside(rows, examples, changed, backend, backend_name, lambda: gm, here)) is not None:
            if options is not None:
                options.found.add("fixes_sizes")
            return waiting
    noise = _HeldBack("torch._subclasses.fake_tensor")
    code = gm.code
    try:
        with noise, symbolic.constant_sizes(examples) if apart else contextlib.nullcontext():
            compiled = _call(backend, backend_name, gm, examples)
        noise.tell()
        unchanged = _is_graph(compiled, gm, code)
        if options is not None:
            options.found.add("any_size" if unchanged else "fixes_sizes")
    except exc.TorchDynamoException as error:
        if _depends_on_data(error):
            log.info("backend %r takes no sizes that depend on data; the graph runs as captured", backend_name)
            utils.counters["stats"]["graphs_with_data_dependent_sizes"] += 1
            return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
        if isinstance(error, exc.BackendCompilerFailed) and _cannot_run(rows, example_inputs):
            log.info("an operation of the graph raises; it runs as captured, not with backend %r", backend_name)
            utils.counters["stats"]["graphs_that_raise"] += 1
            return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
        if isinstance(error, exc.BackendCompilerFailed) and (node := _not_for_fakes(rows, example_inputs)):
            raise NotForFakes(backend_name, error.inner_exception, node) from error.__cause__
        noise.tell()
        if config.trace_dir:
            from .._observe import trace as _trace

            _trace.event("backend_failed", backend=backend_name, error=str(error), suppressed=config.suppress_errors)
        if not config.suppress_errors:
            raise
        log.warning("backend %r failed; the graph runs as captured", backend_name, exc_info=True)
        # The graph is rebuilt, because the backend may have changed parts of the one that it received.
        return build_graph_module(rows, example_inputs).forward  # type: ignore[no-any-return]
    utils.record_time("backend", time.perf_counter() - built)
    compiled = _outside(compiled, backend_name, _outputs_of(rows))
    if changed and not unchanged:
        if not apart and memory.overlap(example_inputs, changed):
            return _as_captured(rows, backend_name, example_inputs, "overlapping_inputs")
        compiled = _for_separate(compiled, rows, len(example_inputs), changed, backend_name)
    if config.verify_correctness:
        return Verified(compiled, build_graph_module(rows, example_inputs), backend_name)
    return compiled


def _aside(
    rows: Sequence[Any],
    examples: Sequence[Any],
    changed: tuple[int, ...],
    backend: Backend,
    backend_name: str,
    graph: Callable[[], Any],
    here: Callable[[Sequence[Any]], Callable[..., Any]] | None,
    symbols: Sequence[Any] | None = None,
) -> Callable[..., Any] | None:
    """Have another process compile a graph (config.compile_aside); return a callable that runs it meanwhile, or None.

    graph: returns the GraphModule. here, symbols: see _aside.aside.start.
    """
    if not config.compile_aside or config.verify_correctness:
        return None
    from .._aside.aside import start

    sizes: Any = None if symbols is None else tuple(symbols)
    waiting = start(rows, examples, changed, backend, graph().forward, here, sizes)
    return _for_separate(waiting, rows, len(examples), changed, backend_name) if waiting and changed else waiting


def _for_separate(
    compiled: Callable[..., Any],
    rows: Sequence[Any],
    inputs: int,
    changed: tuple[int, ...],
    backend_name: str,
) -> Callable[..., Any]:
    """Return a callable that runs the compiled graph only if no changed input overlaps another one.

    inputs: the number of inputs. The inputs themselves are not kept, since nobody reads example values of this graph.
    """
    return memory.checked(compiled, lambda: build_graph_module(rows, [None] * inputs).forward, changed, backend_name)


def _outputs_of(rows: Sequence[Any]) -> int:
    """Return the number of a graph's outputs."""
    outputs = rows[-1][3][0]
    return _length(outputs) if isinstance(outputs, (tuple, list)) else 1


def _edited_outputs(compiled: Any) -> int | None:
    """Return the number of outputs if a backend's result is a GraphModule or a GraphModule's forward, else None."""
    gm = getattr(compiled, "__self__", compiled)
    if not isinstance(gm, torch.fx.GraphModule):
        return None
    (output,) = [n for n in gm.graph.nodes if n.op == "output"]
    return _length(output.args[0]) if isinstance(output.args[0], (tuple, list)) else None


def _depends_on_data(error: BaseException | None) -> bool:
    """Return whether a backend failed only because fake tensors have no data."""
    from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

    while error is not None:
        if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)):
            return True
        error = error.__cause__ or error.__context__
    return False


class NotForFakes(exc.BackendCompilerFailed):
    """A backend has failed on an operation that cannot run on FakeTensors; ``node`` is the name of its node.

    The graph breaks there (bytecode/translate/graph_call.go).
    """

    def __init__(self, backend_name: str, inner_exception: BaseException, node: str) -> None:
        super().__init__(backend_name, inner_exception)
        self.node = node


def _not_for_fakes(rows: Sequence[Any], example_inputs: Sequence[Any]) -> str | None:
    """Return the name of the first node that cannot run on fake tensors, or None."""
    return graph_outputs.not_for_fakes(build_graph_module(rows, example_inputs), graph_outputs.like(example_inputs))


def _no_compiler(error: BaseException | None) -> BaseException | None:
    """Return the exception below a backend's error that reports a missing C++ compiler, else None.

    The exception's context is suppressed: it would show pages of inductor frames, and the remedy is one line.
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
    """Holds back this thread's records of a logger: fake tensors log each wrong call of an operator as a failure."""

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
        """Log the records held back."""
        for record in self._records:
            self._logger.handle(record)


def _cannot_run(rows: Sequence[Any], example_inputs: Sequence[Any]) -> bool:
    """Run the graph forward and backward on copies. Return whether it raises, in which case no backend is at fault."""
    gm = build_graph_module(rows, example_inputs)
    if any(graph_outputs.of_python(node.target) for node in gm.graph.nodes):  # Python operations must run only once
        return False
    outside = torch_state.snapshot()
    try:
        with torch.random.fork_rng(), unseen():
            outputs = gm.forward(*[copied(x) for x in example_inputs])
            wanted = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
            torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])
    except Exception:
        log.debug("the graph raises by itself", exc_info=True)
        return True
    finally:
        torch_state.restore(outside)
    return False


def _outside(compiled: Callable[..., Any], name: str, outputs: int) -> Callable[..., Any]:
    """Wrap a backend's result so that the eval-frame hook is off while it runs.

    Otherwise the hook would capture the result's frames and pass them to the backend again. The hook skips the code of
    FX, torch and inductor by itself, so such callables are returned unchanged. The wrapper also checks each call: it
    raises exc.InvalidBackendResult, with the backend's name, if the number of returned values is not that of the graph.
    """
    if isinstance(compiled, torch.fx.GraphModule):
        without_report(compiled)
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
#: Saved at import, because the program may have replaced these builtins when the outputs are checked.
_length, _is_instance = len, isinstance


def _wrong_result(name: str, result: Any, outputs: int) -> str:
    if isinstance(result, _SEQUENCES):
        return f"what backend {name!r} compiled returned {len(result)} values for a graph with {outputs}"
    return f"what backend {name!r} compiled must return a tuple of {outputs} values, not a {type(result).__name__}"


def _wrong_number(name: str, given: int, outputs: int) -> Callable[..., Any]:
    def wrong(*_: Any) -> Any:
        raise exc.InvalidBackendResult(f"backend {name!r} returned a graph with {given} outputs for one with {outputs}")

    return wrong


#: Seconds for which signals wait while a backend compiles: an interrupted AOTAutograd leaves nn.Module patched and
#: dispatch modes entered. After that time Ctrl-C ends the compilation.
_PATIENCE = 0.5


@contextlib.contextmanager
def _nothing_lost() -> Iterator[None]:
    """End the translation if an exception from a signal or another thread arrives in a torch finalizer.

    CPython would only report such an exception.
    """
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
    """Return the exception in ``error``'s chain of contexts that is not the backend's own; None if there is none.

    Such an exception is a MemoryError, or comes from a signal handler or another thread. ``error`` may have replaced
    it: a ``finally`` block in torch may fail, and C code that ignores an exception makes CPython raise SystemError.
    ``before`` is the exception that was being handled when the backend was called; the search ends there.
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
    held, hidden = core.let_signals_through(_PATIENCE), not core.show_operators(True)
    try:
        if isinstance(backend, Named):
            backend.resolve()  # may import torch._dynamo; compile_lock() then returns torch.compile's lock
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
        core.show_operators(not hidden)
        core.hold_signals_again(held)
        if compiled is None:
            torch_state.restore_everything(modes)
    if arrived is not None:
        raise arrived
    if not callable(compiled):
        raise exc.InvalidBackendResult(f"backend {name!r} must return a callable, not {compiled!r}")
    return compiled  # type: ignore[no-any-return]
