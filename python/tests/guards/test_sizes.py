"""Conditions on sizes, strides and ints: C, Go and the guard text have the same verdict, and sizes become ints."""

from __future__ import annotations

import gc
import json
import pathlib
import sys
import threading
import types

import pytest
import torch

import godynamo
from godynamo import _C
from godynamo._called import guard_env
from godynamo._explain import guard_objects
from godynamo._observe import reasons
from guard_programs import Program

TYPE_TO_NDIM = 63  # every field but sizes and strides
GOLDEN = pathlib.Path(__file__).parents[3] / "guards" / "testdata" / "sizes.jsonl"


def f(x, y, a, b):
    return x


def of_sizes(*conditions, example=None, fields=TYPE_TO_NDIM, tensors="xy", ints="ab"):
    """Return the program of f that checks the conditions, each a text and its steps."""
    p = Program(f)
    for name in ints:
        p.type_is(p.slot(name), int)
    for name in tensors:
        tensor = example[name] if isinstance(example, dict) else torch.ones(2, 3) if example is None else example
        p.tensor(p.slot(name), tensor, fields, 0, 0)
    for text, *steps in conditions:
        p.condition(text, *steps)
    return p


def both(entry, slots):
    native = _C.guard_check(entry, slots, {})[0]
    assert guard_env.eval_text(entry, slots, {}) is native, (entry.text, slots, entry.failure(slots, {}))
    return native


def test_c_and_go_and_the_text_agree_on_random_conditions():
    frames, *cases = map(json.loads, GOLDEN.read_text().splitlines())
    frames = [(torch.empty_strided(*f["X"]), torch.empty_strided(*f["Y"]), int(f["A"]), int(f["B"])) for f in frames]
    example = {"x": torch.ones(1, 2, 3, 4, 5), "y": torch.ones(2, 2)}
    assert len(cases) > 300
    for case in cases:
        entry = of_sizes((case["Text"], *case["Steps"]), example=example).entry()
        assert [both(entry, slots) for slots in frames] == [digit == "1" for digit in case["Holds"]], case


X0, X1, Y0 = ("SIZE", 0, 0, 16), ("SIZE", 1, 0, 3), ("SIZE", 0, 1, 4)
AT_LEAST_TWO = ("x.size()[0] >= 2", X0, ("CONST", 0, 0, 2), ("GE",))


@pytest.mark.parametrize(
    ("condition", "slots", "text", "found", "was"),
    [
        (AT_LEAST_TWO, ((1, 3), (4,), 1, 1), "x.size()[0] is 1, was 16", "1", "16"),
        (
            ("x.size()[0] == y.size()[0] + 12", X0, Y0, ("CONST", 0, 0, 12), ("ADD",), ("EQ",)),
            ((3, 3), (5,), 1, 1),
            "x.size()[0] is 3, was 16; y.size()[0] + 12 is 17, was 16",
            "3 and 17",
            "16 and 16",
        ),
        (("2 < x.stride()[0]", ("CONST", 0, 0, 2), ("STRIDE", 0, 0, 3), ("LT",)), ((5, 1), (4,), 1, 1),
         "x.stride()[0] is 1, was 3", "1", "3"),
        (("x.size()[0] // a >= 1", X0, ("INT", 0, 2, 4), ("FLOORDIV",), ("CONST", 0, 0, 1), ("GE",)),
         ((5, 1), (4,), 0, 1), "x.size()[0] // a is no int of 64 bits, was 4", "no int of 64 bits", "4"),
        (("a > 0", ("INT", 0, 2, 4), ("CONST",), ("GT",)), ((5, 1), (4,), 2**63, 1),
         "a is no int of 64 bits, was 4", "no int of 64 bits", "4"),
    ],
)  # fmt: skip
def test_a_failure_shows_both_values(condition, slots, text, found, was):
    example = {"x": torch.ones(16, 3), "y": torch.ones(4)}
    p = of_sizes(condition, example=example)
    line = ("user.py", 7)
    spec = p.spec()
    spec["part_lines"] = [None] * (len(spec["parts"]) - 1) + [line]
    entry = _C.make_entry(spec)
    x, y, *ints = slots
    slots = (torch.ones(x), torch.ones(y), *ints)
    assert not both(entry, slots)
    failure = entry.failure(slots, {})
    assert failure == f"{condition[0]}: {text} (user.py:7)"
    assert (failure.part, failure.reason, failure.found, failure.was) == (condition[0], text, found, was)
    assert failure.line == line


