"""Decides whether a call that received a signal or another thread's exception had an outcome possible in CPython.

The model is CPython itself. The program is called under CPython once for each point at which CPython may handle a
signal. The outcomes (value or exception, order of effects, locks, torch's modes, random state) are the permitted ones.
A call under godynamo must have a permitted outcome. The exception may also reach the caller after the end of the call:
then the outcome may be that of a call in which nothing arrives. Later calls must have this outcome as well.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import io
import os
import signal
import stat
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from traceback import walk_tb
from types import TracebackType
from typing import Any

import torch

import godynamo
from godynamo import _C
from godynamo._backends import compiling
from harness.fuzz_children import SAID
from harness.fuzz_compare import FILENAME, PLAIN_LIMIT, Mismatch, TooLongError, _compiled, limited
from signals_support import arrivals

# torch imports many modules at the first use of these; an arrival during an import would be outside the program.
torch.use_deterministic_algorithms(False)

MOST_POINTS = 4000  #: programs with more points of arrival are not judged
SIGNALS = {
    "interrupt": signal.SIGINT,
    "timeout": signal.SIGUSR1,
    "exit": signal.SIGTERM,
    "returns": signal.SIGUSR2,
    "sent": 0,
}
HOW = {"alloc": arrivals.ALLOC, "tick": arrivals.TICK, "thread": arrivals.THREAD, "point": arrivals.POINT}
Outcome = dict[str, Any]


@dataclass
class Call:
    """One call of the program's function."""

    outcome: Outcome
    late: str | None  #: the exception that reached the caller after the function had returned
    fired: bool
    points: int
    ticks: int
    blocks: int
    nanoseconds: int
    swallowed: bool  #: an exception arrived in a torch finalizer, where CPython drops it

    def size(self, how: str) -> int:
        """Return the number of places of sort ``how`` where something may arrive."""
        return {"alloc": self.blocks, "tick": self.ticks, "thread": self.nanoseconds, "point": self.points}[how]


class Arguments:
    """The arguments of one call, and their state after it."""

    def __init__(self, ns: dict[str, Any]) -> None:
        x, y = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([2.0, 1.0, -1.0])
        self.values = (x, y, ns["Box"](), [0], {"k": 0})

    def left(self) -> Any:
        x, y, o, l, d = self.values
        box = {k: plain(v) for k, v in vars(o).items() if k != "counted"}
        return plain(x), plain(y), box, plain(l), plain(d), o.counted.entered - o.counted.left


def plain(value: Any) -> Any:
    """Return a value as data that == compares."""
    if isinstance(value, torch.Tensor):
        dtype = "" if value.dtype is torch.float32 else f" {value.dtype}"
        return f"{value.detach().tolist()}{dtype}{' requires grad' if value.requires_grad else ''}"
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(v) for v in value])
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return repr(value)


def chain(error: BaseException | None) -> list[str]:
    """Return types and texts of an exception and its contexts, without those that torch was already handling."""
    out: list[str] = []
    while error is not None and len(out) < 9:
        text = str(error).split("While executing")[0].rstrip()  # torch's interpreter appends this
        if not out or met_program(error.__traceback__):
            out.append(f"{type(error).__name__}({text})")
        error = error.__context__
    return out


def met_program(traceback: TracebackType | None) -> bool:
    """Whether a traceback has a frame of the program."""
    return any(frame.f_code.co_filename == FILENAME for frame, _ in walk_tb(traceback))


