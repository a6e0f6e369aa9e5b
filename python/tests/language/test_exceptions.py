"""try, except, else, finally, raise, assert: caught inside, outside, or propagated; breaks in every part of a block."""

from __future__ import annotations

import sys

import pytest
import torch

import godynamo
from harness.cases import Case, Cases, check

cases = Cases()


class Bad(ValueError):
    def __init__(self, code, note="n"):
        super().__init__(code, note)
        self.code = code

    def twice(self):
        return self.code * 2


class Quiet(Exception):
    pass


def deep(x):
    if x.shape[0] > 2:
        raise IndexError("deep")
    return x


@godynamo.disable
def opaque(x, fail=False):
    """Never captured."""
    if fail:
        raise OSError(5, "opaque")
    return len(bytearray(3))


@cases
def raised_and_caught_in_one_frame(x):
    try:
        y = x + 1
        raise ValueError("bad")
    except ValueError:
        y = x * 2
    return y + 1


@cases(args=lambda: ({},))
def a_missing_key(x, d):
    try:
        v = d["k"]
    except KeyError:
        v = 3
    return x * v


@cases
def caught_by_a_tuple_of_classes(x):
    try:
        return deep(x)
    except (KeyError, IndexError) as e:
        return x.cos(), type(e) is IndexError, isinstance(e, LookupError)


@cases
def caught_by_a_base_class(x):
    try:
        raise Bad(4)
    except ValueError as e:
        return x * e.code, e.twice(), e.args, str(e)


@cases
def not_caught_by_another_class(x):
    try:
        try:
            raise KeyError("k")
        except IndexError:
            return x
    except KeyError as e:
        return x + 1, e.args, str(e)


@cases
def the_name_is_gone_after_the_handler(x):
    e = 1
    try:
        raise Quiet
    except Quiet as e:
        x = x + 1
    try:
        return e
    except UnboundLocalError:
        return x


@cases
def else_and_finally_in_a_loop(x):
    r = []
    for i in range(3):
        try:
            if i == 1:
                raise KeyError(i)
            r.append(x + i)
        except KeyError:
            r.append(x * 10)
            continue
        else:
            r.append("else")
        finally:
            r.append("f")
    return r


@cases
def finally_overrides_return(x):
    def inner():
        try:
            return 1
        finally:
            return 2  # noqa: B012

    for _ in range(2):
        try:
            x = x + inner()
        finally:
            break  # noqa: B012
    return x


@cases
def cause_and_context(x):
    try:
        try:
            deep(x)
        except IndexError as e:
            raise RuntimeError("outer") from e
    except RuntimeError as r:
        return x + 1, r.__cause__.args, r.__suppress_context__


@cases
def context_of_a_raise_in_a_handler(x):
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904
    except ValueError as e:
        return x + 1, type(e.__context__), e.__context__.args, e.__cause__


@cases
def raise_from_none(x):
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second") from None
    except ValueError as e:
        return x + 1, e.__cause__, e.__suppress_context__


@cases
def raised_again(x):
    try:
        try:
            deep(x)
        except IndexError:
            x = x + 1
            raise
    except LookupError:
        return x * 2


@cases(graphs=1, breaks=1)
def let_out(x):
    y = x + 1
    if y.shape[0] > 2:
        raise Bad(3, note="out")
    return y


@cases(breaks=2)
def let_out_of_an_inlined_call(x):
    y = x + 1
    return deep(y)


@cases(graphs=2, breaks=3)
def let_out_through_finally(x):
    y = x + 1
    try:
        deep(y)
    finally:
        y.add_(1)
    return y


@cases(graphs=1, breaks=1)
def raise_of_what_is_no_exception(x):
    y = x + 1
    raise y.shape


@cases
def assertion(x):
    try:
        if x.shape[0] != 7:
            raise AssertionError("seven")  # same as assert, which pytest would rewrite
    except AssertionError as e:
        return x + 1, str(e)


@cases(graphs=1)
def an_operation_raises_and_is_caught(x):
    try:
        y = x @ torch.ones(7, 7)
    except RuntimeError as e:
        return x * 2, type(e), str(e)
    return y


@cases(graphs=1)
def an_operation_raises_in_a_callee(x):
    def work(t):
        u = t.sin()
        return u.reshape(9, 9)

    try:
        y = work(x)
    except RuntimeError as e:
        return x * 2, str(e)
    return y


@cases(args=lambda: ([],))
def an_effect_before_an_operation_that_raises(x, log):
    try:
        log.append("before")
        y = x @ torch.ones(7, 7)
        log.append("never")
    except RuntimeError:
        log.append("handler")
        return x * 2
    return y


@cases(args=lambda: ([],), graphs=1)
def an_in_place_operation_before_one_that_raises(x, log):
    try:
        x.add_(1)
        y = x @ torch.ones(7, 7)
    except RuntimeError:
        return x * 2
    return y