def test_an_operator_inside_a_string_does_not_end_the_left_side():
    p = of_sizes(("L['a >= b'] >= 2", ("INT", 0, 2, 4), ("CONST", 0, 0, 2), ("GE",)))
    assert p.entry().failure((torch.ones(2, 3), torch.ones(2, 3), 1, 1), {}).reason == "L['a >= b'] is 1, was 4"


def test_ints_are_exact():
    entry = of_sizes(("a >= 0", ("INT", 0, 2, 4), ("CONST",), ("GE",)), tensors="", ints="").entry()
    assert [both(entry, (0, 0, v, 0)) for v in (0, 2**63 - 1, 2**63, -1, True, 2.5, None, torch.tensor(1))] == [
        True, True, False, False, False, False, False, False,
    ]  # fmt: skip


SHAPES = [(4, 6), (0, 6), (1, 1), (7, 5), (2**40, 3), (4,), (4, 6, 1)]


def tensors_of(shape):
    """Return tensors with the shape, some of them not contiguous."""
    t = torch.empty(shape, device="meta") if shape[0] > 100 else torch.ones(shape)
    yield t
    if len(shape) == 2 and t.device.type == "cpu":
        yield torch.ones(shape[::-1]).t()
        yield torch.ones(shape[0] * 2, shape[1])[::2]
        yield torch.ones(1, shape[1]).expand(shape) if shape[0] else t


def test_real_tensors_are_read_as_torch_reads_them():
    steps = (("SIZE", 0, 0, 4), ("STRIDE", 0, 0, 6), ("MUL",), ("STRIDE", 1, 0, 1), ("ADD",))
    # Without DEVICE and KEYSET, tensors of the meta device match as well.
    fields = 1 | 4 | 32
    for rel, holds in (("EQ", 25), ("GT", 1)):
        operator = {"EQ": "==", "GT": ">"}[rel]
        text = f"x.size()[0] * x.stride()[0] + x.stride()[1] {operator} 25"
        p = of_sizes((text, *steps, ("CONST", 0, 0, 25), (rel,)), example=torch.ones(4, 6), fields=fields, tensors="x")
        entry = p.entry()
        verdicts = [both(entry, (t, 0, 0, 0)) for shape in SHAPES for t in tensors_of(shape)]
        assert True in verdicts and False in verdicts, holds


@pytest.mark.parametrize("n", range(1, 7))
def test_each_dimension_of_up_to_five_is_read_and_six_are_refused(n):
    t = torch.empty_strided(list(range(2, n + 2)), list(range(n, 0, -1)))
    for dim in range(n):
        text = f"x.size()[{dim}] * 10 + x.stride()[{dim}] == {(dim + 2) * 10 + n - dim}"
        steps = (("SIZE", dim, 0), ("CONST", 0, 0, 10), ("MUL",), ("STRIDE", dim, 0), ("ADD",))
        p = of_sizes((text, *steps, ("CONST", 0, 0, (dim + 2) * 10 + n - dim), ("EQ",)), example=t, tensors="x")
        if n == 6:
            with pytest.raises(ValueError, match="unknown layout"):
                p.entry()
        else:
            entry = p.entry()
            assert both(entry, (t, 0, 0, 0))
            assert not both(entry, (t.unsqueeze(0), 0, 0, 0))
    if n < 6:
        p = of_sizes(("x.size()[9] > 0", ("SIZE", n, 0), ("CONST",), ("GT",)), example=t, tensors="x")
        with pytest.raises(ValueError, match="fewer dimensions"):
            p.entry()


def passed_on():
    """Return an entry whose function gets a size and a stride of x as its last arguments and returns them."""

    def called(x, y, a, b, first, second):
        return first, second

    p = of_sizes(AT_LEAST_TWO)
    p.extra = [p.size(p.slot("x"), 0).reg, p.size(p.slot("x"), 1, "stride").reg]
    p.more["function"] = called
    return p.entry()