@dataclass
class Program:
    """A program's namespace, its entry function and CPython's outcomes."""

    text: str
    ns: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ns["__name__"] = "program"
        at = self.text.index("\ndef fn(") + 1
        for code in (_compiled(self.text[:at], 1), _compiled(self.text[at:], 1 + self.text.count("\n", 0, at))):
            exec(code, self.ns)
        self.case: dict[str, Any] = self.ns["CASE"]
        self.kind: str = self.case["kind"]
        self.entry: Callable[..., Any] = self.ns[self.case["through"]]
        self.known: dict[str, Outcome] = {}
        self.rest: Iterator[Outcome] | None = None
        self.failed: list[Outcome] = []
        self.swallowed = False
        self.install()

    def install(self) -> None:
        """Install handlers of the four signals, independent of the parent process's settings."""
        log, timeout = self.ns["LOG"], self.ns["Timeout"]

        def alarmed(_signal: int, _frame: Any) -> None:
            log.append("HANDLER")
            raise timeout("late")

        def ended(_signal: int, _frame: Any) -> None:
            log.append("HANDLER")
            sys.exit(3)

        def told(_signal: int, _frame: Any) -> None:
            log.append("HANDLER")

        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGUSR1, alarmed)
        signal.signal(signal.SIGTERM, ended)
        signal.signal(signal.SIGUSR2, told)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [s for s in SIGNALS.values() if s])
        sys.unraisablehook = self.unraisable

    def unraisable(self, found: Any) -> None:
        """Record a finalizer's exception. Torch's weak dictionaries run Python code when a tensor is freed."""
        self.swallowed = self.swallowed or str(getattr(found.object, "__module__", "")).startswith("torch.")
        self.ns["LOG"].append(("unraisable", type(found.exc_value).__name__))

    def reset(self) -> None:
        """Restore the state in which every call starts."""
        ns, self.swallowed = self.ns, False
        if ns["LOCK"].locked():
            ns["LOCK"].release()
        for lock in (ns["RLOCK"],):
            while lock._is_owned():
                lock.release()
        ns["COUNT"] = 0
        ns["G"].clear()
        ns["G"]["n"] = 0
        ns["OUT"].seek(0)
        ns["OUT"].truncate()
        del ns["LOG"][:]
        torch.manual_seed(0)

    def call(self, fn: Callable[..., Any], how: int = arrivals.NEVER, at: int = -1) -> Call:
        """Make one call with an arrival."""
        self.reset()
        ns, args, cell, out = self.ns, Arguments(self.ns), [], io.StringIO()
        exc = ns["Sent"] if self.kind == "sent" else None
        number = int(SIGNALS[self.kind])
        raised = late = None
        stdout, sys.stdout = sys.stdout, out
        try:
            try:
                arrivals.call(cell, fn, args.values, how, at, number, exc)
            except BaseException as error:
                raised = error
            for _ in range(2):  # CPython handles pending signals and exceptions here
                ns["G"].get("n")
        except BaseException as error:
            late = error
        sys.stdout = stdout
        fired, points, ticks, blocks, nanoseconds = arrivals.info()
        if cell and raised is not None:
            raised, late = None, raised
        end, late_type = plain(cell[0]) if cell else chain(raised), late and type(late).__name__
        if raised is not None or late is not None:
            raised = late = None
        gc.collect(0)  # objects held by the traceback's frames or by cycles are freed and logged here
        modes = self.modes()
        outcome = {
            "end": end,
            "effects": repr(ns["LOG"]),
            "output": (out.getvalue(), ns["OUT"].getvalue()),
            "state": (args.left(), ns["COUNT"], plain(ns["G"])),
            "locks": (ns["LOCK"].locked(), ns["RLOCK"]._is_owned()),
            "modes": modes,
            "random state": hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()[:8],
        }
        return Call(outcome, late_type, bool(fired), points, ticks, blocks, nanoseconds, self.swallowed)

    def modes(self) -> tuple[Any, ...]:
        """Return torch's modes, and restore them."""
        modes = (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch._C._len_torch_dispatch_stack(),
            torch._C._len_torch_function_stack(),
        )
        torch.set_grad_enabled(True)
        torch.set_autocast_enabled("cpu", False)
        return modes

    # ---- CPython ----

    def without(self) -> Outcome:
        """Return the outcome of a call during which no signal arrives."""
        return self.call(self.entry).outcome

    def outcomes(self) -> Iterator[Outcome]:
        """Yield CPython's outcomes of an arrival at each point; yield equal outcomes only once."""
        for how in (arrivals.POINT, arrivals.RAISED, arrivals.ALLOC, arrivals.HOOKED, arrivals.HOOKED_ALLOC):
            yield from self.outcomes_at(how)

    def outcomes_at(self, how: int) -> Iterator[Outcome]:
        """Yield CPython's outcome for each place of one sort where the signal can arrive.

        Allocations stand for the places inside C code that checks for signals.
        """
        at, fired = -1, True
        while fired:
            at += 1
            found = self.call(self.entry, how, at)
            fired = found.fired
            if found.late is None and (key := repr(found.outcome)) not in self.known:
                self.known[key] = found.outcome
                yield found.outcome

    def fails_like(self, outcome: Outcome) -> bool:
        """Whether this outcome is possible in CPython if allocations fail.

        A program may catch the MemoryError, and a finalizer loses it.
        """
        if not self.failed:
            for how in (arrivals.FAIL, arrivals.FAIL_ON):
                for at in range(1, self.call(self.entry, how).blocks + 1):
                    self.failed.append(ended(self.call(self.entry, how, at).outcome))
        return ended(outcome) in self.failed

    def can(self, outcome: Outcome) -> bool:
        """Whether CPython can have this outcome. CPython's outcomes are computed until one matches."""
        key = repr(outcome)
        if key in self.known:
            return True
        if self.rest is None:
            self.rest = self.outcomes()
        return any(repr(one) == key for one in self.rest)

    def nearest(self, outcome: Outcome) -> Outcome:
        """Return CPython's outcome that has most in common with this one."""

        def common(one: Outcome) -> tuple[bool, int]:
            return one["effects"] == outcome["effects"], sum(one[k] == outcome[k] for k in one)

        return max(self.known.values(), key=common, default={})


