"""What Python 3.12 added to the language: type parameters, f-strings, inlined comprehensions, new functions."""

import itertools
import math
import warnings

from harness.cases import Cases

cases = Cases()


def first[T](values: list[T]) -> T:
    return values[0]


def bounded[T: (int, float), *Ts, **P](value: T, *rest: *Ts) -> tuple[T, *Ts]:
    return value, *rest


class Box[T]:
    def __init__(self, value: T) -> None:
        self.value = value

    def map[U](self, fn) -> "Box[U]":
        return Box(fn(self.value))


type Pair[T] = tuple[T, T]


@cases
def generic_functions(x):
    return first([x + 1, x]), bounded(2, "a", None), first([1])


@cases
def generic_classes(x):
    box = Box(x).map(lambda v: v * 2)
    return box.value, type(box).__name__, isinstance(box, Box), Box[int](3).value


@cases(breaks=None)
def type_parameters_are_read(x):
    return [p.__name__ for p in first.__type_params__], Box.__type_params__[0].__name__, Pair.__name__, x + 1


@cases(breaks=None)
def a_generic_function_made_here(x):
    def scale[T](value: T, by: T) -> T:
        return value * by

    return scale(x, 3), scale(2, 5), len(scale.__type_params__)


@cases(breaks=None)
def an_alias_made_here(x):
    type Local = list[int]
    return Local.__name__, Local.__value__ == list[int], x + 1


@cases(breaks=None)
def an_alias_that_names_a_later_one(x):
    type Early = dict[str, Late]
    type Late = int
    return Early.__value__.__args__[1] is Late, x * 2


@cases
def f_strings_with_the_same_quotes(x):
    d = {"key": {"inner": 3}}
    return f"{d["key"]["inner"]}", f"{f"{f"{1 + 1}"}"}", f"{"\n".join(["a", "b"])}", x + 1


@cases
def f_strings_over_lines(x):
    n = 4
    return f"{
        n  # a comment
        + 1
    :>{n + 2}}", f"{n!r:^5}|{n=}|{n = :3d}", x + n


@cases
def f_strings_of_sizes(x):
    return f"{x.shape[0]:>{x.shape[0]}}", f"{'a' if x.ndim == 1 else "b"}", x + 1


@cases
def comprehensions_keep_outer_variables(x):
    i = 10
    a = [i for i in range(3)]
    b = {i: j for i, j in zip("ab", range(2))}
    c = {i % 2 for i in range(4)}
    return i, a, b, c, x + i


@cases
def comprehensions_in_comprehensions(x):
    rows = [[x * (i + j) for j in range(2)] for i in range(2)]
    return rows, [y.sum() for row in rows for y in row if True]


@cases
def comprehensions_with_cells(x):
    fs = [lambda k=k: (k, i) for i in range(3) for k in range(i)]
    gs = [lambda: i for i in range(3)]
    return [f() for f in fs], [g() for g in gs], x + 1


@cases
def comprehensions_that_raise(x):
    i = "outer"
    try:
        [1 // (2 - i) for i in range(4)]
    except ZeroDivisionError as error:
        return i, str(error), x + 1
    return None


@cases
def comprehensions_that_bind_outside(x):
    out = [last := x + i for i in range(3)]
    return out, last


@cases
def comprehensions_that_delete_a_variable(x):
    i = 5
    del i
    out = [i for i in range(2)]
    try:
        i
    except UnboundLocalError as error:
        return out, str(error), x + 1
    return None


@cases
def comprehensions_over_what_the_loop_binds(x):
    out = []
    for k in range(3):
        out.append([k for k in range(k)])
    return k, out, x + k


@cases
def comprehensions_of_tensors(x):
    return {n: t for n, t in zip("abcd", x)}, [t * 2 for t in x.split(2)]


@cases
def comprehensions_in_class_bodies(x):
    return Table.rows, Table.names, x + 1


class Table:
    size = 3
    rows = [i * 2 for i in range(size)]
    names = {str(i): i for i in rows}


@cases
def batches(x):
    return list(itertools.batched("abcdefg", 3)), [sum(b) for b in itertools.batched(range(5), 2)], x + 1


@cases
def batches_of_tensors(x):
    return [a + b for a, b in itertools.batched(list(x), 2)]


@cases
def sums_of_products(x):
    return math.sumprod([1, 2, 3], [4, 5, 6]), math.sumprod([0.1] * 10, [1.0] * 10), x + 1


@cases
def sums_of_floats(x):
    return sum([0.1] * 10), sum([1e16, 1.0, -1e16]), sum([0.1, 1, 2.5]), x + 1


@cases
def slices_are_hashed(x):
    return hash(slice(1, 2)) == hash(slice(1, 2)), {slice(0, 2): "a"}[slice(0, 2)], x[slice(0, 2)]


@cases(breaks=None)
def inverting_a_bool_warns(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = ~(x.ndim == 1)
    return value, len(caught)


@cases
def names_in_errors(x):
    try:
        bounded(1, key=2)
    except TypeError as error:
        return str(error), x + 1
    return None


@cases(breaks=None)
def conditions_of_comprehensions_raise(x):
    try:
        r = [n for n in range(2) if n != x]
    except RuntimeError as error:
        r = type(error).__name__
    try:
        s = {n: 1 for n in range(2) if not (x == n)}
    except RuntimeError as error:
        s = type(error).__name__
    return r, s, x + 1
