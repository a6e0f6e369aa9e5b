"""What Python 3.13 added to the language: snapshots of variables, defaults of type parameters, new functions."""

import copy
import dataclasses
import inspect
import itertools
import math
import sys
import warnings

from harness.cases import Cases

cases = Cases()


def defaulted[T = int, *Ts = *tuple[int, str]](value: T) -> T:
    return value


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: int = 2

    def moved(self) -> "Point":
        self.__dict__.get("z")
        return copy.replace(self, y=self.y + 1)


class Assigns:
    """A docstring
    of two lines."""

    def __init__(self) -> None:
        self.a = 1
        self.b = 2


@cases
def defaults_of_type_parameters(x):
    return defaulted(x) + 1, defaulted.__type_params__[0].__default__ is int


@cases
def one_snapshot(x):
    n = 3
    seen = locals()
    seen["n"] = 4
    return n, sorted(seen), seen["n"], x + n


@cases(breaks=None)
def snapshots_are_separate(x):
    n = 3
    first = locals()
    n = 5
    second = locals()
    return first is second, first["n"], second["n"], x + n


@cases(breaks=None)
def snapshots_in_comprehensions(x):
    return [sorted(locals()) for i in range(2)], x + 1


@cases(breaks=None)
def names_from_code_that_runs(x):
    space = {"n": 2}
    exec("m = n + 1", globals=space)
    return space["m"], eval("n * 3", globals={"n": 4}), x + 1


@cases
def replaced_copies(x):
    p = Point(x).moved()
    return p.x + 1, p.y


@cases
def attributes_that_methods_assign(x):
    return sorted(Assigns.__static_attributes__), Assigns.__doc__, Assigns.__firstlineno__ > 0, x + 1


@cases
def texts_replaced_by_keyword(x):
    return "aaaa".replace("a", "b", count=2), x + 1


@cases
def strict_batches(x):
    try:
        return list(itertools.batched("abcde", 2, strict=True))
    except ValueError as error:
        return str(error), x + 1


@cases
def fused_multiplications(x):
    return math.fma(2.0, 3.0, 1.0), x + 1


@cases
def misspelt_keywords(x):
    try:
        Point(x, yy=1)
    except TypeError as error:
        return str(error), x + 1
    return None


@cases(breaks=None)
def deprecated_functions(x):
    @warnings.deprecated("use another")
    def old(v):
        return v * 2

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = old(x)
    return y, [str(w.message) for w in caught]


def answers_when_closed():
    try:
        yield 1
    except GeneratorExit:
        return "closed"


@cases
def closed_generators_return(x):
    started = answers_when_closed()
    next(started)
    fresh = answers_when_closed()
    return started.close(), started.close(), fresh.close(), x + 1


def writes_to_its_caller():
    sys._getframe(1).f_locals["n"] = 7


@cases(breaks=None)
def variables_that_a_callee_writes(x):
    n = 3
    y = x + n
    writes_to_its_caller()
    return n, y, x + n


def names_of_its_caller():
    return sorted(inspect.currentframe().f_back.f_locals)


@cases(breaks=None)
def variables_that_a_callee_reads(x):
    n = 3
    y = x + n
    return names_of_its_caller(), y
