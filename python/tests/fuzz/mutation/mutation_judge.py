"""Runs a program of changing classes under CPython and under godynamo, and returns their first difference.

The function is called twice before the first change and twice after each one: a change that an entry's guards do not
detect shows as a difference in the next call.
"""

from __future__ import annotations

import abc
import builtins
import collections.abc
import contextlib
import io
import numbers
import signal
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.fuzz_compare import FILENAME, Mismatch, Observed, codes_of, compare, text_of

#: flags that a program changes, restored after a run
FLAGS = (
    (torch.backends.cudnn, "benchmark"),
    (torch.backends.cudnn, "deterministic"),
    (torch.backends.cudnn, "enabled"),
    (torch.backends.cudnn, "allow_tf32"),
    (torch.backends.cuda.matmul, "allow_tf32"),
    (torch.backends.mkldnn, "enabled"),
    (torch.backends.opt_einsum, "enabled"),
    (torch.backends.opt_einsum, "strategy"),
)
#: abstract classes that all programs share: the contents of their caches decide how often they hash a class
ABSTRACT: list[Any] = [c for c in [*vars(collections.abc).values(), numbers.Number] if isinstance(c, abc.ABCMeta)]
#: range of addresses: ints of this size are ids, such as deepcopy's memo keys. An executable that is not
#: position-independent has its heap within the first 2 GiB. A sixteenth of an address, as in hashes, is below that.
ADDRESSES = range(1 << 44 if id(type) >= 1 << 44 else 1 << 26, 1 << 47)
PLAIN = (int, float, bool, type(None), complex, bytes, range)
MOST = 400  #: maximum number of objects in one result
AGAIN = 60  #: how often CPython reruns a program with a difference: some orders occur in one of eight runs
ITERATORS = tuple(
    type(i)
    for i in (
        iter([]),
        iter(()),
        iter(""),
        iter({}),
        iter(set()),
        iter({}.items()),
        (i for i in ()),
        zip(),
        map(abs, ()),
    )
)


class MutationPlain:
    """Converts values to plain data without running their classes' code, which may return anything."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []

    def __call__(self, value: Any) -> Any:
        kind = type(value)
        if kind is int and value in ADDRESSES:
            return ("int", "address")
        if any(kind is k for k in PLAIN):
            return (kind.__name__, repr(value))
        if kind is str:
            return ("str", text_of(value))
        if issubclass(kind, type):
            return ("class", type.__dict__["__name__"].__get__(value))
        if id(value) in self._seen:
            return ("again", self._seen[id(value)])
        if len(self._seen) > MOST:
            return "more"
        if kind is not tuple:
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        return (type.__dict__["__name__"].__get__(kind), self._content(value, kind))

    def _content(self, value: Any, kind: type) -> Any:
        if issubclass(kind, torch.Tensor):
            return (str(value.dtype), value.requires_grad, repr(value.tolist()))
        if issubclass(kind, BaseException):
            return [self(BaseException.__dict__["args"].__get__(value)), self.attributes(value)]
        if any(kind is k for k in ITERATORS):
            return "iterator"
        for base, show in (
            (list, lambda v: [self(i) for i in list.__iter__(v)]),
            (tuple, lambda v: [self(i) for i in tuple.__iter__(v)]),
            (dict, lambda v: [(self(i), self(dict.__getitem__(v, i))) for i in list(dict.__iter__(v))]),
            (set, lambda v: sorted(repr(self(i)) for i in set.__iter__(v))),
            (frozenset, lambda v: sorted(repr(self(i)) for i in frozenset.__iter__(v))),
            (int, int.__repr__),
            (float, float.__repr__),
            (complex, complex.__repr__),
            (str, text_of),
        ):
            if issubclass(kind, base):
                try:
                    return [show(value), self.attributes(value)]
                except KeyError:  # keys that are not equal to themselves
                    return "not to be looked up"
        return self.attributes(value)

    def attributes(self, value: Any) -> Any:
        """Return the contents of the instance's __dict__ and slots."""
        own, slots = None, []
        with contextlib.suppress(AttributeError, TypeError):
            own = object.__getattribute__(value, "__dict__")
        for base in type.__dict__["__mro__"].__get__(type(value)):
            for name, member in list(type.__dict__["__dict__"].__get__(base).items()):
                if (
                    type(member).__name__ == "member_descriptor"
                    and type.__getattribute__(base, "__module__") == "program"
                ):
                    with contextlib.suppress(AttributeError, TypeError):  # the slot is empty or of another class
                        slots.append((name, self(member.__get__(value))))
        if type(own) is dict:
            own = [(text_of(k), self(v)) for k, v in own.items() if type(k) is str]
        return (own, slots)


