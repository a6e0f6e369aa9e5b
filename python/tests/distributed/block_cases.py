"""One rank: block_cases.py BACKEND [CASE...] runs functions with collectives inside `try` and `with`, as rank_cases.py
does. In every other call an operation after the collective raises, and the program's handlers run."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
import torch.distributed as dist

from rank_support import compare, leave, raised

dist.init_process_group("gloo")
torch.set_num_threads(1)
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


GOOD, BAD = torch.tensor([2, 0]), torch.tensor([0, 9])


def calls(*more):
    """Return the arguments of three calls, the second of which raises, with copies of the arguments in ``more``."""
    return [(torch.arange(3.0), index, *(make() for make in more)) for index in (GOOD, BAD, GOOD)]


def pick(x, index):
    y = x * 2
    dist.all_reduce(y)
    return torch.index_select(y, 0, index)


@case
def handler_of_the_frame():
    def f(x, index):
        y = x + 1
        try:
            y = pick(y, index)
        except IndexError as error:
            return y * len(raised(error, __file__)[2])
        return y + 1

    return f, calls()


@case
def no_handler_that_matches():
    def f(x, index, log):
        try:
            log.append(1)
            y = pick(x, index)
        except (KeyError, OSError):
            log.append(2)
            y = x
        log.append(3)
        return y + 1

    return f, calls(list)


@case
def handlers_of_callers():
    def inner(x, index, log):
        try:
            return pick(x, index) + 1
        finally:
            log.append("inner")

    def middle(x, index, log):
        try:
            y = inner(x * 2, index, log)
        except IndexError as error:
            log.append("middle")
            raise ValueError("again") from error
        return y * 2

    def f(x, index, log):
        state = {"x": x + 1, "seen": []}
        try:
            state["y"] = middle(state["x"], index, log)
        except ValueError as error:
            log.append((sorted(state), raised(error, __file__)))
            return state["x"] * 3
        else:
            log.append("else")
        finally:
            log.append("finally")
        return state["y"] + state["x"].sum()

    return f, calls(list)


@case
def callers_go_on():
    """The handler returns a value, and the callers go on with it."""

    def inner(x, index):
        try:
            return pick(x, index)
        except IndexError:
            return x[:2] * 10

    def middle(x, index, scale=1):
        return inner(x, index) * scale + 1

    def f(x, index, log):
        parts = [x + 1]
        parts.append(middle(x + 2, index, scale=3))
        log.append(len(parts))
        total = parts[0][:2] + middle(index=index, x=parts[0]) * 2
        return total, parts, [*map(torch.Tensor.sum, parts)]

    return f, calls(list)


@case
def exception_passes_through():
    def inner(x, index):
        return pick(x.sin(), index).cos()

    def f(x, index, log):
        out = []
        for i in range(3):
            try:
                out.append(inner(x + i, index if i == 1 else GOOD))
            except IndexError:
                log.append(i)
                continue
            log.append(-i)
        return torch.cat(out), log

    return f, calls(list)


@case
def variables_change():
    def f(x, index, log):
        count, kept = 0, {}

        def add(y):
            nonlocal count
            count += 1
            kept[count] = y
            return y + count

        try:
            a = add(pick(x, GOOD))
            log.append(count)
            b = add(a)
            c = add(pick(b, torch.where(index > 5, index, 0)))
            d = add(c)
        except IndexError:
            return count, [*kept], kept[1], log, a + b
        return count, [*kept], d, add(c)

    return f, calls(list)


@case
def objects_of_the_program():
    class Record:
        def __init__(self, x):
            self.x, self.notes = x, []

        def step(self, index):
            self.notes.append("begun")
            self.x = self.x + 1
            self.y = pick(self.x, index)
            self.notes.append("done")
            return self

    def f(x, index):
        record = Record(x)
        same = [record, record.notes]
        try:
            record.step(index)
        except IndexError:
            record.notes.append("caught")
        return record.x, record.notes, same[1] is record.notes, same[0] is record, hasattr(record, "y")

    return f, calls()


@case
def objects_of_the_caller():
    class Box:
        pass

    def f(x, index, box):
        box.before = x * 2
        try:
            box.y = pick(x, index)
            box.after = True
        except IndexError:
            box.caught = x + 1
        return sorted(vars(box)), box.before

    return f, calls(Box)


@case
def managers():
    class Manager:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("enter")
            return self

        def __exit__(self, kind, error, traceback):
            self.log.append(kind and (kind.__name__, traceback.tb_frame.f_code.co_name))
            return kind is IndexError

    @contextlib.contextmanager
    def generated(log):
        log.append("in")
        try:
            yield
        finally:
            log.append("out")

    def f(x, index, log):
        y = x + 1
        with Manager(log) as m:
            y = pick(y, index)
            m.log.append("inside")
        with contextlib.suppress(IndexError), generated(log):
            y = pick(y * 2, index) + y.sum()
        return y, log

    return f, calls(list)


@case
def modes():
    def inner(x, index):
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            y = pick(x, index)
        return y + x.sum()

    def f(x, index):
        x = x.requires_grad_()
        try:
            y = inner(x * 2, index)
        except IndexError:
            y = x * 3
        return y, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")

    def g(x, index):
        with torch.no_grad():
            try:
                y = inner(x * 2, index)
            except IndexError:
                y = x * 3
        return y, torch.is_grad_enabled(), f(x + 1, index)

    return g, calls()


@case
def constructors_and_properties():
    """The callers' calls do not give what the called function returns."""

    class Picked:
        def __init__(self, x, index):
            self.y = pick(x, index)

        @property
        def more(self):
            return pick(self.y, GOOD[1:]) * 2

        def __len__(self):
            return 2 if pick(self.y, GOOD[1:]).shape[0] else 0

        def __add__(self, other):
            return pick(self.y, GOOD[1:]) + other

    def f(x, index):
        try:
            p = Picked(x, index)
            return p.more, len(p), p + 1, [pick(x + i, index) for i in range(2)]
        except IndexError:
            return x + 1

    return f, calls()