@cases(graphs=1, breaks=(0, 1))
def random_numbers_before_an_operation_that_raises(x):
    torch.manual_seed(3)
    try:
        y = x + torch.rand(4)
        y = y @ torch.ones(7, 7)
    except RuntimeError:
        return torch.rand(2)
    return y


@cases(graphs=2, breaks=1)
def a_split_in_try(x):
    try:
        y = x + 1
        n = opaque(y)
        y = y * n
    except ValueError:
        y = x - 1
    return y * 2


@cases(graphs=2, breaks=1)
def a_split_in_try_that_raises(x):
    y = x + 1
    try:
        opaque(y, fail=True)
        y = y * 3
    except OSError as e:
        y = y * e.errno
    return y * 2


@cases(graphs=2, breaks=3)
def a_split_in_a_handler(x):
    try:
        deep(x)
    except IndexError:
        y = x + 1
        n = opaque(y)
        y = y * n
    return y


@cases(graphs=1, breaks=2)
def what_a_handler_raises_has_its_context(x):
    y = x + 1
    try:
        try:
            opaque(y, fail=True)
        except OSError:
            opaque(y, fail=True)
    except OSError as e:
        return y, type(e.__context__), e.__context__ is not e


@cases
def exc_info_in_a_handler(x):
    y = x + 1
    try:
        deep(y)
    except IndexError:
        kind = sys.exc_info()[0]
    return y, kind, sys.exc_info()


@cases(args=lambda: ([],), graphs=2, breaks=1)
def a_split_in_finally(x, log):
    try:
        y = x + 1
    finally:
        log.append(opaque(x))
        y = x * 2
    return y + 1


@cases(args=lambda: ([],), graphs=1, breaks=3)
def a_split_in_finally_while_raising(x, log):
    y = x + 1
    try:
        deep(y)
    finally:
        log.append(opaque(y))


@cases(args=lambda: ([],), graphs=1, breaks=2)
def the_exception_is_kept(x, log):
    y = x + 1
    try:
        deep(y)
    except IndexError as e:
        log.append(e)
    return y


@cases(graphs=4, breaks=3)  # the second value of i makes it a symbol
def splits_in_a_loop_with_try(x):
    for i in range(3):
        try:
            x = x + 1
            if opaque(x) == i:
                continue
            x = x * 2
        finally:
            x = x - 1
    return x


@cases
def nested_functions_raise_through_each_other(x):
    def a(n):
        if n == 0:
            raise Quiet("bottom")
        try:
            return a(n - 1)
        finally:
            seen.append(n)

    seen = []
    try:
        a(3)
    except Quiet as e:
        return x * len(seen), seen, e.args


@cases
def stop_iteration_has_its_value(x):
    it = iter([x])
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return x + 1, e.value


@cases
def except_star(x):
    y = x + 1
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        y = y + len(e.exceptions)
    except* KeyError:
        y = y * 2
    return y


@cases
def converted_by_python(x):
    try:
        n = int("seven")
    except ValueError as e:
        n, text = 7, str(e)
    try:
        n = n / 0
    except ZeroDivisionError as e:
        text += str(e)
    return x * n, text


@cases(args=lambda: ([],), graphs=1, breaks=1)
def print_to_what_the_program_put_there(x, log):
    y = x + 1
    try:
        print("text")
    except RuntimeError as e:
        log.append(str(e))
    return y


@cases
def a_traceback_is_there(x):
    try:
        deep(torch.cat([x, x, x]))
    except IndexError as e:
        passed = type(e), e, e.__traceback__
        there = e.__traceback__ is not None, bool(passed[2])
    return x + 1, there


@cases(breaks=4, graphs=2)  # CPython compares, and again raises the exception whose tracebacks are real
def tracebacks_are_compared(x):
    try:
        deep(torch.cat([x, x, x]))
    except IndexError as e:
        return x + 1, e.__traceback__ is e.__traceback__, sys.exc_info()[2] == e.__traceback__


@pytest.mark.parametrize("case", list(cases), ids=cases.names())
@pytest.mark.row("S002-60")
@pytest.mark.row("S004-107")
@pytest.mark.row("S004-137")
def test_exceptions(case: Case) -> None:
    check(case)


def test_zero_argument_super_without_arguments() -> None:
    def fn():
        return super().x

    with pytest.raises(RuntimeError, match="super"):
        godynamo.optimize(fn)()


def test_an_iterator_that_returns_a_value() -> None:
    """``yield from`` reads a StopIteration's value from its C field, which captured code that raises one must set."""

    class Ends:
        def __iter__(self):
            return self

        def __next__(self):
            raise StopIteration(42)

    def outer(out):
        out.append((yield from Ends()))

    def fn(x):
        out = []
        list(outer(out))
        return x + 1, out

    with godynamo.optimize("eager"):
        assert fn(torch.zeros(2))[1] == [42]
