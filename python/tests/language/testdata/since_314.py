"""What Python 3.14 added to the language: annotations read late, template strings, handlers without brackets."""

import annotationlib
import functools
import operator
import typing

from harness.cases import Cases

cases = Cases()


def annotated(a: int, b: Undefined = 1) -> Later:  # noqa: F821
    return a * b


class Fields:
    x: int
    y: Later


class Later:
    pass


class Unknown:
    x: Undefined  # noqa: F821


@cases(breaks=None)
def hints_that_cannot_be_read(x):
    try:
        return x, typing.get_type_hints(Unknown)
    except NameError as e:
        return x + 1, str(e)


@cases
def annotations_that_cannot_be_read(x):
    return annotated(x, 3)


@cases
def annotations_of_functions_made_here(x):
    def inner(v: Nowhere, n: int = 2) -> Nowhere:  # noqa: F821
        return v * n

    return inner(x), inner.__name__


@cases(breaks=None)
def annotations_are_read(x):
    return Fields.__annotations__["y"] is Later, x + 1


@cases(breaks=None)
def annotations_in_another_format(x):
    found = annotationlib.get_annotations(annotated, format=annotationlib.Format.STRING)
    return found, x + 1


@cases
def type_hints(x):
    return typing.get_type_hints(Fields)["x"] is int, x + 1


def counted(kind):
    runs.append(kind)
    return kind


runs = []


@cases(breaks=None)
def annotations_that_run_code(x):
    def described(a: counted(int)) -> int:
        return a

    before = len(runs)
    found = typing.get_type_hints(described)
    return found, len(runs) - before, x + 1


@cases
def local_annotations(x):
    n: Nowhere = 3  # noqa: F821
    m: int
    return x + n


@cases(breaks=None)
def template_strings(x):
    n = 3
    made = t"a {n} b {n + 1!r:>{n}} {x.shape[0]}"
    return (
        made.strings,
        [(i.value, i.expression, i.conversion, i.format_spec) for i in made.interpolations],
        made.values,
        x + n,
    )


@cases(breaks=None)
def template_strings_of_tensors(x):
    made = t"{x + 1}{x * 2:text}"
    return made.values, [i.format_spec for i in made.interpolations]


@cases(breaks=None)
def template_strings_are_iterated(x):
    n = "v"
    return [type(part).__name__ for part in t"<{n}>{n}!"], (t"a" + t"{n}").strings, x + 1


@cases
def handlers_without_brackets(x):
    out = []
    for value in ("a", None, 1):
        try:
            out.append(1 // (int(value) - 1))
        except ValueError, TypeError:
            out.append("not a number")
        except ZeroDivisionError:
            out.append("one")
    return out, x + 1


@cases
def groups_without_brackets(x):
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
    except* ValueError, TypeError:
        out.append("value or type")
    except* KeyError:
        out.append("key")
    return out, x + 1


@cases
def strict_maps(x):
    try:
        return list(map(operator.add, [1, 2], [3], strict=True))
    except ValueError as error:
        return str(error), list(map(operator.add, [1], [3], strict=True)), x + 1


@cases(breaks=None)
def places_in_partials(x):
    sub = functools.partial(operator.sub, functools.Placeholder, 1)
    return sub(x), sub(5)


@cases
def nones(x):
    return operator.is_none(None), operator.is_not_none(x), x + 1


@cases
def numbers_from_numbers(x):
    return float.from_number(3), complex.from_number(2.5), x + 1


@cases(breaks=None)
def not_implemented_has_no_truth(x):
    try:
        return bool(NotImplemented)
    except TypeError as error:
        return str(error), x + 1


@cases
def unions_are_one_class(x):
    return typing.Union[int, str] == int | str, isinstance(1, typing.Union[int, str]), x + 1


@cases
def loops_that_end_early(x):
    for i in range(5):
        for j in range(5):
            if i + j == 3:
                break
        else:
            continue
        if i == 2:
            break
    return i, j, x + i + j


class Closing:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, *error):
        self.log.append(error[0])
        return error[0] is KeyError


@cases
def blocks_that_swallow(x):
    log = []
    with Closing(log), Closing(log):
        raise KeyError(1)
    return log, x + 1


class OnlyEnters:
    def __enter__(self):
        return self


class OnlyExits:
    def __exit__(self, *error):
        return None


class OnlyAsync:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        return None


@cases
def blocks_without_methods(x):
    texts = []
    for manager in (OnlyEnters(), OnlyExits(), OnlyAsync()):
        try:
            with manager:
                pass
        except TypeError as error:
            texts.append(str(error))
    return texts, x + 1


ITEMS = (1, 2)


def added(a, b):
    return a + b


@cases
def global_items_are_arguments(x):
    return x + added(*ITEMS), max(*ITEMS)


@cases
def global_items_of_a_class_that_refuses_them(x):
    made = []
    try:
        made.append(OnlyEnters(*ITEMS))
    except TypeError as error:
        return str(error), x + 1
    return made
