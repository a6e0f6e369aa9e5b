"""The guard text, executed by Python, and the native evaluator have the same verdict."""

from __future__ import annotations

import collections
import gc
import random
import types
import weakref

import pytest
import torch

from godynamo import _C
from godynamo._called import guard_env
from guard_programs import STATE, Program


class Plain:
    scale = 1

    def __init__(self, **attrs):
        for name, value in attrs.items():
            setattr(self, name, value)

    def method(self):
        return 1


class Slotted:
    __slots__ = ("s", "t")


class Other(Plain):
    pass


def f(x, y):
    return x


def both(entry, slots, scope):
    native = _C.guard_check(entry, slots, scope)[0]
    assert native is entry.check(*slots, globals=scope)
    assert guard_env.eval_text(entry, slots, scope) is native, (entry.text, slots, entry.failure(slots, scope))
    return native


NAN = float("nan")
# Values that compare equal or look alike in Python but differ for a guard, and values that are equal for both.
VALUES = [
    None, True, False, 0, 1, 2, -1, 2**70, 0.0, -0.0, 1.0, 2.5, NAN, float("inf"), -float("inf"), 1j, complex(NAN, 0),
    complex(0, -0.0), "", "a", "b", "\ud800", b"", b"a", (), (1,), (True,), (1.0,), (1, 2), (1, (2, 3)), ((),), (NAN,),
    (-0.0,),
    frozenset(), frozenset({1}), frozenset({1.0}), frozenset({"a", 2}), frozenset({NAN}), range(0), range(3), range(0,
    3, 2),
    range(0, 4, 2), range(1, 1), slice(None), slice(1, 2), slice(True, 2), slice(1.0, 2), ..., int, bool, Plain,
    torch.float32, torch.float64, torch.device("cpu"), torch.device("meta"), torch.Size([1, 2]), [1], {"a": 1}, {1, 2},
]  # fmt: skip


def copies(value):
    """Return the value, and an equal but distinct object if possible."""
    again = {
        float: lambda v: float(repr(v)),
        str: lambda v: "".join(list(v)),
        int: lambda v: int(str(v)),
        tuple: lambda v: tuple(list(v)),
        frozenset: lambda v: frozenset(list(v)),
        range: lambda v: range(v.start, v.stop, v.step),
        slice: lambda v: slice(v.start, v.stop, v.step),
        torch.device: lambda v: torch.device(str(v)),
        complex: lambda v: complex(v.real, v.imag),
    }.get(type(value))
    return [value] if again is None else [value, again(value)]


@pytest.mark.row("S002-91", "S002-98")
def test_equality_is_strict_and_the_same_in_c_and_python():
    for i, a in enumerate(VALUES):
        for j, b in enumerate(VALUES):
            for left in copies(a):
                for right in copies(b):
                    native = _C.guard_equals(left, right)
                    assert native is guard_env.equals(left, right), (left, right)
                    if i != j:
                        assert not native, (left, right)
        for left in copies(a):
            assert _C.guard_equals(a, left), a


@pytest.mark.row("S002-91")
@pytest.mark.parametrize("good", [2, "text", 2.5, b"x", True], ids=repr)
def test_equals_match_as_the_seed_writes_it(good):
    p = Program(f)
    x = p.slot("x")
    p.type_is(x, type(good))
    p.equals(x, good, f"x == {good!r}")
    entry = p.entry()
    for value in VALUES + [good, 2.0, 3, "text2", False]:
        verdict = both(entry, (value, None), {})
        assert verdict is (type(value) is type(good) and value == good)


@pytest.mark.row("S002-83")
def test_a_range_is_guarded_by_its_bounds_too():
    p = Program(f)
    x = p.slot("x")
    p.type_is(x, range)
    p.equals(x, range(0, 3, 2), "x == range(0, 3, 2) and (x.start, x.stop, x.step) == (0, 3, 2)")
    entry = p.entry()
    assert both(entry, (range(0, 3, 2), 0), {})
    assert not both(entry, (range(0, 4, 2), 0), {})
    assert not both(entry, ([0, 2], 0), {})