def test_a_size_is_an_int_that_lives_while_it_stays_the_same():
    entry = passed_on()
    y = torch.ones(2, 3)
    assert both(entry, (torch.ones(5000, 3), y, 1, 1))
    gc.collect()
    before = sys.getallocatedblocks()
    for i in range(3000):
        assert _C.guard_check(entry, (torch.ones(5000 + i, 7)[:, ::2], y, 1, 1), {})[0]
    gc.collect()
    assert abs(sys.getallocatedblocks() - before) < 100
    assert not both(entry, (torch.ones(1, 3), y, 1, 1))


@pytest.fixture
def translated():
    """Yield a function that optimizes f with an entry made by the test."""

    def optimize(entry):
        _C.set_translate_callback(lambda request: entry if request["function"].__code__ is f.__code__ else None)
        return godynamo.optimize(types.FunctionType(f.__code__, f.__globals__))

    yield optimize
    _C.set_translate_callback(None)


NEEDS_HOOK, HANDS_OVER = 2, 8


@pytest.mark.parametrize("flags", [0, NEEDS_HOOK, HANDS_OVER, NEEDS_HOOK | HANDS_OVER])
def test_a_function_keeps_the_sizes_of_its_call(translated, flags):
    """The function calls itself with other sizes, which replace the ints that the entry keeps."""

    def called(x, y, a, b, n):
        n = n + 0 if a == 0 else n
        inner = w(torch.ones(x.shape[0] * 2, 3), y, a - 1, b) if a > 0 else ()
        junk = [10**9 + i for i in range(100)]  # would reuse the memory of a freed int
        return (n, *inner, len(junk) == 100)

    p = of_sizes(AT_LEAST_TWO)
    p.extra = [p.size(p.slot("x"), 0).reg]
    p.more |= {"function": called, "flags": flags}
    w = translated(p.entry())
    for _ in range(3):
        assert w(torch.ones(5000, 3), torch.ones(2, 3), 4, 1)[:5] == (5000, 10000, 20000, 40000, 80000)
    assert len(godynamo.cache_entries(w)) == 1