def ended(error: BaseException) -> Any:
    """Return an exception as data: its type, its text, and its context's type."""
    try:
        said = text_of(str(error))
    except Exception as another:
        said = f"no text: {type(another).__name__}"
    return (type(error).__name__, said, error.__context__ is not None and type(error.__context__).__name__)


def observe(call: Callable[..., Any], args: tuple[Any, ...], log: list[Any], objects: Any) -> dict[str, Any]:
    """Describe one call: value, exception, output, and its effects on the log and the objects."""
    out, plain = io.StringIO(), MutationPlain()
    result: dict[str, Any] = {"exception": None, "value": None}
    with contextlib.redirect_stdout(out):
        try:
            result["value"] = plain(call(*args))
        except RecursionError:  # its text and depth depend on the interpreter
            result["exception"] = "RecursionError"
        except Exception as error:
            result["exception"] = ended(error)
    result["output"] = text_of(out.getvalue())
    result["effects"] = [plain(log), plain(objects)]
    del log[:]
    return result


@contextlib.contextmanager
def usual_process() -> Iterator[None]:
    """Restore builtins and torch's flags after a run; before it, clear the caches of abstract classes."""
    for cls in ABSTRACT:
        cls._abc_caches_clear()
    names = dict(vars(builtins))
    flags = [(module, name, getattr(module, name)) for module, name in FLAGS]
    try:
        yield
    finally:
        for name in set(vars(builtins)) - set(names):
            delattr(builtins, name)
        vars(builtins).update(names)
        for module, name, value in flags:
            if getattr(module, name) != value:
                setattr(module, name, value)


def run(codes: list[Any], wrap: Callable[[Any], Any]) -> Observed:
    """Make all calls and changes of a program."""
    ns: dict[str, Any] = {"__name__": "program"}
    calls: Observed = []
    with usual_process():
        try:
            for code in codes:
                exec(code, ns)
            objects = tuple(ns["make"]())
        except Exception as error:  # classes that cannot be combined
            return [{"made": ended(error)}]
        fn = wrap(ns["fn"])
        changes = [None, *(ns[name] for name in sorted(ns) if name.startswith("change_"))]
        for change in changes:
            if change is not None:
                with contextlib.redirect_stdout(io.StringIO()):
                    try:
                        change(*objects)
                        ends = None
                    except Exception as error:
                        ends = ended(error)
                calls.append({"change": ends})
            for _ in range(2):
                args = (torch.tensor([1.0, -2.0]), *objects)
                calls.append(observe(fn, args, ns["LOG"], objects))
    return calls


def settled(text: str, found: Mismatch) -> bool:
    """Whether CPython's runs agree on the differing part; the order of a set of classes depends on their addresses."""
    codes, kept, seen = codes_of(text), [], set()
    for _ in range(AGAIN):
        calls = run(codes, lambda fn: kept.append(fn) or fn)  # kept alive, so that the next run has other addresses
        if found.call < len(calls):
            seen.add(repr(calls[found.call].get(found.kind)))
    return len(seen) < 2


def judge(text: str, whole: bool = False) -> Mismatch | None:
    """Return the first difference between a program's two runs; None if CPython's own runs differ there."""
    if "\ndef fn(" not in text:
        return None
    before = signal.getsignal(signal.SIGALRM)
    try:
        found = compare(text, run, whole)
        if found is not None:  # the first run fills the caches of abstract classes, which all programs share
            found = compare(text, run, whole)
        return found if found is not None and settled(text, found) else None
    finally:
        signal.signal(signal.SIGALRM, before)


__all__ = ["FILENAME", "judge"]