def rich_program(scope):
    """Return an entry with most kinds of guards, for frames made by `rich_frame`."""
    p = Program(f)
    x, y = p.slot("x"), p.slot("y")
    p.type_is(x, Plain)
    p.has_attr(x, "missing", False)
    p.has_attr(x, "a", True)
    a = p.attr(x, "a")
    p.type_is(a, dict)
    p.keys(a, ("k", 1, None))
    p.contains(a, "k", True)
    p.contains(a, "nope", False)
    k = p.item(a, "k")
    p.type_is(k, list)
    p.length(k, 2)
    p.equals(p.index(k, 1), "end")
    last = p.index(k, -1)
    p.same(last, p.index(k, 1))
    kind = p.type_of(x)
    p.is_(kind, Plain)
    p.is_(p.type_attr(kind, "method"), Plain.__dict__["method"])
    p.type_has_attr(kind, "nowhere", False)
    p.type_has_attr(kind, "scale", True)
    mro = p.helper(kind, "{}.__mro__[0].__dict__['scale']", "MRO_ATTR", p.const("scale"), 0)
    p.equals(mro, 1)
    p.is_(p.helper(kind, "___mro_class({}, 1)", "MRO_CLASS", 1), Plain.__mro__[1])
    g = p.global_("helper")
    p.is_(p.helper(g, "{}.__code__", "FUNC_FIELD", 0), scope["helper"].__code__)
    p.check("helper.__name__ == 'helper'", "NAME_MATCH", g, p.const("helper"))
    defaults = p.helper(g, "{}.__defaults__", "FUNC_FIELD", 2)
    p.equals(defaults, (1,))
    first = p.helper(a, "list({})[0]", "DICT_KEY", 0)
    p.equals(first, "k")
    p.same(x, y, False)
    p.type_is(y, type(iter(())))
    p.check("___tuple_iterator_len(y) == 2", "TUPLE_ITER_LEN", y, 2)
    p.equals(p.helper(y, "___tuple_iterator_getitem({}, 1)", "TUPLE_ITER_ITEM", 1), 30)
    return p.entry()


def rich_frame():
    iterator = iter((10, 20, 30))
    next(iterator)
    return [Plain(a={"k": ["begin", "end"], 1: 2, None: 3}), iterator]


def mutations(rng, frame, scope):
    """Change one random thing in the frame."""
    x, y = frame
    junk = rng.choice(VALUES)

    def spoil_iterator():
        next(y, None)

    a = x.a if isinstance(getattr(x, "a", None), dict) else {}
    choices = [
        lambda: None,
        lambda: None,
        lambda: frame.__setitem__(0, junk),
        lambda: frame.__setitem__(1, junk),
        lambda: frame.__setitem__(1, x),
        lambda: frame.__setitem__(0, Other(a=a)),
        lambda: setattr(x, "a", junk),
        lambda: setattr(x, "missing", junk),
        lambda: setattr(x, "unrelated", junk),
        lambda: delattr(x, "a"),
        lambda: a.update({"more": junk}),
        lambda: a.pop("k", None),
        lambda: a.update({"k": junk}),
        lambda: a.update({"k": ["begin", "end"]}),
        lambda: a.update({1: a.pop(1)}),
        lambda: a.update({"k": ["begin"]}),
        lambda: a.update({"k": ["begin", junk]}),
        lambda: a.update({"k": ["begin", "".join(["en", "d"])]}),
        lambda: setattr(x, "a", dict(reversed(list(a.items())))),
        lambda: setattr(x, "a", collections.OrderedDict(a)),
        lambda: setattr(x, "a", {"k": ["begin", "end"], True: 2, None: 3}),
        lambda: x.__dict__,
        lambda: x.__dict__.update(extra=1),
        lambda: scope.update(helper=junk),
        lambda: scope.update(unrelated=junk),
        lambda: scope.pop("helper"),
        lambda: scope["helper"].__setattr__("__defaults__", rng.choice([None, (1,), (2,), (True,)])),
        lambda: scope["helper"].__setattr__("__name__", rng.choice(["helper", "other"])),
        spoil_iterator,
        lambda: Plain.__setattr__ and setattr(Plain, "scale", rng.choice([1, 2, True])),
        lambda: setattr(Plain, "nowhere", 1),
    ]
    try:
        rng.choice(choices)()
    except (AttributeError, KeyError, TypeError):
        pass