def test_threads_get_the_sizes_of_their_own_calls(translated):
    def called(x, y, a, b, n):
        return n

    p = of_sizes(AT_LEAST_TWO)
    p.extra = [p.size(p.slot("x"), 0).reg]
    p.more["function"] = called
    w = translated(p.entry())
    y = torch.ones(2, 3)
    w(torch.ones(2, 3), y, 1, 1)
    wrong = []

    def calls(rows):
        x = torch.ones(rows, 3)
        wrong.extend(n for _ in range(3000) if (n := w(x, y, 1, 1)) != rows)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=calls, args=(1000 + i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_no_memory_for_a_size_fails_the_guard():
    entry = passed_on()
    slots = torch.ones(5000, 3), torch.ones(2, 3), 1, 1
    testcapi = pytest.importorskip("_testcapi")
    scope, answers, held = {}, [], []
    for start in range(12):
        answer = None
        held.append([10_000 + i for i in range(200)])  # 3.14 keeps ints for reuse: none may be left
        testcapi.set_nomemory(start, start + 1)
        try:
            answer = _C.guard_check(entry, slots, scope)
        except MemoryError:
            pass
        finally:
            testcapi.remove_mem_hooks()
        answers.append(answer)
        slots = torch.ones(5001 + start, 3), *slots[1:]
    size = entry.parts.index("___loads(x.size()[0])")
    assert {(True, None), (False, size)} <= set(answers)
    assert both(entry, slots)


def with_sizes(**changes):
    """Return the spec of a program with a condition and a size."""
    p = of_sizes(AT_LEAST_TWO, ints="")
    p.extra = [p.size(p.slot("x"), 0).reg]
    p.more["function"] = lambda x, y, a, b, n: n
    return {**p.spec(), **changes}


def moved(spec, at, to):
    nodes = list(spec["nodes"])
    nodes.insert(to, nodes.pop(at))
    return nodes


BAD_STEPS = {
    "no relation": [("SIZE", 0, 0, 0), ("CONST", 0, 0, 0), ("ADD", 0, 0, 0)],
    "two relations": [("SIZE", 0, 0, 0), ("EQ", 0, 0, 0), ("EQ", 0, 0, 0)],
    "relation of one": [("SIZE", 0, 0, 0), ("MUL", 0, 0, 0), ("EQ", 0, 0, 0)],
    "no such step": [("SIZE", 0, 0, 0), ("POWER", 0, 0, 0), ("EQ", 0, 0, 0)],
    "no such register": [("INT", 0, 99, 0), ("CONST", 0, 0, 0), ("EQ", 0, 0, 0)],
    "an unchecked tensor": [("SIZE", 0, 2, 0), ("CONST", 0, 0, 0), ("EQ", 0, 0, 0)],
    "no such dimension": [("STRIDE", 2, 0, 0), ("CONST", 0, 0, 0), ("EQ", 0, 0, 0)],
    "too many values": [("CONST", 0, 0, 0)] * 40 + [("ADD", 0, 0, 0)] * 38 + [("EQ", 0, 0, 0)],
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_malformed_steps_are_refused(name):
    steps = BAD_STEPS[name]
    spec = with_sizes(sizes=steps)
    spec["nodes"] = [(*n[:5], 0, len(steps)) if n[0] == "SHAPE_ENV" else n for n in spec["nodes"]]
    with pytest.raises(ValueError, match="malformed guard program"):
        _C.make_entry(spec)


def test_malformed_programs_of_sizes_are_refused():
    good = with_sizes()
    _C.make_entry(good)
    *_, tensors, condition, size = good["nodes"]
    for name, changes in {
        "condition ahead of TENSORS": {"nodes": [*good["nodes"][:-3], condition, tensors, size]},
        "size ahead of TENSORS": {"nodes": [*good["nodes"][:-3], size, tensors, condition]},
        "no TENSORS": {"nodes": [*good["nodes"][:-3], condition, size]},
        "node after sizes": {"nodes": [*good["nodes"], ("NOT_NONE", 0, 0, 0, 0, 0, 0)]},
        "no kept int": {"nkept": 0},
        "many kept ints": {"nkept": 99},
        "kept int twice": {"nodes": [*good["nodes"], size]},
        "no steps": {"sizes": []},
        "dimension": {"nodes": [*good["nodes"][:-1], (*size[:5], 2, 0)]},
        "register of no tensor": {"nodes": [*good["nodes"][:-1], (*size[:3], 2, *size[4:])]},
        "any number of dimensions": {"tensors": [(t[0], 1, 0, 0, t[4]) for t in good["tensors"]]},
    }.items():
        with pytest.raises(ValueError, match="malformed guard program"):
            print(name, _C.make_entry({**good, **changes}))


def test_sizes_are_read_after_a_memo_has_held():
    class Holder:
        pass

    scope = {}
    p = Program(f)
    x = p.slot("x")
    place = p.slot("y")
    p.type_is(place, Holder)
    inner = place
    for _ in range(6):
        inner = p.attr(inner, "inner")
        p.type_is(inner, Holder)
    n = p.attr(inner, "n")
    p.type_is(n, int)
    p.tensor(x, torch.ones(2, 3), TYPE_TO_NDIM, 0, 0)
    p.condition("x.size()[0] <= n", ("SIZE", 0, x.reg), ("INT", 0, n.reg), ("LE",))
    p.extra = [p.size(x, 1).reg]
    p.more["function"] = lambda x, y, a, b, n: n
    entry = p.entry()
    root = holder = Holder()
    for _ in range(6):
        holder.inner = Holder()
        holder = holder.inner
    holder.n = 4
    verdicts = [_C.guard_check(entry, (torch.ones(i, 3), root, 0, 0), scope)[0] for i in (1, 2, 3, 4, 5, 6, 2)]
    assert verdicts == [True, True, True, True, False, False, True]
    assert _C.guard_memo(entry) is not None
    assert len(entry.nodes()) - 1 in _C.guard_memo(entry)["left"]
    assert entry.failure((torch.ones(9, 3), root, 0, 0), scope).startswith("x.size()[0] <= n: x.size()[0] is 9")
    holder.n = 9
    assert _C.guard_check(entry, (torch.ones(9, 3), root, 0, 0), scope)[0]


def long_condition(*, divisor, text, load):
    """Return the condition that a sum of twelve equal loads is a multiple of the divisor."""
    steps = [load] * 12 + [("ADD",)] * 11 + [("CONST", 0, 0, divisor), ("MOD",), ("CONST", 0, 0, 0), ("EQ",)]
    return (f"({' + '.join([text] * 12)}) % {divisor} == 0", *steps)


def test_conditions_are_computed_again_when_a_number_that_they_read_changes():
    of_size = long_condition(divisor=24, text="x.size()[0]", load=("SIZE", 0, 0, 2))
    of_int = long_condition(divisor=36, text="a", load=("INT", 0, 2, 3))
    entry = of_sizes(of_size, of_int, tensors="x", ints="a").entry()
    cases = [
        (2, 3),
        (2, 3),
        (3, 3),
        (2, 3),
        (2, 4),
        (2, 3),
        (4, 6),
        (4, 6),
        (4, 5),
        (4, 6),
        (5, 6),
        (2, 1 << 70),
        (2, 3),
    ]
    for size, number in cases:
        holds = size % 2 == 0 and number % 3 == 0 and number < 1 << 63
        assert both(entry, (torch.ones(size, 3), None, number, 0)) is holds, (size, number)
    assert both(entry, (torch.ones(2, 3), None, True, 0)) is False, "a bool is no int"


def test_conditions_are_shown_at_the_places_they_read():
    p = of_sizes(AT_LEAST_TWO, ints="")
    p.more["info"] = {"guard_kinds": "1\tTENSOR_MATCH\tLOCAL\tx\n1\tTENSOR_MATCH\tLOCAL\ty\n"
                      "2\tSHAPE_ENV\tLOCAL\tx.size()[0]\n"}  # fmt: skip
    guards = guard_objects.of_entry(p.entry())
    condition = guards.guards[-1]
    assert (condition.kind, condition.name, condition.words) == ("SHAPE_ENV", "x.size()[0]", "x.size()[0] >= 2")
    assert str(guards.tree()).splitlines()[1:5] == [
        "x", "├─ TENSOR_MATCH: type(x) is Tensor, float32, cpu, 2 dimensions, no requires_grad", "└─ x.size()[0]",
        "   └─ SHAPE_ENV: x.size()[0] >= 2"]  # fmt: skip


def test_a_recompile_is_explained_by_the_size():
    entry = of_sizes(("x.size()[0] >= 2", ("SIZE", 0, 0, 2), *AT_LEAST_TWO[2:])).entry()
    failure = entry.failure((torch.ones(1, 3), torch.ones(2, 3), 1, 1), {})
    said = reasons.reason(failure, reasons.Frame.of(f.__code__, None))
    assert (said.subject, said.expected, said.seen) == ("x.size()[0] >= 2", "2", "1")
    assert said.remedy == "pad to few sizes"


@pytest.mark.parametrize(
    ("part", "subject"),
    [
        ("x.size()[0] == 16", "x.size()[0]"), ("x.size()[0] == n + 1", "x.size()[0] == n + 1"), ("n != 3", "n != 3"),
        ("n == m", "n == m"), ("n == inf", "n"), ("n == -3", "n"), ("x is y", "x"), ("r() is not None", "r()"),
    ],
)  # fmt: skip
def test_a_relation_is_named_as_a_whole(part, subject):
    assert reasons._subject(part, "1")[0] == subject


def test_a_dropped_condition_holds_always():
    p = of_sizes(AT_LEAST_TWO, ("y.size()[0] == 2", Y0, ("CONST", 0, 0, 2), ("EQ",)), fields=TYPE_TO_NDIM | 64)
    entry = p.entry()
    good, bad = torch.ones(2, 3), torch.ones(1, 3)
    assert entry.check(good, good, 1, 1) and not entry.check(bad, good, 1, 1)
    first, second = [i for i, node in enumerate(entry.nodes()) if node[0] == "SHAPE_ENV"]
    entry.drop_node(first)
    assert entry.check(bad, good, 1, 1) and not entry.check(good, bad, 1, 1)
    entry.drop_node(second)
    assert entry.check(good, bad, 1, 1)
    for wrong in (0, 10**6):
        with pytest.raises(ValueError, match="drop_node"):
            entry.drop_node(wrong)


def test_a_dropped_size_is_compared_no_longer():
    @godynamo.optimize
    def f(x):
        return [x[i] for i in range(x.shape[0])], [x[:, i] for i in range(x.shape[1])]

    f(torch.ones(2, 3))
    (entry,) = godynamo.cache_entries(f)
    assert not entry.check(torch.ones(4, 3))
    entry.drop_size(0, 0)
    assert entry.check(torch.ones(4, 3)) and not entry.check(torch.ones(2, 4))
    for wrong in ((0, 0), (0, 5), (9, 0)):
        with pytest.raises(ValueError, match="drop_size"):
            entry.drop_size(*wrong)