@case
def modules():
    class Block(torch.nn.Module):
        def __init__(self, catches):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)
            self.catches = catches
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(p.numel()).reshape(p.shape) / 10)

        def forward(self, x, index):
            try:
                y = torch.relu(self.inner(x))
                dist.all_reduce(y)
                return y + torch.index_select(x, 0, index).sum()
            except IndexError:
                if self.catches:
                    return x
                raise

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = torch.nn.ModuleList(Block(i == 1) for i in range(3))
            self.blocks[0].register_forward_hook(lambda module, args, out: out * 2)

        def forward(self, x, indexes):
            for i, block in enumerate(self.blocks):
                x = block(x, indexes[i])
            return x.sum()

    x = torch.arange(3.0).requires_grad_()
    return Model(), [(x, indexes) for indexes in ((GOOD,) * 3, (GOOD, BAD, GOOD), (GOOD, GOOD, BAD), (BAD,) * 3)]


@case
def what_is_handled():
    def note(log, where):
        error = sys.exception() if sys.version_info >= (3, 11) else None
        log.append((where, type(error).__name__))

    def inner(x, index, log):
        try:
            return pick(x, index)
        except IndexError:
            note(log, "inner")
            raise KeyError("new")  # noqa: B904
        finally:
            note(log, "finally")

    def f(x, index, log):
        try:
            y = inner(x, index, log)
        except KeyError as error:
            note(log, "f")
            log.append(raised(error, __file__))
            y = x
        note(log, "end")
        return y * 2, log

    return f, calls(list)


@case
def in_a_handler():
    def f(x, index, log):
        try:
            log.append(index.shape[0] / (x.ndim - 1))
        except ZeroDivisionError:
            y = pick(x, index)
            log.append("after")
            return y
        return x

    return f, calls(list)


@case
def generators():
    def parts(x, index):
        try:
            yield x + 1
            yield pick(x, index)
        finally:
            yield x * 3

    def f(x, index):
        try:
            return [*parts(x, index)], sum(parts(x, GOOD)[i] for i in range(0))
        except IndexError:
            return x
        except TypeError:
            return x - 1

    return f, calls()


@case
def deep():
    def down(x, index, n, log):
        if n == 0:
            return pick(x, index)
        try:
            return down(x + 1, index, n - 1, log) * 2
        finally:
            log.append(n)

    def f(x, index, log):
        try:
            return down(x, index, 6, log)
        except IndexError as error:
            return x, raised(error, __file__)

    return f, calls(list)


@case
def groups_and_sizes():
    """What the operands of these operations need are operations of their own."""
    group = dist.new_group([0, 1])

    def f(x, index, log):
        try:
            log.append(x.shape[0])
            y = x * 2
            dist.all_reduce(y, op=dist.ReduceOp.MAX, group=group)
            z = torch.index_select(y, 0, index[: min(x.shape[0], 2)]).view(-1, 1)
            z = z * torch.ones(y.shape[0], dtype=y.dtype)
            log.append(z.shape)
            w = torch.zeros(y.shape[0] * 2).index_select(0, index)
        except IndexError:
            return x + y.shape[0]
        return z, w, log

    return f, [(torch.arange(float(n)), index, []) for n in (3, 3, 5, 7) for index in (torch.arange(n - 1)[:2], BAD)]


@case
def operations_after_it():
    """Operations that do not communicate have handlers as well."""

    def f(x, index, log):
        y = x + 1
        dist.all_reduce(y)
        try:
            log.append("a")
            y = y.sin()
            z = torch.index_select(y, 0, index)
            log.append("b")
            y.add_(z.sum())
            w = torch.index_select(y, 0, index + 1)
            log.append("c")
        except IndexError:
            log.append("d")
            return y, log
        return y + w.sum(), log

    return f, calls(list)


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        compare(name, CASES[name], sys.argv[1], __file__)
    leave()