@pytest.mark.row("S002-98", "S002-99")
def test_text_and_native_agree_on_mutated_frames():
    rng = random.Random(7)
    scope = {}
    exec("def helper(q=1):\n    return q", scope)
    original, defaults = scope["helper"], scope["helper"].__defaults__
    entry = rich_program(scope)
    verdicts = collections.Counter()
    for _ in range(10_000):
        frame = rich_frame()
        scope["helper"] = original
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            mutations(rng, frame, scope)
        # Between two frames, a type may have lost an attribute and got it back.
        verdicts[both(entry, tuple(frame), scope)] += 1
        verdicts[both(entry, tuple(frame), scope)] += 1  # with the caches filled
        original.__defaults__, original.__name__ = defaults, "helper"
        Plain.scale = 1
        if "nowhere" in Plain.__dict__:
            del Plain.nowhere
    assert verdicts[True] > 1000
    assert verdicts[False] > 1000


def tensor_variants():
    """Return a tensor and variants that differ from it in one property or none."""
    base = torch.randn(3, 4)
    return {
        "data": torch.randn(3, 4),
        "size": torch.randn(3, 5),
        "one dimension more": torch.randn(3, 4, 1),
        "strides": torch.randn(4, 3).t(),
        "expanded": torch.randn(1, 4).expand(3, 4),
        "dtype": torch.randn(3, 4, dtype=torch.float64),
        "int": torch.zeros(3, 4, dtype=torch.int64),
        "bool": torch.zeros(3, 4, dtype=torch.bool),
        "device": torch.empty(3, 4, device="meta"),
        "leaf": torch.randn(3, 4, requires_grad=True),
        "computed": torch.randn(3, 4, requires_grad=True) * 2,
        "detached": (torch.randn(3, 4, requires_grad=True) * 2).detach(),
        "parameter": torch.nn.Parameter(torch.randn(3, 4)),
        "frozen parameter": torch.nn.Parameter(torch.randn(3, 4), requires_grad=False),
        "buffer": torch.nn.Buffer(torch.randn(3, 4)) if hasattr(torch.nn, "Buffer") else base,
        "complex": torch.randn(3, 4, dtype=torch.complex64),
        "conj": torch.randn(3, 4, dtype=torch.complex64).conj(),
        "neg": torch.randn(3, 4, dtype=torch.complex64).conj().imag,
        "sparse": torch.randn(3, 4).to_sparse(),
        "csr": torch.randn(3, 4).to_sparse_csr(),
        "subclass": torch.randn(3, 4).as_subclass(Logging),
        "scalar": torch.tensor(1.0),
        "six dimensions": torch.randn(1, 1, 1, 1, 3, 4),
        "six others": torch.randn(1, 1, 1, 2, 3, 4),
        "empty": torch.empty(0, 4),
        "no tensor": 3,
        "none": None,
        "view": torch.randn(6, 4)[:3],
        "inference": inference_tensor(),
        "quantized": torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.quint8),
        "again": base,
    }


def inference_tensor():
    with torch.inference_mode():
        return torch.randn(3, 4)


class Logging(torch.Tensor):
    """Counts the calls of its torch function handler."""

    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.row("S002-94", "S002-98")
@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.filterwarnings("ignore:.*quantize")
@pytest.mark.parametrize("layout_known", [True, False])
@pytest.mark.parametrize("fields", [255, 1, 2, 4, 8, 16, 32, 32 | 64, 32 | 128, 254, 0])
def test_every_pair_of_tensors_is_judged_alike(fields, layout_known):
    known = _C._tensor_layout_use(layout_known)
    assert known is layout_known
    variants = tensor_variants()
    try:
        for name, example in variants.items():
            if not isinstance(example, torch.Tensor):
                continue
            p = Program(f)
            p.tensor(p.slot("x"), example, fields)
            entry = p.entry()
            for other, value in variants.items():
                both(entry, (value, None), {})
            assert entry.check(example, None), name
    finally:
        _C._tensor_layout_use(True)


@pytest.mark.row("S002-94")
@pytest.mark.parametrize("layout_known", [True, False])
def test_each_field_alone_is_noticed_and_data_is_not(layout_known):
    _C._tensor_layout_use(layout_known)
    try:
        variants = tensor_variants()
        p = Program(f)
        p.tensor(p.slot("x"), variants["again"])
        entry = p.entry()
        same = {"data", "again", "detached", "view", "buffer"}
        for name, value in variants.items():
            assert entry.check(value, None) is (name in same), name
        assert entry.check(variants["again"].add_(1), None)
    finally:
        _C._tensor_layout_use(True)


