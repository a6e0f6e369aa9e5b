"""Stand-ins for itertools: lazy iterators over other iterators. product and the like are in ``combinatorics``."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from typing import Any

from . import combinatorics as combinatorics
from ._base import DECLINE, END, StandIn, stands_for, type_of_stand_in

__godynamo_polyfill__ = "module"


class chain(StandIn):
    __real__ = itertools.chain

    def __init__(self, sources: Any) -> None:
        self.sources = sources
        self.active: Any = None

    def _next(self) -> Any:
        while self.sources is not None:
            if self.active is None:
                source = next(self.sources, END)
                if source is END:
                    self.sources = None
                    return END
                self.active = iter(source)
            item = next(self.active, END)
            if item is not END:
                return item
            self.active = None
        return END

    def _escape(self) -> Any:
        if self.sources is None:
            return (itertools.chain,)
        if self.active is None:
            return (itertools.chain.from_iterable, self.sources)
        return (_chained, self.active, self.sources)


def _chained(active: Any, sources: Any) -> Any:
    return itertools.chain.from_iterable(itertools.chain((active,), sources))


@stands_for(itertools.chain)
def chain_of(*iterables: Any) -> Any:
    return chain(iter(iterables))


@stands_for(itertools.chain.from_iterable)
def chain_from_iterable(iterable: Any, /) -> Any:
    return chain(iter(iterable))


class count(StandIn):
    __real__ = itertools.count

    def __init__(self, start: Any, step: Any) -> None:
        self.start = start
        self.step = step

    def _next(self) -> Any:
        value = self.start
        self.start = value + self.step
        return value

    def _escape(self) -> Any:
        return (itertools.count, self.start, self.step)


@stands_for(itertools.count)
def count_from(start: Any = 0, step: Any = 1) -> Any:
    if not isinstance(start, (int, float, complex)) or not isinstance(step, (int, float, complex)):
        return DECLINE
    return count(start, step)


class cycle(StandIn):
    __real__ = itertools.cycle

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator
        self.saved: list[Any] = []
        self.index = 0

    def _next(self) -> Any:
        if self.iterator is not None:
            item = next(self.iterator, END)
            if item is not END:
                self.saved.append(item)
                return item
            self.iterator = None
        if len(self.saved) == 0:
            return END
        item = self.saved[self.index]
        self.index = (self.index + 1) % len(self.saved)
        return item

    def _escape(self) -> Any:
        if self.iterator is not None:
            return (_cycle, tuple(self.saved), self.iterator, len(self.saved))
        return (_cycle, tuple(self.saved), (), len(self.saved) + self.index)


def _cycle(saved: Any, iterator: Any, behind: int) -> Any:
    made = itertools.cycle(itertools.chain(saved, iterator))
    for _ in range(behind):
        next(made)
    return made


@stands_for(itertools.cycle)
def cycle_of(iterable: Any, /) -> Any:
    return cycle(iter(iterable))


class repeat(StandIn):
    __real__ = itertools.repeat

    def __init__(self, value: Any, times: Any) -> None:
        self.value = value
        self.times = times

    def _next(self) -> Any:
        if self.times is not None:
            if self.times <= 0:
                return END
            self.times -= 1
        return self.value

    def _escape(self) -> Any:
        if self.times is None:
            return (itertools.repeat, self.value)
        return (itertools.repeat, self.value, self.times)


@stands_for(itertools.repeat)
def repeat_value(object: Any, times: Any = END) -> Any:
    if times is END:
        return repeat(object, None)
    if not isinstance(times, int):
        return DECLINE
    return repeat(object, times)


class accumulate(StandIn):
    __real__ = itertools.accumulate

    def __init__(self, iterator: Any, function: Any, initial: Any) -> None:
        self.iterator = iterator
        self.function = function
        self.initial = initial
        self.total: Any = END

    def _next(self) -> Any:
        if self.initial is not None:
            self.total = self.initial
            self.initial = None
            return self.total
        item = next(self.iterator, END)
        if item is END:
            return END
        if self.total is END:
            self.total = item
        elif self.function is None:
            self.total = self.total + item
        else:
            self.total = self.function(self.total, item)
        return self.total

    def _escape(self) -> Any:
        if self.initial is not None or self.total is END:
            return (_accumulate, self.iterator, self.function, self.initial)
        return (_accumulated, self.iterator, self.function, self.total)


def _accumulate(iterator: Any, function: Any, initial: Any) -> Any:
    return itertools.accumulate(iterator, function, initial=initial)


def _accumulated(iterator: Any, function: Any, total: Any) -> Any:
    made = itertools.accumulate(iterator, function, initial=total)
    if total is None:  # initial=None means no initial value, so this total is passed as the first item
        made = itertools.accumulate(itertools.chain((None,), iterator), function)
    next(made)
    return made


@stands_for(itertools.accumulate)
def accumulate_over(iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    return accumulate(iter(iterable), func, initial)


class takewhile(StandIn):
    __real__ = itertools.takewhile

    def __init__(self, predicate: Any, iterator: Any) -> None:
        self.predicate = predicate
        self.iterator = iterator
        self.stopped = False

    def _next(self) -> Any:
        if self.stopped:
            return END
        item = next(self.iterator, END)
        if item is END:
            return END
        if self.predicate(item):
            return item
        self.stopped = True
        return END

    def _escape(self) -> Any:
        return (itertools.takewhile, self.predicate, () if self.stopped else self.iterator)


@stands_for(itertools.takewhile)
def takewhile_of(predicate: Any, iterable: Any, /) -> Any:
    return takewhile(predicate, iter(iterable))


class dropwhile(StandIn):
    __real__ = itertools.dropwhile

    def __init__(self, predicate: Any, iterator: Any) -> None:
        self.predicate = predicate
        self.iterator = iterator
        self.started = False

    def _next(self) -> Any:
        while True:
            item = next(self.iterator, END)
            if item is END:
                return END
            if self.started:
                return item
            if not self.predicate(item):
                self.started = True
                return item

    def _escape(self) -> Any:
        if self.started:
            return (_dropped, self.iterator)
        return (itertools.dropwhile, self.predicate, self.iterator)


def _dropped(iterator: Any) -> Any:
    made = itertools.dropwhile(operator.not_, itertools.chain((True,), iterator))
    next(made)
    return made


@stands_for(itertools.dropwhile)
def dropwhile_of(predicate: Any, iterable: Any, /) -> Any:
    return dropwhile(predicate, iter(iterable))


class filterfalse(StandIn):
    __real__ = itertools.filterfalse

    def __init__(self, predicate: Any, iterator: Any) -> None:
        self.predicate = predicate
        self.iterator = iterator

    def _next(self) -> Any:
        while True:
            item = next(self.iterator, END)
            if item is END:
                return END
            if self.predicate is None or self.predicate is bool:
                if not item:
                    return item
            elif not self.predicate(item):
                return item

    def _escape(self) -> Any:
        return (itertools.filterfalse, self.predicate, self.iterator)


@stands_for(itertools.filterfalse)
def filterfalse_of(function: Any, iterable: Any, /) -> Any:
    return filterfalse(function, iter(iterable))


class starmap(StandIn):
    __real__ = itertools.starmap

    def __init__(self, function: Any, iterator: Any) -> None:
        self.function = function
        self.iterator = iterator

    def _next(self) -> Any:
        item = next(self.iterator, END)
        if item is END:
            return END
        return self.function(*item)

    def _escape(self) -> Any:
        return (itertools.starmap, self.function, self.iterator)


@stands_for(itertools.starmap)
def starmap_of(function: Any, iterable: Any, /) -> Any:
    return starmap(function, iter(iterable))


class compress(StandIn):
    __real__ = itertools.compress

    def __init__(self, data: Any, selectors: Any) -> None:
        self.data = data
        self.selectors = selectors

    def _next(self) -> Any:
        while True:
            item = next(self.data, END)
            if item is END:
                return END
            selector = next(self.selectors, END)
            if selector is END:
                return END
            if selector:
                return item

    def _escape(self) -> Any:
        return (itertools.compress, self.data, self.selectors)


@stands_for(itertools.compress)
def compress_of(data: Any, selectors: Any) -> Any:
    return compress(iter(data), iter(selectors))


class islice(StandIn):
    __real__ = itertools.islice

    def __init__(self, iterator: Any, start: int, stop: Any, step: int) -> None:
        self.iterator = iterator
        self.at = 0  # number of items taken
        self.goal = start  # index of the next item
        self.stop = stop
        self.step = step

    def _next(self) -> Any:
        if self.iterator is None:
            return END
        while self.at < self.goal:
            if next(self.iterator, END) is END:
                self.iterator = None
                return END
            self.at += 1
        if self.stop is not None and self.at >= self.stop:
            self.iterator = None
            return END
        item = next(self.iterator, END)
        if item is END:
            self.iterator = None
            return END
        self.at += 1
        self.goal += self.step
        if self.stop is not None and self.goal > self.stop:
            self.goal = self.stop
        return item

    def _escape(self) -> Any:
        if self.iterator is None:
            return (itertools.islice, (), 0)
        stop = None if self.stop is None else self.stop - self.at
        return (itertools.islice, self.iterator, self.goal - self.at, stop, self.step)


def _bound(value: Any) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value < 1 << 62)


@stands_for(itertools.islice)
def islice_of(iterable: Any, first: Any, stop: Any = END, step: Any = None, /) -> Any:
    if stop is END:
        first, stop = None, first
    if not (_bound(first) and _bound(stop) and _bound(step)) or step == 0:
        return DECLINE
    return islice(iter(iterable), 0 if first is None else first, stop, 1 if step is None else step)


class pairwise(StandIn):
    __real__ = itertools.pairwise

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator
        self.old: Any = END

    def _next(self) -> Any:
        if self.iterator is None:
            return END
        if self.old is END:
            self.old = next(self.iterator, END)
            if self.old is END:
                self.iterator = None
                return END
        new = next(self.iterator, END)
        if new is END:
            self.iterator = None
            return END
        old, self.old = self.old, new
        return (old, new)

    def _escape(self) -> Any:
        if self.iterator is None:
            return (itertools.pairwise, ())
        if self.old is END:
            return (itertools.pairwise, self.iterator)
        return (_paired, self.old, self.iterator)


def _paired(old: Any, iterator: Any) -> Any:
    return itertools.pairwise(itertools.chain((old,), iterator))


@stands_for(itertools.pairwise)
def pairwise_of(iterable: Any, /) -> Any:
    return pairwise(iter(iterable))


if hasattr(itertools, "batched"):  # since Python 3.12
    _batched: Any = itertools.batched

    class batched(StandIn):
        __real__ = _batched

        def __init__(self, iterator: Any, size: int, strict: bool) -> None:
            self.iterator = iterator
            self.size = size
            self.strict = strict

        def _next(self) -> Any:
            if self.iterator is None:
                return END
            row: list[Any] = []
            while len(row) < self.size:
                try:
                    item = next(self.iterator, END)
                except BaseException:  # the real one also ends for good
                    self.iterator = None
                    raise
                if item is END:
                    break
                row.append(item)
            if not row:
                self.iterator = None
                return END
            if self.strict and len(row) < self.size:
                self.iterator = None
                raise ValueError("batched(): incomplete batch")
            return tuple(row)

        def _escape(self) -> Any:
            return (_strictly if self.strict else _batched, () if self.iterator is None else self.iterator, self.size)

    _strictly = functools.partial(_batched, strict=True)
    _takes_strict = sys.version_info >= (3, 13)

    @stands_for(_batched)
    def batched_of(iterable: Any, n: Any, **options: Any) -> Any:
        if not isinstance(n, int) or not 0 < n < 1 << 62 or (options and not _takes_strict):
            return DECLINE
        strict = options.pop("strict", False)
        if options:
            return DECLINE
        return batched(iter(iterable), n, bool(strict))


class zip_longest(StandIn):
    __real__ = itertools.zip_longest

    def __init__(self, iterators: list[Any], fillvalue: Any) -> None:
        self.iterators = iterators
        self.active = len(iterators)
        self.fillvalue = fillvalue

    def _next(self) -> Any:
        if self.active == 0:
            return END
        row = []
        for i in range(len(self.iterators)):
            item = END
            if self.iterators[i] is not None:
                item = next(self.iterators[i], END)
                if item is END:
                    self.iterators[i] = None
                    self.active -= 1
                    if self.active == 0:
                        return END
            row.append(self.fillvalue if item is END else item)
        return tuple(row)

    def _escape(self) -> Any:
        return (_zip_longest, tuple(self.iterators), self.fillvalue)


def _zip_longest(iterators: Any, fillvalue: Any) -> Any:
    return itertools.zip_longest(*[() if i is None else i for i in iterators], fillvalue=fillvalue)


@stands_for(itertools.zip_longest)
def zip_longest_of(*iterables: Any, fillvalue: Any = None) -> Any:
    iterators = []
    for iterable in iterables:
        iterators.append(iter(iterable))
    return zip_longest(iterators, fillvalue)


class groupby(StandIn):
    __real__ = itertools.groupby

    def __init__(self, iterator: Any, key: Any) -> None:
        self.iterator = iterator
        self.key = key
        self.target: Any = END  # key of the group returned last
        self.current: Any = END  # key of the item read last
        self.item: Any = END
        self.turn = 0  # the group that may continue reading

    def read(self) -> bool:
        item = next(self.iterator, END)
        if item is END:
            return False
        self.current = item if self.key is None else self.key(item)
        self.item = item
        return True

    def _next(self) -> Any:
        self.turn += 1
        while self.current is END or (self.target is not END and self.current in (self.target,)):
            if not self.read():
                return END
        self.target = self.current
        return (self.current, grouper(self, self.target, self.turn))

    def _escape(self) -> Any:
        if self.turn > 0:
            return DECLINE
        return (itertools.groupby, self.iterator, self.key)


class grouper(StandIn):
    __real__ = type(next(itertools.groupby("a"))[1])

    def __init__(self, parent: Any, key: Any, turn: int) -> None:
        self._group = parent
        self.key = key
        self.turn = turn

    def _next(self) -> Any:
        parent = self._group
        if parent.turn != self.turn:
            return END
        if parent.item is END and not parent.read():
            return END
        if parent.current not in (self.key,):
            return END
        item, parent.item = parent.item, END
        return item


@stands_for(itertools.groupby)
def groupby_of(iterable: Any, key: Any = None) -> Any:
    return groupby(iter(iterable), key)


class tees(StandIn):
    """The state that the iterators of one tee() share. Its real object is the tuple of these iterators."""

    __real__ = tuple
    __public__ = ("pull",)

    def __init__(self, iterator: Any, n: int) -> None:
        self.iterator = iterator
        self.queues: list[list[Any]] = []
        for _ in range(n):
            self.queues.append([])

    def pull(self, index: int) -> Any:
        if len(self.queues[index]) > 0:
            return self.queues[index].pop(0)
        item = next(self.iterator, END)
        if item is not END:
            for i in range(len(self.queues)):
                if i != index:
                    self.queues[i].append(item)
        return item

    def _escape(self) -> Any:
        return (_tees, self.iterator, self.queues)


def _tees(iterator: Any, queues: Any) -> Any:
    longest = max(queues, key=len)
    made = itertools.tee(itertools.chain(longest, iterator), len(queues))
    for t, queue in zip(made, queues, strict=True):
        for _ in range(len(longest) - len(queue)):
            next(t)
    return made


class tee(StandIn):
    __real__: type = type(itertools.tee(())[0])

    def __init__(self, group: Any, index: int) -> None:
        self._group = group
        self.index = index

    def _next(self) -> Any:
        return self._group.pull(self.index)

    def _escape(self) -> Any:
        return (operator.getitem, self._group, self.index)


@stands_for(itertools.tee)
def tee_of(iterable: Any, n: Any = 2, /) -> Any:
    iterator = iter(iterable)
    if not isinstance(n, int) or n < 0 or type_of_stand_in(iterator) is tee.__real__:
        return DECLINE
    group = tees(iterator, n)
    made = []
    for i in range(n):
        made.append(tee(group, i))
    return tuple(made)