def wrapped(program: Program) -> Callable[..., Any]:
    """Return the function as godynamo serves it, not yet translated."""
    backend: Any = program.case["backend"]
    if backend == "forward":
        backend = forward
    elif backend == "wrapper":
        backend = wrapper
    return godynamo.optimize(backend=backend)(program.entry)


def forward(gm: torch.fx.GraphModule, _example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend that returns the graph's own function."""
    return gm.forward


COMPILED: list[int] = []


def wrapper(gm: torch.fx.GraphModule, _example_inputs: list[torch.Tensor]) -> Callable[..., Any]:
    """A backend that returns a Python function with an effect."""

    def call(*args: Any) -> Any:
        COMPILED.append(1)
        return gm(*args)

    return call


HANDLED = "'HANDLER'"
NAMES = {
    "interrupt": "KeyboardInterrupt",
    "timeout": "Timeout",
    "exit": "SystemExit",
    "sent": "Sent",
    "returns": HANDLED,
}


def unhandled(outcome: Outcome) -> Outcome:
    """Return an outcome without the handler's effects."""
    effects = outcome["effects"].replace(f", {HANDLED}", "").replace(f"{HANDLED}, ", "").replace(HANDLED, "")
    return {**outcome, "effects": effects}


def is_end(effect: Any) -> bool:
    """Whether an effect is the end of an object."""
    return isinstance(effect, tuple) and effect[0] in ("dead", "unraisable")


def apart(outcome: Outcome) -> Outcome:
    """Move finalizer effects to the end: their order depends on which frames the exception keeps alive."""
    effects = literal_eval(outcome["effects"])
    ends = [e for e in effects if is_end(e) or e == "closed" or (isinstance(e, tuple) and e[0] == "teardown")]
    return {**outcome, "effects": [e for e in effects if e not in ends] + sorted(ends, key=repr)}


def ends_early(outcome: Outcome, expected: Outcome) -> bool:
    """Whether two outcomes differ only in the order in which objects die.

    CPython's exception keeps objects alive for longer (known limits in docs/plan.md).
    """
    return isinstance(outcome["end"], list) and outcome != expected and apart(outcome) == apart(expected)


def ended(outcome: Outcome) -> Outcome:
    """Return an outcome without the records of finalized objects, and without the handler's effects."""
    effects = [e for e in literal_eval(outcome["effects"]) if not is_end(e)]
    return unhandled({**outcome, "effects": repr(effects)})


def lost_at_an_end(outcome: Outcome) -> Outcome | None:
    """Return the ``ended`` outcome if a finalizer lost the exception that arrived, as in CPython; else None."""
    effects = literal_eval(outcome["effects"])
    if not any(is_end(e) and e[0] == "unraisable" and e[1] in NAMES.values() for e in effects):
        return None
    return ended(outcome)


def verdict(program: Program, expected: Outcome, found: Call, index: int) -> Mismatch | None:
    """Return the fault of a call in which something may have arrived."""
    where = f"{program.kind}, {program.case['arrivals'][index]}" if index >= 0 else "nothing arrives"
    outcome, kind = found.outcome, program.kind
    if not found.fired:
        return wrong("without an arrival: ", expected, outcome, index, where)
    if found.swallowed:
        return None
    handled = outcome["effects"].count(HANDLED)
    if found.late is None and program.can(outcome):
        return None
    if found.late is not None and unhandled(outcome) == expected and handled == (kind in ("timeout", "exit")):
        return None
    if handled > 1:
        return Mismatch("handled twice", index, kind, (outcome, where))
    if kind in ("timeout", "exit", "returns") and not handled:
        return Mismatch("never handled", index, kind, (outcome, where))
    early = unhandled(outcome)
    if any(HANDLED in one["effects"] and unhandled(one) == early for one in program.known.values()):
        return None  # the handler ran before effects that wait for operations, and its exception was raised after them
    seen = f"{outcome['end']}{outcome['effects']}{found.late}"
    if NAMES[kind] not in seen or (unhandled(outcome) == expected and found.late is None and kind != "returns"):
        return Mismatch("lost", index, NAMES[kind], (outcome["end"], outcome["effects"], found.late, where))
    if "BackendCompilerFailed" in seen or "InternalTorchDynamoError" in seen:
        return Mismatch("wrapped", index, NAMES[kind], (outcome["end"], where))
    if any(unhandled(one) == early or apart(one) == apart(outcome) for one in program.known.values()):
        return None
    lost = lost_at_an_end(outcome)
    if lost is not None and any(lost == ended(one) for one in (expected, *program.known.values())):
        return None
    if {**unhandled(outcome), "end": None} == {**expected, "end": None}:
        return None  # the function is a C callable: CPython checks for signals after its return, in its caller
    return wrong("not CPython's: ", program.nearest(outcome), outcome, index, f"{where} late {found.late}")


def wrong(what: str, expected: Outcome, got: Outcome, index: int, where: str) -> Mismatch | None:
    """Return the parts in which two outcomes differ; None if there are none."""
    parts = [k for k in got if expected.get(k) != got[k]]
    if not parts:
        return None
    shown = dict.fromkeys([*parts, "end", "effects"])
    return Mismatch(
        what + ", ".join(parts), index, {k: expected.get(k) for k in shown}, ({k: got[k] for k in shown}, where)
    )


class Watch:
    """Collects internal errors while a program is judged."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def reset(self) -> None:
        """Drop the translations and keep watching."""
        godynamo.reset()
        _C.set_callback("internal_error", lambda info: self.errors.append(f"{info['where']}: {info['error']}"))

    def found(self) -> Mismatch | None:
        """Return the first internal error; calls may succeed in spite of one."""
        if not self.errors and not _C.counters()["internal_errors"]:
            return None
        return Mismatch("internal error", 0, None, [*self.errors, _C.counters()["internal_errors"]])


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first fault of a program's calls. Raises SyntaxError if the text is no program."""
    return _judged(text, _arrivals)


def judge_memory(text: str, whole: bool = False) -> Mismatch | None:
    """Judge a program whose allocations fail.

    A call must raise MemoryError, or end as a call in CPython does, with or without the failure. Allocations of torch's
    compilers and fake tensors do not fail: without godynamo, AOTAutograd crashed at one of 60 randomly chosen
    allocations (a graph of five operations makes 37,884), and lost the exception at four (``SystemError``, ``INTERNAL
    ASSERT``).

    From CPython 3.13 on, programs with a compiler are not judged: for lack of memory, CPython may lose a pending
    exception (docs/porting.md). Within torch's long stacks of calls it then crashes, or a mode stays entered.
    """
    with spared_compilers():
        return _judged(text, _failures)


@contextlib.contextmanager
def spared_compilers() -> Iterator[None]:
    """Exempt allocations while a graph's module is built, a backend compiles it or a fake tensor runs an operator."""

    def spared(fn: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            arrivals.spare(1)
            try:
                return fn(*args, **kwargs)
            finally:
                arrivals.spare(-1)

        return call

    fake = torch._subclasses.FakeTensorMode
    before = [
        (o, name, getattr(o, name))
        for o, name in (
            (compiling, "build_graph_module"),
            (compiling, "with_nodes"),
            (compiling, "_call"),
            (fake, "dispatch"),
        )
    ]
    for o, name, fn in before:
        setattr(o, name, spared(fn))
    try:
        yield
    finally:
        for o, name, fn in before:
            setattr(o, name, fn)


def _judged(text: str, calls: Callable[[Program, Outcome, Watch], Mismatch | None]) -> Mismatch | None:
    gc.disable()  # the time at which a cycle is freed would depend on earlier code
    gc.freeze()
    program, watch = Program(text), Watch()
    try:
        with limited(PLAIN_LIMIT):
            expected = program.without()
            if program.without() != expected:
                return None
    except TooLongError:
        return None
    if program.call(program.entry, arrivals.POINT).points > MOST_POINTS:
        return None
    before = _C.set_callback("internal_error", None)
    try:
        found = calls(program, expected, watch)
    finally:
        _C.set_callback("internal_error", before)
    if found is None and (said := written()):
        found = Mismatch("standard error", 0, "", said)
    return found


def written() -> str:
    """Return standard error's text if it is a file, as in a child. A warning of torch's event log is left out."""
    if not stat.S_ISREG(os.fstat(2).st_mode):
        return ""
    lines = os.pread(2, SAID, 0).decode(errors="replace").splitlines(keepends=True)
    return "".join(text for text in lines if "ChromiumEventLogger: Detected overlapping events" not in text)


def _arrivals(program: Program, expected: Outcome, watch: Watch) -> Mismatch | None:
    watch.reset()
    fn = wrapped(program)
    first = program.call(fn, arrivals.ALLOC)
    program.call(fn)
    hit = program.call(fn, arrivals.ALLOC)
    for found in (first, hit):
        if ends_early(found.outcome, expected):
            return None
        if (bad := verdict(program, expected, found, -1)) is not None:
            return bad
    translated = _C.counters()["translated"]
    for index, (which, how, part) in enumerate(program.case["arrivals"]):
        size = (first if which == "first" else hit).size(how)
        if how == "tick" and size == 0:
            continue
        if which == "first":
            watch.reset()
            fn = wrapped(program)
        found = program.call(fn, HOW[how], 1 + int(part * size))
        after = program.call(fn)
        where = f"{program.kind}, {program.case['arrivals'][index]}"
        bad = verdict(program, expected, found, index) or wrong("afterwards: ", expected, after.outcome, index, where)
        if (bad := bad or watch.found()) is not None:
            return bad
        if which == "first" and translated and not _C.counters()["translated"]:
            return Mismatch("not translated afterwards", index, translated, where)
    return None


def _failures(program: Program, expected: Outcome, watch: Watch) -> Mismatch | None:
    sizes = {}
    if sys.version_info >= (3, 13) and program.case["backend"] == "aot_eager":
        return None
    for index, (which, _, part) in enumerate(program.case["arrivals"]):
        for how in (arrivals.FAIL, arrivals.FAIL_ON):
            if which == "first" or how == arrivals.FAIL:
                watch.reset()
                fn = wrapped(program)
                if which == "hit":
                    program.call(fn)
                    program.call(fn)
            if which not in sizes:
                sizes[which] = program.call(fn, how).blocks
                continue
            found = program.call(fn, how, 1 + int(part * sizes[which]))
            after = program.call(fn)
            where = f"allocation {1 + int(part * sizes[which])} of {sizes[which]}, {which} call, {how}"
            good = "MemoryError" in repr(found.outcome) or ended(found.outcome) == ended(expected)
            if found.fired and not good and not program.fails_like(found.outcome):
                return wrong("no memory: ", expected, found.outcome, index, where)
            if after.outcome != expected:
                return wrong("after no memory: ", expected, after.outcome, index, where)
    return None