def test_only_the_dimensions_asked_for_are_compared():
    p = Program(f)
    p.tensor(p.slot("x"), torch.randn(3, 4), 255, sizes=0b10, strides=0)
    entry = p.entry()
    assert entry.check(torch.randn(7, 4), 0)
    assert not entry.check(torch.randn(3, 5), 0)
    assert not entry.check(torch.randn(4), 0)
    assert "sizes differ, found (3, 5), was (3, 4)" in entry.failure((torch.randn(3, 5), 0))


STATES = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "deterministic": lambda: Switch(torch.use_deterministic_algorithms, True, False),
    "default dtype": lambda: Switch(torch.set_default_dtype, torch.float64, torch.float32),
    "threads": lambda: Switch(torch.set_num_threads, torch.get_num_threads() + 1, torch.get_num_threads()),
    "dispatch mode": lambda: DispatchMode(),
    "function mode": lambda: FunctionMode(),
    "no torch function": torch._C.DisableTorchFunctionSubclass,
    "device context": lambda: torch.device("cpu"),
}


class Switch:
    def __init__(self, switch, on, off):
        self.switch, self.on, self.off = switch, on, off

    def __enter__(self):
        self.switch(self.on)

    def __exit__(self, *_):
        self.switch(self.off)


class DispatchMode(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class FunctionMode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.row("S002-101")
@pytest.mark.parametrize("name", STATES)
def test_every_part_of_torchs_state_is_compared(name):
    x = torch.randn(3)
    p = Program(f)
    p.tensor(p.slot("x"), x)
    entry = p.entry()
    assert entry.check(x, 0)
    with STATES[name]():
        assert not both(entry, (x, 0), {}), name
        assert "torch's" in entry.failure((x, 0))
        p = Program(f)
        p.tensor(p.slot("x"), x)
        inside = p.entry()
        assert inside.check(x, 0)
    assert entry.check(x, 0)
    assert not inside.check(x, 0)


def test_autocast_dtype_is_compared_while_autocast_is_on():
    x = torch.randn(3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = Program(f)
        p.tensor(p.slot("x"), x)
        entry = p.entry()
        assert entry.check(x, 0)
    with torch.autocast("cpu", dtype=torch.float16):
        assert not entry.check(x, 0)


def test_state_is_of_the_calling_thread():
    import threading

    x = torch.randn(3)
    p = Program(f)
    p.tensor(p.slot("x"), x)
    entry = p.entry()
    seen = []

    def look():
        seen.append(entry.check(x, 0))
        with torch.no_grad():
            seen.append(entry.check(x, 0))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [True, False]
    assert entry.check(x, 0)


def test_grad_mode_node():
    p = Program(f)
    p.check("___is_grad_enabled()", "GRAD_MODE", flags=1)
    on = p.entry()
    p = Program(f)
    p.check("not ___is_grad_enabled()", "GRAD_MODE")
    off = p.entry()
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            assert both(on, (0, 0), {}) is grad
            assert both(off, (0, 0), {}) is not grad


def closure_of(value, empty=False):
    def inner(x):
        return cell

    cell = value
    if empty:
        del cell
    return inner


def test_cells_are_read_through_their_slot():
    inner = closure_of(5)
    p = Program(inner)
    p.check(
        "___check_type_id(___cells['cell'], %d)" % id(types.CellType),
        "TYPE_MATCH",
        p.slot("cell"),
        p.const(types.CellType),
    )
    p.equals(p.cell("cell"), 5)
    entry = p.entry()
    assert both(entry, (0, inner.__closure__[0]), {})
    assert not both(entry, (0, closure_of(6).__closure__[0]), {})
    assert not both(entry, (0, closure_of(6, empty=True).__closure__[0]), {})
    assert not entry.check(0, 5)

    p = Program(inner)
    p.check("___cell_empty(___cells['cell'])", "CELL_EMPTY", p.slot("cell"))
    entry = p.entry()
    assert both(entry, (0, types.CellType()), {})
    assert not both(entry, (0, inner.__closure__[0]), {})


def test_referents_are_read():
    p = Program(f)
    referent = p.helper(p.slot("x"), "___referent({})", "WEAKREF")
    p.type_is(referent, Plain)
    entry = p.entry()
    thing = Plain()

    class Keyed(weakref.ref):
        pass

    plain, keyed = weakref.ref(thing), Keyed(thing)
    assert both(entry, (plain, 0), {}) and both(entry, (keyed, 0), {})
    del thing
    assert not both(entry, (plain, 0), {}) and not both(entry, (keyed, 0), {})


class Ending:
    def __del__(self):
        pass


ENDS = {
    "nothing": lambda: None,
    "a number": lambda: 10**20,
    "a tensor": lambda: torch.ones(2),
    "a list of tensors": lambda: [torch.ones(2), (torch.ones(2), "text")],
    "an instance": lambda: Plain(a=Plain()),
    "a __del__": Ending,
    "in a list": lambda: [[], [Ending()]],
    "in a dict": lambda: {"k": Ending()},
    "in an instance": lambda: Plain(a=Plain(b=Ending())),
    "a generator": lambda: (i for i in "ab"),
    "in a closure": lambda: (lambda held: lambda: held)(Ending()),
    "many": lambda: [[] for _ in range(100)],
}


def quiet(op, at, text, more="", places=1):
    """Return an entry with one guard: destroying the object at the place ``at`` in x runs no code."""
    p = Program(f)
    a, b = at(p)
    p.check(f"not ___ends_in_code(x, {text}, {places}{more})", op, p.slot("x"), a, b, flags=places)
    return p.entry()


SLOT_OFFSET = object.__sizeof__(Slotted()) - 16  # two members at the end


def slotted(value):
    s = Slotted()
    s.s = value
    return s


def quiet_places(places=1):
    """Return name -> (entry, maker of an object with a value at the place, reader of that value)."""
    name = quiet("QUIET_NAME", lambda p: (p.const("a"), p.cache()), "'a'", places=places)
    key = quiet("QUIET_KEY", lambda p: (p.const(2), p.cache()), "2", places=places)
    index = quiet("QUIET_INDEX", lambda p: (1, 0), "1", places=places)
    slot = quiet("QUIET_SLOT", lambda p: (p.const("s"), SLOT_OFFSET), "'s'", ", True", places)
    contents = quiet("QUIET_INDEX", lambda p: (0, 0), "0", places=places)
    return {
        "a name": (name, lambda v: {"a": v}, lambda p: p["a"]),
        "an attribute": (name, lambda v: Plain(a=v), lambda p: p.a),
        "a key": (key, lambda v: {2: v}, lambda p: p[2]),
        "an item": (index, lambda v: [0, v], lambda p: p[1]),
        "an item of a deque": (index, lambda v: collections.deque([0, v]), lambda p: p[1]),
        "a slot": (slot, slotted, lambda p: p.s),
        "a cell": (contents, types.CellType, lambda p: p.cell_contents),
    }


@pytest.mark.parametrize("where", quiet_places())
@pytest.mark.parametrize("what", ENDS)
def test_what_a_store_replaces_ends_in_silence(what, where):
    entry, make, read = quiet_places()[where]
    silent = list(ENDS).index(what) < 5
    place = make(ENDS[what]())
    assert both(entry, (place, 0), {}) == silent
    kept = read(place)
    assert both(entry, (place, 0), {}), "held elsewhere"
    two = quiet_places(places=2)[where][0]
    assert both(two, (place, 0), {}) == silent, "this reference may go as well"
    del kept
    assert both(entry, (place, 0), {}) == silent


def test_a_place_without_a_value_is_quiet():
    entries = {where: entry for where, (entry, *_) in quiet_places().items()}
    for nothing in ({}, Plain(), 3):
        assert both(entries["a name"], (nothing, 0), {})
    empty = {"an item": [], "an item of a deque": collections.deque(), "a slot": Slotted(), "a cell": types.CellType()}
    for where, nothing in empty.items():
        assert both(entries[where], (nothing, 0), {})


@pytest.mark.parametrize("places", [1, 3])
def test_a_variable_ends_in_silence(places):
    p = Program(f)
    p.check(f"not ___ends(x, {places})", "QUIET", p.slot("x"), flags=places)
    entry = p.entry()

    def silent(make):
        slots = (make(), 0)
        held = [slots[0]] * (places - 1)
        assert len(held) < places
        return both(entry, slots, {})

    def watched():
        thing = Plain()
        thing.watching = weakref.ref(thing, print)
        return thing

    for quiet in (Plain, int, lambda: torch.ones(2), lambda: [Plain()], lambda: weakref.ref(f, print)):
        assert silent(quiet)
    for loud in (Ending, watched, lambda: [[Ending()]], lambda: (i for i in "ab")):
        assert not silent(loud)
        kept = loud()
        assert silent(lambda kept=kept: kept), "held elsewhere"
    assert silent(lambda: [[] for _ in range(100)]), "more than a look takes in"


def test_slots_are_read_where_the_class_has_them():
    p = Program(f)
    x = p.slot("x")
    s = p.helper(x, "{}.s", "SLOT", p.const("s"), SLOT_OFFSET)
    p.equals(s, 1)
    entry = p.entry()
    good, empty, other = Slotted(), Slotted(), Slotted()
    good.s, other.s = 1, 2
    assert both(entry, (good, 0), {})
    assert not both(entry, (empty, 0), {})
    assert not both(entry, (other, 0), {})
    assert not both(entry, (3, 0), {})
    assert not entry.check(Plain(s=1), 0)


def test_instance_dicts_and_inline_values_read_alike():
    p = Program(f)
    x = p.slot("x")
    p.equals(p.attr(x, "a"), 1)
    p.has_attr(x, "b", False)
    entry = p.entry()
    inline = Plain(a=1)
    made = Plain(a=1)
    assert made.__dict__ == {"a": 1}
    many = Plain(**{f"v{i}": i for i in range(40)}, a=1)
    renamed = Plain(z=1)
    for _ in range(3):
        for value, expected in (
            (inline, True),
            (made, True),
            (many, True),
            (renamed, False),
            (3, False),
            (Plain, False),
        ):
            assert both(entry, (value, 0), {}) is expected
    assert _C.instance_dict(made) is made.__dict__
    with pytest.raises(AttributeError):
        _C.instance_dict(3)
    assert _C.instance_dict(Plain(a=2)) == {"a": 2}
    inline.b = 2
    made.b = 2
    assert not both(entry, (inline, 0), {})
    assert not both(entry, (made, 0), {})
    del inline.b, made.b
    assert both(entry, (inline, 0), {})
    assert both(entry, (made, 0), {})
    delattr(inline, "a")
    assert not both(entry, (inline, 0), {})


@pytest.mark.row("S002-105")
def test_an_ordered_dicts_own_order_counts():
    p = Program(f)
    x = p.slot("x")
    p.type_is(x, collections.OrderedDict)
    p.keys(x, ("a", "b"))
    entry = p.entry()
    d = collections.OrderedDict(a=1, b=2)
    assert both(entry, (d, 0), {})
    d.move_to_end("a")
    assert not both(entry, (d, 0), {})
    d.move_to_end("b")
    assert both(entry, (d, 0), {})
    d["c"] = 1
    assert not both(entry, (d, 0), {})


@pytest.mark.row("S002-105")
@pytest.mark.parametrize("keys", [(1,), (True,), (1.0,), ("a", "b"), ((1, 2),), (int,), (None,)], ids=repr)
def test_dict_keys_compare_by_type_and_value(keys):
    p = Program(f)
    x = p.slot("x")
    p.check(f"___dict_keys(x) == ___object({id(keys)})", "DICT_KEYS", x, p.const(keys), p.cache())
    entry = p.entry()
    for other in [
        (1,),
        (True,),
        (1.0,),
        ("a", "b"),
        ("b", "a"),
        ("a",),
        ((1, 2),),
        ((True, 2),),
        (int,),
        (bool,),
        (None,),
    ]:
        assert both(entry, (dict.fromkeys(other), 0), {}) is _C.guard_equals(other, keys)


def test_dict_look_ups_find_what_python_finds():
    rng = random.Random(3)
    keys = [
        0,
        1,
        -1,
        -2,
        2**61 - 1,
        2**64,
        1.5,
        "a",
        "b" * 50,
        b"a",
        None,
        (1, "a"),
        (),
        True,
        3.0,
        int,
        Plain,
        "\ud800",
    ]
    for _ in range(300):
        d = {}
        for _ in range(rng.randrange(40)):
            key = rng.choice([*keys, rng.randrange(100) << rng.randrange(60), str(rng.randrange(50))])
            if rng.random() < 0.3:
                d.pop(key, None)
            else:
                d[key] = object()
        for key in [*keys, *d]:
            expected = d.get(key)
            found = _C.dict_get(d, key) if guard_env.dict_contains(key, d) else None
            assert found is expected, (key, list(d))


def test_module_and_weakref_and_builtin_accesses():
    import math
    import weakref

    target = Plain(a=1)
    scope = {"math": math, "ref": weakref.ref(target), "__builtins__": __builtins__}
    p = Program(f)
    m = p.global_("math")
    pi = p.helper(m, "{}.pi", "MODULE_ATTR", p.const("pi"), p.cache())
    p.equals(pi, math.pi)
    ref = p.global_("ref")
    referent = p.helper(ref, "{}()", "WEAKREF")
    p.check("ref() is not None", "NOT_NONE", referent)
    lacks = p.const("len"), p.cache()
    p.nodes.append(("DICT_LACKS", 0, 0, p.globals().reg, len(p.parts), *lacks))
    builtin = p.fetch(type(m)("B", p.nslots + 1), "___builtin('len')", "DICT_GET", p.const("len"), p.cache())
    p.is_(builtin, len)
    entry = p.entry()
    assert both(entry, (0, 0), scope)
    scope["len"] = len
    assert not both(entry, (0, 0), scope)
    del scope["len"]
    assert both(entry, (0, 0), scope)
    scope["math"] = target
    assert not both(entry, (0, 0), scope)
    scope["math"] = math
    del target
    gc.collect()
    assert not both(entry, (0, 0), scope)


def test_parameter_names_are_walked_as_torch_does():
    inner = torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), inner, inner, torch.nn.ReLU(), torch.nn.Linear(2, 2, bias=False))
    names = tuple(name for name, _ in model.named_parameters())
    p = Program(f)
    p.check(f"___param_names(x) == {names!r}", "PARAM_NAMES", p.slot("x"), p.const(names))
    entry = p.entry()
    assert both(entry, (model, 0), {})
    model.register_parameter("more", torch.nn.Parameter(torch.zeros(1)))
    assert not both(entry, (model, 0), {})
    del model.more
    assert both(entry, (model, 0), {})
    model[4].bias = torch.nn.Parameter(torch.zeros(2))
    assert not both(entry, (model, 0), {})
    assert not both(entry, (3, 0), {})


def test_object_mutation_is_noticed():
    module = torch.nn.Linear(2, 2)
    p = Program(f)
    text = f"___check_mutation(x, {id(module)})"
    p.check(text, "OBJECT_MUTATION", p.slot("x"), p.const(module, 1), p.cache())
    entry = p.entry()
    assert both(entry, (module, 0), {})
    assert not both(entry, (torch.nn.Linear(2, 2), 0), {})
    module.flag = 1
    assert not both(entry, (module, 0), {})
    p = Program(f)
    p.check("x", "OBJECT_MUTATION", p.slot("x"), p.const(object(), 1), p.cache())
    with pytest.raises(TypeError, match="has no __dict__"):
        p.entry()


def test_python_predicates_are_called_and_their_errors_fail_the_guard():
    calls = []

    def predicate(value):
        calls.append(value)
        gc.collect()
        if value == "raise":
            raise RuntimeError
        return value == 1

    p = Program(f)
    x, y = p.slot("x"), p.slot("y")
    p.check(f"___object({id(predicate)}, 'p')(x)", "PY_CHECK", x, p.const(predicate))
    p.check(f"___object({id(predicate)}, 'p')(y)", "PY_CHECK", y, p.const(predicate))
    entry = p.entry()
    assert entry.check(1, 1)
    assert calls == [1, 1], "each predicate is called once"
    assert not entry.check(1, 2)
    try:
        assert not entry.check("raise", 1)
    finally:
        calls.clear()


def test_a_predicate_may_destroy_what_registers_hold():
    scope = {"holder": [Plain(a=Plain(b=1))]}

    def destroy(value):
        scope["holder"][:] = [Plain(a=Plain(b=2))]
        gc.collect()
        return True

    p = Program(f)
    holder = p.global_("holder")
    inner = p.attr(p.attr(p.index(holder, 0), "a"), "b")
    p.equals(inner, 1)
    p.check("d(x)", "PY_CHECK", p.slot("x"), p.const(destroy))
    p.tensor(p.slot("y"), torch.ones(2).as_subclass(Logging))
    entry = p.entry()
    assert entry.check(0, torch.ones(2).as_subclass(Logging), globals=scope) is False


def test_state_flag_without_tensors():
    p = Program(f)
    p.check("___check_global_state()", "TENSORS", flags=STATE)
    entry = p.entry()
    assert both(entry, (0, 0), {})
    with torch.no_grad():
        assert not both(entry, (0, 0), {})
